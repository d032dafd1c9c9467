//! Encodings: base64 base64ToBinary base64ToString binary dataUri dataUriToBinary dataUriToString decodeBase64
//! decodeDataUri decodeUriComponent encodeUriComponent uriComponent uriComponentToBinary uriComponentToString. They
//! accept a number or a boolean as its text. base64, binary and dataUri also accept a list or a map as its JSON.

use super::{ANY, Args, Function, eager};
use crate::Value;
use crate::wdl::content::{self, DataUri};
use crate::wdl::eval::{Ctx, Outcome};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(super) const TABLE: &[Function] = &[
    eager("base64", 1, 1, |ctx, args| {
        let bytes = bytes(ctx, args)?;
        ctx.text(content::encode(&bytes))
    }),
    eager("base64ToBinary", 1, 1, |ctx, args| {
        decoded(ctx, args)?;
        let text = args.scalar(0)?;
        content::coded_envelope(ctx, content::BYTES, &text)
    }),
    eager("base64ToString", 1, 1, base64_to_string),
    eager("binary", 1, 1, |ctx, args| {
        let bytes = bytes(ctx, args)?;
        content::envelope(ctx, content::BYTES, &bytes)
    }),
    eager("dataUri", 1, 1, |ctx, args| {
        let bytes = bytes(ctx, args)?;
        let kind = match args
            .value(0)
            .get("$content-type")
            .and_then(|kind| kind.as_str())
        {
            Some(kind) => kind,
            None if args.value(0).as_str().is_some() => "text/plain;charset=utf-8",
            None => "application/json;charset=utf-8",
        };
        ctx.text(format!("data:{kind};base64,{}", content::encode(&bytes)))
    }),
    eager("dataUriToBinary", 1, 1, data_uri_to_binary),
    eager("dataUriToString", 1, 1, |ctx, args| {
        let uri = data_uri(ctx, args)?;
        let bytes = uri.into_bytes().map_err(|fail| fail.blame(0))?;
        ctx.text(String::from_utf8_lossy(&bytes))
    }),
    eager("decodeBase64", 1, 1, base64_to_string),
    eager("decodeDataUri", 1, 1, data_uri_to_binary),
    eager("decodeUriComponent", 1, 1, decode_uri),
    eager("encodeUriComponent", 1, ANY, encode_uri),
    eager("uriComponent", 1, ANY, encode_uri),
    eager("uriComponentToBinary", 1, 1, |ctx, args| {
        let text = args.scalar(0)?;
        ctx.charge_output(text.len())?;
        let bytes: Vec<u8> = percent_decode_str(&text).collect();
        content::envelope(ctx, content::BYTES, &bytes)
    }),
    eager("uriComponentToString", 1, 1, decode_uri),
];

/// All characters except RFC 3986's unreserved ones, as in `Uri.EscapeDataString`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

fn bytes(ctx: &mut Ctx<'_>, args: &Args) -> Outcome<Vec<u8>> {
    let bytes = match content::bytes_of(args.value(0)) {
        Some(bytes) => bytes,
        None => match args.value(0) {
            Value::Array(_) | Value::Object(_) => {
                ctx.charge_rendering(args.value(0))?;
                args.value(0).to_json().into_bytes()
            }
            _ => args.scalar(0)?.into_owned().into_bytes(),
        },
    };
    ctx.charge_output(bytes.len().saturating_mul(2))?;
    Ok(bytes)
}

fn decoded(ctx: &mut Ctx<'_>, args: &Args) -> Outcome<Vec<u8>> {
    let text = args.scalar(0)?;
    ctx.charge_output(text.len().saturating_mul(2))?;
    content::decode(&text).map_err(|fail| fail.blame(0))
}

fn base64_to_string(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let bytes = decoded(ctx, args)?;
    ctx.text(String::from_utf8_lossy(&bytes))
}

fn data_uri<'a>(ctx: &mut Ctx<'_>, args: &'a Args) -> Outcome<DataUri<'a>> {
    let text = args.text(0)?;
    ctx.charge_output(text.len().saturating_mul(2))?;
    DataUri::read(text).map_err(|fail| fail.blame(0))
}

fn data_uri_to_binary(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let uri = data_uri(ctx, args)?;
    uri.into_binary(ctx).map_err(|fail| fail.blame(0))
}

/// Encodes all arguments as one text: the designer writes a value of several pieces as several arguments.
fn encode_uri(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let mut encoded = String::new();
    for index in 0..args.len() {
        let text = args.scalar(index)?;
        ctx.charge_output(text.len().saturating_mul(2))?;
        encoded.extend(utf8_percent_encode(&text, ESCAPED));
    }
    ctx.text(encoded)
}

fn decode_uri(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let text = args.scalar(0)?;
    ctx.text(percent_decode_str(&text).decode_utf8_lossy())
}
