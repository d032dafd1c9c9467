//! `windlass paginate` with unusual servers, and what it refuses to report as complete.

use crate::life::first_use::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Status, headers and body for a path with its query. If the headers have a content type, a text is the body as it is.
pub(super) type Answer = (u16, Vec<(&'static str, String)>, Value);

/// A server on its own port; returns its address and the requested paths.
pub(super) fn serve(
    mut answer: impl FnMut(&str) -> Answer + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
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
            let has_type = headers.iter().any(|(name, _)| *name == "content-type");
            let body = match body {
                Value::String(text) if has_type => text,
                body => body.to_string(),
            };
            let kind = if has_type {
                ""
            } else {
                "content-type: application/json\r\n"
            };
            let headers: String = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .collect();
            // A killed client has disconnected.
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\n{kind}{headers}\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (base, requested)
}

pub(super) fn rows(ids: impl Iterator<Item = usize>) -> Vec<Value> {
    ids.map(|id| json!({ "id": id })).collect()
}

pub(super) fn lines(ids: impl Iterator<Item = usize>) -> String {
    ids.map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

pub(super) fn number(path: &str, name: &str) -> Option<usize> {
    let (_, rest) = path.split_once(&format!("{name}="))?;
    rest.split('&').next()?.parse().ok()
}

const ITEMS: [&str; 4] = ["--items", "body.items", "--to", "rows"];

#[test]
fn relative_next_address_starts_from_the_page_that_named_it() {
    let folder = Folder::new();
    // `/a` leads to another folder, and further links are relative to that folder; `/moved` redirects to it.
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
    // The same in a file that has no keys for it.
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
        let printed = folder.run(&line).left(
            1,
            &[
                "`body.next_cursor`",
                "`body.meta.nextPageToken`",
                "correct --next",
            ],
        );
        assert!(!folder.path().join("rows").exists(), "{printed:?}");
    }
    // A single page without such a member is complete.
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
    // A page whose member is null is complete as well.
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

/// 30 rows in pages of 10; the second page is empty. The answers report the total number of rows.
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
    // Missing rows are reported.
    let (base, _) = serve(hole(json!(3000)));
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    let messages = ["the server reports 3000 rows, and its pages had 20"];
    folder.run(&line).left(1, &messages);
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
        let messages = [
            "the server reports 5 rows, and its pages had 2",
            "--total none",
        ];
        folder.run(&line).left(1, &messages);
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
fn empty_pages_before_the_total_end_with_the_number_of_missing_rows() {
    let folder = Folder::new();
    let (base, requested) = serve(|path| {
        let page = number(path, "page").unwrap_or(1);
        let items = match page {
            1 | 2 => rows((page - 1) * 100..page * 100),
            _ => rows(0..0),
        };
        (200, vec![], json!({ "items": items, "total": 300 }))
    });
    for total in [&[][..], &["--total", "body.total"]] {
        let mut line = vec!["paginate", &base, "--next", "page"];
        line.extend(total);
        line.extend(ITEMS);
        let messages = ["the server reports 300 rows, and its pages had 200"];
        folder.run(&line).left(1, &messages);
        let requests = std::mem::take(&mut *requested.lock().unwrap());
        assert_eq!(requests.len(), 5, "{requests:?}");
    }
}

#[test]
fn given_total_ends_the_pages_and_must_be_exact() {
    let folder = Folder::new();
    // This server fails after the last page.
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
    let printed = folder.run(&line).left(4, &["`body.done` never appeared"]);
    assert!(!printed.err.contains("actions.look"), "{printed:?}");
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
    let unfinished = poll("body.done ==").left(2, &["unexpected end", place]);
    assert!(!unfinished.err.contains("actions.look"), "{unfinished:?}");
    poll("body.a | nofilter").left(2, &["unknown filter `nofilter`", "--until:1:10"]);
    let unknown = poll("bodi.done").left(2, &["--until:1:1", "can read exitCode, stdout"]);
    assert!(!unknown.err.contains("templates read"), "{unknown:?}");
    let line = [
        "paginate",
        "http://127.0.0.1:1/",
        "--to",
        "f",
        "--next",
        "body.next |",
    ];
    let next = folder.run(&line).left(2, &["unexpected end", "--next:1:"]);
    assert!(!next.err.contains("actions.look"), "{next:?}");
    let of_request = poll("exitCode == 0 and statusCode == 1").left(2, &["--until:1:19"]);
    assert!(of_request.err.contains("`statusCode`"), "{of_request:?}");
    for next in ["bdy.next", "variables['q']", "loop.idx", "inputs.x"] {
        let line = [
            "paginate",
            "http://127.0.0.1:1/",
            "--to",
            "f",
            "--next",
            next,
        ];
        folder
            .run(&line)
            .left(2, &["--next:1:1", "can read body, statusCode, headers"]);
    }
    for (flag, given) in [
        ("--param", ""),
        ("--columns", "id,,name"),
        ("--columns", "id,id"),
    ] {
        let line = [
            "paginate",
            "http://127.0.0.1:1/",
            "--to",
            "f.csv",
            "--next",
            "page",
            flag,
            given,
        ];
        folder.run(&line).left(2, &[flag]);
    }
    for command in ["paginate", "operation"] {
        let line = [command, "http://127.0.0.1:1/", "--timeout", "0s"];
        folder
            .run(&line)
            .left(2, &["--timeout", "must be above zero"]);
    }
    let operation = ["operation", "http://127.0.0.1:1/"];
    for (flag, given, place) in [
        ("--method", "GOT", "--method:1:1"),
        ("--done", "body.a ==", "--done:1:8"),
        ("--failed", "body.a=1", "--failed:1:7"),
        ("--status-url", "{{ body.x", "--status-url:1:8"),
        ("--result", "@body(", "--result:1:7"),
    ] {
        let line = [&operation[..], &[flag, given]].concat();
        let shown = folder.run(&line).left(2, &[place]);
        assert!(!shown.err.contains("operation.status"), "{shown:?}");
    }
    let key = [
        "paginate",
        "http://127.0.0.1:1/",
        "--to",
        "f",
        "--key",
        "a,,b",
    ];
    folder.run(&key).left(2, &["--key:1:2"]);
    // Several actions of the file have it.
    let items = [
        "paginate",
        "http://127.0.0.1:1/",
        "--to",
        "f",
        "--items",
        "bodi.a",
    ];
    let items = folder
        .run(&items)
        .left(2, &["nothing here is called `bodi`"]);
    assert_eq!(items.err.matches("`bodi`").count(), 1, "{items:?}");
    let url = ["poll", "http://127.0.0.1:1/", "--until", "body.done"];
    folder
        .run(&url)
        .left(2, &["tip: write `--url http://127.0.0.1:1/`"]);
}

/// A next address that is read with a misspelt subscript looks like the last page.
#[test]
fn a_misspelt_subscript_of_next_fails_the_run() {
    let folder = Folder::new();
    let (base, _) = serve(|path| match number(path, "page") {
        Some(_) => (200, vec![], json!({ "items": rows(3..6) })),
        None => (
            200,
            vec![],
            json!({ "items": rows(0..3), "@odata.nextLink": "/?page=2" }),
        ),
    });
    for next in [
        "body['nextLink']",
        "body[\"@odata.nextlink\"]",
        "body.get('nextLink')",
        "headers['x-next']",
    ] {
        let mut line = vec!["paginate", &base, "--next", next];
        line.extend(ITEMS);
        folder
            .run(&line)
            .left(1, &["page 1 has no", "correct --next"]);
    }
    let mut line = vec!["paginate", &base, "--next", "body['@odata.nextLink']"];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..6));
}

#[test]
fn what_is_not_a_list_of_rows_is_refused_in_the_words_of_the_line() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!({ "items": { "0": "a" }, "next": null })));
    let mut line = vec!["paginate", &base];
    line.extend(ITEMS);
    let printed = folder
        .run(&line)
        .left(1, &["`--items` must be the list of rows", "body.items"]);
    assert!(!printed.err.contains("`rows`"), "{printed:?}");
}

