//! What one evaluation may use up, and the texts it has handed to minijinja. That calls our objects and
//! filters without a context of ours, so it belongs to the thread while they run.

use crate::{Budget, BudgetExceeded};
use minijinja::{Error, ErrorKind};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of text and lists that one evaluation may make.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// Maximum number of elements that one evaluation may inspect in comparisons and filters.
const MAX_WORK: usize = 5_000_000;
/// Longer texts are handed over once and remembered.
const LONG_TEXT: usize = 512;

/// Each check of the session counts as this many units, for the instructions of the engine around it.
const LOOK: usize = 8;

#[derive(Default)]
struct Session {
    /// What is left of the budget of the evaluation around it.
    budget: Option<Budget>,
    bytes: usize,
    work: usize,
    /// By address; the first of the pair keeps the address in use.
    texts: HashMap<usize, (Arc<String>, Arc<str>)>,
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
}

/// While this lives, its thread evaluates one template.
pub(super) struct Evaluation<'b> {
    budget: &'b Budget,
    /// That of the template whose names are being computed.
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
            Some(budget) => budget.charge(LOOK + units).map_err(exceeded),
            None => Ok(()),
        }
    }
}

fn exceeded(exceeded: BudgetExceeded) -> Error {
    Error::new(ErrorKind::InvalidOperation, exceeded.to_string())
}

/// Counts bytes about to be made.
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

/// Counts elements that are about to be inspected.
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

/// Counts instructions of the engine that are about to be carried out.
pub(super) fn spend(units: usize) -> Result<(), Error> {
    SESSION.with_borrow(|session| session.charge(units))
}

/// A text as the engine's own; a long one is copied once in an evaluation.
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
