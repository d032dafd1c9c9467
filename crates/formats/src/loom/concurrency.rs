//! `concurrency` of a file: which runs of the workflow must not run at the same time.

use super::Loom;
use crate::actions::ActionReader;
use windlass_expression::{Reference, Template};
use windlass_model::model::{Concurrency, ConcurrencyPolicy};
use windlass_source::source::{Entry, Kind};

const HINT: &str = "for example concurrency: { key: \"@{inputs('customer')}\", policy: queue }";

const POLICIES: [(&str, ConcurrencyPolicy); 3] = [
    ("queue", ConcurrencyPolicy::Queue),
    ("skip", ConcurrencyPolicy::Skip),
    ("replace", ConcurrencyPolicy::Replace),
];

/// The largest value of `max`, the number of runs with the same key that may run at the same time.
const MAX: i64 = 100_000;

impl ActionReader<'_, Loom> {
    /// Reads `{key, policy, max}`, or the policy alone.
    pub(super) fn run_concurrency(&mut self, entry: &Entry) -> Option<Concurrency> {
        let wrong = |text: &str| format!("`{text}` is not a policy of `concurrency`");
        if matches!(entry.value.kind, Kind::String(_)) {
            return Some(Concurrency {
                key: None,
                policy: self.choice(entry, &POLICIES, wrong)?,
                max: 1,
            });
        }
        let mut fields = self.fields(&entry.value, "`concurrency`", HINT)?;
        let key = fields.non_null(self, "key");
        let key = key.map(|entry| {
            let key = self.template(&entry.value);
            self.check_key(entry, &key);
            key
        });
        let policy = match fields.non_null(self, "policy") {
            Some(entry) => self.choice(entry, &POLICIES, wrong)?,
            None => ConcurrencyPolicy::Queue,
        };
        let max = match fields.non_null(self, "max").map(|entry| &entry.value) {
            None => 1,
            Some(node) => match node.kind {
                Kind::Int(max @ 1..=MAX) => u32::try_from(max).unwrap_or(1),
                _ => {
                    let wanted = format!("a whole number from 1 to {MAX}");
                    self.wrong_type(node, "`max`", &wanted, HINT);
                    1
                }
            },
        };
        fields.finish(self);
        Some(Concurrency { key, policy, max })
    }

    /// Reports what a key reads and a run does not have before it begins.
    fn check_key(&mut self, entry: &Entry, key: &Template) {
        let is_known = |reference: &Reference| match reference {
            Reference::Input(_) | Reference::Parameter(_) | Reference::Anything => true,
            Reference::Root(name) => matches!(&**name, "inputs" | "workflow" | "parameters"),
            _ => false,
        };
        if !key.references().iter().all(is_known) {
            let what = "the key of `concurrency` reads what a run does not have before it begins";
            let hint = "it can read inputs and workflow().name";
            self.error("too-early", entry.value.span, what, hint);
        }
    }
}
