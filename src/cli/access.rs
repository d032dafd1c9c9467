//! Who is asked about a store: the process that owns it, or, when nobody does, the store itself.

use super::exit::Failure;
use crate::engine::{Engine, EngineError, Inspector, RunStatus, StoreError};
use crate::server::control::{Client, ControlError, RefusalKind, Request};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// An owner may be about to listen, or about to leave: so long both ways are tried.
const PATIENCE: Duration = Duration::from_secs(5);

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
        if let Some(client) = Client::connect(state).await? {
            return Ok(Reach::Owner(client));
        }
        match open() {
            Ok(opened) => return Ok(Reach::Here(opened)),
            Err(EngineError::Store(StoreError::Locked { .. })) if Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether someone else should be asked: the owner has gone, or is about to.
pub fn is_gone(error: &ControlError) -> bool {
    match error {
        ControlError::Lost => true,
        ControlError::Refused(refusal) => refusal.kind == RefusalKind::Stopping,
        ControlError::Silent | ControlError::Foreign(_) | ControlError::Socket(_) => false,
    }
}

/// Looks at a store: the owner makes the report, or this process does.
pub async fn look<T: DeserializeOwned>(
    state: &Path,
    request: &Request,
    read: impl Fn(&Inspector) -> Result<T, EngineError>,
) -> Result<T, Failure> {
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
pub async fn command(
    state: &Path,
    request: &Request,
    carry_out: impl AsyncFn(&Engine) -> Result<RunStatus, EngineError>,
) -> Result<RunStatus, Failure> {
    let deadline = Instant::now() + PATIENCE;
    let open = || Engine::builder().quiet().open_existing(state);
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
