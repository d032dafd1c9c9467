//! `windlass worker`: executes runs on Temporal until it is stopped.

use super::args::{Global, LoadArgs, WorkerArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::Screen;
use super::signals::Signals;
use windlass_engine::EngineError;
use windlass_temporal::{Target, Wire, Worker, WorkerOptions};

pub async fn worker(global: &Global, screen: Screen, args: &WorkerArgs) -> Result<Exit, Failure> {
    let Some(at) = &global.engine else {
        return Err(Failure::Usage(String::from(
            "a worker needs an engine: --engine temporal://HOST:PORT/NAMESPACE?queue=NAME",
        )));
    };
    let load = LoadArgs {
        env: args.env.clone(),
        ..LoadArgs::default()
    };
    let options = inputs::options(global, &load, &args.handlers)?;
    let wire = Wire::sealed_with(inputs::state_key(global)?);
    let loader = inputs::engine(&options, &args.guest).loader();
    let how = WorkerOptions {
        heartbeat: args.heartbeat.0,
        sticky: args.sticky.0,
        effects: args.max_effects,
        runs: args.max_runs,
        deployment: args.deployment.clone(),
        grace: args.grace.0,
    };
    let target = Target::parse(at).map_err(EngineError::from)?;
    let worker = Worker::connect(target, loader, wire, how)
        .await
        .map_err(EngineError::from)?;
    let mut signals = Signals::new()?;
    screen.say(format!("ready at {at}"));
    worker
        .run(async { signals.next().await })
        .await
        .map_err(EngineError::from)?;
    Ok(Exit::Succeeded)
}
