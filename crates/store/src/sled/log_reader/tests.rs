//! Tests with logs that are made by hand, complete and damaged.

use super::*;

/// Returns a message as it is in a segment.
fn message(kind: u8, segment: u8, page: u8, body: &[u8]) -> Vec<u8> {
    let head = [kind, u8::try_from(body.len()).unwrap(), segment, page];
    let sum = crc32fast::hash(&[body, &head].concat()) ^ u32::MAX;
    [&sum.to_le_bytes(), &head, body].concat()
}

fn header(number: u64) -> Vec<u8> {
    header_after(number, 0)
}

/// Returns the header of a segment. `stable` is the position up to which the log was complete when the segment was
/// begun.
fn header_after(number: u64, stable: u64) -> Vec<u8> {
    let mask = u64::MAX >> 1;
    let rest = [(number * STEP) ^ mask, stable ^ mask]
        .map(u64::to_le_bytes)
        .concat();
    let sum = crc32fast::hash(&rest) ^ u32::MAX;
    [&sum.to_le_bytes()[..], &rest].concat()
}

/// Returns the page and the body of every message in a log with these segments.
fn read(segments: &[Vec<u8>]) -> (Vec<(u64, Vec<u8>)>, IntegrityReport) {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Vec::new();
    for segment in segments {
        log.extend_from_slice(segment);
        let full = log.len().next_multiple_of(Sled::SEGMENT);
        log.resize(full, 0);
    }
    fs::write(dir.path().join("db"), log).unwrap();
    let (mut report, mut out) = (IntegrityReport::default(), Vec::new());
    let mut log = Log::open(dir.path()).unwrap();
    log.sled_end().unwrap();
    log.find_lost(&mut report).unwrap();
    log.messages(u64::MAX, &mut report, |message| {
        out.push((message.page, message.body.to_vec()));
    })
    .unwrap();
    (out, report)
}

#[test]
fn damage_costs_the_message_it_hits() {
    let first = message(8, 0, 7, b"first");
    let second = message(10, 0, 8, b"second");
    let third = message(10, 0, 9, b"third");
    let whole = [header(0), first, second, third, message(2, 0, 0, b"")].concat();
    let (all, report) = read(std::slice::from_ref(&whole));
    assert_eq!(all.len(), 3);
    assert_eq!(report.issues, []);
    for bit in 0..whole.len() * 8 {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let (found, _) = read(&[bad]);
        assert!(found.len() >= 2, "bit {bit}: {found:?}");
        assert!(found.iter().all(|one| all.contains(one)), "bit {bit}");
    }
}

/// The second message of three is damaged, and this is reported.
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
    let (found, report) = read(&[bad]);
    assert_eq!(found.len(), 2);
    let report: Vec<&String> = report.issues.iter().map(|wrong| &wrong.error).collect();
    assert_eq!(report.len(), 1, "{report:?}");
    assert!(
        report[0].contains("segment at byte 0") && report[0].contains(&format!("{from} to {to}")),
        "{report:?}"
    );
}

/// Reads a message whose body is in a file of its own. `change` damages that file.
fn with_blob(change: impl FnOnce(&mut Vec<u8>)) -> (Option<Vec<u8>>, IntegrityReport) {
    with_blob_of(11, Kind::Link, change)
}

fn with_blob_of(
    number: u8,
    kind: Kind,
    change: impl FnOnce(&mut Vec<u8>),
) -> (Option<Vec<u8>>, IntegrityReport) {
    let dir = tempfile::tempdir().unwrap();
    let log = [header(0), message(number, 0, 7, &5_i64.to_le_bytes())].concat();
    fs::write(dir.path().join("db"), log).unwrap();
    fs::create_dir(dir.path().join("blobs")).unwrap();
    let body = [&[number], &b"long"[..]].concat();
    let sum = crc32fast::hash(&body).to_le_bytes();
    let mut blob = [&sum[..], &body].concat();
    change(&mut blob);
    fs::write(dir.path().join("blobs/5"), blob).unwrap();
    let (mut report, mut out) = (IntegrityReport::default(), None);
    let log = Log::open(dir.path()).unwrap();
    log.messages(u64::MAX, &mut report, |message| {
        assert_eq!(message.kind, kind);
        out = Some(message.body.to_vec());
    })
    .unwrap();
    (out, report)
}

