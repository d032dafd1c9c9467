//! Text: chunk concat endsWith formatNumber guid indexOf isFloat isInt lastIndexOf nthIndexOf replace slice split
//! startsWith substring toLower toUpper trim trimByteOrderMark utf8Length utf16Length. As in the reference, positions
//! are in UTF-16 units.

use super::date::culture;
use super::{ANY, Args, Function, eager};
use crate::Value;
use crate::wdl::culture::Culture;
use crate::wdl::eval::{Ctx, Fail, Outcome};
use crate::wdl::text::{Units, push_text, units};
use crate::wdl::{number_format, number_parse};

pub(super) const TABLE: &[Function] = &[
    eager("chunk", 2, 2, chunk),
    eager("concat", 0, ANY, concat),
    eager("endsWith", 2, 2, |_, args| {
        let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
        Ok(text.ends_with(&wanted).into())
    }),
    eager("indexOf", 2, 2, |_, args| {
        let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
        Ok(position(&text, text.find(&wanted)))
    }),
    eager("formatNumber", 2, 3, |ctx, args| {
        let (number, pattern) = (args.number(0)?, args.text(1)?);
        let culture = culture(args, 2)?;
        ctx.charge_work(pattern.len())?;
        match number_format::format(number, pattern, culture) {
            Ok(text) => ctx.text(text),
            Err(why) => Err(Fail::argument(1, format!("`formatNumber`: {why}"))),
        }
    }),
    eager("guid", 0, 1, guid),
    eager("isFloat", 1, 2, |_, args| {
        // Without a culture, `isFloat` uses the invariant one, unlike `float`.
        let culture = match args.optional_text(1)? {
            None => Culture::INVARIANT,
            Some(_) => culture(args, 1)?,
        };
        Ok(number_parse::float(args.text(0)?, culture).is_some().into())
    }),
    eager("isInt", 1, 1, |_, args| {
        Ok(number_parse::int(args.text(0)?).is_some().into())
    }),
    eager("lastIndexOf", 2, 2, |_, args| {
        let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
        // By the reference, an empty part is at the length minus one; in an empty text, at 0.
        match (text.is_empty(), wanted.is_empty()) {
            (true, true) => Ok(Value::Int(0)),
            (false, true) => Ok(size(units(&text) - 1)),
            _ => Ok(position(&text, text.rfind(&wanted))),
        }
    }),
    eager("nthIndexOf", 3, 3, nth_index_of),
    eager("replace", 3, 3, replace),
    eager("slice", 2, 3, slice),
    eager("split", 2, 2, split),
    eager("startsWith", 2, 2, |_, args| {
        let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
        Ok(text.starts_with(&wanted).into())
    }),
    eager("substring", 2, 3, substring),
    eager("toLower", 1, 1, |ctx, args| {
        let text = args.text(0)?;
        ctx.charge_work(text.len() / 64)?;
        ctx.text(
            text.chars()
                .map(|one| one_letter(one, one.to_lowercase()))
                .collect::<String>(),
        )
    }),
    eager("toUpper", 1, 1, |ctx, args| {
        let text = args.text(0)?;
        ctx.charge_work(text.len() / 64)?;
        ctx.text(
            text.chars()
                .map(|one| one_letter(one, one.to_uppercase()))
                .collect::<String>(),
        )
    }),
    eager("trim", 1, 1, |ctx, args| {
        let text = args.text(0)?.trim();
        ctx.text(text)
    }),
    eager("trimByteOrderMark", 1, 1, |ctx, args| {
        let text = args.text(0)?;
        ctx.text(text.strip_prefix('\u{feff}').unwrap_or(text))
    }),
    eager("utf8Length", 1, 1, |_, args| Ok(size(args.text(0)?.len()))),
    eager("utf16Length", 1, 1, |_, args| {
        Ok(size(units(args.text(0)?)))
    }),
];

pub(super) fn size(size: usize) -> Value {
    Value::Int(i64::try_from(size).unwrap_or(i64::MAX))
}

/// Returns an argument in lower case. By the reference, indexOf, lastIndexOf, startsWith and endsWith ignore the case.
fn folded(args: &Args, index: usize) -> Outcome<String> {
    let text = args.text(index)?;
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    // Each letter is converted alone, so that positions are the same as in the original text.
    Ok(text
        .chars()
        .map(|letter| {
            let lower = one_letter(letter, letter.to_lowercase());
            match lower.len_utf16() == letter.len_utf16() {
                true => lower,
                false => letter,
            }
        })
        .collect())
}

/// Converts a byte position to UTF-16 units; `None` is -1.
fn position(text: &str, found: Option<usize>) -> Value {
    match found.and_then(|byte| text.get(..byte)) {
        Some(before) => size(units(before)),
        None => Value::Int(-1),
    }
}

