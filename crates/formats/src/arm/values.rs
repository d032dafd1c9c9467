//! Reports declarations and values of a template's parameters that a deployment would refuse.

use super::names::has_value;
use crate::reader::Reader;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node};

const TYPES: [&str; 7] = [
    "string",
    "securestring",
    "int",
    "bool",
    "array",
    "object",
    "secureobject",
];
const BOUNDS: [&str; 4] = ["minValue", "maxValue", "minLength", "maxLength"];

impl Reader<'_> {
    /// Reports the entry for a parameter if it has neither `value` nor `reference`.
    pub(crate) fn check_member(&mut self, given: &Entry) {
        if has_value(&given.value) || given.value.get_any_case("reference").is_some() {
            return;
        }
        let what = format!("the value of the parameter `{}` has no `value`", given.key);
        let hint = format!("write \"{}\": {{ \"value\": … }}", given.key);
        self.error("missing-key", given.key_span, what, hint);
    }

    /// Checks the values for the parameters of a template, as a deployment would.
    pub(super) fn check_given(&mut self, template: &Node, given: &[&Node]) {
        for given in given {
            let given = given.get_any_case("parameters").unwrap_or(given);
            self.check_given_names(template, given);
            for own in declared(template) {
                let value = given.get_any_case(&own.key);
                if let Some(value) = value.and_then(|value| value.get_any_case("value")) {
                    self.check_value(template, own, value, true);
                }
            }
        }
    }

    /// Reports values for parameters that the template does not have.
    pub(super) fn check_given_names(&mut self, template: &Node, given: &Node) {
        let declared = declared(template);
        for entry in given.entries().unwrap_or_default() {
            let known = declared
                .iter()
                .any(|own| own.key.eq_ignore_ascii_case(&entry.key));
            if known {
                self.check_member(entry);
            } else if !entry.key.starts_with('$') && entry.key != "contentVersion" {
                let what = format!("the template has no parameter `{}`", entry.key);
                let names = declared.iter().map(|own| own.key.as_str());
                let hint = did_you_mean(&entry.key, names);
                let hint = hint.unwrap_or_else(|| String::from("leave it out"));
                self.error("unknown-parameter", entry.key_span, what, hint);
            }
        }
    }

    /// Reports mistakes in the declarations of a template's parameters.
    pub(super) fn check_declared(&mut self, template: &Node) {
        for own in declared(template) {
            // If the `$ref` has no definition, nothing is known about the parameter.
            let Some(node) = resolved(template, &own.value) else {
                continue;
            };
            let kind = node.get_any_case("type");
            if !TYPES.contains(&type_of(node).as_str()) {
                let what = match kind.and_then(Node::as_str) {
                    Some(kind) => {
                        format!("unknown type `{kind}` of the parameter `{}`", own.key)
                    }
                    None => format!("the parameter `{}` has no type", own.key),
                };
                let span = kind.map_or(own.key_span, |kind| kind.span);
                let hint = format!("types are: {}", TYPES.join(", "));
                self.error("arm-parameter", span, what, hint);
            }
            for bound in BOUNDS {
                if let Some(value) = node.get_any_case(bound)
                    && !matches!(value.kind, Kind::Int(_))
                {
                    let what = format!("`{bound}` of the parameter `{}`", own.key);
                    let hint = "a deployment would refuse it, too";
                    self.wrong_type(value, &what, "a whole number", hint);
                }
            }
        }
    }

    /// Reports a value that is not of the declared type.
    /// If the value is `certain`, it must also be one of the allowed values and within the bounds.
    pub(super) fn check_value(
        &mut self,
        template: &Node,
        declared: &Entry,
        value: &Node,
        certain: bool,
    ) {
        let Some(node) = resolved(template, &declared.value) else {
            return;
        };
        let kind = type_of(node);
        let is_null = matches!(value.kind, Kind::Null);
        if is_null && (is_nullable(node) || is_nullable(&declared.value)) {
            return;
        }
        if !fits(&kind, value) {
            let what = format!("the parameter `{}` needs {kind}", declared.key);
            let hint = "the template declares its type";
            self.error("parameter-type", value.span, what, hint);
            return;
        }
        if certain {
            self.check_allowed(declared, node, value);
            self.check_bounds(declared, node, value);
        }
    }

    fn check_allowed(&mut self, declared: &Entry, node: &Node, value: &Node) {
        let allowed = node.get_any_case("allowedValues").map(|node| &node.kind);
        let Some(Kind::Array(allowed)) = allowed else {
            return;
        };
        let is_allowed = |value: &Node| {
            let value = value.to_value();
            allowed.iter().any(|one| one.to_value() == value)
        };
        // In addition, a list is allowed if all of its items are allowed values.
        let is_part = match &value.kind {
            Kind::Array(items) => items.iter().all(is_allowed),
            _ => false,
        };
        if !is_part && !is_allowed(value) {
            let plain = |node: &Node| node.to_value().to_json();
            let shown = match is_secret(node) {
                true => String::from("this"),
                false => plain(value),
            };
            let what = format!("the parameter `{}` may not be {shown}", declared.key);
            let allowed: Vec<String> = allowed.iter().map(plain).collect();
            let hint = format!("allowed are: {}", allowed.join(", "));
            self.error("parameter-value", value.span, what, hint);
        }
    }

    fn check_bounds(&mut self, declared: &Entry, node: &Node, value: &Node) {
        let (size, least, most) = match &value.kind {
            Kind::Int(number) => (*number, "minValue", "maxValue"),
            // Azure counts UTF-16 code units, as .NET does.
            Kind::String(text) => (
                size(text.text.encode_utf16().count()),
                "minLength",
                "maxLength",
            ),
            Kind::Array(items) => (size(items.len()), "minLength", "maxLength"),
            Kind::Null | Kind::Bool(_) | Kind::Float(_) | Kind::Object(_) => return,
        };
        let bound = |key: &str| match node.get_any_case(key).map(|bound| &bound.kind) {
            Some(Kind::Int(bound)) => Some(*bound),
            _ => None,
        };
        let broken = match (bound(least), bound(most)) {
            (Some(bound), _) if size < bound => (least, bound),
            (_, Some(bound)) if size > bound => (most, bound),
            _ => return,
        };
        let (key, bound) = broken;
        let has = match least {
            "minValue" => format!("may not be {size}"),
            _ => format!("may not have the length {size}"),
        };
        let what = format!("the parameter `{}` {has}", declared.key);
        let hint = format!("the template declares `{key}`: {bound}");
        self.error("parameter-value", value.span, what, hint);
    }
}

fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns true if a value is of a type. Null is not of any type.
fn fits(kind: &str, value: &Node) -> bool {
    match (kind, &value.kind) {
        (_, Kind::Null) => false,
        ("string" | "securestring", found) => matches!(found, Kind::String(_)),
        ("int", found) => matches!(found, Kind::Int(_)),
        ("bool", found) => matches!(found, Kind::Bool(_)),
        ("array", found) => matches!(found, Kind::Array(_)),
        ("object" | "secureobject", found) => matches!(found, Kind::Object(_)),
        // An unknown type is reported elsewhere.
        _ => true,
    }
}

/// Returns the parameters that a template declares.
pub(super) fn declared(template: &Node) -> &[Entry] {
    let declared = template.get_any_case("parameters");
    declared.and_then(Node::entries).unwrap_or_default()
}

/// Returns a declaration. If it has a `$ref`, returns the named declaration in the template's `definitions`.
fn resolved<'n>(template: &'n Node, declared: &'n Node) -> Option<&'n Node> {
    let Some(reference) = declared.get_any_case("$ref") else {
        return Some(declared);
    };
    let name = reference.as_str()?.strip_prefix("#/definitions/")?;
    let found = template.get_any_case("definitions")?.get_any_case(name)?;
    found.get_any_case("$ref").is_none().then_some(found)
}

fn type_of(declared: &Node) -> String {
    let kind = declared.get_any_case("type").and_then(Node::as_str);
    kind.unwrap_or_default().to_ascii_lowercase()
}

fn is_secret(declared: &Node) -> bool {
    type_of(declared).starts_with("secure")
}

pub(super) fn is_nullable(declared: &Node) -> bool {
    let nullable = declared.get_any_case("nullable").map(|node| &node.kind);
    matches!(nullable, Some(Kind::Bool(true)))
}