#[test]
fn an_error_behind_the_known_total_is_the_end() {
    let folder = Folder::new();
    // A server that refuses the page after the last one with an HTML page.
    for (status, total, requests) in [(404, 6, 3), (416, 6, 3), (500, 6, 3), (500, 5, 2)] {
        let (base, requested) = serve(move |path| match number(path, "page").unwrap_or(1) {
            page @ 1..=2 => {
                let items = rows((page - 1) * 3..total.min(page * 3));
                (200, vec![], json!({ "items": items, "total": total }))
            }
            _ => (status, vec![], json!("no such page")),
        });
        let mut line = vec!["paginate", &base, "--next", "page"];
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..total));
        // After a page that is shorter than the first one, nothing more is requested if all rows have been read.
        assert_eq!(requested.lock().unwrap().len(), requests, "{status}");
    }
    // A refusal before the total is reached is a failure.
    let (base, _) = serve(|path| match number(path, "page").unwrap_or(1) {
        1 => (200, vec![], json!({ "items": rows(0..3), "total": 6 })),
        _ => (404, vec![], json!("no such page")),
    });
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    folder.run(&line).left(1, &["404"]);
}

#[test]
fn an_expression_ends_the_pages() {
    let folder = Folder::new();
    // An empty page in the middle, no total, and an error after the last page.
    let (base, requested) = serve(|path| {
        let page = number(path, "page").unwrap_or(1);
        let items = match page {
            2 => vec![],
            page => rows((page - 1) * 2..page * 2),
        };
        // A text is not the end, whatever its content is.
        let last = match page {
            4 => json!(true),
            _ => json!("false"),
        };
        match page {
            1..=4 => (200, vec![], json!({ "items": items, "last": last })),
            _ => (500, vec![], json!(null)),
        }
    });
    let mut line = vec!["paginate", &base, "--next", "page", "--end", "body.last"];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines((0..2).chain(4..8)));
    assert_eq!(requested.lock().unwrap().len(), 4);
    line[5] = "@body('look').last";
    folder
        .run(&line)
        .left(2, &["`--end` is an expression without `@`"]);
}

