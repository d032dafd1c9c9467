//! Methods of Python's text and filters of Jinja2 that minijinja does not have, or implements differently.
//! They are pure functions of text. Their callers use [`grows_to`] to limit the size of the results.

use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind};
use windlass_value::{escape_markup, words};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn string<'a>(args: &'a [Value], index: usize, method: &str) -> Result<&'a str, Error> {
    let text = args.get(index).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("`{method}` needs text as argument {}", index + 1)))
}

fn width(args: &[Value], method: &str) -> Result<usize, Error> {
    let width = args.first().map(|width| i64::try_from(width.clone()));
    match width {
        Some(Ok(width)) => Ok(usize::try_from(width).unwrap_or(0)),
        _ => Err(invalid(format!("`{method}` needs a width"))),
    }
}

/// Returns the maximum length in bytes of a method's result. The results of most methods are not longer than the
/// text.
pub(super) fn grows_to(text: &str, name: &str, args: &[Value]) -> usize {
    let first = args.first().and_then(Value::as_usize);
    match name {
        "center" | "ljust" | "rjust" | "zfill" => first.unwrap_or(0).saturating_mul(4),
        "expandtabs" => text.len().saturating_mul(first.unwrap_or(8).max(1)),
        "casefold" | "title" => text.len().saturating_mul(3),
        _ => 0,
    }
    .saturating_add(text.len())
}

/// Calls a method of text, or returns `None` if the method is not defined here.
pub(super) fn method(text: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    let most = match name {
        "swapcase" | "casefold" | "title" | "istitle" => 0,
        "removeprefix" | "removesuffix" | "partition" | "rpartition" => 1,
        "index" | "rindex" | "zfill" | "expandtabs" => 1,
        "rsplit" | "ljust" | "rjust" | "center" => 2,
        _ => return None,
    };
    if args.len() > most {
        return Some(Err(Error::from(ErrorKind::TooManyArguments)));
    }
    Some(match name {
        "swapcase" => Ok(Value::from(
            text.chars().flat_map(swapped).collect::<String>(),
        )),
        "casefold" => Ok(Value::from(text.to_lowercase().replace('ß', "ss"))),
        "title" => Ok(Value::from(titled(text))),
        "istitle" => Ok(Value::from(is_title(text))),
        "removeprefix" => string(args, 0, name)
            .map(|prefix| Value::from(text.strip_prefix(prefix).unwrap_or(text))),
        "removesuffix" => string(args, 0, name)
            .map(|suffix| Value::from(text.strip_suffix(suffix).unwrap_or(text))),
        "partition" => string(args, 0, name).map(|separator| {
            let (before, after) = text.split_once(separator).unwrap_or((text, ""));
            let found = text.contains(separator);
            parts([before, if found { separator } else { "" }, after])
        }),
        "rpartition" => string(args, 0, name).map(|separator| {
            let (before, after) = text.rsplit_once(separator).unwrap_or(("", text));
            let found = text.contains(separator);
            parts([before, if found { separator } else { "" }, after])
        }),
        "rsplit" => from_the_end(text, args),
        "index" => position(text, args, |text, part| text.find(part)),
        "rindex" => position(text, args, |text, part| text.rfind(part)),
        "zfill" => width(args, name).map(|width| Value::from(zfill(text, width))),
        "ljust" => padded(text, args, name, |_| 0),
        "rjust" => padded(text, args, name, |missing| missing),
        // As in Python: if an odd number of fill characters is missing and the width is odd, the extra one is on the
        // left.
        "center" => {
            let odd = width(args, name).unwrap_or(0) % 2;
            padded(text, args, name, move |missing| {
                missing / 2 + (missing & odd & 1)
            })
        }
        "expandtabs" => {
            let size = args.first().and_then(Value::as_usize).unwrap_or(8);
            Ok(Value::from(expanded(text, size)))
        }
        _ => return None,
    })
}

/// The methods of Python that change a list.
const CHANGES: [&str; 8] = words! { append extend insert pop remove clear sort reverse };

/// Calls a method of a list that minijinja lacks.
pub(super) fn list_method(
    list: &Value,
    name: &str,
    args: &[Value],
) -> Option<Result<Value, Error>> {
    if CHANGES.contains(&name) {
        let message = format!(
            "a list has no `{name}`, because no list is changed in place: write `list + [x]`, and \
             in a loop set a member of a `namespace`"
        );
        return Some(Err(invalid(message)));
    }
    let ("index", Some(wanted)) = (name, args.first()) else {
        return None;
    };
    let found = list
        .try_iter()
        .map(|mut items| items.position(|item| item == *wanted));
    Some(match found {
        Ok(Some(index)) => Ok(Value::from(index)),
        Ok(None) => Err(invalid(format!("{wanted} is not in the list"))),
        Err(error) => Err(error),
    })
}

