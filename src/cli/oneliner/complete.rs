//! How `paginate` detects that pages are missing.
//! It compares the number of rows (items of the pages) with the total that the server reports. It also checks that
//! the only page really has no next page.

use super::file::{LOOK_OUTPUTS, to_file_expression};
use super::pages::{IS_PAGE, NextPage, Paging, SAME_PAGES};
use crate::cli::args::PaginateArgs;
use serde_json::{Map, Value, json};

/// Members of an answer that report the total number of rows.
const TOTALS: [&str; 13] = [
    "total",
    "total_count",
    "totalCount",
    "total_results",
    "totalResults",
    "total_items",
    "totalItems",
    "total_records",
    "totalRecords",
    "totalElements",
    "totalSize",
    "numFound",
    "['@odata.count']",
];

/// Members of an answer that report the total number of rows, or the number of rows of this page. So they are read last.
const COUNTS: [&str; 2] = ["count", "found"];

/// Members of the objects in [`PAGE_OBJECTS`] that report the total number of rows.
const PAGE_TOTALS: [&str; 4] = ["total", "total_count", "totalCount", "totalElements"];

/// The objects of an answer that describe its page.
const PAGE_OBJECTS: [&str; 4] = ["meta", "pagination", "page", "paging"];

/// Headers that report the total number of rows.
const TOTAL_HEADERS: [&str; 3] = ["x-total-count", "x-total", "x-wp-total"];

/// Members that report whether there is another page.
const MORE: [&str; 8] = [
    "has_more",
    "hasMore",
    "has_next",
    "hasNext",
    "more",
    "isTruncated",
    "IsTruncated",
    "incomplete_results",
];

/// Members that report whether it is the last page.
const LAST: [&str; 4] = ["last", "isLast", "is_last", "isLastPage"];

/// Members that report the number of pages.
const PAGES: [&str; 4] = ["total_pages", "totalPages", "page_count", "pageCount"];

/// Headers that report the number of pages.
const PAGES_HEADERS: [&str; 2] = ["x-total-pages", "x-wp-totalpages"];

/// Members that lead to a next page. They are compared in lower case and without `_`, `-` and `@odata.`.
const CURSORS: [&str; 25] = [
    "next",
    "nextpage",
    "nextlink",
    "nexturl",
    "nexturi",
    "nexthref",
    "nextcursor",
    "nexttoken",
    "nextpagetoken",
    "nextpageurl",
    "nextpagelink",
    "nextpagecursor",
    "nextmarker",
    "nextcontinuationtoken",
    "nextrecordsurl",
    "nextoffset",
    "continuationtoken",
    "continuation",
    "continue",
    "paginationtoken",
    "endcursor",
    "xnextpage",
    "lastevaluatedkey",
    "scrollid",
    "cursor",
];

/// Objects of an answer that can have the members in [`CURSORS`].
const CURSOR_OBJECTS: [&str; 11] = [
    "links",
    "_links",
    "meta",
    "metadata",
    "response_metadata",
    "pagination",
    "paging",
    "page",
    "page_info",
    "pageInfo",
    "cursors",
];

/// Where the total number of rows is found.
pub(super) enum Total {
    /// In the usual members and headers.
    Usual,
    /// In the expression of `--total`.
    Expression(String),
    /// Nowhere: the total is not compared.
    Ignored,
}

impl Total {
    pub(super) fn of(args: &PaginateArgs, paging: &Paging) -> Result<Self, String> {
        match args.total.as_deref() {
            Some("none") => Ok(Self::Ignored),
            Some(_) if paging.begins_later => Err(String::from(
                "`--total` counts from the first page, and the address begins with a later one",
            )),
            Some(expression) => Ok(Self::Expression(to_file_expression(expression))),
            None if paging.begins_later || args.end.is_some() => Ok(Self::Ignored),
            None => Ok(Self::Usual),
        }
    }

