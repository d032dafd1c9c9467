//! A program as text (scopes and states, one per line) for `compile -o table`, and as JSON.
//!
//! Diagrams also use the labels of this file, so that text and diagrams agree.

use super::{Op, Program, RetryPolicy, Scope, ScopeKind, Sleep, State, StateId};
use std::fmt;
use windlass_expression::{Template, Value};
use windlass_model::model::{Expect, OnLimit};
use windlass_value::time::shown_duration;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})  {}", self.name, self.format, self.hash)?;
        writeln!(f, "\nscopes")?;
        for (index, scope) in self.scopes.iter().enumerate() {
            let parent = scope.parent.map(|parent| format!(" in {parent}"));
            let parent = parent.unwrap_or_default();
            writeln!(
                f,
                "  c{index:<4} {:<20} {}{parent}",
                scope.name,
                scope.title()
            )?;
        }
        writeln!(f, "\nstates")?;
        for (index, state) in self.states.iter().enumerate() {
            let id = StateId::from_index(index);
            let next = if state.ends_scope() || state.next == id {
                String::new()
            } else {
                format!(" → {}", state.next)
            };
            let scope = state.scope.to_string();
            writeln!(
                f,
                "  s{index:<4} {scope:<5} {:<20} {}{next}",
                state.name,
                state.title()
            )?;
        }
        Ok(())
    }
}

impl Program {
    /// Returns the program as JSON, as `compile -o json` prints it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let scopes = self.scopes.iter().enumerate().map(|(index, scope)| {
            Value::from_pairs([
                ("id", Value::text(format!("c{index}"))),
                ("name", Value::from(&*scope.name)),
                ("kind", Value::text(scope.title())),
                (
                    "parent",
                    Value::from(scope.parent.map(|parent| parent.to_string())),
                ),
                ("body", Value::text(scope.body.to_string())),
                ("exit", Value::text(scope.exit.to_string())),
            ])
        });
        let states = self.states.iter().enumerate().map(|(index, state)| {
            Value::from_pairs([
                ("id", Value::text(format!("s{index}"))),
                ("name", Value::from(&*state.name)),
                ("scope", Value::text(state.scope.to_string())),
                ("op", Value::text(state.title())),
                ("next", Value::text(state.next.to_string())),
                ("line", Value::from(state.span.line)),
            ])
        });
        Value::from_pairs([
            ("name", Value::from(&*self.name)),
            ("dialect", Value::from(self.format)),
            ("hash", Value::text(self.hash.to_string())),
            ("entry", Value::text(self.entry.to_string())),
            ("scopes", Value::array(scopes.collect())),
            ("states", Value::array(states.collect())),
        ])
    }
}

impl Scope {
    /// Describes in one line what the scope does with its body.
    pub fn title(&self) -> String {
        match &self.kind {
            ScopeKind::Root => String::from("run"),
            ScopeKind::Block => String::from("block"),
            ScopeKind::FollowUp => String::from("follow-up"),
            ScopeKind::Branch => String::from("branch"),
            ScopeKind::Graph { max_steps } => format!("graph, at most {max_steps} steps"),
            ScopeKind::Loop(label, spec) => {
                let mut title = format!(
                    "{label} {}, at most {} times",
                    spec.condition_text,
                    template_text(&spec.count)
                );
                if let Some(timeout) = &spec.timeout {
                    title.push_str(&format!(" in {}", duration_text(timeout)));
                }
                if let Some(tokens) = &spec.tokens {
                    title.push_str(&format!(", at most {} tokens", template_text(tokens)));
                }
                if let Some(cost) = &spec.cost {
                    title.push_str(&format!(", at most a cost of {}", template_text(cost)));
                }
                if let Some(unchanged) = &spec.unchanged {
                    title.push_str(&format!(", at most {}", unchanged.title()));
                }
                if let Some(pages) = &spec.pages {
                    title.push_str(&format!(", over pages {}", template_text(&pages.token)));
                }
                if let Some(delay) = &spec.delay {
                    title.push_str(&format!(", {}", delay.title()));
                }
                title.push_str(match spec.on_limit {
                    OnLimit::Fail => ", else fails",
                    OnLimit::Continue => ", else continues",
                    OnLimit::Pause => ", else pauses",
                });
                title
            }
            ScopeKind::Try {
                retry: Some(retry), ..
            } => retry_title(retry),
            ScopeKind::Try { retry: None, .. } => String::from("catch"),
            ScopeKind::Deadline { after } => format!("abort after {}", duration_text(after)),
            ScopeKind::ForEach {
                items, concurrency, ..
            } => {
                format!("foreach {}, {concurrency} at a time", template_text(items))
            }
            ScopeKind::Parallel { branches, isolated } => {
                let own = if *isolated {
                    ", variables of their own"
                } else {
                    ""
                };
                format!("parallel, {} branches{own}", branches.len())
            }
            ScopeKind::Dag { .. } => String::from("as predecessors end"),
        }
    }
}

