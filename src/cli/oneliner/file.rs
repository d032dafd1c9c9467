//! The workflow files of `poll` and `try`, and what the one-line commands have in common. These files use nothing
//! that a file of a user cannot use.

use super::operation::STATUS;
use crate::cli::args::{Every, Lasting, PollArgs, RequestArgs, TryArgs};
use serde_json::{Map, Value, json};
use windlass_engine::{Bundle, Diagnostics, TerminalText, format_duration, inexact_json};

/// The outputs of the action `look` that the expressions of a line can read.
pub(super) const OUTPUTS: [&str; 6] = [
    "body",
    "statusCode",
    "headers",
    "exitCode",
    "stdout",
    "stderr",
];

/// The path of these outputs in the file.
pub(super) const LOOK: &str = "actions.look.outputs";

/// Returns whether a one-line command generated this name of a workflow.
pub(in crate::cli) fn is_line(workflow: &str) -> bool {
    let commands = ["poll-", "try-", "paginate-", "operation-", "events-"];
    commands.iter().any(|command| workflow.starts_with(command))
}

/// Returns a message with the expressions as the line has them: `body.done`, not `actions.look.outputs.body.done`. A
/// message about another run is unchanged.
pub(in crate::cli) fn with_line_expressions(is_line: bool, message: &str) -> String {
    if !is_line {
        return message.to_owned();
    }
    message
        .replace(&format!("{LOOK}."), "")
        .replace(&format!("{STATUS}."), "")
        .replace("`rows` must be a list, not ", ITEMS_MUST_BE_A_LIST)
}

/// Names `--items` instead of `rows`, which is its name in the action that stores a page.
const ITEMS_MUST_BE_A_LIST: &str =
    "`--items` must be the list of rows, for example body.items, and not a value of the type ";

/// Renders diagnostics of the file at their places in the expressions of the line. `given` has the flags with their
/// expressions. A diagnostic at another place is shown in the file.
pub(super) fn render(
    diagnostics: &Diagnostics,
    bundle: &Bundle,
    given: &[(&str, &str)],
    colour: bool,
) -> TerminalText {
    let mut text = TerminalText::default();
    // An expression of the line can be in several places of the file, but its diagnostics are shown once.
    let mut shown = Vec::new();
    for one in diagnostics.sorted() {
        let file = bundle.file(one.span.file).map_or("", |file| &file.text);
        let row = usize::try_from(one.span.line).unwrap_or(usize::MAX);
        let row = file.lines().nth(row.saturating_sub(1)).unwrap_or_default();
        let place = given.iter().find_map(|(flag, expression)| {
            Some((flag, expression, column(row, expression, one.span.column)?))
        });
        let mut single = Diagnostics::default();
        let mut one = one.clone();
        if let Some((flag, expression, column)) = place {
            one.message = with_line_expressions(true, &one.message);
            // The sign that closes the expression is generated and not a part of the line.
            if !expression.contains([')', '}']) {
                for closing in ["unexpected `)`", "unexpected `}}`"] {
                    one.message = one.message.replace(closing, "unexpected end");
                }
            }
            // The hint has names for a file, which the line cannot use.
            one.hint = one.hint.filter(|_| one.code != "unknown-name");
            (one.span.file, one.span.line, one.span.column) = (0, 1, column);
            let place = (flag, column, one.message.clone());
            if shown.contains(&place) {
                continue;
            }
            shown.push(place);
            single.push(one);
            text.push(&single.render(&Bundle::single(*flag, *expression), colour));
        } else {
            single.push(one);
            text.push(&single.render(bundle, colour));
        }
    }
    text
}

/// Converts a column of a file's row to a column of the line's expression in that row, both from 1.
fn column(row: &str, expression: &str, column: u32) -> Option<u32> {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let generated = escaped(&to_file_expression(expression));
    let start = row.split_once(&generated)?.0.chars().count();
    let offset = usize::try_from(column).ok()?.checked_sub(start + 1)?;
    let before: String = generated.chars().take(offset).collect();
    let before = before.replace("\\\"", "\"").replace("\\\\", "\\");
    let before = before.replace(&format!("{LOOK}."), "");
    u32::try_from(before.chars().count() + 1).ok()
}

