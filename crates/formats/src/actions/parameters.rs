//! The parameters and outputs of a Logic Apps definition. A Loom file may have the form of a definition, too.

use super::settings::Settings;
use super::{ActionReader, Format, member, places};
use crate::arm::parameter_stand_in;
use windlass_expression::{Object, Template, Value};
use windlass_model::hir::{Outputs, Workflow};
use windlass_model::model::Name;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node};

/// The parameters that a deployment sets for every definition.
pub(crate) const DEPLOYED_PARAMETERS: [&str; 2] = ["$connections", "$authentication"];

/// The types of parameters (Logic Apps reference, "Parameters").
const TYPES: [(&str, ()); 8] = [
    ("String", ()),
    ("SecureString", ()),
    ("Int", ()),
    ("Float", ()),
    ("Bool", ()),
    ("Array", ()),
    ("Object", ()),
    ("SecureObject", ()),
];

/// Returns the name in `@parameters('NAME')` or `@{parameters('NAME')}`, if the text is nothing else.
fn parameter_in(text: &str) -> Option<&str> {
    const START: &str = "parameters('";
    let inner = text.trim().strip_prefix('@')?;
    let bare = inner
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'));
    let inner = bare.unwrap_or(inner).trim();
    let start = inner.get(..START.len())?;
    let name = inner.get(START.len()..)?.strip_suffix("')")?;
    (start.eq_ignore_ascii_case(START) && !name.contains('\'')).then_some(name)
}

fn is_secure(declared: &Entry) -> bool {
    let kind = declared.value.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("secure"))
}

