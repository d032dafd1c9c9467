//! Runs a program to its end, on virtual time. A registered format does not need it: the engine drives its runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::sync::Arc;
use windlass_expression::{Object, Value};
use windlass_machine::hosted::RunHost;
use windlass_machine::program::Program;
use windlass_machine::{Effect, Event, Outcome};
use windlass_model::model::Name;
use windlass_store::{Commit, MemoryStore, Placement, RunHeader, Store};
use windlass_value::time::Timestamp;

/// Runs a program. `activity` returns the result of a call, whose inputs it gets.
///
/// # Errors
/// The store or the machine cannot continue, or the run waits for something that never happens.
pub fn run(
    program: Program,
    mut activity: impl FnMut(&Value) -> Value,
) -> Result<Outcome, Box<dyn Error>> {
    let store = MemoryStore::default();
    let mut host = RunHost::new(Name::from("run"), Arc::new(program));
    let mut now = Timestamp(0);
    let mut revision = 0;
    let mut timers = BTreeSet::new();
    let mut events = VecDeque::from([Event::Started {
        input: Value::Null,
        environment: Value::from(Object::default()),
    }]);
    loop {
        let event = match events.pop_front() {
            Some(event) => event,
            None => {
                let (due_at, id) = timers.pop_first().ok_or("the run cannot continue")?;
                now = due_at;
                Event::TimerFired { id }
            }
        };
        let step = host.handle_event(Vec::new(), event, now)?;
        if step.is_empty() && step.history.is_empty() {
            continue;
        }
        revision += 1;
        let commit = Commit {
            header: RunHeader {
                id: Name::from("run"),
                workflow: host.program().name.clone(),
                program: host.program().hash,
                status: host.status(),
                revision,
                snapshot: 0,
                started_at: Timestamp(0),
                updated_at: now,
                placement: Placement::Idle,
                labels: BTreeMap::new(),
            },
            changes: step.changes.clone(),
            loops: step.loops.clone(),
            iterations: step.iterations.clone(),
            history: step.history.clone(),
            snapshot: None,
            program: None,
        };
        let receipt = store.commit(&[commit])?.remove(0)?.receipt;
        for effect in host.release(step, &receipt) {
            match effect {
                Effect::Start { id, request } => {
                    let result = Ok(activity(&request.inputs));
                    events.push_back(Event::EffectCompleted { id, result });
                }
                Effect::Arm { id, due_at } => _ = timers.insert((due_at, id)),
                Effect::Disarm { id, .. } => timers.retain(|(_, armed)| *armed != id),
                Effect::Continue => events.push_back(Event::Continued),
                Effect::Finish(outcome) => return Ok(outcome),
                Effect::Abort { .. } => {}
            }
        }
    }
}
