//! The workflow files that `poll`, `try` and `paginate` stand for. Nothing here is more than a file
//! could say.

use crate::cli::args::{Every, Lasting, PaginateArgs, PollArgs, TryArgs};
use crate::engine::format_duration;
use serde_json::{Map, Value, json};

/// What expressions of a line read of the action `look`.
const OUTPUTS: [&str; 6] = [
    "body",
    "statusCode",
    "headers",
    "exitCode",
    "stdout",
    "stderr",
];

/// Where they are.
const LOOK: &str = "actions.look.outputs";

/// How often a request is repeated before its page or look has failed.
const RETRIES: u64 = 10;

pub(super) fn poll(args: &PollArgs) -> Result<Value, String> {
    let until = args.until.as_deref().map(reading);
    Ok(match (&args.url, until) {
        (None, until) => {
            let until = until.unwrap_or_else(|| format!("{LOOK}.exitCode == 0"));
            looped(args, command(&args.command, false), &until, "stdout")
        }
        // Whatever keeps the address from answering is looked at again.
        (Some(url), None) => {
            let look = request(url, &args.header)?;
            attempts(look, &args.every, args.times, Some(args.timeout), "body")
        }
        (Some(url), Some(until)) => {
            let mut look = retried(request(url, &args.header)?);
            // Who looks at the status takes any.
            if until.contains(&format!("{LOOK}.statusCode"))
                && let Some(inputs) = look.get_mut("inputs").and_then(Value::as_object_mut)
            {
                inputs.insert("check".to_owned(), false.into());
            }
            // Only JSON has members: a page of a proxy in its place is an answer that failed.
            let body = format!("{LOOK}.body");
            let members = [".", "["].map(|member| format!("{body}{member}"));
            if members.iter().any(|member| until.contains(member)) {
                look.insert("expect".to_owned(), "json".into());
            }
            looped(args, look, &until, "body")
        }
    })
}

fn looped(args: &PollArgs, look: Map<String, Value>, until: &str, shown: &str) -> Value {
    json!({
        "actions": { "poll": {
            "type": "doUntil",
            "condition": until,
            "limit": { "count": args.times, "timeout": text(args.timeout) },
            "delay": delay(&args.every),
            "actions": { "look": look },
        } },
        "outputs": format!("@{}('look')?['{shown}']", "outputs"),
    })
}

pub(super) fn attempt(args: &TryArgs) -> Value {
    let mut look = command(&args.command, true);
    if let Some(timeout) = args.timeout {
        look.insert("timeout".to_owned(), text(timeout).into());
    }
    attempts(look, &args.every, args.times, None, "stdout")
}

/// An action with attempts, and a time for all of them.
fn attempts(
    look: Map<String, Value>,
    every: &Every,
    times: u64,
    timeout: Option<Lasting>,
    shown: &str,
) -> Value {
    let mut policy = match every.most {
        None => json!({ "type": "fixed", "interval": text(every.first) }),
        Some(_) => delay(every),
    };
    if let Some(policy) = policy.as_object_mut() {
        policy.insert("count".to_owned(), times.saturating_sub(1).into());
        let on = ["timeout", "connection", "4xx", "5xx", "shell"];
        policy.insert("on".to_owned(), json!(on));
    }
    let mut tried = json!({ "type": "retry", "action": look, "retryPolicy": policy });
    if let (Some(timeout), Some(tried)) = (timeout, tried.as_object_mut()) {
        tried.insert("timeout".to_owned(), text(timeout).into());
    }
    json!({ "actions": { "look": tried }, "outputs": format!("@outputs('look')?['{shown}']") })
}

