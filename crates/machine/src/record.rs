//! The records of actions. If an output consists of values that are already stored, the record has only references to
//! them. So a checkpoint contains only changes, and no value is stored twice.

use crate::program::{Action, ActionId, Program};
use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use windlass_expression::{MAX_RESULT_DEPTH, Value};
use windlass_model::model::{Fault, Name, Status, TURN_SIGNAL, fault_kind};
use windlass_value::time::Timestamp;

/// The records of one cursor, or of one iteration.
/// Boxed because a node of the map has room for eleven records, and most maps have one or two.
pub type Records = BTreeMap<ActionId, Box<ActionRecord>>;

/// Maximum depth of records inside the outputs of other records, as for a foreach in a foreach.
const MAX_NESTING: u32 = 64;

/// Maximum depth to which the references of an output are followed. No workflow file nests as deep.
const MAX_FOLLOWED: u32 = 256;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionRecord {
    /// How the action ended.
    pub status: Status,
    /// The evaluated inputs; null if the action has no inputs.
    pub inputs: Value,
    pub output: Output,
    /// Why the action failed; `None` if it did not fail. Boxed, because most actions do not fail.
    pub error: Option<Box<Fault>>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Number of attempts.
    pub attempts: u32,
}

impl ActionRecord {
    /// Returns the error about failed items if this is the record of a foreach that succeeded although items failed.
    #[must_use]
    pub fn failed_items(&self) -> Option<&Fault> {
        let error = self.error.as_deref()?;
        let succeeded = self.status == Status::Succeeded;
        (succeeded && *error.kind == *fault_kind::ITEMS).then_some(error)
    }
}

// A thread-local counter, because a context cannot be passed through `bincode::Encode`.
thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
}

/// Counts how deep this thread is in nested records.
struct Nested;

impl Nested {
    fn enter() -> Option<Self> {
        NESTING.with(|depth| {
            let deeper = depth.get() + 1;
            (deeper <= MAX_NESTING).then(|| {
                depth.set(deeper);
                Self
            })
        })
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTING.with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

impl ActionRecord {
    /// Returns true if the output and the inputs each have at most about this many bytes. An output that refers to a
    /// loop, to iterations or to branches never fits. Any other reference needs no bytes.
    pub fn fits_in_bytes(&self, bytes: usize) -> bool {
        let given = match &self.output {
            Output::Value(value) => Some(value),
            Output::Appended { more, .. } => Some(more),
            Output::Variable(_) | Output::Actions(_) | Output::LastOf(_) => Some(&Value::Null),
            Output::Loop { .. } | Output::Iterations { .. } | Output::Branches(_) => None,
        };
        let light = |value: &Value| value.fits_in_bytes(bytes);
        given.is_some_and(light) && light(&self.inputs)
    }
}

/// Written by hand, because a record can contain records: derived code would recurse as deep as the stored bytes say.
impl Encode for ActionRecord {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let _nested = Nested::enter().ok_or(EncodeError::Other("records nest too deep"))?;
        self.status.encode(encoder)?;
        self.inputs.encode(encoder)?;
        self.output.encode(encoder)?;
        self.error.encode(encoder)?;
        self.started_at.encode(encoder)?;
        self.ended_at.encode(encoder)?;
        self.attempts.encode(encoder)
    }
}

impl<Context> Decode<Context> for ActionRecord {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let _nested = Nested::enter().ok_or(DecodeError::Other("records nest too deep"))?;
        Ok(Self {
            status: Decode::decode(decoder)?,
            inputs: Decode::decode(decoder)?,
            output: Decode::decode(decoder)?,
            error: Decode::decode(decoder)?,
            started_at: Decode::decode(decoder)?,
            ended_at: Decode::decode(decoder)?,
            attempts: Decode::decode(decoder)?,
        })
    }
}
bincode::impl_borrow_decode!(ActionRecord);

