//! Values, instants and durations: what every part of Windlass handles.
//!
//! A [`Value`] is JSON with exact 64-bit integers and decimals. A clone of it only increments a counter. A secure value
//! always prints as a mask, and a store that has a key seals it through [`Sealing`]. A [`Timestamp`] counts
//! milliseconds, and durations are read in both forms that files use (`1h30m` and ISO 8601).
//!
//! The crate never reads a clock or a file, and knows no expression and no format.
//!
//! The most important types: [`Value`], [`Object`], [`Timestamp`], [`Secure`], [`Sealer`].
//!
//! Test it alone with `cargo test -p windlass-value`.

/// Returns an array of these words as texts: `words! { one two }` is `["one", "two"]`. With it, a long list of words
/// needs fewer lines than an array.
#[macro_export]
macro_rules! words {
    ($($word:tt)+) => {
        [$(stringify!($word)),+]
    };
}

mod escape;
mod exact;
mod key;
mod memory_estimate;
mod nearest;
mod secure;
mod shorten;
pub mod time;
mod typed;
mod unique;
pub mod value;
mod wait;

pub use escape::escape_markup;
pub use exact::inexact_json;
pub use key::shared_key;
pub use memory_estimate::{
    MAX_MEMORY, memory_of_json, memory_of_yaml, over_memory, over_memory_json,
};
pub use nearest::{did_you_mean, members, nearest};
pub use secure::{SECURE_MASK, Sealer, Sealing, Secure, holds_sealed};
pub use shorten::{first_bytes, first_chars, fitted, hex, one_line, shortened};
pub use time::Timestamp;
pub use unique::check_unique;
pub use value::{
    MAX_ACTION_DEPTH, MAX_COMPUTED_DEPTH, MAX_DEPTH, MAX_RESULT_DEPTH, Object, Value, not_finite,
};
pub use wait::{
    LONGEST_REQUESTED_WAIT, has_spent_quota, http_date, is_over_quota, requested_wait, stated_rate,
};
