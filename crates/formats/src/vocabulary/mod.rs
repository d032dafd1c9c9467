//! The vocabulary of the formats as plain data.
//! For each map it lists the keys, the type of each value, and a line about it. [`schema`] makes the JSON Schemas
//! from these data. Completion, hover and the editor's panels use the schemas. A test of the language crate fails if
//! the reader of a map knows a key that completions do not offer there, or if no reader knows a key that they offer.
//! The tables of keys in docs/reference are made from these data, too.

macro_rules! map_with {
    ($base:ident: $($group:expr),+; $($key:expr),* $(,)?) => {
        Type::Map(&Map { keys: &[$($group,)+ &[$($key),*]], ..$crate::vocabulary::$base })
    };
    ($base:ident: $($key:expr),* $(,)?) => {
        Type::Map(&Map { keys: &[&[$($key),*]], ..$crate::vocabulary::$base })
    };
}
/// Makes the type of a map from groups of keys and from further keys, with the base [`MAP`]: `map![GROUP; key(…)]`.
macro_rules! map {
    ($($keys:tt)*) => { map_with!(MAP: $($keys)*) };
}
/// Like [`map!`], with the base [`OPEN`].
macro_rules! open {
    ($($keys:tt)*) => { map_with!(OPEN: $($keys)*) };
}
/// Like [`map!`], with the base [`CLOSED`].
macro_rules! closed {
    ($($keys:tt)*) => { map_with!(CLOSED: $($keys)*) };
}
/// Makes optional keys of any type from the description that they share: `keys!["…" => ["a", "b"]]`.
#[cfg(feature = "canvas")]
macro_rules! keys {
    ($($description:expr => [$($name:expr),+ $(,)?]),+ $(,)?) => {
        &[$($(key($name, Type::Any, $description)),+),+]
    };
}

#[rustfmt::skip]
pub(crate) mod authentication;
#[rustfmt::skip]
pub(crate) mod azure;
#[cfg(feature = "canvas")]
#[rustfmt::skip]
pub(crate) mod canvas;
#[rustfmt::skip]
pub(crate) mod loom;
#[rustfmt::skip]
pub(crate) mod model;
#[cfg(test)]
#[cfg(all(feature = "canvas", feature = "tea"))]
mod reference;
pub mod schema;
#[cfg(feature = "tea")]
#[rustfmt::skip]
pub(crate) mod tea;

use serde_json::{Value as Json, json};

/// A key of a map.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub value: Type,
    /// A line about the key. Empty if the name of the key explains it.
    pub description: &'static str,
    /// The text about the key in docs/reference, as Markdown. Empty if it is the description.
    pub reference: &'static str,
    /// The default value, as JSON.
    pub default: Option<&'static str>,
    pub required: bool,
}

/// Makes an optional key.
pub const fn key(name: &'static str, value: Type, description: &'static str) -> Key {
    Key {
        name,
        value,
        description,
        reference: "",
        default: None,
        required: false,
    }
}

/// Makes a required key.
pub const fn required(name: &'static str, value: Type, description: &'static str) -> Key {
    Key {
        required: true,
        ..key(name, value, description)
    }
}

impl Key {
    /// Returns this key with a default value, written as JSON.
    pub const fn default_value(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// Returns this key with a text for docs/reference. Links in the text start at that folder.
    pub const fn reference(self, reference: &'static str) -> Self {
        Self { reference, ..self }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    Any,
    /// A JSON value of one of these types: `string`, `number`, `integer`, `boolean`, `array`, `object`, `null`.
    Json(&'static [&'static str]),
    NonEmptyText,
    /// Text that matches a regular expression.
    Pattern(&'static str),
    /// A whole number from a minimum, up to a maximum if there is one.
    Integer(i64, Option<i64>),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, in upper or lower case.
    AnyCase(&'static [&'static str]),
    /// One of these words, in upper or lower case, or an expression.
    AnyCaseOrExpression(&'static [&'static str]),
    /// This value, as JSON.
    Exactly(&'static str),
    /// The [`Definition`] with this name.
    Def(&'static str),
    ListOf(&'static Type),
    ListOrNull(&'static Type),
    MapOf(&'static Type),
    Map(&'static Map),
    MapOrNull(&'static Map),
    /// At least one of these types.
    AnyOf(&'static [Type]),
    /// Exactly one of these types.
    OneOf(&'static [Type]),
    /// A type with a line that describes it.
    About(&'static str, &'static Type),
    /// A type with further rules, as the text of a JSON Schema.
    WithRules(&'static str, &'static Type),
}

pub const TEXT: Type = Type::Json(&["string"]);
pub const FLAG: Type = Type::Json(&["boolean"]);
pub const OBJECT: Type = Type::Json(&["object"]);
pub const LIST: Type = Type::Json(&["array"]);

/// A map whose keys are known.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub keys: &'static [&'static [Key]],
    pub unknown_keys: UnknownKeys,
    /// The ways in which the map can be written. Each way has its own required keys.
    pub required_sets: RequiredSets,
    /// Required keys that another map declares.
    pub required: &'static [&'static str],
    /// Further rules that hold if a key has a certain value.
    pub cases: &'static [Case],
    /// Makes further members of the map's JSON Schema.
    pub rules: fn() -> Json,
}

/// The rules `then` for a map in which the key `key` has the value `is`.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub key: &'static str,
    pub is: &'static str,
    pub then: Map,
}

/// The keys that a map may have in addition to the known keys.
#[derive(Clone, Copy, Debug)]
pub enum UnknownKeys {
    /// Only keys of the form `x-…`, which are for the author's own use.
    Own,
    None,
    /// Any key, except that a misspelling of a known key is an error.
    Any,
    /// Any key. The schema says so explicitly.
    Allowed,
}

/// The required keys for each way in which a map can be written.
#[derive(Clone, Copy, Debug)]
pub enum RequiredSets {
    One,
    Any(&'static [&'static [&'static str]]),
    Exactly(&'static [&'static [&'static str]]),
}

/// The base of a map that may have, in addition to the known keys, only keys of the form `x-…`.
pub const MAP: Map = Map {
    keys: &[],
    unknown_keys: UnknownKeys::Own,
    required_sets: RequiredSets::One,
    required: &[],
    cases: &[],
    rules: || json!({}),
};

/// The base of a map that may have any keys in addition to the known ones.
pub const OPEN: Map = Map {
    unknown_keys: UnknownKeys::Any,
    ..MAP
};

/// The base of a map that may have only the known keys.
pub const CLOSED: Map = Map {
    unknown_keys: UnknownKeys::None,
    ..MAP
};

/// A type that a format defines under a name.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub value: Type,
}

/// Makes a definition.
pub const fn define(name: &'static str, value: Type) -> Definition {
    Definition { name, value }
}