/// Failures after which the polled resource may exist or be ready later. A refusal is not one of them.
const RETRYABLE: [&str; 5] = ["transient", "404", "409", "425", "expect"];

/// Every failure of a request or a command.
const ANY: [&str; 6] = ["timeout", "connection", "4xx", "5xx", "shell", "expect"];

pub(super) fn poll(args: &PollArgs, times: u64) -> Result<Value, String> {
    let until = args.until.as_deref().map(to_file_expression);
    Ok(match (&args.url, until) {
        (None, until) => {
            let until = until.unwrap_or_else(|| format!("{LOOK}.exitCode == 0"));
            let (look, delay) = (command(&args.command, false), delay(&args.every));
            loop_node(args, times, look, delay, &until, "stdout")
        }
        // Every failure of the request is retried.
        (Some(url), None) => {
            let look = request(url, &args.request)?;
            attempts(look, &args.every, times, Some(args.timeout), "body")
        }
        (Some(url), Some(until)) => {
            let mut look = request(url, &args.request)?;
            look.insert("retry".to_owned(), policy(&args.every, times, &RETRYABLE));
            // An expression that reads the status accepts every status.
            if until.contains(&format!("{LOOK}.statusCode"))
                && let Some(inputs) = look.get_mut("inputs").and_then(Value::as_object_mut)
            {
                inputs.insert("check".to_owned(), false.into());
            }
            if args.if_changed
                && let Some(inputs) = look.get_mut("inputs").and_then(Value::as_object_mut)
            {
                inputs.insert("ifChanged".to_owned(), true.into());
            }
            // If the answer is not JSON, for example the page of a proxy, the request has failed.
            if reads_members(&until) {
                look.insert("expect".to_owned(), "json".into());
            }
            loop_node(args, times, look, server_delay(&args.every), &until, "body")
        }
    })
}

/// Returns whether an expression reads members of the body.
pub(super) fn reads_members(expression: &str) -> bool {
    let body = format!("{LOOK}.body");
    let mut after = expression.split(&body).skip(1);
    // A call of a text's method, such as `strip()`, does not read a member.
    let calls = |after: &str| {
        let name = after.trim_start_matches('.');
        let rest = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        rest.starts_with('(')
    };
    after.any(|after| after.starts_with('[') || after.starts_with('.') && !calls(after))
}

fn loop_node(
    args: &PollArgs,
    times: u64,
    look: Map<String, Value>,
    delay: Value,
    until: &str,
    shown: &str,
) -> Value {
    json!({
        "actions": { "poll": {
            "type": "doUntil",
            "condition": until,
            "on_missing": "wait",
            "limit": { "count": times, "timeout": text(args.timeout) },
            "delay": delay,
            "actions": { "look": look },
        } },
        "outputs": format!("@outputs('look')?['{shown}']"),
    })
}

pub(super) fn attempt(args: &TryArgs) -> Value {
    let mut look = command(&args.command, true);
    if let Some(timeout) = args.timeout {
        look.insert("timeout".to_owned(), text(timeout).into());
    }
    attempts(look, &args.every, args.times, None, "stdout")
}

/// Returns a retry policy with `times` attempts in all, for the errors in `on`.
pub(super) fn policy(every: &Every, times: u64, on: &[&str]) -> Value {
    let mut policy = match every.most {
        None => json!({ "type": "fixed", "interval": text(every.first) }),
        Some(_) => delay(every),
    };
    if let Some(policy) = policy.as_object_mut() {
        policy.insert("count".to_owned(), times.saturating_sub(1).into());
        policy.insert("on".to_owned(), json!(on));
    }
    policy
}

/// Makes the file with one action that is attempted several times, with a timeout for all attempts.
fn attempts(
    look: Map<String, Value>,
    every: &Every,
    times: u64,
    timeout: Option<Lasting>,
    shown: &str,
) -> Value {
    let policy = policy(every, times, &ANY);
    let mut tried = json!({ "type": "retry", "action": look, "retryPolicy": policy });
    if let (Some(timeout), Some(tried)) = (timeout, tried.as_object_mut()) {
        tried.insert("timeout".to_owned(), text(timeout).into());
    }
    json!({ "actions": { "look": tried }, "outputs": format!("@outputs('look')?['{shown}']") })
}

