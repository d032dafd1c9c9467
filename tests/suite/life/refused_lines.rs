//! Command lines that cannot mean what they say are refused, each with a hint.

use super::first_use::Folder;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn a_line_that_cannot_be_meant_is_refused() {
    let folder = Folder::new();
    folder.file(
        "w.yaml",
        "inputs: { s: { type: string } }\nactions: { a: { type: compose, inputs: 1 } }\n",
    );
    folder.file("two.json", r#"{"s": "a", "s": "b"}"#);
    folder.file("two.yaml", "s: a\ns: b\n");
    folder.file("c.json", "{}");
    let lines: [(&[&str], &str); 8] = [
        (&["eval", "--batch", "inputs.a"], "--batch"),
        (&["eval", "--batch", "--context", "c.json"], "--batch"),
        (
            &["run", "w.yaml", "--input", "two.json"],
            "duplicate member `s`",
        ),
        (&["run", "w.yaml", "--input", "two.yaml"], "duplicate"),
        (
            &["list", "--since", "1h", "--until", "2h"],
            "--since is later",
        ),
        (&["try", "--", "echo a | grep a"], "sh -c '…'"),
        (&["poll", "--until", "true", "--", "echo a"], "sh -c '…'"),
        (
            &["poll", "--url", "ftp://x/", "--until", "true"],
            "must begin with http:// or https://",
        ),
    ];
    for (line, hint) in lines {
        folder.run(line).left(2, &[hint]);
    }
}

/// A scheme may be in upper case (RFC 3986, 3.1). A server without TLS is named.
#[test]
fn a_url_is_read_as_the_rfc_says() {
    let folder = Folder::new();
    let (base, _) = super::paginate::serve(|_| (200, vec![], serde_json::json!({ "done": true })));
    let upper = base.replace("http", "HTTP");
    folder
        .run(&["poll", "--url", &upper, "--until", "body.done"])
        .left(0, &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
            write!(stream, "HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        }
    });
    let line = [
        "poll",
        "--url",
        &tls,
        "--until",
        "body.done",
        "--times",
        "1",
    ];
    folder
        .run(&line)
        .left(4, &["the server does not speak TLS there: write http://"]);
}
