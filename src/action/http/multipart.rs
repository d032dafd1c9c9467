//! A body of several parts as it is sent (RFC 2046, 5.1).

use crate::model::sha256_of_parts;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// One part of a body.
pub(super) struct Part {
    pub headers: HeaderMap,
    /// Its content type when its headers have none.
    pub kind: Option<String>,
    pub bytes: Vec<u8>,
}

/// The content type with its boundary, and the body.
pub(super) fn written(kind: &str, parts: &[Part]) -> (String, Vec<u8>) {
    let given = kind.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("boundary");
        named.then(|| value.trim().trim_matches('"').to_owned())
    });
    let (kind, boundary) = match given {
        Some(boundary) => (kind.to_owned(), boundary),
        None => {
            let boundary = free_boundary(parts);
            (
                format!("{}; boundary={boundary}", kind.trim_end_matches([';', ' '])),
                boundary,
            )
        }
    };
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        for (name, value) in &part.headers {
            line(&mut body, name.as_str(), value.as_bytes());
        }
        if let Some(kind) = part
            .kind
            .as_deref()
            .filter(|_| !part.headers.contains_key(CONTENT_TYPE))
        {
            line(&mut body, CONTENT_TYPE.as_str(), kind.as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(&part.bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (kind, body)
}

fn line(body: &mut Vec<u8>, name: &str, value: &[u8]) {
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(b": ");
    body.extend_from_slice(value);
    body.extend_from_slice(b"\r\n");
}

/// A boundary that no part can hold, because it depends on all of them; of the same parts always
/// the same one, so that a repeated attempt sends the same bytes.
fn free_boundary(parts: &[Part]) -> String {
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.bytes.as_slice()).collect();
    let digest = sha256_of_parts(&bytes);
    let digits: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("windlass-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_given_or_made() {
        let part = Part {
            headers: HeaderMap::new(),
            kind: Some("application/json".into()),
            bytes: b"[1]".to_vec(),
        };
        let (kind, body) = written(
            "multipart/mixed; boundary=\"x\"",
            std::slice::from_ref(&part),
        );
        assert_eq!(kind, "multipart/mixed; boundary=\"x\"");
        let expected = "--x\r\ncontent-type: application/json\r\n\r\n[1]\r\n--x--\r\n";
        assert_eq!(body, expected.as_bytes());
        let (kind, body) = written("multipart/mixed;", &[part]);
        let boundary = kind.strip_prefix("multipart/mixed; boundary=").unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(boundary.len() > 30 && body.starts_with(&format!("--{boundary}\r\n")));
    }
}
