//! Where a command reads a store's data: from a server, from the owner (the process that has opened the store), or
//! from the store itself if it has no owner.

use super::args::Global;
use super::exit::Failure;
use super::inputs;
use super::output::Screen;
use super::remote_engine;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::{Engine, EngineBuilder, EngineError, Inspector, StoreError};
use windlass_server::client::{Client, ClientError};

/// How long a command repeats a failed attempt. The owner may be about to listen or about to exit.
pub const RETRY_TIME: Duration = Duration::from_secs(5);

/// The time between two attempts.
pub const RETRY_EVERY: Duration = Duration::from_millis(20);

/// Returns what a command says when a server or Temporal does not answer, and it waits.
pub fn reconnecting(name: &str) -> String {
    format!("{name} does not answer: reconnecting")
}

/// How long a command that follows a run waits for a server that does not answer.
const OUTAGE_TIME: Duration = Duration::from_secs(120);

/// The time since which a server does not answer a command that follows a run.
#[derive(Default)]
pub struct Outage(Option<Instant>);

impl Outage {
    /// Returns the answer of a request. Returns `None` if the server does not answer and the request is to be repeated.
    pub fn answer<T>(
        &mut self,
        screen: Screen,
        answer: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match answer {
            Err(Failure::Client(error)) if error.is_outage() => {
                if self.0.is_none() {
                    screen.say(reconnecting("the server"));
                }
                let since = *self.0.get_or_insert_with(Instant::now);
                match since.elapsed() < OUTAGE_TIME {
                    true => Ok(None),
                    false => Err(Failure::Client(error)),
                }
            }
            Err(failure) => Err(failure),
            Ok(value) => {
                self.0 = None;
                Ok(Some(value))
            }
        }
    }
}

pub enum OwnerOrStore<T> {
    /// The owner of the store, over its control socket.
    Owner(Client),
    /// This process, which has opened the store.
    Here(T),
}

/// Finds the owner, or opens the store.
pub async fn owner_or<T>(
    state: &Path,
    mut open: impl FnMut() -> Result<T, EngineError>,
) -> Result<OwnerOrStore<T>, Failure> {
    let deadline = Instant::now() + RETRY_TIME;
    loop {
        // A killed process of another user may have left the socket behind. Then the store has no owner, and is
        // opened here.
        let barred = match Client::for_state_dir(state).await {
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

/// Returns the client of the server that is used instead of the store, if there is one.
/// For a local store, checks that its database is the one that `--store` names.
pub fn remote(global: &Global) -> Result<Option<Client>, Failure> {
    let Some(url) = &global.server else {
        check_store_kind(global)?;
        return Ok(None);
    };
    let token = inputs::token(global.token_file.as_deref())?;
    let client = Client::for_url(url, token, global.allow_plain_http);
    client.map(Some).map_err(Failure::Usage)
}

/// Fails if the store's database is not the one that `--store` names.
fn check_store_kind(global: &Global) -> Result<(), Failure> {
    match global.store {
        Some(kind) => Ok(kind.check(&global.state).map_err(EngineError::from)?),
        None => Ok(()),
    }
}

/// Returns whether another process owns the store, or a server is used instead of it.
pub async fn is_owned(global: &Global) -> Result<bool, Failure> {
    check_store_kind(global)?;
    Ok(global.server.is_some() || Client::for_state_dir(&global.state).await?.is_some())
}

/// Sends a request to the server or the owner. Without both, does the work in this process. If `is_passing` returns
/// true for an error of the request, makes another attempt.
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

/// Inspects a store.
/// The report is made by the server or the owner, or by this process if there is neither.
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

/// Sends a command to a run.
/// The server or the owner executes the command, or this process if there is neither. This process does not continue
/// the run.
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

/// Like [`command`], but creates the store if it does not exist.
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
    // A server that restarts is available again soon, and these commands can be repeated.
    answer(global, open, ask, here, ClientError::is_outage).await
}
