//! Everyday tasks: polls that slow down, and loops written as one command line.

use crate::life::first_use::Folder;
use axum::http::Method;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// When each iteration began and ended, in milliseconds.
fn times(history: &Value) -> Vec<(i64, i64)> {
    let rows = history["iterations"].as_array().unwrap().iter();
    let at = |row: &Value, key: &str| {
        let text = row[key].as_str().unwrap();
        chrono::DateTime::parse_from_rfc3339(text)
            .unwrap()
            .timestamp_millis()
    };
    rows.map(|row| (at(row, "started_at"), at(row, "ended_at")))
        .collect()
}

#[test]
fn a_poll_that_backs_off_waits_longer_after_each_iteration() {
    let folder = Folder::new();
    let text = "
actions:
  poll:
    type: doUntil
    condition: variables.n == 5
    delay: { type: exponential, interval: 100ms, maxInterval: 400ms, jitter: none }
    actions: { count: { type: incrementVariable, name: n } }
variables: { n: 0 }
";
    let file = folder.file("w.yaml", text);
    let file = file.to_str().unwrap();
    let validated = folder.run(&["validate", file]).left(0, &[]);
    assert!(validated.out.contains("after 100ms, doubling up to 400ms"));
    folder.run(&["run", file, "--id", "r"]).left(0, &[]);
    let printed = folder.run(&["history", "r", "-o", "json"]).left(0, &[]);
    let times = times(&serde_json::from_str(&printed.out).unwrap());
    let waits: Vec<i64> = times.windows(2).map(|two| two[1].0 - two[0].1).collect();
    assert_eq!(waits.len(), 4, "{waits:?}");
    for (wait, least) in waits.iter().zip([100, 200, 400, 400]) {
        assert!(*wait >= least, "{waits:?}");
    }
}

/// Answers every path with `pages` pages of ten items; `/poll` is done at its fourth request.
fn serve(pages: usize) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let request_count = Arc::new(AtomicUsize::new(0));
    let (own, hits) = (base.clone(), Arc::clone(&request_count));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            lines.read_line(&mut head).unwrap();
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let number = hits.fetch_add(1, Ordering::SeqCst) + 1;
            let path = head.split(' ').nth(1).unwrap();
            let given = ["page=", "offset="].iter();
            let position = given
                .filter_map(|name| Some(path.split_once(name)?.1))
                .next();
            let position = position.unwrap_or("1");
            let page: usize = match path.contains("offset") {
                true => position.parse::<usize>().unwrap() / 10 + 1,
                false => position.parse().unwrap(),
            };
            let first = (page - 1) * 10;
            let items: Vec<Value> = match page <= pages {
                true => (first..first + 10).map(|id| json!({ "id": id })).collect(),
                false => Vec::new(),
            };
            let (mut body, mut link) = (json!({ "items": items, "asked": number }), String::new());
            if page == pages {
                body["links"] = json!([]);
            }
            if page > pages && path.contains("offset") {
                // Go encodes an empty list so.
                body["items"] = Value::Null;
            }
            if page < pages {
                let next = format!("{own}/next?page={}", page + 1);
                // RFC 8288 allows all of this.
                link = format!(
                    "link: <http://x/?f=a,b>; title=\"a, rel=next\"; rel=last, \
                     </next?page={}>; Rel = \"prefetch Next\"\r\n",
                    page + 1
                );
                body["next"] = json!(next);
                body["links"] = json!([{ "href": next }]);
                body["cursor"] = json!(page + 1);
            }
            if path == "/poll" {
                body = json!({ "status": if number > 3 { "done" } else { "running" } });
            }
            let mut body = body.to_string();
            let (mut status, mut kind) = ("200 OK", "application/json");
            match (path, number) {
                ("/poll", 1) => (body, kind) = (String::from("<p>Back soon</p>"), "text/html"),
                ("/ready", 1) => status = "404 Not Found",
                _ if path.starts_with("/text") => kind = "text/plain; charset=utf-8",
                _ if path.starts_with("/bytes") => kind = "application/octet-stream",
                _ => {}
            }
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{link}\
                 content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (base, request_count)
}