/// Describes a retry policy in one line.
#[must_use]
pub fn retry_title(retry: &RetryPolicy) -> String {
    let backoff = retry.backoff.title();
    format!("retry {} times, {backoff}", template_text(&retry.count))
}

impl State {
    /// Returns true if the state ends the body of its scope.
    pub(super) fn ends_scope(&self) -> bool {
        matches!(
            self.op,
            Op::Repeat | Op::Break | Op::Leave | Op::Join | Op::Succeed
        )
    }

    /// Describes in one line what the state does.
    pub fn title(&self) -> String {
        match &self.op {
            Op::Call(call, _) => format!("call {}", call.executor),
            Op::Assign { assignments, .. } => {
                let names: Vec<&str> = assignments.iter().map(|one| &*one.variable).collect();
                format!("set {}", names.join(", "))
            }
            Op::Compose(_) => String::from("compute"),
            Op::Branch(arms) => {
                let arms: Vec<String> = arms
                    .iter()
                    .map(|(when, to)| format!("{} → {to}", when.text()))
                    .collect();
                format!("if {}, else", arms.join(", "))
            }
            Op::FollowUp { when, to } => format!("if {} → {to}, else", when.text()),
            Op::Switch { on, cases } => {
                let cases: Vec<String> = cases
                    .iter()
                    .map(|(case, to)| format!("{} → {to}", case.to_json()))
                    .collect();
                format!("switch {}: {}, else", template_text(on), cases.join(", "))
            }
            Op::Enter(scope) => format!("enter {scope}"),
            Op::Visit => String::from("visit"),
            Op::Repeat => String::from("repeat"),
            Op::Break => String::from("break"),
            Op::Leave => String::from("leave"),
            Op::Join => String::from("join"),
            Op::Sleep(Sleep::For(time)) => format!("sleep {}", duration_text(time)),
            Op::Sleep(Sleep::Until(time)) => format!("sleep until {}", template_text(time)),
            Op::AwaitSignal(awaited) => format!("await signal {}", awaited.name),
            Op::Expect(_, Expect::Json | Expect::JsonContent) => String::from("expect json"),
            Op::Expect(_, Expect::That(that)) => format!("expect {}", that.text()),
            Op::Expect(_, Expect::NotFailed(failed)) => format!("fail if {}", failed.text()),
            Op::Raise { kind, .. } => format!("raise {kind}"),
            Op::Respond(_) => String::from("respond"),
            Op::Terminate { status, .. } => format!("terminate as {}", status.as_str()),
            Op::Succeed => String::from("succeed"),
        }
    }
}

/// Returns the text of a duration's template, for people.
pub fn duration_text(template: &Template) -> String {
    shown_duration(&template_text(template))
}

/// Returns a template as its author wrote it.
pub fn template_text(template: &Template) -> String {
    template.source_text()
}
