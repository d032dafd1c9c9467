//! What tests share: servers on free ports of this machine, and this test binary started again as a process that can be
//! killed.

use axum::Router;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use windlass_engine::EngineError;
use windlass_store::{MemoryStore, Store, StoreError, StoreKind, StoreOptions, open_read_only};

/// The errors of opening a store.
pub trait Locks {
    /// Whether the error says that another process holds the store.
    fn is_locked(&self) -> bool;
}

impl Locks for StoreError {
    fn is_locked(&self) -> bool {
        matches!(self, Self::Locked { .. })
    }
}

impl Locks for EngineError {
    fn is_locked(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_locked())
    }
}

/// How often a test with random choices is repeated: `merge` times before a merge, `all` times with `tests/run --all`.
pub fn sized<T>(all: T, merge: T) -> T {
    match std::env::var_os("WINDLASS_TEST_ALL") {
        Some(_) => all,
        None => merge,
    }
}

/// The database of the suites' stores. `WINDLASS_STORE` chooses it, as for the binary.
pub fn kind() -> StoreKind {
    match std::env::var("WINDLASS_STORE").as_deref() {
        Ok("fjall") => StoreKind::Fjall,
        _ => StoreKind::Sled,
    }
}

/// Opens a store on disk, or creates it.
pub fn open_store(dir: &Path) -> Result<Arc<dyn Store>, StoreError> {
    windlass_store::open(dir, Some(kind()))
}

/// The same with options.
pub fn open_store_with(dir: &Path, with: StoreOptions) -> Result<Arc<dyn Store>, StoreError> {
    windlass_store::open_with(dir, Some(kind()), with)
}

/// What can be read of a store without its database.
pub fn seen(dir: &Path) -> Result<Option<MemoryStore>, StoreError> {
    match kind() {
        StoreKind::Sled => open_read_only(dir),
        StoreKind::Fjall => Ok(None),
    }
}

/// Does something with a store that no process should hold any more. Tries again while it is locked: a process that
/// another test is starting holds copies of this process's locks until it executes its own program.
pub fn alone<T, E: Locks>(mut what: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 0..100_000 {
        match what() {
            Err(error) if error.is_locked() => std::thread::yield_now(),
            other => return other,
        }
    }
    panic!("it stays locked");
}

/// Serves a router until the test's runtime ends; returns its URL.
pub async fn serve(router: Router) -> String {
    serve_at("127.0.0.1:0".parse().unwrap(), router).await
}

/// The same at a given address.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
pub async fn serve_at(address: SocketAddr, router: Router) -> String {
    let listener = TcpListener::bind(address).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// A server for one connection.
pub struct Once {
    pub url: String,
    /// Notified when a request's head has arrived.
    pub head_arrived: oneshot::Receiver<()>,
    /// Notified when the other side has closed.
    pub closed: oneshot::Receiver<()>,
}

/// Accepts one connection, reads a request's head, sends these bytes, and then waits for the other side to close.
/// Without bytes the server hangs.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
pub async fn serve_once(answer: &'static [u8]) -> Once {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (head_sender, head_arrived) = oneshot::channel();
    let (close_sender, closed) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        let _ = head_sender.send(());
        let mut rest = Vec::new();
        // A reset counts as a close.
        let _ = stream.read_to_end(&mut rest).await;
        let _ = close_sender.send(());
    });
    Once {
        url,
        head_arrived,
        closed,
    }
}

/// Accepts one connection, reads a request's head, sends this head and this number of MiB, and closes the connection.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
pub async fn serve_and_close(answer: &'static [u8], mebibytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..mebibytes {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    url
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

/// Skips a test on a developer's machine that lacks something. In CI the test fails instead.
pub fn lacking(what: &str) {
    let here = "`tests/run` installs what the tests need, as root";
    assert!(std::env::var_os("CI").is_none(), "{what}: {here}");
    println!("skipped: {what}: {here}");
}

/// A command that runs one ignored test of this binary in another process.
pub fn this_test_binary(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