fn command(words: &[String], check: bool) -> Map<String, Value> {
    let mut inputs = Map::new();
    let words: Vec<String> = words.iter().map(|word| literal(word)).collect();
    inputs.insert("command".to_owned(), json!(words));
    if !check {
        inputs.insert("check".to_owned(), json!(false));
    }
    Map::from_iter([
        ("type".to_owned(), json!("shell")),
        ("inputs".to_owned(), inputs.into()),
    ])
}

pub(super) fn request(url: &str, given: &RequestArgs) -> Result<Map<String, Value>, String> {
    if !["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Err(format!(
            "`{url}` is not a valid URL: it must begin with http:// or https://"
        ));
    }
    let mut named = Map::new();
    for header in &given.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| format!("the header `{header}` has no colon: -H 'Name: value'"))?;
        let (name, value) = (name.trim(), Value::from(literal(value.trim())));
        let known = named.keys().find(|known| known.eq_ignore_ascii_case(name));
        let name = known.cloned().unwrap_or_else(|| name.to_owned());
        match named.get_mut(&name) {
            None => {
                named.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    let mut inputs = Map::new();
    inputs.insert("uri".to_owned(), literal(url).into());
    if let Some(data) = &given.data {
        inputs.insert("method".to_owned(), "POST".into());
        inputs.insert("body".to_owned(), request_data(data)?);
    }
    if !named.is_empty() {
        inputs.insert("headers".to_owned(), named.into());
    }
    Ok(Map::from_iter([
        ("type".to_owned(), json!("http")),
        ("inputs".to_owned(), inputs.into()),
    ]))
}

/// Returns the request body of `--data`: JSON if the text is JSON, else the text.
fn request_data(data: &str) -> Result<Value, String> {
    if let Some(file) = data.strip_prefix('@') {
        let problem = "does not name a file here: write";
        return Err(format!(
            "`--data @{file}` {problem} --data \"$(cat '{file}')\""
        ));
    }
    match serde_json::from_str(data) {
        Ok(_) if let Some(problem) = inexact_json(data.as_bytes()) => {
            Err(format!("`--data`: {problem}"))
        }
        Ok(value) => Ok(without_expressions(value)),
        Err(error) if data.trim_start().starts_with(['{', '[']) => {
            Err(format!("`--data` is not valid JSON: {error}"))
        }
        Err(_) => Ok(literal(data).into()),
    }
}

/// Returns the value in a form in which no text is an expression.
fn without_expressions(value: Value) -> Value {
    match value {
        Value::String(text) => literal(&text).into(),
        Value::Array(items) => items.into_iter().map(without_expressions).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(name, value)| (name, without_expressions(value)))
                .collect()
        }
        other => other,
    }
}

/// Returns text in a form that is not read as an expression. It can still name secrets.
pub(super) fn literal(text: &str) -> String {
    if text.contains("{{") || text.contains("{%") {
        // The text has signs of both expression languages, so it becomes a text within one of them.
        if text.contains("@{") || text.contains("{% endraw") {
            return format!("@concat('{}')", text.replace('\'', "''"));
        }
        return format!("{{% raw %}}{text}{{% endraw %}}");
    }
    let text = text.replace("@{", "@@{");
    match text.strip_prefix('@') {
        Some(rest) if !rest.is_empty() && !rest.starts_with("@{") => format!("@{text}"),
        _ => text,
    }
}

pub(super) fn delay(every: &Every) -> Value {
    match every.most {
        None => json!(text(every.first)),
        Some(most) => json!({
            "type": "exponential", "interval": text(every.first), "maxInterval": text(most),
        }),
    }
}

/// Returns the time until the next request to a server: `every`, or longer if the server asks for that.
pub(super) fn server_delay(every: &Every) -> Value {
    let mut delay = json!({ "type": "server", "interval": text(every.first) });
    if let (Some(most), Some(delay)) = (every.most, delay.as_object_mut()) {
        delay.insert("maxInterval".to_owned(), text(most).into());
    }
    delay
}

