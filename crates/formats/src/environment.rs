//! `env`: which environment variables a file reads, and which of them are secrets. The engine reads
//! their values (docs/reference/tea.md).
//!
//! A run stores the variables that it read at its start, so that they are the same when the run resumes. But a secret
//! must not be in a checkpoint, log, dump or error. So a variable counts as a secret if its name has a word for a
//! secret, or if it is used as a secret anywhere in the file. Only the inputs of an action may contain a secret.

use super::reader::{Mention, Reader};
use std::collections::BTreeSet;
use windlass_expression::{Reference, Syntax};
use windlass_model::hir::EnvironmentRead;
use windlass_model::model::Name;
use windlass_source::source::Node;
use windlass_value::words;

/// The fields whose values are secrets or contain secrets.
const FIELDS: [&str; 14] = words! {
    access_token api_key apikey auth authentication authorization cookie cookies credentials headers
    password private_key secret token
};
/// Words in the names of variables by which the variables count as secrets: `OPENAI_API_KEY`, `GITHUB_TOKEN`.
const WORDS: [&str; 14] = words! {
    APIKEY AUTH COOKIE CREDENTIAL CREDENTIALS DSN KEY KEYS PASS PASSPHRASE PASSWD PASSWORD SECRET
    TOKEN
};

/// Returns each environment variable that a file reads, once.
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
                Syntax::Jinja | Syntax::Canvas => {
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

/// Returns true if the name of a variable has a word for a secret.
fn is_key(name: &str) -> bool {
    let upper = name.to_uppercase();
    let mut words = upper.split('_');
    words.any(|word| WORDS.contains(&word))
}

/// Collects the variables that are read in fields for secrets. `in_key` is true inside of such a field.
fn keys(reader: &Reader<'_>, node: &Node, in_key: bool, found: &mut BTreeSet<String>) {
    if let Some(text) = node.as_str()
        && in_key
        && text.contains("env")
    {
        let template = reader.parse(text);
        // A text that is not a valid template is reported elsewhere, by the reader of its key.
        let references = template.map(|template| template.references());
        found.extend(
            references
                .unwrap_or_default()
                .into_iter()
                .filter_map(|reference| match reference {
                    Reference::Environment(name) => Some(name),
                    _ => None,
                }),
        );
    }
    for (key, child) in node.children() {
        let field = key.unwrap_or_default().to_lowercase().replace('-', "_");
        keys(reader, child, in_key || FIELDS.contains(&&*field), found);
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
