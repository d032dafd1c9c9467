//! Reads the log of sled 0.34 around damage, for the repair: messages whose checksum holds, in the
//! order in which they were written (docs/store-format.md has the format). What lies between them
//! is told. One segment is in memory at a time. It never writes, never trusts a length, and knows
//! nothing of pages: `log_pages` makes those of the messages.

use super::check::Checkup;
use super::rows::corrupt;
use super::sled::Sled;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A segment begins with a checksum, its place in the log, and how far the log was whole then.
const HEADER: usize = 20;
/// Behind the last place at which a message may begin: none does in the last bytes.
const LAST: usize = Sled::SEGMENT - 32 + 1;
/// So many bytes of a segment are put through a checksum in search of a message, at most.
const MAX_SEARCH: usize = 64 << 20;
/// The longest file of one message.
const MAX_BLOB: u64 = 64 << 20;

/// What a message says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is none any more.
    Free,
    /// This is all of it.
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
    /// How.
    pub body: Cow<'a, [u8]>,
}

/// A message as it lies in a segment.
struct Found {
    kind: u8,
    segment: u64,
    page: u64,
    at: usize,
    body: Range<usize>,
}

impl Found {
    const CAP: u8 = 2;
    const BATCH: u8 = 3;

    /// The message at `at`, if one is there whose checksum holds. Counts what it had to sum up.
    fn at(segment: &[u8], at: usize, number: Option<u64>, summed: &mut usize) -> Option<Self> {
        let bytes = segment.get(at..)?;
        let mut rest = bytes.get(4..)?;
        let kind = take(&mut rest).filter(|kind| (1..=11).contains(kind))?;
        let length = varint(&mut rest)?;
        let segment = varint(&mut rest)?;
        if number.is_some_and(|number| number != segment) {
            return None;
        }
        let page = varint(&mut rest)?;
        let start = bytes.len() - rest.len();
        let body = rest.get(..usize::try_from(length).ok()?)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(body);
        sum.update(bytes.get(4..start)?);
        *summed = summed.saturating_add(body.len() + start);
        let expected = u32::from_le_bytes(*bytes.first_chunk()?);
        (sum.finalize() ^ u32::MAX == expected).then(|| Self {
            kind,
            segment,
            page,
            at,
            body: at + start..at + start + body.len(),
        })
    }

    /// The first one from `at` on.
    fn from(segment: &Segment, at: usize, number: Option<u64>) -> Option<Self> {
        let mut summed = 0;
        for at in at..LAST.min(segment.filled) {
            let found = Self::at(&segment.bytes, at, number, &mut summed);
            if found.is_some() || summed > MAX_SEARCH {
                return found;
            }
        }
        None
    }

    fn bytes<'a>(&self, segment: &'a [u8]) -> &'a [u8] {
        segment.get(self.body.clone()).unwrap_or_default()
    }

    /// The place in the log up to which this batch reaches, if it is the begin of one.
    fn batch(&self, segment: &[u8]) -> Option<u64> {
        let last = self.bytes(segment).first_chunk()?;
        (self.kind == Self::BATCH).then_some(u64::from_le_bytes(*last))
    }
}

/// A segment as it was read.
struct Segment {
    bytes: Vec<u8>,
    /// Behind this there are only zeros.
    filled: usize,
}

/// The whole messages of a segment, each with the place where one should have begun.
struct Walk<'a> {
    segment: &'a Segment,
    number: u64,
    place: usize,
    /// Whether the end of the segment was reached.
    ended: bool,
}

impl<'a> Walk<'a> {
    const fn new(segment: &'a Segment, number: u64) -> Self {
        Self {
            segment,
            number,
            place: HEADER,
            ended: false,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = (usize, Found);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.place >= LAST {
            self.ended = true;
            return None;
        }
        let (place, number) = (self.place, Some(self.number));
        let found = Found::at(&self.segment.bytes, place, number, &mut 0)
            .or_else(|| Found::from(self.segment, place, number))?;
        self.place = found.body.end;
        self.ended = found.kind == Found::CAP;
        Some((place, found))
    }
}

/// A log on disk.
pub(super) struct Log<'a> {
    /// The database's directory.
    path: &'a Path,
    file: File,
    /// Where its segments are, by their number.
    segments: BTreeMap<u64, u64>,
    /// Where there is none with a header.
    others: Vec<u64>,
    /// Up to here it was whole when its last segment was begun, or its index was written.
    stable: u64,
    /// Up to here it has an index.
    indexed: u64,
}

