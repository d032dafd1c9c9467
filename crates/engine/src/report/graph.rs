//! A workflow as a picture: that of a run, from the sources that it was started from.

use crate::scheduler::ScheduleError;
use crate::{EngineError, Inspector};
use windlass_draw::{Graph, View, graph as picture};

/// The graph of a run's workflow.
///
/// # Errors
/// Store errors. This version does not compile the run's program. The view names a node that is not
/// there.
pub fn graph(inspector: &Inspector, run: &str, view: &View) -> Result<Graph, EngineError> {
    let header = inspector.header(run)?;
    let source = inspector.source(header.program)?;
    let program = inspector.program(header.program, &source);
    let program = program.map_err(|reason| ScheduleError::Unloadable {
        run: header.id.clone(),
        reason,
    })?;
    Ok(picture(&program, view)?)
}
