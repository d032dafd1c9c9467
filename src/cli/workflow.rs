//! `windlass workflow`: manages workflows that are stored under a name. It works with or without an owner of the
//! store.

use super::access::{command, command_or_create, inspect};
use super::args::{
    DeleteArgs, Global, HandlerArgs, LoadArgs, Output, PutArgs, STATE, ShowArgs, StartArgs,
    VersionsArgs, WorkflowArgs, WorkflowCommand,
};
use super::audit::audited;
use super::exit::{Exit, Failure};
use super::follow::{View, quoted};
use super::list::runs;
use super::output::{self, Format, Screen, counted};
use super::run::{follow_or_leave, require_server};
use super::session::{NewRun, Session, Setup, Source};
use super::signals::Signals;
use super::{format, inputs};
use serde::Serialize;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::path::Path;
use windlass_engine::report::{ListFilter, VersionReport, WorkflowReport, WorkflowSummary};
use windlass_engine::{Bundle, Dialect, EngineError, LoadOptions, PutIf, SourceFile, Workflow};
use windlass_server::api::{FileText, WorkflowText};
use windlass_source::diagnostic::did_you_mean;
use windlass_value::first_chars;

pub async fn run(global: &Global, screen: Screen, args: &WorkflowArgs) -> Result<Exit, Failure> {
    match &args.command {
        WorkflowCommand::Put(args) => put(global, screen, args).await,
        WorkflowCommand::List(args) => list(global, args).await,
        WorkflowCommand::Start(args) => start(global, screen, args).await,
        WorkflowCommand::Show(args) => show(global, args).await,
        WorkflowCommand::Delete(args) => delete(global, args).await,
        WorkflowCommand::History(args) => history(global, args).await,
    }
}

async fn put(global: &Global, screen: Screen, args: &PutArgs) -> Result<Exit, Failure> {
    let mut options = inputs::options(global, &args.load, &HandlerArgs::default())?;
    // A server starts the runs, so relative paths do not refer to the folder of this command.
    options.folder = None;
    let (bundle, dialect) = read(&args.file, &args.load, &options)?;
    let condition = match (&args.if_version, args.new) {
        (Some(version), _) => PutIf::Version(version.clone()),
        (None, true) => PutIf::Absent,
        (None, false) => PutIf::Always,
    };
    let text = text_of(&bundle, dialect);
    let name = &args.name;
    let put = command_or_create(
        global,
        async |client| client.put_workflow(name, &text, &condition).await,
        async |engine| {
            let put = async { engine.put_workflow_if(name, bundle.clone(), &options, &condition) };
            audited(global, "put-workflow", Some(name), put).await
        },
    );
    let (report, replaced) = put.await?;
    report.warnings.iter().for_each(|warning| {
        let place = format!("line {}: {}", warning.line, warning.message);
        screen.warn(&place);
    });
    say_name_of_runs(screen, &report);
    output::show(args.output.output, &report, || {
        let how = if replaced { "updated" } else { "stored" };
        format!("{name}  {}  {how}", short(&report.program))
    })
}

/// Prints which name the runs of a saved workflow have, if it is not the saved name.
fn say_name_of_runs(screen: Screen, report: &WorkflowReport) {
    let WorkflowReport { name, title, .. } = report;
    if name != title {
        screen.say(format!(
            "runs of the saved workflow `{name}` have the name in its file: `--workflow {}` selects them",
            quoted(title)
        ));
    }
}

/// Explains why `--workflow` selects no run: it compares the names in the files, which may differ from the saved names.
pub(super) async fn explain_no_runs(global: &Global, screen: Screen, workflows: &[String]) {
    for name in workflows {
        // Errors are ignored: this is only a hint.
        match report(global, name, None).await {
            Ok(report) => say_name_of_runs(screen, &report),
            Err(_) => {
                let _ = say_unknown(global, screen, name).await;
            }
        }
    }
}

/// Says that no run has the workflow of this name, which is not saved.
async fn say_unknown(global: &Global, screen: Screen, name: &str) -> Result<(), Failure> {
    let of_name = ListFilter {
        workflows: vec![name.to_owned()],
        limit: Some(1),
        ..ListFilter::default()
    };
    if !runs(global, &of_name).await?.runs.is_empty() {
        return Ok(());
    }
    let newest = ListFilter {
        limit: Some(1_000),
        ..ListFilter::default()
    };
    let newest = runs(global, &newest).await?;
    let names: BTreeSet<String> = newest
        .runs
        .into_iter()
        .map(|row| row.summary.workflow)
        .collect();
    let hint = did_you_mean(name, names.iter().map(String::as_str));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    screen.say(format!("no run has the workflow `{name}`{hint}"));
    Ok(())
}

