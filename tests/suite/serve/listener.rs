//! Harmful connections: too slow, too many, too large, or under another name.

use super::{PATIENCE, Server, Start};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

async fn connect(server: &Server) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Everything that arrives until the other side closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // A reset counts as a close.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all))
        .await
        .expect("the server closes the connection");
    String::from_utf8_lossy(&all).into_owned()
}

/// Sends a byte at intervals until the other side closes. Returns the response and the time.
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
    // The server's time starts with the connection, shortly before the client's.
    let limit = Duration::from_millis(1_100);
    let server = Start::new(dir.path())
        .args(&["--client-timeout", "1200ms"])
        .spawn();
    let head = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let body = format!("{head}Content-Length: 1000\r\n\r\n{{\"text\":\"");
    let (slow_head, slow_body) = tokio::join!(
        trickle(&server, "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-A: "),
        trickle(&server, &body),
    );
    // An unfinished head is not a request, so there is no answer.
    let (response, after) = slow_head;
    assert_eq!(response, "");
    assert!(after >= limit, "{after:?}");
    let (response, after) = slow_body;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(response.contains("urn:windlass:too-slow"), "{response}");
    assert!(response.contains("within 1.2 seconds"), "{response}");
    assert!(after >= limit, "{after:?}");
    assert_eq!(server.get("/healthz").await.0, 200);
}

/// Sends a request; returns the whole answer.
async fn ask(server: &Server, path: &str) -> String {
    let mut stream = connect(server).await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    rest(&mut stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_or_little_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path())
        .args(&["--max-connections", "16", "--client-timeout", "1h"])
        .spawn();
    let mut idle = Vec::new();
    for what in [
        "",
        "GET /v1/runs HT",
        "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{",
    ] {
        for _ in 0..16 {
            let mut stream = connect(&server).await;
            stream.write_all(what.as_bytes()).await.unwrap();
            idle.push(stream);
        }
        for path in ["/v1/runs", "/healthz", "/readyz"] {
            let response = ask(&server, path).await;
            assert!(
                response.starts_with("HTTP/1.1 200"),
                "{path} next to {what:?}: {response}"
            );
        }
    }
    // The oldest connections were closed first.
    assert_eq!(rest(&mut idle[0]).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_ten_seconds_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path())
        .args(&["--client-timeout", "1h"])
        .spawn();
    let mut stream = connect(&server).await;
    let begun = Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert!(
        begun.elapsed() >= Duration::from_secs(9),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_reported_when_everything_else_waits() {
    let dir = tempfile::tempdir().unwrap();
    let server = Start::new(dir.path())
        .args(&["--max-connections", "2"])
        .spawn();
    let run = server.begin(super::SLEEP, serde_json::Value::Null).await;
    // Streams of events are counted separately.
    let mut streams = Vec::new();
    for _ in 0..2 {
        let path = format!("/v1/runs/{run}/events");
        let stream = server
            .ask(reqwest::Method::GET, &path)
            .send()
            .await
            .unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let response = ask(&server, &format!("/v1/runs/{run}/events")).await;
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    // Two connections that wait for an answer fill the limit; they are not closed.
    let wait = async || {
        let mut stream = connect(&server).await;
        let head = format!("GET /v1/runs/{run}/result?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let mut waiting = [wait().await, wait().await];
    // Until both requests have been read, a new connection replaces one that has sent no request yet.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let response = ask(&server, "/v1/runs").await;
        if response.starts_with("HTTP/1.1 503") {
            assert!(
                response.to_lowercase().contains("retry-after"),
                "{response}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "{response}");
        for stream in &mut waiting {
            let has_left = stream.try_read(&mut [0]);
            if !has_left.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
                *stream = wait().await;
            }
        }
    }
    for path in ["/healthz", "/readyz"] {
        let response = ask(&server, path).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{path}: {response}");
    }
    // A request beyond the limit waits for a moment. If a connection ends meanwhile, the request is answered.
    let mut late = connect(&server).await;
    late.write_all(b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(waiting);
    let response = rest(&mut late).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    drop(streams);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_says_it_is_too_large_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let mut stream = connect(&server).await;
    let head = "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 17000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = vec![0; 15];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut response));
    read.await.expect("it is refused at once").unwrap();
    assert_eq!(String::from_utf8_lossy(&response), "HTTP/1.1 413 Pa");
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
    let mut response = vec![0; 15];
    let (_, read) = tokio::join!(sending, reader.read_exact(&mut response));
    read.unwrap();
    assert_eq!(String::from_utf8_lossy(&response), "HTTP/1.1 413 Pa");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_host_that_is_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for (target, hosts, status) in [
        ("/v1/runs", &["localhost"][..], 200),
        ("/v1/runs", &["127.0.0.1:7465"], 200),
        ("/v1/runs", &["[::1]:80"], 200),
        ("/v1/runs", &["LOCALHOST:7465"], 200),
        ("/v1/runs", &["10.0.0.7"], 200),
        ("/v1/runs", &[""], 403),
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
        let response = rest(&mut stream).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{target} {hosts:?}: {response}"
        );
    }
}
