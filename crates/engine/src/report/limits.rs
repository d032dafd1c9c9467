//! Reports for the author of a workflow: the effective limits of every loop, how actions are retried, and diagnostics
//! as data.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::{Template, Value};
use windlass_machine::program::{Op, Program, Scope, ScopeId, ScopeKind};
use windlass_model::model::{Delay, OnLimit, RetryOn, Test, Unchanged};
use windlass_source::diagnostic::{Diagnostic, Diagnostics, Fix, Severity};
use windlass_source::source::{Bundle, Lines, SourceFile, TextRange};

/// Limits of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoopLimits {
    /// Name of the loop.
    pub name: String,
    /// Type of the loop, as its file has it: `until`, `while`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Line of the loop in its file, from 1.
    pub line: u32,
    /// Maximum number of iterations: a number, or the expression that computes it.
    pub count: String,
    /// Maximum duration in ISO 8601, or the expression that computes it. Null without a timeout.
    pub timeout: Option<String>,
    /// Delay between two iterations: a duration, an expression, or a description. Null without a delay.
    pub delay: Option<String>,
    /// Maximum number of tokens of its actions: a number, or the expression that computes it. Absent without this
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<String>,
    /// Maximum cost of its actions: a number, or the expression that computes it. Absent without this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Number of consecutive iterations with the same result at which the loop ends, and what is compared: `3 times the
    /// same`. Absent without this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<String>,
    /// What happens at a limit: `fail`, `continue` or `pause`.
    pub on_limit: String,
    /// When the condition is checked: `before` or `after` each iteration.
    pub checks: String,
    /// Text of the condition, as its file has it.
    pub condition: String,
}

/// Returns the limits of every loop, in the order of the file.
#[must_use]
pub fn loop_limits(program: &Program) -> Vec<LoopLimits> {
    let mut limits: Vec<LoopLimits> = authored_scopes(program)
        .filter_map(|scope| {
            let ScopeKind::Loop(label, spec) = &scope.kind else {
                return None;
            };
            let action = scope.action.and_then(|action| program.action(action));
            Some(LoopLimits {
                name: scope.name.to_string(),
                kind: label.to_string(),
                line: action.map_or(0, |action| action.span.line),
                count: limit_text(&spec.count),
                timeout: spec.timeout.as_ref().map(limit_text),
                delay: spec.delay.as_ref().map(|delay| match delay {
                    Delay::Every(every) => limit_text(every),
                    Delay::Backoff(_) | Delay::Server { .. } => delay.title(),
                }),
                tokens: spec.tokens.as_ref().map(limit_text),
                cost: spec.cost.as_ref().map(limit_text),
                unchanged: spec.unchanged.as_ref().map(Unchanged::title),
                on_limit: on_limit(spec.on_limit).to_owned(),
                checks: String::from(match spec.test {
                    Test::Before => "before",
                    Test::After | Test::AfterAsNext => "after",
                }),
                condition: spec.condition_text.clone(),
            })
        })
        .collect();
    limits.sort_by_key(|row| row.line);
    limits
}

/// Returns the scopes of a program that its author wrote. A follow-up (the polls of an asynchronous action) has scopes
/// that are part of the action: these are omitted.
fn authored_scopes(program: &Program) -> impl Iterator<Item = &Scope> {
    let ids = (0..program.scopes.len()).map(ScopeId::from_index);
    let is_part = |id| {
        let mut around = program.ancestry(id);
        around.any(|(_, scope)| matches!(scope.kind, ScopeKind::FollowUp))
    };
    ids.filter(move |id| !is_part(*id))
        .filter_map(|id| program.scope(id))
}

/// How an action is retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionRetry {
    /// The name of the action.
    pub name: String,
    /// Its line in the file.
    pub line: u32,
    /// The maximum number of further attempts: a number, or the expression that gives it.
    pub count: String,
    /// The waits between the attempts.
    pub wait: String,
    /// The failures after which the action is retried, as in `on` of its policy. `any` if the policy has no `on` and
    /// contains other steps. `when` and a condition if the policy has no `on` and only its condition decides.
    pub on: Vec<String>,
    /// Whether the policy applies because the file has none for the action.
    pub is_default: bool,
}

/// Returns the retries of all actions, in the order of the file.
#[must_use]
pub fn action_retries(program: &Program) -> Vec<ActionRetry> {
    let retried = authored_scopes(program).filter_map(|scope| {
        let ScopeKind::Try {
            retry: Some(retry), ..
        } = &scope.kind
        else {
            return None;
        };
        let enter = program.state(scope.body)?;
        Some(ActionRetry {
            name: scope.name.to_string(),
            line: enter.span.line,
            count: limit_text(&retry.count),
            wait: retry.backoff.title(),
            on: match (retry.on.as_slice(), &enter.op) {
                ([], _) if let Some(when) = &retry.when => vec![format!("when {}", when.text())],
                ([], Op::Enter(_)) => vec![String::from("any")],
                ([], _) => vec![RetryOn::Transient.to_string()],
                (on, _) => on.iter().map(RetryOn::to_string).collect(),
            },
            is_default: retry.is_default,
        })
    });
    let mut retries: Vec<ActionRetry> = retried.collect();
    retries.sort_by_key(|row| row.line);
    retries
}

/// Returns the word that workflow files use for this value.
pub(super) fn on_limit(on_limit: OnLimit) -> &'static str {
    match on_limit {
        OnLimit::Fail => "fail",
        OnLimit::Continue => "continue",
        OnLimit::Pause => "pause",
    }
}

/// Returns a template as its author wrote it.
fn limit_text(template: &Template) -> String {
    match template.source() {
        Value::String(text) => text.to_string(),
        other => other.to_json(),
    }
}

/// An error or warning about a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosticReport {
    /// Severity: `error` or `warning`.
    pub severity: String,
    /// Stable code of the diagnostic, such as `unknown-type`.
    pub code: String,
    /// Message, in one line.
    pub message: String,
    /// How to correct it. Null without a hint.
    pub hint: Option<String>,
    /// Path of the file. Null if it is unknown.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in the line, from 1, in characters.
    pub column: u32,
    /// Length of the wrong text, in characters.
    pub length: u32,
    /// The same place as editors count it, from 0.
    pub range: TextRange,
    /// Possible corrections, as edits of the file. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
}

/// Returns all diagnostics, sorted by position.
#[must_use]
pub fn diagnostics(diagnostics: &Diagnostics, bundle: &Bundle) -> Vec<DiagnosticReport> {
    let found = diagnostics.sorted();
    let files = bundle.files.iter().filter(|_| !found.is_empty());
    let lines: Vec<_> = files.map(SourceFile::content).map(Lines::new).collect();
    let report = |one: &Diagnostic| {
        let lines = lines.get(usize::from(one.span.file));
        DiagnosticReport {
            severity: String::from(match one.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            }),
            code: one.code.to_owned(),
            message: one.message.clone(),
            hint: one.hint.clone(),
            file: bundle.file(one.span.file).map(|file| file.path.clone()),
            line: one.span.line,
            column: one.span.column,
            length: one.span.length,
            range: lines.map_or_else(TextRange::default, |lines| {
                lines.range(lines.of_span(one.span))
            }),
            fixes: lines.map(|lines| one.fixes(lines)).unwrap_or_default(),
        }
    };
    found.into_iter().map(report).collect()
}
