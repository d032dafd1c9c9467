//! The workflow file of `paginate`.
//! A "line" is the command line of `paginate`, and a "row" is an item of a page.

use super::complete::{Total, missing_member, misspelt_next, unreadable_link};
use super::file::{
    LOOK_OUTPUTS, OUTPUT_NAMES, delay, duration_text, literal, reads_members, request,
    to_file_expression,
};
use crate::cli::args::{CursorKind, PaginateArgs, RowFormat};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// The condition that holds after the last page.
/// 0 can be the number, the offset or the token of the next page, so it is not the end.
const END: &str = "variables.at.next is none or variables.at.next is false \
                   or variables.at.next == '' or variables.at.next == []";

/// The condition that holds after the last page if cursors are opaque: there is no cursor.
const OPAQUE_END: &str = "variables.at.next is none";

/// The condition that is true if an answer is a page, and false if the server refused a number after the last page.
pub(super) const IS_PAGE: &str =
    "actions.look.outputs.statusCode < 400 and actions.look.outputs.body is not none";

/// The output with the status of the last answer, if the status can mean the end of the pages.
pub(super) const LAST_STATUS: &str = "last_status";

/// The condition that holds if all rows that the server reports were read.
/// What seems to be the total may be another number, e.g. of pages. So this page must also be shorter than the first one
/// that has rows.
const ALL_SEEN: &str =
    "(variables.at.total == variables.at.seen and variables.at.here < variables.at.page_rows)";

/// The condition that holds after a page that repeated the last one: its rows were not written, and it was not counted.
/// Some servers answer with their last page if a number is too large. All reported rows were read before it, and it is
/// not the first page, which a server that ignores the number repeats.
const IS_REPEATED: &str = "loop.index >= variables.at.page_number";

/// The variable with the rows of the last page, if all reported rows have been read. Otherwise it is none.
const LAST: &str = "last";

/// The statuses with which a server may refuse a page after the last one. Any other status is a failure.
/// For the first page, and while rows are missing, no status is accepted. If the server has reported a total, and all
/// rows were read, more statuses are accepted, also 500: some servers fail at a page that they do not have.
const NO_PAGE: &str = "{{ [] if variables.at.page_number == 0 or (variables.at.total or 0) > variables.at.seen \
                       else [404, 410, 416] if variables.at.total is none else [400, 404, 410, 416, 422, 500] }}";

/// Maximum number of retries of a request for a page. After that, the page has failed.
const RETRIES: u64 = 10;

/// After this number of equal pages in a row, the run ends: the server ignores the number of the page, or has no
/// further rows.
pub(super) const SAME_PAGES: u64 = 3;

