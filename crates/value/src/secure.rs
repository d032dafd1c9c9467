//! Secure values: values that an author declared as secure, and values that are computed from them.
//! A secure value is always wrapped, and prints as a mask. Only an evaluation and an action read its content.
//! A store that has a key stores the content sealed (encrypted). The codec in this file has no cipher of its own: the
//! store lends it a [`Sealer`] with the key.

use crate::Value;
use bincode::Encode;
use bincode::config::{self, Configuration};
use bincode::enc::write::SizeWriter;
use bincode::error::{DecodeError, EncodeError};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

/// The text that is printed for a secure value.
pub const SECURE_MASK: &str = "*** secure ***";

const CONFIG: Configuration = config::standard();

/// A value that is printed as [`SECURE_MASK`].
#[derive(Clone, PartialEq)]
pub enum Secure {
    /// The value.
    Open(Value),
    /// The sealed bytes from a store. The key that sealed them was not available when the value was read.
    Sealed(Vec<u8>),
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SECURE_MASK)
    }
}

/// A key that seals values.
pub trait Sealer: Send + Sync {
    /// Returns the sealed bytes; `None` if sealing fails.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>>;
    /// Returns the original bytes; `None` if another key sealed them, or the bytes are not sealed.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// Maximum nesting of secure values in each other, as in a secure map with secure members.
const MAX_NESTING: u32 = 8;

// Thread-local, because a context cannot be passed through `bincode::Encode` to values deep inside of a record.
thread_local! {
    static NESTING: Cell<u32> = const { Cell::new(0) };
    static SEALER: RefCell<Option<Arc<dyn Sealer>>> = const { RefCell::new(None) };
    static SEALED: Cell<bool> = const { Cell::new(false) };
}

/// A guard. While it exists, secure values that this thread encodes are sealed, and those that it decodes are opened.
pub struct Sealing(Option<Arc<dyn Sealer>>);

impl Sealing {
    /// Sets the key of this thread. If `None`, secure values are encoded without sealing.
    #[must_use]
    pub fn with(sealer: Option<Arc<dyn Sealer>>) -> Self {
        Self(SEALER.replace(sealer))
    }
}

impl Drop for Sealing {
    fn drop(&mut self) {
        SEALER.set(self.0.take());
    }
}

/// Returns true if a part of the value is still sealed, because the key was not available when the part was decoded.
#[must_use]
pub fn holds_sealed<T: Encode>(value: &T) -> bool {
    SEALED.set(false);
    let sized = bincode::encode_into_writer(value, SizeWriter::default(), CONFIG);
    SEALED.take() || sized.is_err()
}

/// Calls `inside` with the count of nested secure values increased by one. Returns `None` if they nest too deep.
fn nested<T>(inside: impl FnOnce() -> T) -> Option<T> {
    let depth = NESTING.get();
    if depth >= MAX_NESTING {
        return None;
    }
    NESTING.set(depth + 1);
    let result = inside();
    NESTING.set(depth);
    Some(result)
}

impl Secure {
    /// Returns the form for a store: the bytes, and whether they are sealed.
    pub(super) fn stored(&self) -> Result<(bool, Vec<u8>), EncodeError> {
        let value = match self {
            Self::Sealed(sealed) => {
                SEALED.set(true);
                return Ok((true, sealed.clone()));
            }
            Self::Open(value) => value,
        };
        let plain = nested(|| bincode::encode_to_vec(value, CONFIG));
        let plain = plain.ok_or(EncodeError::Other("secure values nest too deep"))??;
        match SEALER.with_borrow(Clone::clone) {
            None => Ok((false, plain)),
            Some(sealer) => match sealer.seal(&plain) {
                Some(sealed) => Ok((true, sealed)),
                None => Err(EncodeError::Other("a value cannot be sealed")),
            },
        }
    }

