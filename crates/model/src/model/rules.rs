//! The rules for runs that differ between formats.
//! A format states them once, with its tree. The machine knows these rules and no format.

use windlass_expression::Mode;

/// The rules of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The rules of its expressions.
    pub mode: Mode,
    /// Whether names of variables that differ only by case are different.
    pub case_sensitive: bool,
    /// Whether a number without a unit is a duration in seconds.
    pub bare_seconds: bool,
    /// Whether an unknown name evaluates to null, everywhere in an expression.
    pub missing_is_null: bool,
    /// Whether an assignment creates a missing variable.
    pub creates_variables: bool,
    /// Whether the cases of a switch are texts. Such a text also equals the number or boolean that it spells.
    pub cases_are_text: bool,
    /// Whether a variable may be called `env`.
    pub env_variable: bool,
    /// The value of a reference to an action that did not run and never will.
    pub unrun_value: UnrunActionValue,
    /// Whether, after a foreach, a reference to an action of its body evaluates to the list of the action's outputs.
    pub lists_iterations: bool,
    /// Whether an action's code is the name of the HTTP status in its output.
    pub http_codes: bool,
    /// Whether the history calls actions by their titles, and an anonymous step by the node that contains it.
    pub reports_nodes: bool,
    /// Whether the history has every check of a loop's condition, including the check that ends the loop.
    pub reports_checks: bool,
    /// Whether diagrams show nodes and the ports between them, not states.
    pub shows_ports: bool,
    /// The types of nodes whose inner nodes a diagram shows only on demand.
    pub closed_nodes: &'static [&'static str],
    /// The format's own words for why a loop ended. Each entry has the loop's type, the reason and the word.
    pub exit_words: &'static [(&'static str, &'static str, &'static str)],
}

/// The value of a reference to an action if the enclosing scope ended without running this action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnrunActionValue {
    Error,
    /// The action counts as cancelled if a time limit ended the enclosing scope. Otherwise, the reference is an
    /// error.
    Cancelled,
    Skipped,
}
