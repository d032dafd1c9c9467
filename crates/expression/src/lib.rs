//! The two languages that compute values: WDL (the Logic Apps language) and Jinja.
//!
//! A [`Template`] is text of a file in one of the languages, or a structure that contains such texts. A [`Condition`]
//! is a template whose value is true or false. A [`Binding`] reads a value by a path, without a language. Expressions
//! read everything through an [`Env`]. Evaluations are pure, and a [`Budget`] limits their work.
//!
//! This crate never reads a clock, a random source or a file. Only text of the workflow file is parsed as an expression
//! (docs/reference/expressions.md).
//!
//! The most important types: [`Template`], [`Condition`], [`Binding`], [`Env`], [`Budget`].
//!
//! Test it alone with `cargo test -p windlass-expression`.

// Not a stable API, so an item whose name explains it has no comment.
#![allow(missing_docs)]

mod binding;
mod budget;
mod condition;
mod context;
mod data;
mod env;
mod error;
mod functions;
mod jinja;
mod reads;
mod reference;
#[cfg_attr(not(feature = "schema"), path = "schema_off.rs")]
mod schema;
#[cfg(feature = "schema")]
mod schema_work;
mod secret;
mod secure;
mod template;
mod wdl;

pub use binding::{Binding, Comparison, Extract, Port, PortKind, excerpt};
pub use budget::{Budget, BudgetExceeded, MAX_WORK};
pub use condition::{Condition, interpolated_condition, text_condition, without_braces};
pub use context::{Context, Subject, TryError, evaluate_line};
pub use data::TableFormat;
pub use env::{ACTION_MEMBERS, ActionView, Env, LOOP_MEMBERS, Lookup, Mode, SCHEDULE_MEMBERS};
pub use error::{EvalError, Missing, ParseError};
pub use functions::{Function, JinjaKind, jinja_functions, wdl_arities, wdl_functions};
pub use jinja::{TemplateCache, foreign_name_hint, python_quoted};
pub use reference::{LAST_RUN, Reference};
pub use schema::Schema;
#[cfg(feature = "schema")]
pub use schema_work::{Documents, MAX_CHECKS_TO_LIST_ERRORS};
pub use secret::{
    SecretMark, callback_mark, callback_secret, environment_secret, is_secret_name,
    mask_printed_marks, of_callback, of_environment, replace_secret_marks, secret_mark,
};
pub use template::{Syntax, Template, is_wdl};
pub use wdl::text::text_inside;
pub use wdl::time::zone::{Zone, find as time_zone, to_utc as zone_to_utc};
pub use windlass_value::{
    MAX_ACTION_DEPTH, MAX_COMPUTED_DEPTH, MAX_DEPTH, MAX_MEMORY, MAX_RESULT_DEPTH, Object,
    SECURE_MASK, Sealer, Sealing, Secure, Value, holds_sealed, inexact_json, memory_of_json,
    memory_of_yaml, over_memory, over_memory_json, shared_key, value,
};
