//! `windlass pause`, `cancel` and `signal`: one command to one run. Without an owner the run is
//! changed in the store and does not move.

use super::access::command;
use super::args::{Global, Output, RunArg, SignalArgs};
use super::exit::{Exit, Failure};
use super::output::{self, Format};
use crate::engine::{RunStatus, Value};
use crate::server::control::Request;
use serde_json::json;

/// `windlass pause`.
pub async fn pause(global: &Global, args: &RunArg) -> Result<Exit, Failure> {
    let run = args.run.clone();
    let request = Request::Pause { run: run.clone() };
    let status = command(global, &request, async |engine| engine.pause(&run).await).await?;
    print(&run, status, &args.output)
}

/// `windlass cancel`.
pub async fn cancel(global: &Global, args: &RunArg) -> Result<Exit, Failure> {
    let run = args.run.clone();
    let request = Request::Cancel { run: run.clone() };
    let status = command(global, &request, async |engine| engine.cancel(&run).await).await?;
    print(&run, status, &args.output)
}

/// `windlass signal`.
pub async fn signal(global: &Global, args: &SignalArgs) -> Result<Exit, Failure> {
    let payload = match &args.payload {
        None => Value::Null,
        Some(text) => Value::from_json(text)
            .map_err(|error| Failure::Usage(format!("--payload takes JSON: {error}")))?,
    };
    let (run, name) = (args.run.clone(), args.name.clone());
    let request = Request::Signal {
        run: run.clone(),
        name: name.clone(),
        payload: payload.clone(),
    };
    let status = command(global, &request, async |engine| {
        engine.signal(&run, &name, payload.clone()).await
    });
    let status = status.await?;
    print(&run, status, &args.output)
}

fn print(run: &str, status: RunStatus, output: &Output) -> Result<Exit, Failure> {
    match output.output {
        Format::Table => output::print(format!("{run}  {}", status.as_str()))?,
        format => output::document(format, &json!({ "run": run, "status": status }))?,
    }
    Ok(Exit::Succeeded)
}
