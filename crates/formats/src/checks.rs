//! Checks that several formats have.
//! They are about code into which data is rendered, and about the `authentication` and `tls` of HTTP calls. The
//! checks only report, and never change anything.

use super::plain_text::between;
use super::reader::{Reader, name_of};
use super::vocabulary::{Map, RequiredSets, authentication};
use windlass_expression::{Reference, Syntax, Template};
use windlass_model::model::{MODEL_PROVIDERS, MODEL_RETRIES};
use windlass_source::source::{Entry, Kind, Node};

/// Types in a Logic Apps definition whose keys are not checked here: a handler provides the token, or the call has no
/// credentials.
const OF_DESIGNERS: [&str; 3] = ["ManagedServiceIdentity", "ActiveDirectoryOAuth", "None"];

/// Further types in a Logic Apps definition that Windlass does not support.
const OF_AZURE: [&str; 1] = ["ClientCertificate"];

/// The hint for a `command` that is not a list.
pub(super) const COMMAND_IS_LIST: &str =
    "for example command: [cp, from.txt, to.txt]; text for sh is `run`";

/// The message for a command into which data is rendered.
pub(super) const DATA_IN_COMMAND: &str = "a value could be read as code: pass it through \
    env: { NAME: \"…\" } and write \"$NAME\", or use command: [program, argument]";

const MESSAGES: &str = "for example messages: [{ role: user, content: \"…\" }]";

/// Where data is written into code.
struct DataInCode {
    offset: usize,
    length: usize,
    /// The first named value that the text reads, if there is one.
    data: Option<Reference>,
}

/// Warns if data is written into code.
/// In some languages the text is a template (`is_template`), in others it stays unchanged. `given` is the name under
/// which the code can read the data instead.
pub(super) fn data_in_code(
    reader: &mut Reader<'_>,
    language: &str,
    given: &str,
    code: &Node,
    is_template: bool,
) {
    let text = code.as_str().unwrap_or_default();
    let found = pieces(reader, text).find(|found| {
        // If the text is not rendered, braces outside of a string literal are syntax of the language.
        is_template || (found.data.is_some() && is_quoted(text, found.offset))
    });
    let Some(found) = found else { return };
    let name = found.data.as_ref().and_then(name_of).unwrap_or("NAME");
    let given = match found.data {
        Some(Reference::Variable(_)) if reader.syntax == Syntax::Jinja => "variables",
        _ => given,
    };
    let read = match (language, &found.data) {
        ("python", Some(Reference::Environment(name))) => format!("os.environ.get(\"{name}\")"),
        ("python", _) => format!("{given}[\"{name}\"]"),
        ("lua", _) => format!("{given}.{name}"),
        _ => format!("state({name}, Value)"),
    };
    let (what, hint) = match is_template {
        true if matches!(found.data, Some(Reference::Secret(_))) => (
            "a secret is rendered into the text of code",
            String::from(
                "the secret could be read as code, and code cannot read it itself: pass it to a \
                 `shell` action through `env`",
            ),
        ),
        true => (
            "data is rendered into the text of code",
            format!("a value could be read as code: let the code read it itself, as {read}"),
        ),
        false => (
            "nothing is rendered in this code: this stays as it is",
            format!("let the code read the value itself, as {read}"),
        ),
    };
    let span = reader.place(code, found.offset, found.length);
    reader.warning("data-in-code", span, what, hint);
}

/// Finds the parts of a text between braces that a template would replace by data.
fn pieces(reader: &Reader<'_>, text: &str) -> impl Iterator<Item = DataInCode> {
    between(text, "{{", "}}")
        .map(|(offset, inside)| (offset, inside, "}}"))
        .chain(between(text, "{%", "%}").map(|(offset, inside)| (offset, inside, "%}")))
        .filter_map(|(offset, inside, end)| {
            let length = inside.len() + 2 * end.len();
            let piece = text.get(offset..offset + length)?;
            let references = match end {
                "}}" => Template::parse_cached(piece, Syntax::Jinja, &reader.templates)
                    .ok()?
                    .references(),
                // A part may begin a block whose end is in another part, so it cannot be parsed. It is recognised by
                // its keywords.
                _ => match piece.contains(" in ") || piece.contains("if ") {
                    true => vec![Reference::Anything],
                    false => Vec::new(),
                },
            };
            let is_named = |reference: &Reference| name_of(reference).is_some();
            (!references.is_empty()).then(|| DataInCode {
                offset,
                length,
                data: references.into_iter().find(is_named),
            })
        })
}

