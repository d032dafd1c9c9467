//! The one-line commands `windlass poll`, `try`, `paginate`, `operation` and `events`.
//! Each makes a workflow file from its command line (the "line"). The id of the run is derived from the line. So the
//! same line resumes its run after a crash.

mod complete;
mod events;
mod file;
mod operation;
mod pages;
mod rows;

pub(super) use file::{is_line, literal, with_line_expressions};

use file::{NAMES_OF_COMMAND, NAMES_OF_REQUEST};

use super::access::remote;
use super::args::{
    DurationArg, EventArgs, Global, LoadArgs, OperationArgs, PaginateArgs, PollArgs, QuickArgs,
    ReadEventsArgs, TryArgs, is_stdout,
};
use super::exit::{Exit, Failure};
use super::follow::{View, follow};
use super::list::runs;
use super::output::{self, Screen};
use super::session::{NewRun, Session, Setup, Source};
use super::signals::Signals;
use super::{history, inputs, status, yaml};
use rows::StdoutRows;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_engine::report::{HistoryFilter, ListFilter, RunRow, StatusReport};
use windlass_engine::{
    Bundle, Caps, Diagnostics, Dialect, EngineError, ErrorCode, HistoryKind, LoadError,
    LoadOptions, Value, Workflow, sha256,
};
use windlass_value::{first_chars, hex};

/// Number of bytes of a line's hash that the run id contains. Each byte is two hexadecimal digits.
const HASH_BYTES: usize = 3;

/// Maximum length of the part of a run id that is made from the words of a line.
const WORDS: usize = 40;

/// The number at the end of a line's run id is smaller than this. An id with a greater number is not from a line.
const MAX_NUMBER: u64 = 1 << 53;

pub async fn poll(global: &Global, screen: Screen, args: &PollArgs) -> Result<Exit, Failure> {
    check_command(&args.command)?;
    let times = max_checks(global, args.times);
    let LineFile { name, made } = poll_file(args, times).map_err(Failure::Usage)?;
    warn_of_secrets(screen, &args.request.header, args.url.as_deref());
    let maximums = maximums(times, Some(args.timeout));
    let names = match args.url {
        Some(_) => NAMES_OF_REQUEST,
        None => NAMES_OF_COMMAND,
    };
    let line = Line {
        name: &name,
        made: &made,
        expressions: given([("--until", args.until.as_deref())]),
        texts: Vec::new(),
        names,
        prints_result: true,
    };
    let (exit, run) = run_file(global, screen, &line, &args.quick, maximums).await?;
    match run {
        Some(run) => exit_of_poll(global, screen, &run, exit).await,
        None => Ok(exit),
    }
}

