//! Nodes with `uses` or `action`.
//! This module finds the executor of the action, and the action's value in the executor's result.

use super::builder::{executor_result, expression, only, text};
use super::node::{LoweredNode, ResultTarget};
use super::pure_actions::PURE;
use super::script::Language;
use super::workflow::PROVIDERS;
use super::{SourcePosition, Tea, builder, evaluate, unsupported};
use crate::append;
use crate::checks;
use crate::fields::Fields;
use crate::vocabulary::model::{MODEL, MODEL_TIMEOUT};
use windlass_expression::{Schema, Template, Value};
use windlass_model::hir::{Assignment, StepKind};
use windlass_model::model::{ANSWER_ERRORS, FILES_VARIABLE as FILES, Name};
use windlass_source::diagnostic::{did_you_mean, nearest};
use windlass_source::source::{Entry, Kind};

/// Providers that need no definition.
const BUILT_IN_PROVIDERS: [&str; 6] = ["claude", "codex", "gemini", "qwen", "opencode", "cursor"];

/// Actions of TEA that an executor of the same name implements.
const SAME_NAME: [&str; 9] = [
    "validate.extraction",
    "validate.schema",
    "data.validate",
    "data.merge",
    "json.parse",
    "notify",
    "file.read",
    "file.write",
    "reflection.evaluate",
];
/// Actions of TEA that an executor of another name implements.
const RENAMED: [&str; 3] = ["llm.call", "http.get", "http.post"];
/// Actions of the Loom format that are one call of an executor.
const LOOM: [&str; 6] = ["http", "shell", "activity", "actor", "ai", "appendFile"];
/// Actions that become several calls.
const COMPOSED: [&str; 3] = ["retry.loop", "reflection.loop", "reflection.correct"];

/// Actions that need at least one of several keys, and these keys.
const REQUIRED_KEYS: [(&str, &[&str]); 10] = [
    ("llm.call", &["prompt", "messages"]),
    ("ai", &["prompt", "messages"]),
    ("shell", &["run", "command"]),
    ("http", &["uri"]),
    ("activity", &["activityType", "actorType"]),
    ("actor", &["actorType", "activityType"]),
    ("appendFile", &["path"]),
    ("file.read", &["path"]),
    ("file.write", &["path"]),
    ("notify", &["message"]),
];

/// Keys that only TEA has for a question to a model. They have no effect here.
const OF_TEA: [&str; 5] = [
    "num_retries",
    "base_delay",
    "max_delay",
    "opik_trace",
    "opik_project_name",
];

/// The keys that each action accepts. Other code checks the keys of questions to a model, handlers,
/// validators and loops.
const KNOWN_KEYS: [(&str, &str); 25] = [
    (
        "http",
        "method uri queries headers body authentication tls check page page_base parse",
    ),
    ("shell", "run command env files cwd stdin check"),
    (
        "appendFile",
        "path row rows text append replace format columns",
    ),
    ("file.read", "path stream encoding cache"),
    ("file.write", "path content stream"),
    ("json.parse", "text strict default"),
    ("data.merge", "sources strategy"),
    ("data.validate", "data schema"),
    ("wait", "seconds interval until"),
    ("compose", "value inputs"),
    ("terminate", "runStatus runError"),
    ("waitForSignal", "signal"),
    ("initializeVariable", "name value type"),
    ("setVariable", "name value"),
    ("incrementVariable", "name value"),
    ("decrementVariable", "name value"),
    ("appendToArrayVariable", "name value"),
    ("appendToStringVariable", "name value"),
    ("parseJson", "content schema"),
    ("select", "from select"),
    ("query", "from where"),
    ("join", "from joinWith"),
    ("table", "from format"),
    ("memory.store", "key value namespace ttl"),
    ("memory.retrieve", "key namespace default"),
];

