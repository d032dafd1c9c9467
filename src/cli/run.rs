//! `windlass run`: validates, starts and follows a run.

use super::access::remote;
use super::args::{Global, RunArgs};
use super::exit::{Exit, Failure};
use super::follow::{View, follow, say_awaited};
use super::inputs;
use super::output::{self, Screen};
use super::session::{NewRun, Session, Setup, Source};
use super::signals::Signals;
use super::workflow;
use serde_json::json;
use std::path::Path;
use windlass_engine::{Diagnostics, LoadError, LoadOptions, Value, Workflow};
use windlass_machine::program::Program;
use windlass_server::client::Client;
use windlass_source::diagnostic::did_you_mean;

/// Warnings that are ignored if another process executes the run.
/// That process has its own secrets, handlers and permissions, so these warnings do not apply.
const ELSEWHERE: [&str; 4] = [
    "missing-secret",
    "missing-handler",
    "missing-server",
    "denied",
];

/// Returns a failure if a workflow has warnings (`--strict`).
fn fail_on_warnings(workflow: &Workflow, warnings: Diagnostics) -> Result<(), Failure> {
    if warnings.is_empty() {
        return Ok(());
    }
    let refused = LoadError::Refused {
        diagnostics: warnings.strict(),
        bundle: workflow.bundle().clone(),
    };
    Err(refused.into())
}

/// Warns if an input has the name of a parameter of the definition. Inputs are the body of the trigger.
fn warn_of_parameters(screen: Screen, workflow: &Workflow, input: &Value) {
    let program = workflow.program();
    if workflow.is_agent() {
        warn_of_similar_keys(screen, program, input);
    }
    if !program.inputs.is_empty() {
        return;
    }
    for (name, _) in &program.parameters {
        if input.get(name).is_some() {
            screen.warn(&format!(
                "the input `{name}` does not change the parameter `{name}`: write \
                 {{\"{name}\": {{\"value\": …}}}} into a file for --parameters"
            ));
        }
    }
}

/// Warns if an input of an agent is not in `initial_state`, but similar to a key that is.
fn warn_of_similar_keys(screen: Screen, program: &Program, input: &Value) {
    let given = input.as_object().into_iter().flat_map(|map| map.keys());
    let initial = || program.variables.iter().map(|(name, _)| &**name);
    for name in given.filter(|name| initial().all(|known| *known != ***name)) {
        let missing = initial().filter(|known| input.get(known).is_none());
        if let Some(hint) = did_you_mean(name, missing) {
            screen.warn(&format!("`initial_state` has no `{name}`; {hint}"));
        }
    }
}

pub async fn run(global: &Global, screen: Screen, args: &RunArgs) -> Result<Exit, Failure> {
    let both = [Some(&*args.file), args.start.input.as_deref()];
    if both.iter().all(|path| *path == Some(Path::new("-"))) {
        return Err(Failure::Usage(String::from(
            "standard input can be read only once: use `-` for the workflow or for the inputs, not \
             for both",
        )));
    }
    let options = LoadOptions {
        auto_continue: args.auto_continue,
        ..inputs::options(global, &args.load, &args.handlers)?
    };
    let workflow = match windlass_engine::load(&args.file, &options) {
        Err(_) if is_stored_workflow(global, &args.file).await => {
            let name = args.file.display();
            return Err(Failure::Usage(format!(
                "no file `{name}`, but a saved workflow has this name: windlass workflow start \
                 {name}"
            )));
        }
        loaded => loaded?.refuse_bad_scripts()?,
    };
    if args.auto_continue && !workflow.is_agent() {
        return Err(Failure::Usage(String::from(
            "--auto-continue is for files of The Edge Agent: others have no interrupts",
        )));
    }
    if args.strict {
        let mut warnings = workflow.warnings().clone();
        warnings.forget(&ELSEWHERE);
        fail_on_warnings(&workflow, warnings)?;
    }
    let stubbed = match args.start.input.is_none() && args.start.set.is_empty() {
        true => inputs::stubs(&args.handlers)?.input,
        false => None,
    };
    let input = match stubbed {
        Some(input) => input,
        None => inputs::inputs(
            args.start.input.as_deref(),
            &args.start.set,
            Some(&workflow),
        )?,
    };
    let input = workflow.check_input(input)?;
    warn_of_parameters(screen, &workflow, &input);
    let (id, labels) = inputs::id_and_labels(&args.start, &workflow.program().name)?;
    let setup = Setup::new(global, screen, remote(global)?, options, true);
    if args.start.detach {
        require_server(&setup).await?;
    }
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(&args.handlers, true);
    let new = NewRun {
        id: &id,
        source: Source::Loaded(&workflow),
        input: &input,
        labels: &labels,
        scheduled_time: args.start.scheduled_time,
    };
    let exit = begin(&mut session, global, screen, args, (&workflow, &new)).await;
    session.close(&mut Signals::new()?).await;
    exit
}

