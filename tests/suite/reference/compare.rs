//! A play of the machine in the form of the model's stories, and the first difference between two stories.

use super::model::{Row, Story};
use crate::machine::play::{Played, START};
use windlass_expression::{Object, Value};
use windlass_machine::{HistoryEvent, HistoryKind, IterationRow};
use windlass_model::model::Name;

/// The story of a play by the machine.
pub fn story_of(played: &Played) -> Story {
    let ended = played.state.outcome.as_ref().map(|outcome| {
        let error = outcome.error.as_ref().map(|error| match &error.action {
            None => error.fault.kind.to_string(),
            Some(action) => format!(
                "{} of {}{action} at line {}",
                error.fault.kind,
                within(error.iteration.as_ref()),
                error.place.map_or(0, |(_, line)| line)
            ),
        });
        (outcome.status, outcome.output.clone(), error)
    });
    let requests = played.started.iter().map(|one| {
        let (at, request) = (START.0 + one.at_ms, &one.request);
        let (key, attempt) = (&request.key, request.attempt);
        let inputs = request.inputs.to_json();
        format!("{at} request {key} attempt {attempt} {inputs}")
    });
    Story {
        lines: played.history.iter().map(line).collect(),
        rows: played.iterations.iter().map(row_of).collect(),
        requests: requests.collect(),
        variables: played
            .state
            .variables
            .as_object()
            .cloned()
            .unwrap_or_default(),
        ended,
    }
}

fn within(iteration: Option<&(String, u64)>) -> String {
    iteration.map_or_else(String::new, |(path, at)| format!("{path}#{at}/"))
}

/// A line of the history. Messages are left out, because the model has none.
fn line(event: &HistoryEvent) -> String {
    let what = match &event.what {
        HistoryKind::RunStarted => String::from("run"),
        HistoryKind::RunFinished { status } => format!("run {}", status.as_str()),
        HistoryKind::RunPaused { .. } => String::from("paused"),
        HistoryKind::RunResumed => String::from("resumed"),
        HistoryKind::ActionStarted { attempt, key, .. } => {
            format!("request {key} attempt {attempt}")
        }
        HistoryKind::ActionEnded {
            node_name,
            status,
            attempt,
            path,
            iteration,
            ..
        } => {
            let within = within(path.clone().zip(*iteration).as_ref());
            let status = status.as_str();
            format!("end {within}{node_name} {status} attempt {attempt}")
        }
        HistoryKind::RetryScheduled {
            node_name,
            attempt,
            next_at,
            ..
        } => format!("retry {node_name} after {attempt} at {}", next_at.0),
        HistoryKind::LoopStart {
            path,
            max_iterations,
            ..
        } => format!("enter {path} count {max_iterations}"),
        HistoryKind::LoopIteration {
            path,
            iteration,
            condition_result,
            ..
        } => format!("iteration {path}#{iteration} {condition_result:?}"),
        HistoryKind::LoopLimit { path, limit, .. } => format!("limit {path} {}", limit.as_str()),
        HistoryKind::LoopEnd {
            path,
            iterations_completed,
            exit_reason,
            ..
        } => format!("leave {path} after {iterations_completed}: {exit_reason}"),
        HistoryKind::TimerSet { node_name, due_at } => {
            format!("wait {node_name} until {}", due_at.0)
        }
        HistoryKind::Signalled { name } | HistoryKind::Answered { name, .. } => {
            format!("signal {name}")
        }
    };
    format!("{} {what}", event.at.0)
}

/// The first thing in which two stories differ.
pub fn difference(machine: &Story, model: &Story) -> Option<String> {
    let lines = |story: &Story| story.lines.clone();
    first(&lines(machine), &lines(model), "history")
        .or_else(|| first(&machine.requests, &model.requests, "requests"))
        .or_else(|| first(&rows(machine), &rows(model), "rows of iterations"))
        .or_else(|| {
            let known =
                |story: &Story| vec![plain(&Value::object(story.variables.clone())).to_json()];
            first(&known(machine), &known(model), "variables")
        })
        .or_else(|| first(&end(machine), &end(model), "end"))
}

fn first(machine: &[String], model: &[String], what: &str) -> Option<String> {
    let longest = machine.len().max(model.len());
    let differs = |at: &usize| machine.get(*at) != model.get(*at);
    let at = (0..longest).find(differs)?;
    let from = at.saturating_sub(4);
    let shown = |all: &[String]| {
        let lines = all.iter().enumerate().skip(from).take(at - from + 3);
        let mark = |here: usize| if here == at { ">" } else { " " };
        let lines = lines.map(|(here, line)| format!("  {} {line}\n", mark(here)));
        lines.collect::<String>()
    };
    let (machine, model) = (shown(machine), shown(model));
    Some(format!(
        "{what}, line {at}\nmachine:\n{machine}model:\n{model}"
    ))
}

fn row_of(row: &IterationRow) -> Row {
    let path = format!("{}#{}", row.path, row.iteration);
    (path, row.status, row.condition, row.result.clone())
}

fn rows(story: &Story) -> Vec<String> {
    let row = |(path, status, condition, result): &Row| {
        let result = plain(result).to_json();
        format!("{path} {status:?} {condition:?} {result}")
    };
    story.rows.iter().map(row).collect()
}

fn end(story: &Story) -> Vec<String> {
    let Some((status, output, error)) = &story.ended else {
        return vec![String::from("it waits for ever")];
    };
    let output = plain(output).to_json();
    vec![format!("{status:?} {output} {error:?}")]
}

/// A value with its keys sorted, without messages and without the machine's own variables.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(plain).collect()),
        Value::Object(map) => {
            let mut members: Vec<(Name, Value)> = map
                .iter()
                .filter(|(key, _)| !key.starts_with("_windlass_") && &***key != "message")
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::object(members.into_iter().collect::<Object>())
        }
        other => other.clone(),
    }
}