/// Makes the workflow file for a line. The rows are written to the file `to`, a path as the workflow file contains it.
pub(super) fn pages(args: &PaginateArgs, to: &str, times: u64) -> Result<Value, String> {
    if args.items.starts_with('@') {
        let message = "`--items` is an expression without `@`, such as body.items";
        return Err(message.to_owned());
    }
    let items = to_file_expression(&args.items);
    // A filter in `--items` removes rows, so the rows of the server are counted before the filter.
    let (all, filter) = before_filters(&items);
    let no_rows = match missing_member(&all) {
        Some(missing) => format!("({missing} or not ({all}))"),
        None => format!("not ({all})"),
    };
    let end = args.end.as_deref().map(end_of_pages).transpose()?;
    let count = |rows: &str| format!("(({rows}) or []) | length");
    let get = request(&args.url, &args.request)?;
    let data = get.get("inputs").and_then(|inputs| inputs.get("body"));
    let paging = Paging::of(args, data)?;
    if filter && paging.next == NextPage::Offset {
        return Err(format!(
            "`--items {}` has a filter, and with `--next offset` the server must count the same rows: \
             filter the file afterwards",
            args.items
        ));
    }
    let is_opaque = args.cursor == CursorKind::Opaque;
    let total = Total::of(args, &paging)?;
    // Some servers refuse the number of a page after the last one. So a refusal may be the end of the pages.
    let is_numbered = matches!(paging.next, NextPage::Page | NextPage::Offset);
    let refusal_ends = is_numbered && !matches!(total, Total::Expression(_));
    let reads = reads_members(&items)
        || matches!(&paging.next, NextPage::Expression(it) if reads_members(it));
    let mut get = with_retries(get, reads);
    let answer = format!("{LOOK_OUTPUTS}.body");
    // An expression with `fromjson` parses a text itself, so the body must stay a text.
    let parses = args.items.contains("fromjson") || args.next.contains("fromjson");
    // A text has no members and is not a list, so an answer that is a text counts as failed.
    let is_text = match reads || all == answer && !parses {
        true => format!("{answer} is string or "),
        false => String::new(),
    };
    // An answer without a body counts as failed, unless its status or `--items` expects it.
    let is_empty = match all == answer || missing_member(&all).is_some() {
        true => format!("({answer} is none and {LOOK_OUTPUTS}.statusCode != 204) or "),
        false => String::new(),
    };
    let [items, all] = [items, all].map(|rows| format!("(({rows}) if {IS_PAGE} else [])"));
    // So does an error that is reported with the status 200, and has no rows.
    let failed = format!(
        "{is_empty}{is_text}{answer} is mapping and ({answer}.get('error') or {answer}.get('errors')) and {no_rows}"
    );
    let page = format!("{LOOK_OUTPUTS}.statusCode < 400 and not ({failed})");
    let expected = match refusal_ends {
        false => page,
        true => format!("({page}) or {LOOK_OUTPUTS}.statusCode >= 400"),
    };
    get.insert("expect".to_owned(), expected.into());
    let rows = count(&all);
    let seen = match filter {
        true => format!("([{rows}, {}] | max)", count(&items)),
        false => format!("({rows})"),
    };
    let next = match &paging.next {
        NextPage::Page => total.next_number("variables.at.next + (1)", &rows, &seen, end.is_some()),
        NextPage::Offset => {
            let step = format!("variables.at.next + (({rows}) or variables.at.page_rows)");
            total.next_number(&step, &rows, &seen, end.is_some())
        }
        NextPage::Link => LINK.to_owned(),
        NextPage::Expression(expression) => following(expression),
    };
    let mut variables = Map::new();
    let first = paging.first;
    let before = match (&paging.next, first.as_i64()) {
        (NextPage::Offset, Some(offset)) => json!(offset - i64::from(paging.counts_from_one)),
        _ => json!(0),
    };
    if is_opaque && !matches!(paging.next, NextPage::Expression(_)) {
        let what = "`--cursor opaque` needs an expression, e.g. --next body.cursor";
        return Err(what.to_owned());
    }
    let mut at =
        json!({ "next": first, "rows": 0, "seen": before, "total": null, "page_number": 0 });
    let written = match args.key {
        Some(_) => "{{ variables.at.rows + actions.keep.outputs.rows }}".to_owned(),
        None => format!("{{{{ variables.at.rows + ({}) }}}}", count(&items)),
    };
    let mut go_on = json!({
        "next": next,
        "rows": written,
        "seen": format!("{{{{ variables.at.seen + {seen} }}}}"),
        "total": total.expression(),
        "page_number": "{{ variables.at.page_number + 1 }}",
    });
    if is_numbered && let (Some(at), Some(go_on)) = (at.as_object_mut(), go_on.as_object_mut()) {
        for (name, template) in [
            ("here", rows.clone()),
            ("page_rows", format!("variables.at.page_rows or ({rows})")),
            (
                "first_row",
                format!(
                    "variables.at.first_row if variables.at.page_number else (({all} or []) | first | default(none))"
                ),
            ),
            (
                "empty",
                format!("0 if ({rows}) else variables.at.empty + 1"),
            ),
        ] {
            at.insert(name.to_owned(), json!(0));
            go_on.insert(name.to_owned(), format!("{{{{ {template} }}}}").into());
        }
    }
    if is_opaque && let (Some(at), Some(go_on)) = (at.as_object_mut(), go_on.as_object_mut()) {
        at.insert("before".to_owned(), json!(null));
        go_on.insert("before".to_owned(), "{{ variables.at.next }}".into());
    }
    variables.insert("at".to_owned(), at);
    let goes = "@variables('at').next";
    if let Some(inputs) = get.get_mut("inputs").and_then(Value::as_object_mut) {
        if refusal_ends {
            inputs.insert("check".to_owned(), NO_PAGE.into());
        }
        if !parses {
            inputs.insert("parse".to_owned(), "json".into());
        }
        match &paging.place {
            // At another server, the action sends neither the headers nor the credentials of the line.
            PageTarget::Address => {
                inputs.insert("page".to_owned(), goes.into());
            }
            PageTarget::Query(name) => {
                inputs.insert("uri".to_owned(), literal(&paging.url).into());
                inputs.insert("queries".to_owned(), json!({ name: goes }));
            }
            PageTarget::Data(path) => {
                let data = inputs.insert("body".to_owned(), with_next(path).into());
                variables.extend(data.map(|data| (DATA.to_owned(), data)));
            }
        }
    }
    let mut limit = json!({ "count": times, "timeout": duration_text(args.timeout) });
    if let (true, Some(limit)) = (is_numbered || is_opaque, limit.as_object_mut()) {
        // A server that ignores the number or the cursor would return the first page for ever.
        limit.insert("unchanged".to_owned(), SAME_PAGES.into());
        limit.insert("unchanged_of".to_owned(), format!("{{{{ {all} }}}}").into());
    }
    let mut without_next = String::from(if is_opaque { OPAQUE_END } else { END });
    let mut steps = json!({
        "keep": { "type": "appendFile", "inputs": append_inputs(args, to, &items)? },
        "go_on": { "type": "setVariable", "inputs": { "name": "at", "value": go_on } },
    });
    if is_numbered && matches!(total, Total::Usual) {
        without_next = format!("{without_next} or {ALL_SEEN} or {IS_REPEATED}");
        variables.insert(LAST.to_owned(), json!(null));
        let last = format!("{{{{ {all} if variables.at.total == variables.at.seen else none }}}}");
        let set = json!({ "type": "setVariable", "inputs": { "name": LAST, "value": last } });
        if let Some(steps) = steps.as_object_mut() {
            steps.insert("remember".to_owned(), set);
        }
        let is_new = format!(
            "variables.{LAST} is none or {all} != variables.{LAST} or (({all} or []) | first) == variables.at.first_row"
        );
        steps = json!({ "new_page": { "type": "if", "condition": is_new, "actions": steps } });
    }
    let mut body = Map::from_iter([("look".to_owned(), get.into())]);
    body.extend(steps.as_object().cloned().unwrap_or_default());
    let mut pages = json!({
        "type": "doUntil",
        "condition": match end {
            None => without_next,
            Some(end) => format!("({end}) or {without_next}"),
        },
        "limit": limit,
        "actions": body,
    });
    // A cursor that does not change may still lead to other pages. But a cursor that occurs again after other
    // cursors, with the same rows, is a cycle.
    let circle = format!(
        "{{{{ [variables.at.next, {all}] if variables.at.next != variables.at.before else variables.at.page_number }}}}"
    );
    if let Some(pages) = pages.as_object_mut() {
        let page = if is_opaque { circle } else { goes.to_owned() };
        pages.insert("page".to_owned(), page.into());
    }
    if !args.every.initial.0.is_zero()
        && let Some(pages) = pages.as_object_mut()
    {
        pages.insert("delay".to_owned(), delay(&args.every));
    }
    let mut actions = Map::new();
    actions.insert("pages".to_owned(), pages);
    actions.extend(misspelt_next(&paging.next, &args.next));
    actions.extend(unreadable_link(&paging.next));
    actions.extend(total.check());
    let mut outputs = json!({
        "file": to,
        "pages": "@outputs('pages')?['iterations']",
        "rows": "@variables('at').rows",
    });
    if refusal_ends && let Some(outputs) = outputs.as_object_mut() {
        outputs.insert(
            LAST_STATUS.to_owned(),
            format!("{{{{ {LOOK_OUTPUTS}.statusCode }}}}").into(),
        );
    }
    Ok(json!({ "variables": variables, "actions": actions, "outputs": outputs }))
}

