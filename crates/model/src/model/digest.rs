//! SHA-256.

use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN};
use windlass_value::{first_chars, hex};

/// A SHA-256 digest.
pub type Sha256 = [u8; SHA256_OUTPUT_LEN];

/// Returns the SHA-256 of these bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha256 {
    array(ring::digest::digest(&SHA256, bytes))
}

/// Returns the first 12 digits of the SHA-256 of a text, as a name for a text that must not be shown.
#[must_use]
pub fn short_digest(text: &str) -> String {
    first_chars(&hex(&sha256(text.as_bytes())), 12).to_owned()
}

/// Returns the SHA-256 of these parts.
/// Each part is hashed after its length, so that `[ab, c]` and `[a, bc]` have different digests.
#[must_use]
pub fn sha256_of_parts(parts: &[&[u8]]) -> Sha256 {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    array(context.finish())
}

/// Returns the digits of a text of the form `sha256:` and 64 hexadecimal digits, in lower case. Returns `None` for
/// another text.
#[must_use]
pub fn named_sha256(text: &str) -> Option<String> {
    let digits = text.trim().strip_prefix("sha256:")?;
    let is_digest = digits.len() == 2 * SHA256_OUTPUT_LEN
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_digest.then(|| digits.to_ascii_lowercase())
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
