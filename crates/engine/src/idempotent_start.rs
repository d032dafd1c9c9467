//! Starts runs with an idempotency key of the caller: however often the same request arrives, it starts one run. A hash
//! of the key is part of the run's id, so the store enforces this by refusing a second run with the id.

use super::{Bundle, Engine, EngineError, StartOptions, Workflow, run_name};
use crate::scheduler::ScheduleError;
use std::collections::BTreeMap;
use std::time::Duration;
use ulid::Ulid;
use windlass_expression::Value;
use windlass_model::model::{Name, sha256_of_parts};
use windlass_store::{RunHeader, StoreError};
use windlass_value::{first_chars, hex};

/// The label of a run that was started with a key. It has a hash of the request.
pub const REQUEST_LABEL: &str = "windlass.request";

/// The label with the id of the request that started a run with an id of the caller, and a hash of the request. Reports
/// do not contain it.
pub const START_LABEL: &str = "windlass.start";

/// Prefix of the labels that only Windlass may set.
const RESERVED: &str = "windlass.";

/// Maximum number of labels of a run. Labels are limited because lists of runs contain the labels of all runs.
const MAX_LABELS: usize = 100;
/// Maximum length of the name of a label, in bytes.
const MAX_LABEL_NAME: usize = 128;
/// Maximum length of the text of a label, in bytes.
const MAX_LABEL_TEXT: usize = 4096;
/// Maximum size of all labels of a run, in bytes. It is small because runs remain in the lists after their end.
const MAX_LABEL_BYTES: usize = 16 << 10;

/// Checks that a caller sets no labels that are reserved for Windlass, and that the labels are within the limits.
///
/// # Errors
/// Returns [`EngineError::Input`] with the refused label.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), EngineError> {
    let too_large = |(name, text): &(&String, &String)| {
        !(1..=MAX_LABEL_NAME).contains(&name.len()) || text.len() > MAX_LABEL_TEXT
    };
    if labels.len() > MAX_LABELS || labels.iter().any(|label| too_large(&label)) {
        return Err(EngineError::Input(format!(
            "a run has {MAX_LABELS} labels at most, a name of 1 to {MAX_LABEL_NAME} bytes each, and \
             {MAX_LABEL_TEXT} bytes of text"
        )));
    }
    let bytes = labels.iter().map(|(name, text)| name.len() + text.len());
    if bytes.sum::<usize>() > MAX_LABEL_BYTES {
        return Err(EngineError::Input(format!(
            "the labels of a run have {MAX_LABEL_BYTES} bytes at most, all together"
        )));
    }
    match labels.keys().find(|name| name.starts_with(RESERVED)) {
        None => Ok(()),
        Some(name) => Err(EngineError::Input(format!(
            "the label `{name}` cannot be given: those that begin with `{RESERVED}` are Windlass's own"
        ))),
    }
}

/// Maximum number of lookups of the run. Several may be needed: when the second of two equal requests arrives, the run
/// of the first one may not be durable yet.
const TRIES: u32 = 200;

/// Wait between two lookups.
const PAUSE: Duration = Duration::from_millis(10);

/// The run that a request with a key started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub run: Name,
    /// Whether this request started the run. False if an earlier equal request started it.
    pub fresh: bool,
}

/// A start with an idempotency key. Each workflow has its own keys: the same key starts another run of another workflow.
/// A key is known for as long as its run is stored.
#[derive(Clone, Debug)]
pub struct KeyedStart {
    run: String,
    /// A hash of the request.
    request: String,
    labels: BTreeMap<String, String>,
}

impl KeyedStart {
    /// Returns the start of the workflow with this name. Pass its `text` only if the request contained it. Without it, a
    /// repeated request is still equal if the stored workflow was changed or deleted meanwhile.
    #[must_use]
    pub fn new(
        workflow: &str,
        key: &str,
        input: &Value,
        labels: BTreeMap<String, String>,
        text: Option<&Bundle>,
    ) -> Self {
        Self {
            run: keyed_id(workflow, key),
            request: fingerprint(input, &labels, text),
            labels,
        }
    }
}

/// The id of a request that starts a run with an id of the caller.
#[derive(Clone, Debug)]
pub struct RequestId {
    id: String,
    /// A hash of the request, if its caller does not guarantee that the id is unique.
    request: Option<String>,
}

impl RequestId {
    /// Returns an id that no other request has.
    #[must_use]
    pub fn unique(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            request: None,
        }
    }

    /// Returns the id of a request that starts a run of a saved workflow or of a text.
    #[must_use]
    pub fn of_request(
        id: &str,
        saved_as: Option<&str>,
        input: &Value,
        labels: &BTreeMap<String, String>,
        text: Option<&Bundle>,
    ) -> Self {
        let workflow = saved_as.map_or(Value::Null, Value::from);
        let request = Value::from_pairs([("workflow", workflow), ("input", input.clone())]);
        Self {
            id: id.to_owned(),
            request: Some(fingerprint(&request, labels, text)),
        }
    }
}