/// Loads a workflow with all files that it names.
/// So a mistake is reported before a request is sent.
fn read(
    path: &Path,
    load: &LoadArgs,
    options: &windlass_engine::LoadOptions,
) -> Result<(Bundle, Option<String>), Failure> {
    let workflow = windlass_engine::load(path, options)?;
    Ok((workflow.bundle().clone(), load.dialect.clone()))
}

fn text_of(bundle: &Bundle, dialect: Option<String>) -> WorkflowText {
    let mut files = bundle.files.iter();
    let file = files.next();
    let base = |path: &str| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.unwrap_or(path).to_owned()
    };
    WorkflowText {
        text: file.map(|file| file.text.clone()).unwrap_or_default(),
        file: file.map(|file| base(&file.path)),
        files: files
            .map(|file| FileText {
                path: file.path.clone(),
                text: file.text.clone(),
            })
            .collect(),
        dialect,
    }
}

/// Returns the stored workflows. If the default store does not exist yet, returns an empty list.
pub(super) async fn stored_workflows(global: &Global) -> Result<Vec<WorkflowSummary>, Failure> {
    let all = inspect(
        global,
        async |client| client.workflows().await,
        |store| store.workflows(None, usize::MAX),
    );
    match all.await {
        Err(Failure::Engine(EngineError::NoStore(path))) if path == Path::new(STATE) => {
            Ok(Vec::new())
        }
        other => other,
    }
}

async fn list(global: &Global, args: &Output) -> Result<Exit, Failure> {
    let all = stored_workflows(global).await?;
    let head = ["NAME", "FORMAT", "FILE", "STORED"];
    output::rows(args.output, &all, "no workflows", &head, |one| {
        vec![
            one.name.clone(),
            one.dialect.clone(),
            one.file.clone(),
            format::date(one.stored_at),
        ]
    })
}

async fn report(
    global: &Global,
    name: &str,
    version: Option<&str>,
) -> Result<WorkflowReport, Failure> {
    inspect(
        global,
        async |client| client.workflow(name, version).await,
        |store| store.describe_workflow(name, version),
    )
    .await
}

async fn show(global: &Global, args: &ShowArgs) -> Result<Exit, Failure> {
    let report = report(global, &args.name, args.version.as_deref()).await?;
    match args.output.output {
        Format::Table => {
            let several = report.files.len() > 1;
            for file in &report.files {
                if several {
                    output::print(format!("# {}", file.path))?;
                }
                output::print(file.text.as_str())?;
            }
        }
        format => output::document(format, &report)?,
    }
    Ok(Exit::Succeeded)
}

async fn start(global: &Global, screen: Screen, args: &StartArgs) -> Result<Exit, Failure> {
    let (name, given) = (&args.name, &args.input);
    let setup = Setup::existing(global, screen, &args.owner)?;
    let workflow = match given.set.is_empty() {
        true => None,
        false => stored_workflow(global, name, &setup.options).await,
    };
    let input = inputs::inputs(given.input.as_deref(), &given.set, workflow.as_ref())?;
    let (id, labels) = inputs::id_and_labels(given, name)?;
    if given.detach {
        require_server(&setup).await?;
    }
    let mut session = Session::attach(setup).await?;
    session.warn_ignored_flags(&args.owner.handlers, false);
    let view = View::of_owner(global, screen, &args.owner);
    let new = NewRun {
        id: &id,
        source: Source::Stored(name),
        input: &input,
        labels: &labels,
        scheduled_time: given.scheduled_time,
    };
    let exit = follow_or_leave(&mut session, global, &view, given.detach, &new).await;
    session.close(&mut Signals::new()?).await;
    exit
}

/// Returns a stored workflow, which has the types of its inputs. Returns `None` if it cannot be loaded here, or does not
/// exist: the start reports this.
pub(super) async fn stored_workflow(
    global: &Global,
    name: &str,
    options: &LoadOptions,
) -> Option<Workflow> {
    let report = report(global, name, None).await.ok()?;
    let files = report.files.into_iter().map(|file| SourceFile {
        path: file.path,
        text: file.text,
    });
    let bundle = Bundle {
        files: files.collect(),
    };
    let options = LoadOptions {
        dialect: Dialect::parse(&report.dialect),
        ..options.clone()
    };
    windlass_engine::load_bundle(bundle, None, &options).ok()
}

