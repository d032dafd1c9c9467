//! `appendFile`: appends rows to a file, each exactly once.
//!
//! The run stores the length of the file before its first append and after each append. This length is the committed
//! end of the file. Bytes after the committed end are cut off only if an earlier attempt at the same append wrote
//! them. Any other bytes after it are from other programs: then the append fails and overwrites nothing. Without the
//! input `replace`, an append also fails after an aborted attempt if the length of the file before that attempt is
//! unknown.
//!
//! With the input `replace`, the rows are written to a sibling of the file: see the module `replace`. With the input
//! `key`, a row is dropped if the file already has its key: see the module `keys`. The module `rows` encodes the rows.

mod keys;
mod replace;
mod rows;

use self::keys::{KeyHash, KeyIndex};
use self::rows::{EncodedRows, RowFormat};
use super::execution_context::{may_be_replayed, resolved, state};
use super::inputs::{Inputs, invalid, mismatch};
use super::sink::{self, Locked};
use super::{Attempt, Executor};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

#[derive(Default)]
pub(super) struct AppendFile {
    /// The last append to each file in this process, by the file's canonical path. The lock is held while a file is
    /// written, so that an aborted attempt, which may still be writing, and the next attempt do not write at the same
    /// time.
    last: Arc<Mutex<HashMap<String, LastAppend>>>,
}

struct LastAppend {
    key: String,
    length: u64,
    /// Number of records that this process inserted into the file's table of keys.
    keys: u64,
}

/// What an append writes, before it is encoded.
enum Content {
    Text(String),
    Rows {
        rows: Vec<Value>,
        format: RowFormat,
        /// The key of each row.
        keys: Option<Vec<KeyHash>>,
        /// The source of the expression that computes the keys.
        key: String,
    },
}

/// What an append writes, encoded for a file.
struct Prepared {
    rows: EncodedRows,
    /// Number of rows or texts to append.
    count: usize,
    /// The keys of the appended rows, and the keys that the file has.
    keys: Option<(Vec<KeyHash>, KeyIndex)>,
    /// Number of rows that are dropped because the file or an earlier row of this append has the same key.
    duplicates: usize,
}

struct Job {
    path: PathBuf,
    /// The engine's state directory: no action may write to its store.
    state: Option<Arc<Path>>,
    path_as_written: String,
    /// The map of files that the run stores. For a canonical path it has the file's length when the run last committed
    /// an append to it. For another path that an action names, it has the canonical path. See [`Self::output`].
    files: Object,
    measure: bool,
    replace: bool,
    content: Content,
    key: String,
    /// Whether an earlier attempt at this append may have written the bytes after the committed end.
    may_be_repeated: bool,
}

impl Executor for AppendFile {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let job = AppendJob::read(request)?;
            let last = Arc::clone(&self.last);
            let description = job.description().to_owned();
            let done = tokio::task::spawn_blocking(move || job.run(&last));
            match done.await {
                Ok(outcome) => outcome,
                Err(error) => Err(Fault::new(
                    fault_kind::INPUT,
                    format!("appending to {description} broke off: {error}"),
                )),
            }
        })
    }
}

enum AppendJob {
    Append(Job),
    /// Replace the files with the newly written ones, at the end of a run that succeeds.
    Replace {
        files: Object,
        may_be_repeated: bool,
    },
}

impl AppendJob {
    fn read(request: &Request) -> Result<Self, Fault> {
        let inputs = Inputs::of(request)?;
        let files = match inputs.get("files") {
            None => Object::new(),
            Some(Value::Object(files)) => files.as_ref().clone(),
            Some(other) => return Err(mismatch("files", "a map of lengths", other)),
        };
        if inputs.get("put") == Some(&Value::Bool(true)) {
            let may_be_repeated = may_be_replayed() || request.attempt > 1;
            return Ok(Self::Replace {
                files,
                may_be_repeated,
            });
        }
        Job::read(request, inputs, files).map(Self::Append)
    }

    fn description(&self) -> &str {
        match self {
            Self::Append(job) => &job.path_as_written,
            Self::Replace { .. } => "the files of a run",
        }
    }

