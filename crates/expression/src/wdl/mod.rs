//! WDL, the Logic Apps language: parses text to a tree, and evaluates the tree.

pub(crate) mod ast;
mod content;
mod culture;
pub(crate) mod eval;
pub(crate) mod functions;
pub(crate) mod number;
mod number_format;
mod number_parse;
pub(crate) mod parser;
mod print;
pub(crate) mod text;
pub(super) mod time;
mod xml;
mod xml_text;
mod xpath;

#[cfg(test)]
mod tests;
