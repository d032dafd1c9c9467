//! Reads YAML or JSON text into a tree with lines and columns, under limits of size, depth and aliases.
//! Nothing here interprets a key or touches the file system.
//!
//! YAML (`yaml`) and JSON (`json`) have separate readers, because parsers of YAML refuse some JSON.
//! Both read the text once. They build the tree ([`Node`]) and the notation ([`WrittenText`], how each value is
//! written) together.

mod anchors;
mod bundle;
mod explain;
mod json;
mod locate;
mod lookahead;
mod mistakes;
mod notation;
mod position;
mod repair;
mod tree;
mod words;
mod written;
mod yaml;
mod yaml_1_1;

pub use bundle::{Bundle, SourceFile};
pub use position::{Lines, Position, TextEdit, TextRange, edited};
pub use repair::read_repaired;
pub use tree::{Entry, Kind, Node, Style, Text};
pub use written::{Document, Form, WrittenEntry, WrittenText};

use written::ReadValue;

pub const MAX_BYTES: usize = 16 * 1024 * 1024;
pub const MAX_DEPTH: usize = 128;
/// Maximum number of values in a file. Every alias counts as the values that it repeats. In YAML, keys are counted,
/// too.
pub const MAX_NODES: usize = 100_000;

/// A position in one of a program's files. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index of the file in the [`Bundle`]; 0 is the workflow itself.
    pub file: u16,
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// Number of characters on that line, at least 1.
    pub length: u32,
}

impl Span {
    /// The beginning of the workflow's file.
    pub const START: Self = Self {
        file: 0,
        line: 1,
        column: 1,
        length: 1,
    };
}

/// A mistake in a text that is found when the text is read, before its keys are interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// A stable code in kebab case.
    pub code: &'static str,
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
    /// How Logic Apps reads the text; `None` if the text is a mistake in Logic Apps, too.
    pub azure: Option<&'static str>,
}

impl Span {
    /// Returns the part of a span after the text `skipped`.
    fn after(self, skipped: &str) -> Self {
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut lines = skipped.split('\n').rev();
        let last = small(lines.next().unwrap_or_default().chars().count());
        match small(lines.count()) {
            0 => Self {
                column: self.column.saturating_add(last),
                length: self.length.saturating_sub(last).max(1),
                ..self
            },
            passed => Self {
                line: self.line.saturating_add(passed),
                column: last.saturating_add(1),
                ..self
            },
        }
    }
}

impl Mistake {
    fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            span,
            message: message.into(),
            hint: None,
            azure: None,
        }
    }

    /// Adds to a mistake how Logic Apps reads the text, because Logic Apps accepts it.
    fn forgiven(mut self, azure: &'static str) -> Self {
        self.azure = Some(azure);
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The schema that determines the values of words without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schema {
    /// The core schema of YAML 1.2.
    Core,
    /// YAML 1.1, see [`yaml_1_1`].
    Yaml11,
}

/// The tree, if the text has one, and all mistakes of the text.
pub type Parsed = (Option<Node>, Vec<Mistake>);

/// Reads the text of one file of a bundle.
///
/// A path that ends in `.json` is JSON. Any other file is JSON if it can be read as JSON. If not, it is YAML.
#[must_use]
pub fn parse(bundle: &Bundle, file: u16) -> Parsed {
    let (read, mistakes, _) = read(bundle, file, Schema::Core);
    (read.map(|read| read.node), mistakes)
}

/// Does the same as [`parse`], for a format that uses YAML 1.1: there, words such as `no` and `1_000` are values.
#[must_use]
pub fn parse_yaml_1_1(bundle: &Bundle, file: u16) -> Parsed {
    let (read, mistakes, _) = read(bundle, file, Schema::Yaml11);
    (read.map(|read| read.node), mistakes)
}

/// Reads a file and its notation; returns `None` if the file has no tree.
#[must_use]
pub fn parse_document(bundle: &Bundle, file: u16) -> Option<Document> {
    let (read, _, json) = read(bundle, file, Schema::Core);
    let ReadValue { node, written } = read?;
    Some(Document {
        node,
        written,
        json,
    })
}

/// Returns the value with its notation (`None` if the text has no value), all mistakes, and whether the text is JSON.
fn read(bundle: &Bundle, file: u16, schema: Schema) -> (Option<ReadValue>, Vec<Mistake>, bool) {
    let start = Span {
        file,
        ..Span::START
    };
    let refused = |mistake| (None, vec![mistake], false);
    let Some(source) = bundle.file(file) else {
        return refused(Mistake::new("no-file", start, "no file to read"));
    };
    let content = source.content();
    if content.len() > MAX_BYTES {
        let megabytes = MAX_BYTES / 1024 / 1024;
        let what = format!("the file has {} bytes", content.len());
        let mistake = Mistake::new("file-too-large", start, what);
        return refused(mistake.hint(format!("a workflow file has {megabytes} MiB at most")));
    }
    if content.trim().is_empty() {
        let mistake = Mistake::new("empty-file", start, "the file is empty");
        return refused(mistake.hint("a workflow has `actions`, a bare action a `type`"));
    }
    let named = named_json(&source.path);
    if named || content.trim_start().starts_with(['{', '[']) {
        let (read, mistakes) = json::parse(content, file);
        // A text with a syntax error as JSON may be YAML without a mistake, so it is then read as YAML.
        let exact = read.is_some() && mistakes.iter().all(|mistake| mistake.code != "syntax");
        if named || exact {
            return (read, mistakes, true);
        }
    }
    let (read, mistakes) = yaml::parse(content, file, schema);
    (read, mistakes, false)
}

fn named_json(path: &str) -> bool {
    let extension = std::path::Path::new(path).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
