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

/// So many equal pages in a row say that the server does not know the number of the page.
const SAME_PAGES: u64 = 3;

pub(super) fn poll(args: &PollArgs, times: u64) -> Result<Value, String> {
    let until = args.until.as_deref().map(reading);
    Ok(match (&args.url, until) {
        (None, until) => {
            let until = until.unwrap_or_else(|| format!("{LOOK}.exitCode == 0"));
            // What is no JSON has no members: it is looked at again.
            let until = match reads_members(&until) {
                true => format!("{LOOK}.body is not string and ({until})"),
                false => until,
            };
            looped(args, times, command(&args.command, false), &until, "stdout")
        }
        // Whatever keeps the address from answering is looked at again.
        (Some(url), None) => {
            let look = request(url, &args.header)?;
            attempts(look, &args.every, times, Some(args.timeout), "body")
        }
        (Some(url), Some(until)) => {
            let mut look = request(url, &args.header)?;
            look.insert("retry".to_owned(), policy(&args.every, times));
            // Who looks at the status takes any.
            if until.contains(&format!("{LOOK}.statusCode"))
                && let Some(inputs) = look.get_mut("inputs").and_then(Value::as_object_mut)
            {
                inputs.insert("check".to_owned(), false.into());
            }
            // A page of a proxy in the place of JSON is an answer that failed.
            if reads_members(&until) {
                look.insert("expect".to_owned(), "json".into());
            }
            looped(args, times, look, &until, "body")
        }
    })
}

/// Whether an expression reads members of the body.
fn reads_members(expression: &str) -> bool {
    let body = format!("{LOOK}.body");
    let mut after = expression.split(&body).skip(1);
    after.any(|after| after.starts_with(['.', '[']))
}

