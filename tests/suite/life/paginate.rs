//! `windlass paginate` against servers that are awkward, and what it refuses to call complete.

use crate::life::first_use::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Status, headers and body for a path with its query.
type Answer = (u16, Vec<(&'static str, String)>, Value);

/// A server on a port of its own; gives its address and the paths that were requested.
fn serve(answer: impl Fn(&str) -> Answer + Send + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let requested: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&requested);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            lines.read_line(&mut head).unwrap();
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let path = head.split(' ').nth(1).unwrap();
            log.lock().unwrap().push(path.to_owned());
            let (status, headers, body) = answer(path);
            let body = body.to_string();
            let headers: String = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .collect();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    (base, requested)
}

fn rows(ids: impl Iterator<Item = usize>) -> Vec<Value> {
    ids.map(|id| json!({ "id": id })).collect()
}

fn lines(ids: impl Iterator<Item = usize>) -> String {
    ids.map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

fn number(path: &str, name: &str) -> Option<usize> {
    let (_, rest) = path.split_once(&format!("{name}="))?;
    rest.split('&').next()?.parse().ok()
}

const ITEMS: [&str; 4] = ["--items", "body.items", "--to", "rows"];

#[test]
fn relative_next_address_starts_from_the_page_that_named_it() {
    let folder = Folder::new();
    // `/a` leads to another folder, and what follows is relative to that; `/moved` is a redirect to it.
    let (base, requested) = serve(|path| match path {
        "/a" => (
            200,
            vec![],
            json!({ "items": rows(0..1), "next": "b/list?page=2" }),
        ),
        "/moved" => (302, vec![("location", "/b/list".to_owned())], json!(null)),
        "/b/list" => (
            200,
            vec![],
            json!({ "items": rows(0..1), "next": "?page=2" }),
        ),
        "/b/list?page=2" => (
            200,
            vec![],
            json!({ "items": rows(1..2), "next": "?page=3" }),
        ),
        "/b/list?page=3" => (200, vec![], json!({ "items": rows(2..3), "next": "last" })),
        "/b/last" => (200, vec![], json!({ "items": rows(3..4), "next": null })),
        _ => (404, vec![], json!(null)),
    });
    for first in ["/a", "/moved"] {
        let url = format!("{base}{first}");
        let mut line = vec!["paginate", &url, "--next", "body.next"];
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(
            folder.read("rows"),
            lines(0..4),
            "{first}: {:?}",
            requested.lock().unwrap()
        );
    }
    // The same in a file, whose author writes nothing about it.
    let file = folder.file(
        "pages.yaml",
        format!(
            r#"
variables: {{ next: null, ids: [] }}
actions:
  pages:
    type: doUntil
    condition: "@equals(variables('next'), null)"
    page: "@variables('next')"
    limit: {{ count: 10 }}
    actions:
      get: {{ type: http, inputs: {{ uri: "{base}/a", page: "@variables('next')" }} }}
      keep: {{ type: setVariable, inputs: {{ name: ids, value: "@union(variables('ids'), body('get').items)" }} }}
      on: {{ type: setVariable, inputs: {{ name: next, value: "@body('get').next" }} }}
outputs: "@variables('ids')"
"#
        ),
    );
    let ran = folder.run(&["run", file.to_str().unwrap()]).left(0, &[]);
    let output: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(output, json!(rows(0..4)));
}

#[test]
fn misspelt_next_fails_if_another_member_leads_to_the_next_page() {
    let folder = Folder::new();
    let (base, _) = serve(|_| {
        let meta = json!({ "nextPageToken": "t" });
        (
            200,
            vec![],
            json!({ "items": rows(0..2), "next_cursor": "c", "meta": meta }),
        )
    });
    for next in ["body.nextcursor", "body.paging.next", "link"] {
        let mut line = vec!["paginate", &base, "--next", next];
        line.extend(ITEMS);
        let told = folder.run(&line).left(
            1,
            &[
                "`body.next_cursor`",
                "`body.meta.nextPageToken`",
                "correct --next",
            ],
        );
        assert!(!folder.path().join("rows").exists(), "{told:?}");
    }
    // A single page that has nothing of the kind is complete.
    let (base, _) = serve(|_| {
        (
            200,
            vec![],
            json!({ "items": rows(0..2), "nextSyncToken": "s" }),
        )
    });
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "body.nextPageToken",
        "--param",
        "token",
    ];
    line.extend(ITEMS);
    folder
        .run(&line)
        .left(0, &["it has no `body.nextPageToken`"]);
    // So is one whose member is null.
    let (base, _) = serve(|_| {
        (
            200,
            vec![],
            json!({ "items": rows(0..2), "next": null, "cursor": "c" }),
        )
    });
    let mut line = vec!["paginate", &base, "--next", "body.next"];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
}

/// 30 rows in pages of 10, of which the second is empty; the answers report how many rows there are.
fn hole(total: Value) -> impl Fn(&str) -> Answer + Send + 'static {
    move |path| {
        let page = number(path, "page").or(number(path, "offset").map(|offset| offset / 10 + 1));
        let items = match page.unwrap_or(1) {
            1 => rows(0..10),
            3 => rows(10..20),
            _ => Vec::new(),
        };
        (200, vec![], json!({ "items": items, "total": total }))
    }
}

