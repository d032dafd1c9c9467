//! The speed of whole operations, each compared with floors that write the same bytes to the same disk in the same
//! process. Run with `cargo bench --bench durable`, or with names of sections after `--`: `one`, `many`, `http`,
//! `pages`, `polls`, `growing`, `flat`, `waiting`, `lag`, `process`. It prints the measured values, and `MISSED` where
//! they miss a target of docs/internals/performance.md. It never fails for a missed target, because other processes on
//! a shared machine change the values.
//!
//! `--store sled|fjall|both` chooses the database of the stores. With `both`, each section runs on sled and then on
//! fjall. The bare database of the floors is always sled.
//!
//! `WINDLASS_BENCH_DIR` is the directory for the stores (default: a temporary directory), and `WINDLASS_BENCH_FLAT` the
//! number of iterations of `flat`.

// A benchmark reads the clock and prints.
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

/// Whether the stores of this pass use fjall.
static FJALL: AtomicBool = AtomicBool::new(false);

/// The database of this pass's stores.
pub fn kind() -> StoreKind {
    match FJALL.load(Ordering::Relaxed) {
        true => StoreKind::Fjall,
        false => StoreKind::Sled,
    }
}

/// Whether the stores of this pass use sled, as the bare database does.
pub fn on_sled() -> bool {
    kind() == StoreKind::Sled
}

/// Prints one measured value and the target for it.
pub fn report(what: &str, figure: String, target: Option<(bool, &str)>) {
    let verdict = match target {
        None => String::new(),
        Some((true, target)) => format!("met: {target}"),
        Some((false, target)) => format!("MISSED: {target}"),
    };
    println!("  {what:<46} {figure:>16}   {verdict}");
}

/// A new directory for a store, on the disk that is measured.
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