/// Returns the condition of `--end`. Only the value `true` ends the pages, not another value that counts as true.
fn end_of_pages(expression: &str) -> Result<String, String> {
    match expression.starts_with('@') {
        true => Err("`--end` is an expression without `@`, such as body.last".to_owned()),
        // A text never ends the pages, whether it is empty or not.
        false => Ok(format!("({}) is true", to_file_expression(expression))),
    }
}

/// Returns the inputs of the action that stores the rows of a page.
fn append_inputs(args: &PaginateArgs, to: &str, items: &str) -> Result<Value, String> {
    let mut inputs = Map::from_iter([
        ("path".to_owned(), to.into()),
        ("rows".to_owned(), format!("{{{{ {items} }}}}").into()),
        ("replace".to_owned(), true.into()),
    ]);
    let format = args.row_format()?;
    if format != RowFormat::Ndjson {
        inputs.insert("format".to_owned(), format.as_str().into());
    }
    if !args.columns.is_empty() {
        if format != RowFormat::Csv {
            return Err("`--columns` needs `--format csv`, or `--to FILE.csv`".to_owned());
        }
        let columns: Vec<&str> = args.columns.iter().map(|name| name.trim()).collect();
        for (number, name) in columns.iter().enumerate() {
            if name.is_empty() || columns.iter().take(number).any(|earlier| earlier == name) {
                return Err(format!(
                    "`--columns` needs names that differ, and one of them is `{name}`: for example id,name"
                ));
            }
        }
        inputs.insert("columns".to_owned(), columns.into());
    }
    if let Some(key) = &args.key {
        let is_member = key.split('.').all(|name| !name.is_empty() && is_word(name));
        let key = match is_member || key.starts_with('@') || key.contains("{{") {
            true => key.clone(),
            false => format!("{{{{ {key} }}}}"),
        };
        inputs.insert("key".to_owned(), key.into());
    }
    Ok(inputs.into())
}

