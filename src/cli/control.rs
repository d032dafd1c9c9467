//! `windlass pause`, `cancel` and `signal`: one command to one run. Without an owner the run is
//! changed in the store and does not move.

use super::access::command;
use super::args::{Global, Output, RunArg, SignalArgs};
use super::exit::{Exit, Failure};
use super::output::{self, Format};
use crate::engine::{RunStatus, Value};
use serde_json::json;

pub async fn pause(global: &Global, args: &RunArg) -> Result<Exit, Failure> {
    let run = &args.run;
    let status = command(
        global,
        async |client| client.pause(run).await,
        async |engine| engine.pause(run).await,
    );
    print(run, status.await?, &args.output)
}

pub async fn cancel(global: &Global, args: &RunArg) -> Result<Exit, Failure> {
    let run = &args.run;
    let status = command(
        global,
        async |client| client.cancel(run).await,
        async |engine| engine.cancel(run).await,
    );
    print(run, status.await?, &args.output)
}

pub async fn signal(global: &Global, args: &SignalArgs) -> Result<Exit, Failure> {
    let payload = match &args.payload {
        None => Value::Null,
        Some(text) => Value::from_json(text)
            .map_err(|error| Failure::Usage(format!("--payload takes JSON: {error}")))?,
    };
    let (run, name) = (&args.run, &args.name);
    let status = command(
        global,
        async |client| client.signal(run, name, payload.clone()).await,
        async |engine| engine.signal(run, name, payload.clone()).await,
    );
    print(run, status.await?, &args.output)
}

fn print(run: &str, status: RunStatus, output: &Output) -> Result<Exit, Failure> {
    match output.output {
        Format::Table => output::print(format!("{run}  {}", status.as_str()))?,
        format => output::document(format, &json!({ "run": run, "status": status }))?,
    }
    Ok(Exit::Succeeded)
}
