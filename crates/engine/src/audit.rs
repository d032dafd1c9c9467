//! The audit log: the changes that clients made, with names and addresses. It is a file of JSON lines. The file is next
//! to the store and not in it, so that pruning, restoring and migrating a store do not change the log.
//!
//! A command has two lines. The first line is on the disk before the command is carried out, so nothing is changed
//! without an entry. The second line has the result. If the process is killed between the two lines, the result is
//! `unknown`.

use crate::scheduler::now;
use crate::{Actor, EngineError, ErrorCode};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use tokio::sync::oneshot;
use ulid::Ulid;
use utoipa::ToSchema;
use windlass_store::{StoreError, give_entry_to_owner};
use windlass_value::time::Timestamp;

/// The current file in a state directory.
const FILE: &str = "audit.jsonl";
/// The previous file in a state directory.
const OLD: &str = "audit.jsonl.old";

/// When the current file has this size in bytes (about 80,000 commands), it becomes the previous file.
const MAX_FILE: u64 = 16 << 20;

/// Maximum length of a line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Maximum length of the target of a command, in characters. Longer names of workflows and values are refused anyway.
const MAX_TARGET: usize = 1_024;

/// The result of a command that was carried out.
pub const AUDIT_DONE: &str = "done";

/// A command that changed something, or tried to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Unique id of the entry. A later entry has a greater id, except within the same millisecond.
    pub id: String,
    /// Time when the command began.
    pub at: Timestamp,
    #[serde(flatten)]
    pub actor: Actor,
    /// Name of the command: `start`, `pause`, `put-workflow`, …
    pub action: String,
    /// Target of the command: a run, a workflow, or WORKFLOW/NAME of a value between runs. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Result: `done`, the word of an error such as `unknown-run`, or `unknown` if the server or the connection ended
    /// before the result was known.
    #[serde(default = "unknown")]
    pub result: String,
}

fn unknown() -> String {
    String::from("unknown")
}

/// The second line of a command, with its result.
#[derive(Serialize, Deserialize)]
struct Ending {
    id: String,
    result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Entry(AuditEntry),
    Ending(Ending),
}

/// Selects the entries of a report.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only entries of the actor with this name.
    pub name: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    /// Only entries at this time or later.
    pub since: Option<Timestamp>,
    /// Maximum number of entries. The newest ones are listed.
    pub limit: Option<usize>,
}

impl AuditFilter {
    fn accepts(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        is(&self.name, Some(&entry.actor.name))
            && is(&self.action, Some(&entry.action))
            && is(&self.target, entry.target.as_deref())
            && self.since.is_none_or(|since| entry.at >= since)
    }
}

/// Entries of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    pub entries: Vec<AuditEntry>,
    /// Number of further selected entries, beyond the limit.
    pub more: usize,
}

/// Reads the audit log in a state directory.
///
/// # Errors
/// Returns an error if a file of the log cannot be read.
pub fn audit(state: &Path, filter: &AuditFilter) -> Result<AuditReport, EngineError> {
    let mut read = Entries::default();
    for file in [OLD, FILE] {
        let path = state.join(file);
        read.add(&path).map_err(|error| StoreError::Unopened {
            path: path.display().to_string(),
            error,
        })?;
    }
    let mut report = AuditReport::default();
    for entry in read.list.into_iter().rev() {
        if !filter.accepts(&entry) {
            continue;
        }
        match filter
            .limit
            .is_some_and(|most| report.entries.len() >= most)
        {
            true => report.more += 1,
            false => report.entries.push(entry),
        }
    }
    Ok(report)
}

/// Entries in the order in which they were written.
#[derive(Default)]
struct Entries {
    list: Vec<AuditEntry>,
    /// The positions of the entries in `list`, by the id of the entry.
    places: HashMap<String, usize>,
}