#[test]
fn a_poll_of_one_line_runs_until_its_command_succeeds() {
    let folder = Folder::new();
    let look = "echo x >> n; echo look $(wc -l < n); test $(wc -l < n) -gt 3";
    let line = ["poll", "--every", "20ms", "--", "sh", "-c", look];
    assert_eq!(folder.run(&line).left(0, &[]).out, "look 4\n");
    // The same command line starts a new run.
    folder.run(&line).left(0, &["-2"]);
    let look = "echo x >> m; echo \"{\\\"body\\\": $(wc -l < m)}\"; false";
    let until = "body.body == 3";
    let line = [
        "poll", "--every", "20ms", "--until", until, "--", "sh", "-c", look,
    ];
    assert_eq!(folder.run(&line).left(0, &[]).out, "{\"body\": 3}\n");
    let line = ["poll", "--every", "20ms", "--times", "2", "--", "false"];
    folder.run(&line).left(4, &["2 iterations"]);
    folder.run(&["poll"]).left(2, &["COMMAND"]);
    // A command line may exceed the limits that a file must respect.
    let line = [
        "poll",
        "--timeout",
        "90d",
        "--times",
        "9999999",
        "--",
        "true",
    ];
    folder.run(&line).left(0, &[]);
    let message = "it must begin with http:// or https://";
    folder
        .run(&["poll", "--url", "nowhere"])
        .left(2, &[message]);
    folder
        .run(&["paginate", "ftp://x/y", "--next", "link", "--to", "f"])
        .left(2, &[message]);
    let line = ["poll", "--every", "9s..5s", "--", "true"];
    folder
        .run(&line)
        .left(2, &["the longest interval must be last"]);
}

#[test]
fn words_of_a_command_are_no_expressions() {
    let folder = Folder::new();
    let words = [
        "@x",
        "@{x}",
        "a@{b}",
        "{{ x }}",
        "{% x %}",
        "@@y",
        "@",
        "$HOME",
        "@{x} 'is' {{ y }}",
        "{% raw %}@{x}{% endraw %}",
    ];
    let mut line = vec!["try", "--", "printf", "%s,"];
    line.extend(words);
    let printed = folder.run(&line).left(0, &[]);
    assert_eq!(
        printed.out.trim_end(),
        words.map(|word| format!("{word},")).concat()
    );
}

#[test]
fn what_a_command_gives_is_passed_on_as_it_is() {
    let folder = Folder::new();
    for text in ["id\tname\r\n", "x", "\u{1b}[1m\u{0}", ""] {
        let octal: String = text.bytes().map(|byte| format!("\\0{byte:03o}")).collect();
        let printed = folder.run(&["try", "--", "printf", "%b", &octal]);
        assert_eq!(printed.left(0, &[]).out, text);
    }
    let printed = folder.run(&["try", "--", "printf", "%b", "\\0377"]);
    printed.left(0, &["is not all UTF-8"]);
}

#[test]
fn a_try_of_one_line_stops_at_the_first_success_or_after_all_attempts() {
    let folder = Folder::new();
    let command = "echo x >> n; test $(wc -l < n) -gt 2 && wc -l < n";
    let line = [
        "try",
        "--exponential",
        "20ms..40ms",
        "--",
        "sh",
        "-c",
        command,
    ];
    assert_eq!(folder.run(&line).left(0, &[]).out.trim(), "3");
    let line = [
        "try",
        "--every",
        "20ms",
        "--times",
        "2",
        "--",
        "sh",
        "-c",
        "echo no >&2; exit 3",
    ];
    let messages = ["exit code 3: no", "at action `look` (try-sh"];
    folder.run(&line).left(1, &messages);
}

