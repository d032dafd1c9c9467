//! A client's side: asks the owner of a store, if there is one.

use super::address::{Directory, NAME};
use super::{Pong, Refusal, Reply, Request};
use crate::engine::Notice;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// An owner that is alive answers a ping in this time, whatever else it does.
const PING_TIME: Duration = Duration::from_secs(5);

/// Why an owner gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It went away before it answered: it may or may not have done what was asked.
    #[error("the process that owns the store went away")]
    Lost,
    /// It listens, but says nothing.
    #[error("the process that owns the store does not answer; is it stopped?")]
    Silent,
    /// It does not do it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is of a version that speaks differently.
    #[error("the process that owns the store says what this version does not understand: {0}")]
    Foreign(String),
    /// A server elsewhere does not answer.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The socket cannot be used.
    #[error("control.sock cannot be used: {0}")]
    Socket(#[source] io::Error),
}

/// A connection to the owner of a store.
pub struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    owner: Option<Pong>,
}

impl Client {
    /// Connects to the owner of the store in a directory; none when nobody owns it, be there a
    /// socket left by a crash or not.
    ///
    /// # Errors
    /// [`ControlError::Silent`], [`ControlError::Foreign`], and [`ControlError::Socket`] when it
    /// is another user's.
    pub async fn connect(state: &Path) -> Result<Option<Self>, ControlError> {
        let Ok(directory) = Directory::open(state) else {
            return Ok(None);
        };
        let Ok(address) = directory.socket(NAME) else {
            return Ok(None);
        };
        let stream = match UnixStream::connect(&address).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(ControlError::Socket(error));
            }
            Err(_) => return Ok(None),
        };
        let (reader, writer) = stream.into_split();
        let mut client = Self {
            reader: BufReader::new(reader),
            writer,
            owner: None,
        };
        match tokio::time::timeout(PING_TIME, client.ask::<Pong>(&Request::Ping)).await {
            Ok(Ok(pong)) => {
                client.owner = Some(pong);
                Ok(Some(client))
            }
            // It left while we came.
            Ok(Err(ControlError::Lost)) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ControlError::Silent),
        }
    }

    /// Who answers.
    #[must_use]
    pub fn owner(&self) -> Option<&Pong> {
        self.owner.as_ref()
    }

    /// Asks, and reads the answer.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ControlError> {
        let mut line = serde_json::to_vec(request)
            .map_err(|error| ControlError::Foreign(error.to_string()))?;
        line.push(b'\n');
        let sent = self.writer.write_all(&line).await;
        sent.map_err(|_| ControlError::Lost)?;
        match self.read().await? {
            Reply::Done { result } => serde_json::from_value(result)
                .map_err(|error| ControlError::Foreign(error.to_string())),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Notice(_) | Reply::End => Err(ControlError::Foreign(String::from(
                "a notice without a question",
            ))),
        }
    }

    /// The next notice of a run that is followed; none when nothing more comes.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn notice(&mut self) -> Result<Option<Notice>, ControlError> {
        match self.read().await? {
            Reply::Notice(notice) => Ok(Some(notice)),
            Reply::End => Ok(None),
            Reply::Refused(refusal) => Err(refusal.into()),
            Reply::Done { .. } => Err(ControlError::Foreign(String::from(
                "an answer without a question",
            ))),
        }
    }

    async fn read(&mut self) -> Result<Reply, ControlError> {
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line).await;
        if read.is_err() || line.last() != Some(&b'\n') {
            return Err(ControlError::Lost);
        }
        serde_json::from_slice(&line).map_err(|error| ControlError::Foreign(error.to_string()))
    }
}
