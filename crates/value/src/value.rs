//! The value type of all modules: JSON with exact 64-bit integers and decimals.
//!
//! Containers are behind `Arc`, so a clone only increments a counter. A change in place is cheap while the container
//! has no other reference.
//! Encoding and decoding are written by hand to limit the depth of values: derived code would recurse as deep as the
//! stored bytes say.

use super::exact::inexact_json;
use super::key::{Key, shared_key};
use super::secure::{SECURE_MASK, Secure};
use bincode::de::{Decode, Decoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};
use indexmap::IndexMap;
use rust_decimal::Decimal;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Maximum nesting of a value in a file, and of a value while it is computed.
pub const MAX_DEPTH: usize = 128;

/// Maximum nesting of the value that contains all results of a run.
/// It is below [`MAX_DEPTH`], so that a value that contains the results can still be read.
pub const MAX_RESULT_DEPTH: usize = 96;

/// Maximum nesting of a value that an expression returns to a run, and of a run's input. Below [`MAX_RESULT_DEPTH`],
/// because such a value becomes a part of others: outputs of scopes, results of loops, arrays.
pub const MAX_COMPUTED_DEPTH: usize = 80;

/// Maximum nesting of an action's output.
/// It is below [`MAX_COMPUTED_DEPTH`], so that expressions can put the output into other values.
pub const MAX_ACTION_DEPTH: usize = 64;

/// Maximum nesting of a value that is read from the store. Values that are written never nest as deep.
const MAX_STORED_DEPTH: usize = 400;

/// An object. It preserves the order in which its keys were written, as the authors of files expect.
pub type Object = IndexMap<Arc<str>, Value>;

/// A JSON value with exact integers and decimals.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// JSON null.
    #[default]
    Null,
    /// true or false.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A double.
    Float(f64),
    /// An exact decimal, as `decimal()` returns. Boxed, because few values are decimals.
    Decimal(Box<Decimal>),
    /// Text.
    String(Arc<String>),
    /// A list.
    Array(Arc<Vec<Value>>),
    /// A map that preserves the order of its keys.
    Object(Arc<Object>),
    /// A secure value: it prints as a mask.
    Secure(Arc<Secure>),
}

