//! Tokens for identities that only a cloud platform has. For each call that signs in with such an identity, a handler
//! returns a token (docs/reference/azure.md, "Managed identity").

use super::handler::Handlers;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Name, Request, fault_kind};

/// The types of `authentication` for which a handler of the same name returns the token.
pub const IDENTITIES: [&str; 2] = ["ManagedServiceIdentity", "ActiveDirectoryOAuth"];

/// Returns true if the call itself has a secret, with which the token is requested. Then it needs no handler.
pub fn has_secret(name: &str, authentication: &Value) -> bool {
    name == "ActiveDirectoryOAuth" && authentication.get("secret").is_some()
}

/// Returns the request with the token that a handler returned. `None` if the request needs no token from a handler.
pub(super) async fn signed(
    handlers: &Handlers,
    request: &Request,
) -> Result<Option<Request>, Fault> {
    let Some(authentication) = request.inputs.get("authentication") else {
        return Ok(None);
    };
    let kind = authentication.get("type").and_then(Value::as_str);
    let named = |known: &&str| kind.is_some_and(|kind| known.eq_ignore_ascii_case(kind));
    let Some(name) = IDENTITIES.into_iter().find(named) else {
        return Ok(None);
    };
    if !handlers.answers(name) {
        if has_secret(name, authentication) {
            return Ok(None);
        }
        let message = format!(
            "no handler returns the token for `authentication` of type {name}: register a handler \
             `{name}`"
        );
        return Err(Fault::new(fault_kind::INPUT, message));
    }
    let mut question = authentication.as_object().cloned().unwrap_or_default();
    let uri = request.inputs.get("uri").cloned().unwrap_or(Value::Null);
    question.insert(Name::from("uri"), uri);
    let answer = handlers.ask(name, Value::object(question), request).await?;
    let keys = ["access_token", "accessToken", "token", "body"];
    let inside = keys.iter().find_map(|key| answer.get(key)?.as_str());
    let Some(token) = answer.as_str().or(inside).map(str::trim) else {
        let message = format!("the handler `{name}` gave no token: text, or a map with `token`");
        return Err(Fault::new(fault_kind::HANDLER, message));
    };
    let bearer = [
        ("type", Value::text("Bearer")),
        ("token", Value::text(token)),
    ];
    let mut inputs: Object = request.inputs.as_object().cloned().unwrap_or_default();
    inputs.insert(Name::from("authentication"), Value::from_pairs(bearer));
    Ok(Some(Request {
        inputs: Value::Object(Arc::new(inputs)),
        ..request.clone()
    }))
}