fn looped(
    args: &PollArgs,
    times: u64,
    look: Map<String, Value>,
    until: &str,
    shown: &str,
) -> Value {
    json!({
        "actions": { "poll": {
            "type": "doUntil",
            "condition": until,
            "limit": { "count": times, "timeout": text(args.timeout) },
            "delay": delay(&args.every),
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

/// So many attempts in all, whatever keeps what is asked for from being there.
fn policy(every: &Every, times: u64) -> Value {
    let mut policy = match every.most {
        None => json!({ "type": "fixed", "interval": text(every.first) }),
        Some(_) => delay(every),
    };
    if let Some(policy) = policy.as_object_mut() {
        policy.insert("count".to_owned(), times.saturating_sub(1).into());
        let on = ["timeout", "connection", "4xx", "5xx", "shell", "expect"];
        policy.insert("on".to_owned(), json!(on));
    }
    policy
}

/// An action with attempts, and a time for all of them.
fn attempts(
    look: Map<String, Value>,
    every: &Every,
    times: u64,
    timeout: Option<Lasting>,
    shown: &str,
) -> Value {
    let policy = policy(every, times);
    let mut tried = json!({ "type": "retry", "action": look, "retryPolicy": policy });
    if let (Some(timeout), Some(tried)) = (timeout, tried.as_object_mut()) {
        tried.insert("timeout".to_owned(), text(timeout).into());
    }
    json!({ "actions": { "look": tried }, "outputs": format!("@outputs('look')?['{shown}']") })
}

pub(super) fn pages(args: &PaginateArgs, times: u64) -> Result<Value, String> {
    if args.items.starts_with('@') {
        let told = "`--items` is an expression without `@`, such as body.items";
        return Err(told.to_owned());
    }
    let items = reading(&args.items);
    // A filter takes rows away: how many there were is told before it.
    let (all, filter) = before_filters(&items);
    let count = |rows: &str| format!("(({rows}) or []) | length");
    let paging = Paging::of(args)?;
    if filter && paging.next == Next::Offset {
        return Err(format!(
            "`--items {}` has a filter, and with `--next offset` the server must count the same rows: \
             filter the file afterwards",
            args.items
        ));
    }
    let mut get = retried(request(&paging.url, &args.header)?);
    // Text has no members, and rows are no text: it is an answer that failed.
    if reads_members(&items) || matches!(&paging.next, Next::Expression(it) if reads_members(it)) {
        get.insert("expect".to_owned(), "json".into());
    }
    let step = match paging.next {
        Next::Offset => count(&all),
        _ => "1".to_owned(),
    };
    let next = match &paging.next {
        Next::Page | Next::Offset => {
            let some = count(&all);
            format!("{{{{ variables.next + ({step}) if {some} else none }}}}")
        }
        Next::Link => LINK.to_owned(),
        Next::Expression(expression) => following(expression),
    };
    let first = match &paging.query {
        None => json!(paging.url),
        Some((_, first)) => first.clone(),
    };
    if let Some(inputs) = get.get_mut("inputs").and_then(Value::as_object_mut) {
        match &paging.query {
            Some((name, _)) => {
                inputs.insert("queries".to_owned(), json!({ name: "@variables('next')" }))
            }
            None => inputs.insert("uri".to_owned(), json!("@variables('next')")),
        };
    }
    let mut limit = json!({ "count": times, "timeout": text(args.timeout) });
    if let (Next::Page | Next::Offset, Some(limit)) = (&paging.next, limit.as_object_mut()) {
        // A server that does not know the number gives the first page for ever.
        limit.insert("unchanged".to_owned(), SAME_PAGES.into());
        limit.insert(
            "unchanged_of".to_owned(),
            "@outputs('look')?['body']".into(),
        );
    }
    let mut pages = json!({
        "type": "doUntil",
        "condition": "variables.next in [none, '', false]",
        "limit": limit,
        "page": "@variables('next')",
        "actions": {
            "look": get,
            "keep": { "type": "appendFile", "inputs": {
                "path": args.to.display().to_string(),
                "rows": format!("{{{{ {items} }}}}"),
                "replace": true,
            } },
            "count": { "type": "incrementVariable", "inputs": {
                "name": "rows", "value": format!("{{{{ {} }}}}", count(&items)),
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

/// What leads to the next page.
#[derive(PartialEq)]
enum Next {
    Link,
    Page,
    Offset,
    /// What gives an address, or a token.
    Expression(String),
}

/// Where the pages of a line are.
struct Paging {
    next: Next,
    /// Without what the query of a page is given.
    url: String,
    /// What the query of a page has, and its first value; none: what leads to a page is its address.
    query: Option<(String, Value)>,
}

impl Paging {
    fn of(args: &PaginateArgs) -> Result<Self, String> {
        let next = match args.next.as_str() {
            "link" => Next::Link,
            "page" => Next::Page,
            "offset" => Next::Offset,
            word if is_word(word) && !OUTPUTS.contains(&word) => {
                return Err(format!(
                    "`--next {word}`: it is link, page, offset, or an expression such as body.next"
                ));
            }
            other => Next::Expression(reading(other)),
        };
        let named = |name: &str| Some(args.param.clone().unwrap_or_else(|| name.to_owned()));
        let name = match next {
            Next::Link => None,
            Next::Page => named("page"),
            Next::Offset => named("offset"),
            Next::Expression(_) => args.param.clone(),
        };
        let Some(name) = name else {
            let url = args.url.clone();
            let query = None;
            return Ok(Self { next, url, query });
        };
        // A page or a token that the address has already is where it begins.
        let (url, given) = without(&args.url, &name);
        let first = match (&next, given) {
            (Next::Expression(_), given) => given.map_or(Value::Null, Value::from),
            (_, Some(given)) => given
                .parse()
                .map(|number: i64| json!(number))
                .map_err(|_| format!("`{name}={given}` of the address is no number"))?,
            (Next::Page, None) => json!(1),
            (_, None) => json!(0),
        };
        let query = Some((name, first));
        Ok(Self { next, url, query })
    }
}

/// An address without one name of its query, and the value that it had.
fn without(url: &str, name: &str) -> (String, Option<String>) {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let Some((path, query)) = rest.split_once('?') else {
        return (url.to_owned(), None);
    };
    let mut given = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            (key, value) if key == name => given = Some(value.to_owned()),
            _ => kept.push(pair),
        }
    }
    let mut url = path.to_owned();
    for (mark, part) in [('?', kept.join("&").as_str()), ('#', fragment)] {
        if !part.is_empty() {
            url.push(mark);
            url.push_str(part);
        }
    }
    (url, given)
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// An expression up to its first filter, and whether it has one.
fn before_filters(expression: &str) -> (String, bool) {
    let (mut quote, mut depth) = (None, 0_u32);
    for (at, c) in expression.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '|') if depth == 0 => {
                let before = expression.get(..at).unwrap_or_default();
                return (before.trim().to_owned(), true);
            }
            (None, _) => {}
        }
    }
    (expression.to_owned(), false)
}

/// The address of `rel="next"` in the header Link (RFC 8288); empty at the last page.
const LINK: &str = "{{ (actions.look.outputs.get('links') or {}).get('next') or '' }}";

/// What an expression gives; null where the last page has nothing, at any depth.
fn following(expression: &str) -> String {
    if expression.starts_with('@') {
        return expression.to_owned();
    }
    let path = expression.strip_prefix(LOOK).and_then(|path| {
        let mut names = path.strip_prefix('.')?.split('.');
        names
            .all(|name| !name.is_empty() && is_word(name))
            .then(|| {
                let names = path.split('.').skip(1);
                names.map(|name| format!("?['{name}']")).collect::<String>()
            })
    });
    match path {
        Some(path) => format!("@outputs('look'){path}"),
        None => format!("{{{{ ({expression}) | default(none) }}}}"),
    }
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
