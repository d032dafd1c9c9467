//! Listeners: TCP, with or without TLS, and the control socket.
//! A connection is closed if the client does not send a complete request head in time, or does not read the answers.

use super::concurrency::{Connection, Connections};
use crate::api::Problem;
use axum::body::Body;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use futures_util::StreamExt;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use windlass_engine::{Actor, ErrorCode, Origin};

/// Paths about health. They need no token, and are answered even if there are too many connections.
pub(super) const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// Timeout of a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Timeout for receiving a request head. The time between two requests counts as well.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// Maximum time that a request on a connection beyond the limit waits for room, and the interval of the checks.
const ROOM_TIME: Duration = Duration::from_secs(1);
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) struct ClientListener {
    socket: Socket,
    connections: Arc<Connections>,
    /// Timeout for receiving a body. If it is shorter than [`HEAD_TIME`], it is also the timeout for a head.
    /// A client that does not read its answer has twice this time.
    idle_timeout: Duration,
    handshakes: JoinSet<Option<Io>>,
}

enum Socket {
    Tcp(TcpListener, Option<TlsAcceptor>),
    Unix(UnixListener),
}

impl Socket {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(tcp, tls) => {
                let (stream, address) = tcp.accept().await?;
                let actor = Actor::anonymous(address.ip().to_canonical().to_string());
                let _ = stream.set_nodelay(true);
                Ok(match tls {
                    None => Accepted::Ready(Box::new(stream), Caller::Remote, actor),
                    Some(tls) => Accepted::Handshake(tls.clone(), stream, actor),
                })
            }
            Self::Unix(unix) => {
                let (stream, _) = unix.accept().await?;
                let uid = stream.peer_cred()?.uid();
                let actor = Actor::unix(uid, "control socket");
                Ok(Accepted::Ready(Box::new(stream), Caller::Operator, actor))
            }
        }
    }
}

/// An accepted connection.
enum Accepted {
    Ready(Box<dyn Stream>, Caller, Actor),
    Handshake(TlsAcceptor, TcpStream, Actor),
}

impl ClientListener {
    pub fn tcp(
        tcp: TcpListener,
        tls: Option<TlsAcceptor>,
        connections: usize,
        idle_timeout: Duration,
    ) -> Self {
        Self::new(Socket::Tcp(tcp, tls), connections, idle_timeout)
    }

    pub fn unix(unix: UnixListener, connections: usize, idle_timeout: Duration) -> Self {
        Self::new(Socket::Unix(unix), connections, idle_timeout)
    }

    fn new(socket: Socket, connections: usize, idle_timeout: Duration) -> Self {
        Self {
            socket,
            connections: Connections::new(connections),
            idle_timeout,
            handshakes: JoinSet::new(),
        }
    }
}

impl Listener for ClientListener {
    type Io = Io;
    type Addr = ();

    async fn accept(&mut self) -> (Io, ()) {
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                Some(shaken) = self.handshakes.join_next() => match shaken {
                    Ok(Some(connection)) => return (connection, ()),
                    Ok(None) | Err(_) => continue,
                },
            };
            let accepted = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    self.connections.evict_one();
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            let Some(connection) = self.connections.enter() else {
                continue;
            };
            let idle_timeout = self.idle_timeout;
            match accepted {
                Accepted::Ready(stream, caller, actor) => {
                    let io = Io::new(stream, caller, actor, connection, idle_timeout);
                    return (io, ());
                }
                Accepted::Handshake(tls, stream, actor) => {
                    self.handshakes.spawn(async move {
                        let time = HANDSHAKE_TIME.min(idle_timeout);
                        let shaken = tokio::select! {
                            shaken = tokio::time::timeout(time, tls.accept(stream)) => shaken,
                            () = poll_fn(|cx| connection.poll_evicted(cx)) => return None,
                        };
                        let stream = Box::new(shaken.ok()?.ok()?);
                        let caller = Caller::Remote;
                        Some(Io::new(stream, caller, actor, connection, idle_timeout))
                    });
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection of any transport.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that closes itself if its client is too slow.
pub(super) struct Io {
    stream: Box<dyn Stream>,
    caller: Caller,
    actor: Actor,
    connection: Arc<Connection>,
    /// Whether anything was sent since the deadline `read_by` was set.
    sent: bool,
    idle_timeout: Duration,
    read_by: Pin<Box<Sleep>>,
    write_by: Option<Pin<Box<Sleep>>>,
}

impl Io {
    fn new(
        stream: Box<dyn Stream>,
        caller: Caller,
        actor: Actor,
        connection: Arc<Connection>,
        idle_timeout: Duration,
    ) -> Self {
        Self {
            stream,
            caller,
            actor,
            connection,
            sent: false,
            idle_timeout,
            read_by: Box::pin(tokio::time::sleep(HEAD_TIME.min(idle_timeout))),
            write_by: None,
        }
    }

    /// Returns `Ready` if the client needed too much time for a request, or if the connection must make room for
    /// another.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.connection.poll_evicted(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            ready!(self.read_by.as_mut().poll(cx));
            if !self.connection.is_busy() && !self.sent {
                return Poll::Ready(());
            }
            self.sent = false;
            let time = HEAD_TIME.min(self.idle_timeout);
            self.read_by.as_mut().reset(Instant::now() + time);
        }
    }

    /// Handles the result of a write: starts or stops the timeout for a client that does not read.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.sent = true;
            if self.write_by.take().is_some() {
                self.connection.set_reading(true);
            }
            return written;
        }
        if self.write_by.is_none() {
            self.connection.set_reading(false);
        }
        if self.connection.poll_evicted(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let time = self.idle_timeout * 2;
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
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
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
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            return flushed;
        }
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, shut)
    }
}

