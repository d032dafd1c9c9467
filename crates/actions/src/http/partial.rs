//! A partial file of a download. The partial file is next to the target of the download until it is complete, so that
//! no reader sees an incomplete file under the target's name. A second file, the note, has the version of the resource
//! (RFC 9110, 8.8). With it, a later attempt can request only the rest, even in another process. This module never
//! sends anything.

use super::stall::StallWatch;
use crate::execution_context::{resolved, state};
use crate::inputs::invalid;
use crate::sink::{self, Locked};
use reqwest::header::{
    ACCEPT_ENCODING, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Method, Request};
use ring::digest::{Context, Digest, SHA256};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_model::model::{Fault, sha256};
use windlass_value::{first_chars, hex, http_date};

/// Number of bytes between two syncs. After each sync the note is updated with the number of synced bytes. After a
/// power cut, only synced bytes are used.
const SYNC_BYTES: u64 = 64 << 20;

/// Number of bytes that are read from the disk at once.
const READ_BYTES: usize = 256 << 10;

/// The target of a download.
pub(super) struct SaveTarget {
    /// The path as the action names it.
    pub shown: String,
    path: PathBuf,
    /// The engine's state directory: no action may write to its store.
    state: Option<Arc<Path>>,
    /// The idempotency key: all attempts at an action have the same key, and no other action has it.
    key: String,
}

impl SaveTarget {
    /// Makes the target for a path of the run whose action this task executes.
    pub(super) fn new(shown: &str, key: &str) -> Self {
        let digest = sha256(key.as_bytes());
        Self {
            shown: shown.to_owned(),
            path: resolved(shown),
            state: state(),
            key: first_chars(&hex(&digest), 16).to_owned(),
        }
    }

    fn fault(&self, error: &io::Error) -> Fault {
        invalid(format!("cannot write {}: {error}", self.shown))
    }
}

/// The version of a resource (RFC 9110, 8.8). A request for the rest of a file names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Version {
    /// A strong entity tag.
    ETag(String),
    LastModified(String),
}

impl Version {
    /// Returns the version in the headers of an answer. `None` if two different versions may have the same name.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name: HeaderName| headers.get(name)?.to_str().ok();
        if let Some(tag) = text(ETAG).filter(|tag| tag.starts_with('"')) {
            return Some(Self::ETag(tag.to_owned()));
        }
        let modified = text(LAST_MODIFIED)?;
        // Use a date only if it is at least a second old: two versions within a second have the same date (RFC 9110,
        // 8.8.2.2).
        let is_older = http_date(modified)?.0 + 1_000 <= http_date(text(DATE)?)?.0;
        is_older.then(|| Self::LastModified(modified.to_owned()))
    }

    fn name(&self) -> &str {
        match self {
            Self::ETag(name) | Self::LastModified(name) => name,
        }
    }

    /// Returns true if an answer names another version.
    fn differs(&self, headers: &HeaderMap) -> bool {
        let header = match self {
            Self::ETag(_) => ETAG,
            Self::LastModified(_) => LAST_MODIFIED,
        };
        let found = headers.get(header);
        found.is_some_and(|found| found.as_bytes() != self.name().as_bytes())
    }
}

/// What is stored about the bytes of a partial file.
#[derive(Serialize, Deserialize)]
struct Note {
    version: Version,
    /// Number of bytes that are synced to the disk.
    synced: u64,
    /// The id of the machine's boot during which the note was written. If the machine was not restarted since then,
    /// unsynced bytes are still in the file.
    boot: Option<String>,
}

/// A partial file, open and locked.
pub(super) struct Partial {
    shown: String,
    target: PathBuf,
    path: PathBuf,
    note_path: PathBuf,
    file: Locked,
    note: Option<Note>,
    length: u64,
    digest: Context,
}

