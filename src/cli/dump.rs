//! `windlass dump`: the checkpoints as they lie in the store.

use super::access::{inspect, is_owned};
use super::args::{DumpArgs, Global};
use super::exit::{Exit, Failure};
use super::format;
use super::output::{self, Format, Screen};
use std::fmt::Write as _;
use windlass_engine::report::{
    DumpFilter, DumpReport, RawReport, RunDump, StateDump, Unreadable, dump,
};
use windlass_engine::{EngineError, StoreError, Value, doctor, now};

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
        for row in &run.loops {
            let row = Value::encode(row.clone()).unwrap_or_default();
            a_loop(&mut out, "    ", &row);
        }
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
    items(&state.cursors).for_each(|one| a_cursor(out, one));
    for effect in items(&state.effects) {
        let [id, cursor, action, executor, attempt, requested_at, key] = texts(
            effect,
            [
                "id",
                "cursor",
                "action",
                "executor",
                "attempt",
                "requested_at",
                "key",
            ],
        );
        let timeout = given(effect, "timeout_ms").map(|millis| format!("  timeout {millis}ms"));
        let _ = writeln!(
            out,
            "  effect {id}  cursor {cursor}  {action} ({executor})  attempt {attempt}  asked for \
             {requested_at}{}\n    key    {key}\n    inputs {}",
            timeout.unwrap_or_default(),
            value(effect, "inputs")
        );
    }
    for timer in items(&state.timers) {
        let [id, cursor, purpose, due_at] = texts(timer, ["id", "cursor", "purpose", "due_at"]);
        let scope = given(timer, "scope").map(|scope| format!(" of {scope}"));
        let scope = scope.unwrap_or_default();
        let _ = writeln!(
            out,
            "  timer {id}  cursor {cursor}  {purpose}{scope}  due {due_at}"
        );
    }
    for signal in items(&state.signals) {
        let payload = value(signal, "payload");
        let _ = writeln!(out, "  signal {}  {payload}", text_of(signal, "name"));
    }
}

fn a_cursor(out: &mut String, cursor: &Value) {
    let step = given(cursor, "step").unwrap_or_else(|| String::from("-"));
    let parent = given(cursor, "parent").map(|parent| format!("  forked by {parent}"));
    let parent = parent.unwrap_or_default();
    let wait = cursor.get("wait").unwrap_or(&Value::Null);
    let wait = match text_of(wait, "for").as_str() {
        "nothing" => String::from("ready"),
        "signal" => format!("waits for signal {}", text_of(wait, "name")),
        "branches" => String::from("waits for its branches"),
        "budget" => String::from("waits for a new budget"),
        "fault" => format!("raises: {}", output::cut(&text_of(wait, "message"), VALUE)),
        other => format!("waits for {other} {}", text_of(wait, "id")),
    };
    let [id, at] = texts(cursor, ["id", "at"]);
    let _ = writeln!(out, "  cursor {id}  at s{at} {step}  {wait}{parent}");
    for frame in members(cursor, "frames") {
        let [name, entered_at] = texts(frame, ["name", "entered_at"]);
        let _ = write!(out, "    frame {name}  entered {entered_at}  ");
        a_frame(out, frame);
    }
    members(cursor, "records").for_each(|one| a_record(out, "    record", one));
}

/// What is stored for a scope.
fn a_frame(out: &mut String, frame: &Value) {
    match text_of(frame, "frame").as_str() {
        "graph" => {
            let [steps, visit] = texts(frame, ["steps", "visit"]);
            let _ = writeln!(
                out,
                "graph  {steps} nodes entered, visit {visit} of this one"
            );
        }
        "loop" => {
            out.push_str("loop\n");
            a_loop(out, "      ", frame.get("state").unwrap_or(&Value::Null));
            let kept = frame.get("kept").and_then(Value::as_object);
            for (name, value) in kept.into_iter().flatten() {
                let _ = writeln!(out, "      kept {name} = {}", output::short(value, VALUE));
            }
            members(frame, "last").for_each(|one| a_record(out, "      last", one));
        }
        "try" => {
            let [attempt, max_attempts] = texts(frame, ["attempt", "max_attempts"]);
            let _ = write!(out, "try  attempt {attempt}/{max_attempts}");
            if let Some(fault) = frame.get("last_fault").filter(|fault| !fault.is_null()) {
                let [kind, at, message] = texts(fault, ["kind", "at", "message"]);
                let message = output::cut(&message, VALUE);
                let _ = write!(out, "  last fault {kind} at {at}: {message}");
            }
            if let Some(due) = given(frame, "next_due_at") {
                let _ = write!(out, "  next attempt {due}");
            }
            out.push('\n');
        }
        "deadline" => {
            let [timer, after_ms] = texts(frame, ["timer", "after_ms"]);
            let _ = writeln!(out, "deadline  timer {timer}  after {after_ms} ms");
        }
        "fork" => {
            let [started, running] = texts(frame, ["started", "running"]);
            let closed = match frame.get("closed") {
                Some(Value::Bool(true)) => "  closed",
                _ => "",
            };
            let _ = writeln!(
                out,
                "fork  {} branches, {started} started, {running} running{closed}",
                members(frame, "branches").count()
            );
        }
        "branch" => {
            let item = value(frame, "item");
            let _ = writeln!(out, "branch {}  item {item}", text_of(frame, "index"));
        }
        "root" => {
            let _ = writeln!(out, "root  environment {}", value(frame, "environment"));
        }
        "apart" => {
            let variables = value(frame, "variables");
            let index = text_of(frame, "index");
            let _ = writeln!(out, "branch {index}  variables of its own {variables}");
        }
        other => {
            let _ = writeln!(out, "{other}");
        }
    }
}

fn a_record(out: &mut String, head: &str, record: &Value) {
    let error = given(record, "error");
    let error = error.map(|error| format!("  error {}", output::cut(&error, VALUE)));
    let [action, status, attempts, ended_at] =
        texts(record, ["action", "status", "attempts", "ended_at"]);
    let _ = writeln!(
        out,
        "{head} {action}  {status}  attempts {attempts}  ended {ended_at}  {}{}",
        value(record, "output"),
        error.unwrap_or_default()
    );
}

/// Every field that has a value.
fn a_loop(out: &mut String, indent: &str, row: &Value) {
    let [path, kind] = texts(row, ["path", "kind"]);
    let _ = writeln!(out, "{indent}{path} ({kind})");
    for name in row.as_object().into_iter().flat_map(|row| row.keys()) {
        if let Some(shown) = given(row, name).filter(|_| !matches!(&**name, "path" | "kind")) {
            let _ = writeln!(out, "{indent}  {name:<20} {shown}");
        }
    }
}

// ── parts of the report (docs/dump.schema.json) ─────────────────────────────────────────────────

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn members<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    of.get(name).into_iter().flat_map(items)
}

/// Text without quotes, other values as JSON; none: null.
fn given(of: &Value, name: &str) -> Option<String> {
    let value = of.get(name).filter(|value| !value.is_null());
    value.map(Value::to_text)
}

fn text_of(of: &Value, name: &str) -> String {
    given(of, name).unwrap_or_default()
}

fn texts<const N: usize>(of: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| text_of(of, name))
}

/// A value of the run, in short.
fn value(of: &Value, name: &str) -> String {
    output::short(of.get(name).unwrap_or(&Value::Null), VALUE)
}
