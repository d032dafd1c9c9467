//! WDL, the Logic Apps language: text to tree, tree to value.

pub(crate) mod ast;
pub(crate) mod eval;
pub(crate) mod functions;
pub(crate) mod number;
pub(crate) mod parser;
mod print;
pub(crate) mod text;
