//! What starts runs of a saved workflow in addition to its schedule: signed requests, and files in a folder.

use super::Name;

/// The events that start runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventTriggers {
    pub webhook: Option<Webhook>,
    pub folder: Option<WatchedFolder>,
}

/// Requests from other services, signed with a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The name of the secret.
    pub secret: Name,
    pub signature: WebhookSignature,
}

/// How a request is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookSignature {
    /// `X-Hub-Signature-256: sha256=HEX` of the body; the delivery is `X-GitHub-Delivery`.
    /// <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>
    Github,
    /// `Stripe-Signature: t=SECONDS,v1=HEX` of `SECONDS.BODY`; the delivery is `id` of the body.
    /// <https://docs.stripe.com/webhooks/signature>
    Stripe,
    /// `webhook-signature: v1,BASE64` of `ID.SECONDS.BODY`; the delivery is `webhook-id`.
    /// <https://github.com/standard-webhooks/standard-webhooks>
    Standard,
}

/// A folder whose new files start runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFolder {
    /// An absolute path.
    pub path: String,
    /// The names of the files that start a run; `*` matches any text.
    pub pattern: String,
}
