//! `windlass dump`: the checkpoints as they lie in the store.

use super::access::{inspect, is_owned};
use super::args::{DumpArgs, Global};
use super::exit::{Exit, Failure};
use super::format;
use super::output::{self, Format, Screen};
use std::fmt::Write as _;
use windlass_engine::report::{
    CursorDump, DumpFilter, DumpReport, FrameKindDump, RawReport, RecordDump, RunDump, StateDump,
    Unreadable, WaitDump, dump,
};
use windlass_engine::{EngineError, LoopState, StoreError, Value, doctor, now};

/// The most characters of a value on a line.
const VALUE: usize = 160;

/// The command. What could not be read is also told on standard error, with exit code 8.
pub async fn run(global: &Global, screen: Screen, args: &DumpArgs) -> Result<Exit, Failure> {
    if args.raw {
        return raw(global, args).await;
    }
    let filter = DumpFilter {
        run: args.run.clone(),
        iterations: args.iterations.limit(),
        ..DumpFilter::default()
    };
    let read = inspect(
        global,
        async |client| client.dump(&filter).await,
        |store| dump(store, &filter, now()),
    );
    let mut damaged = false;
    let report = match read.await {
        // It does not open, but it can still be read, at least in part.
        Err(Failure::Engine(EngineError::Store(StoreError::Corrupt { what })))
            if global.server.is_none() =>
        {
            let (store, unreadable) = doctor::inspect_damaged(&global.state)?;
            let mut report = dump(&store, &filter, now())?;
            report.unreadable.insert(0, the_store(what));
            report.unreadable.extend(unreadable);
            damaged = true;
            report
        }
        other => other?,
    };
    match args.output.output {
        Format::Table => output::print(text(&report, filter.iterations))?,
        Format::Jsonl => output::list(Format::Jsonl, &report.runs)?,
        format => output::document(format, &report)?,
    }
    if damaged {
        let message = "the store does not open; this is what can be read of it";
        let hint = "`windlass doctor --repair` builds a new store from the readable data and renames this \
             one";
        screen.fail(message, Some(hint));
    }
    for lost in &report.unreadable {
        let run = lost
            .run
            .as_deref()
            .map(|run| format!(" of run {run}"))
            .unwrap_or_default();
        screen.fail(
            &format!("{}{run} cannot be read: {}", lost.what, lost.error),
            None,
        );
    }
    Ok(if report.unreadable.is_empty() {
        Exit::Succeeded
    } else {
        Exit::Store
    })
}

/// `--raw`: what is written, row by row.
async fn raw(global: &Global, args: &DumpArgs) -> Result<Exit, Failure> {
    if is_owned(global).await? {
        return Err(Failure::Taken(String::from(
            "--raw reads the rows of a store that no process owns",
        )));
    }
    let mut rows: Vec<RawReport> = Vec::new();
    doctor::raw(&global.state, args.run.as_deref(), &mut |row| {
        rows.push(row)
    })?;
    match args.output.output {
        Format::Table => {
            let mut out = String::new();
            for row in &rows {
                let _ = writeln!(out, "{}  {}  {} bytes", row.key, row.what, row.bytes);
                let text = row.record.as_deref().filter(|text| !text.is_empty());
                let error = row
                    .error
                    .as_deref()
                    .map(|error| format!("unreadable: {error}"));
                if let Some(text) = text.map(str::to_owned).or(error) {
                    let _ = writeln!(out, "  {text}");
                }
            }
            output::print(&out)?;
        }
        format => output::list(format, &rows)?,
    }
    Ok(match rows.iter().any(|row| row.error.is_some()) {
        true => Exit::Store,
        false => Exit::Succeeded,
    })
}

fn the_store(error: String) -> Unreadable {
    Unreadable {
        run: None,
        what: String::from("the store as a whole"),
        error,
    }
}

fn text(report: &DumpReport, limit: Option<usize>) -> String {
    if report.runs.is_empty() {
        return String::from("no runs");
    }
    let runs: Vec<String> = report.runs.iter().map(|run| a_run(run, limit)).collect();
    runs.join("\n")
}

