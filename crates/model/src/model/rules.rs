//! What formats decide differently about a run. A format says it once, with the tree it makes; what
//! runs knows these rules and no format.

use windlass_expression::Mode;

/// The rules of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The rules of its expressions.
    pub mode: Mode,
    /// Names of variables differ by case.
    pub case_sensitive: bool,
    /// A bare number is a duration in seconds.
    pub bare_seconds: bool,
    /// A name that nothing has reads as null, at every place of an expression.
    pub missing_is_null: bool,
    /// An assignment creates a variable that is not there.
    pub creates_variables: bool,
    /// The cases of a switch are text that equals the number or boolean it spells.
    pub cases_are_text: bool,
    /// A variable may be called `env`.
    pub env_variable: bool,
    /// How an action reads that was not run and never will be.
    pub not_run: UnrunActionValue,
    /// After a foreach, an action of its body reads as the list of what its iterations gave.
    pub lists_iterations: bool,
    /// An action's code is the words of the HTTP status in its output.
    pub http_codes: bool,
    /// The history calls actions by their titles, and an anonymous step by the node it is part of.
    pub reports_nodes: bool,
    /// The history has every check of a loop's condition, also the one that ends the loop.
    pub reports_checks: bool,
    /// Diagrams show nodes and the ports between them, not states.
    pub shows_ports: bool,
    /// The types whose inside a diagram shows on demand only.
    pub closed_nodes: &'static [&'static str],
    /// The format's own words for why a loop ended: the loop's type, the reason, the word.
    pub exit_words: &'static [(&'static str, &'static str, &'static str)],
}

/// How an action reads that was not run by what is around it, and never will be, because that has
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnrunActionValue {
    Error,
    /// As cancelled where a time limit ended what is around it; else as an error.
    Cancelled,
    Skipped,
}