#[test]
fn opaque_cursors_may_be_empty_or_the_same() {
    let folder = Folder::new();
    // The server has the state: each request gets the next page, and the cursor never changes.
    for cursor in ["", "next"] {
        let mut page = 0;
        let (base, _) = serve(move |_| {
            page += 1;
            let items = rows((page - 1) * 2..page * 2);
            match page {
                1..=4 => (200, vec![], json!({ "items": items, "cursor": cursor })),
                _ => (200, vec![], json!({ "items": items })),
            }
        });
        let next = [
            "--next",
            "body.cursor",
            "--param",
            "after",
            "--cursor",
            "opaque",
        ];
        let mut line = vec!["paginate", &base];
        line.extend(next);
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..10), "{cursor:?}");
    }
    // A server without a last page.
    let (base, requested) = serve(|_| (200, vec![], json!({ "items": rows(0..2), "cursor": "" })));
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "body.cursor",
        "--param",
        "after",
    ];
    line.extend(["--cursor", "opaque"]);
    line.extend(ITEMS);
    folder.run(&line).left(4, &["same"]);
    assert!(requested.lock().unwrap().len() <= 4);
    let wrong = ["paginate", &base, "--cursor", "opaque", "--to", "rows"];
    folder.run(&wrong).left(2, &["needs an expression"]);
}

#[test]
fn opaque_cursors_that_go_in_a_circle_fail() {
    let folder = Folder::new();
    // Pages A, B, A, B, …; the first page has no cursor.
    let (base, requested) = serve(|path| {
        let (items, cursor) = match path.split_once("after=") {
            Some((_, "A")) => (rows(2..4), "B"),
            _ => (rows(0..2), "A"),
        };
        (200, vec![], json!({ "items": items, "cursor": cursor }))
    });
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "body.cursor",
        "--param",
        "after",
        "--cursor",
        "opaque",
    ];
    line.extend(ITEMS);
    let ran = folder.run(&line);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("again: iteration"), "{ran:?}");
    assert!(requested.lock().unwrap().len() <= 8);
    // One cursor, and empty pages between the others: the server has the state.
    let mut page = 0;
    let (base, _) = serve(move |_| {
        page += 1;
        let items = rows(if page % 2 == 0 { 0..0 } else { page..page + 1 });
        let cursor = if page < 9 { json!("same") } else { json!(null) };
        (200, vec![], json!({ "items": items, "cursor": cursor }))
    });
    line[1] = &base;
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.lines("rows"), 5);
}

