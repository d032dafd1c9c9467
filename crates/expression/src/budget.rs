//! Limits the work of evaluations.
//! Work is counted in units. A unit is about the cost of one node of an expression, or of reading 64 bytes of text.
//! No clock is used, so the same evaluation costs the same number of units everywhere. All evaluations of one step of
//! a run share one budget.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum work of one step of a run, or of one evaluation that a client requests. It lasts about a second.
pub const MAX_WORK: u64 = 20_000_000;

/// Number of units between two checks for cancellation.
const SLICE: u64 = 10_000;

/// Number of units that are added once for handling the fault of an evaluation that exceeded its budget.
const RESERVE: u64 = 100_000;

/// The remaining work. It is shared by reference within one thread.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// Remaining units before the next check for cancellation.
    slice: Cell<u64>,
    /// Remaining units in addition to those of the current slice.
    rest: Cell<u64>,
    granted: Cell<u64>,
    /// Whether more units were requested than remained.
    exceeded: Cell<bool>,
    /// Whether the reserve may be used after the budget was exceeded.
    recovers: bool,
    /// A flag that another thread sets to cancel the evaluation.
    called_off: Option<Arc<AtomicBool>>,
}

/// Why an evaluation must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    #[error("the evaluation was called off")]
    CalledOff,
    #[error(
        "this needs more work than one step allows ({0} units: operations, or reads of 64 bytes): \
         reduce the data, or divide it into several actions"
    )]
    Limit(u64),
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(MAX_WORK)
    }
}

impl Budget {
    /// Makes a budget of this number of units.
    /// If the budget is exceeded, the evaluation fails. Then a reserve is available once, for handling the fault.
    #[must_use]
    pub fn of(limit: u64) -> Self {
        let slice = limit.min(SLICE);
        Self {
            limit,
            slice: Cell::new(slice),
            rest: Cell::new(limit - slice),
            granted: Cell::new(limit),
            exceeded: Cell::new(false),
            recovers: true,
            called_off: None,
        }
    }

    /// Makes a budget without a reserve.
    /// If the budget is exceeded, all further work fails, and the caller must not store a result.
    #[must_use]
    pub fn to_give_up(limit: u64) -> Self {
        Self {
            recovers: false,
            ..Self::of(limit)
        }
    }

    /// Returns a budget that also ends when the flag `called_off` is set.
    #[must_use]
    pub fn until(mut self, called_off: Arc<AtomicBool>) -> Self {
        self.called_off = Some(called_off);
        self
    }

    /// Counts work. Must be called before the work is done.
    ///
    /// # Errors
    /// Fewer units remain, or the evaluation was cancelled.
    #[inline]
    pub fn charge(&self, units: usize) -> Result<(), BudgetExceeded> {
        let units = units as u64;
        match self.slice.get().checked_sub(units) {
            Some(left) => {
                self.slice.set(left);
                Ok(())
            }
            None => self.next_slice(units),
        }
    }

    /// Counts the work of reading a text once from beginning to end.
    ///
    /// # Errors
    /// As [`Budget::charge`].
    #[inline]
    pub fn scan(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.charge(bytes / 64)
    }

    #[cold]
    fn next_slice(&self, units: u64) -> Result<(), BudgetExceeded> {
        if self.is_called_off() {
            self.exceeded.set(true);
            self.slice.set(0);
            self.rest.set(0);
            return Err(BudgetExceeded::CalledOff);
        }
        let left = self.slice.get().saturating_add(self.rest.get());
        let (left, outcome) = match left.checked_sub(units) {
            Some(left) => (left, Ok(())),
            None => {
                self.exceeded.set(true);
                let reserve = if self.recovers { RESERVE } else { 0 };
                let spent = self.granted.get().saturating_sub(left);
                self.granted.set(spent.saturating_add(reserve));
                (reserve, Err(BudgetExceeded::Limit(self.limit)))
            }
        };
        let slice = left.min(SLICE);
        self.slice.set(slice);
        self.rest.set(left - slice);
        outcome
    }

    /// Returns true if more units were requested than remained, or if the evaluation was cancelled.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Returns true if the evaluation was cancelled.
    #[must_use]
    pub fn is_called_off(&self) -> bool {
        let flag = self.called_off.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn remaining(&self) -> u64 {
        self.slice.get().saturating_add(self.rest.get())
    }

    /// Returns the number of units that were used.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.granted.get().saturating_sub(self.remaining())
    }

