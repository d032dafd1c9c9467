//! What an expression reads: "Variables of a loop".

use super::*;
use windlass_expression::{Condition, Context, Template};
use windlass_value::time::parse_duration;

impl Place<'_> {
    pub fn eval(&self, template: &Template) -> Flow<Value> {
        self.eval_with(template, false)
    }

    pub fn eval_with(&self, template: &Template, missing_as_null: bool) -> Flow<Value> {
        let context = self.context(missing_as_null);
        self.checked(context.and_then(|context| template.eval(&context).ok()))
    }

    pub fn holds(&self, condition: &Condition, missing_as_null: bool) -> Flow<bool> {
        let context = self.context(missing_as_null);
        self.checked(context.and_then(|context| condition.holds(&context).ok()))
    }

    pub fn duration(&self, template: &Template) -> Flow<Duration> {
        let value = self.eval(template)?;
        self.checked(value.as_str().and_then(|text| parse_duration(text).ok()))
    }

    /// The value of a limit or of a number of retries.
    pub fn whole(&self, template: &Template) -> Flow<u64> {
        let whole = self.eval(template)?.as_whole();
        self.checked(whole.and_then(|whole| u64::try_from(whole).ok()))
    }

    /// The computed value, or a fault if it cannot be computed.
    pub fn checked<T>(&self, computed: Option<T>) -> Flow<T> {
        computed.ok_or_else(|| self.fault(fault_kind::EXPRESSION))
    }

    /// Everything that can be read here. `missing_as_null`: "in a loop's own condition, an action that has not run is
    /// null".
    fn context(&self, missing_as_null: bool) -> Option<Context> {
        let mut variables = self.run.story.borrow().variables.clone();
        let (mut loops, mut item) = (Object::new(), None);
        // From the outermost to the innermost; variables without a name belong to the innermost.
        let places: Vec<&Self> = self.around().collect();
        for Place { step, round, .. } in places.into_iter().rev() {
            let Some(round) = round else { continue };
            let index = i64::try_from(round.index).ok()?;
            for of in [format!("{step}_"), String::new()] {
                let mut set = |what, value| variables.insert(format!("{of}{what}").into(), value);
                set("loopIndex", Value::Int(index));
                set("loopCount", Value::Int(index + 1));
                set("loopResult", round.result.clone());
                set("loopStartTime", Value::text(round.since.to_string()));
            }
            let own = round.item.clone().map(|item| ("item", item));
            let own = own.into_iter().chain([("index", Value::Int(index))]);
            loops.insert(step.clone(), Value::from_pairs(own));
            item = round.item.clone().or(item);
        }
        let actions = self.run.workflow.steps().into_iter().map(|step| {
            let missing = missing_as_null.then_some(("", Value::Null));
            let record = self.find(&step.name);
            let record = record.map(|(status, output)| (status.as_str(), output));
            let record = record.or(missing).map_or(Value::Null, |(status, outputs)| {
                Value::from_pairs([("status", Value::from(status)), ("outputs", outputs)])
            });
            (step.name.clone(), record)
        });
        let mut context = vec![
            ("vars", Value::object(variables)),
            ("loops", Value::object(loops)),
            ("actions", Value::from_pairs(actions)),
        ];
        context.extend(item.map(|item| ("item", item)));
        let now = self.run.clock.now.get().to_utc();
        Context::new(&Value::from_pairs(context), now, 0).ok()
    }
}
