//! Nodes with an effect or a constant value: agent, shell, function, http, constant.

use super::Canvas;
use super::node::{Body, NodeReader, open};
use super::tree::{Agent, NodeKind, Ports, Shell, Socket, Text};
use crate::checks;
use crate::fields::Fields;
use crate::reader::keep;
use windlass_expression::{Extract, Object, PortKind, Template, Value};
use windlass_source::source::{Entry, Kind};

/// The runner of an agent that calls an OpenAI-compatible endpoint.
pub(super) const OPENAI: &str = "openai";
/// The output with the session of an agent (the id of its conversation).
pub(super) const SESSION: &str = "session_id";
/// The port for the session, by its name in graph editors.
pub(super) const SESSION_ID: &str = "sessionId";
/// The output with the exit code of a shell node. If anything reads it, a command that fails does not fail the node.
pub(super) const EXIT_CODE: &str = "exitCode";

const PROMPT: &str = "prompt: \"Review this code: {{ coder.code }}\"";
const SCRIPT: &str = "script: \"cargo test\", or commands: [\"cargo build\", \"cargo test\"]";
/// Inputs of a call of an endpoint in addition to its prompt, each with the name that the executor has for it.
const OPTIONS: [(&str, &str); 16] = [
    ("model", "model"),
    ("system", "system"),
    ("baseUrl", "base_url"),
    ("base_url", "base_url"),
    ("temperature", "temperature"),
    ("maxTokens", "max_tokens"),
    ("max_tokens", "max_tokens"),
    ("apiKey", "api_key"),
    ("api_key", "api_key"),
    ("apiKeyFile", "api_key_file"),
    ("api_key_file", "api_key_file"),
    ("maxRetries", "max_retries"),
    ("max_retries", "max_retries"),
    ("responseFormat", "response_format"),
    ("response_format", "response_format"),
    ("provider", "provider"),
];
/// Inputs of a call over HTTP, each with the name that the executor has for it.
const HTTP: [(&str, &str); 9] = [
    ("method", "method"),
    ("url", "uri"),
    ("uri", "uri"),
    ("headers", "headers"),
    ("queries", "queries"),
    ("query", "queries"),
    ("body", "body"),
    ("authentication", "authentication"),
    ("tls", "tls"),
];
const HTTP_OUTPUTS: [(&str, PortKind); 3] = [
    ("statusCode", PortKind::Number),
    ("headers", PortKind::Json),
    ("body", PortKind::Any),
];
const SHELL_OUTPUTS: [(&str, PortKind); 3] = [
    ("stdout", PortKind::String),
    ("stderr", PortKind::String),
    (EXIT_CODE, PortKind::Number),
];

/// Syntax of JavaScript that Lua does not have.
const JAVASCRIPT: [&str; 9] = [
    "=>",
    "===",
    "!==",
    "const ",
    "let ",
    "&&",
    "||",
    "?.",
    ": inputs.",
];

