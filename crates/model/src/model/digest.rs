//! SHA-256.

use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN};

/// A digest of SHA-256.
pub type Sha256 = [u8; SHA256_OUTPUT_LEN];

/// SHA-256 over these bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256 {
    array(ring::digest::digest(&SHA256, bytes))
}

/// SHA-256 over these parts, each behind its length: where one ends and the next begins counts.
#[must_use]
pub fn sha256_of_parts(parts: &[&[u8]]) -> Sha256 {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    array(context.finish())
}

fn array(digest: Digest) -> Sha256 {
    let mut array = [0; SHA256_OUTPUT_LEN];
    let bytes = digest.as_ref().iter();
    array
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    array
}
