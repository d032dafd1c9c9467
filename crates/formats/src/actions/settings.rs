//! The files next to a definition.
//! They have the values of parameters, the connections and app settings of a Standard app, and the name of the
//! selected workflow. The keys in a file show which of these it contains.

use super::{ActionReader, Format};
use chrono::DateTime;
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::{Context, Value};
use windlass_source::source::{Node, Span};

/// The start of a call that reads an app setting, in lower case.
const CALL: &str = "appsetting(";

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionKind {
    /// `$connections`, `connectionReferences`, `managedApiConnections`.
    Managed,
    Function,
    ServiceProvider,
    ApiManagement,
}

/// The parts of a connections file.
/// Each entry has the key of the part, the member of a connection with its target, and the kind of the connections.
const CONNECTIONS: [(&str, &str, ConnectionKind); 4] = [
    ("managedApiConnections", "api", ConnectionKind::Managed),
    ("functionConnections", "function", ConnectionKind::Function),
    (
        "serviceProviderConnections",
        "serviceProvider",
        ConnectionKind::ServiceProvider,
    ),
    (
        "apiManagementConnections",
        "apiId",
        ConnectionKind::ApiManagement,
    ),
];

/// The contents of the files next to a definition.
/// If several files set a parameter or an app setting, the first value applies.
#[derive(Default)]
pub(crate) struct Settings<'n> {
    /// Maps from parameters to `{value}`. The flag is true if names that are not declared as parameters are reported.
    pub parameters: Vec<(&'n Node, bool)>,
    values: Vec<&'n Node>,
    connections: Vec<&'n Node>,
    /// The name of the selected workflow, if a template has several.
    pub workflow: Option<&'n str>,
}

impl<'n> Settings<'n> {
    /// Sorts files by what they contain.
    /// The flag of a file is true if the file is for this definition alone.
    pub fn of(files: impl IntoIterator<Item = (&'n Node, bool)>) -> Self {
        let mut settings = Self::default();
        for (node, strict) in files {
            let is_connections = CONNECTIONS.iter().any(|(key, ..)| node.get(key).is_some());
            if let Some(values) = node.get("Values") {
                settings.values.push(values);
            } else if is_connections {
                settings.connections.push(node);
            } else if let Some(name) = node.get("workflow").and_then(Node::as_str) {
                settings.workflow = Some(name);
            } else {
                let values = node.get_any_case("parameters").unwrap_or(node);
                settings.parameters.push((values, strict));
            }
        }
        settings
    }

    /// Returns the value of a parameter from the first file that has one.
    pub fn parameter(&self, name: &str) -> Option<&'n Node> {
        let mut files = self.parameters.iter();
        files.find_map(|(values, _)| values.get_any_case(name)?.get_any_case("value"))
    }

    /// Returns the target of each connection, by the connection's name in lower case.
    pub fn connection_targets(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for node in &self.connections {
            for (part, inside, _) in CONNECTIONS {
                let entries = node.get(part).and_then(Node::entries);
                for entry in entries.unwrap_or_default() {
                    let led = entry.value.get_any_case(inside);
                    let id = led.and_then(|led| led.get_any_case("id").unwrap_or(led).as_str());
                    found.extend(id.map(|id| (entry.key.to_lowercase(), last_path_segment(id))));
                }
            }
        }
        found
    }

    /// Returns the names of the connections of each kind. Without a connections file, the map is empty.
    pub fn connections(&self) -> BTreeMap<ConnectionKind, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for node in &self.connections {
            for (part, _, kind) in CONNECTIONS {
                let entries = node.get(part).and_then(Node::entries).unwrap_or_default();
                let entries = entries
                    .iter()
                    .filter(|entry| entry.value.entries().is_some());
                let names = entries.map(|entry| entry.key.to_lowercase());
                let known: &mut BTreeSet<String> = found.entry(kind).or_default();
                known.extend(names);
            }
        }
        found
    }

    fn setting(&self, name: &str) -> Option<&'n str> {
        let mut values = self.values.iter();
        values.find_map(|values| values.get_any_case(name)?.as_str())
    }
}

/// Reduces a connections file to the target of each connection, so that nothing else of the file is stored.
pub(crate) fn connections_only(node: &Node) -> Value {
    let parts = CONNECTIONS.iter().filter_map(|(part, inside, _)| {
        let entries = node.get(part)?.entries()?.iter();
        let connections = entries.filter_map(|entry| {
            // A connection that is not a map is left out. A connection without a known target stays, with an empty
            // target.
            entry.value.entries()?;
            let led = entry.value.get_any_case(inside);
            let id = led.and_then(|led| led.get_any_case("id").unwrap_or(led).as_str());
            let id = id.map(|id| Value::from_pairs([("id", Value::text(id))]));
            let id = id.map(|id| (*inside, id));
            Some((entry.key.as_str(), Value::from_pairs(id)))
        });
        Some((*part, Value::from_pairs(connections)))
    });
    Value::from_pairs(parts)
}

