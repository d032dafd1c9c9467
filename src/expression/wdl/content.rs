//! Binary and XML values: an object `{"$content-type", "$content"}` with its bytes in base64, as
//! Logic Apps has them.

use super::eval::{Ctx, Fail, Outcome};
use crate::expression::{Object, Value};
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::STANDARD};

pub(crate) const BYTES: &str = "application/octet-stream";
pub(crate) const XML: &str = "application/xml;charset=utf-8";

/// Padding may be missing; nothing else is forgiven.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn envelope(ctx: &mut Ctx<'_>, kind: &str, bytes: &[u8]) -> Outcome {
    ctx.produce(bytes.len().saturating_mul(4) / 3 + kind.len())?;
    Ok(Value::from_pairs([
        ("$content-type", Value::text(kind)),
        ("$content", Value::text(STANDARD.encode(bytes))),
    ]))
}

/// The content type and the bytes of a value, when it has them.
pub(crate) fn of(map: &Object) -> Option<(&str, Vec<u8>)> {
    let kind = map.get("$content-type")?.as_str()?;
    let bytes = LENIENT.decode(map.get("$content")?.as_str()?).ok()?;
    Some((kind, bytes))
}

/// Whether a content type is one of XML.
pub(crate) fn is_xml(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.ends_with("/xml") || kind.ends_with("+xml")
}

/// The bytes of a value as text, when it has them.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    let (_, bytes) = of(value.as_object()?)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Text, the bytes of a binary value, or any other value's text.
pub(crate) fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Object(map) => of(map).map(|(_, bytes)| bytes),
        _ => None,
    }
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of base64 text; blanks and line ends in it are allowed.
pub(crate) fn decode(text: &str) -> Outcome<Vec<u8>> {
    let compact: String = text
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    LENIENT
        .decode(compact)
        .map_err(|error| Fail::new(format!("this is no base64: {error}")))
}

/// The content type and the bytes of a data URI.
pub(crate) fn decode_data_uri(text: &str) -> Outcome<(String, Vec<u8>)> {
    let no = || Fail::new("this is no data URI such as 'data:text/plain;base64,aGVsbG8='");
    let rest = match text.trim().split_at_checked(5) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("data:") => rest,
        _ => return Err(no()),
    };
    let (head, body) = rest.split_once(',').ok_or_else(no)?;
    let (kind, coded) = match head.strip_suffix(";base64") {
        Some(kind) => (kind, true),
        None => (head, false),
    };
    let kind = if kind.is_empty() {
        "text/plain;charset=US-ASCII"
    } else {
        kind
    };
    let bytes = if coded {
        decode(&percent_encoding::percent_decode_str(body).decode_utf8_lossy())?
    } else {
        percent_encoding::percent_decode_str(body).collect()
    };
    Ok((kind.to_owned(), bytes))
}
