//! Reads the log of sled 0.34 around damage, for `repair` and `read_only`: messages whose checksum
//! holds, in the order in which they were written (docs/internals/store-format.md has the format). What lies
//! between them is reported. One segment is in memory at a time. It never writes, never trusts a length,
//! and knows nothing of pages: `log_pages` makes those of the messages.

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

/// The longest file of one message.
const MAX_BLOB: u64 = 64 << 20;

/// What a message says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is none any more.
    Free,
    Node,
    /// One key of it changed.
    Link,
}

/// A whole message.
pub(super) struct Message<'a> {
    /// Its place in the log.
    pub lsn: u64,
    /// Which page it speaks of.
    pub page: u64,
    /// What it says.
    pub kind: Kind,
    pub body: Cow<'a, [u8]>,
}

/// A log on disk.
pub(super) struct Log<'a> {
    /// The database's directory.
    path: &'a Path,
    file: File,
    /// Where its segments are, by their number.
    segments: BTreeMap<u64, u64>,
    /// The positions of segments without a valid header.
    others: Vec<u64>,
    /// Up to here it was whole when its last segment was begun, or its index was written.
    stable: u64,
    /// Up to here it has an index.
    indexed: u64,
}

impl<'a> Log<'a> {
    /// Finds the segments of the log in a database's directory by their headers.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn open(path: &'a Path) -> io::Result<Self> {
        let mut log = Self {
            path,
            file: File::open(path.join("db"))?,
            segments: BTreeMap::new(),
            others: Vec::new(),
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
                None => log.others.push(at),
            }
        }
        Ok(log)
    }

    /// Finds segments that lost their header: their messages have their number too.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn find_lost(&mut self, report: &mut IntegrityReport) -> io::Result<()> {
        for at in std::mem::take(&mut self.others) {
            let segment = self.read(at)?;
            if let Some(found) = LogMessage::from(&segment, HEADER, None) {
                note(report, at, &"its header is damaged");
                self.segments.entry(found.segment).or_insert(at);
            }
        }
        Ok(())
    }

    /// The newest segment is mostly zeros: memory of zeros that no one touches costs nothing.
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

    /// Gives every whole message of a page in order, up to a place. A batch at the end of the log of
    /// which the end is missing was never acknowledged, or is found by the mark: the log ends before
    /// it.
    ///
    /// # Errors
    /// When a segment cannot be read.
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

    /// Where the database would end the log and do away with what lies behind; none when that is
    /// nothing. It takes a place that cannot be read, among the newest, for the end of what was
    /// written before a crash.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn cut(&self) -> io::Result<Option<u64>> {
        let mut newest = self.segments.keys().next_back().copied();
        for at in &self.others {
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
        let cut = first_torn(&batches, end);
        Ok((behind || cut < end).then_some(cut))
    }

    /// Whether the index of the log reaches beyond a place.
    pub const fn is_indexed(&self, place: u64) -> bool {
        place < self.indexed
    }

    /// What the newest message before a place gives.
    ///
    /// # Errors
    /// When a segment cannot be read.
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

    /// A message that speaks of a page; none when it is another.
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
            // Names and numbers of its own.
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

    /// Behind the last byte of the last whole message.
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

/// A place in the log.
const fn place(number: u64, at: usize) -> u64 {
    number.saturating_mul(STEP).saturating_add(at as u64)
}

/// Where the first batch begins that is not there to its end; the end when all are.
fn first_torn(batches: &[(u64, u64)], end: u64) -> u64 {
    let torn = batches.iter().find(|(_, until)| *until >= end);
    torn.map_or(end, |(begin, _)| *begin)
}

/// A message that lies in a file of its own, by its number: a checksum, its kind, and its body.
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