impl Entries {
    fn add(&mut self, path: &Path) -> io::Result<()> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader
                .by_ref()
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line);
            if read? == 0 {
                return Ok(());
            }
            // Ignore a line that cannot be read: a crash may have truncated it.
            match serde_json::from_slice(&line) {
                Ok(Line::Entry(entry)) => {
                    self.places.insert(entry.id.clone(), self.list.len());
                    self.list.push(entry);
                }
                Ok(Line::Ending(ending)) => self.end(ending),
                Err(_) => {}
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        let place = self.places.get(&ending.id);
        if let Some(entry) = place.and_then(|place| self.list.get_mut(*place)) {
            entry.result = ending.result;
            entry.target = ending.target.or(entry.target.take());
        }
    }
}

/// Returns an error if the audit log in a state directory exists and cannot be written.
///
/// # Errors
/// The error of [`AuditLog::begin`].
pub fn check_audit_log(state: &Path) -> Result<(), EngineError> {
    let path = state.join(FILE);
    match OpenOptions::new().append(true).open(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> EngineError {
    let text = format!("the audit log {}: {error}", path.display());
    StoreError::Io(io::Error::new(error.kind(), text)).into()
}

/// The audit log of the process that owns a store. One thread writes the log. Entries that arrive together share one
/// sync.
pub struct AuditLog {
    state: PathBuf,
    /// The channel to the thread. `None` before the first entry, which starts the thread.
    appends: Mutex<Option<mpsc::Sender<Append>>>,
}

/// A line to write.
struct Append {
    line: Vec<u8>,
    /// Whether the line must be on the disk before `done` is sent.
    sync: bool,
    done: oneshot::Sender<Result<(), io::ErrorKind>>,
}

/// A command that has begun and not ended.
#[must_use]
pub struct Audited<'l> {
    log: &'l AuditLog,
    entry: AuditEntry,
}

impl AuditLog {
    /// Opens the log in a state directory. The file is created with the first entry.
    #[must_use]
    pub fn open(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            appends: Mutex::default(),
        }
    }

    /// Sends a line to the thread. The first line starts the thread.
    fn send(&self, append: Append) -> Result<(), io::ErrorKind> {
        let mut appends = self.appends.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match &*appends {
            Some(sender) => sender,
            None => {
                let (sender, lines) = mpsc::channel();
                let path = self.state.join(FILE);
                let thread = std::thread::Builder::new().name(String::from("audit"));
                let started = thread.spawn(move || write_all(&path, &lines));
                started.map_err(|error| error.kind())?;
                appends.insert(sender)
            }
        };
        sender.send(append).map_err(|_| io::ErrorKind::BrokenPipe)
    }

    /// Records that a command begins. When this returns, the entry of the command is on the disk.
    ///
    /// # Errors
    /// Returns an error if the entry cannot be stored. Then the command must not be carried out.
    pub async fn begin(
        &self,
        at: Timestamp,
        actor: Actor,
        action: &str,
        target: Option<&str>,
    ) -> Result<Audited<'_>, EngineError> {
        let entry = AuditEntry {
            id: Ulid::generate().to_string(),
            at,
            actor,
            action: action.to_owned(),
            target: target.map(bounded),
            result: unknown(),
        };
        let stored = self.append(&entry, true).await;
        stored.map_err(|kind| failed(&self.state.join(FILE), &kind.into()))?;
        Ok(Audited { log: self, entry })
    }

    /// Carries out a command between the two lines of its entry. `code` returns the code of an error of the command.
    ///
    /// # Errors
    /// Returns the error of the command, or that of [`Self::begin`].
    pub async fn record<T, E: From<EngineError>>(
        &self,
        actor: Actor,
        action: &str,
        target: Option<&str>,
        command: impl Future<Output = Result<T, E>>,
        code: impl FnOnce(&E) -> ErrorCode,
    ) -> Result<T, E> {
        let begun = self.begin(now(), actor, action, target).await?;
        let outcome = command.await;
        let result = match &outcome {
            Ok(_) => AUDIT_DONE,
            Err(error) => code(error).word(),
        };
        begun.end(result, None).await;
        outcome
    }

    /// Reads the log, as [`audit`] does.
    ///
    /// # Errors
    /// Returns an error if a file of the log cannot be read.
    pub fn read(&self, filter: &AuditFilter) -> Result<AuditReport, EngineError> {
        audit(&self.state, filter)
    }

    async fn append(&self, line: &impl Serialize, sync: bool) -> Result<(), io::ErrorKind> {
        let mut line = serde_json::to_vec(line).map_err(|_| io::ErrorKind::InvalidData)?;
        line.push(b'\n');
        let (done, written) = oneshot::channel();
        self.send(Append { line, sync, done })?;
        written.await.map_err(|_| io::ErrorKind::BrokenPipe)?
    }
}