/// Returns a random UUID, version 4, in a format of .NET.
fn guid(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let mut bytes = [0_u8; 16];
    let (high, low) = (ctx.env.random(), ctx.env.random());
    for (slot, byte) in bytes
        .iter_mut()
        .zip(high.to_be_bytes().into_iter().chain(low.to_be_bytes()))
    {
        *slot = byte;
    }
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    let dashed = id.hyphenated();
    let text = match args.optional_text(0)?.unwrap_or("D") {
        "D" | "d" | "" => dashed.to_string(),
        "N" | "n" => id.simple().to_string(),
        "B" | "b" => format!("{{{dashed}}}"),
        "P" | "p" => format!("({dashed})"),
        "X" | "x" => {
            let (a, b, c, rest) = id.as_fields();
            let rest: Vec<String> = rest.iter().map(|byte| format!("0x{byte:02x}")).collect();
            format!("{{0x{a:08x},0x{b:04x},0x{c:04x},{{{}}}}}", rest.join(","))
        }
        _ => return Err(args.wrong(0, "one of 'N', 'D', 'B', 'P' and 'X'")),
    };
    ctx.text(text)
}

/// Splits a text or an array into pieces of a given length. The last one may be shorter.
fn chunk(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let length = args.count(1)?;
    if length == 0 {
        return Err(args.wrong(1, "a length of at least 1"));
    }
    if let Value::Array(items) = args.value(0) {
        ctx.charge_elements(items.len().saturating_mul(2))?;
        let chunks = items
            .chunks(length)
            .map(|chunk| Value::array(chunk.to_vec()));
        return Ok(Value::array(chunks.collect()));
    }
    let Value::String(text) = args.value(0) else {
        return Err(args.wrong(0, "text or an array"));
    };
    let text = Units::of(text);
    let total = text.len();
    ctx.charge_elements(total.div_ceil(length))?;
    ctx.charge_output(total)?;
    let pieces = (0..total).step_by(length).filter_map(|start| {
        let end = start.saturating_add(length).min(total);
        text.slice(start, end).map(Value::text)
    });
    Ok(Value::array(pieces.collect()))
}

fn concat(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    for value in &args.values {
        ctx.charge_rendering(value)?;
    }
    let mut out = String::new();
    for value in &args.values {
        push_text(&mut out, value);
    }
    Ok(Value::text(out))
}

/// Returns the n-th occurrence from the start, or from the end if n is negative; -1 if it does not exist.
fn nth_index_of(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
    let nth = args.int(2)?;
    ctx.charge_work(text.len() / 16)?;
    let index = usize::try_from(nth.unsigned_abs()).unwrap_or(usize::MAX);
    let found = match index.checked_sub(1) {
        None => return Err(args.wrong(2, "an occurrence from 1, or from -1 for the last")),
        Some(skip) if nth > 0 => text.match_indices(&wanted).nth(skip),
        Some(skip) => text.rmatch_indices(&wanted).nth(skip),
    };
    Ok(position(&text, found.map(|(at, _)| at)))
}

fn replace(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (text, old, new) = (args.text(0)?, args.text(1)?, args.text(2)?);
    if old.is_empty() {
        return Err(args.wrong(1, "text that is not empty"));
    }
    ctx.charge_work(text.len() / 16)?;
    let count = text.matches(old).count();
    ctx.charge_output(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::text(text.replace(old, new)))
}

/// Returns the text from a start to before an end. Negative positions count from the end, and positions out of range
/// are clamped.
fn slice(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let text = Units::of(args.text(0)?);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let clamp = |index: i64| {
        let from_start = if index < 0 {
            index.saturating_add(length)
        } else {
            index
        };
        usize::try_from(from_start.clamp(0, length)).unwrap_or(0)
    };
    let start = clamp(args.int(1)?);
    let end = if args.len() > 2 {
        clamp(args.int(2)?)
    } else {
        text.len()
    };
    ctx.text(text.slice(start, end.max(start)).unwrap_or_default())
}

fn split(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (text, delimiter) = (args.text(0)?, args.text(1)?);
    ctx.charge_work(text.len() / 16)?;
    if delimiter.is_empty() {
        return Ok(Value::array(vec![Value::text(text)]));
    }
    ctx.charge_elements(text.matches(delimiter).count() + 1)?;
    ctx.charge_output(text.len())?;
    Ok(Value::array(
        text.split(delimiter).map(Value::text).collect(),
    ))
}

/// Returns a letter in the other case. If that would be several letters, returns the letter itself, because .NET maps
/// one letter to one.
fn one_letter(letter: char, mut other: impl Iterator<Item = char>) -> char {
    match (other.next(), other.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn substring(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let text = Units::of(args.text(0)?);
    let start = args.count(1)?;
    let total = text.len();
    if start > total {
        return Err(Fail::argument(
            1,
            format!("`substring` starts at {start}, but the text has {total} characters"),
        ));
    }
    let length = if args.len() > 2 {
        args.count(2)?
    } else {
        total - start
    };
    match start
        .checked_add(length)
        .and_then(|end| text.slice(start, end))
    {
        Some(part) => ctx.text(part),
        None => Err(Fail::argument(
            2,
            format!("`substring` reads {length} characters from {start}, but the text has {total}"),
        )),
    }
}
