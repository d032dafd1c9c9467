//! Workers and the server are killed at various moments. No effect is lost, and each kill repeats at most one, under
//! its key.

use super::server::{Place, Server, counting, printed_by};
use nix::sys::signal::Signal;
use std::thread::sleep;
use std::time::Duration;

/// The flags of a worker whose work another one takes over soon.
const TUNED: [&str; 4] = ["--heartbeat", "1s", "--sticky", "1s"];

/// Every effect began, and there were at most as many repetitions as kills.
fn checked(place: &Place, effects: usize, kills: usize) {
    let begun = place.begun();
    assert_eq!(begun.len(), effects, "{begun:?}");
    let repeated: usize = begun.iter().map(|(_, count)| count - 1).sum();
    assert!(repeated <= kills, "{repeated} repetitions of {kills} kills");
}

#[test]
fn another_worker_takes_over_with_the_same_key() {
    let place = Server::shared().place("over");
    let first = place.worker(&TUNED);
    place.start(&counting(3, "0.6", "PT0S"), &[]);
    place.await_traces(2);
    let second = place.worker(&TUNED);
    first.kill();
    place.await_status("Succeeded");
    let begun = place.begun();
    assert_eq!(begun.len(), 3, "{begun:?}");
    assert_eq!(begun[1].1, 2, "the one that was cut began twice: {begun:?}");
    checked(&place, 3, 1);
    drop(second);
}

/// A loop that ends when the file `enough` exists.
fn until_enough() -> String {
    let text = counting(0, "0.05", "PT0.05S");
    let text = text.replace("echo done", "test ! -e \"$PLACE/enough\" || echo enough");
    text.replace(
        "@equals(variables('n'), 0)",
        "@equals(body('leave'), 'enough')",
    )
}

/// The moments differ in what the run waits for: an effect, its answer in transit, a timer, or the workflow task in
/// between. `WINDLASS_KILLS=1000` for more. After a kill, the run waits for several timeouts of Temporal, so four runs
/// share the kills.
#[test]
fn twenty_kills_lose_nothing() {
    let kills = std::env::var("WINDLASS_KILLS").map_or(20, |count| count.parse().unwrap());
    let moments: Vec<u64> = (0..kills).map(|kill| kill * 7 % 140).collect();
    std::thread::scope(|scope| {
        for part in moments.chunks(moments.len().div_ceil(4)) {
            scope.spawn(|| kill_workers_at(part));
        }
    });
}

/// Kills the worker of a run at these moments, in milliseconds after the start of an effect.
fn kill_workers_at(moments: &[u64]) {
    let place = Server::shared().place("kills");
    let mut worker = place.worker(&TUNED);
    place.start(&until_enough(), &[]);
    for moment in moments {
        place.await_traces(place.traces().len() + 1);
        // From the start of an effect to the middle of the following delay.
        sleep(Duration::from_millis(*moment));
        let next = place.worker(&TUNED);
        worker.kill();
        worker = next;
    }
    place.file("enough", "");
    place.await_status("Succeeded");
    let report = place.report(&["history", &place.id, "--iterations", "all"]);
    let iterations = report["iterations"].as_array().unwrap().len();
    checked(&place, iterations, moments.len());
}

#[test]
fn a_killed_server_resumes() {
    let server = Server::start();
    let place = server.place("server");
    let worker = place.worker(&TUNED);
    place.start(&counting(8, "0.1", "PT0.1S"), &[]);
    place.await_traces(2);
    let followed = std::thread::scope(|scope| {
        let following = scope.spawn(|| place.ask(&["resume", &place.id, "--events", "jsonl"]));
        place.await_traces(4);
        server.kill();
        // A client that follows the run says that it reconnects.
        sleep(Duration::from_secs(2));
        server.revive();
        place.await_traces(6);
        // Both are killed at the same time.
        server.kill();
        worker.kill();
        server.revive();
        let _worker = place.worker(&TUNED);
        place.await_status("Succeeded");
        following.join().unwrap()
    });
    checked(&place, 8, 2);
    let printed = printed_by(&followed);
    assert!(followed.status.success(), "{printed}");
    assert!(printed.contains("Temporal does not answer"), "{printed}");
    let out = String::from_utf8(followed.stdout).unwrap();
    let mut started: Vec<&str> = out
        .lines()
        .filter(|line| line.contains("ActionStarted"))
        .collect();
    let all = started.len();
    started.sort_unstable();
    started.dedup();
    assert_eq!(started.len(), all, "{printed}");
}

#[test]
fn a_stalled_worker_is_replaced() {
    let place = Server::shared().place("still");
    let first = place.worker(&TUNED);
    place.start(&counting(4, "0.3", "PT0S"), &[]);
    place.await_traces(1);
    first.signal(Signal::SIGSTOP);
    let second = place.worker(&TUNED);
    place.await_status("Succeeded");
    // The first worker continues, and the results of what it had begun are ignored.
    first.signal(Signal::SIGCONT);
    sleep(Duration::from_secs(1));
    let begun = place.begun();
    assert_eq!(begun.len(), 4, "{begun:?}");
    // It starts what it received while it was stopped.
    assert!(begun.iter().all(|(_, count)| *count <= 2), "{begun:?}");
    drop(second);
}

#[test]
fn five_workers_of_which_one_dies_share_a_hundred_runs() {
    let place = Server::shared().place("many");
    let mut workers: Vec<_> = (0..5).map(|_| place.worker(&TUNED)).collect();
    let runs = 100;
    std::thread::scope(|scope| {
        for half in 0..2 {
            let place = &place;
            scope.spawn(move || {
                for run in (half..runs).step_by(2) {
                    let id = format!("{}-{run}", place.id);
                    place.start_as(&id, &counting(3, "0.01", "PT0S"), &[]);
                }
            });
        }
    });
    place.await_traces(100);
    workers.remove(0).kill();
    super::server::until("all runs end", || {
        let list = place.report(&["list", "--status", "Succeeded", "--limit", "1000"]);
        let list = list.as_array().unwrap();
        let mine = |run: &&serde_json::Value| run["run"].as_str().unwrap().starts_with(&place.id);
        list.iter().filter(mine).count() == runs
    });
    let begun = place.begun();
    assert_eq!(begun.len(), 3 * runs);
    assert!(begun.iter().all(|(_, count)| *count <= 2), "{begun:?}");
}

#[test]
fn a_worker_that_shuts_down_waits_for_its_effects() {
    let place = Server::shared().place("leave");
    let first = place.worker(&[]);
    place.start(&counting(1, "1", "PT0S"), &[]);
    place.await_traces(1);
    first.signal(Signal::SIGTERM);
    assert!(first.ended());
    let _second = place.worker(&[]);
    place.await_status("Succeeded");
    checked(&place, 1, 0);
}

#[test]
fn a_deadline_passes_without_any_worker() {
    let place = Server::shared().place("deadline");
    let worker = place.worker(&TUNED);
    place.start(
        r#"
name: deadline
actions:
  wait:
    type: until
    condition: "@equals(1, 2)"
    limit: { count: 1000, timeout: PT3S }
    delay: PT1S
    actions:
      leave:
        type: shell
        inputs: { run: 'echo "$WINDLASS_IDEMPOTENCY_KEY" >> "$PLACE/traces"' }
"#,
        &[],
    );
    place.await_traces(1);
    worker.kill();
    sleep(Duration::from_secs(4));
    let before = place.traces().len();
    let _worker = place.worker(&TUNED);
    place.await_status("TimedOut");
    // The deadline had passed when a worker started, so nothing more began.
    assert!(place.traces().len() <= before + 1);
}
