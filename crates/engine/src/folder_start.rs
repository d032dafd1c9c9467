//! Starts runs for new files in the folders that saved workflows watch.

use super::{Engine, EngineError, ErrorCode, Started, Workflow};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use windlass_actions::fits_pattern;
use windlass_expression::Value;
use windlass_model::model::{Name, WatchedFolder};

/// The saved workflows that watch a folder, by name.
pub type WatchingWorkflows = BTreeMap<Name, Arc<Workflow>>;

/// The files that were found in the watched folders, by workflow.
#[derive(Debug, Default)]
pub struct SeenFiles(BTreeMap<Name, SeenFolder>);

#[derive(Debug, Default)]
struct SeenFolder {
    files: Files,
    /// Why the last read of the folder failed. `None` if it succeeded.
    failed: Option<String>,
}

type Files = BTreeMap<PathBuf, SeenFile>;

#[derive(Clone, Debug)]
struct SeenFile {
    version: FileVersion,
    progress: Progress,
}

/// The version of a file. If one of these values changes, the file is treated as a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    size: u64,
    modified_ms: u128,
}

/// How far the start of a run for a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// The file was found, but may still change.
    Seen,
    /// The start failed for this reason, and is tried again.
    Failed(String),
    /// A run was started for the file, or no run will be started for it.
    Handled,
}

impl Engine {
    /// Returns the saved workflows that watch a folder. Blocks.
    ///
    /// # Errors
    /// Returns store errors.
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

    /// Starts runs for the new files in the folders of these workflows. A run is started for a file when the file has
    /// not changed since the last call: before that, it may be incomplete.
    pub async fn start_by_files(&self, watching: &WatchingWorkflows, seen: &mut SeenFiles) {
        seen.0.retain(|name, _| watching.contains_key(name));
        for (name, workflow) in watching {
            let Some(folder) = workflow.program().event_triggers.folder.clone() else {
                continue;
            };
            let earlier = seen.0.entry(name.clone()).or_default();
            let path = folder.path.clone();
            let read = tokio::task::spawn_blocking(move || files_in(&folder)).await;
            let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
            let files = match read {
                Ok(files) => files,
                Err(error) => {
                    let why = error.to_string();
                    if earlier.failed.as_ref() != Some(&why) {
                        tracing::warn!(workflow = %name, folder = path, why, "the folder cannot be read");
                    }
                    earlier.failed = Some(why);
                    continue;
                }
            };
            let files = self
                .start_in_folder(name, workflow, files, &earlier.files)
                .await;
            *earlier = SeenFolder {
                files,
                failed: None,
            };
        }
    }

    async fn start_in_folder(
        &self,
        saved_as: &str,
        workflow: &Workflow,
        found: BTreeMap<PathBuf, FileVersion>,
        earlier: &Files,
    ) -> Files {
        let (mut files, mut is_full) = (Files::new(), false);
        for (path, version) in found {
            let known = earlier.get(&path).filter(|known| known.version == version);
            let progress = match known.map(|known| &known.progress) {
                None => Progress::Seen,
                Some(Progress::Handled) => Progress::Handled,
                Some(progress) if is_full => progress.clone(),
                Some(progress) => {
                    let started = self
                        .start_for_file(saved_as, workflow, &path, version)
                        .await;
                    let error = started.err();
                    is_full = error.as_ref().is_some_and(concerns_all);
                    error.map_or(Progress::Handled, |error| {
                        let next = Progress::Failed(error.to_string());
                        if next != *progress {
                            tracing::warn!(workflow = saved_as, file = %path.display(), %error, "no run starts for a file");
                        }
                        match error.code() {
                            // Do not try again: the workflow will not accept the file later, either.
                            ErrorCode::RefusedInput => Progress::Handled,
                            _ => next,
                        }
                    })
                }
            };
            files.insert(path, SeenFile { version, progress });
        }
        files
    }

    async fn start_for_file(
        &self,
        saved_as: &str,
        workflow: &Workflow,
        path: &Path,
        version: FileVersion,
    ) -> Result<Started, EngineError> {
        let (Some(shown), Some(name)) = (path.to_str(), path.file_name().and_then(OsStr::to_str))
        else {
            let why = "the path of the file is not valid UTF-8";
            return Err(EngineError::Input(why.to_owned()));
        };
        let FileVersion { size, modified_ms } = version;
        let key = format!("file {saved_as} {shown} {size} {modified_ms}");
        let members = [
            ("path", Value::text(shown)),
            ("name", Value::text(name)),
            ("size", Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
        ];
        self.start_by_event(workflow, &key, members).await
    }
}

/// Returns whether the error would occur for every other file, too. Then no other file is tried.
fn concerns_all(error: &EngineError) -> bool {
    matches!(
        error.code(),
        ErrorCode::Busy | ErrorCode::Store | ErrorCode::Unavailable
    )
}

/// Returns the regular files in a folder whose names match its pattern.
fn files_in(folder: &WatchedFolder) -> io::Result<BTreeMap<PathBuf, FileVersion>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(&folder.path)? {
        let entry = entry?;
        if !fits_pattern(&folder.pattern, &entry.file_name().to_string_lossy()) {
            continue;
        }
        // Ignore a file that was removed meanwhile.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            let version = FileVersion {
                size: metadata.len(),
                modified_ms: modified.as_millis(),
            };
            files.insert(entry.path(), version);
        }
    }
    Ok(files)
}
