//! The control socket: `control.sock` in the state directory, mode 0600. The process that owns a store serves the HTTP
//! API there. Every other command sends requests to this socket instead of opening the store.
//!
//! Only the process that has the store's lock creates the socket. So if a file exists at the path when an owner
//! starts, a crash left this file behind, and it is replaced. A client to which no process answers there opens the
//! store itself.

use super::http::{App, Ownership, Phase, Settings, serve_socket};
use crate::api::{SOCKET_NAME, StateDirectory};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windlass_engine::{AuditLog, Engine};

/// Maximum time for the last answers when the owner ends.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The listening socket of a store's owner.
pub struct ControlSocket {
    path: PathBuf,
    /// The socket's inode. If the file at the path has another inode, the file belongs to another owner and must not
    /// be removed.
    inode: u64,
    serving: JoinHandle<()>,
    /// The phase of a process that ends with its own runs. `None` for a server, which sets its phase itself.
    phase: Option<watch::Sender<Phase>>,
}

impl ControlSocket {
    /// Listens in a state directory, for a process that ends with its own runs. If a server may have the store before,
    /// `requested` says whether one has requested it.
    /// Only the process that has opened the store may call this: a file at the socket's path is replaced, because
    /// only a crash can have left it.
    ///
    /// # Errors
    /// If no socket can be created in the directory, or if the socket's path is too long.
    pub fn open(
        state: &Path,
        engine: Arc<Engine>,
        requested: Option<watch::Sender<bool>>,
    ) -> io::Result<Self> {
        let (phase, watched) = watch::channel(Phase::Ready);
        let ownership = requested.map_or(Ownership::OwnRuns, Ownership::UntilRequested);
        let audit = AuditLog::open(state);
        let app = App::new(engine, watched, Settings::default(), audit, ownership);
        let mut socket = Self::of(state, app)?;
        socket.phase = Some(phase);
        Ok(socket)
    }

    /// Listens in a state directory, for a server, which runs until it receives a request to stop.
    #[allow(clippy::disallowed_methods, reason = "the server has tasks of its own")]
    pub(super) fn of(state: &Path, app: Arc<App>) -> io::Result<Self> {
        let directory = StateDirectory::open(state)?;
        let listener = bind(&directory)?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let serving = tokio::spawn(serve_socket(listener, app));
        let path = directory.file(SOCKET_NAME);
        Ok(Self {
            inode: fs::symlink_metadata(&path)?.ino(),
            path,
            serving,
            phase: None,
        })
    }

    /// Accepts no more clients, and waits until the requests in progress are answered or `ANSWER_TIME` is over.
    /// Must be called before the store's lock is released: after that, the file at the path may belong to another
    /// owner.
    pub async fn close(mut self) {
        let own = fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if own {
            let _ = fs::remove_file(&self.path);
        }
        // All requests in progress are answered, because a client that receives no answer would repeat a command that
        // was executed.
        if let Some(phase) = &self.phase {
            phase.send_replace(Phase::Draining);
        }
        let answered = tokio::time::timeout(ANSWER_TIME, &mut self.serving).await;
        if answered.is_err() {
            self.serving.abort();
        }
    }
}

/// Creates a listener at its final path.
/// The socket is created such that no other user can connect before its mode is set.
fn bind(directory: &StateDirectory) -> io::Result<StdListener> {
    let private = directory.file("control.new");
    let _ = fs::remove_dir_all(&private);
    fs::DirBuilder::new().mode(0o700).create(&private)?;
    let listener = StdListener::bind(directory.socket("control.new/s")?)?;
    let made = directory.file("control.new/s");
    fs::set_permissions(&made, Permissions::from_mode(0o600))?;
    fs::rename(&made, directory.file(SOCKET_NAME))?;
    fs::remove_dir(&private)?;
    Ok(listener)
}
