//! Exit codes, and the failures of commands.
//! A failure has a type here, and becomes text only in `main`.

use super::follow::quoted;
use nix::errno::Errno;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_engine::report::OutcomeReport;
use windlass_engine::{
    EngineError, ErrorCode, LoadError, ScheduleError, Status, StoreError, is_full,
};
use windlass_server::ServeError;
use windlass_server::client::ClientError;

/// How a process ends (docs/reference/cli.md).
/// The variants are ordered from the best to the worst. If several runs end differently, the worst one determines the
/// exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The command did what was requested.
    Succeeded,
    /// The run has not ended, because it is paused or because the user stopped following it.
    Unfinished,
    Cancelled,
    Timeout,
    /// A loop reached its maximum number of iterations.
    Count,
    Failed,
    /// The command line is invalid.
    Usage,
    Invalid,
    /// The store is locked, corrupt or full.
    Store,
}

impl Exit {
    /// Returns how a run ended.
    pub fn of_outcome(outcome: &OutcomeReport) -> Self {
        let kind = outcome.error.as_ref().map(|error| error.kind.as_str());
        match (outcome.status, kind) {
            (Status::Succeeded | Status::Skipped, _) => Self::Succeeded,
            (Status::Cancelled, _) => Self::Cancelled,
            (Status::TimedOut, _) | (Status::Failed, Some("timeout")) => Self::Timeout,
            (Status::Failed, Some("limit")) => Self::Count,
            (Status::Failed, _) => Self::Failed,
        }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Count => 4,
            Self::Timeout => 5,
            Self::Cancelled => 6,
            Self::Unfinished => 7,
            Self::Store => 8,
        }
    }

    fn of_code(code: ErrorCode) -> Self {
        match code.exit_code() {
            2 => Self::Usage,
            3 => Self::Invalid,
            8 => Self::Store,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// A workflow could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A request to the process that owns the store, or to the server, failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Another process owns the store.
    #[error("{0}")]
    Taken(String),
    /// The backup to restore is damaged. The store to replace may be intact.
    #[error("the backup in {dir} is damaged: {what}")]
    DamagedBackup {
        dir: String,
        what: String,
        /// Whether a repair may recover a part of it.
        is_readable: bool,
    },
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A file that the command line names cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        path: String,
        #[source]
        error: io::Error,
    },
    /// The operating system refuses a thread, a signal handler, a file or another resource.
    #[error("{0}")]
    Machine(#[source] io::Error),
    /// Standard output cannot be written. A closed pipe does not count as a failure.
    #[error("standard output cannot be written: {0}")]
    Output(#[source] io::Error),
    /// Standard output cannot be written. The rows of a run that has succeeded are in a file.
    #[error("standard output cannot be written: {error}")]
    UnprintedRows {
        #[source]
        error: io::Error,
        rows: PathBuf,
    },
}

impl Failure {
    /// Returns the engine's code for this failure, if there is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Load(error) => Some(error.code()),
            Self::Engine(error) | Self::Serve(ServeError::Engine(error)) => Some(error.code()),
            Self::Client(error) => error.code(),
            _ => None,
        }
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_)
            | Self::Unreadable { .. }
            | Self::Serve(
                ServeError::Exposed { .. } | ServeError::PublicUrl(_) | ServeError::Tls { .. },
            ) => Exit::Usage,
            other => match other.code() {
                Some(code) => Exit::of_code(code),
                None if matches!(
                    self,
                    Self::Taken(_) | Self::DamagedBackup { .. } | Self::Client(_)
                ) =>
                {
                    Exit::Store
                }
                None => Exit::Failed,
            },
        }
    }

    /// Returns a hint for the user. `target` has the flags that name the store, for commands that the hint suggests.
    /// `executes` is true if the failed command executes runs, which another command can continue.
    pub fn hint(&self, target: &str, executes: bool) -> Option<String> {
        let of_store = match self {
            Self::Client(ClientError::Unreachable(why)) => Some(unreachable(why).to_owned()),
            Self::Client(ClientError::Socket(_)) => Some(OTHER_USER.to_owned()),
            Self::Engine(EngineError::MissingInput(name, _)) => {
                Some(format!("pass it with -i {name}=…"))
            }
            Self::DamagedBackup {
                dir,
                is_readable: true,
                ..
            } => Some(format!(
                "restore another backup; `windlass doctor --repair --state {}` builds a new store from what is \
                 readable in this one",
                quoted(dir)
            )),
            Self::DamagedBackup { .. } => Some(String::from("restore another backup")),
            Self::UnprintedRows { rows, .. } => Some(format!(
                "the run has succeeded: all rows are in {}",
                rows.display()
            )),
            Self::Engine(EngineError::Store(error)) => advice(error, target, executes),
            Self::Engine(EngineError::Schedule(ScheduleError::Store(error))) => {
                advice(error, target, executes)
            }
            _ => None,
        };
        let of_code = || {
            Some(match self.code()? {
                ErrorCode::UnknownRun => format!("`windlass list{target}` shows the runs"),
                ErrorCode::RunExists => format!(
                    "choose another --id; `windlass resume{target}` resumes an unfinished run, and `windlass \
                     retry{target}` retries one that failed"
                ),
                ErrorCode::StoreExists => String::from(
                    "choose another directory; `restore --replace` replaces the store and renames the old one",
                ),
                ErrorCode::SameKey => format!(
                    "if no process executes that run, `windlass resume{target}` with its id continues it"
                ),
                ErrorCode::NoStore => {
                    String::from("`windlass run` makes one; --state says where it is")
                }
                ErrorCode::WorkflowChanged => {
                    format!("`windlass workflow list{target}` shows the stored workflows")
                }
                _ => return None,
            })
        };
        of_store.or_else(of_code)
    }
}

