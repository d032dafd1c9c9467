//! `Response`: the answer that the run sends to its caller.

use super::LogicApps;
use crate::actions::{ActionFields, ActionReader};
use crate::builder::text;
use windlass_expression::Template;
use windlass_model::hir::StepKind;
use windlass_source::source::Entry;

impl ActionReader<'_, LogicApps> {
    pub(super) fn response(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { statusCode: 200, body: \"@body('fetch')\" }";
        act.fields.allow(&["kind"]);
        let mut inputs = self.inputs(act, hint);
        match inputs.get(act, self, "statusCode") {
            Some(entry) => self.check_status(entry),
            None => {
                let status = Template::constant(200_i64.into());
                inputs.members.push((text("statusCode"), status));
            }
        }
        for key in ["statusCode", "headers", "body"] {
            inputs.pass(act, self, key);
        }
        inputs.get(act, self, "schema");
        StepKind::Respond(inputs.finish(self))
    }

    /// Reports a constant that is not an HTTP status.
    fn check_status(&mut self, entry: &Entry) {
        let is_valid = |status: i64| (100..=599).contains(&status);
        if !self.whole(&entry.value).is_some_and(is_valid) && !self.is_computed(&entry.value) {
            let wanted = "a whole number from 100 to 599";
            let hint = "for example inputs: { statusCode: 200 }";
            self.wrong_type(&entry.value, "`statusCode`", wanted, hint);
        }
    }
}