#[test]
fn empty_page_in_the_middle_is_not_the_end_if_the_total_says_otherwise() {
    let folder = Folder::new();
    let (base, _) = serve(hole(json!(20)));
    for next in ["page", "offset"] {
        let mut line = vec!["paginate", &base, "--next", next];
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..20), "{next}");
    }
    // Rows that never arrive are not passed over in silence.
    let (base, _) = serve(hole(json!(3000)));
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    folder.run(&line).left(4, &["the same 3 times in a row"]);
    line.extend(["--total", "none"]);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..10));
}

#[test]
fn result_with_fewer_rows_than_the_server_reports_fails() {
    let folder = Folder::new();
    for (headers, body) in [
        (
            vec![],
            json!({ "items": rows(0..2), "total_count": 5, "next": null }),
        ),
        (
            vec![],
            json!({ "items": rows(0..2), "meta": { "total": 5 }, "next": null }),
        ),
        (
            vec![("x-total-count", "5".to_owned())],
            json!({ "items": rows(0..2), "next": null }),
        ),
    ] {
        let (base, _) = serve(move |_| (200, headers.clone(), body.clone()));
        let mut line = vec!["paginate", &base, "--next", "body.next"];
        line.extend(ITEMS);
        let told = [
            "the server reports 5 rows, and its pages had 2",
            "--total none",
        ];
        folder.run(&line).left(1, &told);
        assert!(!folder.path().join("rows").exists());
    }
    let (base, _) = serve(|_| {
        (
            200,
            vec![],
            json!({ "items": rows(0..2), "has_more": true, "next": "" }),
        )
    });
    let mut line = vec!["paginate", &base, "--next", "body.next"];
    line.extend(ITEMS);
    folder.run(&line).left(1, &["reports that there are more"]);
}

#[test]
fn given_total_ends_the_pages_and_must_be_exact() {
    let folder = Folder::new();
    // Beyond its end this server fails.
    let (base, requested) = serve(|path| match number(path, "offset").unwrap_or(0) {
        offset @ 0..25 => (
            200,
            vec![],
            json!({ "items": rows(offset..25.min(offset + 10)), "found": 25 }),
        ),
        _ => (500, vec![], json!(null)),
    });
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "offset",
        "--total",
        "body.found",
    ];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..25));
    assert_eq!(requested.lock().unwrap().len(), 3);
    let (base, _) = serve(|_| {
        (
            200,
            vec![],
            json!({ "items": rows(0..5), "found": 4, "next": null }),
        )
    });
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "body.next",
        "--total",
        "body.found",
    ];
    line.extend(ITEMS);
    folder
        .run(&line)
        .left(1, &["reports 4 rows, and its pages had 5"]);
    let mut line = vec![
        "paginate",
        "http://127.0.0.1:1/?page=3",
        "--next",
        "page",
        "--total",
        "body.found",
    ];
    line.extend(ITEMS);
    folder.run(&line).left(2, &["begins with a later one"]);
}

#[test]
fn messages_of_a_line_have_the_expressions_of_the_line() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!({ "state": "busy" })));
    let line = [
        "poll",
        "--url",
        &base,
        "--until",
        "body.done.at == 1",
        "--id",
        "poll-x",
        "--every",
        "10ms",
        "--times",
        "3",
    ];
    let told = folder.run(&line).left(4, &["`body.done` never appeared"]);
    assert!(!told.err.contains("actions.look"), "{told:?}");
    let status = folder.run(&["status", "poll-x"]).left(0, &[]).out;
    assert!(status.contains("body.done"), "{status}");
    assert!(!status.contains("actions.look"), "{status}");
    for command in [&["logs"][..], &["status"]] {
        let shown = folder.run(&[command, &["poll-x"]].concat()).left(0, &[]);
        assert!(!shown.out.contains("actions.look"), "{shown:?}");
    }
}

#[test]
fn mistakes_in_an_expression_are_shown_in_the_flag() {
    let folder = Folder::new();
    let poll = |until: &str| {
        let flags = [
            "poll",
            "--every",
            "10ms",
            "--times",
            "3",
            "--until",
            until,
            "--",
            "echo",
            "{\"a\": 1}",
        ];
        folder.run(&flags)
    };
    let missing = poll("body.done").left(4, &["`body.done` never appeared; `body`: it has a"]);
    assert!(!missing.err.contains("actions.look"), "{missing:?}");
    let place = " --> --until:1:11\n  |\n1 | body.done ==\n  |           ^^";
    let unfinished = poll("body.done ==").left(3, &["unexpected end", place]);
    assert!(!unfinished.err.contains("actions.look"), "{unfinished:?}");
    poll("body.a | nofilter").left(3, &["unknown filter `nofilter`", "--until:1:10"]);
    let unknown = poll("bodi.done").left(2, &["--until:1:1", "can read body, statusCode"]);
    assert!(!unknown.err.contains("templates read"), "{unknown:?}");
    let line = [
        "paginate",
        "http://127.0.0.1:1/",
        "--to",
        "f",
        "--next",
        "body.next |",
    ];
    let next = folder.run(&line).left(3, &["unexpected end", "--next:1:"]);
    assert!(!next.err.contains("actions.look"), "{next:?}");
}
