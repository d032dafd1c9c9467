//! The output of an action that reads pages (Logic Apps, "Get more data, items, or records by using pagination").
//! It is the first answer, with the rows (the items) of all pages in its body.

use super::{Name, Value};

/// Joins the pages to one answer.
/// `collected` has `first`, the answer of the first page, and `rows`, a list with the rows of each page. If there is
/// a single page, its answer is returned unchanged.
pub(super) fn joined(collected: &Value, links: &[Name]) -> Value {
    let first = collected.get("first").cloned().unwrap_or_default();
    let Value::Object(answer) = &first else {
        return first;
    };
    let mut answer = (**answer).clone();
    // `url` is removed, because the output in Logic Apps does not have it.
    answer.shift_remove("url");
    let pages = collected.get("rows").and_then(Value::as_array);
    let pages = pages.map(Vec::as_slice).unwrap_or_default();
    if let (Some(Value::Object(body)), [_, _, ..]) = (answer.get("body"), pages) {
        let rows = pages.iter().filter_map(Value::as_array).flatten().cloned();
        let mut body = (**body).clone();
        body.insert("value".into(), Value::array(rows.collect()));
        for link in links {
            body.shift_remove(link);
        }
        answer.insert("body".into(), Value::object(body));
    }
    Value::object(answer)
}