async fn delete(global: &Global, args: &DeleteArgs) -> Result<Exit, Failure> {
    let name = &args.name;
    let removed = command(
        global,
        async |client| client.remove_workflow(name).await,
        async |engine| {
            let remove = async {
                match engine.remove_workflow(name, &PutIf::Always)? {
                    true => Ok(()),
                    false => Err(engine.inspector().no_workflow(name)),
                }
            };
            audited(global, "delete-workflow", Some(name), remove).await
        },
    );
    removed.await?;
    output::print(format!("{name}  forgotten"))?;
    Ok(Exit::Succeeded)
}

/// A version of a workflow, with its changes.
#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    version: VersionReport,
    /// The changes since the previous version, as a unified diff. `None` for the first version.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

async fn history(global: &Global, args: &VersionsArgs) -> Result<Exit, Failure> {
    let name = &args.name;
    let versions = inspect(
        global,
        async |client| client.workflow_versions(name).await,
        |store| store.workflow_versions(name),
    );
    let versions = versions.await?.versions;
    let mut entries: Vec<Entry> = Vec::with_capacity(versions.len());
    let mut later: Option<WorkflowReport> = None;
    for version in versions {
        if args.diff {
            let this = report(global, name, Some(&version.version)).await?;
            let last = entries.last_mut();
            if let (Some(later), Some(entry)) = (&later, last) {
                entry.diff = Some(difference(&this, later));
            }
            later = Some(this);
        }
        let diff = None;
        entries.push(Entry { version, diff });
    }
    match args.output.output {
        Format::Table if args.diff => {
            for entry in &entries {
                let line = cells(&entry.version).join("  ");
                output::print(line.trim_end().to_owned())?;
                output::print(entry.diff.clone().unwrap_or_default())?;
            }
        }
        Format::Table => {
            let rows = entries.iter().map(|entry| cells(&entry.version));
            output::print(output::table(&["VERSION", "STORED", "", "RUNS"], rows))?;
        }
        format => output::list(format, &entries)?,
    }
    Ok(Exit::Succeeded)
}

fn cells(version: &VersionReport) -> Vec<String> {
    let runs = version.runs.iter();
    let runs: Vec<String> = runs
        .map(|(status, count)| format!("{count} {}", status.as_str()))
        .collect();
    let all: u64 = version.runs.values().sum();
    let runs = match all {
        0 => String::new(),
        all => format!("{} ({})", counted(all, "run"), runs.join(", ")),
    };
    let current = if version.current { "current" } else { "" };
    let stored = format::date(version.stored_at);
    vec![short(&version.version), stored, current.to_owned(), runs]
}

/// Returns the first digits of a hash. They are sufficient to identify a version.
fn short(version: &str) -> String {
    const DIGITS: usize = 12;
    let digits = version.strip_prefix("sha256:").unwrap_or(version);
    first_chars(digits, DIGITS).to_owned()
}

/// Returns the changes from one version to the next, for each file.
fn difference(from: &WorkflowReport, to: &WorkflowReport) -> String {
    let named = |report: &WorkflowReport, path: &str| {
        // The workflow is the first file, so its name is not compared.
        let mut files = report.files.iter().enumerate();
        let found = files.find(|(index, file)| path_of(*index, file) == path);
        found.map(|(_, file)| file.text.clone()).unwrap_or_default()
    };
    let paths = |report: &WorkflowReport| {
        let files = report.files.iter().enumerate();
        files
            .map(|(index, file)| path_of(index, file))
            .collect::<BTreeSet<_>>()
    };
    let mut out = String::new();
    for path in &paths(from) | &paths(to) {
        let (old, new) = (named(from, &path), named(to, &path));
        let (before, after) = (short(&from.program), short(&to.program));
        let diff = TextDiff::from_lines(&old, &new);
        let mut diff = diff.unified_diff();
        let diff = diff.header(&format!("{path} {before}"), &format!("{path} {after}"));
        out.push_str(&diff.to_string());
    }
    out
}

fn path_of(index: usize, file: &windlass_engine::report::FileReport) -> String {
    match index {
        0 => String::from("workflow"),
        _ => file.path.clone(),
    }
}
