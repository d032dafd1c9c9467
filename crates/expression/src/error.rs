//! What can be wrong with an expression: its text (at load) or its evaluation (at run time).

/// A mistake in the text of an expression, found when the workflow is loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    pub message: String,
    /// Where, in bytes from the start of the string as it was given.
    pub offset: usize,
    /// How many bytes are wrong; at least 1.
    pub length: usize,
    pub hint: Option<String>,
}

/// A mistake found while evaluating: a fault of the run, not of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// What is wrong, in one line, with the names and kinds of the values involved.
    pub message: String,
    /// Where, in bytes from the start of the template's string.
    pub offset: usize,
    /// How many bytes of it are to blame; at least 1.
    pub length: usize,
    /// The template string in which it happened.
    pub text: String,
    /// What it read that is not there, if that is why.
    pub missing: Option<Box<Missing>>,
}

/// A mistake without a place: the caller adds it.
pub(crate) fn wrong(message: String) -> EvalError {
    EvalError {
        message,
        offset: 0,
        length: 1,
        text: String::new(),
        missing: None,
    }
}

/// A member or an element that an evaluation read and that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// It, as the expression has it: `body.done`.
    pub path: String,
    /// The object that lacks it, as the expression has it, and the members that it has; none if that is not known.
    pub object: Option<(String, Vec<String>)>,
}