/// Returns the last part of an id: `office365` of `/…/managedApis/office365`.
pub(crate) fn last_path_segment(id: &str) -> String {
    let id = id.trim_end_matches(['/', ']', ')', '\'', '"']);
    id.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Adds the names of the app settings that a text reads to `found`.
pub(crate) fn settings_in(text: &str, found: &mut BTreeSet<String>) {
    let mut rest = text;
    while let Some((_, call)) = split_call(rest) {
        if let Some((name, _)) = argument(call) {
            found.insert(name.to_owned());
        }
        rest = call;
    }
}

/// Splits a text at the first call that reads an app setting.
/// Returns the text before the call, and the text after the call's opening bracket.
fn split_call(text: &str) -> Option<(&str, &str)> {
    let at = text.to_ascii_lowercase().find(CALL)?;
    Some((text.get(..at)?, text.get(at + CALL.len()..)?))
}

/// Returns the name in the brackets of a call, and the text after the closing bracket.
fn argument(call: &str) -> Option<(&str, &str)> {
    let (name, rest) = call.trim_start().strip_prefix('\'')?.split_once('\'')?;
    Some((name, rest.trim_start().strip_prefix(')')?))
}

/// Returns the offsets of the calls that read app settings in the expressions of a text. The expression is the whole
/// text after a single `@`, or each part `@{…}`. A text literal in an expression contains no calls.
fn calls_in_expressions(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    if text.starts_with("@@") || split_call(text).is_none() {
        return found;
    }
    let text = text.to_ascii_lowercase();
    let is_whole = text.starts_with('@') && !text.starts_with("@{");
    let (mut is_inside, mut is_literal) = (is_whole, false);
    for (at, letter) in text.char_indices() {
        let (before, rest) = text.split_at(at);
        match letter {
            '\'' if is_inside => is_literal = !is_literal,
            '}' if !is_literal => is_inside = is_whole,
            '{' if !is_inside => is_inside = before.ends_with('@') && !before.ends_with("@@"),
            'a' if is_inside && !is_literal && rest.starts_with(CALL) => found.push(at),
            _ => {}
        }
    }
    found
}

impl<F: Format> ActionReader<'_, F> {
    /// Replaces the calls that read app settings by the values of the settings.
    /// In a definition, a value becomes a string literal of an expression. In the value of a parameter (`bare`), the
    /// expression is then computed.
    pub(crate) fn with_settings(
        &mut self,
        node: &Node,
        settings: &Settings<'_>,
        bare: bool,
    ) -> Node {
        node.map_texts(&mut |text, span| {
            let calls = calls_in_expressions(&text.text);
            let calls = Some(calls).filter(|calls| !calls.is_empty())?;
            Some(self.text_with_settings(&text.text, &calls, span, settings, bare))
        })
    }

    fn text_with_settings(
        &mut self,
        text: &str,
        calls: &[usize],
        span: Span,
        settings: &Settings<'_>,
        bare: bool,
    ) -> Node {
        let mut out = String::new();
        let mut end = 0;
        for &at in calls {
            let call = text.get(at + CALL.len()..);
            let Some((name, after)) = call.and_then(argument) else {
                continue;
            };
            let value = settings.setting(name).unwrap_or_else(|| {
                self.missing_setting(name, span);
                ""
            });
            out.push_str(text.get(end..at).unwrap_or_default());
            out.push_str(&format!("'{}'", value.replace('\'', "''")));
            end = text.len() - after.len();
        }
        out.push_str(text.get(end..).unwrap_or_default());
        let value = match bare {
            true => self.computed_value(&out, span),
            false => Value::text(out),
        };
        Node::made(value, span)
    }

    /// Computes the value of a parameter from a text whose app settings are replaced.
    fn computed_value(&mut self, text: &str, span: Span) -> Value {
        let mode = Value::from_pairs([("mode", Value::text("azure"))]);
        let none = Context::new(&mode, DateTime::UNIX_EPOCH, 0).ok();
        let computed = self.parse(text).map_err(|error| error.message);
        let computed = computed.and_then(|template| match (template.as_constant(), none) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(context)) => template.eval(&context).map_err(|error| error.message),
            (None, None) => Ok(Value::Null),
        });
        computed.unwrap_or_else(|why| {
            let what = format!("the value of the parameter cannot be computed: {why}");
            let hint = "it can read app settings, and nothing else";
            self.error("bad-expression", span, what, hint);
            Value::Null
        })
    }

    fn missing_setting(&mut self, name: &str, span: Span) {
        if self.missing_inputs.settings.contains_key(name) {
            return;
        }
        self.missing_inputs
            .settings
            .insert(name.to_owned(), Value::text(name));
        let what = format!("the app setting `{name}` has no value");
        let hint = format!(
            "set it in local.settings.json, in a file of --app-settings, or allow it from the \
             environment with --allow-env {name}"
        );
        self.error("missing-setting", span, what, hint);
    }
}
