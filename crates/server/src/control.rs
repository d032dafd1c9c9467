//! The control socket: `control.sock` in the state directory, mode 0600. The process that owns a
//! store serves the HTTP API there; every other command asks it instead of opening the store.
//!
//! The socket is made only by the process that has the store's lock. So whatever lies at its path
//! when an owner starts was left by a crash and is replaced, and a client that finds no listener
//! opens the store itself.

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
    /// The socket as a file: another one in its place is another owner's.
    inode: u64,
    serving: JoinHandle<()>,
    /// The phase of a process that ends with its own runs. A server has it itself.
    phase: Option<watch::Sender<Phase>>,
}

impl ControlSocket {
    /// Listens in a state directory, for a process that leaves with its own runs. Only for the
    /// process that has the store open: what lies at the socket's path was left by a crash, and is
    /// replaced.
    ///
    /// # Errors
    /// When the directory takes no socket, or none of its length.
    pub fn open(state: &Path, engine: Arc<Engine>) -> io::Result<Self> {
        let (phase, watched) = watch::channel(Phase::Ready);
        let audit = AuditLog::open(state);
        let app = App::new(engine, watched, Settings::default(), audit, false);
        let mut socket = Self::of(state, app)?;
        socket.phase = Some(phase);
        Ok(socket)
    }

    /// The same for a server, which runs until it receives a request to stop.
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

    /// Takes no more clients, and returns when those that it has are answered or had their time. Call it before the
    /// store is released: afterwards the path may be another owner's.
    pub async fn close(mut self) {
        let own = fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode);
        if own {
            let _ = fs::remove_file(&self.path);
        }
        // A client without an answer would repeat a command that was carried out.
        if let Some(phase) = &self.phase {
            phase.send_replace(Phase::Draining);
        }
        let answered = tokio::time::timeout(ANSWER_TIME, &mut self.serving).await;
        if answered.is_err() {
            self.serving.abort();
        }
    }
}

/// A listener at its final path, which no other user could reach before its mode was set.
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
