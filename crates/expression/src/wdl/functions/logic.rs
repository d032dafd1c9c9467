//! Logic: and equals greater greaterOrEquals if less lessOrEquals not or.

use super::{Args, Function, eager, lazy, passing};
use crate::Value;
use crate::wdl::ast::Expr;
use crate::wdl::eval::{Ctx, Fail, Outcome, describe};
use crate::wdl::number::Number;
use std::cmp::Ordering;

pub(super) const TABLE: &[Function] = &[
    lazy("and", 1, super::ANY, and),
    passing("equals", 2, 2, |ctx, args| {
        Ok(equals(ctx, args.value(0), args.value(1))?.into())
    }),
    eager("greater", 2, 2, |_, args| Ok(order(args)?.is_gt().into())),
    eager("greaterOrEquals", 2, 2, |_, args| {
        Ok(order(args)?.is_ge().into())
    }),
    lazy("if", 3, 3, if_),
    eager("less", 2, 2, |_, args| Ok(order(args)?.is_lt().into())),
    eager("lessOrEquals", 2, 2, |_, args| {
        Ok(order(args)?.is_le().into())
    }),
    eager("not", 1, 1, |_, args| Ok((!args.boolean(0)?).into())),
    lazy("or", 1, super::ANY, or),
];

/// Compares as in the reference: `equals(true, 1)` is true. Otherwise this is [`Value`]'s own equality.
fn equals(ctx: &mut Ctx<'_>, a: &Value, b: &Value) -> Outcome<bool> {
    match (a, b) {
        (Value::Bool(flag), number @ (Value::Int(_) | Value::Float(_) | Value::Decimal(_)))
        | (number @ (Value::Int(_) | Value::Float(_) | Value::Decimal(_)), Value::Bool(flag)) => {
            Ok(*number == Value::Int(i64::from(*flag)))
        }
        _ => same(ctx, a, b),
    }
}

/// Compares with [`Value`]'s own equality, and charges the work.
pub(super) fn same(ctx: &mut Ctx<'_>, a: &Value, b: &Value) -> Outcome<bool> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => {
            ctx.charge_work(a.len().min(b.len()) / 64)?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            ctx.charge_work(a.len())?;
            for (a, b) in a.iter().zip(b.iter()) {
                if !same(ctx, a, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            ctx.charge_work(a.len())?;
            for (key, a) in a.iter() {
                match b.get(key) {
                    Some(b) if same(ctx, a, b)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => Ok(a == b),
    }
}

/// Returns true if a list contains a value, and charges the work.
pub(super) fn holds(ctx: &mut Ctx<'_>, items: &[Value], wanted: &Value) -> Outcome<bool> {
    ctx.charge_work(items.len())?;
    for item in items {
        if same(ctx, item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn order(args: &Args) -> Outcome<Ordering> {
    let (a, b) = (args.value(0), args.value(1));
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return Ok(a.cmp(b));
    }
    let (Some(left), Some(right)) = (Number::of(a), Number::of(b)) else {
        let name = args.function.name;
        return Err(Fail::new(format!(
            "`{name}` orders two numbers or two texts, not {} and {}",
            describe(a),
            describe(b)
        )));
    };
    left.compare(right)
        .ok_or_else(|| Fail::new(format!("`{}` cannot order NaN", args.function.name)))
}

fn flag(ctx: &mut Ctx<'_>, name: &str, index: usize, argument: &Expr) -> Outcome<bool> {
    match ctx.eval(argument)? {
        Value::Bool(value) => Ok(value),
        other => Err(Fail::argument(
            index,
            format!("`{name}` accepts booleans, not {}", describe(&other)),
        )),
    }
}

fn and(ctx: &mut Ctx<'_>, arguments: &[Expr]) -> Outcome {
    for (index, argument) in arguments.iter().enumerate() {
        if !flag(ctx, "and", index, argument)? {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

fn or(ctx: &mut Ctx<'_>, arguments: &[Expr]) -> Outcome {
    for (index, argument) in arguments.iter().enumerate() {
        if flag(ctx, "or", index, argument)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn if_(ctx: &mut Ctx<'_>, arguments: &[Expr]) -> Outcome {
    let [test, yes, no] = arguments else {
        return Err(Fail::new("`if` needs 3 arguments"));
    };
    if flag(ctx, "if", 0, test)? {
        ctx.eval(yes)
    } else {
        ctx.eval(no)
    }
}