fn swapped(letter: char) -> Vec<char> {
    if letter.is_uppercase() {
        letter.to_lowercase().collect()
    } else {
        letter.to_uppercase().collect()
    }
}

/// Implements `title` of Python's texts: each letter after a character that is not a letter becomes a capital.
fn titled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for letter in text.chars() {
        match in_word {
            true => out.extend(letter.to_lowercase()),
            false => out.extend(letter.to_uppercase()),
        }
        in_word = letter.is_uppercase() || letter.is_lowercase();
    }
    out
}

fn is_title(text: &str) -> bool {
    let mut cased = false;
    let mut previous = false;
    for letter in text.chars() {
        if letter.is_uppercase() && previous || letter.is_lowercase() && !previous {
            return false;
        }
        previous = letter.is_uppercase() || letter.is_lowercase();
        cased |= previous;
    }
    cased
}

fn parts(parts: [&str; 3]) -> Value {
    let parts: Vec<Value> = parts.into_iter().map(Value::from).collect();
    Value::from(Tuple::from(parts))
}

fn from_the_end(text: &str, args: &[Value]) -> Result<Value, Error> {
    let most = args.get(1).and_then(Value::as_usize);
    let most = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let mut pieces: Vec<Value> = match args.first().filter(|given| !given.is_none()) {
        Some(separator) => {
            let separator = separator.as_str().filter(|separator| !separator.is_empty());
            let separator =
                separator.ok_or_else(|| invalid("`rsplit` needs text that is not empty"))?;
            text.rsplitn(most, separator).map(Value::from).collect()
        }
        None => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let cut = words.len().saturating_sub(most.saturating_sub(1));
            let (head, tail) = words.split_at_checked(cut).unwrap_or((&[], &words));
            let head = match (head.first(), head.last()) {
                (Some(first), Some(last)) => {
                    let start = first.as_ptr().addr() - text.as_ptr().addr();
                    let end = last.as_ptr().addr() - text.as_ptr().addr() + last.len();
                    text.get(start..end)
                }
                _ => None,
            };
            tail.iter()
                .rev()
                .copied()
                .chain(head)
                .map(Value::from)
                .collect()
        }
    };
    pieces.reverse();
    Ok(Value::from(pieces))
}

/// Returns the position of a text in another one, in characters. If the text is not found, this is an error.
fn position(
    text: &str,
    args: &[Value],
    find: impl Fn(&str, &str) -> Option<usize>,
) -> Result<Value, Error> {
    let wanted = string(args, 0, "index")?;
    let at = find(text, wanted).and_then(|at| text.get(..at));
    at.map(|before| Value::from(before.chars().count()))
        .ok_or_else(|| invalid(format!("`{wanted}` is not in the text")))
}

fn zfill(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => text.split_at(text.len() - digits.len()),
        None => ("", text),
    };
    format!("{sign}{}{digits}", "0".repeat(missing))
}

/// Pads a text to a width. `left` returns how many of the missing characters are added before the text.
fn padded(
    text: &str,
    args: &[Value],
    name: &str,
    left: impl Fn(usize) -> usize,
) -> Result<Value, Error> {
    let width = width(args, name)?;
    let fill = match args.get(1) {
        None => " ",
        Some(fill) => fill
            .as_str()
            .filter(|fill| fill.chars().count() == 1)
            .ok_or_else(|| invalid(format!("`{name}` fills with one character")))?,
    };
    let missing = width.saturating_sub(text.chars().count());
    let left = left(missing).min(missing);
    let (before, after) = (fill.repeat(left), fill.repeat(missing - left));
    Ok(Value::from(format!("{before}{text}{after}")))
}

fn expanded(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for letter in text.chars() {
        match letter {
            '\t' if size == 0 => {}
            '\t' => {
                let spaces = size - column % size;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            other => {
                out.push(other);
                column += 1;
            }
        }
    }
    out
}

// ── filters ─────────────────────────────────────────────────────────────────────────────────

/// Implements `truncate(length=255, killwords=false, end='...', leeway=5)` of Jinja2.
pub(super) fn truncate(text: &str, length: usize, kill: bool, end: &str, leeway: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= length.saturating_add(leeway) {
        return text.to_owned();
    }
    let room = length.saturating_sub(end.chars().count());
    let cut: String = letters.iter().take(room).collect();
    let cut = match cut.rsplit_once(' ') {
        Some((words, _)) if !kill => words.to_owned(),
        _ => cut,
    };
    cut + end
}

/// Replaces each `*` in a pattern of `%` by the number that it takes from the arguments. Returns `None` if a number is
/// missing.
pub(super) fn with_widths(pattern: &str, args: &mut Vec<Value>) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = std::mem::take(args).into_iter();
    let mut is_directive = false;
    for letter in pattern.chars() {
        match (is_directive, letter) {
            (true, '*') => {
                let number = i64::try_from(rest.next()?).ok()?;
                out.push_str(&number.to_string());
                continue;
            }
            (true, '0'..='9' | '.' | '-' | '+' | ' ' | '#' | 'h' | 'l' | 'L') => {}
            (true, _) => {
                is_directive = false;
                if letter != '%' {
                    args.extend(rest.next());
                }
            }
            (false, _) => is_directive = letter == '%',
        }
        out.push(letter);
    }
    args.extend(rest);
    Some(out)
}

