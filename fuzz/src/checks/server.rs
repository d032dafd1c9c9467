//! A real server in this process, with its own store in a temporary folder, called through its port. Workflows that
//! arrive over HTTP may not run anything on this machine.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_engine::Engine;
use windlass_server::{Console, Options, ServeError, Tokens, serve};

/// Every answer arrives sooner, even on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Enough threads for a server and what it waits for.
pub fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    // A client that closes its connection early causes SIGPIPE, which must not end the process. The start-up code of a
    // fuzzer does not ignore this signal, as that of a Rust program does, so a handler is installed here.
    let heard = runtime.block_on(async { signal(SignalKind::pipe()) });
    drop(heard.expect("a signal"));
    runtime
}

pub struct Server {
    runtime: Runtime,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<(), ServeError>>>,
    /// How many requests were sent.
    pub requests: u32,
    _place: TempDir,
}

impl Server {
    #[allow(clippy::disallowed_methods)] // Nothing else starts this task.
    pub fn new() -> Self {
        let runtime = runtime();
        let place = tempfile::tempdir().expect("a folder");
        let state = place.path().to_owned();
        let (stop, stopped) = oneshot::channel::<()>();
        let (url_sender, ready) = mpsc::channel();
        let serving = runtime.spawn(async move {
            let engine = Arc::new(Engine::builder().open(&state)?);
            let options = Options {
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                tokens: Tokens::default(),
                token_file: None,
                console: Console::Full,
                tls: None,
                allow_plain: false,
                hosts: Vec::new(),
                origins: Vec::new(),
                connections: 100,
                idle_timeout: Duration::from_secs(30),
                grace: Duration::from_secs(3),
                public_url: None,
                further: None,
                prune: None,
            };
            let on_ready = move |url: &str| drop(url_sender.send(url.to_owned()));
            let mut stopped = Some(stopped);
            let until = async move || match stopped.take() {
                Some(stopped) => drop(stopped.await),
                None => std::future::pending().await,
            };
            serve(&state, engine, options, on_ready, until).await
        });
        let url = ready.recv_timeout(PATIENCE).expect("it is ready");
        let address = url
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        Self {
            runtime,
            address,
            stop: Some(stop),
            serving: Some(serving),
            requests: 0,
            _place: place,
        }
    }

    /// Sends a request. Returns what arrives until the connection ends, up to `most` bytes; none if nothing arrives
    /// within `wait`. After a request that may be incomplete (`whole` is false), the sending side is closed.
    pub fn ask(
        &mut self,
        request: &[u8],
        whole: bool,
        most: usize,
        wait: Duration,
    ) -> Option<Vec<u8>> {
        self.requests += 1;
        let stream = TcpStream::connect(self.address).expect("it takes connections");
        stream.set_read_timeout(Some(wait)).expect("a socket");
        exchange(stream, request, most, |stream| {
            if !whole {
                let _ = stream.shutdown(Shutdown::Write);
            }
        })
    }
}

/// Sends a request and then calls `sent`. Returns what arrives until the connection ends, up to `most` bytes; none if a
/// read times out.
pub fn exchange<S: Read + Write>(
    mut stream: S,
    request: &[u8],
    most: usize,
    sent: impl FnOnce(&S),
) -> Option<Vec<u8>> {
    // A server that answers early may have closed the connection already.
    let _ = stream.write_all(request);
    sent(&stream);
    let mut answer = vec![0; most];
    let mut got = 0;
    while got < most {
        match stream.read(&mut answer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return None;
            }
            // The connection was reset, because the server did not read everything that was sent.
            Err(_) => break,
        }
    }
    answer.truncate(got);
    Some(answer)
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            let ended = async { tokio::time::timeout(PATIENCE, serving).await };
            let ended = self.runtime.block_on(ended).expect("it stops");
            ended
                .expect("it does not panic")
                .expect("it stops without an error");
        }
    }
}