/// Returns true if a position in code is inside of a string literal on its line.
fn is_quoted(code: &str, offset: usize) -> bool {
    let before = code.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    ['"', '\''].iter().any(|quote| {
        let opened = line.matches(*quote).count() % 2 == 1;
        // In an f-string of Python, a doubled brace is an escaped brace, and not a template.
        let opening = line.rfind(*quote).and_then(|at| line.get(..at));
        opened && !opening.is_some_and(|code| code.ends_with(['f', 'F']))
    })
}

/// Reports an `authentication` that would make every call fail.
pub(super) fn authentication(reader: &mut Reader<'_>, node: &Node) {
    let hint = "for example authentication: { type: Bearer, token: \"${secret:API_TOKEN}\" }";
    let azure = reader.syntax == Syntax::Azure;
    let computed = |reader: &mut Reader<'_>, node: &Node| {
        let template = reader.parse(node.as_str().unwrap_or_default());
        template.is_ok_and(|template| template.as_constant().is_none())
    };
    if matches!(node.kind, Kind::Null) || computed(reader, node) {
        return;
    }
    let Some(mut fields) = reader.fields(node, "`authentication`", hint) else {
        return;
    };
    let Some(kind) = fields.required(reader, "type", node.span, hint) else {
        return;
    };
    if computed(reader, &kind.value) {
        return;
    }
    let word = kind.value.as_str().unwrap_or_default();
    let is = |known: &str| known.eq_ignore_ascii_case(word);
    if azure && OF_DESIGNERS.iter().any(|known| is(known)) {
        return;
    }
    if azure && OF_AZURE.iter().any(|known| is(known)) {
        let what = format!("authentication of type `{word}` is not supported");
        let hint = "the action fails at run time: use Basic or OAuth2, or set the certificate in PEM \
             under `tls`";
        return reader.warning("not-supported", kind.value.span, what, hint);
    }
    let known = authentication::TYPES.iter();
    let known: Vec<(&str, &Map)> = known.map(|case| (case.is, &case.then)).collect();
    let Some(map) = reader.choice(kind, &known, |word| {
        format!("`{word}` is not a valid type of authentication")
    }) else {
        return;
    };
    for key in map.keys.iter().copied().flatten() {
        match key.required {
            true => _ = fields.required(reader, key.name, node.span, hint),
            false => fields.allow(&[key.name]),
        }
    }
    if let RequiredSets::Any([[first], others @ ..]) = map.required_sets
        && !others
            .iter()
            .copied()
            .flatten()
            .any(|key| fields.get(key).is_some())
    {
        fields.required(reader, first, node.span, hint);
    }
    fields.finish(reader);
}

/// The keys of a question to a model that have its text.
pub(super) const QUESTION_KEYS: [&str; 2] = ["prompt", "messages"];

/// Returns true if an input has the text of a question to a model. Null does not count as a text.
pub(super) fn is_question(entry: &Entry) -> bool {
    QUESTION_KEYS.contains(&&*entry.key) && !matches!(entry.value.kind, Kind::Null)
}

