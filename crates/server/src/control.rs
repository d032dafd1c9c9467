//! The control socket: `control.sock` in the state directory, mode 0600. The process that owns a store serves the HTTP
//! API there. Every other command sends requests to this socket instead of opening the store.
//!
//! Only the process that has the store's lock creates the socket. So a file that exists at the path when an owner
//! starts was left by a crash, and is replaced. A client that finds no listener opens the store itself.

use super::http::{App, Phase, Settings, serve_socket};
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

/// How long the last answers may take when the owner ends.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The listening socket of a store's owner.
pub struct ControlSocket {
    path: PathBuf,
    /// The socket's inode. If the file at the path has another one, it belongs to another owner.
    inode: u64,
    serving: JoinHandle<()>,
    /// The phase of a process that ends with its own runs; none for a server, which sets the phase itself.
    phase: Option<watch::Sender<Phase>>,
}

impl ControlSocket {
    /// Listens in a state directory, for a process that ends with its own runs. Only the process that has the store
    /// open may call this: a file at the socket's path was left by a crash and is replaced.
    ///
    /// # Errors
    /// If no socket can be created in the directory, or its path is too long for a socket.
    pub fn open(state: &Path, engine: Arc<Engine>) -> io::Result<Self> {
        let (phase, watched) = watch::channel(Phase::Ready);
        let audit = AuditLog::open(state);
        let app = App::new(engine, watched, Settings::default(), audit, false);
        let mut socket = Self::of(state, app)?;
        socket.phase = Some(phase);
        Ok(socket)
    }

    /// Does the same for a server, which runs until it receives a request to stop.
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

    /// Accepts no more clients, and waits until the requests in progress are answered or timed out. Must be called
    /// before the store is released: afterwards, the file at the path may belong to another owner.
    pub async fn close(mut self) {
        let own = fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if own {
            let _ = fs::remove_file(&self.path);
        }
        // A client that receives no answer would repeat a command that was executed.
        if let Some(phase) = &self.phase {
            phase.send_replace(Phase::Draining);
        }
        let answered = tokio::time::timeout(ANSWER_TIME, &mut self.serving).await;
        if answered.is_err() {
            self.serving.abort();
        }
    }
}

/// Creates a listener at its final path. No other user can connect before the socket's mode is set.
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
