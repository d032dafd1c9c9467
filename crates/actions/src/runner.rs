//! `runner`: runs a configured program with the prompt on standard input and reads the answer from standard output
//! (docs/reference/canvas.md). This module never interprets the answer. The prompt and the session never reach a shell
//! as code.

use super::handler::unknown;
use super::handler::{Handlers, Target};
use super::inputs::{Inputs, invalid};
use super::process::Spec;
use std::borrow::Cow;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request};

/// The name of the placeholder in a command's arguments. The id of the conversation's session replaces it.
const SESSION: &str = "session_id";

impl Handlers {
    /// Makes one call. Returns `{content}`, the answer without the line ends at its end.
    pub(super) async fn runner(&self, request: &Request) -> Result<Value, Fault> {
        let inputs = Inputs::of(request)?;
        let name = inputs.required_text("runnerType")?;
        let prompt = match inputs.get("prompt") {
            None => return Err(invalid("`prompt` is missing")),
            Some(Value::String(text)) => Cow::Borrowed(&***text),
            Some(other) => Cow::Owned(other.to_json()),
        };
        let session = session(inputs)?;
        let content = match self.target(name) {
            None => return Err(unknown("runner", name, self.names())),
            Some(Target::Command(argv)) => {
                let mut spec = Spec::new(with_session(argv, session.as_deref()), request);
                spec.stdin = Some(prompt.as_bytes().to_vec());
                let finished = self.run(name, spec).await?;
                Value::text(finished.stdout.trim_end_matches(['\n', '\r']))
            }
            _ => {
                let session = session.as_deref().map_or(Value::Null, Value::text);
                let input =
                    Value::from_pairs([("prompt", Value::text(&*prompt)), (SESSION, session)]);
                self.ask(name, input, request).await?
            }
        };
        Ok(Value::from_pairs([("content", content)]))
    }
}

/// Returns the id of the session to continue. Another program made the id, so an id that a command could read as an
/// option is refused.
fn session(inputs: Inputs<'_>) -> Result<Option<Cow<'_, str>>, Fault> {
    let session = match inputs.get(SESSION) {
        None => return Ok(None),
        Some(Value::String(text)) => Cow::Borrowed(&***text),
        Some(other) => Cow::Owned(other.to_json()),
    };
    if session.starts_with('-') || session.contains('\0') {
        let message = format!("a session cannot be called {session:?}");
        return Err(invalid(message));
    }
    Ok(Some(session).filter(|session| !session.is_empty()))
}

/// Returns the arguments of a command in which the session's id replaces `{{ session_id }}`. Without a session, an
/// argument with the placeholder is omitted. If such an argument is only the placeholder, the argument before it (the
/// option) is omitted, too.
fn with_session(argv: &[String], session: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = Vec::with_capacity(argv.len());
    for word in argv {
        match (placeholder(word), session) {
            (None, _) => words.push(word.clone()),
            (Some((before, after)), Some(session)) => {
                words.push(format!("{before}{session}{after}"));
            }
            (Some((before, after)), None) => {
                let whole = before.is_empty() && after.is_empty();
                // Do not remove the first word, which is the program.
                if whole
                    && words.len() > 1
                    && words.last().is_some_and(|word| word.starts_with('-'))
                {
                    words.pop();
                }
            }
        }
    }
    words
}

/// Splits an argument into the text before and after `{{ session_id }}`.
fn placeholder(word: &str) -> Option<(&str, &str)> {
    let (before, rest) = word.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    (name.trim() == SESSION).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::with_session;

    fn words(argv: &[&str], session: Option<&str>) -> Vec<String> {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        with_session(&argv, session)
    }

    #[test]
    fn a_session_is_a_word_or_a_part_of_one() {
        let argv = ["agent", "-p", "--resume", "{{ session_id }}", "--last"];
        assert_eq!(
            words(&argv, Some("s 1")),
            ["agent", "-p", "--resume", "s 1", "--last"]
        );
        assert_eq!(words(&argv, None), ["agent", "-p", "--last"]);
        let argv = ["agent", "--resume={{session_id}}", "{{ other }}"];
        assert_eq!(
            words(&argv, Some("s")),
            ["agent", "--resume=s", "{{ other }}"]
        );
        assert_eq!(words(&argv, None), ["agent", "{{ other }}"]);
        assert_eq!(words(&["agent", "{{ session_id }}"], None), ["agent"]);
    }
}