impl Audited<'_> {
    /// Records how the command ended, in the audit log and in the log of the process.
    pub async fn end(self, result: &str, target: Option<&str>) {
        let Self { log, entry } = self;
        let target = target.map(bounded);
        let Actor { name, from } = &entry.actor;
        let shown = target.as_deref().or(entry.target.as_deref());
        tracing::info!(target: "audit", name, from, action = entry.action, subject = shown, result, "client request");
        let ending = Ending {
            id: entry.id,
            result: result.to_owned(),
            target,
        };
        if let Err(error) = log.append(&ending, false).await {
            tracing::warn!(%error, "the result of a command is not in the audit log");
        }
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TARGET).collect()
}

/// Writes lines until the log is dropped.
fn write_all(path: &Path, appends: &mpsc::Receiver<Append>) {
    let mut writer = Writer {
        path: path.to_owned(),
        file: None,
    };
    while let Ok(first) = appends.recv() {
        let batch: Vec<Append> = std::iter::once(first).chain(appends.try_iter()).collect();
        let written = writer.write(&batch).map_err(|error| error.kind());
        for append in batch {
            // An error is ignored: the caller may no longer wait.
            let _ = append.done.send(written);
        }
    }
}

struct Writer {
    path: PathBuf,
    file: Option<File>,
}

impl Writer {
    /// Appends lines. After an error the file is closed, and the next call opens it again.
    fn write(&mut self, batch: &[Append]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        if file.metadata()?.len() >= MAX_FILE {
            fs::rename(&self.path, self.path.with_file_name(OLD))?;
            file = open(&self.path)?;
        }
        let lines: Vec<u8> = batch
            .iter()
            .flat_map(|append| &append.line)
            .copied()
            .collect();
        file.write_all(&lines)?;
        if batch.iter().any(|append| append.sync) {
            file.sync_all()?;
        }
        self.file = Some(file);
        Ok(())
    }
}

/// Opens the file for appending. If a crash truncated the last line, ends that line first.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = match options.create_new(true).open(path) {
        Ok(file) => {
            // If this fails, `windlass doctor` reports the file.
            if let Some(folder) = path.parent() {
                give_entry_to_owner(folder, FILE.as_ref());
            }
            file
        }
        Err(_) => options.create_new(false).open(path)?,
    };
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    // Sync the folder. Otherwise a power cut could remove a new file together with its first entry.
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(log: &AuditLog, name: &str) {
        let actor = Actor::anonymous(name);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let begun = log.begin(Timestamp(1), actor, "pause", Some("a")).await;
            begun.unwrap().end(AUDIT_DONE, None).await;
        });
    }

    #[test]
    fn a_cut_line_is_skipped_and_a_full_file_becomes_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        entry(&AuditLog::open(dir.path()), "one");
        let file = dir.path().join(FILE);
        let mut lines = fs::read(&file).unwrap();
        lines.extend_from_slice(b"{\"id\":\"0");
        fs::write(&file, &lines).unwrap();
        entry(&AuditLog::open(dir.path()), "two");
        let read = || audit(dir.path(), &AuditFilter::default()).unwrap();
        let from = |report: AuditReport| -> Vec<String> {
            report
                .entries
                .into_iter()
                .map(|one| one.actor.from)
                .collect()
        };
        assert_eq!(from(read()), ["two", "one"]);
        assert!(read().entries.iter().all(|one| one.result == AUDIT_DONE));
        let full = OpenOptions::new().append(true).open(&file).unwrap();
        full.set_len(MAX_FILE).unwrap();
        entry(&AuditLog::open(dir.path()), "three");
        assert_eq!(from(read()), ["three", "two", "one"]);
        assert!(fs::metadata(&file).unwrap().len() < 1_000);
    }
}
