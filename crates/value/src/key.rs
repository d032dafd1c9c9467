//! Keys of objects. The same keys occur again and again. So recent keys are stored once and shared by the objects of a
//! thread.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Maximum number of keys that the objects of a thread share.
const SLOTS: usize = 256;

/// Maximum number of bytes of a shared key. A longer key is not shared.
const LONGEST: usize = 32;

// Only a cache: the text of the returned keys does not depend on it.
thread_local! {
    static KEYS: RefCell<[Option<Arc<str>>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) };
}

/// Returns a key for an object.
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

/// A key while it is deserialized.
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
