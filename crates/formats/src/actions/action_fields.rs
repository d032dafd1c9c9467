//! An action while its fields are read, and the result of the reader of its type.

use crate::fields::Fields;
use std::ops::Range;
use windlass_expression::Template;
use windlass_model::hir::{After, FollowUp, RetryPolicy, Step, StepKind};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Span};

pub(crate) struct ActionFields<'n> {
    pub fields: Fields<'n>,
    pub name: Name,
    pub span: Span,
    /// Whether the action's output must be JSON.
    pub wants_json: bool,
    /// Whether the action has a retry policy, or is the action inside of a `retry`.
    pub has_retry: bool,
}

pub(crate) struct Body {
    pub kind: StepKind,
    /// The retry policy that the reader of the action's type found.
    pub retry: Option<RetryPolicy>,
    pub timeout: Option<Template>,
    /// The value that the action's record holds instead of its output.
    pub output: Option<Template>,
    pub follow_up: Option<Box<FollowUp>>,
}

impl From<StepKind> for Body {
    fn from(kind: StepKind) -> Self {
        Self {
            kind,
            retry: None,
            timeout: None,
            output: None,
            follow_up: None,
        }
    }
}

/// A step, and the steps before it if its author named any with `runAfter`.
pub(crate) struct OrderedStep {
    pub step: Step,
    pub after: Option<Vec<After>>,
    /// The range of the entries in the reader's `mentions` (names in expressions) that are from this step.
    pub mentions: Range<usize>,
}

/// Returns true if `operationOptions`, a comma-separated list, contains an option.
pub(crate) fn option(act: &mut ActionFields<'_>, name: &str) -> bool {
    names_option(act.fields.get("operationOptions"), name)
}

pub(crate) fn names_option(options: Option<&Entry>, name: &str) -> bool {
    let options = options.and_then(|entry| entry.value.as_str());
    let mut options = options.unwrap_or_default().split(',');
    options.any(|option| option.trim().eq_ignore_ascii_case(name))
}

/// Finds a member in a map of a definition, ignoring the case of the key.
pub(crate) fn member<'n>(entry: &'n Entry, key: &str) -> Option<&'n Entry> {
    let mut entries = entry.value.entries()?.iter();
    entries.find(|entry| entry.key.eq_ignore_ascii_case(key))
}
