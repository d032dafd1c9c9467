//! The graph of a run's workflow, from the sources that the run was started with.

use crate::{EngineError, Inspector};
use windlass_draw::{Graph, View, graph as picture};

/// Returns the graph of a run's workflow.
///
/// # Errors
/// Returns store errors, or an error if this version cannot compile the run's program, or if `view` names an unknown
/// node.
pub fn graph(inspector: &Inspector, run: &str, view: &View) -> Result<Graph, EngineError> {
    let header = inspector.header(run)?;
    Ok(picture(&*inspector.program_of_run(&header)?, view)?)
}
