//! `windlass poll`, `try` and `paginate`: one line that stands for a workflow file. The run's id is
//! made of the line, so the same line after a crash goes on with the run that it had begun.

mod file;

use super::access::{inspect, remote};
use super::args::{
    EventArgs, Global, Lasting, LoadArgs, PaginateArgs, PollArgs, QuickArgs, TryArgs,
};
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::output::{self, Screen};
use super::policy::UntrustedArgs;
use super::session::{NewRun, Session, Setup};
use super::signals::Signals;
use super::{inputs, status, yaml};
use crate::engine::report::{ListFilter, list};
use crate::engine::{self, EngineError, LoadOptions, Value, Workflow, sha256};
use std::collections::BTreeMap;

/// How many letters of an id say which line it is, behind its words.
const DIGITS: usize = 3;

/// How many letters of an id come from the words of a line.
const WORDS: usize = 40;

pub async fn poll(global: &Global, screen: Screen, args: &PollArgs) -> Result<Exit, Failure> {
    let what = args.url.iter().chain(&args.command);
    let made = file::poll(args).map_err(Failure::Usage)?;
    let name = name("poll", what);
    let limits = limits(args.times, Some(args.timeout));
    let (exit, _) = go(global, screen, (&name, &made), &args.quick, limits).await?;
    Ok(exit)
}

pub async fn attempt(global: &Global, screen: Screen, args: &TryArgs) -> Result<Exit, Failure> {
    let made = file::attempt(args);
    let name = name("try", args.command.iter());
    let limits = limits(args.times, args.timeout);
    let (exit, _) = go(global, screen, (&name, &made), &args.quick, limits).await?;
    Ok(exit)
}

pub async fn paginate(
    global: &Global,
    screen: Screen,
    args: &PaginateArgs,
) -> Result<Exit, Failure> {
    let made = file::pages(args).map_err(Failure::Usage)?;
    let name = name("paginate", [&args.url].into_iter());
    let limits = limits(args.times, Some(args.timeout));
    let (exit, run) = go(global, screen, (&name, &made), &args.quick, limits).await?;
    if let (Exit::Succeeded, Some(run), true) = (exit, run, args.leads_by_expression()) {
        // A word that is misspelt is as absent as the next page of the only one.
        let outcome = status::report(global, &run).await?.outcome;
        if outcome.is_some_and(|outcome| outcome.output.get("pages") == Some(&Value::Int(1))) {
            let next = &args.next;
            screen.say(format!("note: page 1 was the last one: it has no `{next}`"));
        }
    }
    Ok(exit)
}

/// A name made of the words of a line.
fn name<'a>(command: &str, words: impl Iterator<Item = &'a String>) -> String {
    let mut name = command.to_owned();
    for word in words {
        let word = word
            .split_once("://")
            .map_or(word.as_str(), |(_, rest)| rest);
        let word = word.split(['?', '#']).next().unwrap_or_default();
        for part in word.split(|c: char| !c.is_ascii_alphanumeric() && c != '.') {
            let part = part.trim_matches('.');
            if !part.is_empty() && name.len() + part.len() < WORDS {
                name.push('-');
                name.push_str(part);
            }
        }
    }
    name
}

/// What a line asks for is no more than it may have.
fn limits(times: u64, timeout: Option<Lasting>) -> LoadArgs {
    LoadArgs {
        max_count: Some(times),
        max_timeout: timeout,
        ..LoadArgs::default()
    }
}

/// Runs the file that a line stands for; gives how that ended, and the run.
async fn go(
    global: &Global,
    screen: Screen,
    (name, made): (&str, &serde_json::Value),
    args: &QuickArgs,
    limits: LoadArgs,
) -> Result<(Exit, Option<String>), Failure> {
    let text = yaml::to_text(made);
    if args.print {
        output::print_exact(text)?;
        return Ok((Exit::Succeeded, None));
    }
    let server = remote(global)?;
    // A server has limits of its own.
    let limits = if server.is_some() {
        LoadArgs::default()
    } else {
        limits
    };
    let options = inputs::options(global, &limits, &args.handlers)?;
    let workflow = engine::load_text(&format!("{name}.yaml"), text, &options)?;
    let warnings = workflow.warnings();
    if !warnings.is_empty() {
        screen.say(warnings.render(workflow.bundle(), screen.error_colour));
    }
    let (id, goes_on) = match &args.id {
        Some(id) => (inputs::run_id(id)?, false),
        None => run_of(global, name, &workflow, &options).await?,
    };
    let setup = Setup {
        state: global.state.clone(),
        store: global.store,
        server,
        engine: global.engine.clone(),
        create: true,
        options,
        untrusted: UntrustedArgs::default(),
        screen,
    };
    let mut session = Session::attach(setup).await?;
    session.say_unused(&args.handlers, true);
    let exit = begin(
        &mut session,
        global,
        screen,
        args,
        (&id, goes_on),
        &workflow,
    )
    .await;
    session.leave(&mut Signals::new()?).await;
    Ok((exit?, Some(id)))
}

/// The run that this line had begun and that has not ended, or the id of a new one; and which.
async fn run_of(
    global: &Global,
    name: &str,
    workflow: &Workflow,
    options: &LoadOptions,
) -> Result<(String, bool), Failure> {
    let texts = workflow
        .bundle()
        .files
        .iter()
        .map(|file| file.text.as_str());
    let line: String = texts.chain(options.folder.as_deref()).collect();
    let digits: String = sha256(line.as_bytes())
        .iter()
        .take(DIGITS)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let prefix = format!("{name}-{digits}-");
    let filter = ListFilter {
        prefix: Some(prefix.clone()),
        ..ListFilter::default()
    };
    let found = inspect(
        global,
        async |client| client.list(&filter).await,
        |store| list(store, &filter),
    );
    let runs = match found.await {
        Ok(report) => report.runs,
        Err(Failure::Engine(EngineError::NoStore(_))) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    let numbered = runs.iter().filter_map(|row| {
        let number: u64 = row.summary.run.strip_prefix(&prefix)?.parse().ok()?;
        Some((number, !row.summary.status.is_final()))
    });
    Ok(match numbered.max() {
        Some((number, true)) => (format!("{prefix}{number}"), true),
        Some((number, false)) => (format!("{prefix}{}", number.saturating_add(1)), false),
        None => (format!("{prefix}1"), false),
    })
}

async fn begin(
    session: &mut Session,
    global: &Global,
    screen: Screen,
    args: &QuickArgs,
    (id, goes_on): (&str, bool),
    workflow: &Workflow,
) -> Result<Exit, Failure> {
    let said = if goes_on { "goes on with" } else { "run" };
    screen.say(format!("{said} {id}"));
    let mut signals = Signals::new()?;
    if goes_on {
        session.resume(id).await?;
    } else {
        let new = NewRun {
            id,
            workflow,
            input: &Value::Null,
            labels: &BTreeMap::new(),
        };
        session.start(&new).await?;
    }
    let events = EventArgs { events: None };
    let view = View::new(global, screen, &args.handlers, &events, &args.output).plain();
    follow(session, &[id.to_owned()], &view, &mut signals).await
}
