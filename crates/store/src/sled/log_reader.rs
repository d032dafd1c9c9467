//! Reads the log of sled 0.34, for `repair` and `read_only`, even if the log is damaged. Returns the messages with a
//! valid checksum, in the order in which they were written (docs/internals/store-files.md has the format), and reports
//! damage between them. Only one segment (a part of the log of fixed size) is in memory at a time. This file never
//! writes and trusts no stored length. `log_pages` makes pages from the messages.

use super::Sled;
use super::log_segment::{HEADER, LogMessage, Messages, STEP, Segment, header};
use crate::integrity::IntegrityReport;
use crate::rows::corrupt;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum size in bytes of a file that has one large message.
const MAX_BLOB: u64 = 64 << 20;

/// The kind of a page's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The page was removed.
    Free,
    Node,
    /// One key of the page changed.
    Link,
}

/// A complete message.
pub(super) struct Message<'a> {
    /// The message's position in the log.
    pub lsn: u64,
    /// The page that the message concerns.
    pub page: u64,
    pub kind: Kind,
    pub body: Cow<'a, [u8]>,
}

/// A log on disk.
pub(super) struct Log<'a> {
    /// The database's directory.
    path: &'a Path,
    file: File,
    /// Offsets of the segments in the file, by segment number.
    segments: BTreeMap<u64, u64>,
    /// Offsets of segments without a valid header.
    headerless: Vec<u64>,
    /// The log was known to be complete up to this position when its last segment was begun, or when its index was
    /// written.
    stable: u64,
    /// The index of the log includes all positions before this one.
    indexed: u64,
}