/// The keys of further actions, which other code checks.
const OTHER_KEYS: [(&str, &str); 5] = [
    ("http.get", "url params headers authentication"),
    ("http.post", "url json data params headers authentication"),
    ("activity", "activityType input"),
    ("actor", "actorType input"),
    ("notify", "message"),
];

/// One call of an executor that implements an action.
pub(super) struct Invocation {
    pub executor: Name,
    pub inputs: Template,
    /// The template of the action's value, which reads the executor's result.
    pub value: Template,
    /// Further assignments to the state.
    pub then: Vec<Assignment>,
}

impl<'n> Tea<'_, 'n> {
    pub(super) fn uses(
        &mut self,
        entry: &'n Entry,
        fields: &mut Fields<'n>,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let with = fields.get("with");
        let timeout = fields.non_null(self, "timeout");
        let target = self.result_target(fields);
        self.read_action(entry, with, timeout, &target, place)
    }

    /// Reads the action that `entry` names.
    pub(super) fn read_action(
        &mut self,
        entry: &'n Entry,
        with: Option<&'n Entry>,
        timeout: Option<&'n Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let name = canonical(self.text(entry, "for example uses: llm.call")?);
        let built = match &*name {
            "retry.loop" => self.retry_loop(entry, with, target, place),
            "reflection.loop" => self.reflection_loop(entry, with, target, place),
            "reflection.correct" => self.reflection_correct(entry, with, target, place),
            name if PURE.contains(&name) => self.pure_action(name, entry, with, target, place),
            name => return self.one_call(name, entry, with, timeout, target, place),
        };
        let timeout = timeout.and_then(|entry| self.seconds(entry));
        Some(LoweredNode { timeout, ..built? })
    }

    fn one_call(
        &mut self,
        name: &str,
        entry: &'n Entry,
        with: Option<&'n Entry>,
        timeout: Option<&'n Entry>,
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let with = self.arguments(with)?;
        if let Some(answer) = self.error_answer(name, entry, &with, target, place) {
            return Some(answer);
        }
        if let Some(instead) = unsupported::instead(name) {
            let what = format!("only The Edge Agent has the action '{name}'");
            self.error("unknown-action", entry.value.span, what, instead);
            return None;
        }
        if !action_names().any(|known| known == name) {
            let what = format!("Unknown action '{name}'");
            self.unknown("unknown-action", what, entry.value.span, name, all_names());
            return None;
        }
        self.needs(name, entry, &with);
        match name {
            "shell" => self.check_command(&with),
            "llm.call" | "ai" => {
                self.check_provider(&with);
                checks::single_question(self, &with);
            }
            _ => {}
        }
        let invocation = if name == "llm.call" {
            let mut inputs = self.inputs_of(name, &with);
            inputs.push((text(ANSWER_ERRORS), Template::constant(Value::Bool(true))));
            simple("ai", inputs, executor_result())
        } else {
            self.invocation(name, entry, &with, place)?
        };
        let timeout = timeout.and_then(|entry| self.seconds(entry));
        let mut then = invocation.then;
        then.extend(self.store_result(target, &invocation.value, place));
        let path = invocation.inputs.part_of("path").cloned();
        let replaces = invocation.inputs.part_of("replace").is_some();
        let call = builder::call(&invocation.executor, invocation.inputs, timeout, then);
        if name == append::EXECUTOR && !replaces {
            return self.measured(call, invocation.value, &path?, place);
        }
        let output = (invocation.value != executor_result()).then_some(invocation.value);
        Some(LoweredNode {
            output,
            ..LoweredNode::new(name, call)
        })
    }

    /// Makes an append to a file. If the run does not know the length of the file yet, another step measures the file
    /// first.
    fn measured(
        &mut self,
        call: StepKind,
        value: Template,
        path: &Template,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let measure = StepKind::Call(append::measure(self, FILES, path, place.span).ok()?);
        let measure =
            builder::anonymous_step(self.part(place, "measure"), append::EXECUTOR, measure);
        let first = builder::when(append::unknown(self, FILES, path).ok()?, only(measure));
        let first = builder::anonymous_step(self.part(place, "first"), append::EXECUTOR, first);
        let last = builder::anonymous_step(self.part(place, "append"), append::EXECUTOR, call);
        let last = builder::recording(last, &value);
        let output = Some(builder::output_of(&last.name));
        Some(LoweredNode {
            output,
            ..LoweredNode::new(append::EXECUTOR, builder::block(vec![first, last]))
        })
    }

    /// Reports an action that has none of its required keys, because it would always fail.
    fn needs(&mut self, name: &str, named: &Entry, with: &[&'n Entry]) {
        let Some((_, keys)) = REQUIRED_KEYS.iter().find(|(known, _)| *known == name) else {
            return;
        };
        let set = |key: &str| name == "llm.call" && self.llm.iter().any(|(own, _)| &**own == key);
        let given = |key: &str| with.iter().any(|entry| entry.key == key);
        if keys.iter().any(|key| given(key) || set(key)) {
            return;
        }
        let near = with
            .iter()
            .find_map(|entry| Some((&entry.key, nearest(&entry.key, keys.iter().copied())?)));
        let hint = match near {
            Some((key, meant)) => format!("is `{key}` meant to be `{meant}`?"),
            None => format!("give {} under `with`", alternatives(keys)),
        };
        let what = format!("`{name}` needs {}", alternatives(keys));
        self.error("missing-key", named.value.span, what, hint);
    }

    /// Reports a `command` of `shell` that is a text.
    fn check_command(&mut self, with: &[&'n Entry]) {
        for entry in with.iter().filter(|entry| entry.key == "command") {
            if entry
                .value
                .as_str()
                .is_some_and(|text| !text.contains("{{"))
            {
                self.wrong_type(&entry.value, "`command`", "a list", checks::COMMAND_IS_LIST);
            }
        }
    }

    /// Reports a `shell_provider` that the file does not define, if its name is similar to one that it defines.
    fn check_provider(&mut self, with: &[&'n Entry]) {
        let of_file = self.llm.iter().find(|(key, _)| &**key == PROVIDERS);
        let of_file = of_file.map(|(_, providers)| providers.source());
        let of_file = of_file.as_ref().and_then(Value::as_object);
        let known = || {
            of_file
                .into_iter()
                .flat_map(|map| map.keys().map(|key| &**key))
        };
        let own = |entry: &&Entry| matches!(&*entry.key, PROVIDERS | "args");
        let Some(given) = with.iter().find(|entry| entry.key == "shell_provider") else {
            return;
        };
        let Some(name) = given.value.as_str().filter(|name| {
            !with.iter().any(own)
                && known().all(|known| known != *name)
                && !BUILT_IN_PROVIDERS.contains(name)
        }) else {
            return;
        };
        if let Some(hint) = did_you_mean(name, known()) {
            let what = format!("`{name}` is not one of the `{PROVIDERS}`");
            self.error("unknown-name", given.value.span, what, hint);
        }
    }

    pub(super) fn arguments(&mut self, with: Option<&'n Entry>) -> Option<Vec<&'n Entry>> {
        let with = with.filter(|with| !matches!(with.value.kind, Kind::Null));
        let Some(with) = with else {
            return Some(Vec::new());
        };
        let entries = self.map(with, "for example with: { prompt: \"…\" }");
        with.value.entries().map(|_| entries.iter().collect())
    }

    /// Makes the call of an action, which must be one of [`action_names`].
    /// `entry` is the entry that names the action, and `with` has its arguments.
    pub(super) fn invocation(
        &mut self,
        name: &str,
        entry: &Entry,
        with: &[&'n Entry],
        place: &SourcePosition,
    ) -> Option<Invocation> {
        self.check_known_keys(name, with);
        match name {
            "llm.call" => Some(simple("ai", self.inputs_of(name, with), executor_result())),
            "http.get" | "http.post" => {
                let inputs = self.web(name, with, place);
                Some(simple("http", inputs, executor_result().part("body")))
            }
            "reflection.evaluate" => self.evaluate_call(entry, with),
            "appendFile" => self.append(entry, with),
            _ => Some(simple(name, self.inputs_of(name, with), executor_result())),
        }
    }

    /// Reports keys that an action does not accept.
    pub(super) fn check_known_keys(&mut self, name: &str, with: &[&'n Entry]) {
        let Some((_, known)) = KNOWN_KEYS.iter().find(|(action, _)| *action == name) else {
            return;
        };
        let known: Vec<&str> = known.split(' ').collect();
        for entry in with {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let near = nearest(&entry.key, known.iter().copied());
            // TEA ignores keys that its own actions do not know. The names of Loom's actions have no dot.
            if name.contains('.') {
                self.unknown_key(&format!("`{name}`"), entry, near, &known);
                continue;
            }
            let hint = match (&*entry.key, near) {
                ("timeout", _) => String::from("write it next to `uses`, in seconds"),
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => format!("known are: {}", known.join(", ")),
            };
            let what = format!("unknown key `{}` in `{name}`", entry.key);
            self.error("unknown-key", entry.key_span, what, hint);
        }
    }

    /// Reports keys that a question to a model does not accept. `own` are further keys that `what` accepts.
    pub(super) fn model_keys<'e>(
        &mut self,
        what: &str,
        own: &[&str],
        entries: impl Iterator<Item = &'e Entry>,
    ) {
        let known = MODEL.iter().chain([&MODEL_TIMEOUT]).map(|key| key.name);
        let known = known.chain([PROVIDERS]).chain(own.iter().copied());
        let known: Vec<&str> = known.collect();
        for entry in entries {
            if entry.key == "deployment" {
                self.ignored(
                    entry,
                    "the deployment is `model`, or AZURE_OPENAI_DEPLOYMENT",
                );
            } else if OF_TEA.contains(&entry.key.as_str()) {
                self.ignored(
                    entry,
                    "TEA's own retries and traces; `max_retries` repeats a question",
                );
            } else if !known.contains(&entry.key.as_str()) {
                let near = nearest(&entry.key, known.iter().copied());
                self.unknown_key(what, entry, near, &known);
            }
        }
    }

    /// Reads `appendFile`. The length of the file is stored under a key of the state.
    fn append(&mut self, entry: &Entry, with: &[&'n Entry]) -> Option<Invocation> {
        let find = |key: &str| with.iter().copied().find(|entry| entry.key == key);
        let (append, replace) = (find("append"), find("replace"));
        let replaces = append::replaces(self, append, replace);
        self.replaces |= replaces;
        let with = with.iter().copied();
        let with = with.filter(|entry| !matches!(&*entry.key, "append" | "replace"));
        let with: Vec<&'n Entry> = with.collect();
        let mut inputs = self.inputs_of("appendFile", &with);
        if replaces {
            inputs.push((text("replace"), Template::constant(Value::Bool(true))));
        }
        inputs.push((text("files"), append::files(self, FILES).ok()?));
        let shown = ["path", "length", "rows"].map(|key| (text(key), executor_result().part(key)));
        Some(Invocation {
            executor: Name::from("appendFile"),
            inputs: Template::object(inputs),
            value: Template::object(shown.into()),
            then: vec![append::remember(self, FILES, entry.value.span).ok()?],
        })
    }

    /// Makes the inputs of an action: its arguments, and defaults for the arguments that are not set.
    pub(super) fn inputs_of(
        &mut self,
        name: &str,
        with: &[&'n Entry],
    ) -> Vec<(Template, Template)> {
        if matches!(name, "llm.call" | "ai") {
            self.model_keys(&format!("`{name}`"), &[], with.iter().copied());
        }
        let mut inputs: Vec<(Template, Template)> = Vec::with_capacity(with.len() + 1);
        for argument in with {
            let value = self.template(&argument.value);
            self.check(name, argument, &value);
            inputs.push((text(&argument.key), value));
        }
        let schema = with.iter().find(|entry| entry.key == "schema");
        if let Some(schema) = schema {
            self.check_schema(&schema.value);
            if self.schemas.as_object().is_some_and(|all| !all.is_empty()) {
                let documents = Template::constant(self.schemas.clone());
                inputs.push((text("schemas"), documents));
            }
        }
        let has = |key: &str| with.iter().any(|entry| entry.key == key);
        match name {
            // An evaluation with a schema does not call a model, so it has no defaults for models.
            "llm.call" | "reflection.evaluate" if name == "llm.call" || schema.is_none() => {
                // The question of the action replaces the default one, also in the other form.
                let asks = with.iter().any(|entry| checks::is_question(entry));
                let replaced = |key: &str| asks && checks::QUESTION_KEYS.contains(&key);
                let own = self.llm.iter();
                let own = own.filter(|(key, _)| !has(key) && !replaced(key));
                inputs.extend(own.map(|(key, value)| (text(key), value.clone())));
            }
            "validate.extraction" => {
                // Some arguments default to keys at the top of the file, others to keys of the state.
                for (key, value) in &self.extraction {
                    if !has(key) {
                        inputs.push((text(key), Template::constant(value.clone())));
                    }
                }
                for key in ["entities", "relationships", "source_text"] {
                    if !has(key) {
                        let from = expression(self, &format!("state.get('{key}')"));
                        inputs.push((text(key), from));
                    }
                }
            }
            _ => {}
        }
        inputs
    }

    /// Reports mistakes in an argument that are known before a run.
    fn check(&mut self, name: &str, argument: &Entry, value: &Template) {
        match (name, argument.key.as_str()) {
            ("shell", "run") if !value.references().is_empty() => {
                let what = "data is rendered into the text of a command";
                let span = argument.value.span;
                self.warning("data-in-command", span, what, checks::DATA_IN_COMMAND);
            }
            ("data.validate" | "reflection.evaluate", "schema") => {
                if let Some(schema) = value.as_constant().filter(|schema| !schema.is_null())
                    && let Err(mistake) = Schema::check_draft_7(schema)
                {
                    let hint = "the schema is JSON Schema: { type: object, properties: { … } }";
                    self.error("bad-schema", argument.value.span, mistake, hint);
                }
            }
            ("llm.call" | "ai" | "reflection.evaluate", _) => checks::model_input(self, argument),
            ("http" | "http.get" | "http.post", "authentication") => {
                checks::authentication(self, &argument.value);
            }
            _ => {}
        }
    }

    /// Reads `reflection.evaluate` outside of a loop.
    /// For the type `custom`, the file has code. For other types, an executor is called.
    fn evaluate_call(&mut self, named: &Entry, with: &[&'n Entry]) -> Option<Invocation> {
        let find = |key: &str| with.iter().copied().find(|entry| entry.key == key);
        let what = "`reflection.evaluate`";
        self.model_keys(what, &evaluate::EVALUATE, with.iter().copied());
        let kind = find("evaluator_type").or(find("type"));
        let data = find("data");
        let data = match data {
            Some(entry) => self.template(&entry.value),
            None => expression(self, "state.get('reflection_output', state.get('output'))"),
        };
        let success = |value: Template| {
            let yes = Template::constant(Value::Bool(true));
            Template::call("setProperty", vec![value, text("success"), yes]).ok()
        };
        if kind.and_then(|kind| kind.value.as_str()) == Some("custom") {
            let Some(run) = find("run") else {
                let message = "reflection.evaluate: a custom evaluator needs `run`";
                let hint = "for example run: \"return len(output) > 0\"";
                self.error("missing-key", named.value.span, message, hint);
                return None;
            };
            let language: Language = self.language(find("language"))?;
            return Some(Invocation {
                executor: Name::from(language.executor()),
                inputs: self.judge(language, run, data)?,
                value: success(evaluate::normal(self, language))?,
                then: Vec::new(),
            });
        }
        let passed: Vec<&'n Entry> = with
            .iter()
            .copied()
            .filter(|entry| !matches!(&*entry.key, "data" | "type"))
            .collect();
        let mut inputs = self.inputs_of("reflection.evaluate", &passed);
        inputs.push((text("data"), data));
        if find("evaluator_type").is_none() {
            let word = match kind {
                Some(kind) => self.template(&kind.value),
                None => text("schema"),
            };
            inputs.push((text("evaluator_type"), word));
        }
        Some(Invocation {
            executor: Name::from("reflection.evaluate"),
            inputs: Template::object(inputs),
            value: success(executor_result())?,
            then: Vec::new(),
        })
    }

    /// Makes the inputs of `http.get` and `http.post`, with the names of the `http` executor.
    fn web(
        &mut self,
        name: &str,
        with: &[&'n Entry],
        place: &SourcePosition,
    ) -> Vec<(Template, Template)> {
        let method = if name == "http.get" { "GET" } else { "POST" };
        // TEA parses every answer as JSON, even if its media type is another one.
        let mut inputs = vec![
            (text("method"), text(method)),
            (text("parse"), text("json")),
        ];
        let mut has_url = false;
        for entry in with {
            let key = match entry.key.as_str() {
                "url" | "uri" => {
                    has_url = true;
                    "uri"
                }
                "params" | "queries" => "queries",
                "json" | "data" | "body" => "body",
                "headers" | "authentication" => &entry.key,
                _ => {
                    self.ignored(entry, "known are url, params, json, data and headers");
                    continue;
                }
            };
            let value = self.template(&entry.value);
            self.check(name, entry, &value);
            inputs.push((text(key), value));
        }
        if !has_url {
            let what = format!("`{}` needs `url`", place.shown());
            let hint = "for example with: { url: \"https://example.org/status\" }";
            self.error("missing-key", place.span, what, hint);
        }
        inputs
    }
}

fn simple(executor: &str, inputs: Vec<(Template, Template)>, value: Template) -> Invocation {
    Invocation {
        executor: Name::from(executor),
        inputs: Template::object(inputs),
        value,
        then: Vec::new(),
    }
}

fn alternatives(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(" or ")
}

pub(super) fn action_names() -> impl Iterator<Item = &'static str> {
    SAME_NAME.into_iter().chain(RENAMED).chain(LOOM)
}

pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    action_names().chain(COMPOSED).chain(PURE)
}

/// Returns the keys of an action's `with`. Returns none for the loops, whose keys are in the schema, and for an unknown
/// action.
pub(crate) fn argument_keys(name: &str) -> Vec<&'static str> {
    let name = canonical(name);
    let of = |all: &[(&str, &'static str)]| {
        let found = all.iter().find(|(action, _)| *action == name);
        found.map(|(_, keys)| keys.split(' ').collect::<Vec<_>>())
    };
    let model = || MODEL.iter().chain([&MODEL_TIMEOUT]).map(|key| key.name);
    match &*name {
        "llm.call" | "ai" => model().chain([PROVIDERS]).collect(),
        "reflection.evaluate" => {
            let own = evaluate::EVALUATE.iter().copied();
            model().chain([PROVIDERS]).chain(own).collect()
        }
        _ => of(&KNOWN_KEYS)
            .or_else(|| of(&OTHER_KEYS))
            .unwrap_or_default(),
    }
}

/// Returns the main name of an action. TEA also accepts `actions.llm_call` and `llm_call` for `llm.call`.
pub(super) fn canonical(name: &str) -> String {
    let dotted = |name: &str| name.replacen('_', ".", 1);
    match name.strip_prefix("actions.") {
        Some(rest) => dotted(rest),
        None if !name.contains('.') && all_names().any(|known| known == dotted(name)) => {
            dotted(name)
        }
        None => name.to_owned(),
    }
}
