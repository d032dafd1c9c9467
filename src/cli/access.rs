//! Who is asked about a store: the process that owns it, or, when nobody does, the store itself.

use super::args::Global;
use super::exit::Failure;
use super::inputs;
use crate::engine::{Engine, EngineError, Inspector, StoreError};
use crate::server::Remote;
use crate::server::control::{Client, ControlError, RefusalKind, Request};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// An owner may be about to listen, or about to leave: so long both ways are tried.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Between two tries.
pub const PAUSE: Duration = Duration::from_millis(20);

/// Who answers.
pub enum Reach<T> {
    /// The process that owns the store.
    Owner(Client),
    /// This process: it has opened the store.
    Here(T),
}

/// Finds the owner, or opens the store.
pub async fn reach<T>(
    state: &Path,
    mut open: impl FnMut() -> Result<T, EngineError>,
) -> Result<Reach<T>, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // A socket of another user may be left by a process that was killed: then nobody has the store.
        let barred = match Client::connect(state).await {
            Ok(Some(client)) => return Ok(Reach::Owner(client)),
            Ok(None) => None,
            Err(error @ ControlError::Socket(_)) => Some(error),
            Err(error) => return Err(error.into()),
        };
        match (open(), barred) {
            (Ok(opened), _) => return Ok(Reach::Here(opened)),
            (Err(EngineError::Store(StoreError::Locked { .. })), Some(barred)) => {
                return Err(barred.into());
            }
            (Err(EngineError::Store(StoreError::Locked { .. })), None)
                if Instant::now() < deadline =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
}

/// Whether someone else should be asked: the owner has gone, or is about to.
pub fn is_gone(error: &ControlError) -> bool {
    match error {
        ControlError::Lost => true,
        ControlError::Refused(refusal) => refusal.kind == RefusalKind::Stopping,
        ControlError::Silent
        | ControlError::Foreign(_)
        | ControlError::Socket(_)
        | ControlError::Unreachable(_) => false,
    }
}

/// The server that is to be asked instead of the store.
pub fn remote(global: &Global) -> Result<Option<Remote>, Failure> {
    let Some(url) = &global.server else {
        return Ok(None);
    };
    let token = inputs::token(global.token_file.as_deref())?;
    let remote = Remote::new(url, token, global.allow_plain_http);
    remote.map(Some).map_err(Failure::Usage)
}

/// Asks a server elsewhere. One that is about to leave is asked again.
async fn ask<T: DeserializeOwned>(remote: &Remote, request: &Request) -> Result<T, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match remote.ask(request).await {
            Err(error) if is_gone(&error) && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            other => return Ok(other?),
        }
    }
}

/// Looks at a store: its owner or a server makes the report, or this process does.
pub async fn look<T: DeserializeOwned>(
    global: &Global,
    request: &Request,
    read: impl Fn(&Inspector) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    if let Some(remote) = remote(global)? {
        return ask(&remote, request).await;
    }
    let state = &*global.state;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match reach(state, || Inspector::open(state)).await? {
            Reach::Here(inspector) => return Ok(read(&inspector)?),
            Reach::Owner(mut client) => match client.ask(request).await {
                Err(error) if is_gone(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => return Ok(other?),
            },
        }
    }
}

/// A command to a run, carried out by the owner or, without moving the run, by this process.
pub async fn command<T: DeserializeOwned>(
    global: &Global,
    request: &Request,
    carry_out: impl AsyncFn(&Engine) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    if let Some(remote) = remote(global)? {
        return ask(&remote, request).await;
    }
    let state = &*global.state;
    let deadline = Instant::now() + PATIENCE;
    let key = inputs::state_key(global)?;
    let open = || {
        let builder = Engine::builder().quiet();
        let builder = match &key {
            Some(key) => builder.state_key(key.clone()),
            None => builder,
        };
        builder.open_existing(state)
    };
    loop {
        match reach(state, open).await? {
            Reach::Here(engine) => {
                let outcome = carry_out(&engine).await;
                engine.stop().await;
                return Ok(outcome?);
            }
            Reach::Owner(mut client) => match client.ask(request).await {
                Err(error) if is_gone(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => return Ok(other?),
            },
        }
    }
}
