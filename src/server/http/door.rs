//! Where connections come in, with or without TLS. One that sends no whole head, or takes nothing of
//! what it is sent, is closed. This file looks at nothing of a request but whether it asks about the
//! server's health.

use super::crowd::{Crowd, Entry, Seat, Share};
use super::guard::OPEN;
use super::problem::{Kind, Problem};
use axum::body::Body;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use futures_util::StreamExt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A TLS handshake takes no longer.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The head of a request takes no longer, and nor does the silence between two.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// A listener.
pub(super) struct Door {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    crowd: Arc<Crowd>,
    /// A body may take so long, and a head too if it is shorter than [`HEAD_TIME`]. A connection
    /// that takes nothing of an answer has twice as long.
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
            crowd: Crowd::new(connections),
            patience,
            handshakes: JoinSet::new(),
        }
    }
}

impl Listener for Door {
    type Io = Io;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Io, SocketAddr) {
        loop {
            let accepted = tokio::select! {
                accepted = self.tcp.accept() => accepted,
                Some(shaken) = self.handshakes.join_next() => match shaken {
                    Ok(Some(connection)) => return connection,
                    Ok(None) | Err(_) => continue,
                },
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    self.crowd.thin();
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let Some(entry) = self.crowd.enter() else {
                continue;
            };
            let _ = stream.set_nodelay(true);
            let patience = self.patience;
            match self.tls.clone() {
                None => return (Io::new(Stream::Plain(stream), entry, patience), address),
                Some(tls) => {
                    self.handshakes.spawn(async move {
                        let shaking =
                            tokio::time::timeout(HANDSHAKE_TIME.min(patience), tls.accept(stream));
                        let shaken = tokio::select! {
                            shaken = shaking => shaken,
                            () = poll_fn(|cx| entry.seat.poll_ousted(cx)) => return None,
                        };
                        match shaken {
                            Ok(Ok(stream)) => {
                                let stream = Stream::Tls(Box::new(stream));
                                Some((Io::new(stream, entry, patience), address))
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
    entry: Entry,
    /// Whether anything was sent since the clock was set.
    sent: bool,
    patience: Duration,
    read_by: Pin<Box<Sleep>>,
    write_by: Option<Pin<Box<Sleep>>>,
}

impl Io {
    fn new(stream: Stream, entry: Entry, patience: Duration) -> Self {
        Self {
            stream,
            entry,
            sent: false,
            patience,
            read_by: Box::pin(tokio::time::sleep(HEAD_TIME.min(patience))),
            write_by: None,
        }
    }

    fn seat(&self) -> &Seat {
        &self.entry.seat
    }

    /// Ready when it has been waited long enough for a request, or another connection needs its
    /// place.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.seat().poll_ousted(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            ready!(self.read_by.as_mut().poll(cx));
            if !self.seat().is_busy() && !self.sent {
                return Poll::Ready(());
            }
            self.sent = false;
            let time = HEAD_TIME.min(self.patience);
            self.read_by.as_mut().reset(Instant::now() + time);
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
            if self.write_by.take().is_some() {
                self.entry.takes(true);
            }
            return written;
        }
        if self.write_by.is_none() {
            self.entry.takes(false);
        }
        if self.seat().poll_ousted(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
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
    pub place: Share,
    /// How long a body may take.
    pub patience: Duration,
}

impl Connected<IncomingStream<'_, Door>> for Line {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        let io = stream.io();
        Self {
            place: io.entry.share(),
            patience: io.patience,
        }
    }
}

/// Marks a connection as busy until the last byte of the answer is taken. One beyond the limit is
/// told only whether the server is there.
pub(super) async fn mark_busy(
    ConnectInfo(line): ConnectInfo<Line>,
    request: Request,
    next: Next,
) -> Response {
    let busy = line.place.busy();
    let mut response = match OPEN.contains(&request.uri().path()) || line.place.has_room() {
        true => next.run(request).await,
        false => {
            let problem = Problem::new(Kind::Unavailable, "too many connections: try again");
            ([(header::CONNECTION, "close")], problem).into_response()
        }
    };
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
