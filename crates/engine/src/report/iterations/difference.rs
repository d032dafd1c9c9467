//! The differences between two iterations.

use super::StoredDetail;
use super::whole::{IterationReport, whole};
use crate::report::change::{Changed, compared};
use crate::report::view::shown;
use crate::{EngineError, Inspector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::{Object, Value};

/// Maximum number of listed differences.
const MOST: usize = 1_000;

/// Differences between two iterations: their statuses, conditions, errors and results. Variables and the actions'
/// inputs are compared if the variables of both iterations are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceReport {
    /// Id of the run.
    pub run: String,
    /// Path of the first iteration.
    pub from: String,
    /// Path of the second iteration.
    pub to: String,
    /// Values that differ, at most 1,000, with paths such as `result.fetch.body.n` and `variables.n`.
    pub changed: Vec<Changed>,
    /// Number of values that are equal, without those that contain other values. If `changed` is full, the count is
    /// incomplete.
    pub unchanged: u64,
}

/// Returns the differences between two iterations of a run.
///
/// # Errors
/// Returns store errors, or an error for an unknown run, loop or iteration, or if the values of one of the two
/// iterations are not stored.
pub fn difference(
    inspector: &Inspector,
    run: &str,
    from: &str,
    to: &str,
) -> Result<DifferenceReport, EngineError> {
    let before = whole(inspector, run, from)?;
    let after = whole(inspector, run, to)?;
    if let Some(one) = [&before, &after]
        .into_iter()
        .find(|one| one.stored == StoredDetail::Summary)
    {
        return Err(EngineError::NoValues {
            run: windlass_model::model::Name::from(&*one.run),
            path: one.path.clone(),
        });
    }
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

/// Returns the data of an iteration that is compared. `whole`: with its variables and the inputs of its actions.
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
