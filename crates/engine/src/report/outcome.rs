//! How a run ended or why it is paused, with the position in the author's file.

use super::{BudgetReport, LimitReached};
use serde::{Deserialize, Serialize};
use std::path::Path;
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_formats::replacements;
use windlass_machine::{LoopEnd, LoopState, Outcome, PauseReason, RunError, RunState};
use windlass_model::model::{FAILED_CANCEL, FAILED_ENDINGS, Status, fault_kind};
use windlass_source::source::Bundle;
use windlass_value::time::Timestamp;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeReport {
    /// Final status: `Succeeded`, `Failed`, `TimedOut` or `Cancelled`.
    pub status: Status,
    /// Output of the run. If it did not succeed, the earlier answer of a `Response` action, else null.
    pub output: Value,
    /// Reason why the run did not succeed. Null if it succeeded.
    pub error: Option<ErrorReport>,
    /// Loops that ended at a limit although the run succeeded. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReached>,
    /// Foreaches that continued after failed items (`on_error: continue`). Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_items: Vec<FailedItems>,
    /// `on_failure` and `on_finish`, if they failed. Absent if neither failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_endings: Vec<FailedEnding>,
    /// Operations that the run could not cancel at its end: their servers refused or did not answer. Absent if there
    /// are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_cancels: Vec<FailedCancel>,
    /// Files that the run did not replace, because it did not succeed. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreplaced: Vec<Unreplaced>,
    /// What its loops used of their limits `tokens` and `cost`. Absent without such limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<LoopBudget>,
    /// Time when the run ended.
    pub at: Timestamp,
}

/// An `on_failure` or `on_finish` that failed, so that its alert may not have been sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedEnding {
    /// Name of the handler: `on_failure` or `on_finish`.
    pub ending: String,
    /// Message of its error.
    pub message: String,
}

impl FailedEnding {
    fn of(run: &RunState) -> Vec<Self> {
        let failed = FAILED_ENDINGS.iter().filter_map(|name| {
            let error = run.variables.get(name).filter(|error| !error.is_null())?;
            let message = error.get("message").and_then(Value::as_str);
            Some(Self {
                ending: name.rsplit('.').next().unwrap_or(name).to_owned(),
                message: message.unwrap_or_default().to_owned(),
            })
        });
        failed.collect()
    }

    /// Returns the failure as text for users.
    #[must_use]
    pub fn text(&self) -> String {
        format!("`{}` failed: {}", self.ending, self.message)
    }
}

/// An operation whose `cancel` failed. It may still run at its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedCancel {
    /// Name of the action.
    pub operation: String,
    /// Message of the error.
    pub message: String,
}

impl FailedCancel {
    fn of(run: &RunState) -> Vec<Self> {
        let variables = run.variables.as_object().into_iter().flatten();
        let failed = variables.filter_map(|(name, error)| {
            let action = name.strip_prefix(FAILED_CANCEL)?;
            let message = error.get("message").and_then(Value::as_str)?;
            Some(Self {
                operation: action.strip_suffix(".cancel").unwrap_or(action).to_owned(),
                message: message.to_owned(),
            })
        });
        failed.collect()
    }

    /// Returns the failure as text for users.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { operation, message } = self;
        format!("the operation `{operation}` was not cancelled: {message}")
    }
}

/// A foreach that succeeded although items of it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedItems {
    /// Number of failed items.
    pub failed: u64,
    /// Message with the number of items, the name of the foreach, and the error of the first failed item.
    pub message: String,
}

impl FailedItems {
    fn of(run: &RunState) -> Vec<Self> {
        let root = run.cursors.values().filter(|one| one.parent.is_none());
        let records = root.flat_map(|root| root.records.values());
        let failed = records.filter_map(|record| record.failed_items());
        let all = failed.map(|error| Self {
            failed: error
                .code
                .as_ref()
                .and_then(|code| code.parse().ok())
                .unwrap_or(0),
            message: error.message.clone(),
        });
        all.collect()
    }
}