pub(super) fn text(time: Lasting) -> String {
    format_duration(time.0)
}

/// Returns an expression of a line as the file has it: `body` is the body of the action `look`.
pub(super) fn to_file_expression(expression: &str) -> String {
    to_file_expression_at(expression, LOOK)
}

/// Returns the same for outputs at another path.
pub(super) fn to_file_expression_at(expression: &str, outputs: &str) -> String {
    if expression.starts_with('@') {
        return expression.to_owned();
    }
    let expression = &with_small_headers(expression);
    let mut out = String::new();
    let mut quote = None;
    let mut word = String::new();
    let mut before = ' ';
    for next in expression.chars().chain(['\0']) {
        if quote.is_none() && (next.is_alphanumeric() || next == '_') {
            word.push(next);
            continue;
        }
        if !word.is_empty() {
            if before != '.' && OUTPUTS.contains(&word.as_str()) {
                out.push_str(outputs);
                out.push('.');
            }
            out.push_str(&word);
            word.clear();
        }
        match quote {
            Some(open) if open == next => quote = None,
            None if next == '\'' || next == '"' => quote = Some(next),
            _ => {}
        }
        if next != '\0' {
            out.push(next);
        }
        before = next;
    }
    out
}

/// Converts the names of headers to lower case, as answers have them: `headers["ETag"]`, `headers.ETag`.
fn with_small_headers(expression: &str) -> String {
    let mut out = String::new();
    let mut rest = expression;
    while let Some((before, after)) = rest.split_once("headers") {
        out.push_str(before);
        out.push_str("headers");
        let end: &[char] = match after.get(..2) {
            Some("[\"") => &['"'],
            Some("['") => &['\''],
            _ if after.starts_with('.') => &[' ', '.', '[', ')', '=', '!', '<', '>', '|', ','],
            _ => {
                rest = after;
                continue;
            }
        };
        let start = if after.starts_with('.') { 1 } else { 2 };
        let (open, name) = after.split_at(start);
        let (name, closing) = name.split_at(name.find(end).unwrap_or(name.len()));
        out.push_str(open);
        out.push_str(&name.to_lowercase());
        rest = closing;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{LOOK, STATUS, column, to_file_expression, with_line_expressions};

    #[test]
    fn messages_have_the_expressions_of_the_line() {
        let message = format!("undefined value in `{LOOK}.body.done`, or in `{STATUS}.body.done`");
        let shown = with_line_expressions(true, &message);
        assert_eq!(shown, "undefined value in `body.done`, or in `body.done`");
        assert_eq!(with_line_expressions(false, &message), message);
    }

    #[test]
    fn a_column_of_the_file_is_one_of_the_expression() {
        let expression = r#"body.a == "x" and body.b =="#;
        let until = to_file_expression(expression).replace('"', "\\\"");
        let row = format!("    condition: \"{until}\"");
        let at = |text: &str| u32::try_from(row.find(text).unwrap() + 1).unwrap();
        assert_eq!(column(&row, expression, at("body.b")), Some(19));
        assert_eq!(column(&row, expression, 3), None);
        assert_eq!(column("count: 3", expression, 1), None);
    }

    #[test]
    fn names_of_outputs_are_those_of_the_look() {
        let look = "actions.look.outputs";
        for (line, file) in [
            (
                "body.status == \"done\"",
                format!("{look}.body.status == \"done\""),
            ),
            ("'body' in body", format!("'body' in {look}.body")),
            ("x.body", "x.body".to_owned()),
            (
                "exitCode==0 and stdout",
                format!("{look}.exitCode==0 and {look}.stdout"),
            ),
            (
                "@equals(body('look').a, 1)",
                "@equals(body('look').a, 1)".to_owned(),
            ),
            ("somebody", "somebody".to_owned()),
            (
                "headers[\"Next-Page\"] or headers.ETag == 'X'",
                format!("{look}.headers[\"next-page\"] or {look}.headers.etag == 'X'"),
            ),
        ] {
            assert_eq!(to_file_expression(line), file);
        }
    }
}