/// A command that prints its rows, in another process.
fn printing(folder: &Folder, base: &str, out: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["paginate", base, "--items", "body.items", "--to", "-"])
        .current_dir(folder.path())
        .env_remove("WINDLASS_STATE")
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn the_same_line_prints_its_rows_in_each_process_that_runs_it() {
    let folder = Folder::new();
    // The run ends after the second process has joined it.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (base, _) = serve(move |_| {
        let _ = receiver.recv();
        (200, vec![], json!({ "items": rows(0..20_000) }))
    });
    let first = printing(&folder, &base, Stdio::piped());
    let waits = || loop {
        let listed = folder.run(&["list", "-o", "json"]);
        if listed.out.contains("\"Running\"") {
            return;
        }
    };
    waits();
    let mut second = printing(&folder, &base, Stdio::piped());
    // The second process names the run that it follows.
    let mut stderr_lines = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("resuming paginate-") {
        line.clear();
        assert_ne!(
            stderr_lines.read_line(&mut line).unwrap(),
            0,
            "it has ended"
        );
    }
    drop(sender);
    let first = std::thread::spawn(move || first.wait_with_output().unwrap());
    for output in [second.wait_with_output().unwrap(), first.join().unwrap()] {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        assert_eq!(output.stdout, lines(0..20_000).as_bytes(), "{stderr}");
    }
    let rows = std::fs::read_dir(folder.path().join("state/rows")).unwrap();
    let left: Vec<_> = rows.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, [".lock"]);
}

#[test]
fn rows_that_are_not_printed_are_retained_with_their_run() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (200, vec![], json!({ "items": rows(0..20_000) })));
    let rows = folder.path().join("state/rows");
    let left = || {
        let left = std::fs::read_dir(&rows).unwrap();
        let left = left.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<String> = left.filter(|name| name != ".lock").collect();
        left.sort_unstable();
        left
    };
    let full = std::fs::File::options().write(true).open("/dev/full");
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let outputs = [
        (
            full.unwrap().into(),
            Some(1),
            "error: standard output cannot be written",
        ),
        (
            closed.into(),
            Some(0),
            "note: the output was closed before its end",
        ),
    ];
    for (number, (out, code, what)) in (1..).zip(outputs) {
        let printed = printing(&folder, &base, out).wait_with_output().unwrap();
        assert_eq!(printed.status.code(), code, "{printed:?}");
        let err = String::from_utf8_lossy(&printed.stderr).into_owned();
        let runs = left();
        assert_eq!(runs.len(), number, "{runs:?}");
        let path = rows.join(&runs[number - 1]).display().to_string();
        assert!(err.contains(what) && err.contains(&path), "{err}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), lines(0..20_000));
    }
    // A command that prints its rows removes only these.
    let printed = printing(&folder, &base, Stdio::null());
    assert!(printed.wait_with_output().unwrap().status.success());
    let runs = left();
    assert_eq!(runs.len(), 2, "{runs:?}");
    std::fs::write(rows.join("a.b.a.b.new"), "{}").unwrap();
    std::fs::write(rows.join("a.b~printed"), "").unwrap();
    folder.run(&["prune", "--keep", "3"]).left(0, &[]);
    assert_eq!(left(), runs);
    folder.run(&["prune", "--keep", "0"]).left(0, &[]);
    assert_eq!(left(), [""; 0]);
}

/// A list of 45 rows, ten per page, from a server that reports a count.
fn page_of_45(path: &str, name: &str, count: impl Fn(usize) -> Value) -> Answer {
    let page = number(path, name).unwrap_or(1);
    let rows = rows((page * 10 - 10).min(45)..(page * 10).min(45));
    let count = count(rows.len());
    (200, vec![], json!({ "count": count, "items": rows }))
}

