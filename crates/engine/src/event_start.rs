//! Runs that events start: signed requests to a webhook, and new files in a folder. Each event has a key, so that a
//! repeated one starts no second run.

use super::{Engine, EngineError, Started, Workflow};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use windlass_actions::{check_webhook, fits_pattern};
use windlass_expression::{Object, Value};
use windlass_model::model::{Name, WatchedFolder};
use windlass_value::time::Timestamp;

/// A request to a webhook.
pub struct Delivery<'r> {
    /// Its headers, with names in lower case. Of several of one name, the first.
    pub headers: BTreeMap<String, String>,
    pub body: &'r [u8],
    /// What is behind the question mark, by name.
    pub query: BTreeMap<String, String>,
}

/// The saved workflows that watch a folder, by name.
pub type WatchingWorkflows = BTreeMap<Name, Arc<Workflow>>;

/// The files that were seen in folders: by workflow and path the size and the time of the last change.
#[derive(Debug, Default)]
pub struct SeenFiles(BTreeMap<Name, Files>);

type Files = BTreeMap<PathBuf, Seen>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    size: u64,
    modified_ms: u128,
    is_started: bool,
}

impl Engine {
    /// Starts a run of a saved workflow for a request to its webhook. A repeated delivery finds its run.
    ///
    /// # Errors
    /// [`EngineError::NoWebhook`]: no workflow of this name has one; [`EngineError::Unsigned`]; those of
    /// [`Engine::start_once`].
    pub async fn start_by_webhook(
        &self,
        name: &str,
        delivery: &Delivery<'_>,
        now: Timestamp,
    ) -> Result<Started, EngineError> {
        let missing = || EngineError::NoWebhook(name.to_owned());
        let workflow = self.workflow(name)?.ok_or_else(missing)?;
        let webhook = workflow.program().event_triggers.webhook.clone();
        let webhook = webhook.ok_or_else(missing)?;
        let sources = self.launcher.workflows.registry.secret_sources();
        let unreadable = |why: String| EngineError::Unsigned(why);
        let secret = sources.read(&webhook.secret).await.map_err(unreadable)?;
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
            let why = format!("the server lacks the secret `{}`", webhook.secret);
            return Err(EngineError::Unsigned(why));
        };
        let header = |name: &str| delivery.headers.get(name).map(String::as_str);
        let id = check_webhook(webhook.signature, &secret, header, delivery.body, now)
            .map_err(EngineError::Unsigned)?;
        let text = String::from_utf8_lossy(delivery.body);
        let body = Value::from_json(&text).unwrap_or_else(|_| Value::text(text));
        let members = [
            ("body", body),
            ("headers", texts(&delivery.headers)),
            ("query", texts(&delivery.query)),
        ];
        self.start_by_event(&workflow, &format!("webhook {id}"), members)
            .await
    }

    /// The saved workflows that watch a folder. Blocks.
    ///
    /// # Errors
    /// Store errors.
    pub fn watching_workflows(&self) -> Result<WatchingWorkflows, EngineError> {
        let (mut after, mut watching) = (None, WatchingWorkflows::new());
        loop {
            let page = self.saved_page(&mut after)?;
            if page.is_empty() {
                return Ok(watching);
            }
            for stored in page {
                if let Ok(Some(workflow)) = self.workflow(&stored.name)
                    && workflow.program().event_triggers.folder.is_some()
                {
                    watching.insert(stored.name, workflow);
                }
            }
        }
    }

    /// Starts runs for the new files in the folders of these workflows. A file counts once it has not changed since the
    /// last look.
    pub async fn start_by_files(&self, watching: &WatchingWorkflows, seen: &mut SeenFiles) {
        seen.0.retain(|name, _| watching.contains_key(name));
        for (name, workflow) in watching {
            let Some(folder) = workflow.program().event_triggers.folder.clone() else {
                continue;
            };
            let path = folder.path.clone();
            let read = tokio::task::spawn_blocking(move || files_in(&folder)).await;
            let files = match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(files) => files,
                Err(error) => {
                    tracing::warn!(workflow = %name, folder = path, %error, "the folder cannot be read");
                    continue;
                }
            };
            let earlier = seen.0.remove(name).unwrap_or_default();
            let files = self.start_in_folder(workflow, files, &earlier).await;
            seen.0.insert(name.clone(), files);
        }
    }

    async fn start_in_folder(
        &self,
        workflow: &Workflow,
        mut files: Files,
        earlier: &Files,
    ) -> Files {
        for (path, file) in &mut files {
            let Some(earlier) = earlier.get(path).filter(|earlier| earlier.same(*file)) else {
                continue;
            };
            file.is_started = earlier.is_started;
            if file.is_started {
                continue;
            }
            match self.start_for_file(workflow, path, *file).await {
                Ok(_) => file.is_started = true,
                // It is tried again with the next look.
                Err(error) => {
                    let name = &workflow.program().name;
                    tracing::warn!(workflow = %name, file = %path.display(), %error, "no run starts for a file");
                }
            }
        }
        files
    }

    async fn start_for_file(
        &self,
        workflow: &Workflow,
        path: &Path,
        file: Seen,
    ) -> Result<Started, EngineError> {
        let shown = path.to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let key = format!("file {shown} {} {}", file.size, file.modified_ms);
        let size = i64::try_from(file.size).unwrap_or(i64::MAX);
        let members = [
            ("path", Value::text(shown)),
            ("name", Value::text(name)),
            ("size", Value::Int(size)),
        ];
        self.start_by_event(workflow, &key, members).await
    }

    /// The run gets those members that its workflow declares as inputs; all of them if it declares none.
    async fn start_by_event<const N: usize>(
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
        let started = self.start_once(workflow, Value::object(input), key, BTreeMap::new(), None);
        match started.await {
            // Only the signed part identifies a delivery: other headers may differ in a repetition.
            Err(EngineError::KeyReused(run)) => Ok(Started { run, fresh: false }),
            other => other,
        }
    }
}

impl Seen {
    fn same(self, other: Self) -> bool {
        self.size == other.size && self.modified_ms == other.modified_ms
    }
}

/// The regular files in a folder whose names fit.
fn files_in(folder: &WatchedFolder) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(&folder.path)? {
        let entry = entry?;
        if !fits_pattern(&folder.pattern, &entry.file_name().to_string_lossy()) {
            continue;
        }
        // A file that was removed meanwhile is none.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            let file = Seen {
                size: metadata.len(),
                modified_ms: modified.as_millis(),
                is_started: false,
            };
            files.insert(entry.path(), file);
        }
    }
    Ok(files)
}

fn texts(members: &BTreeMap<String, String>) -> Value {
    Value::from_pairs(
        members
            .iter()
            .map(|(name, text)| (name.as_str(), Value::text(text))),
    )
}
