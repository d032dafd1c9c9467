//! The limits that loops reached without a failure (`on_limit: continue`, an `Until` of Logic Apps, a `while_loop` of
//! TEA). Nothing else shows that a loop of a successful run ended before its condition was true.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_machine::{LoopEnd, LoopState};

/// A loop that ended at a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitReached {
    /// Path of the loop in the file, without iterations: `outer/inner`.
    #[serde(rename = "loop")]
    pub place: String,
    /// Display name, if it differs from the name. Otherwise null.
    pub title: Option<String>,
    /// Type of the loop, as its file has it: `until`, `while`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Limit that the loop reached: `count`, `timeout`, `unchanged`, `tokens` or `cost`.
    pub limit: LoopEnd,
    /// Number of iterations that had ended, the last time that it reached the limit.
    pub iterations: u64,
    /// How often the loop ended at this limit. A nested loop can end once per iteration of the outer one.
    pub times: u64,
}

impl LimitReached {
    /// Returns one entry for each loop of the file and each limit, sorted by position.
    pub(super) fn of(loops: &[LoopState]) -> Vec<Self> {
        let mut found: BTreeMap<(String, &str), Self> = BTreeMap::new();
        for state in loops {
            let Some(
                limit @ (LoopEnd::Count
                | LoopEnd::Timeout
                | LoopEnd::Unchanged
                | LoopEnd::Tokens
                | LoopEnd::Cost),
            ) = state.ended
            else {
                continue;
            };
            // A `while_loop` of TEA ends at its count even if its last iteration made its condition false.
            if &*state.kind == "while_loop" && state.last_condition == Some(false) {
                continue;
            }
            let place = place(&state.path);
            let one = found
                .entry((place.clone(), limit.as_str()))
                .or_insert_with(|| Self {
                    place,
                    title: state.title.as_ref().map(ToString::to_string),
                    kind: state.kind.to_string(),
                    limit,
                    iterations: 0,
                    times: 0,
                });
            one.iterations = state.iteration;
            one.times += 1;
        }
        found.into_values().collect()
    }

    /// Returns a text for users: `loop `poll` ended at its count limit, after 3 iterations`.
    #[must_use]
    pub fn text(&self) -> String {
        let name = self.title.as_deref().unwrap_or(&self.place);
        let limit = self.limit.as_str();
        match self.times {
            1 => format!(
                "loop `{name}` ended at its {limit} limit, after {} iterations",
                self.iterations
            ),
            times => format!("loop `{name}` ended at its {limit} limit {times} times"),
        }
    }
}

/// Returns a path without the iterations of its loops.
fn place(path: &str) -> String {
    let names = path
        .split('/')
        .map(|part| part.split_once('#').map_or(part, |(name, _)| name));
    names.collect::<Vec<_>>().join("/")
}
