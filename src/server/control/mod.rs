//! The control socket: `control.sock` in the state directory, mode 0600. The process that owns a
//! store listens there; every other command asks it instead of opening the store.
//!
//! The protocol is one JSON document a line. A client sends a [`Request`]; the owner sends a
//! [`Reply`], and after a request to follow a run one more for each [`Notice`], until the run has
//! ended or stands still. A connection may carry several requests, one after the other.
//!
//! The socket is made only by the process that has the store's lock. So whatever lies at its path
//! when an owner starts was left by a crash and is replaced, and a client that finds nobody
//! listening opens the store itself.

mod address;
mod client;
mod owner;

pub use client::{Client, ControlError};
pub use owner::ControlSocket;

use crate::engine::PruneFilter;
use crate::engine::report::{DumpFilter, HistoryFilter, ListFilter};
use crate::engine::{Answer, Notice, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest request, in bytes: a workflow of the largest size with everything in it escaped.
pub const MAX_REQUEST: usize = 64 << 20;

/// What an owner is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Whether it is there. Gives [`Pong`].
    Ping,
    /// Its runs.
    List {
        /// Which.
        #[serde(default)]
        filter: ListFilter,
    },
    /// Why a run is where it is.
    Status {
        /// The run.
        run: String,
    },
    /// What a run did.
    History {
        /// The run.
        run: String,
        /// Which part.
        #[serde(default)]
        filter: HistoryFilter,
    },
    /// The checkpoints as they lie in the store.
    Dump {
        /// Which part.
        #[serde(default)]
        filter: DumpFilter,
    },
    /// Pause a run. Gives its status, as the three below do.
    Pause {
        /// The run.
        run: String,
    },
    /// Go on with a run.
    Resume {
        /// The run.
        run: String,
    },
    /// End a run as cancelled.
    Cancel {
        /// The run.
        run: String,
    },
    /// Send a signal to a run.
    Signal {
        /// The run.
        run: String,
        /// The signal's name.
        name: String,
        /// What it carries.
        #[serde(default)]
        payload: Value,
    },
    /// Forget runs that have ended. Gives what was forgotten.
    Prune {
        /// Which.
        filter: PruneFilter,
    },
    /// Copy the store. Gives what was copied.
    Backup {
        /// The state directory that the copy is put in, an absolute path.
        dir: String,
    },
    /// Go on with every run that is not at its end. Gives their ids.
    Recover {
        /// With those that are paused, too.
        #[serde(default)]
        paused: bool,
    },
    /// Start a run that ended badly once more. Gives the new one's id.
    Retry {
        /// The run.
        run: String,
        /// The new one's id; the client chooses it, so that a request can be repeated.
        id: String,
        /// The action or iteration that it goes on from; none: its beginning.
        #[serde(default)]
        from: Option<String>,
    },
    /// Start a run. When it is answered, the run's first step is durable.
    Start(Box<StartRequest>),
    /// Follow a run: notices until it has ended or stands still.
    Follow {
        /// The run.
        run: String,
        /// Its events after this sequence number too; none: no events.
        #[serde(default)]
        events: Option<u64>,
    },
}

/// A run to be started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// The run's id; the client chooses it, so that a request can be repeated.
    pub run: String,
    /// The workflow file's path, for diagnostics.
    pub path: String,
    /// The workflow file's text.
    pub text: String,
    /// The files that it names, and those of its parameters, in the order of the client's bundle.
    #[serde(default)]
    pub files: Vec<FileEntry>,
    /// Reads it as this format.
    #[serde(default)]
    pub dialect: Option<String>,
    /// The cap on the count of loops.
    #[serde(default)]
    pub max_count: Option<u64>,
    /// The cap on the timeout of loops, in milliseconds.
    #[serde(default)]
    pub max_timeout_ms: Option<u64>,
    /// Handlers besides those of the workflow and of the owner.
    #[serde(default)]
    pub handlers: Vec<(String, HandlerEntry)>,
    /// What relative paths of its actions are from.
    #[serde(default)]
    pub folder: Option<String>,
    /// The input.
    #[serde(default)]
    pub input: Value,
    /// What the run is marked with.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A further file of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path from the workflow's folder.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// How a handler is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerEntry {
    /// argv.
    Command(Vec<String>),
    /// POST of JSON.
    Url(String),
    /// Answers in its place.
    Stub(Vec<Answer>),
}

/// The answer to [`Request::Ping`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The owner's version.
    pub version: String,
    /// The owner's process id.
    pub pid: u32,
    /// Whether it stays until it is told to stop, rather than until its own runs have ended.
    #[serde(default)]
    pub serves: bool,
}

/// What an owner says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It is done.
    Done {
        /// What came of it.
        result: serde_json::Value,
    },
    /// Something happened to the run that is followed.
    Notice(Notice),
    /// Nothing more comes of the run that is followed.
    End,
    /// It is not done.
    Refused(Refusal),
}

/// Why an owner does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of reason.
    pub kind: RefusalKind,
    /// The reason.
    pub message: String,
}

/// The kinds of [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request cannot be read.
    BadRequest,
    /// There is no such run.
    UnknownRun,
    /// There is a run of this id already.
    Exists,
    /// The run has ended.
    Ended,
    /// The input is not what the workflow declares.
    Input,
    /// The workflow is refused; the message has all of its diagnostics.
    Workflow,
    /// The store.
    Store,
    /// The owner has as much to do as it takes: later there may be room.
    Busy,
    /// The owner is about to leave: ask again whoever owns the store then.
    Stopping,
    /// Anything else.
    Internal,
}