impl<'a> Log<'a> {
    /// Opens the log in a database's directory, and finds its segments by their headers.
    ///
    /// # Errors
    /// If the log cannot be read at all.
    pub fn open(path: &'a Path) -> io::Result<Self> {
        let mut log = Self {
            path,
            file: File::open(path.join("db"))?,
            segments: BTreeMap::new(),
            headerless: Vec::new(),
            stable: 0,
            indexed: 0,
        };
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            let place = name.to_str().and_then(|name| name.strip_prefix("snap."));
            let place = place.and_then(|place| u64::from_str_radix(place, 16).ok());
            log.indexed = log.indexed.max(place.unwrap_or(0));
        }
        log.stable = log.indexed;
        let length = log.file.metadata()?.len();
        for at in (0..length).step_by(Sled::SEGMENT) {
            let mut bytes = [0; HEADER];
            let read = log.file.read_exact_at(&mut bytes, at);
            match read.ok().and_then(|()| header(&bytes)) {
                Some((number, stable)) => {
                    log.segments.insert(number, at);
                    log.stable = log.stable.max(stable);
                }
                None => log.headerless.push(at),
            }
        }
        Ok(log)
    }

    /// Finds segments whose header is damaged. This is possible because each message also contains its segment's
    /// number.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn find_lost(&mut self, report: &mut IntegrityReport) -> io::Result<()> {
        for at in std::mem::take(&mut self.headerless) {
            let segment = self.read(at)?;
            if let Some(found) = LogMessage::from(&segment, HEADER, None) {
                note(report, at, &"its header is damaged");
                self.segments.entry(found.segment).or_insert(at);
            }
        }
        Ok(())
    }

    /// Reads a segment. Blocks of zeros are not copied: the newest segment is mostly zeros, and memory that is never
    /// written costs nothing.
    fn read(&self, at: u64) -> io::Result<Segment> {
        const ZEROS: [u8; 1 << 14] = [0; 1 << 14];
        let mut bytes = vec![0; Sled::SEGMENT];
        let mut part = ZEROS;
        let (mut done, mut filled) = (0, 0);
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let most = part.len().min(rest.len());
            let room = part.get_mut(..most).unwrap_or_default();
            match self.file.read_at(room, at + done as u64) {
                Ok(0) => break,
                Ok(read) => {
                    done += read;
                    let room = room.get(..read).unwrap_or_default();
                    if Some(room) != ZEROS.get(..read) {
                        filled = done;
                        rest.iter_mut().zip(room).for_each(|(to, from)| *to = *from);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(done);
        Ok(Segment { bytes, filled })
    }

    /// Passes every complete message about a page to `each`, in order, up to a position.
    /// If the last batch of the log is incomplete, the log ends before this batch. Either the batch was never
    /// acknowledged, or the mark (the number of the last durable group) shows that it is missing.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn messages(
        &self,
        until: u64,
        report: &mut IntegrityReport,
        mut each: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        let end = self.end()?;
        let last = self.segments.keys().next_back().copied();
        for (&number, &at) in &self.segments {
            let segment = self.read(at)?;
            let mut walk = Messages::new(&segment, number);
            for (from, found) in walk.by_ref() {
                if place(number, found.at) >= until {
                    return Ok(());
                }
                if from < found.at {
                    note(report, at, &format_args!("bytes {from} to {}", found.at));
                }
                if found.batch(&segment.bytes).is_some_and(|last| last >= end) {
                    return Ok(());
                }
                match self.message(&found, &segment.bytes) {
                    Ok(message) => message.iter().for_each(&mut each),
                    Err(error) => {
                        let error = corrupt(&error.to_string());
                        report.note(None, "a file of the database", &error);
                    }
                }
            }
            if !walk.ended && last != Some(number) && place(number, walk.place) < until {
                note(report, at, &format_args!("bytes from {}", walk.place));
            }
        }
        Ok(())
    }

    /// Returns the position at which sled would end the log; `None` if sled would remove nothing. In the newest
    /// segments, sled treats an unreadable place as the end of the data that was written before a crash.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn sled_end(&self) -> io::Result<Option<u64>> {
        let mut newest = self.segments.keys().next_back().copied();
        for at in &self.headerless {
            let found = LogMessage::from(&self.read(*at)?, HEADER, None);
            newest = newest.max(found.map(|found| found.segment));
        }
        let mut batches = Vec::new();
        let mut number = self.stable / STEP;
        let mut end = place(number, 0);
        let behind = loop {
            let Some(&at) = self.segments.get(&number) else {
                break newest >= Some(number);
            };
            let segment = self.read(at)?;
            let mut walk = Messages::new(&segment, number);
            for (from, found) in walk.by_ref() {
                end = place(number, from);
                if from < found.at {
                    return Ok(Some(first_torn(&batches, end)));
                }
                end = place(number, found.body.end);
                let begin = place(number, found.at);
                batches.extend(found.batch(&segment.bytes).map(|until| (begin, until)));
            }
            if !walk.ended {
                break newest > Some(number);
            }
            number += 1;
            end = place(number, 0);
        };
        let first_torn_at = first_torn(&batches, end);
        Ok((behind || first_torn_at < end).then_some(first_torn_at))
    }

    /// Returns true if the index of the log includes a position.
    pub const fn is_indexed(&self, place: u64) -> bool {
        place < self.indexed
    }

    /// Passes messages before a position to `of`, the newest first, until `of` returns a result. Returns this result.
    ///
    /// # Errors
    /// If a segment cannot be read.
    pub fn newest<T>(
        &self,
        before: u64,
        of: impl Fn(&Message<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        for (&number, &at) in self.segments.range(..=before / STEP).rev() {
            let segment = self.read(at)?;
            let those = Messages::new(&segment, number).map(|(_, found)| found);
            let those = those.take_while(|found| place(number, found.at) < before);
            let given =
                those.filter_map(|found| of(&self.message(&found, &segment.bytes).ok()??));
            if let Some(last) = given.last() {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Returns a message about a page; `None` for other messages.
    fn message<'s>(
        &self,
        found: &LogMessage,
        segment: &'s [u8],
    ) -> io::Result<Option<Message<'s>>> {
        let (kind, outside) = match found.kind {
            4 => (Kind::Free, false),
            8 => (Kind::Node, false),
            9 => (Kind::Node, true),
            10 => (Kind::Link, false),
            11 => (Kind::Link, true),
            // Messages with sled's own metadata.
            _ => return Ok(None),
        };
        let body = found.bytes(segment);
        let body = if outside {
            Cow::Owned(blob(self.path, body, found.kind)?)
        } else {
            Cow::Borrowed(body)
        };
        Ok(Some(Message {
            lsn: place(found.segment, found.at),
            page: found.page,
            kind,
            body,
        }))
    }

    /// Returns the position after the last complete message.
    fn end(&self) -> io::Result<u64> {
        for (&number, &at) in self.segments.iter().rev() {
            let segment = self.read(at)?;
            if let Some((_, found)) = Messages::new(&segment, number).last() {
                return Ok(place(number, found.body.end));
            }
        }
        Ok(0)
    }
}

/// Returns a position in the log: `at` bytes after the beginning of segment `number`.
const fn place(number: u64, at: usize) -> u64 {
    number.saturating_mul(STEP).saturating_add(at as u64)
}

/// Returns the position of the first batch whose last message is at or after `end`; returns `end` if there is no such
/// batch.
fn first_torn(batches: &[(u64, u64)], end: u64) -> u64 {
    let torn = batches.iter().find(|(_, until)| *until >= end);
    torn.map_or(end, |(begin, _)| *begin)
}

/// Reads a message's body from the file with the number `id`, which has a checksum, the kind, and the body.
fn blob(path: &Path, id: &[u8], kind: u8) -> io::Result<Vec<u8>> {
    let id = id.first_chunk().map_or(0, |id| i64::from_le_bytes(*id));
    let path = path.join("blobs").join(id.to_string());
    let bad = |why: &str| io::Error::other(format!("blobs/{id}: {why}"));
    let length = fs::metadata(&path).map_err(|error| bad(&error.to_string()))?;
    if length.len() > MAX_BLOB {
        return Err(bad("it is too long"));
    }
    let bytes = fs::read(path)?;
    match bytes.split_first_chunk::<4>() {
        Some((sum, rest)) if crc32fast::hash(rest) == u32::from_le_bytes(*sum) => {
            let body = rest.strip_prefix(&[kind]);
            body.map(<[u8]>::to_vec).ok_or_else(|| bad("it is another"))
        }
        _ => Err(bad("its checksum does not match")),
    }
}

fn note(report: &mut IntegrityReport, segment: u64, what: &dyn std::fmt::Display) {
    let error = corrupt(&format!("the segment at byte {segment} of the log: {what}"));
    report.note(None, "a place in the log", &error);
}

#[cfg(test)]
mod tests;