impl Canvas<'_> {
    pub(super) fn agent(&mut self, node: &mut NodeReader<'_>) -> Body {
        let hint = "runner: openai, or the name of a command under `runners`";
        let runner = node.data.required(self, "runner", node.span, hint);
        let runner = runner.and_then(|entry| self.text(entry, hint));
        let prompt = node.data.required(self, "prompt", node.span, PROMPT);
        let prompt = prompt.and_then(|entry| self.template_text(entry, PROMPT));
        let session = node.data.non_null(self, "session");
        let asks = session.and_then(|entry| self.flag(entry, "session: true"));
        let asks = asks.unwrap_or_default();
        let mut options = Vec::new();
        if runner == Some(OPENAI) {
            if let Some(entry) = session.filter(|_| asks) {
                let what = format!(
                    "`{}` has no session: an endpoint does not remember earlier calls",
                    node.id
                );
                let hint = "sessions are those of runners; leave `session` out";
                self.error("no-session", entry.value.span, what, hint);
            }
            options = self.renamed(&mut node.data, &OPTIONS);
        }
        let mut outputs = node
            .outputs
            .take()
            .unwrap_or_else(|| vec![self.built_in("response", PortKind::Any, &node.id, node.span)]);
        if asks {
            self.add_missing_outputs(&mut outputs, &[(SESSION, PortKind::Any)], node);
        }
        self.make_body(node, Ports::of(outputs), |_| {
            Some(NodeKind::Agent(Agent {
                runner: runner?.to_owned(),
                prompt: prompt?,
                session: asks,
                options,
            }))
        })
    }

    pub(super) fn shell(&mut self, node: &mut NodeReader<'_>) -> Body {
        let script = node.data.get("script");
        let commands = node.data.get("commands");
        let cwd = node.data.non_null(self, "cwd");
        let cwd = cwd.or_else(|| node.data.non_null(self, "path"));
        let cwd = cwd.and_then(|entry| self.template_text(entry, "cwd: build"));
        let fails = node.data.non_null(self, "failOnError");
        let fails = fails.and_then(|entry| self.flag(entry, "failOnError: true"));
        let continues = node.data.non_null(self, "continueOnFailure");
        let fails = fails.or(continues
            .and_then(|entry| self.flag(entry, "continueOnFailure: true"))
            .map(|continues| !continues));
        let script = match (script, commands) {
            (Some(script), None) => self.template_text(script, SCRIPT),
            (None, Some(commands)) => self.commands(commands),
            (Some(_), Some(commands)) => {
                let what = format!("`{}` has either `script` or `commands`", node.id);
                self.error("conflict", commands.key_span, what, SCRIPT);
                None
            }
            (None, None) => {
                node.data.required(self, "script", node.span, SCRIPT);
                None
            }
        };
        let mut outputs = node.outputs.take().unwrap_or_default();
        // If there is an output `stdout`, the output `output` is the whole printed text.
        let all = |socket: &&mut Socket| *socket.port.name == *"output" && socket.extract.is_none();
        let several = outputs.iter().any(|socket| *socket.port.name == *"stdout");
        if let Some(output) = outputs.iter_mut().find(all).filter(|_| several) {
            output.extract = Some(Extract::Full);
        }
        self.add_missing_outputs(&mut outputs, &SHELL_OUTPUTS, node);
        self.make_body(node, Ports::of(outputs), |_| {
            Some(NodeKind::Shell(Shell {
                script: script?,
                cwd,
                fails,
            }))
        })
    }

    /// Joins commands to a script. Each command runs only if all commands before it have succeeded.
    fn commands(&mut self, entry: &Entry) -> Option<Text> {
        let items = match &entry.value.kind {
            Kind::Array(items) if !items.is_empty() => items,
            _ => {
                self.wrong_type(
                    &entry.value,
                    "`commands`",
                    "a list of at least one command",
                    SCRIPT,
                );
                return None;
            }
        };
        let mut text = Text {
            template: Template::constant(Value::Null),
            mentions: Vec::new(),
        };
        let mut lines = vec![Template::constant("set -e".into())];
        for item in items {
            if item.as_str().is_none() {
                self.wrong_type(item, "a command", "text", SCRIPT);
                continue;
            }
            let line = self.rendered(item);
            lines.push(line.template);
            text.mentions.extend(line.mentions);
        }
        let end = Template::constant("\n".into());
        text.template = Template::join(Template::array(lines), end);
        Some(text)
    }

    /// Refuses JavaScript, for which Windlass has no interpreter.
    /// Graph editors write JavaScript without `language`, so JavaScript is also recognised by its syntax.
    fn is_javascript(&mut self, node: &mut NodeReader<'_>) -> bool {
        const NAMES: [&str; 4] = ["javascript", "js", "typescript", "ts"];
        let code = node.data.get("code");
        let file = node.data.get("file");
        let language = node
            .data
            .get("language")
            .and_then(|entry| entry.value.as_str());
        let code = code.and_then(|entry| Some((entry.value.as_str()?, entry.value.span)));
        let span = match (language, code, file) {
            (Some(language), code, _) => {
                let named = NAMES.iter().any(|name| name.eq_ignore_ascii_case(language));
                named.then(|| code.map_or(node.span, |(_, span)| span))
            }
            (None, Some((code, span)), _) => JAVASCRIPT
                .iter()
                .any(|mark| code.contains(mark))
                .then_some(span),
            (None, None, Some(file)) => Some(file.value.span),
            (None, None, None) => None,
        };
        if let Some(span) = span {
            let what = format!(
                "`{}` is written in JavaScript, which is not run here",
                node.id
            );
            let hint = "write it in Lua, or with language: python in Python";
            self.error("no-javascript", span, what, hint);
            node.data.allow(&["code", "file", "language"]);
        }
        span.is_some()
    }

    pub(super) fn function(&mut self, node: &mut NodeReader<'_>) -> Body {
        if self.is_javascript(node) {
            return Body {
                spec: NodeKind::Unknown,
                inputs: open(node.inputs.take()),
                outputs: open(node.outputs.take()),
            };
        }
        let languages = ["lua", "python"].map(|word| (word, word));
        let language = match node.data.non_null(self, "language") {
            None => Some("lua"),
            Some(entry) => self.choice(entry, &languages, |text| {
                format!("a function is not written in `{text}`")
            }),
        };
        let hint = "code: return { sum = inputs.a + inputs.b }";
        let code = node.data.required(self, "code", node.span, hint);
        let code = code.and_then(|entry| Some((entry, self.text(entry, hint)?)));
        if let (Some(language), Some((entry, text))) = (language, code) {
            checks::data_in_code(self, language, "inputs", &entry.value, false);
            let script = self.script(language, &entry.value, text);
            // A file that is used by two nodes is read twice, so the script may already be recorded.
            keep(&mut self.whole.scripts, script);
        }
        let outputs = node.outputs.take();
        let outputs = Ports {
            open: outputs.is_none(),
            list: outputs.unwrap_or_default(),
        };
        self.make_body(node, outputs, |_| {
            Some(NodeKind::Function {
                language: language?,
                code: code?.1.to_owned(),
            })
        })
    }

    pub(super) fn http(&mut self, node: &mut NodeReader<'_>) -> Body {
        let hint = "for example url: \"https://example.com/items/{{ id }}\"";
        let inputs = self.renamed(&mut node.data, &HTTP);
        let url = inputs.iter().any(|(key, _)| *key == "uri");
        if !url {
            node.data.required(self, "url", node.span, hint);
        }
        let mut outputs = node.outputs.take().unwrap_or_default();
        self.add_missing_outputs(&mut outputs, &HTTP_OUTPUTS, node);
        self.make_body(node, Ports::of(outputs), |_| {
            url.then(|| NodeKind::Http(inputs))
        })
    }

    /// Reads a constant.
    /// If the node declares one output, the constant is its value. Several outputs are members of the constant, which
    /// is a map. Without declared outputs, the output is `value`.
    pub(super) fn constant(&mut self, node: &mut NodeReader<'_>) -> Body {
        let hint = "for example value: 3";
        let entry = node.data.get("value");
        if entry.is_none() {
            node.data.required(self, "value", node.span, hint);
        }
        let outputs = node
            .outputs
            .take()
            .unwrap_or_else(|| vec![self.built_in("value", PortKind::Any, &node.id, node.span)]);
        let mut given = Object::new();
        if let Some(entry) = entry {
            let value = entry.value.to_value();
            let several = outputs.len() > 1;
            for socket in &outputs {
                let own = match several {
                    true => value.get(&socket.port.name).cloned().unwrap_or_default(),
                    false => value.clone(),
                };
                match socket.port.accept(&own) {
                    Ok(own) => {
                        given.insert(socket.port.name.clone(), own);
                    }
                    Err(mistake) => {
                        let hint = "change the value, or the type of the output";
                        self.error("type-mismatch", entry.value.span, mistake, hint);
                    }
                }
            }
        }
        self.make_body(node, Ports::of(outputs), |_| {
            Some(NodeKind::Constant(Value::object(given)))
        })
    }

    // ── parts ───────────────────────────────────────────────────────────────────────────────

    /// Reads a text that is rendered.
    pub(super) fn template_text(&mut self, entry: &Entry, hint: &str) -> Option<Text> {
        self.text(entry, hint)?;
        Some(self.rendered(&entry.value))
    }

    /// Reads values that are rendered as templates. Returns them with the names that the executor has for them.
    fn renamed(
        &mut self,
        data: &mut Fields<'_>,
        names: &[(&'static str, &'static str)],
    ) -> Vec<(&'static str, Text)> {
        let mut found: Vec<(&'static str, Text)> = Vec::new();
        for (key, name) in names {
            let Some(entry) = data.non_null(self, key) else {
                continue;
            };
            if found.iter().any(|(known, _)| known == name) {
                let what = format!("`{key}` repeats what another key says");
                let hint = "leave one of them out";
                self.error("conflict", entry.key_span, what, hint);
                continue;
            }
            if *name == "authentication" {
                checks::authentication(self, &entry.value);
            }
            if *name == "tls" {
                checks::tls(self, &entry.value);
            }
            found.push((name, self.rendered(&entry.value)));
        }
        found
    }

    /// Adds the outputs that all nodes of a type have and this node does not declare.
    fn add_missing_outputs(
        &self,
        outputs: &mut Vec<Socket>,
        names: &[(&str, PortKind)],
        node: &NodeReader<'_>,
    ) {
        for (name, kind) in names {
            if !outputs.iter().any(|socket| *socket.port.name == **name) {
                outputs.push(self.built_in(name, *kind, &node.id, node.span));
            }
        }
    }

    /// Makes the body of a node. If a part of it could not be read, it is [`NodeKind::Unknown`] with open ports.
    fn make_body(
        &mut self,
        node: &mut NodeReader<'_>,
        outputs: Ports,
        spec: impl FnOnce(&mut Self) -> Option<NodeKind>,
    ) -> Body {
        let inputs = node.inputs.take();
        match spec(self) {
            Some(spec) => Body {
                spec,
                inputs: Ports::of(inputs.unwrap_or_default()),
                outputs,
            },
            None => Body {
                spec: NodeKind::Unknown,
                inputs: open(inputs),
                outputs: open(Some(outputs.list)),
            },
        }
    }
}