#[test]
fn a_poll_of_an_address_reads_its_answer() {
    let folder = Folder::new();
    let (base, requests) = serve(1);
    let url = format!("{base}/poll");
    let until = "body.status == 'done'";
    let line = [
        "poll",
        "--url",
        &url,
        "--until",
        until,
        "--every",
        "20ms..40ms",
    ];
    let printed = folder.run(&line).left(0, &[]);
    assert!(printed.out.contains("done"), "{printed:?}");
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 4);
}

#[test]
fn a_poll_of_an_address_without_an_expression_ends_when_it_answers() {
    let folder = Folder::new();
    let (base, requests) = serve(1);
    let url = format!("{base}/ready");
    let line = ["poll", "--url", &url, "--every", "20ms"];
    let printed = folder.run(&line).left(0, &[]);
    assert!(printed.out.contains("items"), "{printed:?}");
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 2);
    for (value, count) in [("Bearer x", 1), ("Bearer ${secret:TOKEN}", 0)] {
        let header = format!("authorization: {value}");
        let line = ["poll", "--url", &url, "-H", &header, "--print"];
        let stderr = folder.run(&line).left(0, &[]).err;
        assert_eq!(stderr.matches("${secret:NAME}").count(), count, "{stderr}");
    }
    let line = ["poll", "--url", &url, "--until", "items == 1"];
    let messages = [
        "nothing here is called `items`",
        "can read body, statusCode, headers",
    ];
    folder.run(&line).left(2, &messages);
    // An expression may read any status.
    let (base, requests) = serve(1);
    let url = format!("{base}/ready");
    let until = "statusCode == 200 and body.items";
    let line = ["poll", "--url", &url, "--every", "20ms", "--until", until];
    folder.run(&line).left(0, &[]);
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 2);
    // A job that does not exist yet is polled again.
    let (base, requests) = serve(1);
    let url = format!("{base}/ready");
    let line = [
        "poll",
        "--url",
        &url,
        "--every",
        "20ms",
        "--until",
        "body.items",
    ];
    folder.run(&line).left(0, &[]);
    assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[test]
fn pages_begin_where_the_address_says_and_end_when_they_stay_the_same() {
    let folder = Folder::new();
    let (base, _) = serve(12);
    let rows = |from: usize| {
        (from..120)
            .map(|id| format!("{{\"id\":{id}}}\n"))
            .collect::<String>()
    };
    let ways: [(&str, &[&str], usize); 5] = [
        ("page=3", &["--next", "page"], 20),
        ("x=1&pa%67e=%33", &["--next", "page"], 20),
        (
            "page=%34",
            &["--next", "body.cursor", "--param", "page"],
            30,
        ),
        ("offset=20&x=1", &["--next", "offset"], 20),
        ("page=4", &["--next", "body.cursor", "--param", "page"], 30),
    ];
    for (query, way, from) in ways {
        let url = format!("{base}/pages?{query}");
        let mut line = vec!["paginate", &url, "--items", "body.items", "--to", "rows"];
        line.extend(way);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read("rows"), rows(from), "{query}");
    }
    // A filter removes rows, and the next page is still read.
    let url = format!("{base}/pages");
    let without = "body.items | selectattr('id', 'ge', 20) | list";
    let line = [
        "paginate", &url, "--next", "page", "--items", without, "--to", "rows",
    ];
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("rows"), rows(20));
    let line = [
        "paginate",
        &url,
        "--next",
        "page",
        "--param",
        "seite",
        "--items",
        "body.items",
        "--to",
        "other",
    ];
    folder
        .run(&line)
        .left(4, &["gave the same 3 times in a row"]);
    let line = |next, items, to| {
        [
            "paginate", &url, "--next", next, "--items", items, "--to", to,
        ]
    };
    for (line, message) in [
        (line("offset", without, "rows"), "has a filter"),
        (
            line("Link", "body.items", "rows"),
            "it is link, page, offset, or",
        ),
        (line("page", "@body('look')", "rows"), "without `@`"),
        (
            line("page", "body.items", "/dev/stdout"),
            "the rows go to a file",
        ),
    ] {
        folder.run(&line).left(2, &[message]);
    }
    let line = [
        "paginate",
        &format!("{base}/pages?page=x"),
        "--next",
        "page",
        "--to",
        "rows",
    ];
    folder.run(&line).left(2, &["`page=x` is not a number"]);
}

