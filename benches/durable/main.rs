//! The speed of whole operations, each compared with floors that write the same bytes to the same disk in the same
//! run: `cargo bench --bench durable`, or with names of sections after `--`: `one`, `many`,
//! `http`, `pages`, `polls`, `growing`, `flat`, `waiting`, `lag`, `process`. It prints what it measured and says
//! `MISSED` where a target of docs/internals/performance.md is not met; it never fails for that, because a
//! shared machine is no judge.
//!
//! `--store sled|fjall|both` says which database keeps the stores; with `both` each section runs on one and then
//! on the other. The bare database compared with it is sled.
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
mod polls;
mod process;
mod usage;
mod waiting;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass_store::StoreKind;

/// Whether fjall keeps the stores of this turn.
static FJALL: AtomicBool = AtomicBool::new(false);

/// The database that keeps the stores of this turn.
pub fn kind() -> StoreKind {
    match FJALL.load(Ordering::Relaxed) {
        true => StoreKind::Fjall,
        false => StoreKind::Sled,
    }
}

/// Whether sled keeps them: what is bare is sled, too.
pub fn on_sled() -> bool {
    kind() == StoreKind::Sled
}

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
    let mut turns: &[bool] = match std::env::var("WINDLASS_STORE").as_deref() {
        Ok("fjall") => &[true],
        _ => &[false],
    };
    FJALL.store(turns[0], Ordering::Relaxed);
    if let Some(first) = arguments.next() {
        if first == "child" {
            return waiting::child(&arguments.collect::<Vec<_>>());
        }
        chosen.push(first);
        chosen.extend(arguments);
    }
    if let Some(at) = chosen.iter().position(|word| word == "--store") {
        turns = match &*chosen[at + 1] {
            "both" => &[false, true],
            "fjall" => &[true],
            _ => &[false],
        };
        chosen.drain(at..at + 2);
    }
    let sections: [(&str, fn()); 10] = [
        ("one", loops::one),
        ("many", loops::many),
        ("http", http::polls),
        ("pages", http::pages),
        ("polls", polls::all),
        ("growing", loops::growing),
        ("flat", loops::flat),
        ("waiting", waiting::many),
        ("lag", waiting::lag),
        ("process", process::all),
    ];
    for (name, section) in sections {
        if chosen.is_empty() || chosen.iter().any(|one| one == name) {
            for turn in turns {
                FJALL.store(*turn, Ordering::Relaxed);
                println!("{name} ({})", kind());
                section();
            }
        }
    }
}