/// What determines the next page.
#[derive(PartialEq)]
pub(super) enum NextPage {
    Link,
    Page,
    Offset,
    /// The value of an expression, which is an address or a token.
    Expression(String),
}

/// The variable with the request data for the first page.
const DATA: &str = "data";

/// In which part of a request the value is that selects a page.
enum PageTarget {
    /// The value is the whole address.
    Address,
    /// In the query, under this name.
    Query(String),
    /// In the data, at this path.
    Data(Vec<String>),
}

/// How a line requests one page after the other.
pub(super) struct Paging {
    pub(super) next: NextPage,
    /// The address without the parameter that selects a page.
    url: String,
    place: PageTarget,
    /// The value that selects the first page.
    first: Value,
    /// Whether the line begins after the first page. Then the total is not compared.
    pub(super) begins_later: bool,
    /// Whether the first row has the offset 1.
    counts_from_one: bool,
}

/// Returns the way to the next page that `--next` names. Returns `None` if it is an expression.
pub(super) fn way(next: &str) -> Option<NextPage> {
    match next {
        "link" => Some(NextPage::Link),
        "page" => Some(NextPage::Page),
        "offset" => Some(NextPage::Offset),
        _ => None,
    }
}

impl Paging {
    /// Reads the flags of a line that sends this data.
    fn of(args: &PaginateArgs, data: Option<&Value>) -> Result<Self, String> {
        let word = args.next.as_str();
        let next = match way(word) {
            Some(way) => way,
            None if is_word(word) && !OUTPUT_NAMES.contains(&word) => {
                return Err(format!(
                    "`--next {word}`: it is link, page, offset, or an expression such as body.next"
                ));
            }
            None => NextPage::Expression(to_file_expression(word)),
        };
        if args.param.as_ref().is_some_and(String::is_empty) {
            return Err("`--param` needs the name of a parameter of the query".to_owned());
        }
        if next == NextPage::Link && args.param.is_some() {
            return Err(
                "`--param` needs `--next` page, offset or an expression: a link is the whole address"
                    .to_owned(),
            );
        }
        let named = |name: &str| Some(args.param.clone().unwrap_or_else(|| name.to_owned()));
        let name = match next {
            NextPage::Link => None,
            NextPage::Page => named("page"),
            NextPage::Offset => named("offset"),
            NextPage::Expression(_) => args.param.clone(),
        };
        let Some(name) = name else {
            return Ok(Self {
                begins_later: names_a_later_page(&args.url),
                next,
                url: args.url.clone(),
                place: PageTarget::Address,
                first: Value::Null,
                counts_from_one: false,
            });
        };
        // With `startIndex`, the first row has the number 1: RFC 7644, 3.4.2.4 (SCIM); OpenSearch 1.1.
        let counts_from_one = next == NextPage::Offset && name.eq_ignore_ascii_case("startIndex");
        // If the address or the data already has a page or a token, the line begins with this page.
        let (url, given) = remove_parameter(&args.url, &name);
        let (place, given) = match (given, data) {
            (
                None,
                Some(Value::String(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_)),
            ) if args.param.is_some() => {
                return Err(format!(
                    "`--param {name}` is a member of `--data`, which is not an object: write a file"
                ));
            }
            (None, Some(data @ Value::Object(_))) => {
                if data.to_string().contains("${secret:") {
                    let message = "a secret in `--data` cannot be combined with a member for the next page: \
                         send it in a header, or write a file";
                    return Err(message.to_owned());
                }
                let path: Vec<String> = name.split('.').map(str::to_owned).collect();
                check_member(data, &path)?;
                let given = data.pointer(&format!("/{}", path.join("/"))).cloned();
                (PageTarget::Data(path), given)
            }
            (given, _) => {
                let given = given.map(|given| literal(&given).into());
                (PageTarget::Query(name.clone()), given)
            }
        };
        let begins_later = match (&next, &given) {
            (NextPage::Offset, _) | (_, None) => false,
            (NextPage::Page, Some(number)) => !is_first(
                &number
                    .as_str()
                    .map_or_else(|| number.to_string(), str::to_owned),
            ),
            (_, Some(token)) => !token.is_null(),
        };
        let first = match (&next, given) {
            (NextPage::Expression(_), given) => given.unwrap_or_default(),
            (_, Some(given)) => {
                let text = given
                    .as_str()
                    .map_or_else(|| given.to_string(), str::to_owned);
                let number: Result<i64, _> = text.parse();
                let invalid = |_| format!("`{name}={text}` is not a number");
                number.map(Value::from).map_err(invalid)?
            }
            (NextPage::Page, None) => json!(1),
            (_, None) if counts_from_one => json!(1),
            (_, None) => json!(0),
        };
        Ok(Self {
            next,
            url,
            place,
            first,
            begins_later,
            counts_from_one,
        })
    }
}

