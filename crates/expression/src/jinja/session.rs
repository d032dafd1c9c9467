//! The limits of one evaluation, and the texts that it has passed to minijinja.
//! During an evaluation, this state belongs to the thread, because minijinja calls the objects and filters without a
//! context of the caller.

use crate::{Budget, BudgetExceeded};
use minijinja::{Error, ErrorKind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum size in bytes of the text and lists that one evaluation may make.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// Maximum number of elements that one evaluation may inspect in comparisons and filters.
const MAX_WORK: usize = 5_000_000;
/// Length in bytes above which a text is copied only once for minijinja.
const LONG_TEXT: usize = 512;

/// Number of units that each check of the session adds, for minijinja's instructions around the check.
const CHECK_COST: usize = 8;

#[derive(Default)]
struct Session {
    /// The remaining budget. The caller of the evaluation has lent it.
    budget: Option<Budget>,
    bytes: usize,
    work: usize,
    /// The converted texts by the address of the original. The original is in the pair, so that its address stays
    /// valid.
    texts: HashMap<usize, (Arc<String>, Arc<str>)>,
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
}

/// A guard for the evaluation of one template by this thread.
pub(super) struct Evaluation<'b> {
    budget: &'b Budget,
    /// The session of the enclosing evaluation. An evaluation is nested if it reads a name whose value is a template.
    around: Session,
}

impl<'b> Evaluation<'b> {
    pub(super) fn begin(budget: &'b Budget) -> Self {
        let own = Session {
            budget: Some(budget.lend()),
            ..Session::default()
        };
        Self {
            budget,
            around: SESSION.replace(own),
        }
    }
}

impl Drop for Evaluation<'_> {
    fn drop(&mut self) {
        let own = SESSION.replace(std::mem::take(&mut self.around));
        if let Some(lent) = &own.budget {
            self.budget.settle(lent);
        }
    }
}

impl Session {
    fn charge(&self, units: usize) -> Result<(), Error> {
        match &self.budget {
            Some(budget) => budget.charge(CHECK_COST + units).map_err(exceeded),
            None => Ok(()),
        }
    }
}

fn exceeded(exceeded: BudgetExceeded) -> Error {
    Error::new(ErrorKind::InvalidOperation, exceeded.to_string())
}

/// Counts bytes. Must be called before they are written.
pub(super) fn bytes(count: usize) -> Result<(), Error> {
    SESSION.with_borrow_mut(|session| {
        session.bytes = session.bytes.saturating_add(count);
        if session.bytes > MAX_BYTES {
            let message = format!("the template produces more than {} MiB", MAX_BYTES >> 20);
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        session.charge(count / 32)
    })
}

/// Counts elements. Must be called before they are inspected.
pub(super) fn work(count: usize) -> Result<(), Error> {
    SESSION.with_borrow_mut(|session| {
        session.work = session.work.saturating_add(count);
        if session.work > MAX_WORK {
            let message = format!("the template needs more than {MAX_WORK} steps");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        session.charge(count)
    })
}

/// Counts instructions of minijinja. Must be called before they are executed.
pub(super) fn spend(units: usize) -> Result<(), Error> {
    SESSION.with_borrow(|session| session.charge(units))
}

/// Converts a text to a value of minijinja. A long text is copied only once in an evaluation.
pub(super) fn text(text: &Arc<String>) -> minijinja::Value {
    if text.len() <= LONG_TEXT {
        return minijinja::Value::from(text.as_str());
    }
    let shared = SESSION.with_borrow_mut(|session| {
        let address = Arc::as_ptr(text).addr();
        let known = session
            .texts
            .entry(address)
            .or_insert_with(|| (Arc::clone(text), Arc::from(text.as_str())));
        Arc::clone(&known.1)
    });
    minijinja::Value::from(shared)
}
