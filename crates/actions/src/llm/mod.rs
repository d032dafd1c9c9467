//! `ai`: a question to a language model (docs/reference/loom.md, docs/reference/tea.md). The question is sent to
//! OpenAI's API, to Azure's variant of it, to Ollama's API, or to a command. The output is `{content, usage,
//! finish_reason}`. The API key is never part of the output: it is masked in the result.

mod command;
mod protocol;
mod settings;

use super::http::Client;
use super::mask::Mask;
use super::process::{Processes, Spec};
use super::secrets::is_hidden_key;
use super::{Attempt, Executor};
use command::Command;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use settings::{Provider, Settings, Target};
use std::sync::Arc;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

/// The first wait between two tries within an attempt. It doubles for each further try.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait between two tries of one attempt. If a server requests a longer wait, the attempt fails, and the
/// action's retry policy decides what follows.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) struct Ai {
    client: Arc<Client>,
    processes: Arc<Processes>,
}

impl Ai {
    pub(super) fn new(client: Arc<Client>, processes: Arc<Processes>) -> Self {
        Self { client, processes }
    }

    /// Asks the model. Makes at most the number of tries that the inputs allow.
    pub(super) async fn ask(&self, inputs: &Value, request: &Request) -> Result<Value, Fault> {
        let outcome = match Settings::read(inputs) {
            Ok(settings) => {
                let hidden = settings.key().filter(|key| is_hidden_key(key));
                let mask = Mask::of(hidden.into_iter());
                mask.outcome(self.tries(&settings, request).await)
            }
            Err(fault) => Err(fault),
        };
        match outcome {
            Err(fault) => settings::as_answer(inputs, &fault).ok_or(fault),
            Ok(answer) => Ok(answer),
        }
    }

    async fn tries(&self, settings: &Settings, request: &Request) -> Result<Value, Fault> {
        let mut wait = FIRST_WAIT;
        for _ in 0..settings.max_retries {
            let fault = match self.once(settings, request).await {
                Err(fault) if fault.transient => fault,
                done => return done,
            };
            let requested = fault.retry_after_ms.map(Duration::from_millis);
            if requested.is_some_and(|requested| requested > LONGEST_WAIT) {
                return Err(fault);
            }
            let pause = requested.unwrap_or(wait);
            tracing::debug!(fault = %fault.kind, ?pause, "the request to the model is sent again");
            tokio::time::sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        self.once(settings, request).await
    }

    async fn once(&self, settings: &Settings, request: &Request) -> Result<Value, Fault> {
        let ask = async {
            match &settings.target {
                Target::Http { provider, url, key } => {
                    let body = protocol::question(*provider, settings);
                    let headers = authorization(*provider, key.as_deref())?;
                    let reply = self.client.post(url, headers, &body, request).await?;
                    protocol::answer(*provider, &reply.body)
                }
                Target::Command(command) => self.command(command, settings, request).await,
            }
        };
        tokio::time::timeout(settings.timeout, ask)
            .await
            .unwrap_or_else(|_| {
                let message = format!("the model took longer than {:?}", settings.timeout);
                Err(Fault::new(fault_kind::TIMEOUT, message).transient())
            })
    }

    async fn command(
        &self,
        command: &Command,
        settings: &Settings,
        request: &Request,
    ) -> Result<Value, Fault> {
        let (words, stdin) = command.with(&protocol::as_text(&settings.messages));
        let mut spec = Spec::new(words, request);
        spec.stdin = stdin;
        let env = command.env.iter();
        spec.env
            .extend(env.map(|(name, value)| (name.clone(), Some(value.clone()))));
        let finished = self.processes.run(spec).await;
        let finished =
            finished.map_err(|error| error.fault("the model's command: ", fault_kind::SHELL))?;
        if finished.code != 0 {
            return Err(finished.fault("the model's command", fault_kind::SHELL));
        }
        let given = finished.stdout.trim();
        let mut answer = Object::new();
        answer.insert("content".into(), Value::text(given));
        answer.insert("usage".into(), Value::object(Object::new()));
        if let Some(name) = &command.named {
            answer.insert("provider".into(), Value::text("shell"));
            answer.insert("shell_provider".into(), Value::text(name));
        }
        Ok(Value::object(answer))
    }
}

impl Executor for Ai {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(self.ask(&request.inputs, request))
    }

    fn destination(&self, request: &Request) -> Option<Url> {
        settings::address(&request.inputs)
    }
}

fn authorization(
    provider: Provider,
    key: Option<&str>,
) -> Result<Vec<(HeaderName, HeaderValue)>, Fault> {
    let Some(key) = key else {
        return Ok(Vec::new());
    };
    let (name, text) = match provider {
        Provider::Azure => (HeaderName::from_static("api-key"), key.to_owned()),
        Provider::OpenAi | Provider::Ollama => (AUTHORIZATION, format!("Bearer {key}")),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| {
        super::inputs::invalid("the key of the model has characters that no header can have")
    })?;
    value.set_sensitive(true);
    Ok(vec![(name, value)])
}
