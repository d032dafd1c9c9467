//! The server that the loops poll. It records the time and the path of each request; all measurements here use these
//! times.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// The time and the path of each request.
type Hits = Arc<Mutex<Vec<(Instant, String)>>>;

pub struct PollServer {
    pub port: u16,
    hits: Hits,
}

impl PollServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let hits = Hits::default();
        let seen = Arc::clone(&hits);
        let held = Arc::default();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, Arc::clone(&seen), Arc::clone(&held)));
            }
        });
        Self { port, hits }
    }

    /// The times of the requests for a path.
    pub fn times(&self, path: &str) -> Vec<Instant> {
        let hits = self.hits.lock().unwrap();
        let mine = hits.iter().filter(|(_, requested)| requested == path);
        mine.map(|(at, _)| *at).collect()
    }

    /// The times of the requests for a path, as soon as there are `count` of them.
    pub async fn wait(&self, path: &str, count: usize) -> Vec<Instant> {
        let begun = Instant::now();
        loop {
            let times = self.times(path);
            if times.len() >= count {
                return times;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(300),
                "{} requests for {path}, not {count}",
                times.len()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Answers a request. The first request for a path that begins with `/held` gets no answer.
async fn answer(mut stream: TcpStream, hits: Hits, held: Arc<Mutex<HashSet<String>>>) {
    stream.set_nodelay(true).unwrap();
    let mut request = Vec::new();
    loop {
        match stream.read_buf(&mut request).await {
            Ok(count) if count > 0 => {}
            _ => return,
        }
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&request);
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        hits.lock().unwrap().push((Instant::now(), path.clone()));
        if path.starts_with("/held") && held.lock().unwrap().insert(path) {
            std::future::pending::<()>().await;
        }
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
        request.clear();
    }
}