    fn run(self, last: &Mutex<HashMap<String, LastAppend>>) -> Result<Value, Fault> {
        match self {
            Self::Append(job) => job.run(last),
            Self::Replace {
                files,
                may_be_repeated,
            } => {
                // Hold the lock: an aborted attempt may still be writing.
                let _alone = last.lock().unwrap_or_else(PoisonError::into_inner);
                replace::replace_targets(&files, may_be_repeated)
            }
        }
    }
}

/// Returns the output that the request has in a simulation. In a simulation nothing is written, and every file is empty
/// before the first append.
///
/// # Errors
/// Returns a fault if the inputs are not valid.
pub fn simulate_append(request: &Request) -> Result<Value, Fault> {
    let job = match AppendJob::read(request)? {
        AppendJob::Append(job) => job,
        AppendJob::Replace { files, .. } => return Ok(replace::replaced_output(&files)),
    };
    let target = job.path_as_written.clone();
    let real = match job.replace {
        true => replace::sibling(&target, run_of(&job.key)),
        false => target.clone(),
    };
    let known = job.committed_length(&target, &real)?.unwrap_or(0);
    if job.measure {
        return Ok(job.output(&target, &real, known, None));
    }
    let prepared = job.content.prepare(known, None, None)?;
    let length = prepared.rows.length(known);
    Ok(job.output(&target, &real, length, Some(&prepared)))
}

/// Returns true if a format added the request, which measures or replaces files. Such a request is in no author's file.
#[must_use]
pub fn is_append_bookkeeping(request: &Request) -> bool {
    let set = |key: &str| request.inputs.get(key) == Some(&Value::Bool(true));
    &*request.executor == "appendFile" && (set("measure") || set("put"))
}

impl Job {
    fn read(request: &Request, inputs: Inputs<'_>, files: Object) -> Result<Self, Fault> {
        let path_as_written = inputs.required_text("path")?.to_owned();
        Ok(Self {
            path: resolved(&path_as_written),
            state: state(),
            path_as_written,
            files,
            measure: inputs.get("measure") == Some(&Value::Bool(true)),
            replace: inputs.get("replace") == Some(&Value::Bool(true)),
            content: Content::read(inputs)?,
            key: request.key.clone(),
            may_be_repeated: may_be_replayed() || request.attempt > 1,
        })
    }

    fn run(self, last: &Mutex<HashMap<String, LastAppend>>) -> Result<Value, Fault> {
        let write_fault = |error: io::Error| {
            let message = format!("cannot write {}: {error}", self.path_as_written);
            Fault::new(fault_kind::INPUT, message)
        };
        let append_target = self.resolve_target(&write_fault)?;
        let left = self
            .last_known_length(&append_target)
            .filter(|length| *length > 0);
        let opened = sink::open(&append_target.path, self.state.as_deref(), left.is_none());
        let file = opened.map_err(|error| match left {
            Some(length) if error.kind() == io::ErrorKind::NotFound => invalid(format!(
                "{} is gone: this run left it with {length} bytes; nothing was written",
                append_target.path.display()
            )),
            _ => write_fault(error),
        })?;
        let file = file.ok_or_else(|| sink::in_store(&self.path_as_written))?;
        if let Some(target) = &append_target.replaced_file
            && let Ok(old) = std::fs::metadata(target)
        {
            // Copy the permissions: a user without access to the file must not read the rows that will replace it.
            file.set_permissions(old.permissions())
                .map_err(write_fault)?;
        }
        // Use the canonical path, because several paths may lead to the same file.
        let path = std::fs::canonicalize(&append_target.path).map_err(write_fault)?;
        let real = path.display().to_string();
        let target = append_target.replaced_file.unwrap_or_else(|| real.clone());
        let known = self.committed_length(&target, &real)?;
        if known.is_none() {
            // The file may be new, so make its name durable.
            sink::sync_name(&path).map_err(write_fault)?;
        }
        let known = known.or(append_target.known);
        let mut file = Locked::new(file, &self.path_as_written)?;
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = length_of(&mut file).map_err(write_fault)?;
        if self.measure {
            return Ok(self.output(&target, &real, known.unwrap_or(now), None));
        }
        // If the run has not stored a length of the file: with `replace`, the file is rewritten from its beginning;
        // without `replace`, the rows are written after its present content.
        let from = known.unwrap_or(if self.replace { 0 } else { now });
        let before = last.get(&real);
        let keys = match self.content.key() {
            Some(key) => Some(self.keys(key, &path, from, before)?),
            None => None,
        };
        let mut prepared = self.content.prepare(from, Some(&mut file), keys)?;
        self.check(&mut file, (known, now), &prepared.rows, before)?;
        rows::check_overwritten(&mut file, from, &prepared.rows)?;
        let length = prepared.rows.length(from);
        prepared.add_keys(length).map_err(write_fault)?;
        let written = write(&mut file, from, now, &prepared.rows);
        let key = self.key.clone();
        let keys = prepared
            .keys
            .as_ref()
            .map_or(0, |(_, keys)| keys.inserted());
        let ends = match &written {
            Ok(()) => length,
            Err(_) => {
                // Restore the previous length. If that fails, too, the next attempt cuts off the bytes.
                let _ = file.set_len(from);
                length_of(&mut file).map_err(write_fault)?
            }
        };
        let appended = LastAppend {
            key,
            length: ends,
            keys,
        };
        last.insert(real.clone(), appended);
        written.map_err(write_fault)?;
        Ok(self.output(&target, &real, length, Some(&prepared)))
    }

