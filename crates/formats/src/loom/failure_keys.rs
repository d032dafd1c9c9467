//! `catch`, `continue_on_error` and `expect` of an action.
//! They determine when the action fails, and how its failure is handled.

use super::Loom;
use crate::actions::ActionReader;
use crate::builder::nothing;
use crate::fields::Fields;
use windlass_model::hir::Block;
use windlass_model::model::{Expect, Name};
use windlass_source::source::Entry;

impl ActionReader<'_, Loom> {
    /// Reads how a failure of an action is handled: by the actions of `catch`, or by no actions with
    /// `continue_on_error`.
    pub(super) fn catch(&mut self, fields: &mut Fields<'_>, name: &Name) -> Option<Block> {
        let continue_on_error = fields.non_null(self, "continue_on_error");
        if let Some(entry) = fields.non_null(self, "catch") {
            if let Some(continue_on_error) = continue_on_error {
                let what = "with `catch` the failure is handled, so the run continues anyway";
                let hint = "remove `continue_on_error`, or `catch`";
                self.error("conflict", continue_on_error.key_span, what, hint);
            }
            return Some(self.action_or_actions(entry, &format!("{name}.catch")));
        }
        let entry = continue_on_error?;
        let continues = self.flag(entry, "for example continue_on_error: true")?;
        continues.then(nothing)
    }

    /// Reads `expect`: `json`, or a condition.
    pub(super) fn expect(&mut self, entry: &Entry) -> Option<Expect> {
        match entry.value.as_str() {
            Some("json") => Some(Expect::Json),
            _ => self.condition(entry).map(Expect::That),
        }
    }
}
