//! The iterations of one loop, or the items of one foreach: an overview of how the iterations ended, pages of
//! iterations, one complete iteration, and the differences between two iterations. All numbers of iterations count from
//! 0, as in paths.

mod action_log;
mod difference;
mod list;
mod outermost;
mod page;
mod strip;
mod variables;
mod waits;
mod whole;

pub use action_log::{ActionReport, AttemptReport};
pub use difference::{DifferenceReport, difference};
pub use list::{LoopSummary, LoopsReport, loops};
pub use page::{IterationEntry, IterationsFilter, IterationsReport, iterations};
pub use strip::{FailureCount, StripCell, StripFilter, StripReport, Totals, strip};
pub use waits::WaitReport;
pub use whole::{IterationReport, iteration, iteration_value, iteration_values};

use super::view::{RunView, shown};
use crate::runs::Extent;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_machine::program::{Program, Scope, ScopeKind};
use windlass_machine::{IterationRow, active_foreaches};
use windlass_model::model::{OWN_KEYS, path_part};
use windlass_store::{EndedIteration, LoopIterations, RowLocation, RunHeader};
use windlass_value::first_bytes;
use windlass_value::time::Timestamp;

/// If a value has more bytes of JSON than this, only its beginning is shown.
const LARGE: usize = 64 << 10;

/// How much of an iteration is stored: `whole` with its variables, `row` with its result, `summary` only with its
/// status and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoredDetail {
    /// Everything, with the variables.
    Whole,
    /// The result, without the variables.
    Row,
    /// Only the status and the times.
    Summary,
}

/// A loop or foreach of a run, and what is stored of its iterations.
struct LoopView {
    header: RunHeader,
    path: String,
    title: Option<String>,
    kind: String,
    /// Maximum number of iterations, if it is known.
    max_iterations: Option<u64>,
    /// Whether an iteration is running.
    running: bool,
    /// Number of ended iterations, including those that are no longer stored.
    count: u64,
    /// The items of a foreach that are in flight, and when each of them began.
    lanes: Vec<(u64, Timestamp)>,
    of: LoopIterations,
    program: Option<Arc<Program>>,
}

impl LoopView {
    fn load(inspector: &Inspector, run: &str, path: &str) -> Result<Self, EngineError> {
        let of = inspector.read(Extent::Entire(run), |store| store.iterations_of(run, path))?;
        let header = inspector.header(run)?;
        let program = inspector.program_of(header.program);
        let name = last_name(path);
        let scope = program.as_deref().and_then(|program| {
            let scopes = program.scopes.iter().filter(|scope| is_loop(&scope.kind));
            { scopes }.rfind(|scope| *scope.name == *name)
        });
        let action = program.as_deref().zip(scope);
        let action = action.and_then(|(program, scope)| program.action(scope.action?));
        if of.state.is_none() && of.last().is_none() {
            let places = program.as_deref().zip(scope.filter(|_| action.is_some()));
            let is_place = places.is_some_and(|(program, scope)| {
                Self::is_place(inspector, run, program, scope, path)
            });
            if !is_place {
                return Err(unknown_loop(inspector, &header, path, program.as_deref()));
            }
        }
        let state = of.state.as_ref();
        let title = state.map_or(action.and_then(|action| action.title.clone()), |state| {
            state.title.clone()
        });
        let kind = state.map(|state| &state.kind);
        let kind = kind.or_else(|| action.map(|action| &action.label));
        let last = of.last().map_or(0, |last| last.saturating_add(1));
        let mut view = Self {
            title: title.map(|title| title.to_string()),
            kind: kind.map(ToString::to_string).unwrap_or_default(),
            max_iterations: state.map(|state| state.max_iterations),
            running: state.is_some_and(|state| state.iteration_started_at.is_some())
                && !header.status.is_final(),
            count: state.map_or(0, |state| state.iteration).max(last),
            header,
            path: path.to_owned(),
            lanes: Vec::new(),
            of,
            program,
        };
        if view.of.state.is_none() && !view.header.status.is_final() {
            view.load_fork(inspector)?;
        }
        Ok(view)
    }

    /// Returns true if a loop that has not begun may begin at this path: the path has an existing iteration of each
    /// enclosing loop.
    fn is_place(
        inspector: &Inspector,
        run: &str,
        program: &Program,
        scope: &Scope,
        path: &str,
    ) -> bool {
        let around = enclosing_loop(program, scope);
        let outer = path.rsplit_once('/').map(|(outer, _)| outer);
        let (Some(around), Some(outer)) = (around, outer) else {
            return around.is_none() && outer.is_none();
        };
        let Some((outer, iteration)) = split(outer) else {
            return false;
        };
        last_name(outer) == path_part(&around.name)
            && Self::load(inspector, run, outer).is_ok_and(|outer| {
                let mut lanes = outer.lanes.iter();
                let is_next = iteration == outer.count && !outer.header.status.is_final();
                iteration < outer.count || is_next || lanes.any(|(item, _)| *item == iteration)
            })
    }

    /// Reads the number of items of a running foreach, and its items in flight, from the run's state.
    fn load_fork(&mut self, inspector: &Inspector) -> Result<(), EngineError> {
        let run = RunView::load(inspector, &self.header.id)?;
        let Some(program) = run.program.as_deref() else {
            return Ok(());
        };
        let name = last_name(&self.path);
        let mut named = active_foreaches(program, run.state()).filter(|fork| fork.name == name);
        if let Some(fork) = named.find(|fork| fork.path() == self.path) {
            self.max_iterations = Some(fork.state.branches.len() as u64);
            self.running = fork.state.running > 0;
            let lanes = fork
                .items_in_flight()
                .map(|(item, since)| (u64::from(item), since));
            self.lanes = lanes.collect();
        }
        Ok(())
    }

