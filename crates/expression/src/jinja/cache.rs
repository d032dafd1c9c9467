//! Compiles equal templates of a file only once.
//! Aliases in YAML may repeat a template a hundred thousand times, and a compiled template needs several kilobytes.

use super::{Flavor, Jinja};
use crate::ParseError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Measured memory of a compiled template, in bytes: the part that does not depend on its text.
const EACH: usize = 9_000;
/// The same, for each byte of its text.
const BYTE: usize = 40;
/// Maximum memory in bytes of the templates of one file.
const MOST: usize = 56 << 20;

/// The compiled Jinja templates of the file that is being read.
#[derive(Default)]
pub struct TemplateCache(RefCell<Compiled>);

#[derive(Default)]
struct Compiled {
    /// The compiled templates. The key is the text, the flavor, and whether the whole text is one expression.
    known: HashMap<(Arc<str>, Flavor, bool), Arc<Jinja>>,
    memory: usize,
}

impl TemplateCache {
    /// Returns true if the templates use more memory than allowed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.borrow().memory > MOST
    }

    /// Returns the compiled template of a text. If `bare` is true, the whole text is one expression.
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