pub(super) fn pages(args: &PaginateArgs) -> Result<Value, String> {
    let mut get = retried(request(&args.url, &args.header)?);
    let count = format!("(({}) or []) | length", reading(&args.items));
    let named = |name: &str| args.param.clone().unwrap_or_else(|| name.to_owned());
    // What the query or the address of a page has, the first value, and the next one.
    let (query, first, next) = match (args.next.as_str(), &args.param) {
        ("page", _) => (
            Some(named("page")),
            json!(1),
            format!("{{{{ variables.next + 1 if {count} else none }}}}"),
        ),
        ("offset", _) => (
            Some(named("offset")),
            json!(0),
            format!("{{{{ variables.next + ({count}) if {count} else none }}}}"),
        ),
        ("link", _) => (None, json!(args.url), LINK.to_owned()),
        (other, Some(name)) => (Some(name.clone()), Value::Null, following(other)),
        (other, None) => (None, json!(args.url), following(other)),
    };
    if let Some(inputs) = get.get_mut("inputs").and_then(Value::as_object_mut) {
        match query {
            Some(name) => {
                inputs.insert("queries".to_owned(), json!({ name: "@variables('next')" }))
            }
            None => inputs.insert("uri".to_owned(), json!("@variables('next')")),
        };
    }
    let mut pages = json!({
        "type": "doUntil",
        "condition": "not variables.next",
        "limit": { "count": args.times, "timeout": text(args.timeout) },
        "page": "@variables('next')",
        "actions": {
            "look": get,
            "keep": { "type": "appendFile", "inputs": {
                "path": args.to.display().to_string(),
                "rows": format!("{{{{ {} }}}}", reading(&args.items)),
                "replace": true,
            } },
            "count": { "type": "incrementVariable", "inputs": {
                "name": "rows", "value": format!("{{{{ {count} }}}}"),
            } },
            "go_on": { "type": "setVariable", "inputs": { "name": "next", "value": next } },
        },
    });
    if !args.every.first.0.is_zero()
        && let Some(pages) = pages.as_object_mut()
    {
        pages.insert("delay".to_owned(), delay(&args.every));
    }
    Ok(json!({
        "variables": { "next": first, "rows": 0 },
        "actions": { "pages": pages },
        "outputs": {
            "file": args.to.display().to_string(),
            "pages": "@outputs('pages')?['iterations']",
            "rows": "@variables('rows')",
        },
    }))
}

/// The address of `rel="next"` in the header Link (RFC 8288); empty at the last page.
const LINK: &str = "{{ (actions.look.outputs.get('links') or {}).get('next') or '' }}";

/// What an expression gives; null where the last page has nothing.
fn following(expression: &str) -> String {
    format!("{{{{ ({}) | default(none) }}}}", reading(expression))
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

fn request(url: &str, headers: &[String]) -> Result<Map<String, Value>, String> {
    if !["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Err(format!(
            "`{url}` is no address: it must begin with http:// or https://"
        ));
    }
    let mut named = Map::new();
    for header in headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| format!("the header `{header}` has no colon: -H 'Name: value'"))?;
        named.insert(name.trim().to_owned(), literal(value.trim()).into());
    }
    let mut inputs = Map::new();
    inputs.insert("uri".to_owned(), literal(url).into());
    if !named.is_empty() {
        inputs.insert("headers".to_owned(), named.into());
    }
    Ok(Map::from_iter([
        ("type".to_owned(), json!("http")),
        ("inputs".to_owned(), inputs.into()),
    ]))
}

/// A request that is repeated before its page or look has failed.
fn retried(mut request: Map<String, Value>) -> Map<String, Value> {
    let policy =
        json!({ "type": "exponential", "count": RETRIES, "interval": "1s", "maxInterval": "1m" });
    request.insert("retry".to_owned(), policy);
    request
}

/// Text that is no expression, whatever it looks like; secrets may be named in it.
fn literal(text: &str) -> String {
    if text.contains("{{") || text.contains("{%") {
        return format!("{{% raw %}}{text}{{% endraw %}}");
    }
    let text = text.replace("@{", "@@{");
    match text.strip_prefix('@') {
        Some(rest) if !rest.is_empty() && !rest.starts_with("@{") => format!("@{text}"),
        _ => text,
    }
}

fn delay(every: &Every) -> Value {
    match every.most {
        None => json!(text(every.first)),
        Some(most) => json!({
            "type": "exponential", "interval": text(every.first), "maxInterval": text(most),
        }),
    }
}

fn text(time: Lasting) -> String {
    format_duration(time.0)
}

/// The expression of a line as the file has it: `body` is the body of the action `look`.
fn reading(expression: &str) -> String {
    if expression.starts_with('@') {
        return expression.to_owned();
    }
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
                out.push_str(LOOK);
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

#[cfg(test)]
mod tests {
    use super::reading;

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
        ] {
            assert_eq!(reading(line), file);
        }
    }
}
