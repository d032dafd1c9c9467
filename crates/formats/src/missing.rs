//! The inputs that a Logic Apps definition, or the ARM template around it, needs and does not have.

use crate::reader::Reader;
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_source::source::Span;

/// The inputs that a definition needs and that no file next to it provides. Each has an initial value to suggest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingInputs {
    /// Parameters, of the template or of the definition.
    pub parameters: BTreeMap<String, Value>,
    /// App settings.
    pub settings: BTreeMap<String, Value>,
    /// The names of all workflows of a template, if it has several.
    pub workflows: Vec<String>,
}

impl MissingInputs {
    /// Reports once that a parameter has no value. `value` is the initial value to suggest.
    pub(super) fn parameter(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        span: Span,
        value: Value,
    ) {
        let known = self.parameters.insert(name.to_owned(), value);
        if known.is_some() {
            return;
        }
        let what = format!("the parameter `{name}` has no value");
        let hint = format!(
            "set a defaultValue, or a value with --parameters FILE: {{ \"{name}\": {{ \"value\": … \
             }} }}"
        );
        reader.error("missing-parameter", span, what, hint);
    }
}
