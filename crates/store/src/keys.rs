//! The keys of the store's one tree. A key is a family byte and then parts; keys sort in the order in which rows are
//! read (docs/internals/store-format.md draws them). This file never touches a database.
//!
//! A text in a key ends with a zero byte, so that the keys of one run never begin with the key of another. Inside a
//! text, byte 00 is written as `01 01`, and byte 01 as `01 02`. Numbers are big-endian. Keys are short: a page of the
//! database holds a few hundred of them. Such a page must stay far below the size above which the database would put it
//! into a file of its own.

use super::{StateOwner, WorkflowVersion};
use std::fmt;
use windlass_machine::program::ProgramHash;
use windlass_value::time::Timestamp;

/// The longest run id, in bytes of UTF-8.
pub const MAX_RUN_ID: usize = 128;

/// The kind of a row: the first byte of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Magic and format version.
    Meta,
    /// The number of the last committed group, and the checksum of headers and indexes.
    Root,
    /// The last mark that was synced. The mark is a file next to the database with the number of the last durable
    /// group. The number in the mark is never lower than the number in this row.
    Marked,
    Program,
    /// A workflow that is stored under its name.
    Workflow,
    /// A former text of a stored workflow.
    FormerWorkflow,
    /// A value that a workflow stores between its runs.
    State,
    Header,
    /// A run's whole state at a revision.
    Snapshot,
    /// The record of one commit, or the packed records of several: changes, rows of loops and iterations, events.
    Changes,
    /// Rows of loops and iterations that remain of removed commits.
    Retained,
    /// Archived iterations of removed commits. A row has cells (a few bytes for each iteration), or whole iteration
    /// rows.
    Iterations,
    /// The index of runs by due time.
    Due,
    /// The index of runs that continue at once.
    Runnable,
    /// Rows without content that separate other rows, so that these are on different pages of a database
    /// ([`Kv::padding_rows`](crate::kv::Kv::padding_rows)).
    Padding,
}

/// The first bytes of padding keys. In this order, they are for the padding after the root, after iterations, before
/// the journal, and after the journal.
pub const ROOT_PADDING: u8 = b'h';
pub const ITERATIONS_PADDING: u8 = b'j';
pub const JOURNAL_PADDING: u8 = b'y';
pub const END_PADDING: u8 = b'~';

impl Family {
    /// All families except padding.
    const ALL: [Self; 14] = [
        Self::Meta,
        Self::Root,
        Self::Marked,
        Self::Program,
        Self::Workflow,
        Self::FormerWorkflow,
        Self::State,
        Self::Header,
        Self::Snapshot,
        Self::Changes,
        Self::Retained,
        Self::Iterations,
        Self::Due,
        Self::Runnable,
    ];

    /// The families whose keys begin with a run's id, after the family byte.
    pub const OF_RUN: [Self; 5] = [
        Self::Header,
        Self::Snapshot,
        Self::Changes,
        Self::Retained,
        Self::Iterations,
    ];

    pub const fn byte(self) -> u8 {
        match self {
            Self::Meta => b'm',
            Self::Root => b'g',
            // Next to the root's key: each group writes the root's page anyway, so this row causes no further page to
            // be written.
            Self::Marked => b'f',
            Self::Program => b'p',
            Self::Workflow => b'w',
            Self::FormerWorkflow => b'v',
            Self::State => b'x',
            Self::Header => b'r',
            Self::Snapshot => b's',
            // The journal sorts after all other keys except the final padding. Headers and the root change with every
            // commit. If they were on the same page as the end of the journal, each commit would write that end again.
            Self::Changes => b'z',
            // Between padding rows. Iterations are written once, but headers change with every commit: on a common
            // page, the iterations would be written again with every commit.
            Self::Iterations => b'i',
            Self::Padding => ROOT_PADDING,
            Self::Retained => b'k',
            Self::Due => b't',
            Self::Runnable => b'q',
        }
    }

    /// Returns the family of a key's first byte.
    pub fn of(byte: u8) -> Option<Self> {
        match byte {
            ROOT_PADDING | ITERATIONS_PADDING | JOURNAL_PADDING | END_PADDING => {
                Some(Self::Padding)
            }
            byte => Self::ALL.into_iter().find(|family| family.byte() == byte),
        }
    }

    /// Returns true if rows of this family have a key and no value.
    pub const fn has_no_value(self) -> bool {
        matches!(self, Self::Due | Self::Runnable | Self::Padding)
    }

