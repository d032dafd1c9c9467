//! The vocabulary of the formats as plain data: which keys a map may have, what the value of each may be, and one line
//! about it. The JSON Schemas are made from it ([`schema`]), and from these completion, hover and the editor's panels.
//! A key that a reader asks for and that is not here fails a test, and so does one that is here and not read.

#[cfg(feature = "canvas")]
#[rustfmt::skip]
pub(crate) mod canvas;
#[rustfmt::skip]
pub(crate) mod loom;
#[rustfmt::skip]
pub(crate) mod model;
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
    /// One line about it; empty where the name says it all.
    pub about: &'static str,
    /// What it is when it is left out, as JSON.
    pub default: Option<&'static str>,
    pub required: bool,
}

/// A key that may be left out.
pub const fn key(name: &'static str, value: Type, about: &'static str) -> Key {
    Key {
        name,
        value,
        about,
        default: None,
        required: false,
    }
}

/// A key that has to be there.
pub const fn required(name: &'static str, value: Type, about: &'static str) -> Key {
    Key {
        required: true,
        ..key(name, value, about)
    }
}

impl Key {
    /// The same with its default, as JSON.
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    Any,
    /// JSON of one of these types: `string`, `number`, `integer`, `boolean`, `array`, `object`, `null`.
    Json(&'static [&'static str]),
    /// Text that is not empty.
    Name,
    /// Text that matches a regular expression.
    Pattern(&'static str),
    /// A whole number from, and perhaps up to.
    Integer(i64, Option<i64>),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words in any case.
    AnyCase(&'static [&'static str]),
    /// The same, or an expression.
    Computed(&'static [&'static str]),
    /// This value, as JSON.
    Exactly(&'static str),
    /// What the format defines under this name.
    Def(&'static str),
    ListOf(&'static Type),
    ListOrNull(&'static Type),
    MapOf(&'static Type),
    Map(&'static Map),
    MapOrNull(&'static Map),
    /// One of these or several.
    AnyOf(&'static [Type]),
    /// Exactly one of these.
    OneOf(&'static [Type]),
    /// A type with a line about it.
    About(&'static str, &'static Type),
    /// A type with further rules of JSON Schema.
    With(&'static str, &'static Type),
}

pub const TEXT: Type = Type::Json(&["string"]);
pub const FLAG: Type = Type::Json(&["boolean"]);
pub const OBJECT: Type = Type::Json(&["object"]);
pub const LIST: Type = Type::Json(&["array"]);

/// A map whose keys are known.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub keys: &'static [&'static [Key]],
    pub others: Others,
    /// The keys of each way to write it, of which one has to be there.
    pub ways: Ways,
    /// Keys that have to be there and are known elsewhere.
    pub required: &'static [&'static str],
    /// What holds where a key has a value.
    pub cases: &'static [Case],
    /// Further members of its schema.
    pub rules: fn() -> Json,
}

/// What holds for a map in which a key has a value.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub key: &'static str,
    pub is: &'static str,
    pub then: Map,
}

/// Which keys a map may have besides the known ones.
#[derive(Clone, Copy, Debug)]
pub enum Others {
    /// None but the author's own, `x-…`.
    Own,
    None,
    /// Any; a slip of a known one is an error.
    Any,
    /// Any, and the schema states it.
    Allowed,
}

/// Which keys have to be there, in each way to write a map.
#[derive(Clone, Copy, Debug)]
pub enum Ways {
    One,
    Any(&'static [&'static [&'static str]]),
    Exactly(&'static [&'static [&'static str]]),
}

/// A map without keys: the rest of a `const` map.
pub const MAP: Map = Map {
    keys: &[],
    others: Others::Own,
    ways: Ways::One,
    required: &[],
    cases: &[],
    rules: || json!({}),
};

/// The rest of a map that may have any further keys.
pub const OPEN: Map = Map {
    others: Others::Any,
    ..MAP
};

/// The rest of a map without further keys.
pub const CLOSED: Map = Map {
    others: Others::None,
    ..MAP
};

/// What a format defines under a name.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub value: Type,
}
