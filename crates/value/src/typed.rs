//! Conversions between values and the types of a program that uses the library.

use super::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

impl Value {
    /// Returns this value as a type of the caller.
    ///
    /// # Errors
    /// The type lacks a part of the value, or has it in another form.
    pub fn decode<T: DeserializeOwned + 'static>(&self) -> Result<T, serde_json::Error> {
        // A `Value` stays as exact as it is.
        let own: Box<dyn Any> = Box::new(self.clone());
        match own.downcast::<T>() {
            Ok(own) => Ok(*own),
            Err(_) => serde_json::from_value(serde_json::to_value(self)?),
        }
    }

    /// Returns an object of the caller as a value.
    ///
    /// # Errors
    /// The object has no JSON form, or has a number beyond 64 bits.
    pub fn encode<T: Serialize + 'static>(from: T) -> Result<Self, serde_json::Error> {
        match (&from as &dyn Any).downcast_ref::<Self>() {
            Some(own) => Ok(own.clone()),
            None => serde_json::from_value(serde_json::to_value(from)?),
        }
    }
}
