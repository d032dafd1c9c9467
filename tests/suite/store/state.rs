//! Values of workflows between their runs: each write is compared with what its writer read, and a repeated write is
//! one write.

use crate::support::{kind, open_store};
use std::sync::Arc;
use windlass_expression::Value;
use windlass_model::model::{Name, Origin};
use windlass_store::{
    MemoryStore, StateCondition, StateOutcome, StateOwner, StateWrite, StateWriter, Store,
};
use windlass_value::time::Timestamp;

fn write(value: i64, expected: StateCondition, by: Option<(&str, &str)>) -> StateWrite {
    StateWrite {
        owner: StateOwner::new(Origin::Operator, Name::from("w")),
        name: Name::from("n"),
        value: Some(Value::Int(value)),
        expected,
        at: Timestamp(value),
        by: by.map(|(run, action)| StateWriter {
            run: Name::from(run),
            key: format!("{run}/{action}"),
            started_at: String::from("2026-01-01"),
        }),
    }
}

fn version(version: u64) -> StateCondition {
    StateCondition::Version(version)
}

fn value_of(store: &dyn Store) -> (Option<Value>, u64) {
    let owner = StateOwner::new(Origin::Operator, Name::from("w"));
    let all = store.state(Some(&owner)).unwrap();
    let found = all
        .first()
        .map(|entry| (entry.value.clone(), entry.version));
    found.unwrap_or_default()
}

fn values_are_compared(store: &dyn Store) {
    let put = |write: StateWrite| store.write_state(&write).unwrap();
    let first = write(1, version(0), Some(("a", "set")));
    assert_eq!(put(first.clone()), StateOutcome::Written(1));
    // The process ended before the answer was stored.
    assert_eq!(put(first.clone()), StateOutcome::Written(1));
    let other = write(2, version(0), Some(("b", "set")));
    let StateOutcome::Conflict(Some(found)) = put(other) else {
        panic!("it wrote over another run");
    };
    assert_eq!((found.run.as_deref(), found.version), (Some("a"), 1));
    // A run may replace what it wrote itself.
    assert_eq!(
        put(write(3, version(0), Some(("a", "more")))),
        StateOutcome::Written(2)
    );
    assert_eq!(
        put(write(4, version(2), Some(("b", "set")))),
        StateOutcome::Written(3)
    );
    // A repetition is recognised although another run has written since.
    assert_eq!(put(first.clone()), StateOutcome::Written(1));
    assert_eq!(value_of(store), (Some(Value::Int(4)), 3));
    // A later run with the same id is another run.
    let mut later = first;
    if let Some(writer) = &mut later.by {
        writer.started_at = String::from("2026-01-02");
    }
    assert!(matches!(put(later), StateOutcome::Conflict(Some(_))));
    // A person's write.
    let expected = StateCondition::Value(Value::Int(4));
    assert_eq!(
        put(write(5, expected.clone(), None)),
        StateOutcome::Written(4)
    );
    assert!(matches!(
        put(write(6, expected, None)),
        StateOutcome::Conflict(Some(_))
    ));
    assert_eq!(
        put(write(7, StateCondition::Always, None)),
        StateOutcome::Written(5)
    );
    // A person's write belongs to no run.
    assert!(matches!(
        put(write(8, version(4), None)),
        StateOutcome::Conflict(Some(_))
    ));
    let guest = StateWrite {
        owner: StateOwner::new(Origin::Guest, Name::from("w")),
        ..write(9, version(0), None)
    };
    assert_eq!(put(guest), StateOutcome::Written(1));
    let deleted = StateWrite {
        value: None,
        ..write(0, version(5), None)
    };
    assert_eq!(put(deleted), StateOutcome::Written(6));
    assert_eq!(value_of(store), (None, 6));
    // For a writer, a deleted value is like one that was never written.
    assert_eq!(put(write(10, version(0), None)), StateOutcome::Written(7));
    assert!(matches!(
        put(write(10, version(0), None)),
        StateOutcome::Conflict(Some(_))
    ));
    assert_eq!(
        put(write(10, version(7), Some(("c", "set")))),
        StateOutcome::Written(8)
    );
    assert_eq!(store.state(None).unwrap().len(), 2);
}

#[test]
fn a_store_in_memory_compares_values() {
    values_are_compared(&MemoryStore::default());
}

#[test]
fn a_store_on_disk_compares_values_and_has_them_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path()).unwrap();
    values_are_compared(&*store);
    // A value that needs several pieces, and then one that needs one.
    for text in ["x".repeat(50_000), String::from("y")] {
        let long = StateWrite {
            value: Some(Value::text(text)),
            ..write(11, StateCondition::Always, None)
        };
        store.write_state(&long).unwrap();
    }
    drop(store);
    let store = crate::support::alone(|| open_store(dir.path())).unwrap();
    assert_eq!(
        value_of(&*store),
        (Some(Value::text("y")), 10),
        "{:?}",
        kind()
    );
    assert_eq!(store.check().unwrap().issues, []);
}

#[test]
fn of_many_writers_at_once_each_version_has_one() {
    let store = Arc::new(MemoryStore::default());
    let won: u64 = std::thread::scope(|scope| {
        let threads = (0..4).map(|thread| {
            let store = Arc::clone(&store);
            scope.spawn(move || {
                let mut won = 0;
                for round in 0..200 {
                    let (_, read) = value_of(&*store);
                    let run = format!("{thread}-{round}");
                    let outcome = store.write_state(&write(1, version(read), Some((&run, "set"))));
                    won += u64::from(matches!(outcome.unwrap(), StateOutcome::Written(_)));
                }
                won
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(value_of(&*store).1, won);
}
