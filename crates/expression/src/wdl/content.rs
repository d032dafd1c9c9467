//! Binary and XML values: as in Logic Apps, an object `{"$content-type", "$content"}` with the bytes in base64.

use super::eval::{Ctx, Fail, Outcome};
use crate::{Object, Value};
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::STANDARD};

pub(crate) const BYTES: &str = "application/octet-stream";
pub(crate) const XML: &str = "application/xml;charset=utf-8";

/// Padding may be missing; every other deviation is an error.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn envelope(ctx: &mut Ctx<'_>, kind: &str, bytes: &[u8]) -> Outcome {
    ctx.charge_output(bytes.len().saturating_mul(4) / 3 + kind.len())?;
    Ok(Value::from_pairs([
        ("$content-type", Value::text(kind)),
        ("$content", Value::text(STANDARD.encode(bytes))),
    ]))
}

/// Returns the content type and the bytes of a value, if it has them.
pub(crate) fn of(map: &Object) -> Option<(&str, Vec<u8>)> {
    let kind = map.get("$content-type")?.as_str()?;
    let bytes = decode(map.get("$content")?.as_str()?).ok()?;
    Some((kind, bytes))
}

/// Returns true if a content type is XML.
pub(crate) fn is_xml(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.ends_with("/xml") || kind.ends_with("+xml")
}

/// Returns the bytes of a binary value as text.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    let (_, bytes) = of(value.as_object()?)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the bytes of a text or of a binary value.
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

/// Decodes base64 text, in which spaces and line ends are allowed.
pub(crate) fn decode(text: &str) -> Outcome<Vec<u8>> {
    let compact: String = text
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    LENIENT
        .decode(compact)
        .map_err(|error| Fail::new(format!("this is not valid base64: {error}")))
}

/// A parsed data URI.
pub(crate) struct DataUri<'t> {
    /// The content type as it is written; `text/plain` if there was no type.
    pub kind: &'t str,
    pub data: Data<'t>,
}

/// The data of a data URI.
pub(crate) enum Data<'t> {
    /// Base64, as it is written.
    Coded(&'t str),
    Plain(Vec<u8>),
}

/// The content type of a data URI without one.
const PLAIN: &str = "text/plain";

impl<'t> DataUri<'t> {
    pub(crate) fn read(text: &'t str) -> Outcome<Self> {
        let no =
            || Fail::new("this is not a valid data URI such as 'data:text/plain;base64,aGVsbG8='");
        let rest = match text.trim_start().split_at_checked(5) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("data:") => rest,
            _ => return Err(no()),
        };
        let (head, body) = rest.split_once(',').ok_or_else(no)?;
        let (kind, last) = head.rsplit_once(';').unwrap_or(("", head));
        let coded = last.eq_ignore_ascii_case("base64");
        let kind = if coded { kind } else { head };
        if !kind.is_empty() && kind.split(';').any(str::is_empty) {
            return Err(no());
        }
        let data = match coded {
            true => Data::Coded(body),
            // As in a form, `+` is a space.
            false => {
                let body = body.replace('+', " ");
                Data::Plain(percent_encoding::percent_decode_str(&body).collect())
            }
        };
        let kind = if kind.is_empty() { PLAIN } else { kind };
        Ok(Self { kind, data })
    }

    /// Returns the binary value. Base64 is copied as it is written.
    pub(crate) fn into_binary(self, ctx: &mut Ctx<'_>) -> Outcome {
        check_kind(self.kind)?;
        match self.data {
            Data::Plain(bytes) => envelope(ctx, self.kind, &bytes),
            Data::Coded(text) => coded_envelope(ctx, self.kind, text),
        }
    }

    pub(crate) fn into_bytes(self) -> Outcome<Vec<u8>> {
        // The service uses a charset only if it is the first parameter.
        let first = self.kind.split(';').nth(1).and_then(charset);
        if first.is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
            let kind = self.kind;
            return Err(Fail::new(format!("the charset of `{kind}` is not UTF-8")));
        }
        match self.data {
            Data::Plain(bytes) => Ok(bytes),
            Data::Coded(text) => decode(text),
        }
    }
}

/// Makes a binary value of base64 text, which is neither decoded nor checked.
pub(crate) fn coded_envelope(ctx: &mut Ctx<'_>, kind: &str, text: &str) -> Outcome {
    ctx.charge_output(text.len() + kind.len())?;
    Ok(Value::from_pairs([
        ("$content-type", Value::text(kind)),
        ("$content", Value::text(text)),
    ]))
}

/// Returns the charset, if the parameter names one.
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    let is_charset = name.trim().eq_ignore_ascii_case("charset");
    is_charset.then(|| value.trim().trim_matches('"'))
}

/// Checks a content type: a type and a subtype, then parameters. .NET must know the charset.
fn check_kind(kind: &str) -> Outcome<()> {
    let mut parts = kind.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let two = name
        .split_once('/')
        .is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty() && !sub.contains('/'));
    let mut known = true;
    for part in parts {
        known &= part.matches('=').count() <= 1;
        known &= charset(part).is_none_or(is_charset);
    }
    match two && known {
        true => Ok(()),
        false => Err(Fail::new(format!("`{kind}` is not a valid content type"))),
    }
}

/// Returns true if .NET knows this encoding.
fn is_charset(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    const KNOWN: [&str; 12] = [
        "utf-",
        "utf8",
        "utf16",
        "utf32",
        "ascii",
        "us-ascii",
        "iso-8859-",
        "latin",
        "windows-",
        "ucs-2",
        "unicode",
        "x-",
    ];
    KNOWN.iter().any(|known| name.starts_with(known))
}
