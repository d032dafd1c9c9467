//! A format with four constructs: `call`, `wait`, `repeat` and `set`. docs/internals/add-a-format.md explains it.

// This is an example: an item whose name is sufficient has no comment.
#![allow(missing_docs)]

#[rustfmt::skip]
mod keys;
mod read;

pub use keys::schema;

use windlass_machine::compile;
use windlass_machine::program::{Program, ProgramHash};
use windlass_model::model::sha256;
use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::{self, Bundle};

/// Reads and compiles the first file of a bundle.
///
/// # Errors
/// All mistakes of its author.
pub fn compile(bundle: &Bundle) -> Result<Program, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let (node, mistakes) = source::parse(bundle, 0);
    diagnostics.extend(mistakes.into_iter().map(Diagnostic::from));
    let (Some(file), Some(node)) = (bundle.file(0), node) else {
        return Err(diagnostics);
    };
    let workflow = read::workflow(file, &node, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let hash = ProgramHash(sha256(file.text.as_bytes()));
    compile::compile(&workflow, hash, read::CAPS).map_err(|mistakes| {
        diagnostics.extend(mistakes);
        diagnostics
    })
}
