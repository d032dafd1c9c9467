//! Maths: add div max min mod mul rand range sub.

use super::{ANY, Args, Function, eager};
use crate::Value;
use crate::wdl::eval::{Ctx, Fail, Outcome};
use crate::wdl::number::{ArithmeticError, Number, Op};
use std::cmp::Ordering;

pub(super) const TABLE: &[Function] = &[
    eager("add", 2, 2, |_, args| compute(args, Op::Add)),
    eager("div", 2, 2, |_, args| compute(args, Op::Div)),
    eager("max", 1, ANY, |ctx, args| {
        extreme(ctx, args, Ordering::Greater)
    }),
    eager("min", 1, ANY, |ctx, args| {
        extreme(ctx, args, Ordering::Less)
    }),
    eager("mod", 2, 2, |_, args| compute(args, Op::Rem)),
    eager("mul", 2, 2, |_, args| compute(args, Op::Mul)),
    eager("rand", 2, 2, rand),
    eager("range", 2, 2, range),
    eager("sub", 2, 2, |_, args| compute(args, Op::Sub)),
];

/// The maximum number of elements, from the reference.
const MAX_RANGE: usize = 100_000;

fn compute(args: &Args, op: Op) -> Outcome {
    let (a, b) = (args.number(0)?, args.number(1)?);
    let name = args.function.name;
    a.compute(op, b)
        .map(Value::from)
        .map_err(|trouble| match trouble {
            ArithmeticError::DivisionByZero => {
                Fail::argument(1, format!("`{name}` divides by zero"))
            }
            ArithmeticError::Overflow => {
                Fail::new(format!("the result of `{name}` does not fit its type"))
            }
        })
}

/// Returns the greatest or least of the arguments, or of the elements of one array.
fn extreme(ctx: &mut Ctx<'_>, args: &Args, wanted: Ordering) -> Outcome {
    let values: &[Value] = match args.values.as_slice() {
        [Value::Array(items)] => items,
        values => values,
    };
    ctx.charge_work(values.len())?;
    let name = args.function.name;
    let mut best: Option<Number> = None;
    for (index, value) in values.iter().enumerate() {
        let Some(number) = Number::of(value) else {
            let index = if args.len() == 1 { 0 } else { index };
            return Err(args.wrong(index, "numbers or an array of numbers"));
        };
        let better = best.is_none_or(|best| number.compare(best) == Some(wanted));
        if better {
            best = Some(number);
        }
    }
    // If one number is a decimal, the result is a decimal.
    let exact = values
        .iter()
        .any(|value| matches!(value, Value::Decimal(_)));
    let best = match best {
        Some(number) if exact => number.to_decimal().map(Number::Decimal).or(best),
        _ => best,
    };
    best.map(Value::from)
        .ok_or_else(|| Fail::argument(0, format!("`{name}` needs at least one number")))
}

/// Returns a random number from the first argument on, below the second.
fn rand(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (low, high) = (args.int(0)?, args.int(1)?);
    if low >= high {
        return Err(Fail::argument(
            1,
            format!("`rand` needs a maximum above its minimum {low}, not {high}"),
        ));
    }
    let width = u128::from(high.abs_diff(low));
    // The high half of a product spreads the generator's 64 bits evenly without division.
    let offset = (u128::from(ctx.env.random()) * width) >> 64;
    let value = i128::from(low) + i128::try_from(offset).unwrap_or(0);
    Ok(Value::Int(i64::try_from(value).unwrap_or(low)))
}

fn range(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (start, count) = (args.int(0)?, args.count(1)?);
    if count > MAX_RANGE {
        let message = format!("`range` returns at most {MAX_RANGE} numbers, not {count}");
        return Err(Fail::argument(1, message));
    }
    ctx.charge_elements(count)?;
    let end = i64::try_from(count)
        .ok()
        .and_then(|count| start.checked_add(count));
    let Some(end) = end else {
        return Err(Fail::new("the result of `range` does not fit 64 bits"));
    };
    Ok(Value::array((start..end).map(Value::Int).collect()))
}
