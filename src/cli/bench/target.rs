//! The server to which the measured loops send requests.
//! It sends the same JSON to all loops, and records when each loop sent a request.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"status\":\"running\"}";

/// Counts the requests for `/poll/N`, for each loop `N`. All other requests are returned by [`Target::next`], one by
/// one.
pub struct Target {
    pub url: String,
    seen: Arc<Mutex<RequestLog>>,
    requests: Receiver<Instant>,
}

#[derive(Debug, Default)]
struct RequestLog {
    /// For each loop, by its number: the time of its last request, and the number of its requests.
    loops: Vec<(Option<Instant>, u32)>,
    /// How late each request was, in milliseconds: the time since the loop's last request, minus the loop's period.
    late: Vec<f32>,
    /// The number of loops that sent a request.
    begun: usize,
}

/// The requests of a time interval.
pub struct RequestWindow {
    /// How late each request was, in milliseconds: the time since the loop's last request, minus the loop's period.
    pub late: Vec<f64>,
    /// The smallest number of requests of a loop.
    pub least: u32,
    /// The largest number of requests of a loop.
    pub most: u32,
}

impl Target {
    /// Listens on a local port, on a separate thread.
    pub fn begin(period: Duration) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let (sender, requests) = channel();
        let seen: Arc<Mutex<RequestLog>> = Arc::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let counted = seen.clone();
        thread::spawn(move || {
            runtime.block_on(accept(
                listener,
                &Counter {
                    sender,
                    seen: counted,
                    period,
                },
            ));
        });
        Ok(Self {
            url,
            seen,
            requests,
        })
    }

    /// Returns the time of the next request other than `/poll/N`.
    /// Returns `None` if no such request arrives within `patience`.
    pub fn next(&self, patience: Duration) -> Option<Instant> {
        self.requests.recv_timeout(patience).ok()
    }

    /// Discards the requests that [`Target::next`] has not returned yet.
    pub fn forget(&self) {
        while self.requests.try_recv().is_ok() {}
    }

    /// Returns the number of loops that sent at least one request.
    pub fn begun(&self) -> usize {
        self.seen().begun
    }

    /// Returns the counts and resets them.
    /// The times of the loops' last requests are retained.
    pub fn take(&self) -> RequestWindow {
        let mut seen = self.seen();
        let late = std::mem::take(&mut seen.late);
        let late = late.into_iter().map(f64::from).collect();
        let counts = || seen.loops.iter().map(|(_, count)| *count);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        seen.loops.iter_mut().for_each(|(_, count)| *count = 0);
        RequestWindow { late, least, most }
    }

    fn seen(&self) -> MutexGuard<'_, RequestLog> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct Counter {
    sender: Sender<Instant>,
    seen: Arc<Mutex<RequestLog>>,
    period: Duration,
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
impl Counter {
    fn count(&self, head: &[u8]) {
        let now = Instant::now();
        let Some(number) = number(head) else {
            let _ = self.sender.send(now);
            return;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.loops.len() <= number {
            seen.loops.resize(number + 1, (None, 0));
        }
        let Some((last, count)) = seen.loops.get_mut(number) else {
            return;
        };
        *count += 1;
        match last.replace(now) {
            None => seen.begun += 1,
            Some(before) => {
                let late = (now - before).saturating_sub(self.period);
                seen.late.push(late.as_secs_f32() * 1e3);
            }
        }
    }
}

/// Returns the number `N` in the head of a request for `/poll/N`.
fn number(head: &[u8]) -> Option<usize> {
    let digits = head.strip_prefix(b"GET /poll/")?;
    let end = digits.iter().position(|byte| *byte == b' ')?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}

#[allow(
    clippy::disallowed_methods,
    reason = "a task for each connection, on a thread that has nothing else"
)]
async fn accept(listener: std::net::TcpListener, counter: &Counter) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, counter.clone()));
    }
}

/// Answers requests without a body until the client disconnects.
async fn answer(mut stream: TcpStream, counter: Counter) -> io::Result<()> {
    const END: &[u8] = b"\r\n\r\n";
    stream.set_nodelay(true)?;
    let mut read = Vec::with_capacity(1024);
    while stream.read_buf(&mut read).await? > 0 {
        while let Some(end) = read.windows(END.len()).position(|bytes| bytes == END) {
            let head: Vec<u8> = read.drain(..end + END.len()).collect();
            counter.count(&head);
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}