/// The output of an action.
#[derive(Clone, Debug, PartialEq, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    Value(Value),
    /// The current value of a variable. Only in a change: `apply` stores the value instead.
    Variable(Name),
    /// The part that was appended to an array or a text. The variable has the whole value: if the record had it, too,
    /// each append would store a copy of it.
    Appended {
        variable: Name,
        /// The element, or the text.
        more: Value,
    },
    /// A map of the outputs of these actions. For a single anonymous action (which the format named), this is the
    /// action's output itself.
    Actions(Vec<ActionId>),
    /// A loop's `{iterations, status, reason, result}`; `result` has the outputs of the actions in `body`.
    Loop {
        /// Number of iterations that ended.
        iterations: u64,
        /// The status of the loop.
        status: Status,
        /// Why the loop ended.
        end: LoopEnd,
        body: Vec<ActionId>,
    },
    /// A foreach's array of results.
    Iterations {
        /// Status and records of each item that ran, in order.
        records: Vec<(Status, Records)>,
        body: Vec<ActionId>,
    },
    /// A map of branches, each a map of its actions' outputs.
    Branches(Vec<(Name, Vec<ActionId>)>),
    /// The element that was just appended to this array. Only in a change, so that the journal has the element only
    /// once. `apply` stores [`Output::Appended`] instead.
    LastOf(Name),
}

/// Reads outputs that refer to records.
#[derive(Clone, Copy)]
pub(super) struct RecordReader<'a> {
    pub program: &'a Program,
    pub records: &'a Records,
}

impl RecordReader<'_> {
    /// Returns the value of an output.
    pub fn output(&self, output: &Output) -> Value {
        self.follow(None, output)
    }

    /// Returns the value of an output. `inside` is the action whose output contains this one, with that action's depth;
    /// `None` at the top.
    fn follow(&self, inside: Option<(ActionId, u32)>, output: &Output) -> Value {
        match output {
            Output::Value(value) => value.clone(),
            Output::Appended { more, .. } => more.clone(),
            // These occur only in a change.
            Output::Variable(_) | Output::LastOf(_) => Value::Null,
            Output::Actions(actions) => self.inner(inside, actions),
            Output::Loop {
                iterations,
                status,
                end,
                body,
            } => Value::from_pairs([
                (
                    "iterations",
                    Value::from(i64::try_from(*iterations).unwrap_or(i64::MAX)),
                ),
                ("status", Value::from(status.as_str())),
                ("reason", Value::from(end.as_str())),
                ("result", self.inner(inside, body)),
            ]),
            Output::Iterations { records, body } => Value::array(
                records
                    .iter()
                    .map(|(_, records)| RecordReader { records, ..*self }.inner(inside, body))
                    .collect(),
            ),
            Output::Branches(branches) => {
                let pair = |(name, actions): &(Name, Vec<ActionId>)| {
                    (name.clone(), self.branch(inside, name, actions))
                };
                Value::from_pairs(branches.iter().map(pair))
            }
        }
    }

    /// Returns a branch's result: a map of its actions' outputs.
    /// If the branch is one action of the same name (`parallel` with `actions`), returns that action's output.
    fn branch(&self, inside: Option<(ActionId, u32)>, name: &Name, actions: &[ActionId]) -> Value {
        let whole = self.inner(inside, actions);
        match (actions, whole.get(name)) {
            ([only], Some(output))
                if self
                    .program
                    .action(*only)
                    .is_some_and(|only| only.name == *name) =>
            {
                output.clone()
            }
            _ => whole,
        }
    }

    /// Does the same as [`RecordReader::actions`], for a value that will be stored. Outputs nest in other outputs, and
    /// a value that nests too deep could not be read from the store again.
    ///
    /// # Errors
    /// `too_large`: the value nests too deep.
    pub fn whole(&self, actions: &[ActionId]) -> Result<Value, Fault> {
        let whole = self.actions(actions);
        if whole.depth_within(MAX_RESULT_DEPTH) {
            return Ok(whole);
        }
        let message = format!("the results nest deeper than {MAX_RESULT_DEPTH} levels in all");
        Err(Fault::new(fault_kind::TOO_LARGE, message))
    }

    /// Does the same as `whole`, for the row of an iteration. Only people read this row, so a value that nests too deep
    /// is replaced by the text of the error.
    pub fn bounded(&self, actions: &[ActionId]) -> Value {
        self.whole(actions)
            .unwrap_or_else(|fault| Value::text(fault.message))
    }

    /// Returns a map of the outputs of those actions that have ended without being skipped or cancelled. For a single
    /// anonymous action, returns the action's output itself.
    pub fn actions(&self, actions: &[ActionId]) -> Value {
        self.inner(None, actions)
    }

    /// Returns the outputs of actions inside the action `inside`. In a file, inner actions have larger ids than their
    /// outer action. A manipulated store may refer to other actions. These are ignored, so that following references
    /// always ends.
    fn inner(&self, inside: Option<(ActionId, u32)>, actions: &[ActionId]) -> Value {
        let depth = inside.map_or(0, |(_, depth)| depth + 1);
        if depth > MAX_FOLLOWED {
            return Value::Null;
        }
        let follows = |id: &ActionId| inside.is_none_or(|(around, _)| around < *id);
        let ran = actions.iter().filter_map(|id| {
            let record = self.records.get(id).filter(|_| follows(id))?;
            let action = self.program.action(*id)?;
            let record: &ActionRecord = record;
            let ran = !matches!(record.status, Status::Skipped | Status::Cancelled);
            // A run with a concurrency limit waits for its turn in a step that the author's file does not have.
            let ran = ran && *action.name != *TURN_SIGNAL;
            ran.then_some((*id, action, record))
        });
        let ran: Vec<_> = ran.collect();
        let output = |id, record: &ActionRecord| self.follow(Some((id, depth)), &record.output);
        if let [(id, action, record)] = ran.as_slice()
            && action.anonymous
        {
            return output(*id, record);
        }
        let named = |(id, action, record): (ActionId, &Action, &ActionRecord)| {
            (action.name.clone(), output(id, record))
        };
        Value::from_pairs(ran.into_iter().map(named))
    }
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// The loop's condition ended the loop.
    Condition,
    /// A `break_when` ended the loop.
    Break,
    /// The loop reached its maximum number of iterations.
    Count,
    /// The loop's deadline passed.
    Timeout,
    /// The loop's body failed.
    Failed,
    /// The loop was cancelled from outside: by an enclosing deadline or `break_when`, or by the end of the run.
    Cancelled,
    /// The loop reached a page for the second time.
    Repeat,
    /// The loop's iterations had the same result repeatedly.
    Unchanged,
    /// The loop's actions used the maximum number of tokens.
    Tokens,
    /// The loop's actions reached the maximum cost.
    Cost,
}