fn a_run(run: &RunDump, limit: Option<usize>) -> String {
    let header = &run.header;
    let mut out = String::new();
    let _ = writeln!(out, "run {}  {}", header.run, header.status.as_str());
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<12} {value}");
    };
    let file = header.file.as_deref().unwrap_or("-");
    let dialect = header.dialect.as_deref().unwrap_or("-");
    line(
        "workflow",
        format!("{}  {file}  {dialect}", header.workflow),
    );
    line("program", run.checksums.program.clone());
    line("started", header.started_at.to_string());
    line("updated", header.updated_at.to_string());
    line(
        "commit",
        format!("{}  snapshot at {}", header.commit, header.snapshot),
    );
    let due = header
        .due_at
        .map(|due| format!("  {due}"))
        .unwrap_or_default();
    line("placement", format!("{}{due}", header.placement));
    if !header.labels.is_empty() {
        line("labels", output::labels(&header.labels));
    }
    let sizes = &run.sizes;
    line(
        "bytes",
        format!(
            "snapshot {}  changes behind it {}  source {}",
            sizes.snapshot_bytes, sizes.tail_bytes, sizes.source_bytes
        ),
    );
    line(
        "state",
        run.checksums
            .state
            .clone()
            .unwrap_or_else(|| String::from("unreadable")),
    );
    if let Some(state) = &run.state {
        a_state(&mut out, state);
    }
    if !run.links.is_empty() {
        let _ = writeln!(out, "  mappings");
    }
    for link in &run.links {
        let from = link.from.as_deref().unwrap_or("inputs");
        let when = link.when.as_ref().map(|when| format!(", {when}"));
        let _ = writeln!(
            out,
            "    {from}.{} → {}.{}  ({}{})",
            link.output,
            link.to,
            link.input,
            link.kind,
            when.unwrap_or_default()
        );
    }
    if !run.loops.is_empty() {
        let _ = writeln!(out, "  loop rows");
        run.loops
            .iter()
            .for_each(|row| a_loop(&mut out, "    ", row));
    }
    let shown = run.iterations.len();
    if shown > 0 && limit.is_some_and(|limit| shown >= limit) {
        let _ = writeln!(out, "  iterations  the last {shown}: --iterations all");
    } else if shown > 0 {
        let _ = writeln!(out, "  iterations");
    }
    for row in &run.iterations {
        let condition = row
            .condition
            .map_or_else(|| String::from("-"), |value| value.to_string());
        let took = format::duration(row.ended_at.since(row.started_at));
        let _ = writeln!(
            out,
            "    {}#{}  {}  condition {condition}  {} to {} ({took})  {}",
            row.path,
            row.iteration,
            row.status.as_str(),
            row.started_at,
            row.ended_at,
            output::short(&row.result, VALUE)
        );
    }
    out
}

fn a_state(out: &mut String, state: &StateDump) {
    let _ = writeln!(out, "  input        {}", output::short(&state.input, VALUE));
    if let Some(pause) = &state.pause {
        let _ = writeln!(
            out,
            "  paused       {}  {}",
            pause.since,
            pause.pause.text()
        );
    }
    if let Some(outcome) = &state.outcome {
        let _ = writeln!(
            out,
            "  outcome      {} at {}  {}",
            outcome.status.as_str(),
            outcome.at,
            output::short(&outcome.document(), VALUE)
        );
    }
    if let Some(variables) = state.variables.as_object().filter(|map| !map.is_empty()) {
        let _ = writeln!(out, "  variables");
        for (name, value) in variables {
            let _ = writeln!(out, "    {name} = {}", output::short(value, VALUE));
        }
    }
    for cursor in &state.cursors {
        a_cursor(out, cursor);
    }
    for effect in &state.effects {
        let timeout = effect
            .timeout_ms
            .map(|millis| format!("  timeout {millis}ms"));
        let _ = writeln!(
            out,
            "  effect {}  cursor {}  {} ({})  attempt {}  asked for {}{}\n    key    {}\n    inputs {}",
            effect.id,
            effect.cursor,
            effect.action,
            effect.executor,
            effect.attempt,
            effect.requested_at,
            timeout.unwrap_or_default(),
            effect.key,
            output::short(&effect.inputs, VALUE)
        );
    }
    for timer in &state.timers {
        let scope = timer
            .scope
            .as_ref()
            .map(|scope| format!(" of {scope}"))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "  timer {}  cursor {}  {}{scope}  due {}",
            timer.id, timer.cursor, timer.purpose, timer.due_at
        );
    }
    for signal in &state.signals {
        let payload = output::short(&signal.payload, VALUE);
        let _ = writeln!(out, "  signal {}  {payload}", signal.name);
    }
}