#[test]
fn a_failure_after_what_only_looks_like_a_total_fails_the_run() {
    let folder = Folder::new();
    let failures = [
        (503, json!(null)),
        (429, json!(null)),
        (200, json!({ "items": [], "error": { "code": "timeout" } })),
        (200, json!({ "error": "try again" })),
    ];
    for (status, body) in failures {
        let mut has_failed = false;
        let (base, _) = serve(move |path| {
            if path.ends_with("page=3") && !std::mem::replace(&mut has_failed, true) {
                return (status, vec![], body.clone());
            }
            // The server reports the number of rows on the page.
            page_of_45(path, "page", |rows| rows.into())
        });
        let mut line = vec!["paginate", &base, "--next", "page"];
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..45), "{status}");
    }
}

#[test]
fn a_total_may_be_text_and_ends_the_pages() {
    let folder = Folder::new();
    let (base, requested) = serve(|path| page_of_45(path, "page", |_| json!("45")));
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..45));
    assert_eq!(requested.lock().unwrap().len(), 5);
    // Five rows are missing.
    let (base, _) = serve(|path| page_of_45(path, "page", |_| json!("50")));
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    let messages = ["the server reports 50 rows, and its pages had 45"];
    folder.run(&line).left(1, &messages);
}

#[test]
fn a_404_behind_a_page_is_the_end_and_one_instead_of_a_page_is_not() {
    let folder = Folder::new();
    let (base, _) = serve(|path| match number(path, "page") {
        Some(page) if page < 3 => (200, vec![], json!({ "items": rows(page..page + 1) })),
        _ => (404, vec![], json!({ "detail": "Invalid page." })),
    });
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    let note = "page 3 was answered with status 404, which counts as the end of the pages";
    let ran = folder.run(&line).left(0, &[note]);
    assert!(ran.out.contains(r#""last_status": 404"#), "{}", ran.out);
    assert_eq!(folder.read("rows"), lines(1..3));
    let first = format!("{base}/?page=7");
    let mut line = vec!["paginate", &first, "--next", "page"];
    line.extend(ITEMS);
    folder.run(&line).left(1, &["404"]);
}

#[test]
fn the_first_offset_of_scim_is_one() {
    let folder = Folder::new();
    let (base, _) = serve(|path| {
        let first = number(path, "startIndex").unwrap();
        let rows = rows((first - 1).min(5)..(first + 1).min(5));
        (200, vec![], json!({ "totalResults": 5, "items": rows }))
    });
    let mut line = vec![
        "paginate",
        &base,
        "--next",
        "offset",
        "--param",
        "startIndex",
    ];
    line.extend(ITEMS);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), lines(0..5));
}

#[test]
fn an_answer_without_a_body_is_no_page_and_no_end() {
    let folder = Folder::new();
    let mut was_empty = false;
    let (base, _) = serve(move |path| {
        if path.ends_with("page=3") && !std::mem::replace(&mut was_empty, true) {
            return (200, vec![], json!(null));
        }
        page_of_45(path, "page", |_| json!(null))
    });
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    folder
        .run(&line)
        .left(0, &["an attempt failed: the answer is not a page: null"]);
    assert_eq!(folder.read("rows"), lines(0..45));
}

#[test]
fn a_page_that_is_refused_fails_at_once_with_its_status() {
    let folder = Folder::new();
    let (base, requested) = serve(|path| match number(path, "page") {
        Some(2) => (401, vec![], json!({ "error": "expired" })),
        _ => page_of_45(path, "page", |_| json!(null)),
    });
    let mut line = vec!["paginate", &base, "--next", "page"];
    line.extend(ITEMS);
    let ran = folder.run(&line).left(1, &["answered 401", "expired"]);
    assert!(!ran.err.contains("statusCode"), "{}", ran.err);
    assert_eq!(requested.lock().unwrap().len(), 2);
}

#[test]
fn a_misspelt_list_of_a_numbered_page_is_named() {
    let folder = Folder::new();
    let (base, _) = serve(|path| page_of_45(path, "page", |_| json!(null)));
    let line = [
        "paginate",
        &base,
        "--next",
        "page",
        "--items",
        "body.itms",
        "--to",
        "rows",
    ];
    let ran = folder.run(&line).left(1, &["body.itms"]);
    assert!(!ran.err.contains("statusCode"), "{}", ran.err);
}

