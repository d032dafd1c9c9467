//! Errors of an expression: in its text (at load) or in its evaluation (at run time).

/// A mistake in the text of an expression, found when the workflow is loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    pub message: String,
    /// The position of the mistake, in bytes from the start of the parsed string.
    pub offset: usize,
    /// The length of the mistake in bytes; at least 1.
    pub length: usize,
    pub hint: Option<String>,
}

/// An error of an evaluation: a fault of the run, not of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// The message in one line, with the names and kinds of the values involved.
    pub message: String,
    /// The position of the error, in bytes from the start of `text`.
    pub offset: usize,
    /// The length of the wrong part in bytes; at least 1.
    pub length: usize,
    /// The string of the template in which the error occurred.
    pub text: String,
    /// The missing value that was read, if this is the reason for the error.
    pub missing: Option<Box<Missing>>,
}

/// Makes an error without a position. The caller adds the position.
pub(crate) fn wrong(message: String) -> EvalError {
    EvalError {
        message,
        offset: 0,
        length: 1,
        text: String::new(),
        missing: None,
    }
}

/// A missing member or element that an evaluation read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The path of the missing value, as in the expression: `body.done`.
    pub path: String,
    /// The object that lacks the member, as in the expression, and the names of its members. `None` if they are not
    /// known.
    pub object: Option<(String, Vec<String>)>,
}