#[test]
fn two_of_the_same_line_are_one_run_and_so_is_an_id_after_a_kill() {
    let folder = Folder::new();
    let slow = "echo x >> n; while ! test -e go; do sleep 0.02; done; echo done";
    let line = ["poll", "--id", "own", "--", "sh", "-c", slow];
    let mut child = folder.start(&line);
    folder.wait_for(|names| names.iter().any(|name| name == "n"));
    child.kill().unwrap();
    child.wait().unwrap();
    let same = ["try", "--", "sh", "-c", slow];
    let mut two = [(); 2].map(|()| folder.start(&same));
    std::fs::write(folder.path().join("go"), "").unwrap();
    assert!(two.iter_mut().all(|one| one.wait().unwrap().success()));
    assert_eq!(folder.run(&line).left(0, &["own"]).out, "done\n");
    folder.run(&line).left(2, &["there is a run own already"]);
}

#[test]
fn a_next_page_by_another_name_is_an_error_on_the_first_page() {
    let folder = Folder::new();
    let (base, _) = serve(3);
    // A missing name, and a missing parent of a name.
    for next in ["body.nxt", "body.paging.next"] {
        let mut line = vec!["paginate", &base, "--next", next];
        line.extend(["--items", "body.items", "--to", "rows.ndjson"]);
        let part = format!("page 1 has no `{next}`, but it has `body.next` ");
        folder.run(&line).left(1, &[&part]);
    }
}

#[test]
fn every_way_to_the_next_page_reads_every_row_once() {
    let folder = Folder::new();
    let (base, _) = serve(12);
    let expected: String = (0..120).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let ways: [&[&str]; 6] = [
        &["--next", "link"],
        &["--next", "body.next"],
        &["--next", "body.links[0].href"],
        &["--next", "body.cursor", "--param", "page"],
        &["--next", "page"],
        &["--next", "offset"],
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let (url, file) = (format!("{base}/{number}"), format!("{number}.ndjson"));
        let mut line = vec!["paginate", &url, "--items", "body.items", "--to", &file];
        line.extend(way);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read(&file), expected, "{way:?}");
    }
}

/// Some servers use another content type for JSON.
#[test]
fn json_by_another_name_is_json() {
    let folder = Folder::new();
    let (base, _) = serve(2);
    let rows: String = (0..20).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    for name in ["text", "bytes"] {
        let (url, file) = (format!("{base}/{name}"), format!("{name}.ndjson"));
        let mut line = vec!["paginate", &url, "--next", "page", "--to", &file];
        line.extend(["--items", "body.items"]);
        folder.run(&line).left(0, &[]);
        assert_eq!(folder.read(&file), rows);
        let line = ["poll", "--url", &url, "--until", "body.items[0].id == 0"];
        let printed = folder.run(&line).left(0, &[]);
        assert!(!printed.err.contains("an attempt failed"), "{printed:?}");
        let url = format!("{base}/{name}?page=1");
        let action = format!("{{ type: http, inputs: {{ uri: \"{url}\" }}, expect: json }}");
        let text = format!("actions: {{ a: {action} }}\noutputs: \"@body('a').items[1].id\"\n");
        folder.file("names.yaml", &text);
        let printed = folder.run(&["run", "names.yaml"]).left(0, &[]);
        assert_eq!(printed.out.trim(), "1");
    }
    // A text can be read as text.
    let url = format!("{base}/text");
    let mut line = vec!["paginate", &url, "--next", "page", "--to", "parsed.ndjson"];
    line.extend(["--items", "(body | fromjson)['items']"]);
    folder.run(&line).left(0, &[]);
    assert_eq!(folder.read("parsed.ndjson"), rows);
}

