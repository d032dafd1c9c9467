//! The spans of a run, for tracing. A span is reported when the step that ended it is durable. No decision depends on
//! spans.

use super::children::PARENT_LABEL;
use std::sync::Arc;
use windlass_machine::program::{Program, ScopeKind};
use windlass_machine::{Event, HistoryKind, RunState, printable};
use windlass_model::model::{Name, SpanSubject, path_part};
use windlass_store::Commit;
use windlass_value::time::Timestamp;

/// A span that ended: a run, an iteration or an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    pub run: Name,
    pub of: SpanSubject,
    /// The enclosing span.
    pub parent: Option<SpanSubject>,
    /// The run that waits for this run, which has a trace of its own. Only for the span of a run.
    pub caller: Option<Name>,
    /// The name of the run, iteration or action.
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// The error, if the subject of the span failed. The text is empty if the reason is not known.
    pub error: Option<String>,
    /// Further attributes: `windlass.…`.
    pub attributes: Vec<(&'static str, String)>,
}

/// A function that receives the spans. It must not block.
pub type SpanSink = Arc<dyn Fn(TraceSpan) + Send + Sync>;

/// The receiver of the spans, if there is one.
#[derive(Clone, Default)]
pub(super) struct Traces(pub Option<SpanSink>);

/// The attempts in flight before a step, and how the event of the step ended them.
#[derive(Default)]
pub(super) struct Attempts(Vec<Attempt>);

struct Attempt {
    id: u64,
    span: TraceSpan,
    ended: bool,
}

impl Traces {
    /// Records the attempts in flight before an event is applied.
    pub fn attempts_before(
        &self,
        attempts: &mut Attempts,
        run: &RunState,
        program: &Program,
        event: &Event,
    ) {
        if self.0.is_none() {
            return;
        }
        attempts.add_attempts(run, program);
        let Event::EffectCompleted { id, result } = event else {
            return;
        };
        let error = result.as_ref().err().map(|fault| fault.message.clone());
        if let Some(one) = attempts.0.iter_mut().find(|one| one.id == id.0) {
            one.ended = true;
            one.span.error = error;
        }
    }

    /// Reports the spans that ended in a durable step.
    pub fn step(&self, commit: &Commit, mut attempts: Attempts, run: &RunState, program: &Program) {
        let Some(sink) = &self.0 else {
            return;
        };
        let header = &commit.header;
        for row in &commit.iterations {
            let path = printable(&row.path);
            sink(TraceSpan {
                run: header.id.clone(),
                of: SpanSubject::Iteration(format!("{path}#{}", row.iteration)),
                parent: Some(enclosing_span(&path, program)),
                caller: None,
                name: format!("{}#{}", row.path, row.iteration),
                started_at: row.started_at,
                ended_at: row.ended_at,
                error: row.status.is_failure().then(String::new),
                attributes: vec![
                    ("windlass.loop", row.path.clone()),
                    ("windlass.iteration", row.iteration.to_string()),
                    ("windlass.status", row.status.as_str().to_owned()),
                ],
            });
        }
        attempts
            .0
            .retain(|one| !run.effects.keys().any(|id| id.0 == one.id));
        for mut one in attempts.0 {
            one.span.ended_at = header.updated_at;
            if !one.ended {
                one.span.error = Some(String::from("it was cut"));
            }
            sink(one.span);
        }
        for event in &commit.history {
            if let HistoryKind::RunFinished { status } = event.what {
                sink(TraceSpan {
                    run: header.id.clone(),
                    of: SpanSubject::Run,
                    parent: None,
                    caller: header
                        .labels
                        .get(PARENT_LABEL)
                        .map(|run| Name::from(&**run)),
                    name: header.workflow.to_string(),
                    started_at: header.started_at,
                    ended_at: event.at,
                    error: status.is_failure().then(String::new),
                    attributes: vec![
                        ("windlass.workflow", header.workflow.to_string()),
                        ("windlass.status", status.as_str().to_owned()),
                    ],
                });
            }
        }
    }
}

impl Attempts {
    fn add_attempts(&mut self, run: &RunState, program: &Program) {
        for (id, effect) in &run.effects {
            if self.0.iter().any(|one| one.id == id.0) {
                continue;
            }
            let request = &effect.request;
            let place = request.key.split_once('/').map_or("", |(_, place)| place);
            self.0.push(Attempt {
                id: id.0,
                ended: false,
                span: TraceSpan {
                    run: run.id.clone(),
                    of: SpanSubject::Attempt(request.key.clone(), request.attempt),
                    parent: Some(enclosing_span(place, program)),
                    caller: None,
                    name: request.action.to_string(),
                    started_at: effect.requested_at,
                    ended_at: effect.requested_at,
                    error: None,
                    attributes: vec![
                        ("windlass.action", request.action.to_string()),
                        ("windlass.executor", request.executor.to_string()),
                        ("windlass.attempt", request.attempt.to_string()),
                        ("windlass.idempotency_key", request.key.clone()),
                    ],
                },
            });
        }
    }
}

/// Returns the span that encloses a place: the innermost iteration of a loop around it, or the run. A place is an
/// idempotency key without the id of the run. Items of a foreach have no span of their own.
fn enclosing_span(place: &str, program: &Program) -> SpanSubject {
    let inside = place.rsplit_once('/').map_or("", |(inside, _)| inside);
    let mut steps: Vec<&str> = inside.split('/').collect();
    while let Some(step) = steps.last() {
        let name = step.split('#').next().unwrap_or_default();
        let is_loop = |name: &Name| {
            let mut scopes = program.scopes.iter();
            scopes.any(|scope| {
                matches!(scope.kind, ScopeKind::Loop(..))
                    && printable(&path_part(&scope.name)) == **name
            })
        };
        if step.contains('#') && is_loop(&Name::from(name)) {
            return SpanSubject::Iteration(steps.join("/"));
        }
        steps.pop();
    }
    SpanSubject::Run
}