    /// Returns the family's name for messages.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Meta => "format",
            Self::Root => "root",
            Self::Marked => "last synced mark",
            Self::Program => "program",
            Self::Workflow => "workflow",
            Self::FormerWorkflow => "former workflow",
            Self::State => "state",
            Self::Header => "header",
            Self::Snapshot => "snapshot",
            Self::Changes => "changes",
            Self::Retained => "retained rows",
            Self::Due => "due",
            Self::Runnable => "runnable",
            Self::Iterations => "iterations",
            Self::Padding => "padding",
        }
    }
}

/// Appends the key of a family that has only one row.
pub fn single(out: &mut Vec<u8>, family: Family) {
    out.push(family.byte());
}

pub fn program(out: &mut Vec<u8>, hash: ProgramHash) {
    out.push(Family::Program.byte());
    out.extend_from_slice(&hash.0);
}

pub fn workflow(out: &mut Vec<u8>, name: &str) {
    out.push(Family::Workflow.byte());
    text(out, name.as_bytes());
}

/// Appends the common prefix of the keys of all former texts of a workflow.
pub fn former_workflows(out: &mut Vec<u8>, name: &str) {
    out.push(Family::FormerWorkflow.byte());
    text(out, name.as_bytes());
}

/// Appends the key of a former text of a workflow. These keys sort by the time when the text was stored.
pub fn former_workflow(out: &mut Vec<u8>, name: &str, version: &WorkflowVersion) {
    former_workflows(out, name);
    out.extend_from_slice(&sortable(version.stored_at));
    out.extend_from_slice(&version.program.0);
}

/// Appends the key of a value that a workflow stores between its runs. Without a name, appends the common prefix of
/// the keys of all values of the workflow.
pub fn workflow_state(out: &mut Vec<u8>, owner: &StateOwner, name: Option<&str>) {
    out.push(Family::State.byte());
    out.push(u8::from(owner.guest));
    text(out, owner.workflow.as_bytes());
    if let Some(name) = name {
        text(out, name.as_bytes());
    }
}

/// Appends the common prefix of a run's keys in a family. A run has one header and one row of retained rows, so for
/// these families the prefix is the whole key.
pub fn of_run(out: &mut Vec<u8>, family: Family, run: &str) {
    out.push(family.byte());
    text(out, run.as_bytes());
}

/// Appends the key of a numbered row. For snapshots and changes the number is a revision, for iterations the archive's
/// row number.
pub fn numbered_row(out: &mut Vec<u8>, family: Family, run: &str, number: u64) {
    of_run(out, family, run);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a run's key in the index of due times.
pub fn due(out: &mut Vec<u8>, at: Timestamp, run: &str) {
    due_from(out, at);
    out.extend_from_slice(run.as_bytes());
}

/// Appends the common prefix of all keys with this instant in the index of due times.
pub fn due_from(out: &mut Vec<u8>, at: Timestamp) {
    out.push(Family::Due.byte());
    out.extend_from_slice(&sortable(at));
}

/// Encodes an instant so that bytes sort by time. The flipped sign bit sorts instants before 1970 first.
fn sortable(at: Timestamp) -> [u8; 8] {
    (at.0 ^ i64::MIN).to_be_bytes()
}

fn instant(bytes: [u8; 8]) -> Timestamp {
    Timestamp(i64::from_be_bytes(bytes) ^ i64::MIN)
}

/// Appends a run's key in the index of runnable runs.
pub fn runnable(out: &mut Vec<u8>, run: &str) {
    out.push(Family::Runnable.byte());
    out.extend_from_slice(run.as_bytes());
}

/// Appends the suffix of the key of a record's further piece. Pieces are numbered from 0; piece 0 has no suffix.
pub fn piece(out: &mut Vec<u8>, piece: u32) {
    out.extend_from_slice(&piece.to_be_bytes());
}

/// Returns the first key after all keys that begin with `prefix`. Returns an empty key if no such key exists.
pub fn after(prefix: &[u8]) -> Vec<u8> {
    let mut out = prefix.to_vec();
    while let Some(last) = out.pop() {
        if last < u8::MAX {
            out.push(last + 1);
            break;
        }
    }
    out
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            0 | 1 => out.extend_from_slice(&[1, byte + 1]),
            _ => out.push(byte),
        }
    }
    out.push(0);
}

/// The path of a loop, such as `outer#2/inner`, split into two parts: the names, and the iterations of the enclosing
/// loops. Paths sort first by names, which puts all rows of one loop together. They then sort by iterations, which puts
/// these rows in the order of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopPath {
    names: Vec<u8>,
    outer: Vec<u64>,
}

