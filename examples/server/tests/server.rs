//! The program from outside: it prints its address, and answers there.

#![allow(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_request_is_answered_and_counted() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_windlass-example-server"))
        .args(["--port", "0", "--pages", "2"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = server.stdout.take().unwrap();
    let _server = Server(server);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap();

    let page = get(address, "/items?page=2");
    assert!(page.contains("\"hasMore\":false"), "{page}");
    let log = get(address, "/log");
    assert!(log.contains("\"total\":1"), "{log}");
}
