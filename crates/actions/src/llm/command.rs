//! A model that is a command: a list of arguments, a text for `sh`, or the name of a provider. A provider is defined in
//! `shell_providers`, or is one that The Edge Agent has (docs/reference/actions.md). The prompt replaces `{prompt}` in
//! the arguments. If no argument has `{prompt}`, the prompt is written to standard input.

use crate::inputs::{Inputs, invalid, mismatch, scalar, words};
use windlass_expression::{Object, Value};
use windlass_model::model::Fault;

/// Maximum size, in bytes, of a prompt in an argument. A longer prompt is written to standard input.
const MAX_ARGUMENT: usize = 100_000;
const PROMPT: &str = "{prompt}";
const FILE: &str = "{input_file}";

/// What messages call a list of words.
const LIST: &str = "a list of words";

/// The providers that The Edge Agent has, with their commands.
const KNOWN: [(&str, &[&str]); 6] = [
    (
        "claude",
        &[
            "claude",
            "-p",
            PROMPT,
            "--dangerously-skip-permissions",
            "--no-session-persistence",
        ],
    ),
    (
        "codex",
        &[
            "codex",
            "--yolo",
            "exec",
            "-c",
            "model=gpt-5.5",
            "-c",
            "model_reasoning_effort=xhigh",
            "-",
        ],
    ),
    ("gemini", &["gemini", "prompt"]),
    ("qwen", &["qwen"]),
    ("opencode", &["opencode", "-p", PROMPT, "-q"]),
    (
        "cursor",
        &["agent", "-p", PROMPT, "--output-format", "text"],
    ),
];

pub(super) struct Command {
    words: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// The name of the provider, if the command is one of a provider.
    pub(super) named: Option<String>,
}

impl Command {
    pub(super) fn read(command: &Value, from: Inputs<'_>) -> Result<Self, Fault> {
        let plain = |words| Self {
            words,
            env: Vec::new(),
            named: None,
        };
        match command {
            Value::Array(_) => Ok(plain(words("command", LIST, command)?)),
            Value::Object(_) => {
                let inner = Inputs::from_value("shell_provider", command)?;
                Self::configured(None, inner)
            }
            Value::String(text) => {
                let configured = from.get("shell_providers").and_then(|all| all.get(text));
                if let Some(config) = configured {
                    let config = Inputs::from_value("shell_providers", config)?;
                    return Self::configured(Some(text), config);
                }
                if let Some(arguments) = from.get("args") {
                    let arguments = words("args", LIST, arguments)?;
                    return Ok(plain([vec![text.to_string()], arguments].concat()));
                }
                let known = KNOWN.iter().find(|(name, _)| *name == text.as_str());
                Ok(match known {
                    Some((name, words)) => Self {
                        named: Some((*name).to_owned()),
                        ..plain(words.iter().map(|word| (*word).to_owned()).collect())
                    },
                    None => plain(vec!["sh".into(), "-c".into(), text.to_string()]),
                })
            }
            other => Err(mismatch("command", LIST, other)),
        }
    }

    /// Reads `{command, args, stdin_mode, env}`, the definition of a provider. In it, `${NAME}` is an environment
    /// variable.
    fn configured(name: Option<&str>, from: Inputs<'_>) -> Result<Self, Fault> {
        let program = match (from.text("command")?, name) {
            (Some(command), _) | (None, Some(command)) => expanded(command),
            (None, None) => return Err(invalid("`command` is missing")),
        };
        let arguments = from.get("args").map(|args| words("args", LIST, args));
        let arguments = arguments.transpose()?.unwrap_or_default();
        let arguments: Vec<String> = arguments.iter().map(|word| expanded(word)).collect();
        match from.text("stdin_mode")? {
            None | Some("pipe" | "file") => {}
            Some(other) => {
                let message = format!("`stdin_mode` must be pipe or file, not {other:?}");
                return Err(invalid(message));
            }
        }
        let empty = Object::new();
        let env = match from.get("env") {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(env)) => env,
            Some(other) => return Err(mismatch("env", "a map", other)),
        };
        let env = env.iter().map(|(name, value)| {
            let value = scalar("env", value)?.unwrap_or_default();
            Ok((name.to_string(), expanded(&value)))
        });
        // If the command has neither a provider's name nor arguments, it is a line for `sh`.
        let is_line = name.is_none() && arguments.is_empty();
        let words = match is_line {
            true => vec!["sh".into(), "-c".into(), program],
            false => [vec![program], arguments].concat(),
        };
        Ok(Self {
            words,
            env: env.collect::<Result<_, Fault>>()?,
            named: name.map(str::to_owned),
        })
    }

    /// Returns the arguments of the command, and its standard input.
    pub(super) fn with(&self, prompt: &str) -> (Vec<String>, Option<Vec<u8>>) {
        let wants = |word: &String| word.contains(PROMPT);
        let all = self.words.iter();
        if self.words.iter().any(wants) && prompt.len() <= MAX_ARGUMENT {
            return (all.map(|word| word.replace(PROMPT, prompt)).collect(), None);
        }
        // The prompt is on standard input. A command that reads it from a file (`{input_file}`) gets the path of
        // standard input.
        let words = all.filter(|word| !wants(word));
        let words = words.map(|word| word.replace(FILE, "/dev/stdin")).collect();
        (words, Some(prompt.as_bytes().to_vec()))
    }
}

/// Replaces `${NAME}` with the value of the environment variable. An unset variable is empty text.
fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        out.push_str(&std::env::var(name).unwrap_or_default());
        rest = behind;
    }
    out.push_str(rest);
    out
}
