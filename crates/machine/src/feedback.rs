//! What a loop remembers of the iteration before: what its condition read, for the next iteration to
//! learn from, and how often its iterations gave the same. It never ends a loop.

use super::advance::Stepper;
use super::bug::{MachineResult, StepResult};
use super::change::Change;
use super::env::View;
use super::expect::quoted;
use super::iterate::{LoopRef, hash_of};
use windlass_expression::{Env, Lookup, Object, Reference, Value};
use windlass_model::model::{Name, OnMissing};
use windlass_value::first_bytes;

/// Its name among what is collected of a loop's iterations. No name in a file begins like this.
pub(super) const FEEDBACK: &str = "$feedback";
const UNCHANGED: &str = "$unchanged";

/// What feedback may have, as JSON.
const MAX_FEEDBACK: usize = 64 << 10;

impl<'a> Stepper<'a> {
    /// Whether the iterations returned the same often enough that the loop counts as unchanged.
    pub fn is_unchanged(&mut self, this: LoopRef<'a>) -> StepResult<bool> {
        let Some(unchanged) = &this.spec.unchanged else {
            return Ok(false);
        };
        let value = match &unchanged.of {
            Some(of) => self.eval_missing_as_null(this.cursor, of)?,
            None => {
                let reading = self.reading(self.run.records_of(this.cursor)?);
                reading.actions(&this.scope.children)
            }
        };
        let hash = format!("{:032x}", hash_of(&value.revealed().to_json()));
        let before = self.loop_state(this)?.collected.get(UNCHANGED);
        let same = before.filter(|before| {
            let known = before.get("hash").and_then(Value::as_str);
            known == Some(hash.as_str())
        });
        let times = same.and_then(|same| same.get("times")?.as_int());
        let times = times.unwrap_or(0).saturating_add(1);
        let seen = Value::from_pairs([("hash", Value::text(hash)), ("times", Value::Int(times))]);
        self.remember(this, UNCHANGED, seen)?;
        Ok(u64::try_from(times).is_ok_and(|times| times >= unchanged.times))
    }

    /// A loop that was granted its limits again may give the same as often as before.
    pub fn reset_unchanged_count(&mut self, this: LoopRef<'a>) -> MachineResult {
        match this.spec.unchanged {
            Some(_) => self.remember(this, UNCHANGED, Value::Null),
            None => Ok(()),
        }
    }

    /// The last answer of a loop that waits for one, in a few words.
    pub fn last_answer(&self, this: LoopRef<'a>) -> MachineResult<String> {
        if this.spec.on_missing != OnMissing::Wait {
            return Ok(String::new());
        }
        let state = self.loop_state(this)?;
        // An iteration that is under way has none yet.
        let records = match state.iteration_started_at {
            None => self.run.records_of(this.cursor)?,
            Some(_) => &state.last,
        };
        let answers = this.scope.children.iter().rev().filter_map(|action| {
            let output = &records.get(action)?.output;
            let value = self.read(this.cursor, output);
            let hides = self.secured_parts(Some(*action)).outputs || value.has_secure();
            answer_text(&value.revealed(), hides)
        });
        Ok(answers.take(1).collect())
    }

    /// Keeps what the condition read when it was last checked.
    pub fn record_feedback(&mut self, this: LoopRef<'a>) -> MachineResult {
        if !this.spec.feedback {
            return Ok(());
        }
        let state = self.loop_state(this)?;
        let (ended, condition) = (state.iteration.saturating_sub(1), state.last_condition);
        let view = View {
            missing_as_null: true,
            ..self.view(this.cursor)
        };
        let condition_reads = this.spec.stop_when.reads(&view);
        let mut reads = Object::new();
        for (name, value) in condition_reads {
            if !name.to_ascii_lowercase().contains("feedback") {
                reads.insert(Name::from(name), value);
            }
        }
        let mut printed = Object::new();
        for reference in this.spec.stop_when.references() {
            if let Reference::Action(name) = reference
                && let Lookup::Found(output) = view.action_outputs(&name)
                && let Some(said) = command_output(&output)
            {
                printed.insert(Name::from(name), said);
            }
        }
        let ended = i64::try_from(ended).unwrap_or(i64::MAX);
        let whole = |most: usize| {
            Value::from_pairs([
                ("iteration", Value::Int(ended)),
                ("condition", condition.map_or(Value::Null, Value::Bool)),
                ("reads", shorten_members(&reads, most)),
                ("printed", shorten_members(&printed, most)),
            ])
        };
        let mut most = MAX_FEEDBACK;
        let mut feedback = whole(most);
        while feedback.revealed().to_json().len() > MAX_FEEDBACK {
            most /= 4;
            feedback = match most {
                0 => Value::Null,
                _ => whole(most),
            };
        }
        self.remember(this, FEEDBACK, feedback)
    }

    pub fn remember(&mut self, this: LoopRef<'a>, name: &str, value: Value) -> MachineResult {
        let LoopRef { cursor, depth, .. } = this;
        self.emit(Change::IterationKept {
            cursor,
            depth,
            name: Name::from(name),
            value,
            append: false,
        })
    }
}

/// What a command printed, if this is what a command gave.
fn command_output(output: &Value) -> Option<Value> {
    let part = |name: &'static str| Some((name, output.get(name)?.clone()));
    let parts = ["exitCode", "stdout", "stderr"].map(part);
    parts
        .iter()
        .any(Option::is_some)
        .then(|| Value::from_pairs(parts.into_iter().flatten()))
}

/// The members, each cut to about `most` bytes: of a text the end remains, of anything else
/// the beginning of its JSON, with masks for what is secure.
fn shorten_members(members: &Object, most: usize) -> Value {
    let pairs = members
        .iter()
        .map(|(name, value)| (name.clone(), shorten(value, most)));
    Value::from_pairs(pairs)
}

fn shorten(value: &Value, most: usize) -> Value {
    match value {
        Value::String(text) if text.len() > most => {
            let cut = text.len() - most;
            let from = (cut..=text.len()).find(|at| text.is_char_boundary(*at));
            let from = from.unwrap_or(text.len());
            Value::text(format!("…{}", text.get(from..).unwrap_or_default()))
        }
        Value::Object(map) if map.contains_key("stdout") || map.contains_key("stderr") => {
            shorten_members(map, most / 2)
        }
        Value::String(_) => value.clone(),
        other => {
            if other.revealed().to_json().len() <= most {
                return other.clone();
            }
            let json = other.to_json();
            Value::text(format!("{}…", first_bytes(&json, most)))
        }
    }
}

/// The status and the beginning of an answer, or the exit code and the beginning of what a command printed.
fn answer_text(output: &Value, hides: bool) -> Option<String> {
    let number = |name: &str| output.get(name).and_then(Value::as_int);
    let (what, body) = match (number("statusCode"), number("exitCode")) {
        (Some(status), _) => (format!("the last answer was {status}"), "body"),
        (None, Some(code)) => (format!("the last exit code was {code}"), "stdout"),
        (None, None) => return None,
    };
    let body = output.get(body).filter(|body| !hides && !body.is_null());
    let body = body.map(quoted).filter(|body| !body.is_empty());
    let body = body.map_or(String::new(), |body| format!(": {body}"));
    Some(format!("; {what}{body}"))
}
