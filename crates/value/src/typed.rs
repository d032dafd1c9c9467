//! Between values and the types of a program that uses the library.

use super::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

impl Value {
    /// This value as a type of the caller's.
    ///
    /// # Errors
    /// What of it the type does not have, or has otherwise.
    pub fn decode<T: DeserializeOwned + 'static>(&self) -> Result<T, serde_json::Error> {
        // A value itself stays as exact as it is.
        let own: Box<dyn Any> = Box::new(self.clone());
        match own.downcast::<T>() {
            Ok(own) => Ok(*own),
            Err(_) => serde_json::from_value(serde_json::to_value(self)?),
        }
    }

    /// The value of something of the caller's.
    ///
    /// # Errors
    /// The text is not JSON, or has a number beyond 64 bits.
    pub fn encode<T: Serialize + 'static>(from: T) -> Result<Self, serde_json::Error> {
        match (&from as &dyn Any).downcast_ref::<Self>() {
            Some(own) => Ok(own.clone()),
            None => serde_json::from_value(serde_json::to_value(from)?),
        }
    }
}
