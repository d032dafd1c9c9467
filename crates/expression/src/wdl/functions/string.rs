//! Text: chunk concat endsWith formatNumber guid indexOf isFloat isInt lastIndexOf nthIndexOf
//! replace slice split startsWith substring toLower toUpper trim trimByteOrderMark utf8Length
//! utf16Length. Positions count UTF-16 units, as the reference does.

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
        ctx.work(pattern.len())?;
        match number_format::format(number, pattern, culture) {
            Ok(text) => ctx.text(text),
            Err(why) => Err(Fail::argument(1, format!("`formatNumber`: {why}"))),
        }
    }),
    eager("guid", 0, 1, guid),
    eager("isFloat", 1, 2, |_, args| {
        // Without a culture it asks by the invariant one, unlike `float`.
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
        // The reference: of an empty part, the length less one; of two empty texts, 0.
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
        ctx.work(text.len() / 64)?;
        ctx.text(
            text.chars()
                .map(|one| one_letter(one, one.to_lowercase()))
                .collect::<String>(),
        )
    }),
    eager("toUpper", 1, 1, |ctx, args| {
        let text = args.text(0)?;
        ctx.work(text.len() / 64)?;
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

/// Searches are without case, as the reference says of indexOf, lastIndexOf, startsWith and
/// endsWith.
fn folded(args: &Args, index: usize) -> Outcome<String> {
    let text = args.text(index)?;
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    // Letter by letter, so that positions stay those of the text itself.
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

/// A byte position as a count of UTF-16 units; -1 for none.
fn position(text: &str, found: Option<usize>) -> Value {
    match found.and_then(|byte| text.get(..byte)) {
        Some(before) => size(units(before)),
        None => Value::Int(-1),
    }
}

/// A random one, version 4, as .NET formats it.
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

/// Text or an array in pieces of a given length; the last may be shorter.
fn chunk(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let length = args.count(1)?;
    if length == 0 {
        return Err(args.wrong(1, "a length of at least 1"));
    }
    if let Value::Array(items) = args.value(0) {
        ctx.elements(items.len().saturating_mul(2))?;
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
    ctx.elements(total.div_ceil(length))?;
    ctx.produce(total)?;
    let pieces = (0..total).step_by(length).filter_map(|start| {
        let end = start.saturating_add(length).min(total);
        text.slice(start, end).map(Value::text)
    });
    Ok(Value::array(pieces.collect()))
}

fn concat(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    for value in &args.values {
        ctx.render(value)?;
    }
    let mut out = String::new();
    for value in &args.values {
        push_text(&mut out, value);
    }
    Ok(Value::text(out))
}

/// The n-th occurrence from the start, or with a negative n from the end; -1 for none.
fn nth_index_of(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let (text, wanted) = (folded(args, 0)?, folded(args, 1)?);
    let nth = args.int(2)?;
    ctx.work(text.len() / 16)?;
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
    ctx.work(text.len() / 16)?;
    let count = text.matches(old).count();
    ctx.produce(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::text(text.replace(old, new)))
}

/// From a start to before an end; negative ones count from the end, and nothing is out of range.
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
    ctx.work(text.len() / 16)?;
    if delimiter.is_empty() {
        return Ok(Value::array(vec![Value::text(text)]));
    }
    ctx.elements(text.matches(delimiter).count() + 1)?;
    ctx.produce(text.len())?;
    Ok(Value::array(
        text.split(delimiter).map(Value::text).collect(),
    ))
}

/// A letter in the other case, or itself where that is several letters: .NET maps one to one.
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