    /// Opens the keys of the rows in the first `from` bytes of the file.
    fn keys(
        &self,
        key: &str,
        path: &Path,
        from: u64,
        last: Option<&LastAppend>,
    ) -> Result<KeyIndex, Fault> {
        let inserted = last.map_or(0, |last| last.keys);
        match KeyIndex::open(path, from, key, inserted, self.state.as_deref()) {
            Ok(Some(keys)) => Ok(keys),
            Ok(None) => Err(sink::in_store(&self.path_as_written)),
            Err(error) => Err(invalid(format!(
                "cannot use `key` for {}: {error}",
                self.path_as_written
            ))),
        }
    }

    fn resolve_target(
        &self,
        write_fault: &impl Fn(io::Error) -> Fault,
    ) -> Result<AppendTarget, Fault> {
        if !self.replace {
            return Ok(AppendTarget {
                path: self.path.clone(),
                replaced_file: None,
                known: None,
            });
        }
        let target = sink::target(&self.path).map_err(write_fault)?;
        let target = target.display().to_string();
        let sibling = replace::sibling(&target, run_of(&self.key));
        let known = match self.files.get(&*target).and_then(Value::as_str) {
            Some(before) if before != sibling => {
                let length = replace::length(self.files.get(before)).unwrap_or_default();
                replace::copy(before, &sibling, length)?;
                Some(length)
            }
            _ => None,
        };
        Ok(AppendTarget {
            path: PathBuf::from(sibling),
            replaced_file: Some(target),
            known,
        })
    }

    /// Returns the length of the file when the run last committed an append to it. `None` if the run has appended
    /// nothing yet.
    fn committed_length(&self, target: &str, real: &str) -> Result<Option<u64>, Fault> {
        let called = self.files.get(self.path_as_written.as_str());
        if let Some(before) = called.and_then(Value::as_str)
            && before != target
            && self.path_as_written != target
        {
            return Err(invalid(format!(
                "{} is another file than before: it was {before}, and is {target}",
                self.path_as_written
            )));
        }
        let mixed = match self.files.get(target) {
            Some(Value::String(_)) => !self.replace,
            Some(_) => self.replace,
            None => false,
        };
        if mixed {
            return Err(invalid(format!(
                "this run both appends to {} and replaces it: every action that writes to it \
                 must have `replace: true`, or none",
                self.path_as_written
            )));
        }
        let Some(known) = self.files.get(real) else {
            return Ok(None);
        };
        match replace::length(Some(known)) {
            Some(length) => Ok(Some(length)),
            None => Err(mismatch("files", "a map of lengths", known)),
        }
    }

    /// Returns the same length as [`Self::committed_length`], but without checks, and even if the file does not exist.
    fn last_known_length(&self, append_target: &AppendTarget) -> Option<u64> {
        let real = match &append_target.replaced_file {
            Some(_) => append_target.path.to_str()?,
            // The entry may be a length, and not a path: then the action names the canonical path itself.
            None => {
                let called = self.files.get(self.path_as_written.as_str())?;
                called.as_str().unwrap_or(&self.path_as_written)
            }
        };
        replace::length(self.files.get(real))
    }

