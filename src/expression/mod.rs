//! Values, and the two languages that compute them: WDL (the Logic Apps language) and Jinja.
//!
//! Everything here is pure and bounded. This module never reads a clock, a random source or a file:
//! what an expression may see comes through [`Env`], and only text of the workflow file is ever
//! parsed as an expression (docs/expressions.md).

mod binding;
mod budget;
mod condition;
mod context;
mod data;
mod env;
mod error;
mod exact;
mod functions;
mod jinja;
mod key;
mod memory_estimate;
mod reads;
mod reference;
#[cfg_attr(not(feature = "schema"), path = "schema_off.rs")]
mod schema;
#[cfg(feature = "schema")]
mod schema_work;
mod secret;
mod secure;
mod template;
mod typed;
mod value;
mod wdl;

pub use binding::{Binding, Comparison, Extract, Port, PortKind, excerpt};
pub use budget::{Budget, Exceeded, MAX_WORK};
pub use condition::Condition;
pub use context::{Context, Subject, TryError, evaluate_line};
pub use data::TableFormat;
pub use env::{ActionView, Env, Lookup, Mode};
pub use error::{EvalError, ParseError};
pub use exact::inexact_json;
pub use functions::{Function, JinjaKind, jinja_functions, wdl_arities, wdl_functions};
pub(crate) use jinja::{is_full, python_quoted, sharing};
pub use key::shared_key;
pub use memory_estimate::{
    MAX_MEMORY, memory_of_json, memory_of_yaml, over_memory, over_memory_json,
};
pub use reference::Reference;
#[cfg(feature = "tea")]
pub(crate) use schema_work::{Documents, MAX_TOLD};
pub use secret::{
    Marked, environment_secret, is_secret_name, map_texts, mask_printed_marks, of_environment,
    replace_secret_marks, secret_mark,
};
pub use secure::{SECURE_MASK, Sealer, Sealing, Secure, holds_sealed};
pub use template::{Syntax, Template};
pub use value::{MAX_ACTION_DEPTH, MAX_COMPUTED_DEPTH, MAX_DEPTH, MAX_RESULT_DEPTH, Object, Value};
pub(crate) use wdl::time::zone::{Zone, find as time_zone, to_utc as zone_to_utc};