/// How much an ended loop used of its limit `tokens` or `cost`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoopBudget {
    /// Path of the loop: `outer#2/inner`.
    pub path: String,
    #[serde(flatten)]
    pub budget: BudgetReport,
}

impl LoopBudget {
    fn of(loops: &[LoopState]) -> Vec<Self> {
        let of_loop = |state: &LoopState| {
            let path = state.path.clone();
            let budgets = BudgetReport::of(state).into_iter();
            budgets.map(move |budget| Self {
                path: path.clone(),
                budget,
            })
        };
        loops.iter().flat_map(of_loop).collect()
    }

    /// Returns the budget as text for users.
    #[must_use]
    pub fn text(&self) -> String {
        format!("loop `{}` used {}", self.path, self.budget.text)
    }
}

/// A file that a run should have replaced, and did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unreplaced {
    /// Path of the file.
    pub file: String,
    /// Path of the file with the new rows.
    pub new: String,
}

impl Unreplaced {
    /// Returns the fact as text for users.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} was not touched: the new rows are in {}",
            self.file, self.new
        )
    }

    fn of(variables: &Value) -> Vec<Self> {
        let all = replacements(variables).into_iter();
        // The new file may have been deleted.
        all.filter(|(_, new)| Path::new(new).exists())
            .map(|(file, new)| Self { file, new })
            .collect()
    }
}

/// An error, with the position where it happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorReport {
    /// Kind of the error: `http`, `timeout`, `limit`, …
    pub kind: String,
    /// HTTP status or exit code. Null for other errors.
    pub code: Option<String>,
    /// Message of the error, in one line.
    pub message: String,
    /// Name of the action that failed. Null if the error is not of an action.
    pub action: Option<String>,
    /// Path of the innermost loop around it. Null outside of loops.
    #[serde(rename = "loop")]
    pub loop_path: Option<String>,
    /// Number of the iteration of that loop, from 0. Null outside of loops.
    pub iteration: Option<u64>,
    /// Path of the workflow file. Null if it is unknown, and in lists of runs.
    pub file: Option<String>,
    /// Line in that file, from 1. Null if it is unknown.
    pub line: Option<u32>,
}

/// Why a run is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseReport {
    /// Reason of the pause: `requested` by a user, or `limit`.
    pub reason: String,
    /// Path of the loop that reached a limit. Null for a requested pause.
    #[serde(rename = "loop")]
    pub loop_path: Option<String>,
    /// Limit that the loop reached. Null for a requested pause.
    pub limit: Option<LoopEnd>,
}

impl OutcomeReport {
    /// Makes the report of an outcome. `bundle` is needed for positions in the sources, and `loops` for the limits that
    /// they reached. `run` is the final state of the run, if it was read.
    #[must_use]
    pub fn new(
        outcome: &Outcome,
        bundle: Option<&Bundle>,
        loops: &[LoopState],
        run: Option<&RunState>,
    ) -> Self {
        let error = ErrorReport::of(outcome, bundle);
        // Report reached limits only for a run that succeeded: the error of a failed run names the limit that it failed
        // at.
        let failed_items = run.map(FailedItems::of).unwrap_or_default();
        let failed_endings = run.map(FailedEnding::of).unwrap_or_default();
        let failed_cancels = run.map(FailedCancel::of).unwrap_or_default();
        let (limits, unreplaced) = match &error {
            None => (LimitReached::of(loops), Vec::new()),
            Some(_) => {
                let files = run.map(|run| Unreplaced::of(&run.variables));
                (Vec::new(), files.unwrap_or_default())
            }
        };
        Self {
            status: outcome.status,
            output: outcome.output.clone(),
            error,
            limits,
            failed_items,
            failed_endings,
            failed_cancels,
            unreplaced,
            budgets: LoopBudget::of(loops),
            at: outcome.at,
        }
    }

