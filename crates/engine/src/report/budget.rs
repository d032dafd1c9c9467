//! What a loop used of its limits `tokens` and `cost`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_expression::Value;
use windlass_machine::LoopState;

/// How much a loop used of its limit `tokens` or `cost`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetReport {
    /// Name of the limit: `tokens` or `cost`.
    pub budget: String,
    /// Amount that the actions of the loop have used.
    #[schema(value_type = f64)]
    pub used: Value,
    /// Maximum amount that the actions may use.
    #[schema(value_type = f64)]
    pub limit: Value,
    /// Both amounts as text: `tokens 12,300 of 50,000`.
    pub text: String,
}

impl BudgetReport {
    /// Returns the budgets of a loop.
    pub(super) fn of(state: &LoopState) -> Vec<Self> {
        let number = |decimal: String| Value::from_json(&decimal).unwrap_or_default();
        let reports = state.budgets().map(|budget| Self {
            budget: budget.kind.as_str().to_owned(),
            used: number(budget.used()),
            limit: number(budget.limit()),
            text: budget.text(),
        });
        reports.collect()
    }
}
