//! Starting a run under a key of the caller's: however often the same request comes, there is one
//! run. The key is part of the run's id, so that the store itself keeps the promise.

use super::{Bundle, Engine, EngineError, StartOptions, Workflow, run_name};
use crate::scheduler::ScheduleError;
use std::collections::BTreeMap;
use std::time::Duration;
use ulid::Ulid;
use windlass_expression::Value;
use windlass_model::model::{Name, sha256_of_parts};
use windlass_store::StoreError;
use windlass_value::{first_chars, hex};

/// The label that holds what a keyed run was started with, as a hash.
pub const REQUEST_LABEL: &str = "windlass.request";

/// What the names of labels begin with that only Windlass gives.
const RESERVED: &str = "windlass.";

/// What labels may have, in number and in bytes: each list of runs has those of all its runs.
const MAX_LABELS: usize = 100;
const MAX_LABEL_NAME: usize = 128;
const MAX_LABEL_TEXT: usize = 4096;
/// The same of all together: what has ended stays in each list.
const MAX_LABEL_BYTES: usize = 16 << 10;

/// Checks that the labels of a caller are the caller's own, and no more than labels may be.
///
/// # Errors
/// [`EngineError::Input`] with the label that is not.
pub fn own_labels(labels: &BTreeMap<String, String>) -> Result<(), EngineError> {
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

/// The first of two equal requests may not be durable yet when the second comes.
const TRIES: u32 = 200;

/// Between two looks for it.
const PAUSE: Duration = Duration::from_millis(10);

/// A run that a request has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub run: Name,
    /// Whether this request began it.
    pub fresh: bool,
}

impl Engine {
    /// Starts a run, or finds the one that the same request started before. Keys are those of a
    /// workflow: the same key begins another run of another workflow. A key is known for as long
    /// as its run is stored. `text` is the workflow's text if the request contained it: the text of a
    /// stored workflow may have changed by the time that the request is repeated.
    ///
    /// # Errors
    /// [`EngineError::KeyReused`] when the input, the labels or the `text` differ; those of
    /// [`Engine::start_with`].
    pub async fn start_once(
        &self,
        workflow: &Workflow,
        input: Value,
        key: &str,
        labels: BTreeMap<String, String>,
        text: Option<&Bundle>,
    ) -> Result<Started, EngineError> {
        let id = keyed_id(&workflow.program().name, key);
        let request = fingerprint(&input, &labels, text);
        let mut marked = labels;
        marked.insert(REQUEST_LABEL.to_owned(), request.clone());
        for _ in 0..TRIES {
            // First, so that what is there is found also when nothing more is started.
            match self.inspector().header(&id) {
                Ok(header) if header.labels.get(REQUEST_LABEL) == Some(&request) => {
                    return Ok(Started {
                        run: header.id,
                        fresh: false,
                    });
                }
                Ok(header) => return Err(EngineError::KeyReused(header.id)),
                Err(EngineError::Store(StoreError::UnknownRun(_))) => {}
                Err(error) => return Err(error),
            }
            let options = StartOptions {
                id: Some(id.clone()),
                labels: marked.clone(),
            };
            match self.launch(workflow, input.clone(), options).await {
                Ok(run) => return Ok(Started { run, fresh: true }),
                // An equal request is on its way into the store.
                Err(EngineError::Schedule(ScheduleError::Exists(_))) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Schedule(ScheduleError::Exists(Name::from(id))))
    }
}

/// The id of the run that a key begins.
fn keyed_id(workflow: &str, key: &str) -> String {
    let digest = sha256_of_parts(&[workflow.as_bytes(), key.as_bytes()]);
    let (first, _) = digest.split_at(16);
    let number = first
        .iter()
        .fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    format!("{}-{}", run_name(workflow), Ulid(number))
}

fn fingerprint(input: &Value, labels: &BTreeMap<String, String>, text: Option<&Bundle>) -> String {
    let labels = serde_json::to_string(labels).unwrap_or_default();
    let input = input.to_json();
    let mut parts = vec![input.as_bytes(), labels.as_bytes()];
    for file in text.into_iter().flat_map(|bundle| &bundle.files) {
        parts.extend([file.path.as_bytes(), file.text.as_bytes()]);
    }
    first_chars(&hex(&sha256_of_parts(&parts)), 32).to_owned()
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
