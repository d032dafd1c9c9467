//! Connections that mean no good: too slow, too many, too large, under another name.

use super::{PATIENCE, Server, Start};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

async fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// All that comes until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A reset is a close as well.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all))
        .await
        .expect("the server closes the connection");
    String::from_utf8_lossy(&all).into_owned()
}

/// Sends a byte every now and then until the other side has enough, and gives what it said and when.
async fn trickle(server: &Server, head: &str) -> (String, Duration) {
    let mut stream = connect(server).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let begun = Instant::now();
    let (mut reader, mut writer) = stream.into_split();
    let mut all = Vec::new();
    let reading = async {
        let _ = reader.read_to_end(&mut all).await;
    };
    let writing = async {
        while writer.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
        () = tokio::time::sleep(PATIENCE) => panic!("a slow client is never left"),
    }
    (String::from_utf8_lossy(&all).into_owned(), begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_slow_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let limit = Duration::from_millis(1_200);
    let server = Start::new(dir.path())
        .args(&["--client-timeout", "1200ms"])
        .spawn();
    let head = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let body = format!("{head}Content-Length: 1000\r\n\r\n{{\"text\":\"");
    let (slow_head, slow_body) = tokio::join!(
        trickle(&server, "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-A: "),
        trickle(&server, &body),
    );
    // A head that does not end is no request: there is nothing to answer.
    let (told, after) = slow_head;
    assert_eq!(told, "");
    assert!(after >= limit, "{after:?}");
    let (told, after) = slow_body;
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
    assert!(told.contains("urn:windlass:too-slow"), "{told}");
    assert!(told.contains("within 1.2 seconds"), "{told}");
    assert!(after >= limit, "{after:?}");
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_so_many_connections_one_waits() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path())
        .args(&["--max-connections", "2"])
        .spawn();
    let first = connect(&server).await;
    let _second = connect(&server).await;
    let mut third = connect(&server).await;
    let ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    third.write_all(ask).await.unwrap();
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(300), third.read(&mut byte)).await;
    assert!(early.is_err(), "it is answered beside two others");
    drop(first);
    let told = rest(&mut third).await;
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_bounded_also_when_it_does_not_say_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let mut stream = connect(&server).await;
    let head =
        "POST /v1/validate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sending = async {
        let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
        for _ in 0..18 {
            if writer.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
    };
    let mut told = vec![0; 15];
    let (_, read) = tokio::join!(sending, reader.read_exact(&mut told));
    read.unwrap();
    assert_eq!(String::from_utf8_lossy(&told), "HTTP/1.1 413 Pa");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_host_that_is_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for (target, hosts, status) in [
        ("/v1/runs", &["localhost"][..], 200),
        ("/v1/runs", &["127.0.0.1:7465"], 200),
        ("/v1/runs", &["[::1]:80"], 200),
        ("/v1/runs", &[], 400),
        ("/v1/runs", &["localhost", "evil.test"], 400),
        ("/v1/runs", &["evil.test"], 403),
        ("/v1/runs", &["localhost.evil.test"], 403),
        ("/v1/runs", &["127.0.0.1.evil.test:7465"], 403),
        ("http://evil.test/v1/runs", &["localhost"], 403),
    ] {
        let mut stream = connect(&server).await;
        let mut head = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n");
        for host in hosts {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let told = rest(&mut stream).await;
        assert!(
            told.starts_with(&format!("HTTP/1.1 {status}")),
            "{target} {hosts:?}: {told}"
        );
    }
}