/// Returns true for a key of a file of parameters that is not a parameter.
fn is_head(key: &str) -> bool {
    ["$schema", "contentVersion"].contains(&key)
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads `outputs: {name: {type, value}}`.
    pub(crate) fn definition_outputs(&mut self, entry: &Entry, workflow: &mut Workflow) {
        let outputs = entry.value.entries().unwrap_or_default();
        let members = outputs.iter().map(|output| {
            let name = Template::constant(Value::text(output.key.as_str()));
            let value = self.output_value(output);
            (name, self.template(value))
        });
        let members: Vec<(Template, Template)> = members.collect();
        if !members.is_empty() {
            workflow.outputs = Outputs::Template(Template::object(members));
            workflow.places.outputs = places(entry);
        }
    }

    /// Returns the value of an output, `{type, value}`. Reports its mistakes. Anything else is the value itself.
    fn output_value<'n>(&mut self, output: &'n Entry) -> &'n Node {
        if !["type", "value"]
            .iter()
            .any(|key| member(output, key).is_some())
        {
            return &output.value;
        }
        let what = format!("the output `{}`", output.key);
        let hint = "for example outputs: { sum: { type: Int, value: \"@variables('sum')\" } }";
        let Some(mut fields) = self.fields(&output.value, &what, hint) else {
            return &output.value;
        };
        fields.allow(&["description", "metadata"]);
        if let Some(kind) = fields.get("type")
            && let Some(word) = kind.value.as_str()
            && !TYPES
                .iter()
                .any(|(known, ())| known.eq_ignore_ascii_case(word))
        {
            let what = format!("unknown type `{word}` of {what}");
            let known = TYPES.map(|(known, ())| known);
            let hint = did_you_mean(word, known)
                .unwrap_or_else(|| format!("known are: {}", known.join(", ")));
            self.warning("unknown-type", kind.value.span, what, hint);
        }
        let value = fields.get("value");
        if value.is_none() {
            fields.required(self, "value", output.key_span, hint);
        }
        fields.finish(self);
        value.map_or(&output.value, |value| &value.value)
    }

    /// Returns the value of every parameter.
    /// The value is from a file of settings, from next to the definition, or is the default. In a Standard app, the
    /// parameters file of the app also declares parameters.
    pub(crate) fn parameters(
        &mut self,
        declared: Option<&Entry>,
        nearby: Option<&Node>,
        settings: &Settings<'_>,
        deployed: bool,
    ) -> Vec<(Name, Value)> {
        let entries = declared
            .and_then(|entry| entry.value.entries())
            .unwrap_or_default();
        let mut found = Vec::new();
        let mut secure: Vec<&Entry> = Vec::new();
        for entry in entries {
            self.check_declaration(entry);
            let file = settings.parameter(&entry.key);
            let given = nearby.and_then(|values| {
                let value = values.get_any_case(&entry.key)?;
                value.get_any_case("value")
            });
            let default = entry.value.get_any_case("defaultValue");
            // The files of a deployed template have values for the template's own parameters, so values next to the
            // definition are preferred.
            let value = match deployed {
                true => given.or(default).or(file),
                false => file.or(given).or(default),
            };
            let Some(node) = value else {
                self.without_value(entry);
                // Declare the parameter anyway, so that expressions that read it are not reported as well.
                found.push((Name::from(entry.key.as_str()), Value::Null));
                continue;
            };
            let node = self.with_settings(node, settings, true);
            self.check_parameter(entry, &node);
            // Power Automate declares `$authentication` itself, with an empty object.
            let is_empty = match &node.kind {
                Kind::Null => true,
                Kind::Object(members) => members.is_empty(),
                _ => false,
            };
            if is_secure(entry) && !is_empty {
                secure.push(entry);
            }
            let value = match is_secure(entry) {
                true => node.to_value().secure(),
                false => node.to_value(),
            };
            found.push((Name::from(entry.key.as_str()), value));
        }
        self.secure_values(&secure);
        for given in DEPLOYED_PARAMETERS {
            if !found
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(given))
            {
                found.push((Name::from(given), Value::object(Object::new())));
            }
        }
        let is_declared = |name: &str| {
            let mut entries = entries.iter();
            entries.any(|entry| entry.key.eq_ignore_ascii_case(name))
        };
        for (values, strict) in &settings.parameters {
            let declares = !strict && !deployed;
            for given in values.entries().unwrap_or_default() {
                let is_known = found
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case(&given.key));
                if !is_known && let Some(value) = self.undeclared(given, settings, declares) {
                    found.push((Name::from(given.key.as_str()), value));
                }
            }
        }
        let files = settings.parameters.iter().filter(|_| !deployed).copied();
        for (values, strict) in files.chain(nearby.map(|values| (values, true))) {
            for given in values.entries().unwrap_or_default() {
                if is_head(&given.key) {
                    continue;
                }
                if is_declared(&given.key) || !strict {
                    self.check_member(given);
                    continue;
                }
                let what = format!("unknown parameter `{}` of the definition", given.key);
                let names = entries.iter().map(|entry| entry.key.as_str());
                let hint = did_you_mean(&given.key, names)
                    .unwrap_or_else(|| String::from("the value is not used"));
                self.warning("unknown-parameter", given.key_span, what, hint);
            }
        }
        found
    }

    /// Returns the value of a parameter that only a file next to the definition has. If the file declares parameters
    /// and forgot the value, which is reported elsewhere, returns null.
    fn undeclared(
        &mut self,
        given: &Entry,
        settings: &Settings<'_>,
        declares: bool,
    ) -> Option<Value> {
        let Some(value) = given.value.get_any_case("value") else {
            let is_forgotten = given.value.get_any_case("reference").is_none();
            return (declares && is_forgotten && !is_head(&given.key)).then_some(Value::Null);
        };
        if let Some(kind) = member(given, "type") {
            self.parameter_type(given, kind);
        }
        let value = self.with_settings(value, settings, true);
        self.check_parameter(given, &value);
        Some(match is_secure(given) {
            true => value.to_value().secure(),
            false => value.to_value(),
        })
    }

    /// Replaces each text that is only a parameter of the definition by the value of the parameter, which is a
    /// constant. Used for values that must be constants.
    pub(crate) fn with_parameters(&self, node: &Node) -> Node {
        node.map_texts(&mut |text, span| {
            let value = self.parameter_value(parameter_in(&text.text)?)?;
            Some(Node::made(value.clone(), span))
        })
    }

    /// Returns the value of a parameter. Returns `None` if the value is unknown or secure.
    fn parameter_value(&self, name: &str) -> Option<&Value> {
        let mut known = self.parameters.iter();
        let (_, value) = known.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        (!matches!(value, Value::Null | Value::Secure(_))).then_some(value)
    }

    /// Warns once if secure parameters have values: outputs hide these values, but the stored file contains them.
    fn secure_values(&mut self, secure: &[&Entry]) {
        let Some(first) = secure.first() else { return };
        let names: Vec<String> = secure
            .iter()
            .map(|entry| format!("`{}`", entry.key))
            .collect();
        let (parameters, are, have) = match secure.len() {
            1 => ("the parameter", "is", "has its value"),
            _ => ("the parameters", "are", "has their values"),
        };
        let what = format!(
            "{parameters} {} {are} hidden from every view, but the store contains the file that \
             {have}",
            names.join(", ")
        );
        let hint = "leave it out and write @secret('NAME') where it is used";
        self.warning("secure-value", first.key_span, what, hint);
    }

    fn without_value(&mut self, declared: &Entry) {
        // A deployment sets these two parameters. Windlass has handlers instead of connections, so it needs no
        // values.
        if declared.key.eq_ignore_ascii_case("$connections")
            || declared.key.eq_ignore_ascii_case("$authentication")
        {
            return;
        }
        let value = parameter_stand_in(&declared.key, &declared.value);
        self.missing_inputs
            .parameter(&mut self.reader, &declared.key, declared.key_span, value);
    }

    /// Reports unknown keys and an unknown type in the declaration of a parameter.
    fn check_declaration(&mut self, declared: &Entry) {
        if declared.value.entries().is_none() {
            return;
        }
        let what = format!("the parameter `{}`", declared.key);
        let Some(mut fields) = self.fields(&declared.value, &what, "") else {
            return;
        };
        fields.allow(&[
            "defaultValue",
            "value",
            "allowedValues",
            "description",
            "metadata",
        ]);
        let kind = fields.get("type");
        fields.finish(self);
        if let Some(kind) = kind {
            self.parameter_type(declared, kind);
        }
    }

    fn parameter_type(&mut self, declared: &Entry, kind: &Entry) {
        self.choice_as("unknown-type", kind, &TYPES, |text| {
            format!("unknown type `{text}` of the parameter `{}`", declared.key)
        });
    }

    fn check_parameter(&mut self, declared: &Entry, value: &Node) {
        let kind = declared.value.get_any_case("type").and_then(Node::as_str);
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let (fits, wanted) = match (kind.as_str(), &value.kind) {
            (_, Kind::Null) => (true, ""),
            ("string" | "securestring", kind) => (matches!(kind, Kind::String(_)), "text"),
            ("int", kind) => (matches!(kind, Kind::Int(_)), "a whole number"),
            ("float", kind) => (matches!(kind, Kind::Int(_) | Kind::Float(_)), "a number"),
            ("bool", kind) => (matches!(kind, Kind::Bool(_)), "true or false"),
            ("array", kind) => (matches!(kind, Kind::Array(_)), "a list"),
            ("object" | "secureobject", kind) => (matches!(kind, Kind::Object(_)), "a map"),
            _ => (true, ""),
        };
        let what = format!("the parameter `{}`", declared.key);
        if !fits {
            let hint = "the value must be of the declared type";
            self.wrong_type(value, &what, wanted, hint);
        }
        let Some(Kind::Array(allowed)) = declared
            .value
            .get_any_case("allowedValues")
            .map(|node| &node.kind)
        else {
            return;
        };
        let given = value.to_value();
        if !allowed.iter().any(|allowed| allowed.to_value() == given) {
            let shown: Vec<String> = allowed
                .iter()
                .map(|node| node.to_value().to_json())
                .collect();
            let hint = format!("allowed are: {}", shown.join(", "));
            let what = format!("{what} cannot be {}", given.to_json());
            self.error("not-allowed", value.span, what, hint);
        }
    }
}
