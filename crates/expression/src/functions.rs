//! A list of functions for people: the functions of WDL, and the filters, tests and functions of Jinja.
//! Each has its signature, an example, and the value of the example. The examples of WDL are from
//! `docs/reference/expressions.md`.

use super::jinja::{JINJA_NAMES, JinjaName};
use std::sync::LazyLock;

/// A function, a filter or a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: &'static str,
    /// The call with its parameters: `substring(text, start, length?)`.
    pub signature: &'static str,
    pub example: &'static str,
    /// The value of the example, as JSON. Empty if it is not documented.
    pub gives: &'static str,
    /// A further note. Empty if there is no note.
    pub about: &'static str,
}

/// The kind of a name in Jinja.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JinjaKind {
    Filter,
    Test,
    Function,
}

/// The signatures of the functions of WDL. `?` marks an optional parameter, `…` a repeated one.
const SIGNATURES: &str = include_str!("functions.txt");

static WDL: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let docs = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/reference/expressions.md"
    ));
    let rows: Vec<[&str; 4]> = docs.lines().filter_map(row).collect();
    let function = |signature: &'static str| {
        let (name, _) = signature.split_once('(')?;
        let [_, example, gives, about] = *rows.iter().find(|row| row.first() == Some(&name))?;
        Some(Function {
            name,
            signature,
            example,
            gives,
            about,
        })
    };
    SIGNATURES.lines().filter_map(function).collect()
});

/// Returns the cells of a line of the reference's tables: name, example, value, note.
fn row(line: &'static str) -> Option<[&'static str; 4]> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix('|')?.split(" | ");
    let mut cell = || cells.next().map(|cell| cell.trim().trim_matches('`'));
    let (name, example, gives) = (cell()?, cell()?, cell()?);
    Some([name, example, gives, cell().unwrap_or_default()])
}

/// Returns the functions of WDL, in the order and groups of the reference.
#[must_use]
pub fn wdl_functions() -> &'static [Function] {
    &WDL
}

/// Returns the names of WDL's functions, each with its minimum and maximum number of arguments.
pub fn wdl_arities() -> impl Iterator<Item = (&'static str, usize, usize)> {
    super::wdl::functions::arities()
}

/// Returns the filters, tests and functions of Jinja.
pub fn jinja_functions() -> impl Iterator<Item = (JinjaKind, Function)> {
    JINJA_NAMES.iter().map(
        |JinjaName {
             kind,
             signature,
             example,
         }| {
            let end = signature.find(['(', ' ']).unwrap_or(signature.len());
            let function = Function {
                name: signature.get(..end).unwrap_or(signature),
                signature,
                example,
                gives: "",
                about: "",
            };
            (*kind, function)
        },
    )
}
