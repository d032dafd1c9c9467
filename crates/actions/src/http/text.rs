//! Decodes the bytes of a reply as text.

use reqwest::header::HeaderValue;

/// Returns a header's value. Bytes that are not valid UTF-8 are read as Latin-1, as in older versions of HTTP.
pub(super) fn header_text(value: &HeaderValue) -> String {
    let bytes = value.as_bytes();
    std::str::from_utf8(bytes).map_or_else(|_| latin1(bytes), str::to_owned)
}

pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
