//! The rules for runs that differ between formats.
//! A format states them once, with its tree. The machine knows these rules and no format.

use windlass_expression::Mode;

/// The rules of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The rules of its expressions.
    pub mode: Mode,
    /// Whether names of variables differ by case.
    pub case_sensitive: bool,
    /// Whether a bare number is a duration in seconds.
    pub bare_seconds: bool,
    /// Whether an unknown name reads as null, everywhere in an expression.
    pub missing_is_null: bool,
    /// Whether an assignment creates a missing variable.
    pub creates_variables: bool,
    /// Whether the cases of a switch are texts that equal the number or boolean that they spell.
    pub cases_are_text: bool,
    /// Whether a variable may be called `env`.
    pub env_variable: bool,
    /// How an action reads that did not run and never will.
    pub unrun_value: UnrunActionValue,
    /// Whether an action of a foreach's body reads, after the foreach, as the list of its outputs.
    pub lists_iterations: bool,
    /// Whether an action's code is the word for the HTTP status in its output.
    pub http_codes: bool,
    /// Whether the history calls actions by their titles, and an anonymous step by the node that it is part of.
    pub reports_nodes: bool,
    /// Whether the history has every check of a loop's condition, also the check that ends the loop.
    pub reports_checks: bool,
    /// Whether diagrams show nodes and the ports between them, not states.
    pub shows_ports: bool,
    /// The types of nodes whose inside a diagram shows only on demand.
    pub closed_nodes: &'static [&'static str],
    /// The format's own words for why a loop ended: the loop's type, the reason, the word.
    pub exit_words: &'static [(&'static str, &'static str, &'static str)],
}

/// How an action reads if the enclosing scope ended without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnrunActionValue {
    Error,
    /// As cancelled if a time limit ended the enclosing scope, else as an error.
    Cancelled,
    Skipped,
}
