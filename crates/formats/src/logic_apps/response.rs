//! `Response`: the answer that the run sends to its caller.

use super::LogicApps;
use crate::actions::{ActionFields, ActionReader};
use crate::builder::text;
use windlass_expression::Template;
use windlass_model::hir::StepKind;

impl ActionReader<'_, LogicApps> {
    pub(super) fn response(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let hint = "for example inputs: { statusCode: 200, body: \"@body('fetch')\" }";
        act.fields.allow(&["kind"]);
        let mut inputs = self.inputs(act, hint);
        if inputs.get(act, self, "statusCode").is_none() {
            inputs
                .members
                .push((text("statusCode"), Template::constant(200_i64.into())));
        }
        for key in ["statusCode", "headers", "body"] {
            inputs.pass(act, self, key);
        }
        inputs.get(act, self, "schema");
        StepKind::Respond(inputs.finish(self))
    }
}
