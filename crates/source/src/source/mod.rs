//! YAML or JSON text to a tree that knows line and column, under limits of size, depth and aliases.
//! This module never interprets what a key means and never touches the file system.
//!
//! YAML is read by serde_yaml, whose answers count; a marked parser goes over the text first to
//! give the places that serde_yaml does not keep ([`yaml`], [`spans`]). JSON has a reader of its
//! own ([`json`]), because YAML 1.1 parsers refuse some of it. Both build the same [`Node`].

mod bundle;
mod json;
mod layout;
mod locate;
mod mistakes;
mod position;
mod spans;
mod tree;
mod yaml;
mod yaml_1_1;

pub use bundle::{Bundle, SourceFile};
pub use layout::{Form, WrittenEntry, WrittenText, layout};
pub use position::{Lines, Position, TextEdit, TextRange, edited};
pub use tree::{Entry, Kind, Node, Style, Text};

pub const MAX_BYTES: usize = 16 * 1024 * 1024;
pub const MAX_DEPTH: usize = 128;
/// How many values a file may hold, with every alias written out.
pub const MAX_NODES: usize = 100_000;

/// A place in one of a program's files. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which file of the [`Bundle`]; 0 is the workflow itself.
    pub file: u16,
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// How many characters on that line, at least 1.
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

/// What is wrong with a text before anyone asks what it means.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// A stable code in kebab case.
    pub code: &'static str,
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
    /// What Azure makes of it; none where it is a mistake there too.
    pub azure: Option<&'static str>,
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

    /// The same where Azure forgives it, with what it makes of it.
    fn forgiven(mut self, azure: &'static str) -> Self {
        self.azure = Some(azure);
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What makes values of words without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schema {
    /// The core schema of YAML 1.2.
    Core,
    /// YAML 1.1, see [`yaml_1_1`].
    Old,
}

/// A tree, when the text has one, and every mistake of the text.
pub type Parsed = (Option<Node>, Vec<Mistake>);

/// Reads the text of one file of a bundle.
///
/// A path that ends in `.json` is JSON. Anything else is JSON when it reads as such, else YAML.
#[must_use]
pub fn parse(bundle: &Bundle, file: u16) -> Parsed {
    parse_with(bundle, file, Schema::Core)
}

/// The same for a format whose reader knows YAML 1.1: words such as `no` and `1_000` are values.
#[must_use]
pub fn parse_yaml_1_1(bundle: &Bundle, file: u16) -> Parsed {
    parse_with(bundle, file, Schema::Old)
}

fn parse_with(bundle: &Bundle, file: u16, schema: Schema) -> Parsed {
    let start = Span {
        file,
        ..Span::START
    };
    let Some(source) = bundle.file(file) else {
        let missing = Mistake::new("no-file", start, "no file to read");
        return (None, vec![missing]);
    };
    let content = source.content();
    if content.len() > MAX_BYTES {
        let megabytes = MAX_BYTES / 1024 / 1024;
        let mistake = Mistake::new(
            "file-too-large",
            start,
            format!("the file has {} bytes", content.len()),
        )
        .hint(format!("a workflow file has {megabytes} MiB at most"));
        return (None, vec![mistake]);
    }
    if content.trim().is_empty() {
        let mistake = Mistake::new("empty-file", start, "the file is empty")
            .hint("a workflow has `actions`, a bare action a `type`");
        return (None, vec![mistake]);
    }
    let only_json = named_json(&source.path);
    if only_json {
        return json::parse(content, file);
    }
    if let Some(parsed) = json_if_exact(content, file) {
        return parsed;
    }
    yaml::parse(content, file, schema)
}

fn named_json(path: &str) -> bool {
    let extension = std::path::Path::new(path).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// What a text is as JSON; none when that is not exact: what is only nearly JSON may be YAML without a
/// mistake.
fn json_if_exact(content: &str, file: u16) -> Option<Parsed> {
    if !content.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let parsed = json::parse(content, file);
    let exact = parsed.1.iter().all(|mistake| mistake.code != "syntax");
    (parsed.0.is_some() && exact).then_some(parsed)
}

/// Whether a file is read as JSON.
#[must_use]
pub fn is_json(bundle: &Bundle, file: u16) -> bool {
    bundle.file(file).is_some_and(|source| {
        named_json(&source.path) || json_if_exact(source.content(), file).is_some()
    })
}
