//! Each text is a workflow of a format and compiles, or its mistakes are reported at their places. The first byte
//! chooses the format: `l` Loom, `a` Azure, `t` TEA, `c` canvas; for anything else it is detected. Zero bytes separate
//! the further files of the bundle, named `1.yaml`, `2.yaml` and so on.

use std::time::Duration;
use windlass_draw::{Detail, dot, mermaid};
use windlass_machine::compile::compile;
use windlass_machine::program::{Caps, ProgramHash};
use windlass_model::model::Dialect;
use windlass_source::source::{Bundle, SourceFile};

const CAPS: Caps = Caps {
    count: 5_000,
    timeout: Duration::from_secs(3_600),
};

pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let (dialect, text) = match text.split_at_checked(1) {
        Some(("l", rest)) => (Some(Dialect::Loom), rest),
        Some(("a", rest)) => (Some(Dialect::Azure), rest),
        Some(("t", rest)) => (Some(Dialect::Tea), rest),
        Some(("c", rest)) => (Some(Dialect::Canvas), rest),
        _ => (None, text),
    };
    let mut texts = text.split('\0');
    let mut bundle = Bundle::single("fuzz.yaml", texts.next().unwrap_or_default());
    bundle
        .files
        .extend((1..5).zip(texts).map(|(n, text)| SourceFile {
            path: format!("{n}.yaml"),
            text: text.to_owned(),
        }));
    taken(&bundle, dialect)
}

/// Whether a bundle is a valid workflow. Its diagnostics are checked otherwise.
pub fn taken(bundle: &Bundle, dialect: Option<Dialect>) -> bool {
    for reference in windlass_formats::references(bundle, dialect) {
        let _ = bundle.resolve_sibling(reference.span.file, &reference.path);
    }
    let (workflow, diagnostics) =
        windlass_formats::read(bundle, dialect, &windlass_formats::Caps::unlimited());
    let shown = diagnostics.render(bundle, false);
    let Some(workflow) = workflow else {
        assert!(!shown.is_empty(), "refused without a word");
        return false;
    };
    match compile(&workflow, ProgramHash::default(), CAPS) {
        Ok(program) => {
            let _ = program.to_value().to_json();
            let _ = mermaid(
                &program,
                Detail {
                    expand: true,
                    depth: Some(2),
                },
            );
            let _ = dot(&program, Detail::default());
            true
        }
        Err(mistakes) => {
            assert!(
                mistakes.iter().all(|one| one.code != "compiler-bug"),
                "{mistakes:?}"
            );
            false
        }
    }
}
