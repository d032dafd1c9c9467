//! An engine in another process, however it is reached.

use super::control::{Client, ControlError, Request};
use super::remote::{Notices, Remote};
use crate::engine::Notice;
use serde::de::DeserializeOwned;

/// An engine in another process.
pub enum Peer {
    /// The owner of a store of this machine.
    Owner(Client),
    /// A server at a URL, and the run that is followed there.
    Server(Remote, Option<Notices>),
}

impl Peer {
    /// Asks, and reads the answer.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ControlError> {
        match self {
            Self::Owner(client) => client.ask(request).await,
            Self::Server(remote, _) => remote.ask(request).await,
        }
    }

    /// Begins to follow a run; with `events`, also its history after that number.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn follow(&mut self, run: &str, events: Option<u64>) -> Result<(), ControlError> {
        match self {
            Self::Owner(client) => {
                let run = run.to_owned();
                let request = Request::Follow { run, events };
                client.ask::<serde_json::Value>(&request).await.map(|_| ())
            }
            Self::Server(remote, notices) => {
                *notices = Some(remote.follow(run, events).await?);
                Ok(())
            }
        }
    }

    /// The next notice of the run that is followed; none when nothing more comes.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn notice(&mut self) -> Result<Option<Notice>, ControlError> {
        match self {
            Self::Owner(client) => client.notice().await,
            Self::Server(_, Some(notices)) => notices.next().await,
            Self::Server(_, None) => Ok(None),
        }
    }
}
