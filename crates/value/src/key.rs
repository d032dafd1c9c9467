//! Keys of objects. The same ones come again and again, so those of late are shared.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Maximum number of keys shared by the objects that a thread makes.
const SLOTS: usize = 256;

/// A longer key is its object's own.
const LONGEST: usize = 32;

// A cache: what is returned does not depend on it.
thread_local! {
    static KEYS: RefCell<[Option<Arc<str>>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) };
}

/// A key, as objects have it.
pub fn shared_key(text: &str) -> Arc<str> {
    if text.len() > LONGEST {
        return Arc::from(text);
    }
    let hash = text.bytes().fold(0_usize, |hash, byte| {
        (hash.rotate_left(5) ^ usize::from(byte)).wrapping_mul(0x9E37_79B1)
    });
    let shared = KEYS.try_with(|keys| {
        let mut keys = keys.borrow_mut();
        let slot = keys.get_mut((hash >> 16) % SLOTS)?;
        match slot {
            Some(key) if **key == *text => Some(Arc::clone(key)),
            other => {
                let key = Arc::from(text);
                *other = Some(Arc::clone(&key));
                Some(key)
            }
        }
    });
    shared.ok().flatten().unwrap_or_else(|| Arc::from(text))
}

/// A key that is read.
pub(super) struct Key(pub Arc<str>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(shared_key(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
