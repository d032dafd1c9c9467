//! What an editor asks about the text of a workflow: pure functions of the text, which also answer
//! while it is wrong. Places are those of the Language Server Protocol.

pub use crate::source::{Lines, Position, TextEdit, TextRange, edited};
