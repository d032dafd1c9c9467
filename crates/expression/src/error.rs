//! Errors of an expression: in its text (at load) or in its evaluation (at run time).

/// A mistake in the text of an expression, found when the workflow is loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    pub message: String,
    /// The position in bytes from the start of the given string.
    pub offset: usize,
    /// The length in bytes of the wrong part; at least 1.
    pub length: usize,
    pub hint: Option<String>,
}

/// An error of an evaluation: a fault of the run, not of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// The message in one line, with the names and kinds of the values involved.
    pub message: String,
    /// The position in bytes from the start of the template's string.
    pub offset: usize,
    /// The length in bytes of the wrong part; at least 1.
    pub length: usize,
    /// The template string with the error.
    pub text: String,
    /// The missing value that the evaluation read, if that is the reason.
    pub missing: Option<Box<Missing>>,
}

/// Makes an error without a position, which the caller adds.
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
    /// The path as in the expression: `body.done`.
    pub path: String,
    /// The object without this member, as in the expression, and the object's members; `None` if they are not known.
    pub object: Option<(String, Vec<String>)>,
}
