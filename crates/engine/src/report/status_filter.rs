//! The statuses that filters accept, with a word for runs and iterations that succeeded although one of their actions
//! failed. The status of such a run is `Succeeded`; only filters and counts use the word.

use serde::{Deserialize, Serialize};
use windlass_machine::RunStatus;
use windlass_model::model::Status;

/// The word of a run or an iteration that succeeded although an action of it failed.
pub const SUCCEEDED_WITH_FAILURES: &str = "SucceededWithFailures";

/// A requested status of a run or of an iteration (`S`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusFilter<S> {
    /// The run or iteration succeeded although one of its actions failed.
    SucceededWithFailures,
    /// The status is this one. `Succeeded` includes [`Self::SucceededWithFailures`].
    #[serde(untagged)]
    Is(S),
}

impl<S: Copy + PartialEq> StatusFilter<S> {
    /// Returns whether the filter accepts a status. `with_failures`: the run or iteration succeeded although an action
    /// failed.
    pub fn accepts(self, status: S, with_failures: bool) -> bool {
        match self {
            Self::SucceededWithFailures => with_failures,
            Self::Is(wanted) => wanted == status,
        }
    }

    fn parse_with(text: &str, parse: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        match text.eq_ignore_ascii_case(SUCCEEDED_WITH_FAILURES) {
            true => Some(Self::SucceededWithFailures),
            false => parse(text).map(Self::Is),
        }
    }

    fn word(self, word: impl FnOnce(S) -> &'static str) -> &'static str {
        match self {
            Self::SucceededWithFailures => SUCCEEDED_WITH_FAILURES,
            Self::Is(status) => word(status),
        }
    }
}

impl StatusFilter<RunStatus> {
    /// Parses a filter, ignoring case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with(text, RunStatus::parse)
    }

    /// Returns the word of the filter.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.word(RunStatus::as_str)
    }

    /// Returns all words, for a message.
    #[must_use]
    pub fn words() -> String {
        let words = RunStatus::ALL.map(RunStatus::as_str).into_iter();
        words
            .chain([SUCCEEDED_WITH_FAILURES])
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl StatusFilter<Status> {
    /// Parses a filter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_with(text, Status::parse)
    }
}
