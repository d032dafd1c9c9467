//! SHA-256 digests, as an author writes them and as servers send them (RFC 9530). If a server sends digests of other
//! algorithms, these are ignored.

use crate::inputs::invalid;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use windlass_model::model::{Fault, named_sha256};
use windlass_value::hex;

const BYTES: usize = 32;

/// Reads the digest in `sha256:HEX`.
pub(super) fn parse(text: &str) -> Result<String, Fault> {
    named_sha256(text).ok_or_else(|| {
        invalid(format!(
            "`digest` must be `sha256:` and 64 hexadecimal digits, not `{text}`"
        ))
    })
}

/// Returns the digest of the whole file, if the headers of an answer have it.
pub(super) fn promised(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    let whole = headers.get_all("repr-digest").iter();
    // In an answer of status 206, `Content-Digest` covers only the part that is sent, so it is ignored.
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let content = headers.get_all("content-digest").iter();
    let content = content.filter(|_| !is_part);
    let mut texts = whole.chain(content).filter_map(|text| text.to_str().ok());
    texts.find_map(|text| {
        let mut members = text.split(',');
        members.find_map(|member| {
            let bytes = member.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
            let bytes = BASE64.decode(bytes).ok()?;
            (bytes.len() == BYTES).then(|| hex(&bytes))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;
    use windlass_model::model::sha256;

    #[test]
    fn a_digest_is_read_in_both_forms() {
        let known = hex(&sha256(b"hello"));
        assert_eq!(
            parse(&format!("sha256:{}", known.to_uppercase())),
            Ok(known.clone())
        );
        for wrong in ["", "sha256:", "sha256:12", &known, "md5:12"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let header = format!("md5=:AAAA:, sha-256=:{}:", BASE64.encode(sha256(b"hello")));
        let value = HeaderValue::from_str(&header).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-digest", value.clone());
        assert_eq!(promised(StatusCode::OK, &headers), Some(known.clone()));
        assert_eq!(promised(StatusCode::PARTIAL_CONTENT, &headers), None);
        headers.insert("repr-digest", value);
        assert_eq!(promised(StatusCode::PARTIAL_CONTENT, &headers), Some(known));
    }
}