/// Maximum number of digits after the point. minijinja would panic for more.
const MAX_PRECISION: usize = 65_534;

/// Checks the precision of the directives in a pattern. They begin with `mark`, which is `%` or `{`.
pub(super) fn check_precision(pattern: &str, mark: char) -> Result<(), Error> {
    let literal = format!("{mark}{mark}");
    let pieces = pattern
        .split(&literal)
        .flat_map(|part| part.split(mark).skip(1));
    for piece in pieces {
        let directive = match mark {
            '{' => piece.split('}').next().unwrap_or_default(),
            _ => {
                let (_, directive) = piece.split_once(')').unwrap_or_default();
                let directive = if piece.starts_with('(') {
                    directive
                } else {
                    piece
                };
                let rest = directive.trim_start_matches(|letter: char| {
                    letter.is_ascii_digit() || "#-+ .".contains(letter)
                });
                directive.strip_suffix(rest).unwrap_or_default()
            }
        };
        let (_, precision) = directive.rsplit_once('.').unwrap_or_default();
        let precision = precision.trim_end_matches(char::is_alphabetic);
        if precision
            .parse()
            .is_ok_and(|digits: usize| digits > MAX_PRECISION)
        {
            let message = format!("a text has at most {MAX_PRECISION} digits after the point");
            return Err(invalid(message));
        }
    }
    Ok(())
}

/// Checks that a pattern of `%` uses all arguments. As in Python, it may ignore a single map or list.
pub(super) fn check_count(pattern: &str, args: &[Value]) -> Result<(), Error> {
    let directives = pattern.replace("%%", "").matches('%').count();
    let is_ignored = match args {
        [only] => matches!(only.kind(), ValueKind::Map | ValueKind::Seq),
        _ => false,
    };
    match args.len() > directives && !is_ignored {
        true => Err(invalid("not all arguments of the format are used")),
        false => Ok(()),
    }
}

/// Implements `indent` of Jinja2.
pub(super) fn indent(text: &str, with: &str, first: bool, blank: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let indented = match index {
            0 => first,
            _ => blank || !line.is_empty(),
        };
        out.push_str(if index > 0 { "\n" } else { "" });
        out.push_str(if indented { with } else { "" });
        out.push_str(line);
    }
    out
}

/// Replaces `&`, `<`, `>` and quotes with entities, as Jinja2 does.
pub(super) fn escape(text: &str) -> String {
    escape_markup(text, |out, letter| match letter {
        '\'' => out.push_str("&#39;"),
        '"' => out.push_str("&#34;"),
        other => out.push(other),
    })
}

/// Returns the whole number in a text, as `int` of Jinja2 does.
/// A fraction is dropped. The base 0 is the one of the text's prefix. Returns `None` for text that is not a number.
#[allow(clippy::cast_possible_truncation)] // Within the bounds that are checked.
pub(super) fn int(text: &str, base: u32) -> Option<i128> {
    let unsigned = text.trim().trim_start_matches(['+', '-']);
    let base = match unsigned.get(..2).filter(|_| base == 0) {
        Some("0b" | "0B") => 2,
        Some("0o" | "0O") => 8,
        Some("0x" | "0X") => 16,
        _ if base == 0 => 10,
        _ => base.clamp(2, 36),
    };
    let plain = numeral(text, base)?;
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let lower = digits.to_ascii_lowercase();
    let bare = lower.strip_prefix(prefix).unwrap_or(&lower);
    if !bare.starts_with(['+', '-'])
        && let Ok(number) = i128::from_str_radix(bare, base)
    {
        return Some(if negative { -number } else { number });
    }
    let float = float(text)?;
    (float.abs() < 1e38).then_some(float.trunc() as i128)
}

/// Returns the number in a text, as `float` of Python does.
pub(super) fn float(text: &str) -> Option<f64> {
    numeral(text, 10)?.parse().ok()
}

/// Returns a text without what Python ignores in a number: white space around it, and underscores between digits.
/// Returns `None` if an underscore is elsewhere.
fn numeral(text: &str, base: u32) -> Option<String> {
    let text = text.trim();
    let pieces: Vec<&str> = text.split('_').collect();
    let joins = pieces.windows(2).all(|pair| {
        let [before, after] = pair else { return true };
        before.ends_with(|letter: char| letter.is_digit(base))
            && after.starts_with(|letter: char| letter.is_digit(base))
    });
    joins.then(|| pieces.concat())
}
