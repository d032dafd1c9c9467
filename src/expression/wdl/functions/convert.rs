//! Conversion: array bool coalesce createArray float int json string.

use super::{ANY, Args, Function, eager, lazy};
use crate::expression::Value;
use crate::expression::wdl::ast::Expr;
use crate::expression::wdl::eval::{Ctx, Fail, Outcome};
use crate::expression::wdl::number::Number;
use crate::expression::wdl::text::{parse_number, text_size, to_text};

pub(super) const TABLE: &[Function] = &[
    eager("array", 1, 1, |ctx, args| {
        ctx.elements(1)?;
        match args.value(0) {
            array @ Value::Array(_) => Ok(array.clone()),
            other => Ok(Value::array(vec![other.clone()])),
        }
    }),
    eager("bool", 1, 1, bool),
    lazy("coalesce", 1, ANY, coalesce),
    eager("createArray", 0, ANY, |ctx, args| {
        ctx.elements(args.len())?;
        Ok(Value::array(args.values.clone()))
    }),
    eager("float", 1, 2, float),
    eager("int", 1, 1, int),
    eager("json", 1, 1, json),
    eager("string", 1, 1, |ctx, args| {
        ctx.produce(text_size(args.value(0)))?;
        Ok(to_text(args.value(0)))
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
        Value::String(text) => match parse_number(text) {
            Some(Number::Int(int)) => Some(int),
            _ => None,
        },
        Value::Bool(flag) => Some(i64::from(*flag)),
        other => match Number::of(other) {
            Some(Number::Int(int)) => Some(int),
            #[allow(clippy::cast_possible_truncation)]
            Some(Number::Float(float)) if float.abs() < 9.2e18 => Some(float.trunc() as i64),
            Some(Number::Decimal(decimal)) => i64::try_from(decimal.trunc()).ok(),
            _ => None,
        },
    };
    number
        .map(Value::Int)
        .ok_or_else(|| args.wrong(0, "a number, or text that is a whole number of 64 bits"))
}

fn float(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let number = match args.value(0) {
        Value::String(text) => parse_number(text),
        other => Number::of(other),
    };
    number
        .map(|number| Value::Float(number.to_f64()))
        .ok_or_else(|| args.wrong(0, "a number, or text that is one"))
}

fn json(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let text = args.text(0)?;
    // A value takes at least a byte of text and one slot.
    ctx.produce(text.len().saturating_mul(2))?;
    Value::from_json(text).map_err(|error| Fail::argument(0, format!("`json`: {error}")))
}
