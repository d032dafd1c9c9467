//! What a definition of Logic Apps, or an ARM template around it, needs and does not say.

use crate::reader::Reader;
use std::collections::BTreeMap;
use windlass_expression::Value;
use windlass_source::source::Span;

/// What a definition needs and no file next to it provides, with an initial value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingInputs {
    /// Parameters, of the template or of the definition.
    pub parameters: BTreeMap<String, Value>,
    /// App settings.
    pub settings: BTreeMap<String, Value>,
    /// The names of all workflows, of a template with several.
    pub workflows: Vec<String>,
}

impl MissingInputs {
    /// Reports a parameter without a value, once. `value` is what it may be at first.
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
