//! Reads the settings of an `ai` action from its inputs. Environment variables have the defaults: `OPENAI_API_KEY`,
//! `OPENAI_BASE_URL`, `OPENAI_MODEL`, and those of Azure and Ollama.

use super::command::Command;
use crate::execution_context::resolved;
use crate::http::parse_url;
use crate::inputs::{Inputs, invalid, mismatch, scalar};
use std::io::Read;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::model::{ANSWER_ERRORS, Fault, MODEL_OPTIONS, MODEL_PROVIDERS, MODEL_RETRIES};

const NO_MODEL: &str = "`model` is missing: or set OPENAI_MODEL";
const OPENAI: &str = "https://api.openai.com/v1";
const OLLAMA: &str = "http://localhost:11434";
const AZURE_VERSION: &str = "2024-10-21";

/// The default `temperature`.
const TEMPERATURE: f64 = 0.7;

/// The default timeout of one answer, in seconds.
const TIMEOUT: f64 = 300.0;

const MAX_KEY: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Azure,
    Ollama,
}

pub(super) enum Target {
    Http {
        provider: Provider,
        url: String,
        key: Option<String>,
    },
    Command(Command),
}

pub(super) struct Settings {
    pub(super) target: Target,
    pub(super) model: String,
    /// The messages of the conversation. Each is `{role, content}`.
    pub(super) messages: Vec<Value>,
    /// The temperature. `None`: the model's own default.
    pub(super) temperature: Option<f64>,
    /// Other parameters for the model, which are sent unchanged.
    pub(super) extra_parameters: Object,
    pub(super) timeout: Duration,
    pub(super) max_retries: u32,
}

impl Settings {
    pub(super) fn read(inputs: &Value) -> Result<Self, Fault> {
        let from = Inputs::from_value("inputs", inputs)?;
        let named = from.text("model")?.map(str::to_owned);
        let (target, model) = target(from, named)?;
        let temperature = match inputs.get("temperature") {
            None => Some(TEMPERATURE),
            Some(Value::Null) => None,
            Some(value) => Some(number("temperature", value)?),
        };
        let timeout = from.get("timeout").or_else(|| timeout_of_provider(from));
        let timeout = timeout.map_or(Ok(TIMEOUT), |value| number("timeout", value))?;
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|_| invalid("`timeout` is not a number of seconds"))?;
        let retries = match from.get("max_retries") {
            None => 0,
            Some(value) => whole(value)
                .filter(|tries| MODEL_RETRIES.contains(tries))
                .ok_or_else(|| {
                    let (first, last) = (MODEL_RETRIES.start(), MODEL_RETRIES.end());
                    let wanted = format!("a whole number from {first} to {last}");
                    mismatch("max_retries", &wanted, value)
                })?,
        };
        let extra_parameters = from
            .all()
            .filter(|(key, value)| MODEL_OPTIONS.contains(key) && !value.is_null());
        Ok(Self {
            target,
            model,
            messages: messages(from)?,
            temperature,
            extra_parameters: extra_parameters
                .map(|(key, value)| (key.into(), value.clone()))
                .collect(),
            timeout,
            max_retries: u32::try_from(retries).unwrap_or(0),
        })
    }

    pub(super) fn key(&self) -> Option<&str> {
        match &self.target {
            Target::Http { key, .. } => key.as_deref(),
            Target::Command(_) => None,
        }
    }
}