/// Returns a hint about a server that cannot be reached.
fn unreachable(why: &str) -> &'static str {
    // This is the error of rustls for a certificate as `openssl req -x509` makes it by default.
    if why.contains("CaUsedAsEndEntity") {
        "its certificate is one of an authority: make it with `openssl req -x509 … -addext \
         basicConstraints=critical,CA:FALSE`"
    } else if why.contains("invalid HTTP version") {
        "the server seems to use TLS: write https:// in --server"
    } else if why.contains("certificate") {
        "SSL_CERT_FILE names a file with the certificates that are trusted"
    } else {
        "is `windlass serve` running there, and is --server its address?"
    }
}

/// A hint about a store or a socket that this user cannot open.
const OTHER_USER: &str = "--state must name a directory that this user can create and write; a store \
                          belongs to the user who created it";

fn advice(error: &StoreError, target: &str, executes: bool) -> Option<String> {
    let hint = match error {
        StoreError::Locked { .. } => {
            "the process that owns it does not answer on control.sock; wait for it to end, or \
             choose another directory with --state"
        }
        StoreError::Foreign { .. } => "choose another directory with --state",
        StoreError::OtherKind { .. } => {
            return Some(format!(
                "remove --store and WINDLASS_STORE; `windlass migrate{target} --to …` migrates the store to \
                 another database"
            ));
        }
        StoreError::Unreadable(_) => {
            return Some(format!(
                "`windlass restore BACKUP --replace{target}` restores a backup; without one, move the directory \
                 of --state away, and the next run makes a new store"
            ));
        }
        StoreError::Corrupt { .. } => {
            return Some(format!(
                "`windlass dump{target}` shows what is still readable; `windlass doctor --repair{target}` \
                 builds a new store from that and renames this one. To copy a store in use, use only \
                 `windlass backup`"
            ));
        }
        StoreError::Gone { .. } => {
            return Some(format!(
                "nothing was acknowledged since: put the directory of --state back or restore a backup, then \
                 `windlass resume{target}` continues from its content"
            ));
        }
        StoreError::Unopened { .. } => OTHER_USER,
        StoreError::Io(error) => return of_disk(error, target, executes),
        StoreError::Failed { .. } => return of_acknowledged(target, executes),
        StoreError::UnknownRun(_) | StoreError::Conflict { .. } | StoreError::Rejected { .. } => {
            return None;
        }
    };
    Some(hint.to_owned())
}

/// Returns a hint to the steps that are stored, for a command that executes runs.
fn of_acknowledged(target: &str, executes: bool) -> Option<String> {
    executes.then(|| {
        format!("all acknowledged steps are safe: `windlass resume{target}` continues from there")
    })
}

/// Returns a hint about an error of the disk.
fn of_disk(error: &io::Error, target: &str, executes: bool) -> Option<String> {
    if error.kind() == io::ErrorKind::Unsupported {
        let hint = "nothing was changed; `windlass backup` makes a copy elsewhere";
        return Some(hint.to_owned());
    }
    let hint = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EROFS) => {
            "the directory is not writable: choose another directory with --state, or mount it \
             read-write"
        }
        Some(Errno::EACCES | Errno::EPERM) => {
            "this user cannot write there; a store belongs to the user who created it"
        }
        Some(Errno::EFBIG) => "raise the limit of a file's size: `ulimit -f`",
        Some(Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
            "files cannot be locked there, as on some network file systems: choose a local \
             directory with --state"
        }
        Some(Errno::EIO) => {
            "the disk fails (see `dmesg`): acknowledged steps are safe as far as they are \
             readable; copy the directory of --state to another disk and resume there"
        }
        _ if is_full(error) && executes => {
            return Some(format!(
                "free disk space or choose another directory with --state; acknowledged steps are safe, and \
                 `windlass resume{target}` continues from there"
            ));
        }
        _ if is_full(error) => "free disk space; acknowledged steps are safe",
        _ => return of_acknowledged(target, executes),
    };
    Some(hint.to_owned())
}
