//! `windlass paginate` with pages that lead to each other, and the file that it writes.

use crate::life::first_use::Folder;
use crate::life::paginate::{Answer, lines, number, rows, serve};
use serde_json::{Value, json};

/// Four pages that a header `Link` leads through, in this form.
fn linked(path: &str, link: impl Fn(usize) -> String) -> Answer {
    let page = number(path, "page").unwrap_or(1);
    let links = (page < 4).then(|| ("link", link(page + 1)));
    let rows = rows(page - 1..page);
    (200, links.into_iter().collect(), json!(rows))
}

fn usual(page: usize) -> String {
    format!("</?page={page}>; rel=\"next\"")
}

/// A proxy that has lost its server may answer without a body and without a link. Such an answer is not the last page.
#[test]
fn an_answer_without_a_body_is_requested_again() {
    for next in ["link", "headers['x-next']"] {
        let folder = Folder::new();
        let mut was_empty = false;
        let (base, _) = serve(move |path| {
            if path.ends_with("page=2") && !std::mem::replace(&mut was_empty, true) {
                return (200, vec![], json!(null));
            }
            let (status, mut headers, body) = linked(path, usual);
            if !headers.is_empty() {
                let page = number(path, "page").unwrap_or(1) + 1;
                headers.push(("x-next", format!("?page={page}")));
            }
            (status, headers, body)
        });
        let line = ["paginate", &base, "--next", next, "--to", "rows"];
        let again = "an attempt failed: the answer is not a page: null";
        folder.run(&line).left(0, &[again]);
        assert_eq!(folder.read("rows"), lines(0..4), "{next}");
    }
}

#[test]
fn a_page_may_have_the_status_204() {
    for items in ["body", "body.items", "(body or [])"] {
        for (empty, expected) in [("1", 0), ("3", 2)] {
            let folder = Folder::new();
            let (base, _) = serve(move |path| match number(path, "page").unwrap_or(1) {
                page if page.to_string() == empty => (204, vec![], json!(null)),
                _ => {
                    let (status, headers, body) = linked(path, usual);
                    let body = match items {
                        "body.items" => json!({ "items": body }),
                        _ => body,
                    };
                    (status, headers, body)
                }
            });
            let line = ["paginate", &base, "--items", items, "--to", "rows"];
            folder.run(&line).left(0, &[]);
            assert_eq!(folder.read("rows"), lines(0..expected), "{items}");
        }
    }
}

/// A first page that is not JSON is a wrong address, and `--items` may expect an answer without a body.
#[test]
fn what_another_attempt_does_not_correct_is_not_requested_again() {
    let folder = Folder::new();
    let html = || vec![("content-type", "text/html".to_owned())];
    let (base, requested) = serve(move |_| (200, html(), json!("<html>login</html>")));
    let line = ["paginate", &base, "--to", "rows"];
    let message = "the answer is not JSON: <html>login</html>";
    let ran = folder.run(&line).left(1, &[message, "iteration 1"]);
    assert!(!ran.err.contains("--items"), "{}", ran.err);
    assert_eq!(requested.lock().unwrap().len(), 1);
    let (base, requested) = serve(|_| (200, vec![], json!(null)));
    let line = ["paginate", &base, "--items", "body or []", "--to", "rows"];
    folder.run(&line).left(0, &[]);
    assert_eq!(requested.lock().unwrap().len(), 1);
}

/// A header `Link` without a next page ends the pages, whatever words it has.
#[test]
fn a_link_to_something_else_is_no_next_page() {
    for link in [
        "</a>; rel=\"next-archive\"",
        "</x?rel=next>; rel=\"prev\"",
        "</x>; rel=\"prev\"; title=\"next; rel=next\"",
    ] {
        let folder = Folder::new();
        let (base, _) = serve(move |_| (200, vec![("link", link.to_owned())], json!(rows(0..1))));
        folder
            .run(&["paginate", &base, "--to", "rows"])
            .left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..1), "{link}");
    }
}

#[test]
fn a_link_in_another_form_is_read_or_named() {
    let folder = Folder::new();
    let (base, _) = serve(|path| linked(path, |page| format!("</?page={page}>; rel='next'")));
    folder
        .run(&["paginate", &base, "--to", "rows"])
        .left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..4));
    let folder = Folder::new();
    let (base, _) = serve(|path| linked(path, |page| format!("/?page={page}; rel=\"next\"")));
    let named = "names a next page, and cannot be read: /?page=2; rel=\"next\"";
    folder
        .run(&["paginate", &base, "--to", "rows"])
        .left(1, &[named]);
}

#[test]
fn the_name_of_the_file_decides_its_format_and_is_no_template() {
    let folder = Folder::new();
    let (base, _) = serve(|path| linked(path, usual));
    folder
        .run(&["paginate", &base, "--to", "all.json"])
        .left(0, &[]);
    let all: Value = serde_json::from_str(&folder.read("all.json")).unwrap();
    assert_eq!(all, json!(rows(0..4)));
    let refused = "`--to` does not write `.gz`";
    folder
        .run(&["paginate", &base, "--to", "all.ndjson.gz"])
        .left(2, &[refused]);
    let name = "{{ 1 + 1 }}.ndjson";
    folder.run(&["paginate", &base, "--to", name]).left(0, &[]);
    assert_eq!(folder.read(name), lines(0..4));
}

#[test]
fn a_total_without_a_value_is_named() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!({ "items": rows(0..1) })));
    let mut line = vec!["paginate", &base, "--total", "body.tot"];
    line.extend(["--items", "body.items", "--to", "rows"]);
    let named = "`--total body.tot` has no value";
    folder.run(&line).left(1, &[named]);
}

#[test]
fn a_first_page_of_json_that_was_cut_is_requested_again() {
    let mut requests = 0;
    let (base, _) = serve(move |_| {
        requests += 1;
        let kind = |kind: &str| vec![("content-type", kind.to_owned())];
        match requests {
            1 => (200, kind("application/json"), json!("[{\"id\":0},{")),
            2 => (503, kind("text/html"), json!("<html>busy</html>")),
            _ => (200, vec![], json!(rows(0..2))),
        }
    });
    let folder = Folder::new();
    folder
        .run(&["paginate", &base, "--to", "rows"])
        .left(0, &["an attempt failed: the answer is not a page: [{"]);
    assert_eq!(folder.read("rows"), lines(0..2));
}

#[test]
fn a_deleted_file_is_not_reported_as_the_place_of_the_rows() {
    let folder = Folder::new();
    let path = folder.path().to_owned();
    let (base, _) = serve(move |request| {
        if request.ends_with("page=2") {
            let files = std::fs::read_dir(&path)
                .unwrap()
                .map(|file| file.unwrap().path());
            let new = files.filter(|file| file.extension().is_some_and(|end| end == "new"));
            new.for_each(|file| std::fs::remove_file(file).unwrap());
        }
        linked(request, usual)
    });
    let ran = folder
        .run(&["paginate", &base, "--to", "rows"])
        .left(1, &["is gone: this run left it with"]);
    assert!(!ran.err.contains("the new rows are in"), "{}", ran.err);
}
