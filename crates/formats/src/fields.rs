//! The keys of a map while the map is read.
//! A key that the reader requests is known. All other keys are reported.

use super::reader::Reader;
use super::vocabulary::{Key, loom};
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

impl Reader<'_> {
    /// Warns of misspelt keys in a map in which Azure has many keys without an effect here. `used` are the keys that
    /// have an effect, and `further` are other keys that are similar to them.
    pub(super) fn misspelt_keys(
        &mut self,
        node: &Node,
        what: &str,
        used: &[&str],
        further: &[&str],
    ) {
        for entry in node.entries().unwrap_or_default() {
            let is = |known: &&str| known.eq_ignore_ascii_case(&entry.key);
            if used.iter().chain(further).any(is) {
                continue;
            }
            if let Some(near) = nearest(&entry.key, used.iter().copied()) {
                self.unknown_key(what, entry, Some(near), used);
            }
        }
    }
}

/// A map that is being read. The reader requests every key that it knows; `finish` reports all others.
pub struct Fields<'n> {
    what: String,
    entries: &'n [Entry],
    requested: Vec<&'static str>,
    /// Whether keys are compared ignoring case, as in Logic Apps.
    any_case: bool,
}

/// The keys of a definition for which null is a value. For other keys, null is the same as a missing key.
const VALUES: [&str; 9] = words! {
    inputs uri value defaultValue body content from foreach case
};

impl<'n> Fields<'n> {
    /// Returns the entry of a key, even if its value is null.
    /// In a Logic Apps definition, null is the same as no entry, except for the keys in `VALUES`.
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

    /// Returns the entry of a key. If the value is null, reports that the author forgot it.
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

    /// Returns the entry of a key, or `None` if its value is null.
    #[cfg(feature = "tea")]
    pub fn non_null_quiet(&mut self, key: &'static str) -> Option<&'n Entry> {
        let entry = self.get(key)?;
        (!matches!(entry.value.kind, Kind::Null)).then_some(entry)
    }

    /// Returns the entry of a required key. Reports the key if it is missing.
    pub fn required(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        span: Span,
        hint: &str,
    ) -> Option<&'n Entry> {
        if self.find_entry(key).is_none() {
            self.requested.push(key);
            if !self.has_misspelling_of(key) {
                let what = format!("{} needs `{key}`", self.what);
                let inputs = self.entries.iter().find(|entry| entry.key == "inputs");
                match inputs.filter(|inputs| inputs.value.get(key).is_some()) {
                    Some(inputs) => {
                        let hint = format!("move `{key}` out of `inputs`, next to `type`");
                        reader.error("missing-key", inputs.key_span, what, &hint);
                    }
                    None => reader.error("missing-key", span, what, hint),
                }
            }
            return None;
        }
        self.non_null(reader, key)
    }

    /// Returns true if the map has a misspelling of this key. Then the key is reported as misspelt, and not also as
    /// missing. Always false in a definition: there, a misspelling is only a warning, so the missing key must be
    /// reported as well.
    pub fn has_misspelling_of(&self, key: &'static str) -> bool {
        self.misspelling_of(key).is_some()
    }

    fn misspelling_of(&self, key: &'static str) -> Option<&'n Entry> {
        let is_misspelling = |entry: &&'n Entry| {
            nearest(&entry.key, [key]).is_some() || self.suggested_key(&entry.key, &[key]).is_some()
        };
        self.rest().find(is_misspelling).filter(|_| !self.any_case)
    }

    /// Reports only a misspelling of this key.
    /// Without the key, it is not known which other keys are valid.
    pub fn finish_without(self, reader: &mut Reader<'_>, key: &'static str) {
        if let Some(entry) = self.misspelling_of(key) {
            self.report(reader, entry);
        }
    }

    /// Returns the known key that corresponds to a word of another format. Always `None` in a definition.
    fn suggested_key(&self, word: &str, known: &[&'static str]) -> Option<&'static str> {
        let free = |meant: &&'static str| !self.entries.iter().any(|entry| entry.key == **meant);
        let meant = super::synonyms::key(word, known).filter(|_| !self.any_case);
        meant.filter(free)
    }

    /// Accepts keys that are valid but have no effect.
    pub fn allow(&mut self, keys: &[&'static str]) {
        self.requested.extend(keys);
    }

    /// Like `allow`, for keys that the vocabulary lists.
    pub fn allow_keys(&mut self, keys: &[Key]) {
        self.requested.extend(keys.iter().map(|key| key.name));
    }

    /// Accepts all keys that were not read, because the map has no effect.
    pub fn allow_rest(&mut self) {
        self.entries = &[];
    }

    /// Returns the entries of these keys that were read.
    pub fn read_entries(&self, keys: &[&str]) -> impl Iterator<Item = &'n Entry> {
        let entries = self.entries.iter().filter(|entry| self.is_known(entry));
        entries.filter(|entry| keys.contains(&&*entry.key))
    }

    /// Returns the entries that were not read.
    pub fn rest(&self) -> impl Iterator<Item = &'n Entry> {
        self.entries.iter().filter(|entry| !self.is_known(entry))
    }

    /// Reports the keys that were not read.
    /// In Loom each is an error, except `x-…`, which is for the author's own use. In a definition each is a warning,
    /// because Azure has keys that have no effect here. In the other formats a misspelling of a known key is an
    /// error, and any other key a warning.
    pub fn finish(self, reader: &mut Reader<'_>) {
        for entry in self.rest() {
            self.report(reader, entry);
        }
    }

    fn report(&self, reader: &mut Reader<'_>, entry: &Entry) {
        if reader.syntax == Syntax::Loom && entry.key.starts_with("x-") {
            return;
        }
        let is_of_inputs = self.what.starts_with("`inputs` of ");
        if reader.syntax == Syntax::Loom && is_of_inputs && loom::is_action_key(&entry.key) {
            let what = format!("`{}` is a key of the action, and not an input", entry.key);
            reader.error(
                "unknown-key",
                entry.key_span,
                what,
                "write it next to `type`",
            );
            return;
        }
        let meant = self.suggested_key(&entry.key, &self.requested);
        let nearest_key = meant.or_else(|| nearest(&entry.key, self.requested.iter().copied()));
        let mut known = self.requested.clone();
        known.sort_unstable();
        known.dedup();
        reader.unknown_key(&self.what, entry, nearest_key, &known);
    }
}