    /// Returns the remaining units as another budget, for code that cannot hold a reference to this one.
    /// After that, [`Budget::settle`] counts the units that were used of it.
    #[must_use]
    pub fn lend(&self) -> Self {
        Self {
            limit: self.limit,
            called_off: self.called_off.clone(),
            ..Self::to_give_up(self.remaining())
        }
    }

    /// Counts the units that were used of a lent budget.
    pub fn settle(&self, lent: &Self) {
        let spent = match lent.is_exceeded() {
            true => self.remaining(),
            false => lent.spent(),
        };
        // The borrower has already reported the error.
        let _ = self.charge(usize::try_from(spent).unwrap_or(usize::MAX));
        if lent.is_exceeded() {
            let _ = self.charge(1);
        }
    }
}

/// Number of units that are added for each searched text if the pattern has look-around or back references, because
/// such a search may backtrack.
const GOES_BACK: usize = 2_000;

/// Returns about the number of states of a pattern's automaton. A search may visit all of them for each letter of a
/// text.
pub(super) fn pattern_weight(pattern: &str) -> usize {
    let mut repeated = 1_usize;
    for braces in pattern.split('{').skip(1) {
        let inside = braces.split('}').next().unwrap_or_default();
        let counts = inside.split(',').filter_map(|one| one.trim().parse().ok());
        repeated = repeated.saturating_mul(counts.max().unwrap_or(1).max(1));
    }
    // A Unicode class has hundreds of ranges, so it counts as many states.
    let classes = ["\\p", "\\P", "\\w", "\\W"];
    let wide = classes.iter().any(|class| pattern.contains(class));
    let each = if wide { 16 } else { 1 };
    pattern
        .len()
        .saturating_mul(repeated)
        .saturating_mul(each)
        .min(100_000)
}

/// Returns the work of searching a text for a pattern, in units.
pub fn pattern_work(pattern: &str, bytes: usize) -> usize {
    let each = 1 + pattern_weight(pattern) / 256;
    let back = ["(?=", "(?!", "(?<=", "(?<!", "\\1", "\\k"];
    let goes_back = back.iter().any(|sign| pattern.contains(sign));
    let back = if goes_back { GOES_BACK } else { 0 };
    (bytes / 4).saturating_mul(each).saturating_add(back + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exceeded_fails_and_its_handling_has_a_reserve() {
        let budget = Budget::of(25_000);
        assert!(budget.charge(24_999).is_ok());
        assert_eq!(budget.spent(), 24_999);
        let error = budget.charge(2).unwrap_err();
        assert!(error.to_string().contains("25000 units"), "{error}");
        assert!(budget.is_exceeded());
        assert!(budget.charge(1_000).is_ok(), "the fault is handled");
        assert!(budget.spent() >= 25_999);
        let budget = Budget::to_give_up(10);
        assert!(budget.charge(11).is_err() && budget.charge(1).is_err());
    }

    #[test]
    fn what_is_lent_counts() {
        let budget = Budget::of(1_000_000);
        let lent = budget.lend();
        assert!(lent.charge(300_000).is_ok());
        budget.settle(&lent);
        assert_eq!(budget.spent(), 300_000);
        let lent = budget.lend();
        assert!(lent.charge(700_001).is_err());
        budget.settle(&lent);
        assert!(budget.is_exceeded());
        assert_eq!(budget.spent(), 1_000_000);
    }

    #[test]
    fn whoever_calls_it_off_ends_it() {
        let flag = Arc::new(AtomicBool::new(false));
        let budget = Budget::of(MAX_WORK).until(Arc::clone(&flag));
        assert!(budget.charge(SLICE as usize).is_ok());
        flag.store(true, Ordering::Relaxed);
        let error = budget.charge(1).unwrap_err();
        assert!(error.to_string().contains("called off"));
        assert!(budget.charge(1).is_err(), "for good");
    }

    #[test]
    fn patterns_cost_by_their_repetitions() {
        assert!(pattern_work("^[a-z]+$", 3) < 10);
        assert!(pattern_work("((a{1,200}){200})", 10_000) > 500_000);
    }
}
