//! Restricts the inputs that guests (workflows from HTTP or MCP) may pass to executors that can do several things. For
//! example, an `ai` action may name a command to run, a file with the key, or a server to which the operator's key
//! would be sent.

use windlass_expression::{Object, Value};
use windlass_model::model::{Policy, Request};

/// The executors that ask questions of models.
const ASK_MODELS: [&str; 3] = ["ai", "reflection.evaluate", "validate.extraction"];

pub(super) fn denied(policy: Policy, request: &Request) -> Option<String> {
    if policy == Policy::TRUSTED || !ASK_MODELS.contains(&&*request.executor) {
        return None;
    }
    let mut open = vec![&request.inputs];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter()),
            Value::Object(members) => {
                if let Some(why) = denied_here(policy, members) {
                    return Some(why);
                }
                open.extend(members.values());
            }
            _ => {}
        }
    }
    None
}

fn denied_here(policy: Policy, members: &Object) -> Option<String> {
    let has = |key: &str| members.get(key).is_some_and(|value| !value.is_null());
    let provider = members.get("provider").and_then(Value::as_str);
    let shell = provider.is_some_and(|name| name.trim().eq_ignore_ascii_case("shell"));
    if !policy.shell && (shell || has("command") || has("shell_provider") || has("shell_providers"))
    {
        return Some(String::from("a command cannot run here: --allow-shell"));
    }
    // Refuse this, because the content of the file would be sent to a server that the guest may choose.
    if !policy.shell && has("api_key_file") {
        return Some(String::from("a file cannot be read here: --allow-shell"));
    }
    let elsewhere = has("base_url") || has("api_base");
    if elsewhere && !has("api_key") && !has("api_key_file") {
        return Some(String::from(
            "the operator's key is never sent to another server: set `api_key` together with the \
             address",
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking;

    fn asked(executor: &str, inputs: &str) -> Option<String> {
        let request = asking(executor, inputs);
        assert_eq!(denied(Policy::TRUSTED, &request), None);
        denied(Policy::GUEST, &request)
    }

    #[test]
    fn a_guest_asks_models_and_nothing_else() {
        assert_eq!(asked("ai", r#"{"prompt": "x", "model": "m"}"#), None);
        let own = r#"{"base_url": "http://x", "api_key": "k"}"#;
        assert_eq!(asked("ai", own), None);
        for inputs in [
            r#"{"provider": "Shell", "command": ["id"]}"#,
            r#"{"command": "id"}"#,
            r#"{"shell_provider": {"command": "id"}}"#,
            r#"{"api_key_file": "/etc/shadow"}"#,
            r#"{"base_url": "http://evil"}"#,
            r#"{"probes": [{"settings": {"command": "id"}}]}"#,
        ] {
            assert!(asked("ai", inputs).is_some(), "{inputs}");
            assert!(asked("reflection.evaluate", inputs).is_some(), "{inputs}");
        }
        // Other executors may have an input named `command`, which is allowed.
        assert_eq!(asked("shell", r#"{"command": ["id"]}"#), None);
    }
}