/// Returns an error if the data cannot have a member for the next page at this path.
fn check_member(data: &Value, path: &[String]) -> Result<(), String> {
    let shown = path.join(".");
    if path.iter().any(String::is_empty) {
        return Err(format!(
            "`--param {shown}` does not name a member: write e.g. page.after"
        ));
    }
    let mut within = data;
    for (at, name) in path.iter().enumerate() {
        if !matches!(within, Value::Object(_) | Value::Null) {
            let outer = path.get(..at).unwrap_or_default().join(".");
            return Err(format!(
                "`--param {shown}`: `{outer}` of `--data` is not an object"
            ));
        }
        within = within.get(name).unwrap_or(&Value::Null);
    }
    Ok(())
}

/// Returns the data of the request for a page, with the value that selects the page. For the first page, this value
/// may be missing.
fn with_next(path: &[String]) -> String {
    let data = format!("variables('{DATA}')");
    let set = with_member(&data, path);
    format!("@if(equals(variables('at').next, null), {data}, {set})")
}

fn with_member(of: &str, path: &[String]) -> String {
    let Some((name, inner)) = path.split_first() else {
        return "variables('at').next".to_owned();
    };
    let name = name.replace('\'', "''");
    let inner = match inner {
        [] => with_member(of, inner),
        inner => with_member(&format!("coalesce({of}?['{name}'], json('{{}}'))"), inner),
    };
    format!("setProperty({of}, '{name}', {inner})")
}

