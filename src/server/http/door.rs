//! Where connections come in: so many at a time, with or without TLS. One that sends no whole
//! head, or takes nothing of what it is sent, is closed. This file never looks at a request.

use axum::body::Body;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use futures_util::StreamExt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A TLS handshake takes no longer.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A listener.
pub(super) struct Door {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    connections: Arc<Semaphore>,
    /// A connection that asks nothing for so long is closed: a head that does not come, or an idle
    /// one. One that takes nothing of an answer has twice as long.
    patience: Duration,
    handshakes: JoinSet<Option<(Io, SocketAddr)>>,
}

impl Door {
    pub fn new(
        tcp: TcpListener,
        tls: Option<TlsAcceptor>,
        connections: usize,
        patience: Duration,
    ) -> Self {
        Self {
            tcp,
            tls,
            connections: Arc::new(Semaphore::new(connections)),
            patience,
            handshakes: JoinSet::new(),
        }
    }

    async fn one(
        tcp: &TcpListener,
        connections: &Arc<Semaphore>,
    ) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let permit = Arc::clone(connections).acquire_owned().await;
        let permit = permit.map_err(io::Error::other)?;
        let (stream, address) = tcp.accept().await?;
        Ok((stream, address, permit))
    }
}

impl Listener for Door {
    type Io = Io;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Io, SocketAddr) {
        loop {
            let accepted = tokio::select! {
                accepted = Self::one(&self.tcp, &self.connections) => accepted,
                Some(shaken) = self.handshakes.join_next() => match shaken {
                    Ok(Some(connection)) => return connection,
                    Ok(None) | Err(_) => continue,
                },
            };
            let (stream, address, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let patience = self.patience;
            match self.tls.clone() {
                None => return (Io::new(Stream::Plain(stream), permit, patience), address),
                Some(tls) => {
                    self.handshakes.spawn(async move {
                        let shaking =
                            tokio::time::timeout(HANDSHAKE_TIME.min(patience), tls.accept(stream));
                        match shaking.await {
                            Ok(Ok(stream)) => {
                                let stream = Stream::Tls(Box::new(stream));
                                Some((Io::new(stream, permit, patience), address))
                            }
                            Ok(Err(_)) | Err(_) => None,
                        }
                    });
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that is closed when nothing comes of it.
pub(super) struct Io {
    stream: Stream,
    _permit: OwnedSemaphorePermit,
    /// How many of its requests are being answered.
    busy: Arc<AtomicUsize>,
    /// Whether anything was sent since the clock was set.
    sent: bool,
    patience: Duration,
    read_by: Pin<Box<Sleep>>,
    write_by: Option<Pin<Box<Sleep>>>,
}

impl Io {
    fn new(stream: Stream, permit: OwnedSemaphorePermit, patience: Duration) -> Self {
        Self {
            stream,
            _permit: permit,
            busy: Arc::default(),
            sent: false,
            patience,
            read_by: Box::pin(tokio::time::sleep(patience)),
            write_by: None,
        }
    }

    /// Ready when it has been waited long enough for a request.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.read_by.as_mut().poll(cx));
            if self.busy.load(Ordering::Relaxed) == 0 && !self.sent {
                return Poll::Ready(());
            }
            self.sent = false;
            self.read_by.as_mut().reset(Instant::now() + self.patience);
        }
    }

    /// What a write came to, with the clock of those that wait.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.sent = true;
            self.write_by = None;
            return written;
        }
        let time = self.patience * 2;
        let by = self
            .write_by
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        ready!(by.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        if read.is_ready() {
            return read;
        }
        ready!(self.poll_idle(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        };
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        };
        if flushed.is_ready() {
            return flushed;
        }
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        };
        self.written(cx, shut)
    }
}

/// What requests know of their connection.
#[derive(Clone)]
pub(super) struct Line {
    busy: Arc<AtomicUsize>,
    /// How long a body may take.
    pub patience: Duration,
}

impl Connected<IncomingStream<'_, Door>> for Line {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        let io = stream.io();
        Self {
            busy: Arc::clone(&io.busy),
            patience: io.patience,
        }
    }
}

/// A request that is being answered.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(line: &Line) -> Self {
        line.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&line.busy))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Marks a connection as busy until the last byte of the answer is taken.
pub(super) async fn mark_busy(
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request,
    next: Next,
) -> Response {
    let busy = Busy::new(&line);
    let mut response = next.run(request).await;
    let length = axum::body::HttpBody::size_hint(response.body()).exact();
    if let Some(length) = length {
        response
            .headers_mut()
            .entry(header::CONTENT_LENGTH)
            .or_insert(HeaderValue::from(length));
    }
    response.map(|body| {
        let busy = Arc::new(busy);
        Body::from_stream(body.into_data_stream().map(move |chunk| {
            let _until_the_last = &busy;
            chunk
        }))
    })
}
