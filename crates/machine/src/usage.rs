//! Budgets of a loop: tokens of language models, and cost. The answer to a call reports both in its `usage`
//! (docs/reference/loops.md#budgets). A loop with such a limit stores the sums together with the values that it
//! collects.

use super::bug::MachineResult;
use super::evaluate::number;
use super::reader::{LoopRef, Reader};
use super::record::LoopEnd;
use super::state::{CursorId, LoopState};
use super::transition::IterationHandler;
use crate::program::LoopSpec;
use windlass_expression::{Object, Template, Value};
use windlass_model::model::{Fault, Name, fault_kind};

/// Name of the budgets in the values that a loop collects. No name in a workflow file begins with `$`.
const BUDGETS: &str = "$budgets";

/// Number of parts of one unit of cost. A cost is stored as a whole number of parts, so that a sum does not depend on
/// the order of its terms.
const PARTS: f64 = 1e9;
const DECIMALS: usize = 9;

/// A budget of a loop, in addition to iterations and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind {
    /// Tokens of language models, input and output.
    Tokens,
    /// Cost, in the author's unit of money.
    Cost,
}

impl BudgetKind {
    pub const ALL: [Self; 2] = [Self::Tokens, Self::Cost];

    /// Returns the word in files and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.end().as_str()
    }

    /// Returns how a loop ends when it has used up this budget.
    fn end(self) -> LoopEnd {
        match self {
            Self::Tokens => LoopEnd::Tokens,
            Self::Cost => LoopEnd::Cost,
        }
    }

    /// Returns a limit as a number; `None` if it is not a positive number.
    fn limit(self, value: &Value) -> Option<i64> {
        match self {
            Self::Tokens => value.as_whole().filter(|limit| *limit > 0),
            Self::Cost => {
                let cost = match value {
                    Value::String(text) => text.trim().parse().ok(),
                    other => number(other),
                };
                cost.filter(|cost: &f64| *cost > 0.0 && cost.is_finite())
                    .map(|cost| parts(cost).max(1))
            }
        }
    }

    /// Returns the amount that the answer to a call reports as used.
    fn used(self, usage: &Value) -> i64 {
        let whole = |key: &str| usage.get(key).and_then(number).map(rounded_up);
        let first = |keys: [&str; 2]| keys.into_iter().find_map(whole);
        let used = match self {
            Self::Tokens => first(["tokens", "total_tokens"]).unwrap_or_else(|| {
                let input = first(["prompt_tokens", "input_tokens"]).unwrap_or(0);
                let output = first(["completion_tokens", "output_tokens"]).unwrap_or(0);
                input.max(0).saturating_add(output.max(0))
            }),
            Self::Cost => usage.get("cost").and_then(number).map_or(0, parts),
        };
        used.max(0)
    }

    /// Returns the template of the loop's limit for this budget.
    fn spec(self, spec: &LoopSpec) -> Option<&Template> {
        match self {
            Self::Tokens => spec.tokens.as_ref(),
            Self::Cost => spec.cost.as_ref(),
        }
    }
}

/// Rounds a number of tokens up. A number that is too large becomes the maximum.
#[allow(clippy::cast_possible_truncation)]
fn rounded_up(tokens: f64) -> i64 {
    tokens.ceil() as i64
}

/// Converts a cost to a whole number of parts. A number that is too large becomes the maximum.
#[allow(clippy::cast_possible_truncation)]
fn parts(cost: f64) -> i64 {
    (cost * PARTS).round() as i64
}

/// The amount of a budget that a loop has used, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    pub kind: BudgetKind,
    used: i64,
    limit: i64,
    /// The amount that a resume after a pause grants in addition to the used amount.
    granted: i64,
}

impl BudgetUse {
    fn read(kind: BudgetKind, budgets: &Value) -> Option<Self> {
        let numbers = budgets.get(kind.as_str())?.as_array()?;
        let at = |index: usize| numbers.get(index).and_then(Value::as_int);
        Some(Self {
            kind,
            used: at(0)?,
            limit: at(1)?,
            granted: at(2)?,
        })
    }

    fn stored(&self) -> Value {
        let numbers = [self.used, self.limit, self.granted];
        Value::array(numbers.into_iter().map(Value::Int).collect())
    }

    /// Returns the used amount as a decimal number.
    #[must_use]
    pub fn used(&self) -> String {
        self.decimal(self.used)
    }

    /// Returns the limit as a decimal number.
    #[must_use]
    pub fn limit(&self) -> String {
        self.decimal(self.limit)
    }

    fn decimal(&self, number: i64) -> String {
        match self.kind {
            BudgetKind::Tokens => number.to_string(),
            BudgetKind::Cost => {
                let digits = format!("{number:0>width$}", width = DECIMALS + 1);
                let (whole, rest) = digits.split_at(digits.len() - DECIMALS);
                let decimal = format!("{whole}.{rest}");
                decimal
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned()
            }
        }
    }

    /// Returns a text for people: `tokens 12,300 of 50,000`.
    #[must_use]
    pub fn text(&self) -> String {
        let [used, limit] = [self.used(), self.limit()].map(|number| grouped(&number));
        format!("{} {used} of {limit}", self.kind.as_str())
    }
}

