//! What an expression reads: "Variables of a loop".

use super::Run;
use super::records::{Around, Place};
use chrono::{DateTime, Utc};
use std::time::Duration;
use windlass_expression::{
    ActionView, Budget, Condition, Env, EvalError, Lookup, Mode, Template, Value,
};
use windlass_model::model::{Fault, Name, Status, fault_kind};
use windlass_value::time::parse_duration;

struct View<'a> {
    run: &'a Run<'a>,
    place: &'a Place,
    /// In a loop's own condition, an action of the body that has not run is null.
    missing_as_null: bool,
    budget: Budget,
}

impl Run<'_> {
    fn view<'a>(&'a self, place: &'a Place, missing_as_null: bool) -> View<'a> {
        let budget = Budget::default();
        View {
            run: self,
            place,
            missing_as_null,
            budget,
        }
    }

    pub fn eval(&self, place: &Place, template: &Template) -> Result<Value, Fault> {
        self.eval_with(place, template, false)
    }

    pub fn eval_with(
        &self,
        place: &Place,
        template: &Template,
        missing_as_null: bool,
    ) -> Result<Value, Fault> {
        let value = template.eval(&self.view(place, missing_as_null));
        value.map_err(|error| fault(&error))
    }

    pub fn holds(
        &self,
        place: &Place,
        condition: &Condition,
        missing_as_null: bool,
    ) -> Result<bool, Fault> {
        let holds = condition.holds(&self.view(place, missing_as_null));
        holds.map_err(|error| fault(&error))
    }

    pub fn duration(&self, place: &Place, template: &Template) -> Result<Duration, Fault> {
        let value = self.eval(place, template)?;
        let text = value.as_str().map(parse_duration);
        match text {
            Some(Ok(duration)) => Ok(duration),
            Some(Err(_)) | None => Err(wrong("a duration", &value)),
        }
    }

    /// A limit or a number of retries.
    pub fn whole(&self, place: &Place, template: &Template) -> Result<u64, Fault> {
        let value = self.eval(place, template)?;
        let whole = value.as_whole().and_then(|whole| u64::try_from(whole).ok());
        whole.ok_or_else(|| wrong("a whole number", &value))
    }
}

fn fault(error: &EvalError) -> Fault {
    Fault::new(fault_kind::EXPRESSION, error.message.clone())
}

fn wrong(wanted: &str, value: &Value) -> Fault {
    let message = format!("{} is not {wanted}", value.to_json());
    Fault::new(fault_kind::EXPRESSION, message)
}

impl View<'_> {
    /// `loopIndex` and the others of the innermost loop; `outer_loopIndex` of the one named `outer`.
    fn loop_variable(&self, name: &str) -> Option<Value> {
        const NAMES: [&str; 4] = ["loopindex", "loopcount", "loopresult", "loopstarttime"];
        let lower = name.to_ascii_lowercase();
        let which = NAMES.into_iter().find(|known| lower.ends_with(known))?;
        let of = name.get(..name.len() - which.len())?;
        let mut enclosing = self.place.enclosing();
        let around = match of.strip_suffix('_') {
            Some(of) => enclosing.find(|one| one.name().eq_ignore_ascii_case(of))?,
            None if of.is_empty() => enclosing.next()?,
            None => return None,
        };
        let index = i64::try_from(around.index()).ok()?;
        Some(match (which, around) {
            ("loopindex", _) => Value::Int(index),
            ("loopcount", _) => Value::Int(index + 1),
            ("loopresult", Around::Loop(state)) => state.last_result(),
            ("loopresult", Around::Item { .. }) => Value::Null,
            (_, Around::Loop(state)) => Value::text(state.started_at.to_string()),
            (_, Around::Item { since, .. }) => Value::text(since.to_string()),
        })
    }

    fn record(&self, name: &str) -> Lookup<(Name, Status, Value)> {
        let tree = &self.run.tree;
        let Some(step) = tree.find(name) else {
            return Lookup::Unknown(tree.names());
        };
        let name = step.name.clone();
        match self.place.find(&name) {
            Some(record) => Lookup::Found((name, record.status, record.output)),
            None if tree.was_cut(&name, self.place) => {
                Lookup::Found((name, Status::Cancelled, Value::Null))
            }
            None => Lookup::NotRun,
        }
    }
}

impl Env for View<'_> {
    fn mode(&self) -> Mode {
        self.run.workflow.rules.mode
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let variables = self.run.variables.borrow();
        let known = variables.as_object()?;
        if let Some(value) = known.get(name) {
            return Some(value.clone());
        }
        self.loop_variable(name).or_else(|| {
            let mut all = known.iter();
            let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        })
    }

    fn action(&self, name: &str) -> Lookup<ActionView> {
        match self.record(name) {
            Lookup::Found((name, status, outputs)) => Lookup::Found(ActionView {
                name: name.to_string(),
                status: status.as_str().to_owned(),
                outputs,
                ..ActionView::default()
            }),
            Lookup::NotRun => Lookup::NotRun,
            Lookup::Unknown(names) => Lookup::Unknown(names),
        }
    }

    fn item(&self, of: Option<&str>) -> Option<Value> {
        self.place.enclosing().find_map(|one| match one {
            Around::Item { name, item, .. } => {
                let wanted = of.is_none_or(|of| name.eq_ignore_ascii_case(of));
                wanted.then(|| item.clone())
            }
            Around::Loop(_) => None,
        })
    }

    fn iteration_index(&self, of: &str) -> Option<i64> {
        let mut enclosing = self.place.enclosing();
        let found = enclosing.find(|one| one.name().eq_ignore_ascii_case(of))?;
        i64::try_from(found.index()).ok()
    }

    fn attempt(&self) -> u32 {
        self.place.attempt
    }

    fn missing_as_null(&self) -> bool {
        self.missing_as_null
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn now(&self) -> DateTime<Utc> {
        self.run.clock.now().to_utc()
    }

    /// Nothing in the model draws.
    fn random(&self) -> u64 {
        0
    }
}
