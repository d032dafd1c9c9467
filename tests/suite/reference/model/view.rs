//! What an expression reads: "Variables of a loop".

use super::Run;
use super::records::{Around, Place, Record, inside};
use chrono::{DateTime, Utc};
use std::time::Duration;
use windlass_expression::{
    ActionView, Budget, Condition, Env, EvalError, Lookup, Mode, Template, Value,
};
use windlass_model::hir::StepKind;
use windlass_model::model::{Fault, Status, fault_kind};
use windlass_value::time::parse_duration;

struct View<'s> {
    run: &'s Run<'s>,
    place: &'s Place,
    /// In a loop's own condition, an action of the body that has not run is null.
    missing_as_null: bool,
    budget: Budget,
}

impl<'s> Run<'s> {
    fn view(&'s self, place: &'s Place, missing_as_null: bool) -> View<'s> {
        let (run, budget) = (self, Budget::default());
        View {
            run,
            place,
            missing_as_null,
            budget,
        }
    }

    pub fn eval(&self, place: &Place, template: &Template) -> Result<Value, Fault> {
        self.eval_with(place, template, false)
    }

    pub fn eval_with(&self, place: &Place, what: &Template, null: bool) -> Result<Value, Fault> {
        what.eval(&self.view(place, null)).map_err(fault)
    }

    pub fn holds(&self, place: &Place, what: &Condition, null: bool) -> Result<bool, Fault> {
        what.holds(&self.view(place, null)).map_err(fault)
    }

    pub fn duration(&self, place: &Place, template: &Template) -> Result<Duration, Fault> {
        let value = self.eval(place, template)?;
        let duration = value.as_str().and_then(|text| parse_duration(text).ok());
        duration.ok_or_else(|| wrong("not a duration"))
    }

    /// A limit or a number of retries.
    pub fn whole(&self, place: &Place, template: &Template) -> Result<u64, Fault> {
        let whole = self.eval(place, template)?.as_whole();
        let whole = whole.and_then(|whole| u64::try_from(whole).ok());
        whole.ok_or_else(|| wrong("not a whole number"))
    }
}

fn fault(error: EvalError) -> Fault {
    wrong(&error.message)
}

pub fn wrong(message: &str) -> Fault {
    Fault::new(fault_kind::EXPRESSION, message)
}

impl View<'_> {
    /// `loopIndex` and the others of the innermost loop; `outer_loopIndex` of the one named `outer`.
    fn loop_variable(&self, name: &str) -> Option<Value> {
        const NAMES: [&str; 4] = ["loopindex", "loopcount", "loopresult", "loopstarttime"];
        let lower = name.to_ascii_lowercase();
        let which = NAMES.into_iter().find(|known| lower.ends_with(known))?;
        let of = name.get(..name.len() - which.len())?;
        let around = match of.strip_suffix('_') {
            Some(of) => self.place.named(of)?,
            None if of.is_empty() => self.place.enclosing().next()?,
            None => return None,
        };
        let index = i64::try_from(around.index()).ok()?;
        Some(match (which, around) {
            ("loopindex", _) => Value::Int(index),
            ("loopcount", _) => Value::Int(index + 1),
            ("loopresult", Around::Loop(state)) => state.last_result.borrow().clone(),
            ("loopresult", Around::Item(..)) => Value::Null,
            (_, Around::Loop(state)) => Value::text(state.started_at.to_string()),
            (_, Around::Item(.., since)) => Value::text(since.to_string()),
        })
    }

    /// Whether a timeout ended a block around an action, which did not run there, so that it reads as null. An
    /// action of a foreach belongs to its item.
    fn was_cut(&self, action: &str) -> bool {
        self.run.workflow.steps().into_iter().any(|step| {
            let is_around = inside(step).iter().any(|inner| *inner.name == *action);
            let each = matches!(step.kind, StepKind::ForEach(_));
            let is_over = !each && !self.place.inside.contains(&step.name);
            let record = self.place.find(&step.name).filter(|_| is_around && is_over);
            record.is_some_and(|record| record.is_cut)
        })
    }
}

impl Env for View<'_> {
    fn mode(&self) -> Mode {
        self.run.workflow.rules.mode
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let known = self.run.variables.borrow().get(name).cloned();
        known.or_else(|| self.loop_variable(name))
    }

    fn action(&self, name: &str) -> Lookup<ActionView> {
        let steps = self.run.workflow.steps();
        let mut steps = steps.iter().map(|step| &step.name);
        let Some(name) = steps.find(|known| known.eq_ignore_ascii_case(name)) else {
            return Lookup::Unknown(Vec::new());
        };
        let cut =
            || Some(Record::new(Status::Cancelled, Value::Null)).filter(|_| self.was_cut(name));
        match self.place.find(name).or_else(cut) {
            None => Lookup::NotRun,
            Some(record) => Lookup::Found(ActionView {
                name: name.to_string(),
                status: record.status.as_str().to_owned(),
                outputs: record.output,
                ..ActionView::default()
            }),
        }
    }

    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.place.enclosing().find_map(|one| match one {
            Around::Item(name, _, item, _) => {
                let wanted = of.is_none_or(|of| name.eq_ignore_ascii_case(of));
                wanted.then(|| item.clone())
            }
            Around::Loop(_) => None,
        })
    }

    fn iteration_index(&self, of: &str) -> Option<i64> {
        i64::try_from(self.place.named(of)?.index()).ok()
    }

    fn missing_as_null(&self) -> bool {
        self.missing_as_null
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn now(&self) -> DateTime<Utc> {
        self.run.clock.now.get().to_utc()
    }

    /// Nothing in the model draws.
    fn random(&self) -> u64 {
        0
    }
}
