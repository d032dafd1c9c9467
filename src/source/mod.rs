//! YAML or JSON text to a tree that knows line and column, under limits of size, depth and
//! aliases. This room never interprets what a key means and never touches the file system.

/// A place in one of a program's files. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which file of the [`Bundle`]; 0 is the workflow itself.
    pub file: u16,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
    /// How many characters on that line, at least 1.
    pub length: u32,
}

/// One file's name, as the user gave it, and text.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SourceFile {
    /// The path as shown in diagnostics; `-` for standard input.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

/// Everything a program is compiled from: the workflow and the files that it refers to.
///
/// The whole bundle is stored with a run, so that the run is pinned to what it started with.
#[derive(Clone, Debug, PartialEq, Eq, Default, bincode::Encode, bincode::Decode)]
pub struct Bundle {
    /// The workflow first.
    pub files: Vec<SourceFile>,
}