#[test]
fn a_message_in_a_file_of_its_own_is_read_when_it_is_whole() {
    for (number, kind) in [(9, Kind::Node), (11, Kind::Link)] {
        let (whole, report) = with_blob_of(number, kind, |_| {});
        assert_eq!(whole.as_deref(), Some(&b"long"[..]));
        assert_eq!(report.issues, []);
    }
    for bit in 0..9 * 8 {
        let (bad, report) = with_blob(|blob| blob[bit / 8] ^= 1 << (bit % 8));
        assert_eq!(bad, None, "bit {bit}");
        assert_eq!(report.issues.len(), 1, "bit {bit}");
    }
    // A complete file, but of another kind than the message says.
    let (bad, report) = with_blob(|blob| {
        blob[4] = 9;
        let sum = crc32fast::hash(&blob[4..]).to_le_bytes();
        blob[..4].copy_from_slice(&sum);
    });
    assert_eq!(bad, None);
    assert!(
        report.issues[0].error.contains("it is another"),
        "{report:?}"
    );
    let (bad, report) = with_blob(|blob| blob.resize(3, 0));
    assert_eq!((bad, report.issues.len()), (None, 1));
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
    let report = |bodies: &[&[u8]]| {
        let dir = tempfile::tempdir().unwrap();
        let mut log = header(0);
        bodies
            .iter()
            .for_each(|body| log.extend(message(8, 0, 7, body)));
        fs::write(dir.path().join("db"), log).unwrap();
        let mut log = Log::open(dir.path()).unwrap();
        let (_, report) = crate::sled::log_pages::Pages::read(&mut log, u64::MAX).unwrap();
        let errors = report.issues.into_iter().map(|wrong| wrong.error);
        errors.collect::<Vec<_>>()
    };
    // A page without rows, and bytes that are not a valid page.
    let empty = [0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(report(&[&empty]), [""; 0]);
    let odd = report(&[&[9], &empty, &[8]]);
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
    let (found, report) = read(&[newer, older]);
    let bodies: Vec<&[u8]> = found.iter().map(|(_, body)| &body[..]).collect();
    assert_eq!(bodies, [&b"older"[..], b"newer"]);
    assert_eq!(report.issues, []);
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

/// Returns the position at which sled would end a log with one segment; `None` if sled would remove nothing. The
/// segment has a batch of two messages; the second begins at byte 41.
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
    Log::open(dir.path()).unwrap().sled_end().unwrap()
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

/// Creates a log with these segments.
fn laid_out(segments: &[Vec<u8>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Vec::new();
    for segment in segments {
        log.extend_from_slice(segment);
        log.resize(log.len().next_multiple_of(Sled::SEGMENT), 0);
    }
    fs::write(dir.path().join("db"), log).unwrap();
    dir
}

fn sled_end(segments: &[Vec<u8>]) -> Option<u64> {
    let dir = laid_out(segments);
    Log::open(dir.path()).unwrap().sled_end().unwrap()
}

/// Returns a segment with a header, a message and an end.
fn whole_after(number: u64, stable: u64) -> Vec<u8> {
    let segment = u8::try_from(number).unwrap();
    let cap = message(2, segment, 0, b"");
    let header = header_after(number, stable);
    [header, message(10, segment, 2, b"in"), cap].concat()
}

fn whole(number: u64) -> Vec<u8> {
    whole_after(number, 0)
}

#[test]
fn the_log_ends_before_a_segment_that_is_missing() {
    assert_eq!(sled_end(&[whole(0)]), None);
    assert_eq!(sled_end(&[whole(0), whole(1)]), None);
    assert_eq!(sled_end(&[whole(0), whole(2)]), Some(STEP));
}

/// Damage before the position up to which the log was complete does not change where the log ends.
#[test]
fn the_end_is_looked_for_behind_what_was_whole() {
    let damaged = |segment: Vec<u8>| {
        let mut segment = segment;
        segment[HEADER + 9] ^= 1;
        segment
    };
    let stable = 2 * STEP + HEADER as u64;
    let last = || whole_after(3, stable);
    assert_eq!(sled_end(&[whole(0), whole(1), whole(2), last()]), None);
    let before = [whole(0), damaged(whole(1)), whole(2), last()];
    assert_eq!(sled_end(&before), None);
    let behind = [whole(0), whole(1), whole(2), damaged(last())];
    assert_eq!(sled_end(&behind), Some(3 * STEP + HEADER as u64));
}

#[test]
fn the_newest_message_is_the_last_one_before_a_place() {
    let dir = laid_out(&[whole(0), whole(1), whole(2)]);
    let log = Log::open(dir.path()).unwrap();
    let newest = |before: u64| log.newest(before, |message| Some(message.lsn)).unwrap();
    let first = HEADER as u64;
    assert_eq!(newest(first), None);
    assert_eq!(newest(first + 1), Some(first));
    assert_eq!(newest(STEP), Some(first));
    assert_eq!(newest(2 * STEP), Some(STEP + first));
    assert_eq!(newest(9 * STEP), Some(2 * STEP + first));
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
    log.messages(u64::MAX, &mut IntegrityReport::default(), |message| {
        found.push(message.kind)
    })
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