    /// Fails unless the bytes after the committed end are from this append.
    fn check(
        &self,
        file: &mut File,
        (known, now): (Option<u64>, u64),
        rows: &EncodedRows,
        last: Option<&LastAppend>,
    ) -> Result<(), Fault> {
        let own = last.is_some_and(|last| last.key == self.key);
        let other = last
            .is_some_and(|last| last.key != self.key && run_of_append(last) == run_of(&self.key));
        let at_once = || {
            invalid(format!(
                "another action appended to {} at the same time: rows for one file must be \
                 appended one after the other",
                self.path_as_written
            ))
        };
        let Some(from) = known else {
            return match self.replace || !self.may_be_repeated {
                _ if other => Err(at_once()),
                true => Ok(()),
                false => Err(invalid(format!(
                    "an append to {} was cut, and how long it was before is not known: nothing \
                     was written",
                    self.path_as_written
                ))),
            };
        };
        let grown_by_own = own && last.is_some_and(|last| last.length == now);
        if now == from || (now > from && grown_by_own) {
            return Ok(());
        }
        let left = (now > from && (self.may_be_repeated || own))
            .then(|| is_own(rows, file, from, now))
            .transpose();
        match left {
            Ok(Some(true)) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                return Err(invalid(format!(
                    "cannot read {}: {error}",
                    self.path_as_written
                )));
            }
        }
        if other && last.is_some_and(|last| last.length == now) {
            return Err(at_once());
        }
        Err(invalid(format!(
            "{} was changed by another program: this run left it with {from} bytes, and it has \
             {now}; nothing was written",
            self.path_as_written
        )))
    }

    /// Builds the output of an append. If `appended` is `None`, the request only measures the length of the file.
    fn output(&self, target: &str, real: &str, length: u64, appended: Option<&Prepared>) -> Value {
        let from = self.files.get(real).cloned().unwrap_or_default();
        let length = Value::Int(i64::try_from(length).unwrap_or(i64::MAX));
        let number = |count: usize| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        let rows = number(appended.map_or(0, |appended| appended.count));
        let duplicates = number(appended.map_or(0, |appended| appended.duplicates));
        // The entry for the path in the action is first. If that is the canonical path, the later entry with the length
        // replaces the first one.
        let mut files = vec![(self.path_as_written.as_str(), Value::text(target))];
        if target == real {
            files.push((real, length.clone()));
        } else {
            files.push((target, Value::text(real)));
            files.push((real, replace::known(target, &length)));
        }
        Value::from_pairs([
            ("path", Value::text(&self.path_as_written)),
            ("length", length),
            ("rows", rows),
            ("duplicates", duplicates),
            ("file", Value::text(real)),
            ("from", from),
            ("files", Value::from_pairs(files)),
        ])
    }
}

struct AppendTarget {
    path: PathBuf,
    /// The file that the sibling at `path` will replace. `None` without `replace`.
    replaced_file: Option<String>,
    /// Length in bytes of the rows that were copied from an earlier run's sibling.
    known: Option<u64>,
}

/// Returns the run that appended last.
fn run_of_append(last: &LastAppend) -> &str {
    run_of(&last.key)
}

fn run_of(key: &str) -> &str {
    key.split_once('/').map_or(key, |(run, _)| run)
}

