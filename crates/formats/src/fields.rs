//! The keys of a map while it is read: requested keys are known, and the rest is reported.

use super::reader::Reader;
use super::vocabulary::Key;
use windlass_expression::Syntax;
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Kind, Node, Span};
use windlass_value::words;

impl Reader<'_> {
    pub fn fields<'n>(&mut self, node: &'n Node, what: &str, hint: &str) -> Option<Fields<'n>> {
        match &node.kind {
            Kind::Object(entries) => Some(Fields {
                what: what.to_owned(),
                entries,
                requested: Vec::new(),
                any_case: self.syntax == Syntax::Azure,
            }),
            _ => {
                self.wrong_type(node, what, "a map", hint);
                None
            }
        }
    }
}

/// A map that is being read: every key is requested once, the rest is reported.
pub struct Fields<'n> {
    what: String,
    entries: &'n [Entry],
    requested: Vec<&'static str>,
    /// Azure reads keys without case.
    any_case: bool,
}

/// The keys of a definition under which null is a value.
const VALUES: [&str; 9] = words! {
    inputs uri value defaultValue body content from foreach case
};

impl<'n> Fields<'n> {
    /// The entry of a key, be its value null. In a definition of Logic Apps null is the same as no
    /// entry, but for what is a value itself.
    pub fn get(&mut self, key: &'static str) -> Option<&'n Entry> {
        self.requested.push(key);
        self.find_entry(key)
    }

    fn find_entry(&self, key: &str) -> Option<&'n Entry> {
        let is_value = |key: &str| VALUES.iter().any(|own| own.eq_ignore_ascii_case(key));
        let entry = self.entries.iter().find(|entry| self.is(entry, key))?;
        let absent = self.any_case && matches!(entry.value.kind, Kind::Null) && !is_value(key);
        (!absent).then_some(entry)
    }

    fn is(&self, entry: &Entry, key: &str) -> bool {
        entry.key == key || (self.any_case && entry.key.eq_ignore_ascii_case(key))
    }

    fn is_known(&self, entry: &Entry) -> bool {
        self.requested.iter().any(|key| self.is(entry, key))
    }

    /// The entry of a key; null is reported as a value that was forgotten.
    pub fn non_null(&mut self, reader: &mut Reader<'_>, key: &'static str) -> Option<&'n Entry> {
        let entry = self.get(key)?;
        if matches!(entry.value.kind, Kind::Null) {
            let what = format!("`{key}` has no value");
            let hint = "write a value after the colon, indented if it is a map, or remove the key";
            reader.error("missing-value", entry.key_span, what, hint);
            return None;
        }
        Some(entry)
    }

    /// The entry of a key, unless it has no value.
    #[cfg(feature = "tea")]
    pub fn non_null_quiet(&mut self, key: &'static str) -> Option<&'n Entry> {
        let entry = self.get(key)?;
        (!matches!(entry.value.kind, Kind::Null)).then_some(entry)
    }

    /// The entry of a key that must be there.
    pub fn required(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        span: Span,
        hint: &str,
    ) -> Option<&'n Entry> {
        if self.find_entry(key).is_none() {
            self.requested.push(key);
            if !self.has_slip_of(key) {
                let what = format!("{} needs `{key}`", self.what);
                reader.error("missing-key", span, what, hint);
            }
            return None;
        }
        self.non_null(reader, key)
    }

    /// Whether a key is a slip of this one, which is then reported as such and not as missing too.
    /// In a definition, slips are only warnings, so the missing key is reported, too.
    pub fn has_slip_of(&self, key: &'static str) -> bool {
        self.slip_of(key).is_some()
    }

    fn slip_of(&self, key: &'static str) -> Option<&'n Entry> {
        let slip = |entry: &&'n Entry| {
            nearest(&entry.key, [key]).is_some() || self.suggested_key(&entry.key, &[key]).is_some()
        };
        self.rest().find(slip).filter(|_| !self.any_case)
    }

    /// Reports a slip of this key alone: without the key, it is unknown which other keys are valid.
    pub fn finish_without(self, reader: &mut Reader<'_>, key: &'static str) {
        if let Some(entry) = self.slip_of(key) {
            self.report(reader, entry);
        }
    }

    /// The key that corresponds to another format's word. Definitions have only their own.
    fn suggested_key(&self, word: &str, known: &[&'static str]) -> Option<&'static str> {
        let free = |meant: &&'static str| !self.entries.iter().any(|entry| entry.key == **meant);
        let meant = super::synonyms::key(word, known).filter(|_| !self.any_case);
        meant.filter(free)
    }

    /// Keys that may be there and mean nothing.
    pub fn allow(&mut self, keys: &[&'static str]) {
        self.requested.extend(keys);
    }

    /// The same for keys of the vocabulary.
    pub fn allow_keys(&mut self, keys: &[Key]) {
        self.requested.extend(keys.iter().map(|key| key.name));
    }

    /// The rest belongs to something that is not done.
    pub fn allow_rest(&mut self) {
        self.entries = &[];
    }

    /// The entries that were not read.
    pub fn rest(&self) -> impl Iterator<Item = &'n Entry> {
        self.entries.iter().filter(|entry| !self.is_known(entry))
    }

    /// Reports the keys that were not read. In Loom each is an error, except `x-…`, which is the
    /// author's own. In a definition each is a warning: Azure has keys that mean nothing here. In
    /// the other formats a slip of a known one is an error and anything else a warning.
    pub fn finish(self, reader: &mut Reader<'_>) {
        for entry in self.rest() {
            self.report(reader, entry);
        }
    }

    fn report(&self, reader: &mut Reader<'_>, entry: &Entry) {
        if reader.syntax == Syntax::Loom && entry.key.starts_with("x-") {
            return;
        }
        let meant = self.suggested_key(&entry.key, &self.requested);
        let near = meant.or_else(|| nearest(&entry.key, self.requested.iter().copied()));
        let mut known = self.requested.clone();
        known.sort_unstable();
        known.dedup();
        reader.unknown_key(&self.what, entry, near, &known);
    }
}