#[test]
fn the_same_line_after_a_kill_resumes() {
    let folder = Folder::new();
    let (base, _) = serve(60);
    let to = [
        "--items",
        "body.items",
        "--to",
        "rows.ndjson",
        "--every",
        "10ms",
    ];
    let mut line = vec!["paginate", &base, "--next", "body.next"];
    line.extend(to);
    for rows in [100, 300] {
        let mut child = folder.start(&line);
        // Until the end its file has another name.
        folder.wait_for(|names| {
            let grown =
                |name: &&String| name.starts_with("rows.ndjson.") && folder.lines(name) > rows;
            names.iter().any(|name| grown(&name))
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let printed = folder.run(&line).left(0, &["resuming paginate-"]);
    assert!(printed.out.contains("\"rows\": 600"), "{printed:?}");
    let expected: String = (0..600).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    assert_eq!(folder.read("rows.ndjson"), expected);
}

/// Answers each request with its own content. Returns the address, and all requests.
async fn serve_what_is_sent() -> (String, Arc<Mutex<Vec<String>>>) {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = Arc::clone(&sent);
    let answer = move |method: Method, body: String| {
        let all = Arc::clone(&all);
        async move {
            let request: Value = serde_json::from_str(&body).unwrap_or_default();
            all.lock().unwrap().push(format!("{method} {body}"));
            let page = &request["page"];
            let cursor = page["after"].as_u64().or(page.as_u64());
            let next = cursor.unwrap_or(0) + 1;
            let rows = if next < 4 { json!([next]) } else { json!([]) };
            let next = if next < 3 { json!(next) } else { Value::Null };
            axum::response::Json(json!({ "rows": rows, "cursor": next }))
        }
    };
    let router = axum::Router::new().fallback(answer);
    (crate::support::serve(router).await, sent)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_sends_data_and_pages_go_on_in_it() {
    let (base, sent) = serve_what_is_sent().await;
    let folder = Folder::new();
    let taken = || std::mem::take(&mut *sent.lock().unwrap());
    let line = [
        "poll",
        "--url",
        &base,
        "-d",
        r#"{"a":"@{b} {{c}}"}"#,
        "--until",
        "body.cursor == 1",
    ];
    folder.run(&line).left(0, &[]);
    assert_eq!(taken(), [r#"POST {"a":"@{b} {{c}}"}"#]);
    let line = ["poll", "--url", &base, "-d", "a=b"];
    folder.run(&line).left(0, &[]);
    assert_eq!(taken(), ["POST a=b"]);
    let cases = [
        // The first page is requested without a token.
        (
            "body.cursor",
            Some("page.after"),
            r#"{"page":{"size":1}}"#,
            [
                r#"POST {"page":{"size":1}}"#,
                r#"POST {"page":{"size":1,"after":1}}"#,
                r#"POST {"page":{"size":1,"after":2}}"#,
            ],
        ),
        (
            "page",
            None,
            r#"{"page":2}"#,
            [r#"POST {"page":2}"#, r#"POST {"page":3}"#, ""],
        ),
    ];
    for (next, param, data, expected) in cases {
        let mut line = vec![
            "paginate",
            &base,
            "-d",
            data,
            "--next",
            next,
            "--items",
            "body.rows",
        ];
        line.extend(["--to", "rows.ndjson"]);
        line.extend(param.into_iter().flat_map(|param| ["--param", param]));
        folder.run(&line).left(0, &[]);
        let expected: Vec<&str> = expected.into_iter().filter(|one| !one.is_empty()).collect();
        assert_eq!(taken(), expected);
    }
    for (data, param, message) in [
        (r#"{"a""#, "page", "`--data` is not valid JSON"),
        ("@file", "page", "does not name a file here"),
        (r#"{"a":"${secret:K}"}"#, "page", "send it in a header"),
        (
            r#"{"page":5}"#,
            "page.after",
            "`page` of `--data` is not an object",
        ),
        ("text", "page.after", "which is not an object"),
        (r#"{}"#, "page..after", "does not name a member"),
        (
            r#"{"n":12345678901234567890123}"#,
            "page",
            "12345678901234567890123",
        ),
    ] {
        let mut line = vec!["paginate", &base, "-d", data, "--next", "page"];
        line.extend(["--param", param, "--to", "rows.ndjson"]);
        folder.run(&line).left(2, &[message]);
    }
    assert_eq!(taken(), [""; 0]);
}

/// A server of pages that records its requests. The second page leads to the third by a relative address, the third to
/// `elsewhere`.
async fn serve_pages(elsewhere: Option<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = Arc::clone(&sent);
    let answer = move |method: Method, uri: axum::http::Uri, headers: axum::http::HeaderMap| {
        let (all, elsewhere) = (Arc::clone(&all), elsewhere.clone());
        async move {
            let header = |name: &str| {
                let values = headers.get_all(name).iter();
                let texts: Vec<&str> = values.map(|value| value.to_str().unwrap()).collect();
                texts.join("+")
            };
            let request = format!(
                "{method} {uri} {} {} {}",
                header("authorization"),
                header("x-one"),
                header("content-length")
            );
            all.lock().unwrap().push(request);
            let next = match uri.path() {
                "/a/1" => json!("2?x=y"),
                "/a/2" => elsewhere.map_or(Value::Null, Value::from),
                _ => Value::Null,
            };
            axum::response::Json(json!({ "rows": [uri.path()], "next": next }))
        }
    };
    let router = axum::Router::new().fallback(answer);
    (crate::support::serve(router).await, sent)
}

/// A page may name any other server as the next. That server gets neither headers, nor credentials, nor data.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_line_sends_stays_with_its_server() {
    let (other, others) = serve_pages(None).await;
    let (base, sent) = serve_pages(Some(format!("{other}/b"))).await;
    let folder = Folder::new();
    let start = format!("{}/a/1", base.replace("//", "//me:my%20word@"));
    let mut line = vec![
        "paginate",
        &start,
        "--next",
        "body.next",
        "--items",
        "body.rows",
    ];
    line.extend(["-H", "X-One: 1", "-H", "x-one: 2", "--to", "rows"]);
    let printed = folder.run(&line).left(0, &["the password in the URL"]);
    // Neither is a part of the run's id.
    assert!(
        printed.err.contains("run paginate-127.0.0.1-"),
        "{printed:?}"
    );
    assert_eq!(folder.lines("rows"), 3);
    let taken = || std::mem::take(&mut *sent.lock().unwrap());
    let basic = "Basic bWU6bXkgd29yZA==";
    let mine = [
        format!("GET /a/1 {basic} 1+2 "),
        format!("GET /a/2?x=y {basic} 1+2 "),
    ];
    assert_eq!(taken(), mine);
    assert_eq!(*others.lock().unwrap(), ["GET /b   "]);
    line.extend(["--data", ""]);
    folder
        .run(&line)
        .left(1, &["the next page is at another server"]);
    let mine = mine.map(|one| format!("{}0", one.replace("GET", "POST")));
    assert_eq!(taken(), mine);
    assert_eq!(others.lock().unwrap().len(), 1);
}

/// A command without a terminal reports why it waits, and repeats the same reason once a minute.
#[test]
fn a_failed_attempt_of_a_line_is_reported() {
    let folder = Folder::new();
    let mut line = vec!["try", "--every", "10ms", "--times", "4", "--"];
    line.extend(["sh", "-c", "exit 3"]);
    let printed = folder.run(&line).left(
        1,
        &["an attempt failed: the command ended with exit code 3"],
    );
    assert_eq!(
        printed.err.matches("an attempt failed").count(),
        1,
        "{printed:?}"
    );
}

/// Two stores draw different values for the same run, and each draws the same values after a restart.
#[test]
fn a_guid_is_of_its_store_and_survives_a_restart() {
    let draw = || {
        let folder = Folder::new();
        folder.file(
            "w.yaml",
            "actions:
  drawn: { type: compose, inputs: \"@guid()\" }
  rest: { type: waitForSignal, inputs: { signal: go } }
outputs: \"@outputs('drawn')\"
",
        );
        let mut run = folder.start(&["run", "w.yaml", "--id", "r"]);
        while !folder.run(&["status", "r"]).out.contains("rest") {}
        run.kill().unwrap();
        run.wait().unwrap();
        folder.run(&["signal", "r", "go"]).left(0, &[]);
        let drawn = folder.run(&["resume", "r"]).left(0, &[]).out;
        let again = folder.run(&["status", "r", "-o", "json"]).left(0, &[]).out;
        assert!(again.contains(drawn.trim()), "{again}");
        drawn
    };
    assert_ne!(draw(), draw());
}

#[test]
fn listed_statuses_and_exit_codes_are_not_faults() {
    let folder = Folder::new();
    let (base, _) = super::paginate::serve(|path| match path {
        "/gone" => (404, vec![], json!({ "gone": true })),
        _ => (500, vec![], json!(null)),
    });
    let text = format!(
        "inputs: {{ path: {{ type: string }}, note: {{ type: string, required: false }} }}
actions:
  find: {{ type: shell, run: 'exit 1', check: [1], retry: none }}
  ask: {{ type: http, uri: '{base}/@{{inputs(''path'')}}', check: [404, 410], retry: none }}
outputs:
  code: \"@outputs('find').exitCode\"
  status: \"@outputs('ask').statusCode\"
  note: \"@inputs('note')\"
"
    );
    folder.file("f.yaml", &text);
    let ran = folder.run(&["run", "f.yaml", "-i", "path=gone", "-o", "json"]);
    let ran = ran.left(0, &[]);
    let output: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(output, json!({ "code": 1, "status": 404, "note": null }));
    let ran = folder.run(&["run", "f.yaml", "-i", "path=other"]);
    ran.left(1, &["answered 500"]);
    folder.file("f.yaml", text.replace("exit 1", "exit 2"));
    let ran = folder.run(&["run", "f.yaml", "-i", "path=gone"]);
    ran.left(1, &["exit code 2"]);
}

#[test]
fn a_poll_whose_attempts_are_used_up_has_reached_its_limit() {
    for status in [503, 999] {
        let folder = Folder::new();
        let (base, requested) = super::paginate::serve(move |_| (status, vec![], json!(null)));
        let line = ["poll", "--url", &base, "--every", "10ms", "--times", "3"];
        let answered = format!("answered {status}");
        let note = "note: 3 attempts failed, the maximum";
        folder.run(&line).left(4, &[&answered, note]);
        assert_eq!(requested.lock().unwrap().len(), 3);
        let until = [&line[..], &["--until", "body.done", "--id", "until"]].concat();
        folder.run(&until).left(4, &[note]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_data_are_sent_as_they_are() {
    let folder = Folder::new();
    let echo = axum::Router::new().fallback(async |body: String| body);
    let url = crate::support::serve(echo).await;
    let data = r##"{"@odata.type": "#m.g", "{{ 1 + 1 }}": "x"}"##;
    let ran = folder.run(&["poll", "--url", &url, "-d", data, "--until", "true"]);
    let ran = ran.left(0, &[]);
    let sent: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(sent, json!({ "@odata.type": "#m.g", "{{ 1 + 1 }}": "x" }));
}
