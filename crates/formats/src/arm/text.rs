//! Functions of deployment expressions that make text.

use super::functions::as_text;
use super::time::formatted;
use windlass_expression::Value;

/// Joins texts, or arrays. What is not an array is left out of joined arrays.
pub(super) fn concat(arguments: &[Value]) -> Result<Value, String> {
    if arguments
        .iter()
        .any(|value| matches!(value, Value::Array(_)))
    {
        let items = arguments.iter().filter_map(Value::as_array).flatten();
        return Ok(Value::array(items.cloned().collect()));
    }
    Ok(Value::text(
        arguments.iter().map(as_text).collect::<String>(),
    ))
}

/// Refuses arguments of `concat` that are neither all arrays nor all simple values.
pub(super) fn check_concat(arguments: &[Value]) -> Result<(), String> {
    let lists = matches!(arguments.first(), Some(Value::Array(_)));
    let wanted = match lists {
        true => "only arrays after an array",
        false => "text, or only arrays",
    };
    let fits = |value: &&Value| match value {
        Value::Array(_) => lists,
        Value::Object(_) => false,
        _ => !lists,
    };
    match arguments.iter().find(|value| !fits(value)) {
        Some(other) => Err(format!("`concat` needs {wanted}, and has {}", other.kind())),
        None => Ok(()),
    }
}

/// Implements `format`: replaces `{0}`, `{1,8:N2}` and `{{` in the first argument.
pub(super) fn format(arguments: &[Value]) -> Result<Value, String> {
    let template = arguments.first().map(as_text).unwrap_or_default();
    let mut out = String::new();
    let mut rest = template.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let brace = from.get(..1).unwrap_or_default();
        let after = from.get(1..).unwrap_or_default();
        if let Some(doubled) = after.strip_prefix(brace) {
            out.push_str(brace);
            rest = doubled;
        } else if let Some((place, after)) = after.split_once('}').filter(|_| brace == "{") {
            out.push_str(&format_argument(place, arguments)?);
            rest = after;
        } else {
            return Err(format!("`format` has a single `{brace}`: write it twice"));
        }
    }
    out.push_str(rest);
    Ok(Value::text(out))
}

/// Returns the text that replaces the placeholder `INDEX[,WIDTH][:FORM]`.
fn format_argument(place: &str, arguments: &[Value]) -> Result<String, String> {
    let (place, form) = place
        .split_once(':')
        .map_or((place, ""), |(place, form)| (place, form));
    let (index, width) = place.split_once(',').unwrap_or((place, "0"));
    let index = index.trim().parse::<usize>();
    let value = index.ok().and_then(|index| arguments.get(index + 1));
    let value = value.ok_or_else(|| format!("`format` has no argument for `{{{place}}}`"))?;
    let width = width.trim().parse::<i16>();
    let width = width.map_err(|_| format!("`format`: `{place}` has no width"))?;
    let text = match value {
        _ if form.is_empty() => as_text(value),
        Value::Int(_) | Value::Float(_) => {
            as_text(&formatted("formatNumber", value.clone(), form)?)
        }
        other => as_text(other),
    };
    let missing = usize::from(width.unsigned_abs()).saturating_sub(text.chars().count());
    let spaces = " ".repeat(missing);
    Ok(if width < 0 {
        text + &spaces
    } else {
        spaces + &text
    })
}

/// Implements `uri`: resolves a relative address.
pub(super) fn uri(arguments: &[Value]) -> Result<Value, String> {
    let [base, relative] =
        [0, 1].map(|index| arguments.get(index).map(as_text).unwrap_or_default());
    let resolved = url::Url::parse(&base).and_then(|base| base.join(&relative));
    Ok(Value::text(resolved.map_or_else(
        |_| format!("{base}{relative}"),
        |url| url.to_string(),
    )))
}

/// Implements `padLeft`.
pub(super) fn pad_left(arguments: &[Value]) -> Result<Value, String> {
    const MAX_WIDTH: i64 = 10_000;
    let text = arguments.first().map(as_text).unwrap_or_default();
    let width = arguments
        .get(1)
        .and_then(Value::as_int)
        .unwrap_or(0)
        .min(MAX_WIDTH);
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    let with = arguments
        .get(2)
        .and_then(|with| as_text(with).chars().next());
    let padding = std::iter::repeat_n(with.unwrap_or(' '), missing);
    Ok(Value::text(padding.chain(text.chars()).collect::<String>()))
}

/// Refuses a width or a filling of `padLeft` of the wrong type.
pub(super) fn check_pad_left(arguments: &[Value]) -> Result<(), String> {
    let refuse = |wanted: &str, has: &str| Err(format!("`padLeft` needs {wanted}, and has {has}"));
    match arguments {
        [_, width, ..] if width.as_int().is_none() => {
            refuse("a whole number as the length", width.kind())
        }
        [_, _, with] if with.as_str().is_none_or(|with| with.chars().count() != 1) => {
            refuse("one character to fill with", &with.to_json())
        }
        _ => Ok(()),
    }
}
