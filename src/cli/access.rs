//! The source of a store's data: a server, the process that owns the store, or, without an owner, the
//! store itself.

use super::args::Global;
use super::exit::Failure;
use super::inputs;
use super::remote_engine;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::{Engine, EngineBuilder, EngineError, Inspector, StoreError};
use windlass_server::client::{Client, ClientError};

/// How long a command tries again: an owner may be about to listen, or about to leave.
pub const RETRY_TIME: Duration = Duration::from_secs(5);

/// The time between two tries.
pub const RETRY_EVERY: Duration = Duration::from_millis(20);

pub enum OwnerOrStore<T> {
    /// The process that owns the store.
    Owner(Client),
    /// This process: it has opened the store.
    Here(T),
}

/// Finds the owner, or opens the store.
pub async fn owner_or<T>(
    state: &Path,
    mut open: impl FnMut() -> Result<T, EngineError>,
) -> Result<OwnerOrStore<T>, Failure> {
    let deadline = Instant::now() + RETRY_TIME;
    loop {
        // A killed process of another user may have left the socket. Then the store has no owner.
        let barred = match Client::on(state).await {
            Ok(Some(client)) => return Ok(OwnerOrStore::Owner(client)),
            Ok(None) => None,
            Err(error @ ClientError::Socket(_)) => Some(error),
            Err(error) => return Err(error.into()),
        };
        match (open(), barred) {
            (Ok(opened), _) => return Ok(OwnerOrStore::Here(opened)),
            (Err(EngineError::Store(StoreError::Locked { .. })), Some(barred)) => {
                return Err(barred.into());
            }
            (Err(EngineError::Store(StoreError::Locked { .. })), None)
                if Instant::now() < deadline =>
            {
                tokio::time::sleep(RETRY_EVERY).await;
            }
            (Err(error), _) => return Err(error.into()),
        }
    }
}

/// The server to use instead of the store.
pub fn remote(global: &Global) -> Result<Option<Client>, Failure> {
    let Some(url) = &global.server else {
        check_store_kind(global)?;
        return Ok(None);
    };
    let token = inputs::token(global.token_file.as_deref())?;
    let client = Client::at(url, token, global.allow_plain_http);
    client.map(Some).map_err(Failure::Usage)
}

/// Fails when another database keeps the store than `--store` says.
fn check_store_kind(global: &Global) -> Result<(), Failure> {
    match global.store {
        Some(kind) => Ok(kind.check(&global.state).map_err(EngineError::from)?),
        None => Ok(()),
    }
}

/// Whether another process has the store.
pub async fn is_owned(global: &Global) -> Result<bool, Failure> {
    check_store_kind(global)?;
    Ok(global.server.is_some() || Client::on(&global.state).await?.is_some())
}

/// Asks the server or the owner, or else does it here. It asks again after an error that another try may mend.
async fn answer<S, T>(
    global: &Global,
    mut open: impl FnMut() -> Result<S, EngineError>,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    here: impl AsyncFn(&S) -> Result<T, EngineError>,
    is_passing: impl Fn(&ClientError) -> bool,
) -> Result<T, Failure> {
    let remote = remote(global)?;
    let deadline = Instant::now() + RETRY_TIME;
    loop {
        let client = match &remote {
            Some(client) => client.clone(),
            None => match owner_or(&global.state, &mut open).await? {
                OwnerOrStore::Owner(client) => client,
                OwnerOrStore::Here(store) => return Ok(here(&store).await?),
            },
        };
        match ask(&client).await {
            Err(error) if is_passing(&error) && Instant::now() < deadline => {
                tokio::time::sleep(RETRY_EVERY).await;
            }
            other => return Ok(other?),
        }
    }
}

/// Inspects a store. A server or the owner makes the report, or this process does.
pub async fn inspect<T>(
    global: &Global,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    read: impl Fn(&Inspector) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    if let Some(at) = &global.engine {
        let key = inputs::state_key(global)?;
        let engine = remote_engine::engine(Engine::builder().commands_only(), at, key, None)?;
        return Ok(read(engine.inspector())?);
    }
    let open = || Inspector::open(&global.state);
    let read = async |store: &Inspector| read(store);
    answer(global, open, ask, read, ClientError::is_gone).await
}

/// A command to a run. A server or the owner carries it out, or this process, without moving the run.
pub async fn command<T>(
    global: &Global,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    carry_out: impl AsyncFn(&Engine) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    command_in(global, ask, carry_out, |builder, state| {
        builder.open_existing(state)
    })
    .await
}

/// The same, where a store is made when there is none.
pub async fn command_or_create<T>(
    global: &Global,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    carry_out: impl AsyncFn(&Engine) -> Result<T, EngineError>,
) -> Result<T, Failure> {
    command_in(global, ask, carry_out, |builder, state| builder.open(state)).await
}

async fn command_in<T>(
    global: &Global,
    ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    carry_out: impl AsyncFn(&Engine) -> Result<T, EngineError>,
    store: impl Fn(EngineBuilder, &Path) -> Result<Engine, EngineError>,
) -> Result<T, Failure> {
    let key = inputs::state_key(global)?;
    let open = || {
        let builder = Engine::builder().commands_only();
        let builder = match &key {
            Some(key) => builder.state_key(key.clone()),
            None => builder,
        };
        match &global.engine {
            Some(at) => remote_engine::engine(builder, at, key.clone(), None),
            None => store(
                inputs::with_store_kind(builder, global.store),
                &global.state,
            ),
        }
    };
    let here = async |engine: &Engine| {
        let outcome = carry_out(engine).await;
        engine.stop().await;
        outcome
    };
    if global.engine.is_some() {
        return Ok(here(&open()?).await?);
    }
    // A server that restarts is soon there again. Commands can be repeated.
    let is_passing =
        |error: &ClientError| error.is_gone() || matches!(error, ClientError::Unreachable(_));
    answer(global, open, ask, here, is_passing).await
}