impl Value {
    /// Creates a value from text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(Arc::new(text.into()))
    }

    /// Creates a value from a list.
    #[must_use]
    pub fn array(items: Vec<Value>) -> Self {
        Self::Array(Arc::new(items))
    }

    /// Creates a value from a map.
    #[must_use]
    pub fn object(map: Object) -> Self {
        /// All empty objects share one allocation, because each of ten thousand loops may have a few empty objects.
        static EMPTY: LazyLock<Arc<Object>> = LazyLock::new(Arc::default);
        match map.is_empty() {
            true => Self::Object(Arc::clone(&EMPTY)),
            false => Self::Object(Arc::new(map)),
        }
    }

    /// Creates a map from pairs, in their order.
    pub fn from_pairs<K: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::object(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// Returns the kind of this value, in the words of JSON: `null`, `boolean`, `integer`, `number`, `string`,
    /// `array`, `object`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::Float(_) | Self::Decimal(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
            Self::Secure(_) => "secure value",
        }
    }

    /// Returns true if this is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the text; `None` for other kinds.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the whole number of an integer, or of a double without a fraction such as 5.0. Returns `None` for other
    /// values.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            #[allow(clippy::cast_possible_truncation)]
            Self::Float(float) if float.fract() == 0.0 && float.abs() < 9.0e15 => {
                Some(*float as i64)
            }
            Self::Decimal(decimal) if decimal.is_integer() => i64::try_from(**decimal).ok(),
            _ => None,
        }
    }

    /// Does the same as [`Value::as_int`], and also accepts a number that is written as text, because templates return
    /// text.
    #[must_use]
    pub fn as_whole(&self) -> Option<i64> {
        match self {
            Self::String(text) => text.trim().parse().ok(),
            other => other.as_int(),
        }
    }

    /// Returns the list; `None` for other kinds.
    #[must_use]
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the map; `None` for other kinds.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the member of a map by its exact name; `None` if this is not a map or has no such member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns true if lists and maps nest at most this many levels deep. A value that is neither has no level.
    #[must_use]
    pub fn depth_within(&self, levels: usize) -> bool {
        let below = |child: &Value| levels > 0 && child.depth_within(levels - 1);
        match self {
            Self::Array(items) => items.iter().all(below),
            Self::Object(map) => map.values().all(below),
            Self::Secure(secure) => match &**secure {
                Secure::Open(value) => value.depth_within(levels),
                Secure::Sealed(_) => true,
            },
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Decimal(_)
            | Self::String(_) => true,
        }
    }

    /// Returns the number of values in this value, including itself. A value that is shared by several positions counts
    /// at each of them, because it is also written at each of them.
    #[must_use]
    pub fn nodes(&self) -> usize {
        match self {
            Self::Array(items) => items.iter().map(Self::nodes).fold(1, usize::saturating_add),
            Self::Object(map) => map.values().map(Self::nodes).fold(1, usize::saturating_add),
            Self::Secure(secure) => match &**secure {
                Secure::Open(value) => value.nodes(),
                Secure::Sealed(_) => 1,
            },
            _ => 1,
        }
    }

    /// Returns the number of values that were probably just made, in the first two levels. A container with other
    /// references existed before, so it counts as one value.
    #[must_use]
    pub fn fresh_nodes(&self) -> usize {
        let own = |value: &Self| match value {
            Self::Array(items) if Arc::strong_count(items) == 1 => items.len() + 1,
            Self::Object(map) if Arc::strong_count(map) == 1 => map.len() + 1,
            _ => 1,
        };
        match self {
            Self::Array(items) if Arc::strong_count(items) == 1 => {
                items.iter().map(own).fold(1, usize::saturating_add)
            }
            Self::Object(map) if Arc::strong_count(map) == 1 => {
                map.values().map(own).fold(1, usize::saturating_add)
            }
            _ => 1,
        }
    }

    /// Returns compact JSON. Decimals are written with all of their digits.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(64);
        match push_json(self, &mut out) {
            Ok(()) => String::from_utf8(out).unwrap_or_default(),
            Err(_) => String::from("null"),
        }
    }

    /// Returns text unchanged, and any other value as compact JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::String(text) => text.to_string(),
            other => other.to_json(),
        }
    }

    /// Returns indented JSON, for people.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|_| String::from("null"))
    }

    /// Returns true if the value has at most about this many bytes, as it is stored.
    #[must_use]
    pub fn fits_in_bytes(&self, bytes: usize) -> bool {
        let mut left = Some(bytes);
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            let own = match value {
                Self::String(text) => text.len(),
                Self::Array(items) => {
                    open.extend(items.iter());
                    items.len()
                }
                Self::Object(members) => {
                    open.extend(members.values());
                    members.keys().map(|key| key.len()).sum()
                }
                Self::Secure(secure) => match &**secure {
                    Secure::Open(value) => {
                        open.push(value);
                        0
                    }
                    Secure::Sealed(sealed) => sealed.len(),
                },
                _ => 8,
            };
            left = left.and_then(|left| left.checked_sub(own));
            if left.is_none() {
                return false;
            }
        }
        true
    }

    /// Reads JSON text.
    ///
    /// # Errors
    /// The error of serde_json for text that is not JSON or nests deeper than [`MAX_DEPTH`], or an error for a part
    /// of the text that no value can hold.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        if let Some(message) = inexact_json(text.as_bytes()) {
            return Err(serde::de::Error::custom(message));
        }
        serde_json::from_str(text)
    }
}

/// Writes JSON as `serde_json` does, except for decimals: `serde_json` would write them as doubles.
fn push_json(value: &Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Decimal(decimal) => {
            out.extend_from_slice(decimal.to_string().as_bytes());
            if decimal.scale() == 0 {
                out.extend_from_slice(b".0");
            }
        }
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_json(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, &**key)?;
                out.push(b':');
                push_json(item, out)?;
            }
            out.push(b'}');
        }
        scalar => serde_json::to_writer(out, scalar)?,
    }
    Ok(())
}

/// `1` equals `1.0`; values of other different kinds are never equal (docs/reference/expressions.md).
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => {
                int_equals_float(*a, *b)
            }
            (Self::Decimal(a), Self::Int(b)) | (Self::Int(b), Self::Decimal(a)) => {
                **a == Decimal::from(*b)
            }
            (Self::Decimal(a), Self::Float(b)) | (Self::Float(b), Self::Decimal(a)) => {
                Decimal::try_from(*b).is_ok_and(|b| **a == b)
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::Secure(a), Self::Secure(b)) => a == b,
            _ => false,
        }
    }
}