/// Starts the run, and follows it unless `--detach` is set.
async fn begin(
    session: &mut Session,
    global: &Global,
    screen: Screen,
    args: &RunArgs,
    (workflow, new): (&Workflow, &NewRun<'_>),
) -> Result<Exit, Failure> {
    let mut warnings = workflow.warnings().clone();
    if session.is_joined() || global.engine.is_some() {
        warnings.forget(&ELSEWHERE);
        if workflow.program().secure && encrypts(global).await {
            warnings.forget(&["readable"]);
        }
    } else {
        workflow.refuse("denied")?;
    }
    if args.strict {
        fail_on_warnings(workflow, warnings.clone())?;
    }
    if !warnings.is_empty() {
        screen.say(warnings.render(workflow.bundle(), screen.error_colour));
    }
    let view = View::new(global, screen, &args.handlers, &args.events, &args.output);
    follow_or_leave(session, global, &view, args.start.detach, new).await
}

/// Starts a run, and follows it unless `detach` is set.
pub(super) async fn follow_or_leave(
    session: &mut Session,
    global: &Global,
    view: &View,
    detach: bool,
    new: &NewRun<'_>,
) -> Result<Exit, Failure> {
    let (id, screen) = (new.id, view.screen);
    if detach {
        session.start(new).await?;
        return output::show(view.format, &json!({ "run": id }), || id);
    }
    if screen.live || screen.verbose > 0 {
        let elsewhere = global.server.as_ref().or(global.engine.as_ref());
        let place = match (elsewhere, session.is_joined()) {
            (Some(url), _) => format!(" at {url}"),
            (None, true) => String::from(", in the process that owns the store"),
            (None, false) => String::new(),
        };
        screen.say(format!("run {id}{place}"));
    }
    let mut signals = Signals::new()?;
    if let Err(failure) = session.start(new).await {
        return Err(session
            .failed_start(failure, new, "file", &view.target)
            .await);
    }
    let may_wait = match new.source {
        Source::Loaded(workflow) => workflow.program().concurrency.is_some(),
        Source::Stored(_) => true,
    };
    if may_wait {
        say_awaited(session, view, id).await;
    }
    follow(session, &[id.to_owned()], view, &mut signals).await
}

/// Returns whether the process that executes the run encrypts secure values in its store, or whether that is not known.
async fn encrypts(global: &Global) -> bool {
    if global.server.is_some() {
        return true;
    }
    // An error is ignored: the owner may have ended meanwhile.
    let client = Client::for_state_dir(&global.state).await.ok().flatten();
    let owner = client.as_ref().and_then(Client::owner);
    owner.is_some_and(|owner| owner.encrypts)
}

/// Returns whether a path is the name of a stored workflow. It is checked only if there is no file at the path.
async fn is_stored_workflow(global: &Global, path: &Path) -> bool {
    let stored = match path.exists() {
        true => Vec::new(),
        false => workflow::stored_workflows(global).await.unwrap_or_default(),
    };
    stored.iter().any(|one| path == Path::new(&one.name))
}

/// Returns a failure if no server would execute a detached run.
/// Another owner exits when its own runs have ended, so the detached run would not continue.
pub(super) async fn require_server(setup: &Setup) -> Result<(), Failure> {
    if setup.server.is_some() || setup.engine.is_some() {
        return Ok(());
    }
    let state = &setup.state;
    let client = Client::for_state_dir(state).await?;
    match client.as_ref().and_then(Client::owner) {
        Some(owner) if owner.serves => Ok(()),
        Some(owner) => Err(Failure::Taken(format!(
            "process {} owns the store and exits with its own runs: no server can accept the run",
            owner.pid
        ))),
        None => Err(Failure::Taken(format!(
            "no server owns the store in {}: start `windlass serve`",
            state.display()
        ))),
    }
}