    /// Returns the template that sets `variables.at.total` after a page. A refusal does not change it.
    pub(super) fn expression(&self) -> Value {
        match self {
            Self::Ignored => Value::Null,
            // -1 is not a number of rows.
            Self::Expression(total) => format!("{{{{ ({total}) | int(-1) }}}}").into(),
            Self::Usual => {
                let total = usual_total();
                format!("{{{{ ({total}) if {IS_PAGE} else variables.at.total }}}}").into()
            }
        }
    }

    /// Returns the expression for the number of the next page.
    /// It is `step`, or none after the last page. `rows` is the number of rows of this page. `seen` is how many of
    /// them the total counts.
    pub(super) fn next_number(&self, step: &str, rows: &str, seen: &str, has_end: bool) -> String {
        // After this number of empty pages in a row, no more rows are expected.
        let few = format!("variables.at.empty < {}", SAME_PAGES - 1);
        let more = match self {
            // With `--end`, only the condition of this flag ends the pages.
            _ if has_end => return format!("{{{{ {step} }}}}"),
            Self::Ignored => rows.to_owned(),
            // A page before the last one can be empty, because some servers filter the rows after dividing them into
            // pages.
            Self::Usual => {
                format!("({rows}) or ((variables.at.total or 0) > variables.at.seen and {few})")
            }
            Self::Expression(total) => {
                format!(
                    "variables.at.seen + {seen} < (({total}) | int(-1)) and (({rows}) or {few})"
                )
            }
        };
        format!("{{{{ {step} if {more} else none }}}}")
    }

    /// Returns actions that run after the last page. They fail the run if rows are missing.
    pub(super) fn check(&self) -> Map<String, Value> {
        let (at, note) = ("variables.at", "--total none accepts what the pages had");
        let message = format!(
            "the server reports {{{{ {at}.total }}}} rows, and its pages had {{{{ {at}.seen }}}}; {note}"
        );
        let wrong = match self {
            Self::Ignored => return Map::new(),
            Self::Usual => format!("{at}.total is not none and {at}.seen < {at}.total"),
            Self::Expression(_) => format!("{at}.seen != {at}.total"),
        };
        let mut checks = Map::new();
        if matches!(self, Self::Expression(_)) {
            let check = fail_if(
                "total_is_not_a_number",
                &format!("{at}.total < 0"),
                "`--total` is not a number of rows: it is an expression such as body.total",
            );
            checks.insert("check_number".to_owned(), check);
        }
        checks.insert(
            "check_total".to_owned(),
            fail_if("rows_are_missing", &wrong, &message),
        );
        if matches!(self, Self::Usual) {
            let objects = PAGE_OBJECTS.iter().map(|object| page_object(object));
            let places = [answer()].into_iter().chain(objects);
            let places: Vec<String> = places.collect();
            let listed = |names: &[&str]| {
                let members = places
                    .iter()
                    .flat_map(|place| names.iter().map(move |name| format!("{place}.{name}")));
                members.collect::<Vec<_>>().join(", ")
            };
            let pages = PAGES_HEADERS
                .map(|name| format!(", {LOOK_OUTPUTS}.headers['{name}']"))
                .concat();
            let pages = numbers(&format!("{}{pages}", listed(&PAGES)));
            let more = format!(
                "true in [{}] or 'true' in [{}] or [{}] | select('false') | list | length > 0 \
                 or actions.pages.outputs.iterations < ({pages} | max)",
                listed(&MORE),
                listed(&MORE),
                listed(&LAST),
            );
            let message = format!(
                "the last page reports that there are more, and nothing leads there; {note}"
            );
            checks.insert(
                "check_more".to_owned(),
                fail_if("pages_are_missing", &more, &message),
            );
        }
        checks
    }
}

/// Returns an action that fails the run if the condition is true.
pub(super) fn fail_if(name: &str, condition: &str, message: &str) -> Value {
    json!({
        "type": "if",
        "condition": condition,
        "actions": { name: { "type": "terminate", "inputs": {
            "runStatus": "Failed",
            "runError": { "code": "incomplete", "message": message },
        } } },
    })
}