    /// Returns the number of the first requested iteration, and the number after the last one. Both are limited to the
    /// iterations that exist.
    fn clamp_range(&self, from: Option<u64>, to: Option<u64>) -> (u64, u64) {
        let to = to.unwrap_or(self.count).min(self.count);
        (from.unwrap_or(0).min(to), to)
    }

    /// Returns the complete entries, with results, of these iterations, as far as they are stored.
    fn rows(
        &self,
        inspector: &Inspector,
        wanted: &[&EndedIteration],
    ) -> Result<Vec<IterationRow>, EngineError> {
        let places = wanted.iter().map(|one| (one.iteration, one.row));
        let places: Vec<(u64, RowLocation)> = places.collect();
        let (run, path) = (&self.header.id, &self.path);
        let mut rows = inspector.read(Extent::Entire(run), |store| {
            store.whole_rows(run, path, &places)
        })?;
        // Compare the start, too: if a loop was entered again, it has another iteration with the same number.
        let is_of = |one: &EndedIteration, row: &IterationRow| {
            (one.iteration, one.started_at) == (row.iteration, row.started_at)
        };
        rows.retain(|row| wanted.iter().any(|one| is_of(one, row)));
        Ok(rows)
    }

    fn retention_of(&self, one: &EndedIteration) -> StoredDetail {
        match one.row {
            RowLocation::Commit(number) if number > self.header.snapshot => StoredDetail::Whole,
            RowLocation::Commit(_) | RowLocation::Retained => StoredDetail::Row,
        }
    }
}

fn is_loop(kind: &ScopeKind) -> bool {
    matches!(kind, ScopeKind::Loop(..) | ScopeKind::ForEach { .. })
}

fn enclosing_loop<'p>(program: &'p Program, scope: &Scope) -> Option<&'p Scope> {
    let around = std::iter::successors(scope.parent, |id| program.scope(*id)?.parent);
    let mut around = around.filter_map(|id| program.scope(id));
    around.find(|scope| is_loop(&scope.kind))
}

/// Returns the path that a loop has in the first iterations of the enclosing loops.
fn first_path(program: &Program, scope: &Scope) -> String {
    let name = path_part(&scope.name);
    match enclosing_loop(program, scope) {
        Some(around) => format!("{}#0/{name}", first_path(program, around)),
        None => name.into_owned(),
    }
}

/// Returns whether an action is not in a loop or foreach.
fn is_outside(program: &Program, action: &str) -> bool {
    let id = program.find_action(action);
    let mut next = id.and_then(|id| program.action(id)).map(|one| one.scope);
    while let Some(scope) = next.and_then(|id| program.scope(id)) {
        if is_loop(&scope.kind) {
            return false;
        }
        next = scope.parent;
    }
    true
}

/// Makes the error for an unknown loop. The error lists the known loops.
fn unknown_loop(
    inspector: &Inspector,
    header: &RunHeader,
    path: &str,
    program: Option<&Program>,
) -> EngineError {
    let begun = inspector.loops(&header.id).unwrap_or_default();
    let mut known: Vec<String> = begun.into_iter().map(|row| row.path).collect();
    known.truncate(16);
    let scopes = program.map(|program| program.scopes.iter().map(move |scope| (program, scope)));
    for (program, scope) in scopes.into_iter().flatten() {
        let is_known = |path: &String| last_name(path) == path_part(&scope.name);
        if is_loop(&scope.kind) && !known.iter().any(is_known) {
            known.push(first_path(program, scope));
        }
    }
    EngineError::NoLoop {
        run: header.id.clone(),
        path: path.to_owned(),
        known,
    }
}

/// Returns the name of the loop at the end of a path.
pub(super) fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Splits the path of an iteration, such as `outer#2/inner#7`, into the loop's path and the number.
fn split(path: &str) -> Option<(&str, u64)> {
    let (path, number) = path.rsplit_once('#')?;
    Some((path, number.parse().ok()?))
}

/// Returns what is shown of a value. If the value is large, that is its beginning and a pointer to the complete value.
fn shorten_large(value: &Value, pointer: impl fmt::Display) -> Value {
    if value.fits_in_bytes(LARGE / 4) {
        return shown(value);
    }
    let value = shown(value);
    let text = value.to_json();
    if text.len() <= LARGE {
        return value;
    }
    let pointer = ("pointer", Value::from(pointer.to_string()));
    large_value(text.len(), first_bytes(&text, LARGE), Some(pointer))
}

/// Returns what is shown of a large value: its size in bytes, its beginning, and more members.
pub(super) fn large_value(
    bytes: usize,
    preview: &str,
    more: Option<(&'static str, Value)>,
) -> Value {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let members = [
        ("bytes", Value::from(bytes)),
        ("preview", Value::from(preview)),
    ];
    Value::from_pairs([("$large", Value::from_pairs(members.into_iter().chain(more)))])
}

/// Returns variables without those that only the run itself reads.
fn without_own(variables: Value) -> Value {
    let Value::Object(members) = &variables else {
        return variables;
    };
    let shown = members
        .iter()
        .filter(|(name, _)| !name.starts_with(OWN_KEYS));
    Value::from_pairs(shown.map(|(name, value)| (name.clone(), value.clone())))
}

/// Returns the value at a JSON pointer.
fn at_pointer<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return pointer.is_empty().then_some(value);
    };
    rest.split('/').try_fold(value, |value, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(&part),
        }
    })
}