impl LoopPath {
    /// Splits a path. Two different paths never result in the same parts.
    pub fn new(path: &str) -> Self {
        let (mut names, mut outer) = (Vec::with_capacity(path.len()), Vec::new());
        let mut rest = path;
        while let Some(at) = rest.find('#') {
            let (before, hash) = rest.split_at(at);
            names.extend_from_slice(before.as_bytes());
            names.push(b'#');
            let tail = hash.get(1..).unwrap_or_default();
            rest = match number_before_slash(tail) {
                Some((number, after)) => {
                    outer.push(number);
                    after
                }
                None => tail,
            };
        }
        names.extend_from_slice(rest.as_bytes());
        Self { names, outer }
    }

    /// Returns the iterations of the enclosing loops, the outermost first.
    pub fn outer(&self) -> &[u64] {
        &self.outer
    }

    /// Returns the names, which are the same in all paths of one loop.
    pub fn names(&self) -> &[u8] {
        &self.names
    }
}

/// Splits `12/rest` into the number and the text after the slash. Accepts a number only in the form in which this
/// engine writes it.
fn number_before_slash(text: &str) -> Option<(u64, &str)> {
    let (digits, after) = text.split_once('/')?;
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some((number, after))
}

/// The parts of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub family: Family,
    /// The run's id, if the key has one and it is valid UTF-8.
    pub run: Option<String>,
    /// The revision, or the archive's number of a row of iterations.
    pub number: Option<u64>,
    /// A workflow's name.
    pub workflow: Option<String>,
    /// The name of a value that a workflow stores between its runs.
    pub state: Option<String>,
    /// The former text of a workflow.
    pub version: Option<WorkflowVersion>,
    pub due: Option<Timestamp>,
    /// The number of the record's piece, from 0.
    pub piece: u32,
    /// Length in bytes of the record's key without the suffix for the piece.
    pub record_key_len: usize,
}

/// Parses a key. Returns `None` if this version of the engine does not write such keys.
pub fn parse(key: &[u8]) -> Option<Parsed> {
    let (&byte, rest) = key.split_first()?;
    let family = Family::of(byte)?;
    let mut parsed = Parsed {
        family,
        run: None,
        number: None,
        workflow: None,
        state: None,
        version: None,
        due: None,
        piece: 0,
        record_key_len: key.len(),
    };
    let rest = match family {
        Family::Meta | Family::Root | Family::Marked => rest,
        Family::Program => rest.get(32..)?,
        Family::Padding => rest.get(1..)?,
        Family::Workflow => {
            let (name, rest) = take_text(rest)?;
            parsed.workflow = Some(utf8(&name)?);
            rest
        }
        Family::FormerWorkflow => {
            let (name, rest) = take_text(rest)?;
            parsed.workflow = Some(utf8(&name)?);
            let (at, rest) = rest.split_first_chunk()?;
            let (program, rest) = rest.split_first_chunk()?;
            parsed.version = Some(WorkflowVersion {
                stored_at: instant(*at),
                program: ProgramHash(*program),
            });
            rest
        }
        Family::State => {
            let (workflow, rest) = take_text(rest.get(1..)?)?;
            parsed.workflow = Some(utf8(&workflow)?);
            let (name, rest) = take_text(rest)?;
            parsed.state = Some(utf8(&name)?);
            rest
        }
        Family::Due => {
            let (at, run) = rest.split_first_chunk()?;
            parsed.due = Some(instant(*at));
            parsed.run = Some(utf8(run)?);
            return Some(parsed);
        }
        Family::Runnable => {
            parsed.run = Some(utf8(rest)?);
            return Some(parsed);
        }
        Family::Header | Family::Retained => {
            let (run, rest) = take_text(rest)?;
            parsed.run = Some(utf8(&run)?);
            rest
        }
        Family::Snapshot | Family::Changes | Family::Iterations => {
            let (run, rest) = take_text(rest)?;
            parsed.run = Some(utf8(&run)?);
            let (number, rest) = rest.split_first_chunk()?;
            parsed.number = Some(u64::from_be_bytes(*number));
            rest
        }
    };
    match rest {
        [] => {}
        [a, b, c, d] => {
            parsed.piece = u32::from_be_bytes([*a, *b, *c, *d]);
            parsed.record_key_len = key.len() - 4;
        }
        _ => return None,
    }
    Some(parsed)
}

