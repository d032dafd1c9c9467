//! `windlass serve`: owns a store and executes its runs until it is stopped.

use super::access::{OwnerOrStore, RETRY_EVERY, owner_or};
use super::args::{ConsoleAccess, DurationArg, Global, LoadArgs, ServeArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::Screen;
use super::remote_engine;
use super::signals::Signals;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Engine, EngineError, Limits, LoadOptions, PruneFilter};
use windlass_server::client::Client;
use windlass_server::{Console, FurtherRoutes, Options, TlsFiles, Tokens};

/// Interval of the checks for changes of runs that other processes execute (on Temporal).
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub async fn serve(global: &Global, screen: Screen, args: &ServeArgs) -> Result<Exit, Failure> {
    if global.server.is_some() {
        let message = "`serve` is a server: --server asks another one";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (tokens, token_file) = match &global.token_file {
        Some(path) => {
            let (tokens, text) = Tokens::read(path).map_err(Failure::Usage)?;
            (tokens, Some((path.clone(), text)))
        }
        None => {
            let token = inputs::token(None)?;
            (
                token.as_deref().map(Tokens::admin).unwrap_or_default(),
                None,
            )
        }
    };
    let options = Options {
        listen: args.listen.address,
        tokens,
        token_file,
        console: match args.ui {
            ConsoleAccess::Off => Console::Off,
            ConsoleAccess::Read => Console::Read,
            ConsoleAccess::Full => Console::Full,
        },
        tls: match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles {
                cert: cert.clone(),
                key: key.clone(),
            }),
            _ => None,
        },
        allow_plain: global.allow_plain_http,
        hosts: [
            &args.allow_host[..],
            std::slice::from_ref(&args.listen.host),
        ]
        .concat(),
        origins: args.allow_origin.clone(),
        connections: args.max_connections,
        idle_timeout: args.client_timeout.0,
        public_url: args.public_url.clone(),
        further: further(),
        grace: args.grace.0,
        prune: pruning(args),
    };
    let load = LoadArgs {
        max_count: args.max_count,
        max_timeout: args.max_timeout,
        env: args.env.clone(),
        ..LoadArgs::default()
    };
    let read = inputs::options(global, &load, &args.handlers)?;
    let mut signals = Signals::new()?;
    let mut has_warned = false;
    let engine = loop {
        let (reason, interval) = match owner_or(&global.state, || open(global, args, &read)).await {
            Ok(OwnerOrStore::Here(engine)) => break Arc::new(engine),
            Ok(OwnerOrStore::Owner(client)) => match client.request_release().await {
                Ok(owner) if owner.releases => {
                    let pid = owner.pid;
                    let message = format!(
                        "process {pid} took the store over, and releases it when its actions have ended, or after 10 s"
                    );
                    (message, RETRY_EVERY)
                }
                Err(error) if error.is_gone() => continue,
                _ => return Err(taken(global, &client)),
            },
            Err(Failure::Engine(error)) if error.is_out_of_space() => {
                (format!("{error}: waiting for disk space"), CHECK_INTERVAL)
            }
            Err(failure) => return Err(failure),
        };
        if !std::mem::replace(&mut has_warned, true) {
            screen.warn(&reason);
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = signals.next() => return Ok(Exit::Succeeded),
        }
    };
    if global.engine.is_some() {
        look_elsewhere(Arc::clone(&engine));
    }
    let ready = |url: &str| screen.say(format!("ready at {url}"));
    windlass_server::serve(&global.state, engine, options, ready, async || {
        signals.next().await
    })
    .await?;
    Ok(Exit::Succeeded)
}

fn taken(global: &Global, client: &Client) -> Failure {
    let pid = client.owner().map_or(0, |owner| owner.pid);
    let state = global.state.display();
    Failure::Taken(format!(
        "process {pid} owns the store in {state}: stop it first"
    ))
}

/// Returns the routes of the Model Context Protocol, for agents.
#[cfg(feature = "mcp")]
fn further() -> Option<FurtherRoutes> {
    Some(super::mcp::routes)
}

#[cfg(not(feature = "mcp"))]
fn further() -> Option<FurtherRoutes> {
    None
}

/// Reads runs that other processes execute (on Temporal) from time to time, so that this server's clients receive the
/// changes.
#[allow(
    clippy::disallowed_methods,
    reason = "it keeps running as long as the server"
)]
fn look_elsewhere(engine: Arc<Engine>) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let engine = Arc::clone(&engine);
            // The result is ignored: data that cannot be read now is read at the next check.
            let looked = tokio::task::spawn_blocking(move || engine.inspector().run_index(|_| ()));
            let _ = looked.await;
        }
    });
}

/// Returns a filter for the runs that are deleted while the server runs. `None` means that none are deleted.
fn pruning(args: &ServeArgs) -> Option<PruneFilter> {
    let filter = PruneFilter {
        older_than_ms: args.prune_older_than.map(DurationArg::millis),
        keep: args.prune_keep,
        ..PruneFilter::default()
    };
    let any = filter.older_than_ms.is_some() || filter.keep.is_some();
    any.then_some(filter)
}

fn open(global: &Global, args: &ServeArgs, options: &LoadOptions) -> Result<Engine, EngineError> {
    let usual = Limits::default();
    let limits = Limits {
        effects: args.max_effects.unwrap_or(usual.effects),
        effects_per_workflow: args
            .max_effects_per_workflow
            .unwrap_or(usual.effects_per_workflow),
        effects_per_host: args.max_effects_per_host.unwrap_or(usual.effects_per_host),
        live_runs: args.max_runs.unwrap_or(usual.live_runs),
        guest_memory: args.max_guest_memory.unwrap_or(usual.guest_memory),
        ..usual
    };
    let mut builder = inputs::engine(options, &args.guest).limits(limits);
    if let Some(count) = options.max_count {
        builder = builder.max_count(count);
    }
    if let Some(timeout) = options.max_timeout {
        builder = builder.max_timeout(timeout);
    }
    let builder = inputs::with_store_kind(builder, global.store);
    match &global.engine {
        // Saved workflows are in the local store, but the runs are on the engine of `--engine`.
        Some(at) => {
            remote_engine::engine(builder, at, options.state_key.clone(), Some(&global.state))
        }
        None => builder.open(&global.state),
    }
}