/// Returns the file's length in bytes. It seeks instead of querying the metadata, which include timestamps: see
/// `Inode`.
fn length_of(file: &mut File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Cuts the file from `now` bytes to its committed end `from`, and writes the rows there, durably.
fn write(file: &mut File, from: u64, now: u64, rows: &EncodedRows) -> io::Result<()> {
    if now != from {
        file.set_len(from)?;
    }
    file.seek(SeekFrom::Start(from - rows.overwritten))?;
    file.write_all(&rows.bytes)?;
    file.sync_data()
}

/// Returns true if the bytes after the committed end are a beginning of this append's bytes, left by an earlier
/// attempt. A zero matches any byte, because bytes that were not written before a power cut read as zeros.
fn is_own(rows: &EncodedRows, file: &mut File, from: u64, now: u64) -> io::Result<bool> {
    let overwritten = usize::try_from(rows.overwritten).unwrap_or_default();
    let own = rows.bytes.get(overwritten..).unwrap_or_default();
    if now - from > own.len() as u64 {
        return Ok(false);
    }
    let mut left = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(own.len() as u64).read_to_end(&mut left)?;
    let mut pairs = left.iter().zip(own);
    Ok(pairs.all(|(left, own)| left == own || *left == 0))
}

impl Content {
    fn read(inputs: Inputs<'_>) -> Result<Self, Fault> {
        let rows = match (inputs.get("rows"), inputs.get("text")) {
            (Some(Value::Array(rows)), _) => rows.to_vec(),
            (Some(other), _) => return Err(mismatch("rows", "a list", other)),
            (None, Some(Value::String(text))) => return Ok(Self::Text(text.as_str().to_owned())),
            (None, Some(other)) => return Err(mismatch("text", "a string", other)),
            // `Inputs::get` treats null as missing, but a row may be null.
            (None, None) => {
                let row = inputs.all().find(|(key, _)| *key == "row");
                row.map(|(_, row)| row.clone()).into_iter().collect()
            }
        };
        let key = inputs.text("key")?.unwrap_or_default();
        let keys = match inputs.get("keys") {
            None => None,
            Some(Value::Array(keys)) if keys.len() == rows.len() => {
                Some(hashes(keys, key).map_err(invalid)?)
            }
            Some(other) => return Err(mismatch("keys", "a list with a key for each row", other)),
        };
        Ok(Self::Rows {
            rows,
            format: RowFormat::read(inputs.text("format")?, inputs.get("columns"))?,
            keys,
            key: key.to_owned(),
        })
    }

    /// Returns the expression of the keys, if the rows have keys.
    fn key(&self) -> Option<&str> {
        match self {
            Self::Rows {
                keys: Some(_), key, ..
            } => Some(key),
            Self::Rows { .. } | Self::Text(_) => None,
        }
    }

    /// Encodes the rows for a file whose committed length is `from` bytes. Drops rows whose keys the file has.
    fn prepare(
        &self,
        from: u64,
        file: Option<&mut File>,
        index: Option<KeyIndex>,
    ) -> Result<Prepared, Fault> {
        let (rows, format, keys) = match self {
            Self::Rows {
                rows, format, keys, ..
            } => (rows, format, keys.as_deref().unwrap_or_default()),
            Self::Text(text) => {
                return Ok(Prepared {
                    rows: EncodedRows::of_text(text),
                    count: 1,
                    keys: None,
                    duplicates: 0,
                });
            }
        };
        let is_new = match &index {
            Some(index) => index.new_keys(keys),
            None => Ok(keys::first_of_each(keys)),
        };
        let is_new = is_new
            .map_err(|error| invalid(format!("cannot read the keys of the rows: {error}")))?;
        let is_new = |at: usize| is_new.get(at).copied().unwrap_or(true);
        let new = rows.iter().enumerate();
        let new: Vec<&Value> = new
            .filter(|(at, _)| is_new(*at))
            .map(|(_, row)| row)
            .collect();
        let new_keys = keys.iter().enumerate().filter(|(at, _)| is_new(*at));
        let new_keys = new_keys.map(|(_, key)| *key).collect();
        Ok(Prepared {
            rows: rows::encode(&new, format, from, file)?,
            count: new.len(),
            duplicates: rows.len() - new.len(),
            keys: index.map(|index| (new_keys, index)),
        })
    }
}

impl Prepared {
    /// Makes the keys of the rows durable. `length` is the length of the file with the rows.
    fn add_keys(&mut self, length: u64) -> io::Result<()> {
        let Some((hashes, index)) = &mut self.keys else {
            return Ok(());
        };
        let pairs = hashes.iter().copied().zip(self.rows.ends.iter().copied());
        let mut pairs: Vec<(KeyHash, u64)> = pairs.collect();
        let last = pairs.last().map(|(_, end)| *end);
        if !self.rows.bytes.is_empty() && last != Some(length) {
            pairs.push((KeyHash::NONE, length));
        }
        index.add(&pairs)
    }
}

/// Hashes the keys. Fails if a key is null.
fn hashes(keys: &[Value], name: &str) -> Result<Vec<KeyHash>, String> {
    let hash = |(at, key): (usize, &Value)| match key {
        Value::Null => Err(format!(
            "row {} of {} has no key: `{name}` is null there; nothing was written",
            at + 1,
            keys.len()
        )),
        key => Ok(KeyHash::of(key)),
    };
    keys.iter().enumerate().map(hash).collect()
}