#[test]
fn a_number_that_only_looks_like_a_total_does_not_end_the_pages() {
    // The number of pages (jqGrid), the maximum number of rows of a page, and a total that was counted before a row was
    // added at the beginning.
    let added = vec![vec![6, 5], vec![5, 4], vec![3, 2], vec![1]];
    let pages = |count: usize| {
        (0..count)
            .map(|page| vec![2 * page, 2 * page + 1])
            .collect()
    };
    let cases: [(_, _, Vec<Vec<usize>>, _); 3] = [
        ("total", 4, pages(4), lines(0..8)),
        ("count", 4, pages(5), lines(0..10)),
        ("total", 6, added, lines((1..7).rev())),
    ];
    for (name, reported, pages, expected) in cases {
        for next in ["page", "offset"] {
            let folder = Folder::new();
            let pages = pages.clone();
            let (base, _) = serve(move |path| {
                let page = number(path, "page").or(number(path, "offset").map(|at| at / 2 + 1));
                let ids = pages
                    .get(page.unwrap_or(1) - 1)
                    .cloned()
                    .unwrap_or_default();
                (
                    200,
                    vec![],
                    json!({ name: reported, "items": rows(ids.into_iter()) }),
                )
            });
            let mut line = vec!["paginate", &base, "--next", next, "--key", "id"];
            line.extend(ITEMS);
            folder.run(&line).left(0, &[]);
            assert_eq!(folder.read("rows"), expected, "{name} {next}");
        }
    }
    // A server that repeats its last page, as it does for any number that is too large.
    for next in ["page", "offset"] {
        let folder = Folder::new();
        let (base, requested) = serve(move |path| {
            let page = number(path, "page").or(number(path, "offset").map(|at| at / 2 + 1));
            let first = 2 * (page.unwrap_or(1).min(3) - 1);
            (
                200,
                vec![],
                json!({ "total": 6, "items": rows(first..first + 2) }),
            )
        });
        let mut line = vec!["paginate", &base, "--next", next];
        line.extend(ITEMS);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), lines(0..6), "{next}");
        assert_eq!(requested.lock().unwrap().len(), 4, "{next}");
    }
    // A server that ignores the number of the page.
    for total in [2, 4, 6] {
        let folder = Folder::new();
        let (base, _) =
            serve(move |_| (200, vec![], json!({ "total": total, "items": rows(0..2) })));
        let mut line = vec!["paginate", &base, "--next", "page"];
        line.extend(ITEMS);
        folder.run(&line).left(4, &["same"]);
        assert!(!folder.path().join("rows").exists(), "{total}");
    }
}

#[test]
fn a_count_of_the_page_does_not_hide_the_total() {
    let folder = Folder::new();
    for name in ["count", "found"] {
        for in_header in [false, true] {
            let (base, _) = serve(move |_| {
                let mut body = json!({ name: 2, "items": rows(0..2) });
                let mut headers = vec![("x-total-count", "5".to_owned())];
                if !in_header {
                    body["meta"] = json!({ "total": 5 });
                    headers.clear();
                }
                (200, headers, body)
            });
            let mut line = vec!["paginate", &base, "--next", "body.next"];
            line.extend(ITEMS);
            let message = "the server reports 5 rows, and its pages had 2";
            folder.run(&line).left(1, &[message]);
        }
    }
}

#[test]
fn messages_name_the_flags_of_the_line() {
    let folder = Folder::new();
    let (base, _) = serve(|path| {
        let page = number(path, "page").unwrap_or(1);
        let mut row = json!({ "id": page });
        if page > 1 {
            row["new"] = json!(1);
        }
        (200, vec![], json!({ "items": [row], "total": null }))
    });
    let line = |more: [&'static str; 2]| {
        let mut line = vec!["paginate", &base, "--next", "page", "--items", "body.items"];
        line.extend(["--to", "rows.csv"]);
        line.extend(more);
        folder.run(&line)
    };
    line(["--times", "9"]).left(1, &["name all columns with `--columns`"]);
    for total in ["'x'", "body.total", "body.items"] {
        line(["--total", total]).left(1, &["`--total` is not a number of rows"]);
    }
    for flag in ["--timeout", "--every"] {
        line([flag, "99999999999d"]).left(2, &[flag, "the duration is too large"]);
    }
}