/// Refuses a whole line for the shell in the place of a program.
fn check_command(command: &[String]) -> Result<(), Failure> {
    match command {
        [line] if line.trim().contains(' ') && !Path::new(line).exists() => {
            Err(Failure::Usage(format!(
                "`{line}` is not a program: write its words without quotes, or a line for the shell as sh -c '…'"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the exit code of a command that followed one run and ended with `exit`. If the run is of `poll`, and its
/// checks failed as often as `--times` allows, this is [`Exit::Count`].
pub(super) async fn exit_of_poll(
    global: &Global,
    screen: Screen,
    run: &str,
    exit: Exit,
) -> Result<Exit, Failure> {
    if exit != Exit::Failed {
        return Ok(exit);
    }
    let report = status::report(global, run).await?;
    let has_used =
        report.workflow.starts_with("poll-") && has_used_attempts(global, screen, &report).await?;
    Ok(if has_used { Exit::Count } else { exit })
}

/// Returns whether the only action of a run has failed as often as `--times` allows, and says so. A failure that is
/// retried ends the run only if no attempt is left.
async fn has_used_attempts(
    global: &Global,
    screen: Screen,
    report: &StatusReport,
) -> Result<bool, Failure> {
    let outcome = report.outcome.as_ref();
    let error = outcome.and_then(|outcome| outcome.error.as_ref());
    if !error.is_some_and(file::is_retried) {
        return Ok(false);
    }
    let attempts = output::counted(last_attempt(global, &report.run).await?, "attempt");
    screen.say(format!("note: {attempts} failed, the maximum (--times)"));
    Ok(true)
}

pub async fn attempt(global: &Global, screen: Screen, args: &TryArgs) -> Result<Exit, Failure> {
    check_command(&args.command)?;
    let LineFile { name, made } = try_file(args);
    let maximums = maximums(args.times, args.timeout);
    let line = Line {
        name: &name,
        made: &made,
        expressions: Vec::new(),
        texts: Vec::new(),
        names: NAMES_OF_COMMAND,
        prints_result: true,
    };
    let (exit, run) = run_file(global, screen, &line, &args.quick, maximums).await?;
    if let (Exit::Failed, Some(run)) = (exit, run) {
        let report = status::report(global, &run).await?;
        has_used_attempts(global, screen, &report).await?;
    }
    Ok(exit)
}

/// Returns the number of the last attempt in a run that has one action.
async fn last_attempt(global: &Global, run: &str) -> Result<u64, Failure> {
    let filter = HistoryFilter {
        events: true,
        ..HistoryFilter::default()
    };
    let events = history::report(global, run, &filter).await?.events;
    let attempts = events
        .iter()
        .flatten()
        .filter_map(|one| match one.event.what {
            HistoryKind::ActionStarted { attempt, .. } => Some(u64::from(attempt)),
            _ => None,
        });
    Ok(attempts.max().unwrap_or_default())
}

pub async fn operation(
    global: &Global,
    screen: Screen,
    args: &OperationArgs,
) -> Result<Exit, Failure> {
    let times = max_checks(global, None);
    let LineFile { name, made } = operation_file(args, times).map_err(Failure::Usage)?;
    warn_of_secrets(screen, &args.request.header, Some(&args.url));
    let maximums = maximums(times, Some(args.timeout));
    let expressions = [
        ("--done", args.done.as_deref()),
        ("--failed", args.failed.as_deref()),
    ];
    let texts = [
        ("--status-url", args.status_url.as_deref()),
        ("--result", args.result.as_deref()),
        ("--cancel", args.cancel.as_deref()),
        ("--method", Some(&*args.method)),
    ];
    let line = Line {
        name: &name,
        made: &made,
        expressions: given(expressions),
        texts: given(texts),
        names: NAMES_OF_REQUEST,
        prints_result: true,
    };
    let (exit, run) = run_file(global, screen, &line, &args.quick, maximums).await?;
    if let (Exit::Succeeded, Some(run), None) = (exit, run, &args.status_url) {
        let outcome = status::report(global, &run).await?.outcome;
        let output = outcome.map(|outcome| outcome.output);
        let history = history::report(global, &run, &HistoryFilter::default()).await?;
        let has_polled = history.forgotten > 0 || !history.iterations.is_empty();
        if !has_polled && !output.is_some_and(|output| operation::names_state(&output)) {
            screen.say(
                "note: the first answer names no operation and counts as the result: set --status-url to poll an address",
            );
        }
    }
    Ok(exit)
}

pub async fn paginate(
    global: &Global,
    screen: Screen,
    args: &PaginateArgs,
) -> Result<Exit, Failure> {
    let times = max_checks(global, args.times);
    let to = rows_path(global, &args.to)?;
    let LineFile { name, made } = paginate_file(args, &to, times).map_err(Failure::Usage)?;
    warn_of_secrets(screen, &args.request.header, Some(&args.url));
    let maximums = maximums(times, Some(args.timeout));
    let total = args.total.as_deref().filter(|total| *total != "none");
    let next = Some(&*args.next).filter(|next| pages::way(next).is_none());
    let expressions = [
        ("--end", args.end.as_deref()),
        ("--total", total),
        ("--next", next),
        ("--items", Some(&*args.items)),
    ];
    let line = Line {
        name: &name,
        made: &made,
        expressions: given(expressions),
        texts: given([("--key", args.key.as_deref())]),
        names: NAMES_OF_REQUEST,
        prints_result: !is_stdout(&args.to),
    };
    let (exit, run) = run_with_rows(global, screen, &line, &args.quick, maximums).await?;
    if let (Exit::Succeeded, Some(run)) = (exit, run) {
        let outcome = status::report(global, &run).await?.outcome;
        let output = outcome.map(|outcome| outcome.output).unwrap_or_default();
        let number = |key: &str| output.get(key).and_then(Value::as_int);
        // If `--next` is misspelt, the first page seems to be the last one. The message helps the user to notice
        // this.
        if args.is_led() && number("pages") == Some(1) {
            let next = complete::shown_next(&args.next);
            screen.say(format!("note: page 1 was the last one: it has no {next}"));
        }
        let end = number(pages::LAST_STATUS).filter(|status| *status >= 400 || *status == 204);
        if let (Some(status), Some(page)) = (end, number("pages")) {
            screen.say(format!(
                "note: page {page} was answered with status {status}, which counts as the end of the pages"
            ));
        }
    }
    Ok(exit)
}

pub async fn events(
    global: &Global,
    screen: Screen,
    args: &ReadEventsArgs,
) -> Result<Exit, Failure> {
    let times = max_checks(global, args.times);
    let to = args.to.as_deref();
    let file = to.map(|to| rows_path(global, to));
    let file = file.transpose()?;
    let made = events::events(args, file.as_deref(), times).map_err(Failure::Usage)?;
    let name = name("events", [&args.url].into_iter());
    warn_of_secrets(screen, &args.request.header, Some(&args.url));
    let is_stdout = to.is_some_and(is_stdout);
    let line = Line {
        name: &name,
        made: &made,
        expressions: given([("--until", args.until.as_deref())]),
        texts: Vec::new(),
        names: NAMES_OF_REQUEST,
        prints_result: !is_stdout,
    };
    let maximums = maximums(times, Some(args.duration));
    let (exit, _) = run_with_rows(global, screen, &line, &args.quick, maximums).await?;
    Ok(exit)
}

/// Returns those flags that are given.
fn given<'a, const N: usize>(flags: [(&'a str, Option<&'a str>); N]) -> Vec<(&'a str, &'a str)> {
    let flags = flags.into_iter();
    flags
        .filter_map(|(flag, given)| Some((flag, given?)))
        .collect()
}

/// The workflow file of a line, and the name of its workflow.
pub(super) struct LineFile {
    pub name: String,
    pub made: serde_json::Value,
}

pub(super) fn poll_file(args: &PollArgs, times: u64) -> Result<LineFile, String> {
    Ok(LineFile {
        name: name("poll", args.url.iter().chain(&args.command)),
        made: file::poll_workflow(args, times)?,
    })
}

pub(super) fn try_file(args: &TryArgs) -> LineFile {
    LineFile {
        name: name("try", args.command.iter()),
        made: file::try_workflow(args),
    }
}

pub(super) fn operation_file(args: &OperationArgs, times: u64) -> Result<LineFile, String> {
    Ok(LineFile {
        name: name("operation", [&args.url].into_iter()),
        made: operation::operation(args, times)?,
    })
}

pub(super) fn paginate_file(args: &PaginateArgs, to: &str, times: u64) -> Result<LineFile, String> {
    Ok(LineFile {
        name: name("paginate", [&args.url].into_iter()),
        made: pages::pages(args, to, times)?,
    })
}

/// Returns the path of the file for the rows, in the form in which the workflow file contains it.
fn rows_path(global: &Global, to: &Path) -> Result<String, Failure> {
    if is_stdout(to) {
        return rows::path(global);
    }
    writable(to, global.server.is_some()).map_err(Failure::Usage)?;
    let is_local = global.server.is_none() && global.engine.is_none();
    if is_local
        && let Some(folder) = to.parent()
        && folder != Path::new("")
        && !folder.is_dir()
    {
        let (to, folder) = (to.display(), folder.display());
        let message = format!("`--to {to}`: `{folder}` is not a folder: create it first");
        return Err(Failure::Usage(message));
    }
    Ok(literal(&to.display().to_string()))
}

/// Returns the maximum number of checks of a line. This is `given`, or else the maximum number of iterations of a loop,
/// here or on a server.
fn max_checks(global: &Global, given: Option<u64>) -> u64 {
    let caps = Caps {
        guest: global.server.is_some(),
        ..Caps::default()
    };
    given.unwrap_or_else(|| caps.count(Dialect::Loom))
}

/// Warns of secrets in the headers or the URL, because both are stored with the run and are a part of its export.
fn warn_of_secrets(screen: Screen, headers: &[String], url: Option<&str>) {
    let host = url.and_then(|url| url.split_once("://")?.1.split(['/', '?', '#']).next());
    let pair = host.and_then(|host| Some(host.rsplit_once('@')?.0));
    if pair.is_some_and(|pair| pair.contains(':') && !pair.contains("${secret:")) {
        screen.warn(
            "the password in the URL is stored in plain text: write ${secret:NAME} for it, with \
             WINDLASS_SECRET_NAME in the environment",
        );
    }
    for header in headers {
        let name = header.split(':').next().unwrap_or_default().trim();
        let secret = ["authorization", "cookie", "x-api-key", "api-key"];
        let is_secret = secret.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is_secret && !header.contains("${secret:") {
            screen.warn(&format!(
                "the header `{name}` is stored in plain text: write ${{secret:NAME}} for its \
                 value, with WINDLASS_SECRET_NAME in the environment"
            ));
        }
    }
}

/// Returns an error if the run cannot create a file at this path.
fn writable(to: &Path, remote: bool) -> Result<(), String> {
    let shown = to.display();
    if ["/dev", "/proc"]
        .iter()
        .any(|folder| to.starts_with(folder))
    {
        return Err(format!(
            "`--to {shown}`: the rows go to a file, or with `-` to standard output"
        ));
    }
    if to.as_os_str().to_string_lossy().ends_with('/') || !remote && to.is_dir() {
        return Err(format!("`--to {shown}`: it must be a file, not a folder"));
    }
    if remote && to.is_relative() {
        return Err(format!(
            "`--to {shown}`: the file is on the server: use an absolute path"
        ));
    }
    Ok(())
}

/// Makes a workflow's name from the words of a line.
pub(super) fn name<'a>(command: &str, words: impl Iterator<Item = &'a String>) -> String {
    let mut name = command.to_owned();
    for word in words {
        let word = word
            .split_once("://")
            .map_or(word.as_str(), |(_, rest)| rest);
        let word = word.split(['?', '#']).next().unwrap_or_default();
        // The part before `@` is left out, because an id must not contain a password.
        let (host, path) = word.split_once('/').unwrap_or((word, ""));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let word = format!("{host}/{path}");
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

/// Returns the caps for the run's loops. They allow exactly what the line requests.
fn maximums(times: u64, timeout: Option<DurationArg>) -> LoadArgs {
    LoadArgs {
        max_count: Some(times),
        max_timeout: timeout,
        ..LoadArgs::default()
    }
}

/// A one-line command.
struct Line<'a> {
    /// The name of the line's workflow.
    name: &'a str,
    /// The equivalent workflow file.
    made: &'a serde_json::Value,
    /// The flags that have an expression, each with the expression.
    expressions: Vec<(&'a str, &'a str)>,
    /// Other flags whose text is in the file as it is, each with its text.
    texts: Vec<(&'a str, &'a str)>,
    /// The names that the expressions can read.
    names: &'static [&'static str],
    /// Whether the result of the run is printed to standard output.
    prints_result: bool,
}

/// Runs the file of a line, as [`run_file`] does.
/// If the line prints rows instead of the result, prints them.
async fn run_with_rows(
    global: &Global,
    screen: Screen,
    line: &Line<'_>,
    args: &QuickArgs,
    maximums: LoadArgs,
) -> Result<(Exit, Option<String>), Failure> {
    let prints_rows = !line.prints_result && !args.print;
    let rows = prints_rows.then(|| StdoutRows::new(global)).transpose()?;
    let (exit, run) = run_file(global, screen, line, args, maximums).await?;
    if let (Exit::Succeeded, Some(run), Some(rows)) = (exit, &run, rows) {
        rows.print(screen, run)?;
    }
    Ok((exit, run))
}

/// Runs the file of a line.
/// Returns the exit code, and the id of the run if one was started or resumed.
async fn run_file(
    global: &Global,
    screen: Screen,
    line: &Line<'_>,
    args: &QuickArgs,
    maximums: LoadArgs,
) -> Result<(Exit, Option<String>), Failure> {
    let (name, made) = (line.name, line.made);
    let shown = |diagnostics: &Diagnostics, bundle: &Bundle| {
        let colour = screen.error_colour;
        let flags = [&*line.expressions, &line.texts].concat();
        file::render(diagnostics, bundle, &flags, colour).trimmed()
    };
    let text = yaml::to_text(made);
    if args.print {
        output::print_exact(text)?;
        return Ok((Exit::Succeeded, None));
    }
    let mut is_unknown = false;
    for (flag, expression) in &line.expressions {
        if let Some(unknown) = file::unknown_name(expression, line.names) {
            let mut diagnostics = Diagnostics::default();
            diagnostics.push(unknown);
            let bundle = Bundle::single(*flag, *expression);
            screen.say(diagnostics.render(&bundle, screen.error_colour).trimmed());
            is_unknown = true;
        }
    }
    if is_unknown {
        return Ok((Exit::Usage, None));
    }
    let server = remote(global)?;
    // A server has its own caps, so none are set for it.
    let maximums = if server.is_some() {
        LoadArgs::default()
    } else {
        maximums
    };
    let options = LoadOptions {
        dialect: Some(Dialect::Loom),
        ..inputs::options(global, &maximums, &args.handlers)?
    };
    let workflow = match windlass_engine::load_text(&format!("{name}.yaml"), text, &options) {
        Err(LoadError::Refused {
            diagnostics,
            bundle,
        }) => {
            screen.say(shown(&diagnostics, &bundle));
            // The file is generated, so the mistake must be in the command line.
            return Ok((Exit::Usage, None));
        }
        loaded => loaded?,
    };
    let warnings = workflow.warnings();
    if !warnings.is_empty() {
        screen.say(shown(warnings, workflow.bundle()));
    }
    let own = args.id.as_deref().map(inputs::run_id).transpose()?;
    let folder = options.folder.clone();
    let setup = Setup::new(global, screen, server, options, true);
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(&args.handlers, true);
    let events = EventArgs { events: None };
    let done = async {
        loop {
            let (id, is_unfinished) = match &own {
                Some(id) => (id.clone(), false),
                None => find_or_name_run(global, name, &workflow, folder.as_deref()).await?,
            };
            let run = (&*id, is_unfinished);
            let view = View::new(global, screen, &args.handlers, &events, &args.output).plain();
            let view = match line.prints_result {
                true => view,
                false => view.without_result(),
            };
            match begin(&mut session, &view, screen, run, &workflow).await {
                // Another process with the same line has started this run meanwhile, and the run has ended. So
                // another id is tried.
                Err(failure) if own.is_none() && failure.code() == Some(ErrorCode::RunExists) => {}
                Err(failure) => {
                    let new = new_run(&id, &workflow);
                    let failed = session.failed_start(failure, &new, "line", &view.target);
                    return Err(failed.await);
                }
                Ok(exit) => return Ok((exit, Some(id))),
            }
        }
    };
    let done = done.await;
    session.close(&mut Signals::new()?).await;
    done
}

/// Returns the unfinished run of this line and true. If there is no such run, returns the id of a new run and false.
async fn find_or_name_run(
    global: &Global,
    name: &str,
    workflow: &Workflow,
    folder: Option<&str>,
) -> Result<(String, bool), Failure> {
    let texts = workflow
        .bundle()
        .files
        .iter()
        .map(|file| file.text.as_str());
    let line: String = texts.chain(folder).collect();
    let prefix = id_prefix(name, &line);
    let filter = ListFilter {
        prefix: Some(prefix.clone()),
        ..ListFilter::default()
    };
    let runs = match runs(global, &filter).await {
        Ok(report) => report.runs,
        Err(Failure::Engine(EngineError::NoStore(_))) => Vec::new(),
        Err(failure) => return Err(failure),
    };
    Ok(next_run(&prefix, &runs))
}

/// Returns the prefix of the run ids of a line.
pub(super) fn id_prefix(name: &str, text: &str) -> String {
    let digest = hex(&sha256(text.as_bytes()));
    let digits = first_chars(&digest, 2 * HASH_BYTES);
    format!("{name}-{digits}-")
}

/// Returns the unfinished run with this prefix and true. If there is no such run, returns the id of a new run and
/// false.
pub(super) fn next_run(prefix: &str, runs: &[RunRow]) -> (String, bool) {
    let numbered = runs.iter().filter_map(|row| {
        let given = row.summary.run.strip_prefix(prefix)?;
        let number: u64 = given.parse().ok().filter(|number| *number < MAX_NUMBER)?;
        // Another spelling of a number, such as `01`, was not generated by a line, so it is ignored.
        (number.to_string() == given).then_some((number, !row.summary.status.is_final()))
    });
    match numbered.max() {
        Some((number, true)) => (format!("{prefix}{number}"), true),
        Some((number, false)) => (format!("{prefix}{}", number.saturating_add(1)), false),
        None => (format!("{prefix}1"), false),
    }
}

fn new_run<'a>(id: &'a str, workflow: &'a Workflow) -> NewRun<'a> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    NewRun {
        id,
        source: Source::Loaded(workflow),
        input: &Value::Null,
        labels: &NO_LABELS,
        scheduled_time: None,
    }
}

async fn begin(
    session: &mut Session,
    view: &View,
    screen: Screen,
    (id, is_unfinished): (&str, bool),
    workflow: &Workflow,
) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let new = new_run(id, workflow);
    let started = match is_unfinished {
        true => None,
        false => Some(session.start(&new).await),
    };
    let program = workflow.program().hash.to_string();
    match started {
        Some(Ok(())) => screen.say(format!("run {id}")),
        // The run exists: the line names its id, or has just started it.
        // Resume it only if it is unfinished and has this workflow.
        Some(Err(failure))
            if failure.code() != Some(ErrorCode::RunExists)
                || !session.is_unfinished(id, &program).await? =>
        {
            return Err(failure);
        }
        None | Some(Err(_)) => {
            screen.say(format!("resuming {id}"));
            session.resume(id).await?;
            session.note_environment(workflow);
        }
    }
    follow(session, &[id.to_owned()], view, &mut signals).await
}
