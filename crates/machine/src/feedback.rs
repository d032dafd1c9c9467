//! The data that a loop stores about earlier iterations: the values that its condition read (the feedback, for the next
//! iteration), and the number of consecutive iterations with the same result. Nothing here ends a loop.

use super::bug::{MachineResult, StepResult};
use super::env::FEEDBACK;
use super::reader::LoopRef;
use super::transition::IterationHandler;
use windlass_expression::{Env, Lookup, Object, Reference, Value};
use windlass_model::model::{CollectMode, Name, Status, sha256};
use windlass_value::first_bytes;

const UNCHANGED: &str = "$unchanged";

/// Returns the first 128 bits of the token's SHA-256. With this many bits, different tokens do not have the same hash
/// by chance.
pub(super) fn hash_of(token: &str) -> u128 {
    let hash = sha256(token.as_bytes());
    hash.first_chunk().copied().map_or(0, u128::from_be_bytes)
}

/// Maximum size of the feedback as JSON, in bytes.
const MAX_FEEDBACK: usize = 64 << 10;

impl<'a> IterationHandler<'_, 'a> {
    /// Returns true if the number of consecutive iterations with the same result has reached the loop's limit.
    pub fn is_unchanged(&mut self, this: LoopRef<'a>) -> StepResult<bool> {
        let Some(unchanged) = &this.spec.unchanged else {
            return Ok(false);
        };
        let read = self.read();
        let value = match &unchanged.of {
            Some(of) => read.condition_view(this.cursor).computed(of)?,
            None => {
                let records = read.reading(read.run.records_of(this.cursor)?);
                records.actions(&this.scope.children)
            }
        };
        let hash = format!("{:032x}", hash_of(&value.revealed().to_json()));
        let before = read.loop_state(this)?.collected.get(UNCHANGED);
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

    /// Resets the count of equal results, because a resume allows the loop further iterations.
    pub fn reset_unchanged_count(&mut self, this: LoopRef<'a>) -> MachineResult {
        match this.spec.unchanged {
            Some(_) => self.remember(this, UNCHANGED, Value::Null),
            None => Ok(()),
        }
    }

    /// Stores the values that the condition read at its last check.
    pub fn record_feedback(&mut self, this: LoopRef<'a>) -> MachineResult {
        if !this.spec.feedback {
            return Ok(());
        }
        let read = self.read();
        let state = read.loop_state(this)?;
        let (ended, condition) = (state.iteration.saturating_sub(1), state.last_condition);
        let view = read.condition_view(this.cursor);
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
                && let Some(text) = command_output(&output)
            {
                printed.insert(Name::from(name), text);
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

    pub fn remember(&mut self, this: LoopRef<'_>, name: &str, value: Value) -> MachineResult {
        self.collect(this, Name::from(name), value, false)
    }

    /// Collects the values that the loop keeps of an iteration that has just succeeded.
    pub fn collect_outputs(&mut self, this: LoopRef<'a>) -> StepResult {
        let cursor = this.cursor;
        for one in &this.spec.keep {
            let record = self.read().run.records_of(cursor)?.get(&one.of);
            let ran = record.is_some_and(|record| record.status == Status::Succeeded);
            let wanted = match one.take {
                CollectMode::First => {
                    ran && self
                        .read()
                        .loop_state(this)?
                        .collected
                        .get(&one.name)
                        .is_none()
                }
                CollectMode::Last => ran,
                CollectMode::All => true,
            };
            if !wanted {
                continue;
            }
            let value = match ran {
                true => self.read().eval(cursor, &one.value)?,
                false => Value::Null,
            };
            let append = one.take == CollectMode::All;
            self.collect(this, one.name.clone(), value, append)?;
        }
        Ok(())
    }
}

/// Returns the exit code and the printed text if the output is that of a command; otherwise `None`.
fn command_output(output: &Value) -> Option<Value> {
    let part = |name: &'static str| Some((name, output.get(name)?.clone()));
    let parts = ["exitCode", "stdout", "stderr"].map(part);
    parts
        .iter()
        .any(Option::is_some)
        .then(|| Value::from_pairs(parts.into_iter().flatten()))
}

/// Shortens each member to about `most` bytes. For a text, the end remains. For any other value, the beginning of its
/// JSON remains, with masks for secure values.
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
