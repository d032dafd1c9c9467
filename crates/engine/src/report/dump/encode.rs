//! Encodes a run's state as a value. It serializes the types of the state themselves, so no part can be omitted. Ids of
//! the program are recognised by their types, never by their form, and are replaced by names.

use super::super::view::{RunView, shown};
use serde::ser::{self, Error as _, Serialize, Serializer};
use std::fmt::Display;
use windlass_expression::Value;
use windlass_machine::program::{ActionId, ScopeId, StateId};
use windlass_model::model::Name;
use windlass_store::StoreError;

/// Encodes the state of a run, with secrets masked.
pub(super) fn state(view: &RunView) -> Result<Value, StoreError> {
    let encoded = serde_json::to_value(Named(view.state(), view)).and_then(serde_json::from_value);
    let encoded = encoded.map_err(|error| StoreError::Corrupt {
        what: error.to_string(),
    });
    encoded.map(|state| shown(&state))
}

/// Wraps a value, a serializer or a part of a serializer. The second field is the run whose program has the names.
struct Named<'a, T>(T, &'a RunView);

impl<T: Serialize + ?Sized> Serialize for Named<'_, &T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Named(serializer, self.1))
    }
}

impl<S> Named<'_, S> {
    /// Returns the text for an id of the program. For an action this is the name, because names of actions are unique.
    /// For a scope or state this is the id and the name.
    fn shown(&self, kind: &str, number: u32) -> Option<String> {
        fn numbered(id: impl Display, name: Option<&Name>) -> String {
            name.map_or_else(|| id.to_string(), |name| format!("{id} {name}"))
        }
        let (action, scope, state) = (ActionId(number), ScopeId(number), StateId(number));
        Some(match kind {
            "ActionId" => self.1.action_name(action),
            "ScopeId" => numbered(scope, self.1.scope(scope).map(|scope| &scope.name)),
            "StateId" => numbered(state, self.1.state_of(state).map(|state| &state.name)),
            _ => return None,
        })
    }
}

macro_rules! scalars {
    ($($method:ident($($argument:ident: $type:ty),*),)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.0.$method($($argument),*)
        })*
    };
}

macro_rules! compounds {
    ($($method:ident($($argument:ident: $type:ty),*) -> $part:ident,)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<Named<'a, S::$part>, S::Error> {
            Ok(Named(self.0.$method($($argument),*)?, self.1))
        })*
    };
}

impl<'a, S: Serializer> Serializer for Named<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Named<'a, S::SerializeSeq>;
    type SerializeTuple = Named<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Named<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Named<'a, S::SerializeTupleVariant>;
    type SerializeMap = Named<'a, S::SerializeMap>;
    type SerializeStruct = Named<'a, S::SerializeStruct>;
    type SerializeStructVariant = Named<'a, S::SerializeStructVariant>;

    scalars! {
        serialize_bool(value: bool), serialize_char(value: char), serialize_str(value: &str), serialize_bytes(value: &[u8]),
        serialize_i8(value: i8), serialize_i16(value: i16), serialize_i32(value: i32), serialize_i64(value: i64),
        serialize_u8(value: u8), serialize_u16(value: u16), serialize_u32(value: u32), serialize_f32(value: f32),
        serialize_f64(value: f64), serialize_none(), serialize_unit(), serialize_unit_struct(name: &'static str),
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str),
    }

    compounds! {
        serialize_seq(length: Option<usize>) -> SerializeSeq,
        serialize_tuple(length: usize) -> SerializeTuple,
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct,
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, length: usize)
            -> SerializeTupleVariant,
        serialize_map(length: Option<usize>) -> SerializeMap,
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct,
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, length: usize)
            -> SerializeStructVariant,
    }

    /// A `Value` has no integers above `i64::MAX`, so a larger number becomes `i64::MAX`.
    fn serialize_u64(self, value: u64) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_i64(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn serialize_u128(self, value: u128) -> Result<S::Ok, S::Error> {
        self.0.collect_str(&value)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let number = serde_json::to_value(value).map_err(S::Error::custom)?;
        let number = number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        match number.and_then(|number| self.shown(name, number)) {
            Some(shown) => self.0.serialize_str(&shown),
            None => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = Named(value, self.1);
        self.0
            .serialize_newtype_variant(name, index, variant, &value)
    }
}

macro_rules! parts {
    ($($part:ident { $($method:ident($($key:ident)?)),* })*) => {
        $(impl<C: ser::$part> ser::$part for Named<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            $(fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), C::Error> {
                self.0.$method($($key,)? &Named(value, self.1))
            })*

            fn end(self) -> Result<C::Ok, C::Error> {
                self.0.end()
            }
        })*
    };
}

parts! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeMap { serialize_key(), serialize_value() }
    SerializeStruct { serialize_field(key) }
    SerializeStructVariant { serialize_field(key) }
}