impl StartOptions {
    /// Stores the id of the request with the run, so that [`Engine::was_started_by`] recognizes a repeated request.
    #[must_use]
    pub fn request_id(self, id: Option<&RequestId>) -> Self {
        match id {
            Some(RequestId { id, request }) => match request {
                Some(request) => self.label(START_LABEL, format!("{id} {request}")),
                None => self.label(START_LABEL, id),
            },
            None => self,
        }
    }
}

impl Engine {
    /// Returns whether the request with this id has started the run. Waits while the start is being stored.
    ///
    /// # Errors
    /// Returns [`EngineError::KeyReused`] if the id was the same and the hash of the request was another one, and store
    /// errors.
    pub async fn was_started_by(
        &self,
        run: &str,
        request_id: Option<&RequestId>,
    ) -> Result<bool, EngineError> {
        let Some(RequestId { id, request }) = request_id else {
            return Ok(false);
        };
        for _ in 0..TRIES {
            if let Some(header) = self.known_header(run)? {
                let started_by = header.labels.get(START_LABEL);
                let Some(rest) = started_by.and_then(|by| by.strip_prefix(&**id)) else {
                    return Ok(false);
                };
                return match (rest.strip_prefix(' '), request) {
                    (None, _) => Ok(rest.is_empty()),
                    (Some(first), _) if first.len() != HASH_LENGTH => Ok(false),
                    (Some(first), Some(request)) if first != request => {
                        Err(EngineError::KeyReused(header.id))
                    }
                    (Some(_), _) => Ok(true),
                };
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(false)
    }

    fn known_header(&self, run: &str) -> Result<Option<RunHeader>, EngineError> {
        match self.inspector().header(run) {
            Ok(header) => Ok(Some(header)),
            Err(EngineError::Store(StoreError::UnknownRun(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the run that an earlier equal request with this key started. `None` if no run with this key is stored.
    ///
    /// # Errors
    /// Returns [`EngineError::KeyReused`] if the earlier request differs, and store errors.
    pub fn keyed_run(&self, start: &KeyedStart) -> Result<Option<Started>, EngineError> {
        match self.known_header(&start.run)? {
            Some(header) if header.labels.get(REQUEST_LABEL) == Some(&start.request) => {
                Ok(Some(Started {
                    run: header.id,
                    fresh: false,
                }))
            }
            Some(header) => Err(EngineError::KeyReused(header.id)),
            None => Ok(None),
        }
    }

    /// Starts a run, or returns the run that an earlier equal request with this key started.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::keyed_run`] and of [`Engine::start_with`].
    pub async fn start_once(
        &self,
        workflow: &Workflow,
        input: Value,
        start: &KeyedStart,
    ) -> Result<Started, EngineError> {
        for _ in 0..TRIES {
            // Look up the run before starting one, so that it is found even if the engine can start no more runs.
            if let Some(started) = self.keyed_run(start)? {
                return Ok(started);
            }
            let mut labels = start.labels.clone();
            labels.insert(REQUEST_LABEL.to_owned(), start.request.clone());
            let options = StartOptions {
                id: Some(start.run.clone()),
                labels,
            };
            match self.launch(workflow, input.clone(), options).await {
                Ok(run) => return Ok(Started { run, fresh: true }),
                // Another request with this key is being written to the store. Wait until its run can be looked up.
                Err(EngineError::Schedule(ScheduleError::Exists(_))) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        let run = Name::from(&*start.run);
        Err(EngineError::Schedule(ScheduleError::Exists(run)))
    }
}

/// Returns the id of the run for a key.
fn keyed_id(workflow: &str, key: &str) -> String {
    let digest = sha256_of_parts(&[workflow.as_bytes(), key.as_bytes()]);
    let (first, _) = digest.split_at(16);
    let number = first
        .iter()
        .fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    format!("{}-{}", run_name(workflow), Ulid(number))
}

/// Length of the hash of a request, in characters.
const HASH_LENGTH: usize = 32;

fn fingerprint(input: &Value, labels: &BTreeMap<String, String>, text: Option<&Bundle>) -> String {
    let labels = serde_json::to_string(labels).unwrap_or_default();
    let input = input.to_json();
    let mut parts = vec![input.as_bytes(), labels.as_bytes()];
    for file in text.into_iter().flat_map(|bundle| &bundle.files) {
        parts.extend([file.path.as_bytes(), file.text.as_bytes()]);
    }
    first_chars(&hex(&sha256_of_parts(&parts)), HASH_LENGTH).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_run_of_one_workflow() {
        assert_eq!(keyed_id("sync", "a"), keyed_id("sync", "a"));
        assert_ne!(keyed_id("sync", "a"), keyed_id("sync", "b"));
        assert_ne!(keyed_id("a", "bc"), keyed_id("ab", "c"));
        assert!(keyed_id("my flow", &"x".repeat(10_000)).starts_with("my-flow-"));
    }

    #[test]
    fn another_input_is_another_request() {
        let none = BTreeMap::new();
        let one = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let input = Value::from(1_i64);
        assert_eq!(
            fingerprint(&input, &none, None),
            fingerprint(&input, &none, None)
        );
        assert_ne!(
            fingerprint(&input, &none, None),
            fingerprint(&input, &one, None)
        );
        assert_ne!(
            fingerprint(&input, &none, None),
            fingerprint(&Value::Null, &none, None)
        );
    }
}