fn a_cursor(out: &mut String, cursor: &CursorDump) {
    let step = cursor.step.as_deref().unwrap_or("-");
    let parent = cursor
        .parent
        .map(|parent| format!("  forked by {parent}"))
        .unwrap_or_default();
    let wait = match &cursor.wait {
        WaitDump::Nothing => String::from("ready"),
        WaitDump::Effect { id } => format!("waits for effect {id}"),
        WaitDump::Timer { id } => format!("waits for timer {id}"),
        WaitDump::Signal { name } => format!("waits for signal {name}"),
        WaitDump::Branches => String::from("waits for its branches"),
        WaitDump::Budget => String::from("waits for a new budget"),
        WaitDump::Fault { message } => format!("raises: {}", output::cut(message, VALUE)),
    };
    let _ = writeln!(
        out,
        "  cursor {}  at s{} {step}  {wait}{parent}",
        cursor.id, cursor.at
    );
    for frame in &cursor.frames {
        let _ = write!(
            out,
            "    frame {}  entered {}  ",
            frame.name, frame.entered_at
        );
        match &frame.kind {
            FrameKindDump::Plain => out.push_str("plain\n"),
            FrameKindDump::Graph { steps, visit } => {
                let _ = writeln!(
                    out,
                    "graph  {steps} nodes entered, visit {visit} of this one"
                );
            }
            FrameKindDump::Loop { state, last, kept } => {
                out.push_str("loop\n");
                a_loop(out, "      ", state);
                for (name, value) in kept.as_object().into_iter().flatten() {
                    let _ = writeln!(out, "      kept {name} = {}", output::short(value, VALUE));
                }
                last.iter().for_each(|one| a_record(out, "      last", one));
            }
            FrameKindDump::Try {
                attempt,
                max_attempts,
                last_fault,
                next_due_at,
            } => {
                let _ = write!(out, "try  attempt {attempt}/{max_attempts}");
                if let Some(fault) = last_fault {
                    let _ = write!(
                        out,
                        "  last fault {} at {}: {}",
                        fault.kind,
                        fault.at,
                        output::cut(&fault.message, VALUE)
                    );
                }
                if let Some(due) = next_due_at {
                    let _ = write!(out, "  next attempt {due}");
                }
                out.push('\n');
            }
            FrameKindDump::Deadline { timer, after_ms } => {
                let _ = writeln!(out, "deadline  timer {timer}  after {after_ms} ms");
            }
            FrameKindDump::Fork {
                branches,
                started,
                running,
                closed,
                ..
            } => {
                let closed = if *closed { "  closed" } else { "" };
                let _ = writeln!(
                    out,
                    "fork  {} branches, {started} started, {running} running{closed}",
                    branches.len()
                );
            }
            FrameKindDump::Branch { index, item } => {
                let _ = writeln!(out, "branch {index}  item {}", output::short(item, VALUE));
            }
            FrameKindDump::Root { environment } => {
                let _ = writeln!(
                    out,
                    "root  environment {}",
                    output::short(environment, VALUE)
                );
            }
            FrameKindDump::Apart { index, variables } => {
                let variables = output::short(variables, VALUE);
                let _ = writeln!(out, "branch {index}  variables of its own {variables}");
            }
        }
    }
    cursor
        .records
        .iter()
        .for_each(|one| a_record(out, "    record", one));
}

fn a_record(out: &mut String, head: &str, record: &RecordDump) {
    let error = record
        .error
        .as_ref()
        .map(|error| format!("  error {}", output::cut(error, VALUE)));
    let _ = writeln!(
        out,
        "{head} {}  {}  attempts {}  ended {}  {}{}",
        record.action,
        record.status.as_str(),
        record.attempts,
        record.ended_at,
        output::short(&record.output, VALUE),
        error.unwrap_or_default()
    );
}

/// Every field that has a value.
fn a_loop(out: &mut String, indent: &str, row: &LoopState) {
    let fields = serde_json::to_string(row).ok();
    let fields = fields
        .and_then(|text| Value::from_json(&text).ok())
        .unwrap_or_default();
    let _ = writeln!(out, "{indent}{} ({})", row.path, row.kind);
    for (name, value) in fields.as_object().into_iter().flatten() {
        if !value.is_null() && !matches!(&**name, "path" | "kind") {
            let shown = value
                .as_str()
                .map_or_else(|| value.to_json(), str::to_owned);
            let _ = writeln!(out, "{indent}  {name:<20} {shown}");
        }
    }
}