/// Reports a question to a model that has both a `prompt` and `messages`. A value that is computed may be null, so the
/// run reports it.
pub(super) fn single_question(reader: &mut Reader<'_>, entries: &[&Entry]) {
    let is_computed = |entry: &Entry| {
        let text = entry.value.as_str().map(str::trim);
        text.is_some_and(|text| {
            text.starts_with('@') || text.starts_with("{{") && text.ends_with("}}")
        })
    };
    let mut given = entries
        .iter()
        .filter(|entry| is_question(entry) && !is_computed(entry));
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let what = format!("`{}` and `{}` exclude each other", first.key, second.key);
        let hint = "put the prompt into `messages`: { role: user, content: \"…\" }";
        reader.error("conflict", second.key_span, what, hint);
    }
}

/// Reports an input of a question to a model that would make every question fail.
pub(super) fn model_input(reader: &mut Reader<'_>, entry: &Entry) {
    let node = &entry.value;
    let text = node.as_str().map(str::trim);
    let is_constant = |text: &str| {
        let template = reader.parse(text);
        // A secret of the workflow is not a template.
        !text.contains("${") && template.is_ok_and(|template| template.as_constant().is_some())
    };
    if matches!(node.kind, Kind::Null) || !text.is_none_or(is_constant) {
        return;
    }
    let what = format!("`{}`", entry.key);
    match entry.key.as_str() {
        "provider" => {
            let known = MODEL_PROVIDERS.map(|provider| (provider, ()));
            reader.choice(entry, &known, |word| format!("`{word}` is not a provider"));
        }
        "base_url" | "api_base" => {
            let begins = |scheme: &str| {
                let start = text.and_then(|text| text.get(..scheme.len()));
                start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            };
            if !begins("http://") && !begins("https://") {
                let hint = "for example base_url: \"http://localhost:8000/v1\"";
                let what = format!("{what} must begin with http:// or https://");
                reader.error("bad-value", node.span, what, hint);
            }
        }
        "messages" => match &node.kind {
            Kind::Array(messages) if messages.is_empty() => {
                reader.error("bad-value", node.span, "`messages` is empty", MESSAGES);
            }
            Kind::Array(_) => {}
            _ => reader.wrong_type(node, &what, "a list of messages", MESSAGES),
        },
        "temperature" => match &node.kind {
            Kind::Int(_) | Kind::Float(_) => {}
            _ if text.is_some_and(|text| text.parse::<f64>().is_ok()) => {}
            _ => reader.wrong_type(node, &what, "a number", "for example temperature: 0.7"),
        },
        "timeout" => {
            let seconds = match node.kind {
                Kind::Int(_) | Kind::Float(_) => node.to_value().to_text().parse().ok(),
                _ => text.and_then(|text| text.parse().ok()),
            };
            if !seconds.is_some_and(|seconds: f64| seconds >= 0.0) {
                let wanted = "a number of seconds from 0";
                reader.wrong_type(node, &what, wanted, "for example timeout: 30");
            }
        }
        "max_retries" => {
            let written = match node.kind {
                Kind::Int(number) => Some(number),
                _ => text.and_then(|text| text.parse().ok()),
            };
            if !written.is_some_and(|number| MODEL_RETRIES.contains(&number)) {
                let (first, last) = (MODEL_RETRIES.start(), MODEL_RETRIES.end());
                let wanted = format!("a whole number from {first} to {last}");
                reader.wrong_type(node, &what, &wanted, "for example max_retries: 3");
            }
        }
        _ => {}
    }
}

/// Reports a `tls` that would make every call fail.
pub(super) fn tls(reader: &mut Reader<'_>, node: &Node) {
    let hint = "for example tls: { ca: \"${secret:ca.pem}\" }, or certificate and key, each in PEM";
    if matches!(node.kind, Kind::Null) || reader.is_computed(node) {
        return;
    }
    let Some(mut fields) = reader.fields(node, "`tls`", hint) else {
        return;
    };
    fields.get("ca");
    let alone = match (fields.get("certificate"), fields.get("key")) {
        (Some(certificate), None) => Some((certificate, "key")),
        (None, Some(key)) => Some((key, "certificate")),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some((there, lacking)) = alone {
        let what = format!("`tls` needs `{lacking}` as well");
        reader.error("missing-key", there.key_span, what, hint);
    }
    fields.finish(reader);
}
