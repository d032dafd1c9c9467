//! Suggests the commands that help in the current state of a run.

use super::follow::quoted;
use std::collections::BTreeMap;
use windlass_engine::report::{QuestionReport, StatusReport};
use windlass_engine::{QUARANTINE_LABEL, RunStatus, TURN_SIGNAL};

/// Returns why a run is parked (excluded from execution after repeated errors). Returns `None` if it is not parked or
/// has ended.
pub fn parked(report: &StatusReport) -> Option<&String> {
    let label = report.labels.get(QUARANTINE_LABEL);
    label.filter(|_| !report.status.is_final())
}

/// Returns whether a run should continue and does not, because no process executes it.
pub fn is_left(report: &StatusReport) -> bool {
    !report.owned && report.status.is_progressing()
}

/// Maximum number of signals for which a command is suggested.
const MAX_SIGNALS: usize = 3;

/// Returns the option of `windlass signal` that answers a question.
/// Returns an empty text if the command asks the user for the fields.
fn answer_flag(question: Option<&QuestionReport>) -> &'static str {
    match question {
        None => " --payload …",
        Some(question) if !question.fields.is_empty() => "",
        Some(question) if question.choices.is_empty() => " --payload …",
        Some(_) => " --choice …",
    }
}

/// Returns the commands that help now. The most useful one is the first.
pub fn next(report: &StatusReport, place: &str) -> String {
    let run = &report.run;
    let command = |verb: &str, rest: &str| format!("windlass {verb}{place} {run}{rest}");
    let mut commands = Vec::new();
    match report.status {
        _ if is_left(report) || parked(report).is_some() => commands.push(command("resume", "")),
        RunStatus::Paused => commands.push(command("resume", "")),
        RunStatus::Running | RunStatus::Waiting => {
            let awaited = report
                .doing
                .iter()
                .filter_map(|doing| doing.awaits_run.as_ref());
            let stopped = awaited.filter(|awaited| awaited.stopped.is_some());
            commands
                .extend(stopped.map(|awaited| format!("windlass resume{place} {}", awaited.run)));
            let signals = report.doing.iter().filter_map(|doing| {
                let signal = doing.signal.as_ref().filter(|name| *name != TURN_SIGNAL)?;
                Some((signal, answer_flag(doing.question.as_ref())))
            });
            let signals: BTreeMap<&String, &str> = signals.collect();
            commands.extend(signals.into_iter().take(MAX_SIGNALS).map(|(name, flag)| {
                let name = quoted(name);
                command("signal", &format!(" {name}{flag}"))
            }));
            if commands.is_empty() {
                commands.push(command("pause", ""));
            }
        }
        RunStatus::Succeeded | RunStatus::Failed | RunStatus::TimedOut | RunStatus::Cancelled => {
            commands.extend(
                retries(report)
                    .into_iter()
                    .map(|rest| command("retry", rest)),
            );
            commands.push(command("history", ""));
        }
    }
    commands.push(command("dump", ""));
    commands.join("   |   ")
}

/// Returns the flags of `windlass retry` with which a retry helps.
fn retries(report: &StatusReport) -> Vec<&'static str> {
    let Some(outcome) = &report.outcome else {
        return Vec::new();
    };
    let error = outcome.error.as_ref().map(|error| match error.action {
        Some(_) => " --from failed",
        // The run did not fail in an action, so it can only be retried from its beginning.
        None => "",
    });
    let items = (!outcome.failed_items.is_empty()).then_some(" --failed-items");
    error.into_iter().chain(items).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the report of a waiting run that is due at this time.
    pub(in crate::cli) fn report(due: &str, owned: bool) -> StatusReport {
        serde_json::from_value(serde_json::json!({
            "at": "2026-11-23T12:00:10Z", "run": "r", "workflow": "poll", "status": "Waiting",
            "owned": owned, "started_at": "2026-11-23T12:00:00Z",
            "updated_at": "2026-11-23T12:00:08Z", "commit": 7, "file": null, "program": "p",
            "dialect": null, "labels": {}, "pause": null, "outcome": null, "next_due_at": due,
            "loops": [], "forks": [], "doing": [],
        }))
        .unwrap()
    }

    /// Returns the line `next` of a report with these members in place of the usual ones.
    fn next_of(owned: bool, members: serde_json::Value) -> String {
        let mut value = serde_json::to_value(report("2026-11-23T12:00:12Z", owned)).unwrap();
        let members = members.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(members);
        next(&serde_json::from_value(value).unwrap(), " --state s")
    }

    #[test]
    fn next_is_the_command_that_helps_now() {
        let waits = |signal: Option<&str>| {
            let kind = if signal.is_some() { "signal" } else { "delay" };
            serde_json::json!({ "doing": [{
                "loop": null, "action": "ask", "title": null, "type": null, "waits_for": kind,
                "since": null, "due_at": null, "method": null, "uri": null, "detail": null,
                "key": null, "signal": signal, "attempt": null, "max_attempts": null,
                "last_error": null,
            }] })
        };
        let signal = next_of(true, waits(Some("it's ok")));
        assert!(
            signal.starts_with(r"windlass signal --state s r 'it'\''s ok' --payload …   |"),
            "{signal}"
        );
        let delay = next_of(true, waits(None));
        assert!(
            delay.starts_with("windlass pause --state s r   |"),
            "{delay}"
        );
        let ended = |error: serde_json::Value, items: serde_json::Value| {
            let status = if error.is_null() {
                "Succeeded"
            } else {
                "Failed"
            };
            let outcome = serde_json::json!({
                "status": status, "output": null, "error": error, "failed_items": items,
                "at": "2026-11-23T12:00:10Z",
            });
            next_of(
                true,
                serde_json::json!({ "status": status, "outcome": outcome }),
            )
        };
        let error = |action: Option<&str>| {
            serde_json::json!({
                "kind": "http", "code": null, "message": "m", "action": action, "loop": null,
                "iteration": null, "file": null, "line": null,
            })
        };
        let items = serde_json::json!([{ "failed": 2, "message": "2 of 3" }]);
        let none = serde_json::json!([]);
        for (error, items, expected) in [
            (
                error(Some("a")),
                &none,
                "windlass retry --state s r --from failed   |",
            ),
            (error(None), &none, "windlass retry --state s r   |"),
            (
                serde_json::Value::Null,
                &items,
                "windlass retry --state s r --failed-items   |",
            ),
            (
                serde_json::Value::Null,
                &none,
                "windlass history --state s r   |",
            ),
        ] {
            let shown = ended(error, items.clone());
            assert!(shown.starts_with(expected), "{shown}");
        }
        let left = next_of(false, waits(Some("go")));
        assert!(
            left.starts_with("windlass resume --state s r   |"),
            "{left}"
        );
    }
}
