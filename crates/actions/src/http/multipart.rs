//! Encodes and parses a body of several parts (RFC 2046, 5.1).

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use windlass_model::model::sha256_of_parts;
use windlass_value::{first_chars, hex};

/// Maximum number of parts into which a reply is split. A reply with more parts is returned as bytes.
const MAX_PARTS: usize = 1000;

/// One part of a body.
pub(super) struct MultipartPart {
    pub headers: HeaderMap,
    /// The content type of the part, if its headers have none.
    pub kind: Option<String>,
    pub bytes: Vec<u8>,
}

/// Returns the content type with its boundary, and the body.
pub(super) fn encode(kind: &str, parts: &[MultipartPart]) -> (String, Vec<u8>) {
    let given = boundary_of(kind).map(str::to_owned);
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

/// Returns the boundary in a content type.
fn boundary_of(kind: &str) -> Option<&str> {
    kind.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("boundary");
        named.then(|| value.trim().trim_matches('"'))
    })
}

/// A received part: its headers and its bytes.
pub(super) type ReadPart<'b> = (Vec<(String, String)>, &'b [u8]);

/// Returns the parts of a body. `None` if the content type has no boundary, or if the body is incomplete or has too
/// many parts.
pub(super) fn parts<'b>(kind: &str, body: &'b [u8]) -> Option<Vec<ReadPart<'b>>> {
    let boundary = boundary_of(kind).filter(|boundary| !boundary.is_empty())?;
    let first = format!("--{boundary}");
    let between = format!("\r\n--{boundary}");
    // Skip the text before the first boundary: it is for readers that do not support parts.
    let mut rest = match body.strip_prefix(first.as_bytes()) {
        Some(rest) => rest,
        None => body.get(find(body, between.as_bytes())? + between.len()..)?,
    };
    let mut found = Vec::new();
    while !rest.starts_with(b"--") {
        if found.len() == MAX_PARTS {
            return None;
        }
        let start = find(rest, b"\r\n")?;
        let inside = rest.get(start..)?;
        let end = find(inside.get(2..)?, between.as_bytes());
        // A part without headers begins directly with the empty line.
        let head = find(inside, b"\r\n\r\n")?;
        let end = end? + 2;
        let headers = String::from_utf8_lossy(inside.get(..head)?);
        let headers = headers.lines().filter_map(|line| line.split_once(':'));
        let headers =
            headers.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        found.push((headers.collect(), inside.get(head + 4..end)?));
        rest = inside.get(end + between.len()..)?;
    }
    Some(found)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn line(body: &mut Vec<u8>, name: &str, value: &[u8]) {
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(b": ");
    body.extend_from_slice(value);
    body.extend_from_slice(b"\r\n");
}

/// Makes a boundary that no part contains. It is computed from all parts. The same parts have the same boundary, so a
/// repeated attempt sends the same bytes.
fn free_boundary(parts: &[MultipartPart]) -> String {
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.bytes.as_slice()).collect();
    let digest = sha256_of_parts(&bytes);
    format!("windlass-{}", first_chars(&hex(&digest), 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_given_or_made() {
        let part = MultipartPart {
            headers: HeaderMap::new(),
            kind: Some("application/json".into()),
            bytes: b"[1]".to_vec(),
        };
        let (kind, body) = encode(
            "multipart/mixed; boundary=\"x\"",
            std::slice::from_ref(&part),
        );
        assert_eq!(kind, "multipart/mixed; boundary=\"x\"");
        let expected = "--x\r\ncontent-type: application/json\r\n\r\n[1]\r\n--x--\r\n";
        assert_eq!(body, expected.as_bytes());
        let (kind, body) = encode("multipart/mixed;", &[part]);
        let boundary = kind.strip_prefix("multipart/mixed; boundary=").unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(boundary.len() > 30 && body.starts_with(&format!("--{boundary}\r\n")));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let part = |text: &str| MultipartPart {
            headers: HeaderMap::new(),
            kind: Some("text/plain".into()),
            bytes: text.as_bytes().to_vec(),
        };
        let (kind, body) = encode("multipart/mixed", &[part("a\r\nb"), part(""), part("c")]);
        let read = parts(&kind, &body).unwrap();
        let texts: Vec<&[u8]> = read.iter().map(|(_, bytes)| *bytes).collect();
        assert_eq!(texts, [&b"a\r\nb"[..], b"", b"c"]);
        assert_eq!(
            read[0].0,
            [("content-type".to_owned(), "text/plain".to_owned())]
        );
        let before = [b"for old readers\r\n".as_slice(), &body].concat();
        assert_eq!(parts(&kind, &before).unwrap().len(), 3);
        let bare = b"--x\r\n\r\nhi\r\n--x--";
        assert_eq!(
            parts("multipart/mixed; boundary=x", bare).unwrap(),
            [(vec![], &b"hi"[..])]
        );
        for broken in [&b"--x\r\n\r\nhi"[..], b"--x", b"", b"--x\r\n--x--"] {
            assert_eq!(parts("multipart/mixed; boundary=x", broken), None);
        }
        assert_eq!(parts("multipart/mixed", bare), None);
    }
}