fn int_equals_float(int: i64, float: f64) -> bool {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    {
        float.fract() == 0.0 && int as f64 == float && float as i64 == int
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}
impl From<Decimal> for Value {
    fn from(value: Decimal) -> Self {
        Self::Decimal(Box::new(value))
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::text(value)
    }
}
impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::text(value)
    }
}
impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Self {
        Self::array(value)
    }
}
impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Self::object(value)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            // JSON has no infinite number and no NaN, so the text is written that .NET uses for them.
            Self::Float(value) => serializer.serialize_str(not_finite(*value)),
            Self::Decimal(value) => match value.to_string().parse::<f64>() {
                Ok(float) => serializer.serialize_f64(float),
                Err(_) => serializer.serialize_str(&value.to_string()),
            },
            Self::String(value) => serializer.serialize_str(value),
            Self::Array(items) => serializer.collect_seq(items.iter()),
            Self::Object(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    out.serialize_entry(&**key, value)?;
                }
                out.end()
            }
            Self::Secure(_) => serializer.serialize_str(SECURE_MASK),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Int(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
                let int = i64::try_from(value).map(Value::Int);
                int.map_err(|_| E::custom(format!("the number {value} does not fit 64 bits")))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
                match value.is_finite() {
                    true => Ok(Value::Float(value)),
                    false => Err(E::custom("infinity and not-a-number are not valid values")),
                }
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::text(value))
            }
            fn visit_string<E>(self, value: String) -> Result<Value, E> {
                Ok(Value::text(value))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Value::array(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut out = Object::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    out.insert(key, value);
                }
                // Release the unused space: most answers have few members, and a run stores its last answers.
                if out.len() < 4 {
                    out.shrink_to_fit();
                }
                Ok(Value::object(out))
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}

impl Encode for Value {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_value(self, encoder, 0)
    }
}

/// Encodes a value. Refuses a value that nests too deep to be decoded again.
fn encode_value<E: Encoder>(
    value: &Value,
    encoder: &mut E,
    depth: usize,
) -> Result<(), EncodeError> {
    if depth > MAX_STORED_DEPTH {
        return Err(EncodeError::Other("a value nests too deep"));
    }
    match value {
        Value::Null => 0u8.encode(encoder),
        Value::Bool(false) => 1u8.encode(encoder),
        Value::Bool(true) => 2u8.encode(encoder),
        Value::Int(value) => {
            3u8.encode(encoder)?;
            value.encode(encoder)
        }
        Value::Float(value) => {
            4u8.encode(encoder)?;
            value.encode(encoder)
        }
        Value::Decimal(value) => {
            5u8.encode(encoder)?;
            value.serialize().encode(encoder)
        }
        Value::String(value) => {
            6u8.encode(encoder)?;
            value.as_str().encode(encoder)
        }
        Value::Array(items) => {
            7u8.encode(encoder)?;
            items.len().encode(encoder)?;
            items
                .iter()
                .try_for_each(|item| encode_value(item, encoder, depth + 1))
        }
        Value::Object(map) => {
            8u8.encode(encoder)?;
            map.len().encode(encoder)?;
            map.iter().try_for_each(|(key, value)| {
                key.encode(encoder)?;
                encode_value(value, encoder, depth + 1)
            })
        }
        Value::Secure(secure) => {
            let (sealed, bytes) = secure.stored()?;
            (9 + u8::from(sealed)).encode(encoder)?;
            bytes.encode(encoder)
        }
    }
}

impl<Context> Decode<Context> for Value {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        decode_value(decoder, 0)
    }
}
bincode::impl_borrow_decode!(Value);

fn decode_value<D: Decoder>(decoder: &mut D, depth: usize) -> Result<Value, DecodeError> {
    if depth > MAX_STORED_DEPTH {
        return Err(DecodeError::Other("a value nests too deep"));
    }
    Ok(match u8::decode(decoder)? {
        0 => Value::Null,
        1 => Value::Bool(false),
        2 => Value::Bool(true),
        3 => Value::Int(i64::decode(decoder)?),
        4 => Value::Float(f64::decode(decoder)?),
        5 => {
            let decimal = Decimal::deserialize(<[u8; 16]>::decode(decoder)?);
            Value::from(decimal)
        }
        6 => Value::String(Arc::new(String::decode(decoder)?)),
        7 => {
            let length = usize::decode(decoder)?;
            // The stored length is not trusted. If an item is missing, decoding fails at its first byte.
            let mut items = Vec::with_capacity(length.min(1024));
            for _ in 0..length {
                items.push(decode_value(decoder, depth + 1)?);
            }
            Value::array(items)
        }
        8 => {
            let length = usize::decode(decoder)?;
            let mut map = Object::with_capacity(length.min(1024));
            for _ in 0..length {
                let text = String::decode(decoder)?;
                map.insert(shared_key(&text), decode_value(decoder, depth + 1)?);
            }
            Value::object(map)
        }
        kind @ (9 | 10) => {
            let bytes = Vec::<u8>::decode(decoder)?;
            Value::Secure(Arc::new(Secure::read(kind == 10, bytes)?))
        }
        _ => return Err(DecodeError::Other("an unknown kind of value")),
    })
}
/// Returns the text that .NET uses for a double that JSON cannot represent.
pub fn not_finite(float: f64) -> &'static str {
    match (float.is_nan(), float > 0.0) {
        (true, _) => "NaN",
        (false, true) => "Infinity",
        (false, false) => "-Infinity",
    }
}
