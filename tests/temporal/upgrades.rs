//! Worker versioning: a run stays with the version with which it began, and changes to another one at a carry-over.

use super::server::{Place, Server, counting, until};

/// Makes a version the current one as soon as one of its workers is known.
fn current(server: &Server, place: &Place, machine: &str) {
    let known = || {
        let description =
            server.try_tool(&["worker", "deployment", "describe", "--name", &place.id]);
        description.is_some_and(|description| description.contains(machine))
    };
    until("a worker of the version is known", known);
    let set = || {
        let words = ["worker", "deployment", "set-current-version", "--yes"];
        let which = ["--deployment-name", &place.id, "--build-id", machine];
        server.try_tool(&[&words[..], &which].concat()).is_some()
    };
    until("the version is the current one", set);
}

#[test]
fn a_new_version_takes_over_at_a_carry_over_and_so_does_the_old_one_again() {
    let server = Server::shared();
    let place = server.place("upgrade");
    let flags = ["--deployment", &place.id];
    let text = counting(100_000, "0.01", "PT0S");
    let text = text.replace("$WINDLASS_IDEMPOTENCY_KEY", "$WINDLASS_TEMPORAL_MACHINE");
    let _old = place.worker_of("one", &flags);
    current(server, &place, "one");
    place.start_carrying(&text, "60");
    place.await_traces(3);
    let _new = place.worker_of("two", &flags);
    current(server, &place, "two");
    until("the new version has it", || {
        place.traces().ends_with(&["two".to_owned()])
    });
    // A roll-back to the first version.
    current(server, &place, "one");
    until("the old version has it", || {
        place.traces().ends_with(&["one".to_owned()])
    });
    place.report(&["cancel", &place.id]);
    let mut turns = place.traces();
    turns.dedup();
    assert_eq!(turns, ["one", "two", "one"]);
    let history = place.report(&["history", &place.id, "--iterations", "all"]);
    let iterations = history["iterations"].as_array().unwrap().len();
    assert!(iterations + 1 >= place.traces().len(), "{iterations}");
}
