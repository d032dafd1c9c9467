//! Figures for docs/temporal.md: `cargo test --features temporal --test temporal -- --ignored --nocapture`.

use super::server::{Server, counting};
use std::time::Instant;

/// A loop without effects of its own: what an iteration costs is Temporal's.
fn bare(iterations: u32) -> String {
    counting(iterations, "0", "PT0S").replace("sleep 0; ", "")
}

#[test]
#[ignore = "measures"]
fn iterations_a_second() {
    let place = Server::shared().place("figures");
    let _worker = place.worker(&["--max-effects", "200"]);
    let begun = Instant::now();
    place.start(&bare(200), &[]);
    place.await_status("Succeeded");
    let took = begun.elapsed().as_secs_f64();
    println!("one loop: {:.1} iterations a second", 200.0 / took);
    let begun = Instant::now();
    for run in 0..50 {
        place.start_as(&format!("{}-{run}", place.id), &bare(20), &[]);
    }
    let started = begun.elapsed().as_secs_f64();
    place.await_traces(200 + 1_000);
    let took = begun.elapsed().as_secs_f64();
    println!(
        "50 loops: {:.1} iterations a second (started in {started:.1} s)",
        1_000.0 / took
    );
}

#[test]
#[ignore = "measures"]
fn looking() {
    let place = Server::shared().place("looking");
    let worker = place.worker(&[]);
    place.start(&bare(1_000), &[]);
    place.await_status("Succeeded");
    drop(worker);
    for what in ["status", "history"] {
        let begun = Instant::now();
        place.report(&[what, &place.id]);
        println!(
            "{what} of 1000 iterations: {:.0} ms",
            begun.elapsed().as_secs_f64() * 1e3
        );
    }
}
