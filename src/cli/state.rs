//! `windlass state`: reads and writes the values that workflows store between their runs.
//! It works with or without an owner of the store.

use super::access::{command, command_or_create, inspect};
use super::args::{
    Global, HandlerArgs, LoadArgs, StateArgs, StateCommand, StateDeleteArgs, StateGetArgs,
    StateListArgs, StateName, StateSetArgs,
};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::output::{self, Screen, short};
use super::workflow::stored_workflow;
use super::{format, inputs};
use windlass_engine::report::StateReport;
use windlass_engine::{Origin, StateCondition, Value};
use windlass_server::api::StateValue;

pub async fn run(global: &Global, screen: Screen, args: &StateArgs) -> Result<Exit, Failure> {
    match &args.command {
        StateCommand::List(args) => list(global, args).await,
        StateCommand::Get(args) => get(global, args).await,
        StateCommand::Set(args) => set(global, screen, args).await,
        StateCommand::Delete(args) => delete(global, args).await,
    }
}

fn origin(which: &StateName) -> Origin {
    match which.guest {
        true => Origin::Guest,
        false => Origin::Operator,
    }
}

/// Maximum length of a value in a list, in characters.
const SHOWN: usize = 60;

async fn list(global: &Global, args: &StateListArgs) -> Result<Exit, Failure> {
    let workflow = args.workflow.as_deref();
    let all = inspect(
        global,
        async |client| client.state_values(workflow).await,
        |store| store.state_values(workflow),
    );
    let all = all.await?;
    let head = ["WORKFLOW", "NAME", "VALUE", "VERSION", "WRITTEN", "BY"];
    output::rows(args.output.output, &all, "no state", &head, |one| {
        let guest = if one.guest { " (guest)" } else { "" };
        vec![
            format!("{}{guest}", one.workflow),
            one.name.clone(),
            short(&one.value, SHOWN),
            one.version.to_string(),
            format::date(one.written_at),
            one.run.clone().unwrap_or_default(),
        ]
    })
}

async fn get(global: &Global, args: &StateGetArgs) -> Result<Exit, Failure> {
    let report = stored(global, &args.which).await?;
    output::show(args.output.output, &report, || report.value.to_text())
}

async fn stored(global: &Global, which: &StateName) -> Result<StateReport, Failure> {
    let StateName { workflow, name, .. } = which;
    let origin = origin(which);
    inspect(
        global,
        async |client| client.state_value(workflow, name, origin).await,
        |store| store.state_value(workflow, name, origin),
    )
    .await
}

/// Returns an error if a text would replace a value of another type, such as a number. That is hardly ever meant. Before
/// the first write, the value is the one that the saved workflow declares.
async fn check_type(global: &Global, args: &StateSetArgs) -> Result<(), Failure> {
    let before = match stored(global, &args.which).await {
        Ok(before) => Some(before.value),
        // A store that cannot be read is for the write to report.
        Err(_) => declared(global, &args.which).await?,
    };
    match before {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(Failure::Usage(format!(
            "`{}` is {}, and `{}` is text: write the value as JSON, with --json",
            args.which.name,
            other.kind(),
            args.value
        ))),
    }
}

/// Returns the initial value that the saved workflow declares.
async fn declared(global: &Global, which: &StateName) -> Result<Option<Value>, Failure> {
    let options = inputs::options(global, &LoadArgs::default(), &HandlerArgs::default())?;
    let saved = stored_workflow(global, &which.workflow, &options).await;
    Ok(saved.and_then(|workflow| {
        let mut values = workflow.program().state_values.iter();
        let (_, initial) = values.find(|(name, _)| **name == which.name)?;
        Some(initial.clone())
    }))
}

/// Parses a value on the command line. If `is_json` is true, it is JSON, and otherwise text.
fn value(text: &str, is_json: bool) -> Result<Value, Failure> {
    if !is_json {
        return Ok(Value::text(text));
    }
    Value::from_json(text).map_err(|error| {
        Failure::Usage(format!(
            "--json expects JSON, and `{text}` is not valid JSON ({error})"
        ))
    })
}

async fn set(global: &Global, screen: Screen, args: &StateSetArgs) -> Result<Exit, Failure> {
    let StateName { workflow, name, .. } = &args.which;
    let origin = origin(&args.which);
    if !args.json {
        check_type(global, args).await?;
    }
    let expect = args.expect.as_deref().map(|text| value(text, args.json));
    let given = StateValue {
        value: value(&args.value, args.json)?,
        if_version: args.if_version,
        expect: expect.transpose()?,
    };
    let both = || Failure::Usage(String::from("either --if-version or --expect, not both"));
    let condition = given.condition().ok_or_else(both)?;
    let target = format!("{workflow}/{name}");
    let written = command_or_create(
        global,
        async |client| client.set_state(workflow, name, &given, origin).await,
        async |engine| {
            let value = Some(given.value.clone());
            let write =
                async { engine.write_state(workflow, name, value, condition.clone(), origin) };
            audited(global, "put-state", Some(&target), write).await
        },
    );
    let report: StateReport = written.await?;
    if let Some(why) = &report.unread {
        screen.warn(why);
    }
    output::show(args.output.output, &report, || {
        format!("{workflow}  {name}  version {}", report.version)
    })
}

async fn delete(global: &Global, args: &StateDeleteArgs) -> Result<Exit, Failure> {
    let StateName { workflow, name, .. } = &args.which;
    let origin = origin(&args.which);
    let condition = args
        .if_version
        .map_or(StateCondition::Always, StateCondition::Version);
    let target = format!("{workflow}/{name}");
    let removed = command(
        global,
        async |client| {
            client
                .remove_state(workflow, name, args.if_version, origin)
                .await
        },
        async |engine| {
            let write = async {
                let written = engine.write_state(workflow, name, None, condition.clone(), origin);
                written.map(drop)
            };
            audited(global, "delete-state", Some(&target), write).await
        },
    );
    removed.await?;
    output::print(format!("{workflow}  {name}  deleted"))?;
    Ok(Exit::Succeeded)
}
