//! Starts runs for signed requests to a webhook. Each event has an idempotency key, so that a repeated event starts no
//! second run.

use super::{Engine, EngineError, KeyedStart, Started, Workflow};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_actions::{check_webhook, signature_header};
use windlass_expression::{Object, Value};
use windlass_model::model::{Name, Webhook};
use windlass_value::time::Timestamp;

/// A request to a webhook.
pub struct Delivery<'r> {
    /// The headers, with names in lower case. If several headers have the same name, the first one.
    pub headers: BTreeMap<String, String>,
    pub body: &'r [u8],
    /// The parameters of the query: names and texts.
    pub query: Vec<(String, String)>,
}

/// A saved workflow with a webhook.
pub struct SavedWebhook {
    saved_as: Name,
    workflow: Arc<Workflow>,
    webhook: Webhook,
}

impl SavedWebhook {
    /// Checks that a request has a signature header, before its body is read.
    ///
    /// # Errors
    /// Returns [`EngineError::Unsigned`].
    pub fn check_headers(&self, headers: &BTreeMap<String, String>) -> Result<(), EngineError> {
        let needed = signature_header(self.webhook.signature);
        match headers.contains_key(needed) {
            true => Ok(()),
            false => Err(EngineError::Unsigned(format!(
                "the header `{needed}` is missing"
            ))),
        }
    }
}

/// A request to a webhook whose signature was checked.
pub struct SignedDelivery<'w> {
    webhook: &'w SavedWebhook,
    key: String,
    members: [(&'static str, Value); 3],
}

impl Engine {
    /// Returns the webhook of a saved workflow. Blocks.
    ///
    /// # Errors
    /// Returns [`EngineError::NoWebhook`] if no workflow of this name has a webhook, and the errors of
    /// [`Engine::workflow`].
    pub fn webhook(&self, name: &str) -> Result<SavedWebhook, EngineError> {
        let missing = || EngineError::NoWebhook(name.to_owned());
        let workflow = self.workflow(name)?.ok_or_else(missing)?;
        let webhook = workflow.program().event_triggers.webhook.clone();
        Ok(SavedWebhook {
            saved_as: Name::from(name),
            webhook: webhook.ok_or_else(missing)?,
            workflow,
        })
    }

    /// Checks the signature of a request.
    ///
    /// # Errors
    /// Returns [`EngineError::Unsigned`] if the signature is missing or wrong: a mistake of the sender. Returns
    /// [`EngineError::NoWebhookSecret`] if the secret cannot be read: a mistake of the operator.
    pub async fn check_delivery<'w>(
        &self,
        webhook: &'w SavedWebhook,
        delivery: &Delivery<'_>,
        now: Timestamp,
    ) -> Result<SignedDelivery<'w>, EngineError> {
        let SavedWebhook {
            saved_as,
            webhook: of,
            ..
        } = webhook;
        let sources = self.launcher.workflows.registry.secret_sources();
        let secret = sources.read(&of.secret).await;
        let secret = secret.map_err(EngineError::NoWebhookSecret)?;
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
            let why = format!("the server lacks the secret `{}`", of.secret);
            return Err(EngineError::NoWebhookSecret(why));
        };
        let header = |name: &str| delivery.headers.get(name).map(String::as_str);
        let id = check_webhook(of.signature, &secret, header, delivery.body, now)
            .map_err(EngineError::Unsigned)?;
        let text = String::from_utf8_lossy(delivery.body);
        let body = Value::from_json(&text).unwrap_or_else(|_| Value::text(text));
        // Remove the signature from the run's input. A client that may only read the run could send the request again
        // with it.
        let signature = signature_header(of.signature);
        let headers = delivery.headers.iter();
        let headers = headers.filter(|(name, _)| *name != signature);
        Ok(SignedDelivery {
            webhook,
            key: format!("webhook {saved_as} {id}"),
            members: [
                ("body", body),
                ("headers", texts(headers)),
                ("query", parameters(&delivery.query)),
            ],
        })
    }

    /// Starts a run for a request to a webhook. If the request is repeated, returns the run that the first request
    /// started.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::start_once`].
    pub async fn start_by_webhook(
        &self,
        delivery: SignedDelivery<'_>,
    ) -> Result<Started, EngineError> {
        let SignedDelivery {
            webhook,
            key,
            members,
        } = delivery;
        self.start_by_event(&webhook.workflow, &key, members).await
    }

    /// Starts a run for an event. The run's input has those members of the event that the workflow declares as inputs.
    /// If the workflow declares no inputs, the input has all members.
    pub(super) async fn start_by_event<const N: usize>(
        &self,
        workflow: &Workflow,
        key: &str,
        members: [(&str, Value); N],
    ) -> Result<Started, EngineError> {
        let declared = &workflow.program().inputs;
        let is_input =
            |name: &str| declared.is_empty() || declared.iter().any(|input| *input.name == *name);
        let members = members.into_iter().filter(|(name, _)| is_input(name));
        let input: Object = members.map(|(name, value)| (name.into(), value)).collect();
        let input = Value::object(input);
        // The key contains the saved name already.
        let name = &workflow.program().name;
        let start = KeyedStart::new(name, key, &input, BTreeMap::new(), None);
        match self.start_once(workflow, input, &start).await {
            // This is a repetition, and not an error: the key identifies the delivery, and other headers of a
            // repetition may differ.
            Err(EngineError::KeyReused(run)) => Ok(Started { run, fresh: false }),
            other => other,
        }
    }
}

/// Returns the parameters of a query by name. A repeated parameter has a list.
fn parameters(query: &[(String, String)]) -> Value {
    let mut by_name = BTreeMap::<&str, Vec<Value>>::new();
    for (name, text) in query {
        by_name.entry(name).or_default().push(Value::text(text));
    }
    let value = |texts: Vec<Value>| match <[Value; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => Value::array(texts),
    };
    let named = by_name.into_iter();
    Value::from_pairs(named.map(|(name, texts)| (name, value(texts))))
}

fn texts<'t>(members: impl Iterator<Item = (&'t String, &'t String)>) -> Value {
    Value::from_pairs(members.map(|(name, text)| (name.as_str(), Value::text(text))))
}
