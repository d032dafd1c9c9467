//! Any text is a workflow of a format and compiles, or its mistakes are told at their places. The
//! first byte picks the format: `l` loom, `a` Azure, `t` TEA, `c` canvas, anything else: by its
//! looks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use windlass::compile::compile;
use windlass::dialect;
use windlass::model::Dialect;
use windlass::program::{Caps, ProgramHash};
use windlass::source::Bundle;

fuzz_target!(|text: &str| {
    let (dialect, text) = match text.split_at_checked(1) {
        Some(("l", rest)) => (Some(Dialect::Loom), rest),
        Some(("a", rest)) => (Some(Dialect::Azure), rest),
        Some(("t", rest)) => (Some(Dialect::Tea), rest),
        Some(("c", rest)) => (Some(Dialect::Canvas), rest),
        _ => (None, text),
    };
    let bundle = Bundle::single("fuzz.yaml", text);
    let (workflow, diagnostics) = dialect::read(&bundle, dialect, &dialect::Caps::unlimited());
    let shown = diagnostics.render(&bundle, false);
    let Some(workflow) = workflow else {
        assert!(!shown.is_empty(), "refused without a word");
        return;
    };
    let caps = Caps {
        count: 5_000,
        timeout: Duration::from_secs(3_600),
    };
    if let Err(mistakes) = compile(&workflow, ProgramHash::default(), caps) {
        assert!(mistakes.iter().all(|one| one.code != "compiler-bug"), "{mistakes:?}");
    }
});