fn utf8(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn take_text(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut out = Vec::new();
    let mut rest = bytes;
    loop {
        match rest {
            [0, after @ ..] => return Some((out, after)),
            [1, escaped @ (1 | 2), after @ ..] => {
                out.push(escaped - 1);
                rest = after;
            }
            [1, ..] => return None,
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// Describes the row of a key for messages.
impl fmt::Display for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.label())?;
        if let Some(number) = self.number {
            write!(f, " {number}")?;
        }
        if let Some(version) = &self.version {
            write!(f, " {}", version.stored_at)?;
        }
        if let Some(due) = self.due {
            write!(f, " {due}")?;
        }
        if let Some(state) = &self.state {
            write!(f, " {state} of")?;
        }
        if let Some(workflow) = &self.workflow {
            write!(f, " {workflow}")?;
        }
        if let Some(run) = &self.run {
            write!(f, " of run {run}")?;
        }
        if self.piece > 0 {
            write!(f, ", piece {}", self.piece)?;
        }
        Ok(())
    }
}

/// Describes the row of a key for errors. If this version of the engine does not write such keys, describes it by the
/// bytes of the key.
pub fn describe(key: &[u8]) -> String {
    match parse(key) {
        Some(parsed) => parsed.to_string(),
        None => format!("an unknown record {}", key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(f: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        f(&mut out);
        out
    }

    #[test]
    fn paths_split_into_names_and_iterations() {
        let path = LoopPath::new("outer#2/mid#10/inner");
        assert_eq!(path.names, b"outer#mid#inner");
        assert_eq!(path.outer, [2, 10]);
        let odd = LoopPath::new("a#02/b#x/c#/d#99999999999999999999/e#");
        assert_eq!(odd.names, b"a#02/b#x/c#/d#99999999999999999999/e#");
        assert!(odd.outer.is_empty());
    }

    #[test]
    fn commits_sort_in_time_and_apart_from_other_runs() {
        let row = |run: &str, n| key(|k| numbered_row(k, Family::Changes, run, n));
        assert!(row("a", 255) < row("a", 256));
        let prefix = key(|k| of_run(k, Family::Changes, "a"));
        assert!(row("a", 1).starts_with(&prefix));
        assert!(!row("ab", 1).starts_with(&prefix));
        assert!(!row("a\0", 1).starts_with(&prefix));
        let sorted = ["a", "a\0", "a\0b", "a\u{1}", "a\u{2}", "aa"];
        let head = |run: &&str| key(|k| of_run(k, Family::Header, run));
        assert!(sorted.iter().map(head).is_sorted());
        let sorted = ["outer#2/inner", "outer#10/inner", "outer#10/other"];
        assert!(sorted.iter().map(|path| LoopPath::new(path)).is_sorted());
    }

    #[test]
    fn instants_sort() {
        let at = |ms| key(|k| due(k, Timestamp(ms), "r"));
        assert!(at(i64::MIN) < at(-1));
        assert!(at(-1) < at(0));
        assert!(at(0) < at(i64::MAX));
    }

    #[test]
    fn every_key_parses_to_what_it_was_made_of() {
        let run = "r\0\u{1}un";
        let version = WorkflowVersion {
            stored_at: Timestamp(7),
            program: ProgramHash([0; 32]),
        };
        let owner = StateOwner {
            guest: true,
            workflow: run.into(),
        };
        let all = [
            key(|k| single(k, Family::Meta)),
            key(|k| program(k, ProgramHash([0; 32]))),
            key(|k| workflow(k, run)),
            key(|k| former_workflow(k, run, &version)),
            key(|k| workflow_state(k, &owner, Some("since"))),
            vec![ROOT_PADDING, 7],
            vec![JOURNAL_PADDING, 7],
            vec![END_PADDING, 7],
            key(|k| of_run(k, Family::Header, run)),
            key(|k| numbered_row(k, Family::Snapshot, run, 7)),
            key(|k| numbered_row(k, Family::Changes, run, 7)),
            key(|k| numbered_row(k, Family::Iterations, run, 7)),
            key(|k| of_run(k, Family::Retained, run)),
        ];
        for first in all {
            let parsed = parse(&first).unwrap();
            assert_eq!(parsed.piece, 0);
            let names = parsed.run.iter().chain(&parsed.workflow);
            assert!(names.clone().all(|name| name == run), "{parsed}");
            let mut second = first.clone();
            piece(&mut second, 3);
            let again = parse(&second).unwrap();
            assert_eq!(again.piece, 3, "{again}");
            assert_eq!(again.to_string(), format!("{parsed}, piece 3"));
            assert_eq!(again.record_key_len, first.len());
            assert_eq!(again.run, parsed.run);
            assert_eq!(again.workflow, parsed.workflow);
            assert_eq!(again.number, parsed.number);
        }
        assert_eq!(
            describe(&key(|k| numbered_row(k, Family::Changes, "x", 7))),
            "changes 7 of run x"
        );
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"z"), None);
    }

    #[test]
    fn after_ends_a_prefix() {
        assert_eq!(after(b"ab"), b"ac");
        assert_eq!(after(&[b'a', 0xFF]), b"b");
        assert_eq!(after(&[0xFF]), b"");
    }
}
