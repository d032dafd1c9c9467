//! The keys of a question to a language model, in Loom and in The Edge Agent (docs/reference/actions.md#ai).

use super::{Key, TEXT, Type, key};

pub(crate) const MODEL: &[Key] = &[
    key("prompt", Type::Any, "the question; other values than text become JSON")
        .reference("the question; a value that is not text becomes JSON"),
    key("messages", Type::Any, "instead of `prompt`: a list of {role, content}")
        .reference("a list of `{role, content}`, in place of `prompt`"),
    key("system", Type::Any, "the system message"),
    key("model", TEXT, "required for HTTP; else OPENAI_MODEL")
        .reference("the model; required over HTTP, unless `OPENAI_MODEL` or, on Azure, `AZURE_OPENAI_DEPLOYMENT` is set"),
    key("temperature", Type::Any, "default 0.7; null leaves it to the model")
        .reference("default 0.7; with null the model decides"),
    key("provider", TEXT, "openai, azure, ollama, shell, or auto (default)")
        .reference("`openai`, `azure`, `ollama`, `shell`, or `auto` (default): see below"),
    key("base_url", TEXT, "address of the API; default: that of the provider")
        .reference("the server. Default: `OPENAI_BASE_URL`, `AZURE_OPENAI_ENDPOINT` or `OLLAMA_API_BASE`, or else `https://api.openai.com/v1` or Ollama on this machine"),
    key("api_base", TEXT, "the same as base_url")
        .reference("the same as `base_url`"),
    key("api_key", TEXT, "accepts a secret of the workflow")
        .reference("the key; it accepts a secret of the workflow. Default: `OPENAI_API_KEY`, `AZURE_OPENAI_API_KEY`, `OLLAMA_API_KEY`"),
    key("api_key_file", TEXT, "a file with the key")
        .reference("a file with the key"),
    key("api_version", TEXT, "of Azure")
        .reference("of Azure; default: `OPENAI_API_VERSION`"),
    key("max_retries", Type::Any, "retries of transient faults within an attempt; default 0")
        .reference("retries of transient faults within the attempt; default 0. They wait for `Retry-After`, or 0.5 s, 1 s, 2 s, …; if the wait is longer than 60 s, the retry policy decides"),
    key("command", Type::Any, "for `shell`: the command that answers")
        .reference("for `shell`: a list of words, a text for `sh`, or `{command, args, env}`. The command gets the messages on standard input (`System: …` first), and prints the answer on standard output"),
    key("args", Type::Any, "for `shell`: its arguments"),
    key("shell_provider", TEXT, "for `shell`: the name of a provider")
        .reference("for `shell`, in place of `command`: the name of a provider"),
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
pub(crate) const MODEL_TIMEOUT: Key = key("timeout", Type::Any, "seconds for one answer; default 300")
    .reference("seconds for one answer; default 300. In Loom files, `timeout` next to `type` is a duration, which limits the attempt as well");

const SENT: &str = "sent unchanged";