impl Partial {
    /// Opens the partial file of an earlier attempt, or makes a new one. Blocks, and reports progress while it reads.
    pub(super) fn open(at: &SaveTarget, progress: &StallWatch) -> Result<Self, Fault> {
        let fault = |error: io::Error| at.fault(&error);
        let target = sink::target(&at.path).map_err(fault)?;
        let path = sibling(&target, &at.key, "part");
        let note_path = sibling(&target, &at.key, "part.json");
        let opened = sink::open(&path, at.state.as_deref(), true).map_err(fault)?;
        let file = opened.ok_or_else(|| sink::in_store(&at.shown))?;
        let file = Locked::new(file, &path.display().to_string())?;
        if let Ok(old) = fs::metadata(&target) {
            // Copy the permissions: a user without access to the file must not read the file that will replace it.
            file.set_permissions(old.permissions()).map_err(fault)?;
        }
        let mut partial = Self {
            shown: at.shown.clone(),
            note: read_note(&note_path),
            target,
            path,
            note_path,
            file,
            length: 0,
            digest: Context::new(&SHA256),
        };
        partial.recover(progress).map_err(fault)?;
        Ok(partial)
    }

    /// Reads the bytes of an earlier attempt. Cuts off those that may be damaged, because the machine stopped before
    /// they were synced.
    fn recover(&mut self, progress: &StallWatch) -> io::Result<()> {
        let found = self.file.seek(SeekFrom::End(0))?;
        let certain = match &self.note {
            Some(note) if note.boot.is_some() && note.boot == boot_id() => found,
            Some(note) => found.min(note.synced),
            None => 0,
        };
        if certain < found {
            self.file.set_len(certain)?;
        }
        let boot = boot_id();
        if let Some(note) = self.note.as_mut().filter(|note| note.boot != boot) {
            (note.synced, note.boot) = (certain, boot);
            self.write_note()?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let count = self.file.read(&mut bytes)?;
            let read = bytes.get(..count).unwrap_or_default();
            if read.is_empty() {
                return Ok(());
            }
            self.digest.update(read);
            self.length += read.len() as u64;
            progress.report();
        }
    }

    /// Returns the number of bytes in the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds headers to a call that request only the rest of the file. Returns false if the rest cannot be requested.
    pub(super) fn request_rest(&self, call: &mut Request) -> bool {
        let is_get = *call.method() == Method::GET;
        let headers = call.headers_mut();
        // Request the bytes uncompressed. A compressed body cannot be continued, because the server may compress it
        // differently the next time.
        let identity = HeaderValue::from_static("identity");
        headers.entry(ACCEPT_ENCODING).or_insert(identity);
        let Some(note) = self.note.as_ref().filter(|_| is_get && self.length > 0) else {
            return false;
        };
        let range = HeaderValue::try_from(format!("bytes={}-", self.length));
        let version = HeaderValue::from_str(note.version.name());
        let (Ok(range), Ok(version)) = (range, version) else {
            return false;
        };
        if headers.contains_key(RANGE) {
            return false;
        }
        headers.insert(RANGE, range);
        headers.insert(IF_RANGE, version);
        true
    }

    /// Returns true if an answer has another version than the bytes in the file.
    pub(super) fn is_other_version(&self, headers: &HeaderMap) -> bool {
        let note = self.note.as_ref();
        note.is_none_or(|note| note.version.differs(headers))
    }

    /// Removes the file if it is empty. Blocks.
    pub(super) fn remove_if_empty(self) -> Result<(), Fault> {
        match self.length {
            0 => sink::remove_if_there(&self.path).map_err(|error| self.fault(&error)),
            _ => Ok(()),
        }
    }

    /// Removes all bytes, because the download starts over with the version in the headers. Blocks.
    pub(super) fn restart(&mut self, headers: &HeaderMap) -> Result<(), Fault> {
        self.try_restart(Version::of(headers))
            .map_err(|error| self.fault(&error))
    }

    fn try_restart(&mut self, version: Option<Version>) -> io::Result<()> {
        if self.length > 0 || self.note.is_some() {
            // The order matters: the note of one version must never be next to bytes of another version. So remove the
            // note first.
            self.note = None;
            sink::remove_if_there(&self.note_path)?;
            sink::sync_name(&self.note_path)?;
            self.file.set_len(0)?;
            self.file.sync_all()?;
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.length = 0;
        self.digest = Context::new(&SHA256);
        self.note = version.map(|version| Note {
            version,
            synced: 0,
            boot: boot_id(),
        });
        self.write_note()
    }

    /// Appends bytes to the file. Blocks.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.try_append(bytes).map_err(|error| self.fault(&error))
    }

