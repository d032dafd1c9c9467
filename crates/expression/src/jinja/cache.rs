//! Templates of one file that are written the same are compiled once: aliases may write one a hundred
//! thousand times, and a compiled one takes several kilobytes.

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

/// The compiled Jinja templates of the file that is being read.
#[derive(Default)]
pub struct TemplateCache(RefCell<Compiled>);

#[derive(Default)]
struct Compiled {
    /// By text, flavor, and whether it is one bare expression.
    known: HashMap<(Arc<str>, Flavor, bool), Arc<Jinja>>,
    memory: usize,
}

impl TemplateCache {
    /// Whether the templates take as much memory as they may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.borrow().memory > MOST
    }

    /// A template, or a bare expression, compiled now or before.
    pub(crate) fn compile(
        &self,
        text: &str,
        flavor: Flavor,
        bare: bool,
    ) -> Result<Arc<Jinja>, ParseError> {
        let key = (Arc::from(text), flavor, bare);
        let mut compiled = self.0.borrow_mut();
        if let Some(known) = compiled.known.get(&key) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(Jinja::compile(text, flavor, bare)?);
        compiled.memory += EACH + BYTE * text.len();
        compiled.known.insert(key, Arc::clone(&new));
        Ok(new)
    }
}
