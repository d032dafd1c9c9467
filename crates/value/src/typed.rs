//! Converts between values and the types of a program that uses the library.

use super::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

impl Value {
    /// Converts this value to a type of the caller.
    ///
    /// # Errors
    /// The value does not fit the type: for example, a part is missing or has another form.
    pub fn decode<T: DeserializeOwned + 'static>(&self) -> Result<T, serde_json::Error> {
        // If the type is `Value`, return a clone, because a conversion through JSON would not be exact.
        let own: Box<dyn Any> = Box::new(self.clone());
        match own.downcast::<T>() {
            Ok(own) => Ok(*own),
            Err(_) => serde_json::from_value(serde_json::to_value(self)?),
        }
    }

    /// Converts an object of the caller to a value.
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