impl LoopEnd {
    pub const ALL: [Self; 10] = [
        Self::Condition,
        Self::Break,
        Self::Count,
        Self::Timeout,
        Self::Failed,
        Self::Cancelled,
        Self::Repeat,
        Self::Unchanged,
        Self::Tokens,
        Self::Cost,
    ];

    /// Returns the word that is used in outputs and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::Break => "break",
            Self::Count => "count",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Repeat => "repeat",
            Self::Unchanged => "unchanged",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record that contains records, `depth` levels deep.
    fn nested(depth: u32) -> ActionRecord {
        let inner = (depth > 1).then(|| {
            let records = Records::from([(ActionId(0), Box::new(nested(depth - 1)))]);
            (Status::Succeeded, records)
        });
        ActionRecord {
            status: Status::Succeeded,
            inputs: Value::Null,
            output: Output::Iterations {
                records: inner.into_iter().collect(),
                body: Vec::new(),
            },
            error: None,
            started_at: Timestamp(0),
            ended_at: Timestamp(0),
            attempts: 1,
        }
    }

    #[test]
    fn records_nest_so_deep_and_no_deeper() {
        let config = bincode::config::standard();
        let encoded = |depth: u32| bincode::encode_to_vec(nested(depth), config);
        let whole = encoded(MAX_NESTING).unwrap();
        let (read, _): (ActionRecord, usize) = bincode::decode_from_slice(&whole, config).unwrap();
        assert_eq!(read, nested(MAX_NESTING));
        assert!(encoded(MAX_NESTING + 1).is_err());
        // After a record was refused, the counter is 0 again.
        assert!(encoded(MAX_NESTING).is_ok());
    }
}
