//! Conversion: array bool coalesce createArray decimal float int json string xml.

use super::date::culture;
use super::{ANY, Args, Function, eager, lazy, passing};
use crate::wdl::ast::Expr;
use crate::wdl::eval::{Ctx, Fail, Outcome};
use crate::wdl::number::Number;
use crate::wdl::number_parse;
use crate::wdl::text::to_text;
use crate::wdl::{content, xml, xml_text};
use crate::{Value, over_memory_json};
use rust_decimal::Decimal;

pub(super) const TABLE: &[Function] = &[
    passing("array", 1, 1, |ctx, args| {
        ctx.charge_elements(1)?;
        match args.value(0) {
            array @ Value::Array(_) => Ok(array.clone()),
            other => ctx.nested(Value::array(vec![other.clone()])),
        }
    }),
    eager("bool", 1, 1, bool),
    lazy("coalesce", 1, ANY, coalesce),
    passing("createArray", 0, ANY, |ctx, args| {
        ctx.charge_elements(args.len())?;
        ctx.nested(Value::array(args.values.clone()))
    }),
    eager("decimal", 1, 1, decimal),
    eager("float", 1, 2, float),
    eager("int", 1, 1, int),
    eager("json", 1, 1, json),
    eager("string", 1, 1, |ctx, args| {
        if let Some(envelope) = content::text_of(args.value(0)) {
            return ctx.text(envelope);
        }
        ctx.charge_rendering(args.value(0))?;
        Ok(to_text(args.value(0)))
    }),
    eager("xml", 1, 1, |ctx, args| {
        let value = args.value(0);
        let text = match value {
            // A binary value is not parsed: as in the service, only its content type changes to XML.
            Value::Object(map) => match content::of(map) {
                Some((_, bytes)) => return content::envelope(ctx, content::XML, &bytes),
                None => xml_text::from_object(ctx, map),
            },
            Value::String(text) => xml_text::canonical(ctx, text),
            _ => return Err(args.wrong(0, "an object, or text that is XML")),
        };
        let text = text.map_err(|fail| fail.blame(0))?;
        content::envelope(ctx, content::XML, text.as_bytes())
    }),
];

fn bool(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let value = match args.value(0) {
        Value::Bool(value) => Some(*value),
        Value::Int(int) => Some(*int != 0),
        Value::Float(float) => Some(*float != 0.0),
        Value::Decimal(decimal) => Some(!decimal.is_zero()),
        Value::String(text) => match text.trim() {
            text if text.eq_ignore_ascii_case("true") || text == "1" => Some(true),
            text if text.eq_ignore_ascii_case("false") || text == "0" => Some(false),
            _ => None,
        },
        _ => None,
    };
    value
        .map(Value::Bool)
        .ok_or_else(|| args.wrong(0, "a boolean, a number or 'true' or 'false'"))
}

fn coalesce(ctx: &mut Ctx<'_>, arguments: &[Expr]) -> Outcome {
    for argument in arguments {
        let value = ctx.eval(argument)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

fn int(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let number = match args.value(0) {
        Value::String(text) => number_parse::int(text),
        Value::Bool(flag) => Some(i64::from(*flag)),
        other => match Number::of(other) {
            Some(Number::Int(int)) => Some(int),
            #[allow(clippy::cast_possible_truncation)]
            Some(Number::Float(float)) if float.fract() == 0.0 && float.abs() < 9.2e18 => {
                Some(float as i64)
            }
            Some(Number::Decimal(decimal)) if decimal.is_integer() => i64::try_from(decimal).ok(),
            _ => None,
        },
    };
    number
        .map(Value::Int)
        .ok_or_else(|| args.wrong(0, "a whole number of 64 bits, or text that is one"))
}

fn float(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let culture = culture(args, 1)?;
    let number = match args.value(0) {
        Value::String(text) => number_parse::float(text, culture),
        other => Number::of(other).map(Number::to_f64),
    };
    number
        .map(Value::Float)
        .ok_or_else(|| args.wrong(0, "a number, or text that is one"))
}

fn decimal(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let decimal = match args.value(0) {
        Value::String(text) => number_parse::decimal(text),
        Value::Int(int) => Some(Decimal::from(*int)),
        Value::Float(float) => number_parse::decimal(&float.to_string()),
        Value::Decimal(decimal) => Some(**decimal),
        _ => None,
    };
    decimal
        .map(Value::from)
        .ok_or_else(|| args.wrong(0, "a number, or text that is one of at most 28 digits"))
}

fn parsed(ctx: &mut Ctx<'_>, text: &str) -> Outcome {
    ctx.charge_output(text.len().saturating_mul(4))?;
    ctx.charge_parse(text)?;
    if let Some(reason) = over_memory_json(text.as_bytes()) {
        return Err(Fail::argument(
            0,
            format!("`json`: its values would {reason}"),
        ));
    }
    let value =
        Value::from_json(text).map_err(|error| Fail::argument(0, format!("`json`: {error}")))?;
    ctx.nested(value)
}

fn json(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    match args.value(0) {
        // By the reference, null becomes an empty object.
        Value::Null => Ok(Value::object(crate::Object::new())),
        Value::String(text) => parsed(ctx, text),
        value @ Value::Object(map) => match content::of(map) {
            Some((kind, bytes)) => {
                let text = String::from_utf8_lossy(&bytes);
                if content::is_xml(kind) {
                    let value = xml::to_json(ctx, &text).map_err(|fail| fail.blame(0))?;
                    return ctx.nested(value);
                }
                parsed(ctx, &text)
            }
            None => Ok(value.clone()),
        },
        _ => Err(args.wrong(0, "text or XML")),
    }
}