    fn try_append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        let length = self.length;
        let is_due = |note: &&mut Note| length >= note.synced + SYNC_BYTES;
        if let Some(note) = self.note.as_mut().filter(is_due) {
            self.file.sync_data()?;
            note.synced = length;
            note.boot = boot_id();
            self.write_note()?;
        }
        Ok(())
    }

    /// Returns the SHA-256 of the bytes in the file.
    pub(super) fn digest(&self) -> Digest {
        self.digest.clone().finish()
    }

    /// Replaces the target with the file, durably. Blocks.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let finished = || {
            self.file.sync_all()?;
            fs::rename(&self.path, &self.target)?;
            sink::remove_if_there(&self.note_path)?;
            sink::sync_name(&self.target)
        };
        finished().map_err(|error| self.fault(&error))
    }

    /// Removes the file and its note. Blocks.
    pub(super) fn discard(self) -> Result<(), Fault> {
        let removed =
            sink::remove_if_there(&self.note_path).and_then(|()| sink::remove_if_there(&self.path));
        removed.map_err(|error| self.fault(&error))
    }

    /// Replaces the note atomically.
    fn write_note(&self) -> io::Result<()> {
        let Some(note) = &self.note else {
            return Ok(());
        };
        let new = self.note_path.with_extension("json.new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_data()?;
        fs::rename(&new, &self.note_path)
    }

    fn fault(&self, error: &io::Error) -> Fault {
        invalid(format!("cannot write {}: {error}", self.shown))
    }
}

fn sibling(target: &Path, key: &str, kind: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{key}.{kind}"));
    target.with_file_name(name)
}

/// Reads the note. `None` if there is no valid note: then the whole file is downloaded again.
fn read_note(path: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Returns the id of this boot of the machine, if the system has one.
fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, text)| (name.clone(), HeaderValue::from_static(text)));
        pairs.collect()
    }

    #[test]
    fn only_a_validator_that_one_version_has_is_used() {
        let date = (DATE, "Sat, 31 Jan 2026 08:00:00 GMT");
        let of = |pairs: &[_]| Version::of(&headers(pairs));
        let modified = |text: &str| Some(Version::LastModified(text.to_owned()));
        let earlier = "Sat, 31 Jan 2026 07:59:59 GMT";
        assert_eq!(
            of(&[(ETAG, "\"a\""), (LAST_MODIFIED, earlier), date.clone()]),
            Some(Version::ETag("\"a\"".to_owned()))
        );
        assert_eq!(
            of(&[(ETAG, "W/\"a\""), (LAST_MODIFIED, earlier), date.clone()]),
            modified(earlier)
        );
        assert_eq!(of(&[(LAST_MODIFIED, date.1), date.clone()]), None);
        assert_eq!(of(&[(LAST_MODIFIED, earlier)]), None);
        assert_eq!(of(&[(ETAG, "W/\"a\"")]), None);
    }

    #[test]
    fn bytes_that_no_sync_made_certain_do_not_survive_another_start_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().join("a.bin").display().to_string();
        let at = SaveTarget::new(&shown, "run/a");
        let open = || Partial::open(&at, &StallWatch::new()).unwrap();
        let mut first = open();
        first.restart(&headers(&[(ETAG, "\"1\"")])).unwrap();
        first.append(b"abc").unwrap();
        drop(first);
        let left = open();
        assert_eq!(left.length(), 3);
        let note_path = left.note_path.clone();
        drop(left);
        let other = fs::read_to_string(&note_path).unwrap();
        let boot = boot_id().unwrap_or_default();
        let other = other.replace(boot.trim(), "another");
        fs::write(&note_path, other.replace("\"synced\":0", "\"synced\":2")).unwrap();
        let left = open();
        assert_eq!(left.length(), 2);
        assert_eq!(left.digest().as_ref(), sha256(b"ab"));
        drop(left);
        fs::write(&note_path, "{").unwrap();
        assert_eq!(open().length(), 0);
    }
}
