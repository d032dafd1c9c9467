//! A while_loop with 1000 iterations, each with a checkpoint: without code, with Lua and with Python in its body, in
//! memory and on disk. The loop without code in memory shows the cost of the machine; the others add the cost of the
//! language and of the disk. Run with `cargo bench --bench tea`.

// A benchmark reads the clock and prints.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};
use windlass_engine::Engine;
use windlass_expression::Value;

const TRIPS: u32 = 1000;
/// The number of measurements of each case; the median is reported.
const ROUNDS: usize = 5;

fn workflow(node: &str) -> String {
    format!(
        "name: trips\n\
         initial_state: {{ n: 0 }}\n\
         nodes:\n  \
           - name: trips\n    \
             type: while_loop\n    \
             max_iterations: {TRIPS}\n    \
             condition: \"state.n < {TRIPS}\"\n    \
             body:\n      \
               - {node}\n"
    )
}

async fn once(engine: &Engine, text: &str) -> Duration {
    let workflow = engine.load_text("trips.yaml", text).unwrap();
    let begin = Instant::now();
    let run = engine.start(&workflow, Value::Null).await.unwrap();
    let state = run.result::<Value>().await.unwrap();
    let took = begin.elapsed();
    assert_eq!(state.get("n"), Some(&Value::Int(i64::from(TRIPS))));
    took
}

async fn median(text: &str, on_disk: bool) -> Duration {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let engine = match on_disk {
            true => Engine::builder().open(folder.path()).unwrap(),
            false => Engine::builder().in_memory().unwrap(),
        };
        took.push(once(&engine, text).await);
        engine.stop().await;
    }
    took.sort();
    took.get(ROUNDS / 2).copied().unwrap()
}

#[tokio::main]
async fn main() {
    let bodies = [
        (
            "no code",
            "{ name: add, uses: incrementVariable, with: { name: n } }",
        ),
        (
            "lua",
            "{ name: add, language: lua, run: \"return {n = state.n + 1}\" }",
        ),
        (
            "python",
            "{ name: add, run: \"return {'n': state['n'] + 1}\" }",
        ),
    ];
    println!("{TRIPS} trips, median of {ROUNDS}; microseconds a trip");
    println!("{:<10}{:>10}{:>10}", "body", "memory", "disk");
    let mut rows = Vec::new();
    for (name, node) in bodies {
        let text = workflow(node);
        let memory = median(&text, false).await / TRIPS;
        let disk = median(&text, true).await / TRIPS;
        println!(
            "{name:<10}{:>10}{:>10}",
            memory.as_micros(),
            disk.as_micros()
        );
        rows.push((name, memory.as_secs_f64(), disk.as_secs_f64()));
    }
    let machine = rows.first().map_or(0.0, |(_, memory, _)| *memory);
    println!("\nshare of a trip that is durable, in percent");
    println!(
        "{:<10}{:>10}{:>10}{:>10}",
        "body", "machine", "language", "disk"
    );
    for (name, memory, disk) in rows {
        let part = |seconds: f64| 100.0 * seconds.max(0.0) / disk;
        println!(
            "{name:<10}{:>10.0}{:>10.0}{:>10.0}",
            part(machine.min(memory)),
            part(memory - machine),
            part(disk - memory)
        );
    }
}