/// Returns the URL to which a request to a model with these inputs is sent. `None` if it is not sent over HTTP.
pub(super) fn address(inputs: &Value) -> Option<reqwest::Url> {
    let mut inputs = inputs.as_object()?.clone();
    // Set any key, so that a file with the key is not read: the URL does not depend on the key.
    inputs.insert("api_key".into(), Value::text("key"));
    let inputs = Value::object(inputs);
    let from = Inputs::from_value("inputs", &inputs).ok()?;
    let named = from.text("model").ok()?.map(str::to_owned);
    match target(from, named).ok()?.0 {
        Target::Http { url, .. } => reqwest::Url::parse(&url).ok(),
        Target::Command(_) => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    value
        .as_int()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Reads a number. A text that is a number is accepted, because templates return text.
fn number(key: &str, value: &Value) -> Result<f64, Fault> {
    let text = scalar(key, value)?.unwrap_or_default();
    match (value, text.trim().parse::<f64>()) {
        (Value::Bool(_), _) | (_, Err(_)) => Err(mismatch(key, "a number", value)),
        (_, Ok(number)) => Ok(number),
    }
}

/// Returns the timeout that `shell_providers` sets for the provider in use.
fn timeout_of_provider(from: Inputs<'_>) -> Option<&Value> {
    let name = from.get("shell_provider")?.as_str()?;
    from.get("shell_providers")?.get(name)?.get("timeout")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn target(from: Inputs<'_>, named: Option<String>) -> Result<(Target, String), Fault> {
    let base = from.text("base_url")?.or(from.text("api_base")?);
    let base = base.map(|base| base.trim_end_matches('/').to_owned());
    let command = from.get("command").or_else(|| from.get("shell_provider"));
    let provider = from.text("provider")?.unwrap_or("auto").to_lowercase();
    let prefix = |prefix: &str| named.as_deref().and_then(|name| name.strip_prefix(prefix));
    let by_environment = provider == "auto"
        && base.is_none()
        && prefix("openai/").is_none()
        && variable("OLLAMA_API_BASE").is_some();
    let provider = match provider.as_str() {
        "auto" if command.is_some() => "shell",
        "auto" if prefix("ollama/").is_some() => "ollama",
        "auto" if prefix("azure/").is_some() => "azure",
        // If the inputs name a server (`base`), the variables of Ollama and Azure are ignored: the question must not be
        // sent to another server.
        "auto" if by_environment => "ollama",
        "auto" if base.is_none() && only_azure_is_set() => "azure",
        "auto" => "openai",
        other => other,
    };
    let bare = |provider: &str| {
        let model = prefix(&format!("{provider}/")).map(str::to_owned);
        model.or_else(|| named.clone())
    };
    match provider {
        "openai" => {
            let base = base.or_else(|| variable("OPENAI_BASE_URL"));
            let base = base.unwrap_or_else(|| OPENAI.to_owned());
            let base = base.trim_end_matches('/');
            server(from, "OPENAI_BASE_URL", base)?;
            let model = bare("openai").or_else(|| variable("OPENAI_MODEL"));
            let model = Some(model.ok_or_else(no_model)?);
            let key = key(from, "OPENAI_API_KEY")?;
            if key.is_none() && base == OPENAI {
                return Err(invalid(
                    "the model has no key: set OPENAI_API_KEY, or `api_key_file`",
                ));
            }
            let url = format!("{base}/chat/completions");
            http(Provider::OpenAi, url, key, model)
        }
        "azure" => {
            let base = base.or_else(|| variable("AZURE_OPENAI_ENDPOINT"));
            let base =
                base.ok_or_else(|| invalid("`api_base` is missing: or set AZURE_OPENAI_ENDPOINT"))?;
            let model = bare("azure");
            let deployment = variable("AZURE_OPENAI_DEPLOYMENT").or_else(|| model.clone());
            let deployment = deployment.ok_or_else(no_model)?;
            let version = from.text("api_version")?.map(str::to_owned);
            let version = version.or_else(|| variable("OPENAI_API_VERSION"));
            let version = version.unwrap_or_else(|| AZURE_VERSION.to_owned());
            let mut url = server(from, "AZURE_OPENAI_ENDPOINT", &base)?;
            if let Ok(mut path) = url.path_segments_mut() {
                let parts = ["openai", "deployments", &deployment, "chat", "completions"];
                path.pop_if_empty().extend(parts);
            }
            url.query_pairs_mut().append_pair("api-version", &version);
            let key = key(from, "AZURE_OPENAI_API_KEY")?;
            http(
                Provider::Azure,
                url.to_string(),
                key,
                model.or(Some(deployment)),
            )
        }
        "ollama" => {
            let base = base.or_else(|| variable("OLLAMA_API_BASE"));
            let base = base.unwrap_or_else(|| OLLAMA.to_owned());
            let base = base.trim_end_matches('/');
            server(from, "OLLAMA_API_BASE", base)?;
            let key = key(from, "OLLAMA_API_KEY")?;
            // Below `/v1`, Ollama supports OpenAI's protocol.
            let (protocol, url) = match (base.ends_with("/v1"), by_environment) {
                (true, _) => (Provider::OpenAi, format!("{base}/chat/completions")),
                (false, true) => (Provider::OpenAi, format!("{base}/v1/chat/completions")),
                (false, false) => (Provider::Ollama, format!("{base}/api/chat")),
            };
            http(protocol, url, key, bare("ollama"))
        }
        "shell" => {
            let command = command.ok_or_else(|| invalid("`command` is missing"))?;
            Ok((
                Target::Command(Command::read(command, from)?),
                named.unwrap_or_default(),
            ))
        }
        other => Err(invalid(format!(
            "`provider` must be one of {}, not {other:?}",
            MODEL_PROVIDERS.join(", ")
        ))),
    }
}

/// Reads the address of a server. Without a key in the inputs, it is the value of an environment variable.
fn server(from: Inputs<'_>, name: &str, base: &str) -> Result<reqwest::Url, Fault> {
    let mut keys = ["base_url", "api_base"].into_iter();
    let key = keys.find(|key| from.get(key).is_some());
    parse_url(key.unwrap_or(name), base)
}

fn only_azure_is_set() -> bool {
    variable("AZURE_OPENAI_ENDPOINT").is_some()
        && variable("AZURE_OPENAI_API_KEY").is_some()
        && variable("OPENAI_API_KEY").is_none()
        && variable("OPENAI_BASE_URL").is_none()
}

fn http(
    provider: Provider,
    url: String,
    key: Option<String>,
    model: Option<String>,
) -> Result<(Target, String), Fault> {
    let model = model.ok_or_else(no_model)?;
    Ok((Target::Http { provider, url, key }, model))
}

fn no_model() -> Fault {
    invalid(NO_MODEL)
}

/// Returns the answer that `llm.call` of The Edge Agent returns in place of this fault, if the inputs request that.
/// `llm.call` raises an error if a server fails. If a command fails or the model is missing, it returns an answer with
/// the error.
pub(super) fn as_answer(inputs: &Value, fault: &Fault) -> Option<Value> {
    let is = |key: &str, wanted: Value| inputs.get(key).is_some_and(|value| *value == wanted);
    if !is(ANSWER_ERRORS, Value::Bool(true)) {
        return None;
    }
    let error = match &*fault.message {
        NO_MODEL => {
            let provider = inputs.get("provider").and_then(Value::as_str);
            let provider = provider.filter(|named| *named != "auto");
            let provider = provider.unwrap_or("openai");
            format!("model is required for provider '{provider}'")
        }
        message if is("provider", Value::text("shell")) => message.to_owned(),
        _ => return None,
    };
    Some(Value::from_pairs([
        ("error", Value::text(error)),
        ("success", Value::Bool(false)),
    ]))
}

/// Returns the key from the inputs (a secret), a file, or the environment.
fn key(from: Inputs<'_>, name: &str) -> Result<Option<String>, Fault> {
    if let Some(key) = from.text("api_key")? {
        return Ok(Some(key.to_owned()));
    }
    let Some(path) = from.text("api_key_file")? else {
        return Ok(variable(name));
    };
    let read_fault = |error| invalid(format!("the key in {path} cannot be read: {error}"));
    let file = std::fs::File::open(resolved(path)).map_err(read_fault)?;
    let mut text = String::new();
    file.take(MAX_KEY)
        .read_to_string(&mut text)
        .map_err(read_fault)?;
    match text.trim() {
        "" => Err(invalid(format!("{path} holds no key"))),
        key => Ok(Some(key.to_owned())),
    }
}

/// Returns the messages in the inputs. Without messages, returns the prompt as a message. A text in `system` becomes
/// the first message.
fn messages(from: Inputs<'_>) -> Result<Vec<Value>, Fault> {
    let message = |role: &str, text: String| {
        Value::from_pairs([("role", Value::text(role)), ("content", Value::text(text))])
    };
    let system = from
        .text("system")?
        .map(|text| message("system", text.to_owned()));
    let mut all: Vec<Value> = system.into_iter().collect();
    match (from.get("messages"), from.get("prompt")) {
        (Some(_), Some(_)) => return Err(invalid("`prompt` and `messages` exclude each other")),
        (Some(Value::Array(given)), _) if !given.is_empty() => {
            for (index, one) in given.iter().enumerate() {
                let has_role = one.get("role").is_some_and(|role| role.as_str().is_some());
                if !has_role || one.get("content").is_none() {
                    return Err(invalid(format!(
                        "`messages[{index}]` must have `role` and `content`"
                    )));
                }
            }
            all.extend(given.iter().cloned());
        }
        (Some(Value::Array(_)), _) => return Err(invalid("`messages` is empty")),
        (Some(other), _) => return Err(mismatch("messages", "a list of messages", other)),
        (None, Some(prompt)) => all.push(message("user", prompt.to_text())),
        (None, None) => return Err(invalid("`prompt` or `messages` is missing")),
    }
    Ok(all)
}
