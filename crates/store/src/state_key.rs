//! The key of a state directory, with which secure values are sealed (ChaCha20-Poly1305, RFC 8439). Each process
//! derives its own key from this key and a random salt. The salt is stored with each sealed value. Each derived key is
//! used by only one process, so a counter is sufficient as the nonce. This file never writes the key anywhere.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_expression::Sealer;

/// Length of a key in bytes.
const KEY: usize = 32;
/// The first byte of a sealed value.
const VERSION: u8 = 1;
/// Lengths in bytes of the parts before the ciphertext: the id of the key, the salt of the process, and the counter.
const ID: usize = 8;
const SALT: usize = 16;
const COUNTER: usize = 8;
const HEAD: usize = 1 + ID + SALT + COUNTER;

/// A key that seals secure values.
#[derive(Clone)]
pub struct StateKey(Arc<Inner>);

struct Inner {
    key: [u8; KEY],
    id: [u8; ID],
    salt: [u8; SALT],
    sealed: AtomicU64,
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(…)")
    }
}

impl StateKey {
    /// Creates a key from 32 random bytes.
    ///
    /// # Errors
    /// If the system returns no random bytes for the salt.
    pub fn new(key: [u8; KEY]) -> Result<Self, String> {
        let mut salt = [0; SALT];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| String::from("the system returned no random bytes"))?;
        let mut hash = Context::new(&SHA256);
        hash.update(b"windlass state key");
        hash.update(&key);
        let hash = hash.finish();
        let mut id = [0; ID];
        let bytes = hash.as_ref().iter();
        id.iter_mut().zip(bytes).for_each(|(id, byte)| *id = *byte);
        Ok(Self(Arc::new(Inner {
            key,
            id,
            salt,
            sealed: AtomicU64::new(0),
        })))
    }

    /// Reads a key from a file: 32 bytes in binary, in hexadecimal digits or in Base64.
    ///
    /// # Errors
    /// If the file cannot be read or has other content.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
        let key = <[u8; KEY]>::try_from(bytes.as_slice()).ok();
        let key = key.or_else(|| spelt(std::str::from_utf8(&bytes).ok()?.trim()));
        let key = key.ok_or_else(|| {
            format!(
                "{shown} holds no key: it must be 32 random bytes, as they are, in hexadecimal \
                 digits or in Base64 (openssl rand -hex 32)"
            )
        })?;
        Self::new(key)
    }

    /// Derives the key of the process that sealed a value with this salt.
    fn derived(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let key = Salt::new(HKDF_SHA256, salt).extract(&self.0.key);
        let key = key.expand(&[b"windlass sealed value"], &CHACHA20_POLY1305);
        Some(LessSafeKey::new(UnboundKey::from(key.ok()?)))
    }
}

fn spelt(text: &str) -> Option<[u8; KEY]> {
    if text.len() == KEY * 2 {
        let digits = (0..KEY).map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok());
        let bytes: Vec<u8> = digits.collect::<Option<_>>()?;
        return bytes.try_into().ok();
    }
    let decoded = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
    decoded.ok()?.try_into().ok()
}

fn nonce(counter: &[u8]) -> Option<Nonce> {
    let mut nonce = [0; 12];
    let behind = nonce.get_mut(12 - COUNTER..)?;
    behind
        .iter_mut()
        .zip(counter)
        .for_each(|(to, byte)| *to = *byte);
    Some(Nonce::assume_unique_for_key(nonce))
}

impl Sealer for StateKey {
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let counter = self.0.sealed.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        let mut out = Vec::with_capacity(HEAD + plain.len() + CHACHA20_POLY1305.tag_len());
        out.push(VERSION);
        out.extend_from_slice(&self.0.id);
        out.extend_from_slice(&self.0.salt);
        out.extend_from_slice(&counter);
        let mut body = plain.to_vec();
        let key = self.derived(&self.0.salt)?;
        let head = Aad::from(&*out);
        key.seal_in_place_append_tag(nonce(&counter)?, head, &mut body)
            .ok()?;
        out.append(&mut body);
        Some(out)
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (head, body) = sealed.split_at_checked(HEAD)?;
        let (version, rest) = head.split_first()?;
        let (id, rest) = rest.split_at_checked(ID)?;
        let (salt, counter) = rest.split_at_checked(SALT)?;
        if *version != VERSION || id != self.0.id {
            return None;
        }
        let mut body = body.to_vec();
        let key = self.derived(salt)?;
        let plain = key.open_in_place(nonce(counter)?, Aad::from(head), &mut body);
        plain.ok().map(|plain| plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_opens_what_it_sealed() {
        let (key, other) = (
            StateKey::new([7; KEY]).unwrap(),
            StateKey::new([8; KEY]).unwrap(),
        );
        let (once, again) = (key.seal(b"token").unwrap(), key.seal(b"token").unwrap());
        assert_ne!(once, again);
        assert!(!once.windows(5).any(|part| part == b"token"));
        // Another process with the same key.
        let same = StateKey::new([7; KEY]).unwrap();
        assert_eq!(same.open(&once).as_deref(), Some(b"token".as_slice()));
        assert_eq!(other.open(&once), None);
        for at in 0..once.len() {
            let mut flipped = once.clone();
            flipped[at] ^= 1;
            assert_eq!(key.open(&flipped), None, "{at}");
            assert_eq!(key.open(&once[..at]), None, "{at}");
        }
        assert!(!format!("{key:?}").contains('7'));
    }

    #[test]
    fn a_key_is_read_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let sealed = StateKey::new([0xAB; KEY]).unwrap().seal(b"x").unwrap();
        let hex = "ab".repeat(KEY) + "\n";
        for text in [
            vec![0xAB; KEY],
            hex.clone().into_bytes(),
            hex.to_uppercase().into_bytes(),
            STANDARD.encode([0xAB; KEY]).into_bytes(),
        ] {
            std::fs::write(&path, &text).unwrap();
            let key = StateKey::from_file(&path).unwrap();
            assert_eq!(key.open(&sealed).as_deref(), Some(b"x".as_slice()));
        }
        for text in ["", "short", &"zz".repeat(KEY)] {
            std::fs::write(&path, text).unwrap();
            let error = StateKey::from_file(&path).unwrap_err();
            assert!(error.contains("32 random bytes"), "{error}");
        }
    }
}