/// Returns the expression for the body of an answer. It is an empty object if the answer has no body.
fn answer() -> String {
    format!("({LOOK_OUTPUTS}.body or {{}})")
}

/// Returns the expression for an object in the body of an answer. It is an empty object if the object is missing.
fn page_object(name: &str) -> String {
    format!("(({}.{name} | default({{}})) or {{}})", answer())
}

/// Returns the expression for a list of numbers.
/// Some of the values may be text. A value that is not a number counts as 0.
fn numbers(values: &str) -> String {
    format!("[{values}] | map('default', 0) | map('int') | list")
}

fn usual_total() -> String {
    let member = |at: &str, name: &str| match name.starts_with('[') {
        true => format!("{at}{name}"),
        false => format!("{at}.{name}"),
    };
    let members = |names: &'static [&'static str]| {
        let names = names.iter();
        names.map(move |name| member(&answer(), name))
    };
    let objects = PAGE_OBJECTS.iter().flat_map(|object| {
        let object = page_object(object);
        PAGE_TOTALS.map(|name| format!("{object}.{name}"))
    });
    let hits = page_object("hits");
    let hits = [
        format!("{hits}.total"),
        format!("(({hits}.total | default({{}})) or {{}}).value"),
    ];
    let headers = TOTAL_HEADERS.map(|name| format!("{LOOK_OUTPUTS}.headers['{name}']"));
    // A range such as `items 0-24/1000` contains the total. A range of bytes does not.
    let range = format!("({LOOK_OUTPUTS}.headers['content-range'] | default('bytes'))");
    let range = format!("'' if {range}.startswith('bytes') else ({range}.split('/') | last)");
    let all: Vec<String> = members(&TOTALS)
        .chain(objects)
        .chain(hits)
        .chain(headers)
        .chain([range])
        .chain(members(&COUNTS))
        .collect();
    format!(
        "{} | select('gt', 0) | first | default(variables.at.total)",
        numbers(&all.join(", "))
    )
}

/// Returns what `--next` reads from a page, in the form for messages.
pub(super) fn shown_next(given: &str) -> String {
    match given {
        "link" => "header `Link` with a next page".to_owned(),
        expression => format!("`{expression}`"),
    }
}

/// Returns an action after the last page that detects a misspelt `--next`. It fails the run if there is only one page,
/// this page lacks what `--next` reads, and it has a member that usually leads to a next page.
pub(super) fn misspelt_next(next: &NextPage, given: &str) -> Option<(String, Value)> {
    let missing = match next {
        NextPage::Page | NextPage::Offset => return None,
        NextPage::Link => format!("not ({LOOK_OUTPUTS}.get('links') or {{}}).get('next')"),
        NextPage::Expression(expression) => missing_member(expression)?,
    };
    let shown = shown_next(given);
    let within = CURSOR_OBJECTS.map(|name| format!(", ['.{name}', at.{name}]"));
    let within = within.concat();
    let known = CURSORS.map(|name| format!("'{name}'")).join(", ");
    let names = format!(
        "{{% for place, at in [['body', {LOOK_OUTPUTS}.body], ['headers', {LOOK_OUTPUTS}.headers], \
         ['links', {LOOK_OUTPUTS}.get('links')]] if at is mapping %}}\
         {{% for inner, object in [['', at]{within}] if object is mapping %}}\
         {{% for name, value in object | items if value and \
         (name | lower | replace('_', '') | replace('-', '') | replace('@odata.', '')) in [{known}] %}}\
         `{{{{ place }}}}{{{{ inner }}}}.{{{{ name }}}}` {{% endfor %}}{{% endfor %}}{{% endfor %}}"
    );
    let message = format!(
        "page 1 has no {shown}, but it has {{{{ actions.other_next.outputs }}}}which usually leads to the next page: \
         correct --next"
    );
    let check = json!({
        "type": "if",
        "condition": format!("actions.pages.outputs.iterations == 1 and {missing}"),
        "actions": {
            "other_next": { "type": "compose", "inputs": names },
            "check_other": fail_if("next_is_misspelt", "actions.other_next.outputs != ''", &message),
        },
    });
    Some(("check_next".to_owned(), check))
}