/// Query parameters that can select a page after the first one.
const PAGE_PARAMETERS: [&str; 12] = [
    "page",
    "offset",
    "skip",
    "start",
    "startat",
    "startindex",
    "cursor",
    "after",
    "token",
    "pagetoken",
    "marker",
    "continuationtoken",
];

fn names_a_later_page(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name).to_lowercase().replace(['_', '-', '$'], "");
        PAGE_PARAMETERS.contains(&name.as_str()) && !is_first(&decoded(value))
    })
}

/// Returns whether a number in an address is the number of the first page.
fn is_first(number: &str) -> bool {
    ["", "0", "1"].contains(&number)
}

/// Returns an address without one parameter of its query, and the value of that parameter.
fn remove_parameter(url: &str, name: &str) -> (String, Option<String>) {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let Some((path, query)) = rest.split_once('?') else {
        return (url.to_owned(), None);
    };
    let mut given = None;
    let mut others = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match decoded(key) == name {
            true => given = Some(decoded(value)),
            false => others.push(pair),
        }
    }
    let mut url = path.to_owned();
    for (mark, part) in [('?', others.join("&").as_str()), ('#', fragment)] {
        if !part.is_empty() {
            url.push(mark);
            url.push_str(part);
        }
    }
    (url, given)
}

/// Decodes a name or a value of a query (WHATWG URL, application/x-www-form-urlencoded).
fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    let bytes = percent_decode_str(&spaced);
    bytes.decode_utf8_lossy().into_owned()
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the part of an expression before its first filter, and whether it has a filter.
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

/// The address in the header Link with `rel="next"` (RFC 8288). It is empty on the last page.
const LINK: &str = "{{ (actions.look.outputs.get('links') or {}).get('next') or '' }}";

/// Converts an expression for the next page to a form that is null if a part of its path is missing, at any depth. The
/// last page may lack any part of it.
fn following(expression: &str) -> String {
    if expression.starts_with('@') {
        return expression.to_owned();
    }
    let path = expression.strip_prefix(LOOK_OUTPUTS).and_then(or_null);
    match path {
        Some(path) => format!("@outputs('look'){path}"),
        None => format!("{{{{ ({expression}) | default(none) }}}}"),
    }
}

/// Converts a path `.body.links[0].href` to a form that is null if a part is missing.
/// Returns `None` if the expression is not a path.
fn or_null(path: &str) -> Option<String> {
    let mut out = String::new();
    for part in path.strip_prefix('.')?.split('.') {
        let mut parts = part.split('[');
        let name = parts
            .next()
            .filter(|name| !name.is_empty() && is_word(name))?;
        out.push_str(&format!("?['{name}']"));
        for index in parts {
            let index: usize = index.strip_suffix(']')?.parse().ok()?;
            out.push_str(&format!("?[{index}]"));
        }
    }
    Some(out)
}

/// The condition for another attempt, if no members of the body are read. A first page whose text is not meant as JSON
/// is then a wrong address, which another attempt does not correct.
const MAY_RECOVER: &str = "variables.at.page_number > 0 or actions.look.outputs is not mapping \
                           or actions.look.outputs.body is not string or actions.look.outputs.statusCode >= 400 \
                           or 'json' in (actions.look.outputs.headers['content-type'] | default('') | lower)";

/// Adds a retry policy to a request. `reads` is whether members of the body are read.
fn with_retries(mut request: Map<String, Value>, reads: bool) -> Map<String, Value> {
    let mut policy =
        json!({ "type": "exponential", "count": RETRIES, "interval": "1s", "maxInterval": "1m" });
    if !reads && let Some(policy) = policy.as_object_mut() {
        policy.insert("on".to_owned(), "transient".into());
        policy.insert("when".to_owned(), MAY_RECOVER.into());
    }
    request.insert("retry".to_owned(), policy);
    request
}