    /// Returns the document that `run` prints (docs/reference/cli.md): the output, or `{error, status}` with the answer
    /// that a `Response` action sent earlier.
    #[must_use]
    pub fn document(&self) -> Value {
        let Some(error) = &self.error else {
            return self.output.clone();
        };
        let answered = Some(("output", self.output.clone())).filter(|_| !self.output.is_null());
        let failed = [
            ("error", error.to_value()),
            ("status", Value::from(self.status.as_str())),
        ];
        Value::from_pairs(failed.into_iter().chain(answered))
    }
}

impl ErrorReport {
    /// Returns why a run did not succeed. `None` if it succeeded.
    pub(crate) fn of(outcome: &Outcome, bundle: Option<&Bundle>) -> Option<Self> {
        match (&outcome.error, outcome.status) {
            (Some(error), _) => Some(Self::new(error, bundle)),
            (None, Status::Succeeded | Status::Skipped) => None,
            (None, Status::Cancelled) => {
                Some(Self::bare(fault_kind::CANCELLED, "the run was cancelled"))
            }
            (None, Status::Failed | Status::TimedOut) => Some(Self::bare(
                fault_kind::TERMINATED,
                "the run was ended as failed",
            )),
        }
    }

    /// Makes the report of an error, with the position of its action in the author's file.
    #[must_use]
    pub fn new(error: &RunError, bundle: Option<&Bundle>) -> Self {
        let place = error.place;
        let file = place.and_then(|(file, _)| bundle?.file(file));
        let iteration = error.iteration.as_ref();
        Self {
            kind: error.fault.kind.to_string(),
            code: error.fault.code.as_ref().map(ToString::to_string),
            message: error.fault.message.clone(),
            action: error.action.as_ref().map(ToString::to_string),
            loop_path: iteration.map(|(path, _)| path.clone()),
            iteration: iteration.map(|(_, iteration)| *iteration),
            file: file.map(|file| file.path.clone()),
            line: place.map(|(_, line)| line),
        }
    }

    fn bare(kind: &str, message: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the error as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let text = |text: &Option<String>| Value::from(text.as_deref().map(Value::from));
        let iteration = self
            .iteration
            .and_then(|iteration| i64::try_from(iteration).ok());
        Value::from_pairs([
            ("kind", Value::from(self.kind.as_str())),
            ("code", text(&self.code)),
            ("message", Value::from(self.message.as_str())),
            ("action", text(&self.action)),
            ("loop", text(&self.loop_path)),
            ("iteration", Value::from(iteration)),
            ("file", text(&self.file)),
            ("line", Value::from(self.line)),
        ])
    }

    /// Returns the position as text for users: `action \`fetch\`, iteration 3 of loop \`pages\` (a.yaml:12)`.
    #[must_use]
    pub fn place(&self) -> String {
        let mut parts = Vec::new();
        if let Some(action) = &self.action {
            parts.push(format!("action `{action}`"));
        }
        if let (Some(path), Some(iteration)) = (&self.loop_path, self.iteration) {
            parts.push(format!(
                "iteration {} of loop `{path}`",
                iteration.saturating_add(1)
            ));
        }
        let mut text = parts.join(", ");
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            let gap = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{gap}({file}:{line})"));
        }
        text
    }
}

impl PauseReport {
    /// Makes the report of the reason of a pause.
    #[must_use]
    pub fn new(reason: &PauseReason) -> Self {
        match reason {
            PauseReason::Requested => Self {
                reason: String::from("requested"),
                loop_path: None,
                limit: None,
            },
            PauseReason::Limit(path, limit) => Self {
                reason: String::from("limit"),
                loop_path: Some(path.clone()),
                limit: Some(*limit),
            },
        }
    }

    /// Returns the reason of the pause as text for users.
    #[must_use]
    pub fn text(&self) -> String {
        match (&self.loop_path, self.limit) {
            (Some(path), Some(limit)) => {
                format!("loop `{path}` reached its {} limit", limit.as_str())
            }
            _ => String::from("by a user"),
        }
    }
}