/// Returns an action after the last page that detects a header `Link` with a next page that cannot be read.
pub(super) fn unreadable_link(next: &NextPage) -> Option<(String, Value)> {
    if *next != NextPage::Link {
        return None;
    }
    let text = format!("({LOOK_OUTPUTS}.headers.link | default(''))");
    let condition = format!("'next' in {text} | lower and not {LOOK_OUTPUTS}.get('links')");
    let message = format!(
        "the header `Link` of the last page names a next page, and cannot be read: {{{{ {text} }}}}"
    );
    let check = fail_if("link_is_invalid", &condition, &message);
    Some(("check_link".to_owned(), check))
}

/// Returns the condition that holds if the last member of a path is missing and not just null.
/// Returns `None` if the expression is not a path.
pub(super) fn missing_member(expression: &str) -> Option<String> {
    let mut rest = expression.strip_prefix(LOOK_OUTPUTS)?;
    let mut out = LOOK_OUTPUTS.to_owned();
    while !rest.is_empty() {
        let (member, after) = first_member(rest)?;
        out = match out == LOOK_OUTPUTS {
            true => out + member,
            false => format!("({out} | default({{}})){member}"),
        };
        // The method `get` returns none for a missing member.
        if let Some(name) = member.strip_prefix(".get(") {
            let object = out.strip_suffix(member)?;
            out = format!("{object}[{}]", name.strip_suffix(')')?);
        }
        rest = after;
    }
    (out != LOOK_OUTPUTS).then(|| format!("{out} is undefined"))
}

/// Splits a path after its first member: `.name`, `[0]`, `['name']` or `.get('name')`.
fn first_member(path: &str) -> Option<(&str, &str)> {
    let quoted = |text: &str| {
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let end = text.get(1..)?.find([quote, '\\'])?;
        text.get(end + 1..)?.starts_with(quote).then_some(end + 2)
    };
    let length = if let Some(text) = path.strip_prefix(".get(") {
        let end = quoted(text)?;
        text.get(end..)?.starts_with(')').then_some(5 + end + 1)?
    } else if let Some(text) = path.strip_prefix('[') {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let end = if digits > 0 { digits } else { quoted(text)? };
        text.get(end..)?.starts_with(']').then_some(1 + end + 1)?
    } else {
        let name = path.strip_prefix('.')?;
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let end = end.unwrap_or(name.len());
        // Other methods are not a path.
        let is_call = name.get(end..)?.starts_with('(');
        (end > 0 && !is_call).then_some(1 + end)?
    };
    path.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::missing_member;

    #[test]
    fn missing_member_is_checked_at_any_depth() {
        let look = "actions.look.outputs";
        for (path, expected) in [
            (
                ".body.next",
                "(actions.look.outputs.body | default({})).next is undefined",
            ),
            (
                ".body.links[0].href",
                "(((actions.look.outputs.body | default({})).links | default({}))[0] | default({})).href is undefined",
            ),
            (
                ".body['@odata.nextLink']",
                "(actions.look.outputs.body | default({}))['@odata.nextLink'] is undefined",
            ),
            (
                ".body.get(\"next\")",
                "(actions.look.outputs.body | default({}))[\"next\"] is undefined",
            ),
        ] {
            assert_eq!(
                missing_member(&format!("{look}{path}")).as_deref(),
                Some(expected)
            );
        }
        for other in [
            ".body.next or ''",
            ".body.next.strip()",
            ".body['a' ~ 'b']",
            "",
        ] {
            assert_eq!(missing_member(&format!("{look}{other}")), None, "{other}");
        }
    }
}
