//! `shell`: a text that `sh` executes, or a program with its arguments.

use super::action_fields::{ActionFields, Body};
use super::{ActionReader, Format};
use crate::builder::text;
use crate::checks;
use windlass_expression::{Template, Value};
use windlass_model::model::RATE;
use windlass_source::source::Kind;

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn shell(&mut self, act: &mut ActionFields<'_>) -> Body {
        let hint = "either run: \"text for sh\", or command: [program, argument]";
        let mut inputs = self.inputs(act, hint);
        self.in_shell = true;
        let run = inputs.pass(act, self, "run");
        let command = inputs.pass(act, self, "command");
        match (run, command) {
            (None, None) => self.missing_input(act, "run", hint),
            (Some(_), Some(command)) => {
                let what = "`shell` has either `run` or `command`";
                self.error("conflict", command.key_span, what, hint);
            }
            (Some(run), None) => {
                let template = match run.value.as_str() {
                    Some(_) => self.template(&run.value),
                    None => {
                        self.wrong_type(&run.value, "`run`", "text", hint);
                        Template::constant(Value::Null)
                    }
                };
                if template.as_constant().is_none() {
                    let what = "data is rendered into the text of a command";
                    let hint = checks::DATA_IN_COMMAND;
                    self.warning("data-in-command", run.value.span, what, hint);
                }
            }
            (None, Some(command)) => {
                let words = matches!(&command.value.kind, Kind::Array(items) if !items.is_empty());
                if !words && !self.is_computed(&command.value) {
                    let hint = checks::COMMAND_IS_LIST;
                    self.wrong_type(&command.value, "`command`", "a list", hint);
                }
            }
        }
        self.in_shell = false;
        for key in ["env", "files", "cwd", "stdin"] {
            let Some(entry) = inputs.pass(act, self, key) else {
                continue;
            };
            let is_map = matches!(entry.value.kind, Kind::Object(_) | Kind::Null);
            if matches!(key, "env" | "files") && !is_map && !self.is_computed(&entry.value) {
                let hint = format!("for example {key}: {{ NAME: value }}");
                self.wrong_type(&entry.value, &format!("`{key}`"), "a map", hint);
            }
        }
        if let Some(entry) = inputs.pass(act, self, "check") {
            let hint = "check: false accepts every exit code, check: [1] only this one";
            self.check_accepted(entry, 1..=255, hint);
        }
        if F::CONVENTIONS.has_extended_requests
            && let Some(rate) = inputs.get(act, self, RATE)
        {
            let name = self.rate_name(&rate.value).map(|name| (text(RATE), name));
            inputs.members.extend(name);
        }
        let timeout = self.attempt_timeout(act, &mut inputs);
        let inputs = inputs.finish(self);
        Self::call("shell", inputs, timeout).into()
    }
}
