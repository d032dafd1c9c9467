//! Converts the examples in hints to the form of a Logic Apps definition.
//! In the code, examples have the short form of YAML, which Loom files also have.

/// Converts the example in a hint to JSON, in Azure's words: `for example on: "@x"` becomes
/// `for example "expression": "@x"`.
pub(super) fn as_json(hint: &str) -> String {
    const MARK: &str = "for example ";
    let Some((before, example)) = hint.split_once(MARK) else {
        return hint.to_owned();
    };
    let is_member = example
        .split_once(": ")
        .is_some_and(|(name, _)| name.chars().all(is_word));
    if !is_member && !example.starts_with('{') {
        return hint.to_owned();
    }
    format!("{before}{MARK}{}", converted(example))
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.$/:…".contains(letter)
}

/// Converts a text up to the end of the example. The text after the example stays unchanged.
fn converted(example: &str) -> String {
    let mut out = String::new();
    let mut rest = example;
    let mut depth = 0_usize;
    let mut key = "";
    let mut has_value = false;
    while let Some(first) = rest.chars().next() {
        let ended = depth == 0 && has_value;
        if ended {
            break;
        }
        let length = match first {
            '"' => quoted(rest),
            letter if is_word(letter) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            letter => letter.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = after;
        if let Some(name) = token.strip_suffix(':').filter(|_| after.starts_with(' ')) {
            key = name;
            out.push_str(&format!("\"{}\":", word(name)));
            continue;
        }
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        has_value = first != ' ';
        match is_word(first) && !token.starts_with('…') {
            true => out.push_str(&value(key, token)),
            false => out.push_str(token),
        }
    }
    out + rest
}

/// Returns the length in bytes of the quoted text at the start, including its quotes.
fn quoted(text: &str) -> usize {
    let end = text.get(1..).and_then(|inside| inside.find('"'));
    end.map_or(text.len(), |end| end + 2)
}

/// Returns the word of Logic Apps for a key.
fn word(key: &str) -> &str {
    match key {
        "condition" | "on" => "expression",
        "retry" => "retryPolicy",
        other => other,
    }
}

fn value(key: &str, token: &str) -> String {
    let is_literal = matches!(token, "true" | "false" | "null");
    if is_literal || token.parse::<f64>().is_ok() {
        return token.to_owned();
    }
    let mut letters = token.chars();
    match letters.next().filter(|_| key == "type") {
        Some(first) => format!("\"{}{}\"", first.to_uppercase(), letters.as_str()),
        None => format!("\"{token}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::as_json;

    #[test]
    fn an_example_becomes_json() {
        for (hint, expected) in [
            (
                "for example actions: { check: { type: http, inputs: { uri: \"…\" } } }",
                "for example \"actions\": { \"check\": { \"type\": \"Http\", \"inputs\": { \"uri\": \"…\" } } }",
            ),
            (
                "the items: for example foreach: \"@body('fetch').items\"",
                "the items: for example \"foreach\": \"@body('fetch').items\"",
            ),
            (
                "for example { count: 5, unit: second }, or PT5S",
                "for example { \"count\": 5, \"unit\": \"second\" }, or PT5S",
            ),
            (
                "for example cases: { done: { actions: { … } } }",
                "for example \"cases\": { \"done\": { \"actions\": { … } } }",
            ),
            (
                "for example runAfter: { check: [Succeeded] }",
                "for example \"runAfter\": { \"check\": [\"Succeeded\"] }",
            ),
            ("for example delay: 10s", "for example \"delay\": \"10s\""),
            (
                "for example https://example.org/status, or an expression",
                "",
            ),
            ("an IANA name, for example Europe/Berlin or UTC", ""),
            ("for example \"@equals(1, 2)\"", ""),
        ] {
            let expected = if expected.is_empty() { hint } else { expected };
            assert_eq!(as_json(hint), expected);
        }
    }
}