/// Separates the digits of a number's whole part by commas, in groups of three.
fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + whole / 3);
    for (at, digit) in number.chars().enumerate() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl LoopState {
    /// Returns the use of each budget of the loop.
    pub fn budgets(&self) -> impl Iterator<Item = BudgetUse> {
        let budgets = self.collected.get(BUDGETS);
        BudgetKind::ALL
            .into_iter()
            .filter_map(move |kind| BudgetUse::read(kind, budgets?))
    }

    /// Returns only the budgets of the collected values, without the values of iterations.
    pub(super) fn collected_budgets(&self) -> Value {
        match self.collected.get(BUDGETS) {
            Some(budgets) => Value::from_pairs([(BUDGETS, budgets.clone())]),
            None => Value::Null,
        }
    }
}

/// Returns budgets in the form in which they are stored.
fn stored(budgets: impl Iterator<Item = BudgetUse>) -> Value {
    Value::from_pairs(budgets.map(|budget| (budget.kind.as_str(), budget.stored())))
}

/// Returns the collected values of a loop that begins: its budgets, with nothing used.
pub(super) fn eval_budgets(
    read: Reader<'_, '_>,
    cursor: CursorId,
    spec: &LoopSpec,
) -> Result<Object, Fault> {
    let mut budgets = Vec::new();
    for kind in BudgetKind::ALL {
        if let Some(limit) = kind.spec(spec) {
            let value = read.eval(cursor, limit)?;
            let limit = kind.limit(&value.revealed()).ok_or_else(|| {
                let what = match kind {
                    BudgetKind::Tokens => "a whole number from 1",
                    BudgetKind::Cost => "a number above 0",
                };
                let (kind, value) = (kind.as_str(), value.to_json());
                let message = format!("the limit `{kind}` of a loop must be {what}, not {value}");
                Fault::new(fault_kind::EXPRESSION, message)
            })?;
            budgets.push(BudgetUse {
                kind,
                used: 0,
                limit,
                granted: limit,
            });
        }
    }
    let mut collected = Object::new();
    if !budgets.is_empty() {
        collected.insert(Name::from(BUDGETS), stored(budgets.into_iter()));
    }
    Ok(collected)
}

/// Returns the loops with a budget that enclose a cursor. These include the loops around the forks that the cursor
/// belongs to.
fn loops_with_budget<'a>(
    read: Reader<'_, 'a>,
    cursor: CursorId,
) -> MachineResult<Vec<LoopRef<'a>>> {
    let mut found = Vec::new();
    let mut around = Some(cursor);
    while let Some(id) = around {
        let cursor = read.run.cursor(id)?;
        for depth in 0..cursor.frames.len() {
            let this = read.loop_at(id, depth)?;
            let counts = |this: &LoopRef<'_>| {
                BudgetKind::ALL
                    .iter()
                    .any(|kind| kind.spec(this.spec).is_some())
            };
            found.extend(this.filter(counts));
        }
        around = cursor.forked_by(id);
    }
    Ok(found)
}

impl IterationHandler<'_, '_> {
    /// Adds the amounts that an answer reports as used to each enclosing loop that has a budget.
    pub fn count_usage(&mut self, cursor: CursorId, answer: Option<&Value>) -> MachineResult {
        let loops = loops_with_budget(self.read(), cursor)?;
        let Some(answer) = answer.filter(|_| !loops.is_empty()) else {
            return Ok(());
        };
        let answer = answer.revealed();
        let usage = |value: &Value| {
            let usage = value.get("usage")?;
            usage.as_object().is_some().then(|| usage.clone())
        };
        let Some(usage) = usage(&answer).or_else(|| usage(answer.get("body")?)) else {
            return Ok(());
        };
        for this in loops {
            self.change_budgets(this, |budget| BudgetUse {
                used: budget.used.saturating_add(budget.kind.used(&usage)),
                ..budget
            })?;
        }
        Ok(())
    }

    /// Grants the loop its budgets again: from now on, it may use as much as at the beginning.
    pub fn grant_usage(&mut self, this: LoopRef<'_>) -> MachineResult {
        self.change_budgets(this, |budget| BudgetUse {
            limit: budget.used.saturating_add(budget.granted),
            ..budget
        })
    }

    /// Returns the budget that the loop has used up, as the reason for its end; `None` if it has not used up any.
    pub fn used_budget(&self, this: LoopRef<'_>) -> MachineResult<Option<LoopEnd>> {
        let mut budgets = self.read().loop_state(this)?.budgets();
        let used = budgets.find(|budget| budget.used >= budget.limit);
        Ok(used.map(|budget| budget.kind.end()))
    }

    fn change_budgets(
        &mut self,
        this: LoopRef<'_>,
        change: impl Fn(BudgetUse) -> BudgetUse,
    ) -> MachineResult {
        let before = self.read().loop_state(this)?.collected.get(BUDGETS);
        let after = stored(self.read().loop_state(this)?.budgets().map(change));
        match before {
            Some(before) if *before != after => self.remember(this, BUDGETS, after),
            Some(_) | None => Ok(()),
        }
    }
}