/// The kind of client that sends the requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A process on this machine, over the control socket. Only the operator can open the socket.
    Operator,
    /// A client over TCP.
    Remote,
}

impl Caller {
    /// Returns the origin of the workflows that the caller sends.
    pub fn origin(self) -> Origin {
        match self {
            Self::Operator => Origin::Operator,
            Self::Remote => Origin::Guest,
        }
    }

    /// Returns the maximum number of entries (runs, iterations or events) in one answer to this caller.
    pub fn at_most(self, most: usize) -> usize {
        match self {
            Self::Operator => usize::MAX,
            Self::Remote => most,
        }
    }

    /// Returns the caller of a request.
    /// Without information about the connection, this is `Remote`, which has fewer rights.
    pub fn of(extensions: &Extensions) -> Self {
        let info = extensions.get::<ConnectInfo<ConnectionInfo>>();
        info.map_or(Self::Remote, |ConnectInfo(info)| info.caller)
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// Answers a request only if the caller is the operator.
pub(super) async fn operator_only(caller: Caller, request: Request, next: Next) -> Response {
    match caller {
        Caller::Operator => next.run(request).await,
        Caller::Remote => {
            let detail = "this is answered over control.sock on the server's machine";
            Problem::new(ErrorCode::LocalOnly, detail).into_response()
        }
    }
}

/// Information about a connection, for its requests.
#[derive(Clone)]
pub(super) struct ConnectionInfo {
    pub caller: Caller,
    /// The sender, as far as the connection identifies it. If the request has a token, the token's name is added.
    pub actor: Actor,
    pub connection: Arc<Connection>,
    /// Timeout for a body.
    pub idle_timeout: Duration,
}

impl Connected<IncomingStream<'_, ClientListener>> for ConnectionInfo {
    fn connect_info(stream: IncomingStream<'_, ClientListener>) -> Self {
        let io = stream.io();
        Self {
            caller: io.caller,
            actor: io.actor.clone(),
            connection: Arc::clone(&io.connection),
            idle_timeout: io.idle_timeout,
        }
    }
}

/// Returns true if the connection may send any request. Waits for a moment if there is no room: other requests may be
/// about to end, or about to wait for their clients.
async fn wait_for_room(connection: &Connection) -> bool {
    let patience = Instant::now() + ROOM_TIME;
    while !connection.has_room() {
        if Instant::now() >= patience {
            return false;
        }
        tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
    }
    true
}

/// Marks a connection as busy until the client has read the whole answer.
/// A connection beyond the limit receives only answers about health.
pub(super) async fn mark_busy(
    ConnectInfo(info): ConnectInfo<ConnectionInfo>,
    request: Request,
    next: Next,
) -> Response {
    let busy = info.connection.busy();
    let is_open = OPEN.contains(&request.uri().path());
    let mut response = match is_open || wait_for_room(&info.connection).await {
        true => next.run(request).await,
        false => {
            let problem = Problem::new(ErrorCode::Unavailable, "too many connections: try again");
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
