//! The differences between two iterations.

use super::whole::{IterationReport, whole};
use crate::report::change::{Changed, compared};
use crate::report::view::shown;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::{Object, Value};

/// Maximum number of listed differences.
const MOST: usize = 1_000;

/// What differs between two iterations: their conditions, how their actions ended, and their inputs
/// and outputs. Variables and inputs are compared if both iterations are stored whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceReport {
    /// The run.
    pub run: String,
    /// The one.
    pub from: String,
    /// The other.
    pub to: String,
    /// Where they differ, 1,000 places at most: `result.fetch.body.n`, `variables.n`.
    pub changed: Vec<Changed>,
    /// In how many places they are the same.
    pub unchanged: u64,
}

/// Returns the differences between two iterations of a run.
///
/// # Errors
/// Returns store errors, or an error for an unknown run, loop or iteration.
pub fn difference(
    inspector: &Inspector,
    run: &str,
    from: &str,
    to: &str,
) -> Result<DifferenceReport, EngineError> {
    let before = whole(inspector, run, from)?;
    let after = whole(inspector, run, to)?;
    let both = before.variables.is_some() && after.variables.is_some();
    let (changed, unchanged) = compared(
        &compared_values(&before, both),
        &compared_values(&after, both),
        MOST,
    );
    Ok(DifferenceReport {
        run: after.run,
        from: from.to_owned(),
        to: to.to_owned(),
        changed,
        unchanged,
    })
}

/// Returns the data of an iteration that is compared.
fn compared_values(report: &IterationReport, whole: bool) -> Value {
    let mut seen = Object::new();
    let mut put = |name: &str, value: Value| {
        seen.insert(name.into(), value);
    };
    let status = serde_json::to_string(&report.status).unwrap_or_default();
    put("status", Value::from(status.trim_matches('"')));
    put("condition", Value::from(report.condition));
    put("error", Value::from(report.error.as_deref()));
    put(
        "result",
        report.result.as_ref().map(shown).unwrap_or_default(),
    );
    if whole {
        put(
            "variables",
            report.variables.as_ref().map(shown).unwrap_or_default(),
        );
        let prefix = format!("{}/", report.path);
        let inputs = report.actions.iter().filter_map(|action| {
            let name = action.path.strip_prefix(&prefix).unwrap_or(&action.path);
            Some((name, shown(action.inputs.as_ref()?)))
        });
        put("inputs", Value::from_pairs(inputs));
    }
    Value::object(seen)
}
