//! An action while it is read, and what the reader of its type makes of it.

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
    /// Whether its output must be JSON.
    pub wants_json: bool,
    /// Whether its author, or an action around it alone, says how it is retried.
    pub has_retry: bool,
}

pub(crate) struct Body {
    pub kind: StepKind,
    /// Retries that the type itself brings.
    pub retry: Option<RetryPolicy>,
    pub timeout: Option<Template>,
    /// What its record holds instead of its own output.
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

/// A step with its predecessors, when its author named any.
pub(crate) struct OrderedStep {
    pub step: Step,
    pub after: Option<Vec<After>>,
    /// Which of the reader's mentions are its own.
    pub mentions: Range<usize>,
}

/// Whether `operationOptions`, a list with commas, names an option.
pub(crate) fn option(act: &mut ActionFields<'_>, name: &str) -> bool {
    names_option(act.fields.get("operationOptions"), name)
}

pub(crate) fn names_option(options: Option<&Entry>, name: &str) -> bool {
    let options = options.and_then(|entry| entry.value.as_str());
    let mut options = options.unwrap_or_default().split(',');
    options.any(|option| option.trim().eq_ignore_ascii_case(name))
}

/// A member of a map of a definition.
pub(crate) fn member<'n>(entry: &'n Entry, key: &str) -> Option<&'n Entry> {
    let mut entries = entry.value.entries()?.iter();
    entries.find(|entry| entry.key.eq_ignore_ascii_case(key))
}
