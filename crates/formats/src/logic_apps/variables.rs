//! Variables of a definition. `InitializeVariable` makes each variable once, and other actions set it.

use super::LogicApps;
use crate::actions::ActionReader;
use crate::reader::Mention;
use windlass_expression::{Reference, Template};
use windlass_model::model::Name;
use windlass_source::source::Span;

impl ActionReader<'_, LogicApps> {
    /// Records a variable. Warns if it was initialized before, which Logic Apps refuses.
    pub(super) fn initializes(&mut self, name: &str, span: Span) {
        if self
            .declared_variables
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            let what = format!("second InitializeVariable of `{name}`");
            self.no_deploy(
                &what,
                span,
                "to deploy it, set the variable with SetVariable",
            );
        }
        self.declared_variables.push(Name::from(name));
    }

    /// Checks an action that sets a variable. Its value must not read the variable itself.
    pub(super) fn sets_initialized(
        &mut self,
        name: &Name,
        label: &str,
        value: &Template,
        span: Span,
    ) {
        let itself = |read: &Reference| matches!(read, Reference::Variable(read) if read.eq_ignore_ascii_case(name));
        if value.references().iter().any(itself) {
            let hint = "read the variable in a Compose before, and use that";
            if label == "setVariable" {
                let what = format!("the value of `{name}` reads `{name}` itself");
                self.error("self-reference", span, what, hint);
            } else {
                let what = format!("value of `{name}` that reads `{name}`");
                self.no_deploy(&what, span, hint);
            }
        }
        self.mentions.push(Mention {
            reference: Reference::Variable(name.to_string()),
            span,
            is_inside: false,
            is_jinja: false,
            is_optional: false,
        });
    }
}