    /// Decodes a value from the store.
    pub(super) fn read(sealed: bool, bytes: Vec<u8>) -> Result<Self, DecodeError> {
        let plain = match sealed {
            false => bytes,
            true => {
                let sealer = SEALER.with_borrow(Clone::clone);
                match sealer.and_then(|sealer| sealer.open(&bytes)) {
                    Some(plain) => plain,
                    None => return Ok(Self::Sealed(bytes)),
                }
            }
        };
        let read = nested(|| bincode::decode_from_slice(&plain, CONFIG));
        match read.ok_or(DecodeError::Other("secure values nest too deep"))?? {
            (value, used) if used == plain.len() => Ok(Self::Open(value)),
            _ => Err(DecodeError::Other("a secure value has bytes too many")),
        }
    }
}

impl Value {
    /// Marks the value as secure. Null stays null, because a missing value is not a secret.
    #[must_use]
    pub fn secure(self) -> Self {
        match self {
            Self::Null | Self::Secure(_) => self,
            value => Self::Secure(Arc::new(Secure::Open(value))),
        }
    }

    /// Returns true if the value or a part of it is secure.
    #[must_use]
    pub fn has_secure(&self) -> bool {
        match self {
            Self::Secure(_) => true,
            Self::Array(items) => items.iter().any(Self::has_secure),
            Self::Object(map) => map.values().any(Self::has_secure),
            _ => false,
        }
    }

    /// Returns the value with all secure parts unwrapped.
    /// Parts that are still sealed, because their key is not available, do not change.
    #[must_use]
    pub fn revealed(&self) -> Self {
        match self {
            Self::Secure(secure) => match &**secure {
                Secure::Open(value) => value.revealed(),
                Secure::Sealed(_) => self.clone(),
            },
            Self::Array(items) if self.has_secure() => {
                Self::array(items.iter().map(Self::revealed).collect())
            }
            Self::Object(map) if self.has_secure() => {
                let pairs = map
                    .iter()
                    .map(|(key, value)| (key.clone(), value.revealed()));
                Self::object(pairs.collect())
            }
            value => value.clone(),
        }
    }

    /// Converts a secure list to a list of secure values, so that code can iterate over it.
    #[must_use]
    pub fn into_shared(self) -> Self {
        let Self::Secure(_) = &self else {
            return self;
        };
        match self.revealed() {
            Self::Array(items) => Self::array(items.iter().cloned().map(Self::secure).collect()),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sealer that reverses and changes the bytes, so that a test notices whether it was called.
    struct XorSealer(u8);

    impl Sealer for XorSealer {
        fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
            let turned = plain.iter().rev().map(|byte| byte ^ 0xA5);
            Some([self.0].into_iter().chain(turned).collect())
        }
        fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
            let (key, rest) = sealed.split_first()?;
            (*key == self.0).then(|| rest.iter().rev().map(|byte| byte ^ 0xA5).collect())
        }
    }

    fn encoded(value: &Value, key: Option<u8>) -> Vec<u8> {
        let key = key.map(|key| Arc::new(XorSealer(key)) as Arc<dyn Sealer>);
        let _sealing = Sealing::with(key);
        bincode::encode_to_vec(value, CONFIG).unwrap()
    }

    fn decoded(bytes: &[u8], key: Option<u8>) -> Value {
        let key = key.map(|key| Arc::new(XorSealer(key)) as Arc<dyn Sealer>);
        let _sealing = Sealing::with(key);
        let (value, used) = bincode::decode_from_slice(bytes, CONFIG).unwrap();
        assert_eq!(used, bytes.len());
        value
    }

    #[test]
    fn a_secure_value_is_printed_by_nobody_and_sealed_with_a_key() {
        let value = Value::from_pairs([("a", Value::from("token").secure())]);
        assert_eq!(value.to_json(), r#"{"a":"*** secure ***"}"#);
        assert!(!format!("{value:?}").contains("token"));
        let readable = encoded(&value, None);
        assert!(readable.windows(5).any(|part| part == b"token"));
        let sealed = encoded(&value, Some(1));
        assert!(!sealed.windows(5).any(|part| part == b"token"));
        assert_eq!(decoded(&sealed, Some(1)), value);
        assert_eq!(decoded(&readable, Some(1)), value);
        // Without the right key, the value stays sealed, and is written back sealed.
        for key in [None, Some(2)] {
            let unread = decoded(&sealed, key);
            assert!(holds_sealed(&unread) && !holds_sealed(&value));
            assert_eq!(unread.to_json(), value.to_json());
            assert_eq!(encoded(&unread, key), sealed);
        }
    }
}
