//! The keys of a question to a language model, in Loom and in The Edge Agent (docs/reference/actions.md#ai).

use super::{Key, TEXT, Type, key};

pub(crate) const MODEL: &[Key] = &[
    key("prompt", Type::Any, "the question; other values than text become JSON"),
    key("messages", Type::Any, "instead of `prompt`: a list of {role, content}"),
    key("system", Type::Any, "the system message"),
    key("model", TEXT, "required for HTTP; else OPENAI_MODEL"),
    key("temperature", Type::Any, "default 0.7; null leaves it to the model"),
    key("provider", TEXT, "openai, azure, ollama, shell, or auto (default)"),
    key("base_url", TEXT, "address of the API; default: that of the provider"),
    key("api_base", TEXT, "the same as base_url"),
    key("api_key", TEXT, "accepts a secret of the workflow"),
    key("api_key_file", TEXT, "a file with the key"),
    key("api_version", TEXT, "of Azure"),
    key("max_retries", Type::Any, "retries of transient faults within an attempt; default 0"),
    key("command", Type::Any, "for `shell`: the command that answers"),
    key("args", Type::Any, "for `shell`: its arguments"),
    key("shell_provider", TEXT, "for `shell`: the name of a provider"),
    key("max_tokens", Type::Any, SENT),
    key("max_completion_tokens", Type::Any, SENT),
    key("response_format", Type::Any, SENT),
    key("top_p", Type::Any, SENT),
    key("stop", Type::Any, SENT),
    key("seed", Type::Any, SENT),
    key("presence_penalty", Type::Any, SENT),
    key("frequency_penalty", Type::Any, SENT),
    key("tools", Type::Any, SENT),
    key("tool_choice", Type::Any, SENT),
    key("reasoning_effort", Type::Any, SENT),
    key("top_k", Type::Any, SENT),
    key("n", Type::Any, SENT),
    key("user", Type::Any, SENT),
    key("logprobs", Type::Any, SENT),
    key("top_logprobs", Type::Any, SENT),
    key("logit_bias", Type::Any, SENT),
];

/// The timeout of an answer. This key is valid only in `inputs` of an action.
pub(crate) const ANSWER_TIME: Key = key("timeout", Type::Any, "seconds for one answer; default 300");

const SENT: &str = "sent unchanged";