impl<'a> Log<'a> {
    const STEP: u64 = Sled::SEGMENT as u64;

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
            let mut header = [0; HEADER];
            let read = log.file.read_exact_at(&mut header, at);
            match read.ok().and_then(|()| segment(&header)) {
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
    pub fn find_lost(&mut self, told: &mut Checkup) -> io::Result<()> {
        for at in std::mem::take(&mut self.others) {
            let segment = self.read(at)?;
            if let Some(found) = Found::from(&segment, HEADER, None) {
                note(told, at, &"its header is damaged");
                self.segments.entry(found.segment).or_insert(at);
            }
        }
        Ok(())
    }

    /// The newest segment is mostly zeros: memory of zeros that nobody touches costs nothing.
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

    /// Gives every whole message of a page in order. A batch at the end of the log of which the
    /// end is missing was never acknowledged, or is found by the mark: the log ends before it.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn messages(
        &self,
        told: &mut Checkup,
        mut each: impl FnMut(&Message<'_>),
    ) -> io::Result<()> {
        let end = self.end()?;
        let last = self.segments.keys().next_back().copied();
        for (&number, &at) in &self.segments {
            let segment = self.read(at)?;
            let mut walk = Walk::new(&segment, number);
            for (place, found) in walk.by_ref() {
                if place < found.at {
                    note(told, at, &format_args!("bytes {place} to {}", found.at));
                }
                if found
                    .batch(&segment.bytes)
                    .is_some_and(|until| until >= end)
                {
                    return Ok(());
                }
                match self.message(&found, &segment.bytes) {
                    Ok(message) => message.iter().for_each(&mut each),
                    Err(error) => {
                        let error = corrupt(&error.to_string());
                        told.note(None, "a file of the database", &error);
                    }
                }
            }
            if !walk.ended && last != Some(number) {
                note(told, at, &format_args!("bytes from {}", walk.place));
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
            let found = Found::from(&self.read(*at)?, HEADER, None);
            newest = newest.max(found.map(|found| found.segment));
        }
        let mut batches = Vec::new();
        let mut number = self.stable / Self::STEP;
        let mut end = place(number, 0);
        let behind = loop {
            let Some(&at) = self.segments.get(&number) else {
                break newest >= Some(number);
            };
            let segment = self.read(at)?;
            let mut walk = Walk::new(&segment, number);
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
        for (&number, &at) in self.segments.range(..=before / Self::STEP).rev() {
            let segment = self.read(at)?;
            let those = Walk::new(&segment, number).map(|(_, found)| found);
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
    fn message<'s>(&self, found: &Found, segment: &'s [u8]) -> io::Result<Option<Message<'s>>> {
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
            if let Some((_, found)) = Walk::new(&segment, number).last() {
                return Ok(place(number, found.body.end));
            }
        }
        Ok(0)
    }
}

/// A place in the log.
const fn place(number: u64, at: usize) -> u64 {
    number.saturating_mul(Log::STEP).saturating_add(at as u64)
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

/// The number of a segment, by its header, and how far the log was whole when it was begun.
fn segment(header: &[u8; HEADER]) -> Option<(u64, u64)> {
    let (sum, rest) = header.split_first_chunk::<4>()?;
    let (place, stable) = rest.split_first_chunk::<8>()?;
    let [place, stable] = [*place, *stable.first_chunk()?].map(|number| {
        let number = i64::from_le_bytes(number) ^ i64::MAX;
        // Nothing was whole yet: -1.
        u64::try_from(number).unwrap_or(0)
    });
    let whole = crc32fast::hash(rest) == u32::from_le_bytes(*sum) ^ u32::MAX;
    (whole && place.is_multiple_of(Log::STEP)).then_some((place / Log::STEP, stable))
}

fn note(told: &mut Checkup, segment: u64, what: &dyn std::fmt::Display) {
    let error = corrupt(&format!("the segment at byte {segment} of the log: {what}"));
    told.note(None, "a place in the log", &error);
}

/// The first byte.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// A number of one to nine bytes: small ones in one, then two and three, then by its length.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let first = u64::from(take(bytes)?);
    match first {
        0..=240 => Some(first),
        241..=248 => Some(240 + 256 * (first - 241) + u64::from(take(bytes)?)),
        249 => Some(2288 + 256 * u64::from(take(bytes)?) + u64::from(take(bytes)?)),
        _ => {
            let (number, rest) = bytes.split_at_checked(usize::try_from(first).ok()? - 247)?;
            *bytes = rest;
            let low = number.iter().rev();
            Some(low.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_they_are_written() {
        for (bytes, number) in [
            (&[0][..], 0),
            (&[240], 240),
            (&[241, 0], 240),
            (&[241, 1], 241),
            (&[248, 255], 2_287),
            (&[249, 0, 0], 2_288),
            (&[249, 255, 255], 67_823),
            (&[250, 1, 2, 3], 0x03_02_01),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255], u64::MAX),
        ] {
            let mut rest = bytes;
            assert_eq!(varint(&mut rest), Some(number), "{bytes:?}");
            assert!(rest.is_empty());
            for cut in 0..bytes.len() {
                assert_eq!(varint(&mut &bytes[..cut]), None, "{bytes:?}");
            }
        }
    }

    /// A message as it lies in a segment.
    fn message(kind: u8, segment: u8, page: u8, body: &[u8]) -> Vec<u8> {
        let head = [kind, u8::try_from(body.len()).unwrap(), segment, page];
        let sum = crc32fast::hash(&[body, &head].concat()) ^ u32::MAX;
        [&sum.to_le_bytes(), &head, body].concat()
    }

    fn header(number: u64) -> Vec<u8> {
        let mask = u64::MAX >> 1;
        let rest = [(number * Log::STEP) ^ mask, mask]
            .map(u64::to_le_bytes)
            .concat();
        let sum = crc32fast::hash(&rest) ^ u32::MAX;
        [&sum.to_le_bytes()[..], &rest].concat()
    }

    /// Page and body of every message of a log of these segments.
    fn read(segments: &[Vec<u8>]) -> (Vec<(u64, Vec<u8>)>, Checkup) {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Vec::new();
        for segment in segments {
            log.extend_from_slice(segment);
            let full = log.len().next_multiple_of(Sled::SEGMENT);
            log.resize(full, 0);
        }
        fs::write(dir.path().join("db"), log).unwrap();
        let (mut told, mut out) = (Checkup::default(), Vec::new());
        let mut log = Log::open(dir.path()).unwrap();
        log.cut().unwrap();
        log.find_lost(&mut told).unwrap();
        log.messages(&mut told, |message| {
            out.push((message.page, message.body.to_vec()));
        })
        .unwrap();
        (out, told)
    }

    #[test]
    fn damage_costs_the_message_it_hits() {
        let first = message(8, 0, 7, b"first");
        let second = message(10, 0, 8, b"second");
        let third = message(10, 0, 9, b"third");
        let whole = [header(0), first, second, third, message(2, 0, 0, b"")].concat();
        let (all, told) = read(std::slice::from_ref(&whole));
        assert_eq!(all.len(), 3);
        assert_eq!(told.wrong, []);
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let (found, _) = read(&[bad]);
            assert!(found.len() >= 2, "bit {bit}: {found:?}");
            assert!(found.iter().all(|one| all.contains(one)), "bit {bit}");
        }
    }

    /// The second message of three.
    #[test]
    fn what_lies_between_two_whole_messages_is_told() {
        let three = [
            message(8, 0, 7, b"first"),
            message(10, 0, 8, b"second"),
            message(10, 0, 9, b"third"),
        ];
        let from = HEADER + three[0].len();
        let to = from + three[1].len();
        let mut bad = [vec![header(0)], three.to_vec()].concat().concat();
        bad[from + 9] ^= 1;
        let (found, told) = read(&[bad]);
        assert_eq!(found.len(), 2);
        let told: Vec<&String> = told.wrong.iter().map(|wrong| &wrong.error).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("segment at byte 0") && told[0].contains(&format!("{from} to {to}")),
            "{told:?}"
        );
    }

    /// A message of which the body lies in a file of its own.
    fn with_blob(change: impl FnOnce(&mut Vec<u8>)) -> (Option<Vec<u8>>, Checkup) {
        let dir = tempfile::tempdir().unwrap();
        let log = [header(0), message(11, 0, 7, &5_i64.to_le_bytes())].concat();
        fs::write(dir.path().join("db"), log).unwrap();
        fs::create_dir(dir.path().join("blobs")).unwrap();
        let body = [&[11], &b"long"[..]].concat();
        let sum = crc32fast::hash(&body).to_le_bytes();
        let mut blob = [&sum[..], &body].concat();
        change(&mut blob);
        fs::write(dir.path().join("blobs/5"), blob).unwrap();
        let (mut told, mut out) = (Checkup::default(), None);
        let log = Log::open(dir.path()).unwrap();
        log.messages(&mut told, |message| {
            assert_eq!(message.kind, Kind::Link);
            out = Some(message.body.to_vec());
        })
        .unwrap();
        (out, told)
    }

    #[test]
    fn a_message_in_a_file_of_its_own_is_read_when_it_is_whole() {
        let (whole, told) = with_blob(|_| {});
        assert_eq!(whole.as_deref(), Some(&b"long"[..]));
        assert_eq!(told.wrong, []);
        for bit in 0..9 * 8 {
            let (bad, told) = with_blob(|blob| blob[bit / 8] ^= 1 << (bit % 8));
            assert_eq!(bad, None, "bit {bit}");
            assert_eq!(told.wrong.len(), 1, "bit {bit}");
        }
        // A whole one, of another kind.
        let (bad, told) = with_blob(|blob| {
            blob[4] = 9;
            let sum = crc32fast::hash(&blob[4..]).to_le_bytes();
            blob[..4].copy_from_slice(&sum);
        });
        assert_eq!(bad, None);
        assert!(told.wrong[0].error.contains("it is another"), "{told:?}");
        let (bad, told) = with_blob(|blob| blob.resize(3, 0));
        assert_eq!((bad, told.wrong.len()), (None, 1));
    }

    #[test]
    fn a_file_that_is_longer_than_any_message_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("blobs")).unwrap();
        let file = File::create(dir.path().join("blobs/5")).unwrap();
        let read = |length: u64| {
            file.set_len(length).unwrap();
            let error = blob(dir.path(), &5_i64.to_le_bytes(), 9).unwrap_err();
            error.to_string()
        };
        assert!(read(MAX_BLOB + 1).ends_with("it is too long"));
        assert!(read(MAX_BLOB).ends_with("its checksum does not match"));
    }

    #[test]
    fn a_whole_message_that_says_nothing_is_told() {
        let told = |bodies: &[&[u8]]| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = header(0);
            bodies
                .iter()
                .for_each(|body| log.extend(message(8, 0, 7, body)));
            fs::write(dir.path().join("db"), log).unwrap();
            let mut told = Checkup::default();
            super::super::salvage::read_all(dir.path(), &mut told).unwrap();
            let errors = told.wrong.into_iter().map(|wrong| wrong.error);
            errors.collect::<Vec<_>>()
        };
        // A page without rows, and bytes that are none.
        let empty = [0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(told(&[&empty]), [""; 0]);
        let odd = told(&[&[9], &empty, &[8]]);
        assert_eq!(odd.len(), 1, "{odd:?}");
        assert!(odd[0].contains("2 messages say nothing"), "{odd:?}");
    }

    #[test]
    fn the_newest_message_before_a_place_is_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = [header(0), message(10, 0, 7, b"first")].concat();
        let place = first.len() as u64;
        let log = [first, message(10, 0, 7, b"second")].concat();
        let end = log.len() as u64;
        fs::write(dir.path().join("db"), log).unwrap();
        let log = Log::open(dir.path()).unwrap();
        let newest = |before| {
            let body = log.newest(before, |message| Some(message.body.to_vec()));
            body.unwrap().map(|body| String::from_utf8(body).unwrap())
        };
        assert_eq!(newest(end).as_deref(), Some("second"));
        assert_eq!(newest(place + 1).as_deref(), Some("second"));
        assert_eq!(newest(place).as_deref(), Some("first"));
        assert_eq!(newest(HEADER as u64), None);
    }

    #[test]
    fn segments_are_read_in_the_order_of_the_log_and_old_ends_are_not() {
        let old = message(10, 1, 1, b"of an earlier use");
        let newer = [header(5), message(10, 5, 2, b"newer"), old].concat();
        let older = [
            header(3),
            message(10, 3, 1, b"older"),
            message(2, 3, 0, b""),
        ]
        .concat();
        let (found, told) = read(&[newer, older]);
        let bodies: Vec<&[u8]> = found.iter().map(|(_, body)| &body[..]).collect();
        assert_eq!(bodies, [&b"older"[..], b"newer"]);
        assert_eq!(told.wrong, []);
    }

    #[test]
    fn a_batch_without_its_end_is_not_there() {
        let batch = |until: usize| message(3, 0, 200, &(until as u64).to_le_bytes());
        let length = [header(0), batch(0), message(10, 0, 2, b"in")]
            .concat()
            .len();
        let log = |until| {
            let begin = [header(0), batch(until), message(10, 0, 2, b"in")].concat();
            read(&[begin]).0.len()
        };
        assert_eq!(log(length - 1), 1);
        assert_eq!(log(length), 0);
    }

    /// Where the database would end a log of this one segment, of a batch of two messages, the
    /// second at byte 41, when that does away with some of it.
    fn cut_of(change: impl FnOnce(&mut Vec<u8>)) -> Option<u64> {
        let until = 20 + 16 + 10 + 11 - 1;
        let mut log = [
            header(0),
            message(3, 0, 200, &u64::to_le_bytes(until)),
            message(10, 0, 2, b"in"),
            message(10, 0, 2, b"end"),
        ]
        .concat();
        assert_eq!(log.len() as u64, until + 1);
        change(&mut log);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("db"), log).unwrap();
        Log::open(dir.path()).unwrap().cut().unwrap()
    }

    #[test]
    fn what_the_database_would_do_away_with_is_known() {
        assert_eq!(cut_of(|_| {}), None, "nothing");
        assert_eq!(cut_of(|log| log[40] ^= 1), Some(20), "the batch");
        assert_eq!(
            cut_of(|log| log.truncate(50)),
            Some(20),
            "the batch without its end"
        );
        assert_eq!(
            cut_of(|log| log[21] ^= 1),
            Some(20),
            "all that lies behind it"
        );
        assert_eq!(
            cut_of(|log| log.truncate(30)),
            None,
            "what cannot be read anyway"
        );
    }

    #[test]
    fn the_log_ends_before_a_segment_that_is_missing() {
        let cut = |segments: &[Vec<u8>]| {
            let dir = tempfile::tempdir().unwrap();
            let mut log = Vec::new();
            for segment in segments {
                log.extend_from_slice(segment);
                log.resize(log.len().next_multiple_of(Sled::SEGMENT), 0);
            }
            fs::write(dir.path().join("db"), log).unwrap();
            Log::open(dir.path()).unwrap().cut().unwrap()
        };
        let whole = |number: u64| {
            let segment = u8::try_from(number).unwrap();
            let cap = message(2, segment, 0, b"");
            [header(number), message(10, segment, 2, b"in"), cap].concat()
        };
        assert_eq!(cut(&[whole(0)]), None);
        assert_eq!(cut(&[whole(0), whole(1)]), None);
        assert_eq!(cut(&[whole(0), whole(2)]), Some(Log::STEP));
    }

    #[test]
    fn what_a_message_is_comes_from_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let kinds = [4, 8, 10, 3].map(|kind| message(kind, 0, 7, &[0; 8]));
        fs::write(
            dir.path().join("db"),
            [vec![header(0)], kinds.to_vec()].concat().concat(),
        )
        .unwrap();
        let mut found = Vec::new();
        let log = Log::open(dir.path()).unwrap();
        log.messages(&mut Checkup::default(), |message| found.push(message.kind))
            .unwrap();
        assert_eq!(found, [Kind::Free, Kind::Node, Kind::Link]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut state = 1_u64;
        for _ in 0..20 {
            let noise: Vec<u8> = (0..20_000)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            read(&[noise.clone(), [header(0), noise].concat()]);
        }
    }
}
