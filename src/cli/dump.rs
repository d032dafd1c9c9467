//! `windlass dump`: prints the checkpoints as the store has them.

use super::access::{inspect, is_owned};
use super::args::{DumpArgs, Global};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::format;
use super::output::{self, Format, Screen};
use std::fmt::Write as _;
use windlass_engine::report::{DumpFilter, DumpReport, RawReport, RunDump, Unreadable, dump};
use windlass_engine::{EngineError, StoreError, Value, doctor, now};
use windlass_value::words;

/// Maximum number of characters of a value on a line.
const VALUE: usize = 160;
/// If a part of a state is larger than this, in bytes of text, each of its members has its own line.
const LINE: usize = 100;
/// The members of a state that contain data of the run, such as variables.
const DATA: [&str; 10] = words! {
    input variables response signals environment items item inputs output collected
};

/// Runs the command.
/// If some data cannot be read, this is also reported on standard error, and the exit code is 8.
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
        // The store is damaged and cannot be opened, but its rows (keys and records) may still be read, at least in
        // part.
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
        let hint = format!(
            "`windlass doctor --repair{}` builds a new store from the readable data and renames this one",
            target_flag(global)
        );
        screen.fail(message, Some(&hint));
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

/// Prints the stored rows: keys and decoded records (`--raw`).
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
        "checksum",
        run.checksums
            .state
            .clone()
            .unwrap_or_else(|| String::from("unreadable")),
    );
    if let Some(state) = &run.state {
        write_tree(&mut out, 2, "state", state, false);
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
            Value::encode(link.kind).unwrap_or_default().to_text(),
            when.unwrap_or_default()
        );
    }
    if !run.loops.is_empty() {
        let _ = writeln!(out, "  loop rows");
        for row in &run.loops {
            let (path, row) = (&row.path, Value::encode(row.clone()).unwrap_or_default());
            write_tree(&mut out, 4, path, &row, false);
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

/// Writes a member of a state.
/// If its value does not fit on one line, each of the value's members has its own line. A member with data of the run
/// is cut to one line.
fn write_tree(out: &mut String, indent: usize, name: &str, value: &Value, is_data: bool) {
    let holds_data = DATA.contains(&name);
    let members: Vec<(String, &Value)> = match value {
        _ if is_data || value.fits_in_bytes(LINE) => Vec::new(),
        Value::Array(items) => { (0..).zip(items.iter()) }
            .map(|(index, item): (usize, _)| (index.to_string(), item))
            .collect(),
        Value::Object(members) => { members.iter() }
            .map(|(name, member)| (name.to_string(), member))
            .collect(),
        _ => Vec::new(),
    };
    if members.is_empty() {
        let text = match is_data || holds_data {
            true => output::short(value, VALUE),
            false => output::cut(&value.to_text(), VALUE),
        };
        let _ = writeln!(out, "{:indent$}{name:<14} {text}", "");
        return;
    }
    let _ = writeln!(out, "{:indent$}{name}", "");
    for (name, member) in members {
        if holds_data || !member.is_null() {
            write_tree(out, indent + 2, &name, member, holds_data);
        }
    }
}
