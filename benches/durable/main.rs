//! The speed of wholes, each beside floors that write the same bytes to the same disk in the same
//! run: `cargo bench --bench durable`, or with names of sections after `--`: `one`, `many`,
//! `http`, `growing`, `flat`, `waiting`, `lag`, `process`. It prints what it measured and says
//! `MISSED` where a target of docs/performance.md is not met; it never fails for that, because a
//! shared machine is no judge.
//!
//! `WINDLASS_BENCH_DIR` is where the stores are made (a temporary directory without it),
//! `WINDLASS_BENCH_FLAT` how many iterations `flat` has.

// Measuring is what this is for.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod floor;
mod http;
mod loops;
mod process;
mod usage;
mod waiting;

use std::path::PathBuf;

/// One figure, and what it should be.
pub fn report(what: &str, figure: String, target: Option<(bool, &str)>) {
    let verdict = match target {
        None => String::new(),
        Some((true, target)) => format!("met: {target}"),
        Some((false, target)) => format!("MISSED: {target}"),
    };
    println!("  {what:<46} {figure:>16}   {verdict}");
}

/// A fresh directory for a store, on the disk that is measured.
pub fn directory() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("windlass-bench-");
    match std::env::var_os("WINDLASS_BENCH_DIR").map(PathBuf::from) {
        Some(base) => builder.tempdir_in(base).unwrap(),
        None => builder.tempdir().unwrap(),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut chosen: Vec<String> = Vec::new();
    if let Some(first) = arguments.next() {
        if first == "child" {
            return waiting::child(&arguments.collect::<Vec<_>>());
        }
        chosen.push(first);
        chosen.extend(arguments);
    }
    let sections: [(&str, fn()); 8] = [
        ("one", loops::one),
        ("many", loops::many),
        ("http", http::polls),
        ("growing", loops::growing),
        ("flat", loops::flat),
        ("waiting", waiting::many),
        ("lag", waiting::lag),
        ("process", process::all),
    ];
    for (name, section) in sections {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            println!("{name}");
            section();
        }
    }
}
