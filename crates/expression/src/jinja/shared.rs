//! Templates of one file that are written the same are compiled once: aliases may write one a hundred
//! thousand times, and a compiled one takes several kilobytes. Nothing here is retained after the file is read.

use super::{Flavor, Jinja};
use crate::ParseError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What a compiled template takes, in bytes, measured: at least, and for each byte of its text.
const EACH: usize = 9_000;
const BYTE: usize = 40;
/// What those of one file may take.
const MOST: usize = 56 << 20;

#[derive(Default)]
struct Shared {
    /// By text, flavor, and whether it is one bare expression.
    known: HashMap<(Arc<str>, Flavor, bool), Arc<Jinja>>,
    memory: usize,
}

thread_local! {
    /// None while no file is read.
    static SHARED: RefCell<Option<Shared>> = const { RefCell::new(None) };
}

/// What was shared before, put back whatever happens.
struct RestorePrevious(Option<Shared>);

impl Drop for RestorePrevious {
    fn drop(&mut self) {
        SHARED.set(self.0.take());
    }
}

/// Reads a file: within, equal templates are one.
pub fn with_template_cache<T>(read: impl FnOnce() -> T) -> T {
    let _before = RestorePrevious(SHARED.replace(Some(Shared::default())));
    read()
}

/// Whether the templates of the file that is read take as much memory as they may.
pub fn budget_exhausted() -> bool {
    SHARED.with_borrow(|shared| shared.as_ref().is_some_and(|shared| shared.memory > MOST))
}

/// A template, or a bare expression, compiled now or before.
pub(super) fn compiled(text: &str, flavor: Flavor, bare: bool) -> Result<Arc<Jinja>, ParseError> {
    let key = (Arc::from(text), flavor, bare);
    let known = SHARED.with_borrow(|shared| shared.as_ref()?.known.get(&key).cloned());
    if let Some(known) = known {
        return Ok(known);
    }
    let new = Jinja::compile(text, flavor, bare)?;
    let new = Arc::new(new);
    SHARED.with_borrow_mut(|shared| {
        if let Some(shared) = shared {
            shared.memory += EACH + BYTE * text.len();
            shared.known.insert(key, Arc::clone(&new));
        }
    });
    Ok(new)
}
