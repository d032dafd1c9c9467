//! `env`: which variables of the environment a file reads, and which of them are keys. Reading them
//! is the engine's part (docs/reference/tea.md).
//!
//! A run stores the variables that it read when it began, so that they are the same when it resumes;
//! but a secret is in no checkpoint, log, dump or error. So a variable that is named like a secret,
//! or is used as one anywhere in the file, is a secret: only the inputs of an action may contain it.

use super::reader::{Mention, Reader};
use std::collections::BTreeSet;
use windlass_expression::{Reference, Syntax};
use windlass_model::hir::EnvironmentRead;
use windlass_model::model::Name;
use windlass_source::source::{Kind, Node};
use windlass_value::words;

/// Fields whose values are keys, and those that hold them.
const FIELDS: [&str; 14] = words! {
    access_token api_key apikey auth authentication authorization cookie cookies credentials headers
    password private_key secret token
};
/// Words in the names of variables that are keys: `OPENAI_API_KEY`, `GITHUB_TOKEN`.
const WORDS: [&str; 14] = words! {
    APIKEY AUTH COOKIE CREDENTIAL CREDENTIALS DSN KEY KEYS PASS PASSPHRASE PASSWD PASSWORD SECRET
    TOKEN
};

/// The variables that a file reads, each once.
pub(super) fn reads(
    reader: &mut Reader<'_>,
    mentions: &[Mention],
    workflow: &Node,
) -> Vec<EnvironmentRead> {
    let mut used_as_keys = BTreeSet::new();
    keys(reader, workflow, false, &mut used_as_keys);
    let mut reads: Vec<EnvironmentRead> = Vec::new();
    for mention in mentions {
        let Reference::Environment(name) = &mention.reference else {
            continue;
        };
        if name.is_empty() {
            let what = "this does not name the environment variable that it reads";
            let hint = match reader.syntax {
                Syntax::Jinja | Syntax::Graph => {
                    "write its name: env.NAME, env['NAME'] or env.get('NAME', 'else')"
                }
                Syntax::Loom | Syntax::Azure => "write its name itself: env('NAME')",
            };
            reader.error("computed-env", mention.span, what, hint);
        } else if !reads.iter().any(|read| *read.name == **name) {
            reads.push(EnvironmentRead {
                secret: is_key(name) || used_as_keys.contains(name),
                name: Name::from(name.as_str()),
                span: mention.span,
            });
        }
    }
    reads
}

/// Whether a variable is called a key.
fn is_key(name: &str) -> bool {
    let upper = name.to_uppercase();
    let mut words = upper.split('_');
    words.any(|word| WORDS.contains(&word))
}

/// The variables in fields that hold keys.
fn keys(reader: &Reader<'_>, node: &Node, in_key: bool, found: &mut BTreeSet<String>) {
    match &node.kind {
        Kind::String(text) if in_key && text.text.contains("env") => {
            let template = reader.parse(&text.text);
            let references = template.map(|template| template.references());
            // Text that is not a template is reported where it is read.
            found.extend(
                references.unwrap_or_default().into_iter().filter_map(
                    |reference| match reference {
                        Reference::Environment(name) => Some(name),
                        _ => None,
                    },
                ),
            );
        }
        Kind::Array(items) => {
            let each = |item| keys(reader, item, in_key, found);
            items.iter().for_each(each);
        }
        Kind::Object(entries) => {
            for entry in entries {
                let field = entry.key.to_lowercase().replace('-', "_");
                let in_key = in_key || FIELDS.contains(&&*field);
                keys(reader, &entry.value, in_key, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::is_key;

    #[test]
    fn keys_are_known_by_their_names() {
        for key in [
            "OPENAI_API_KEY",
            "github_token",
            "DB_PASSWORD",
            "APIKEY",
            "SENTRY_DSN",
        ] {
            assert!(is_key(key), "{key}");
        }
        for other in [
            "HOME",
            "PWD",
            "AUTHOR",
            "MONKEY",
            "KEYBOARD",
            "OPENAI_BASE_URL",
        ] {
            assert!(!is_key(other), "{other}");
        }
    }
}
