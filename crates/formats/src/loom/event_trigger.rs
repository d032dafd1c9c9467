//! `triggers` of a Loom file: `webhook` and `folder`.

use super::Loom;
use crate::actions::ActionReader;
use std::path::Path;
use windlass_expression::is_secret_name;
use windlass_model::model::{
    EventTriggers, Input, InputKind, Name, WatchedFolder, Webhook, WebhookSignature,
};
use windlass_source::diagnostic::{did_you_mean, nearest};
use windlass_source::source::{Entry, Node};

const HINT: &str = "for example triggers: { webhook: { secret: GITHUB, signature: github } }";
const FOLDER_HINT: &str =
    "for example triggers: { folder: { path: /var/spool/in, pattern: \"*.csv\" } }";

const SIGNATURES: [(&str, WebhookSignature); 3] = [
    ("github", WebhookSignature::Github),
    ("stripe", WebhookSignature::Stripe),
    ("standard", WebhookSignature::Standard),
];

/// The inputs that a trigger provides. Any: this depends on the sender.
const FOLDER_INPUTS: [(&str, InputKind); 3] = [
    ("path", InputKind::String),
    ("name", InputKind::String),
    ("size", InputKind::Integer),
];
const WEBHOOK_INPUTS: [(&str, InputKind); 3] = [
    ("body", InputKind::Any),
    ("headers", InputKind::Object),
    ("query", InputKind::Object),
];

/// The keys of a Logic Apps definition.
const DEFINITION_KEYS: [&str; 8] = [
    "$schema",
    "actions",
    "contentVersion",
    "description",
    "outputs",
    "parameters",
    "staticResults",
    "triggers",
];

/// Returns true if the `triggers` of a file have Loom's form, even if a name is misspelt.
/// In a Logic Apps definition, each trigger has a `type`, and the file has no keys of Loom.
pub(crate) fn are_of_loom(triggers: &Node, file: &Node) -> bool {
    let entries = triggers.entries().unwrap_or_default();
    let has_type = |entry: &Entry| entry.value.get("type").is_some();
    let is_known = |entry: &Entry| nearest(&entry.key, ["webhook", "folder"]).is_some();
    let is_of_loom = |entry: &Entry| !DEFINITION_KEYS.contains(&&*entry.key);
    let mut keys = file.entries().unwrap_or_default().iter();
    !entries.is_empty()
        && !entries.iter().any(has_type)
        && (entries.iter().any(is_known) || keys.any(is_of_loom))
}

impl ActionReader<'_, Loom> {
    pub(super) fn event_triggers(&mut self, entry: &Entry) -> EventTriggers {
        let mut found = EventTriggers::default();
        let Some(mut fields) = self.fields(&entry.value, "`triggers`", HINT) else {
            return found;
        };
        if let Some(entry) = fields.non_null(self, "webhook") {
            found.webhook = self.webhook(entry);
        }
        if let Some(entry) = fields.non_null(self, "folder") {
            found.folder = self.watched_folder(entry);
        }
        fields.finish(self);
        found
    }

    /// Warns of inputs with which a trigger can start no run. A person who starts the workflow can.
    pub(super) fn triggered_inputs(&mut self, inputs: &[Input], triggers: &EventTriggers) {
        if triggers.folder.is_some() {
            self.inputs_of("folder", &FOLDER_INPUTS, inputs);
        }
        if triggers.webhook.is_some() {
            self.inputs_of("webhook", &WEBHOOK_INPUTS, inputs);
        }
    }

    fn inputs_of(&mut self, trigger: &str, provided: &[(&str, InputKind)], inputs: &[Input]) {
        let names = || provided.iter().map(|(name, _)| *name);
        let list = format!(
            "a {trigger} provides the inputs {}",
            names().collect::<Vec<_>>().join(", ")
        );
        for input in inputs {
            let Input { name, kind, .. } = input;
            let (what, hint) = match provided.iter().find(|(given, _)| *given == &**name) {
                None if input.default.is_none() => {
                    let near = did_you_mean(name, names());
                    let hint = near.map(|near| format!("{near} ({list})"));
                    let what = format!("has no default, and a {trigger} does not provide it");
                    (what, hint.unwrap_or_else(|| list.clone()))
                }
                Some((_, given)) if !may_be(*given, *kind) => {
                    (format!("is not {}", given.described()), list.clone())
                }
                None | Some(_) => continue,
            };
            let what = format!("the {trigger} cannot start runs: the input `{name}` {what}");
            self.warning("trigger-input", input.span, what, hint);
        }
    }

    fn webhook(&mut self, entry: &Entry) -> Option<Webhook> {
        let mut fields = self.fields(&entry.value, "`webhook`", HINT)?;
        let secret = fields.required(self, "secret", entry.key_span, HINT);
        let wrong = |text: &str| format!("`{text}` is not a signature of webhooks");
        let signature = fields.required(self, "signature", entry.key_span, HINT);
        let signature = signature.and_then(|entry| self.choice(entry, &SIGNATURES, wrong));
        fields.finish(self);
        let secret = secret?;
        let name = self.text(secret, HINT)?;
        if !is_secret_name(name) {
            let what = format!("`{name}` cannot be the name of a secret");
            let hint = "write the name of the secret, not the secret itself";
            self.error("secret-name", secret.value.span, what, hint);
            return None;
        }
        Some(Webhook {
            secret: Name::from(name),
            signature: signature?,
        })
    }

    fn watched_folder(&mut self, entry: &Entry) -> Option<WatchedFolder> {
        let mut fields = self.fields(&entry.value, "`folder`", FOLDER_HINT)?;
        let path = fields.required(self, "path", entry.key_span, FOLDER_HINT);
        let pattern = fields.non_null(self, "pattern");
        let pattern = pattern.and_then(|entry| self.text(entry, FOLDER_HINT));
        let pattern = pattern.unwrap_or("*").to_owned();
        fields.finish(self);
        let entry = path?;
        let path = self.text(entry, FOLDER_HINT)?.to_owned();
        if !Path::new(&path).is_absolute() {
            let what = format!("the folder `{path}` is not an absolute path");
            self.error("bad-value", entry.value.span, what, FOLDER_HINT);
            return None;
        }
        Some(WatchedFolder { path, pattern })
    }
}

/// Returns true if an input of the kind `declared` may accept a value of the kind `given`.
fn may_be(given: InputKind, declared: InputKind) -> bool {
    given == declared
        || [given, declared].contains(&InputKind::Any)
        || (given, declared) == (InputKind::Integer, InputKind::Number)
}
