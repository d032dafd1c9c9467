//! `windlass history`: prints the iterations of a run, and with `--events` all its events.

use super::access::inspect;
use super::args::{Amount, Global, HistoryArgs};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::format;
use super::output::{self, Format, Screen};
use super::watch::{Shown, show};
use windlass_engine::report::{HistoryFilter, HistoryReport, history};
use windlass_engine::{IterationRow, TerminalText, Timestamp, now};

pub async fn run(global: &Global, screen: Screen, args: &HistoryArgs) -> Result<Exit, Failure> {
    if args.iterations == Amount::Last(0) && !args.events {
        let message =
            "`--iterations 0` shows nothing without --events: use a number from 1, or `all`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let filter = HistoryFilter {
        loop_path: args.loop_path.clone(),
        iterations: args.iterations.limit(),
        events: args.events,
        ..HistoryFilter::default()
    };
    let format = args.output.output;
    show(screen, format, args.watch.watch, async || {
        let report = report(global, &args.run, &filter).await?;
        if report.earlier > 0 && !args.watch.watch {
            screen.say(format!("and {} earlier: --iterations all", report.earlier));
        }
        if !args.watch.watch {
            for message in missing_parts(global, &report) {
                screen.say(message);
            }
        }
        Ok(Shown {
            text: match format {
                Format::Table => table(&report, now()).into(),
                Format::Jsonl => lines(&report),
                format => output::text(format, &report),
            },
            key: output::text(Format::Json, &report),
            last: report.status.is_final(),
        })
    })
    .await
}

pub async fn report(
    global: &Global,
    run: &str,
    filter: &HistoryFilter,
) -> Result<HistoryReport, Failure> {
    inspect(
        global,
        async |client| client.history(run, filter).await,
        |store| history(store, run, filter),
    )
    .await
}

/// Returns messages about those parts of the history that are no longer stored.
pub fn missing_parts(global: &Global, report: &HistoryReport) -> Vec<String> {
    let run = &report.run;
    let iterations = (report.forgotten > 0).then(|| {
        format!(
            "the first {} iterations are not listed: `windlass export{} {run}` has the first ones and the failed ones",
            report.forgotten,
            target_flag(global)
        )
    });
    let events = (report.forgotten_events > 0).then(|| {
        format!(
            "the first {} events are no longer stored",
            report.forgotten_events
        )
    });
    iterations.into_iter().chain(events).collect()
}

/// Returns a line for each iteration, then a line for each event.
fn lines(report: &HistoryReport) -> TerminalText {
    let events = report.events.as_deref().unwrap_or_default();
    [
        output::list_text(Format::Jsonl, &report.iterations),
        output::list_text(Format::Jsonl, events),
    ]
    .into_iter()
    .collect()
}

/// Returns the cells of an iteration from its number to its duration.
fn row_cells(row: &IterationRow, now: Timestamp) -> [String; 5] {
    let condition = row.condition.map(|value| value.to_string());
    [
        row.iteration.saturating_add(1).to_string(),
        row.status.as_str().to_owned(),
        condition.unwrap_or_else(|| String::from("-")),
        format::time(row.ended_at, now),
        format::duration(row.ended_at.since(row.started_at)),
    ]
}

fn table(report: &HistoryReport, now: Timestamp) -> String {
    let head = [
        "LOOP",
        "ITERATION",
        "STATUS",
        "CONDITION",
        "ENDED",
        "TOOK",
        "RESULT",
    ];
    let rows = report.iterations.iter().map(|row| {
        let mut cells = vec![row.path.clone()];
        cells.extend(row_cells(row, now));
        cells.push(output::brief(&row.result, 80));
        cells
    });
    let canvas = report.dialect.as_deref() == Some("canvas");
    let mut text = if report.iterations.is_empty() {
        String::from("no iterations")
    } else if let Some(table) = one_loop(report, now).filter(|_| canvas) {
        table
    } else {
        output::table(&head, rows)
    };
    let Some(events) = &report.events else {
        return text;
    };
    let rows = events.iter().map(|one| {
        let fields = serde_json::to_value(&one.event.what).unwrap_or_default();
        let mut rest = fields.as_object().cloned().unwrap_or_default();
        let name = rest.remove("event").unwrap_or_default();
        let parts = rest.iter().filter(|(_, value)| !value.is_null());
        let parts: Vec<String> = parts
            .map(|(key, value)| format!("{key}={}", output::plain(value)))
            .collect();
        vec![
            one.sequence.to_string(),
            format::time(one.event.at, now),
            output::plain(&name),
            output::cut(&parts.join(" "), 120),
        ]
    });
    text.push_str("\n\n");
    text.push_str(&output::table(&["EVENT", "AT", "WHAT", ""], rows));
    text
}

/// Returns a table for one loop of a canvas, with a column for each output of its nodes.
/// Returns `None` if the iterations are of several loops, or if there are too many columns to read.
fn one_loop(report: &HistoryReport, now: Timestamp) -> Option<String> {
    const COLUMNS: usize = 12;
    let path = &report.iterations.first()?.path;
    if report.iterations.iter().any(|row| row.path != *path) {
        return None;
    }
    let mut outputs: Vec<(String, String)> = Vec::new();
    for row in &report.iterations {
        for (node, ports) in row.result.as_object().into_iter().flatten() {
            for port in ports
                .as_object()
                .into_iter()
                .flatten()
                .map(|(port, _)| port)
            {
                let output = (node.to_string(), port.to_string());
                if !outputs.contains(&output) {
                    outputs.push(output);
                }
            }
        }
    }
    if outputs.len() > COLUMNS {
        return None;
    }
    let mut head: Vec<String> = ["ITERATION", "STATUS", "CONDITION", "ENDED", "TOOK"]
        .map(str::to_owned)
        .to_vec();
    head.extend(outputs.iter().map(|(node, port)| format!("{node}.{port}")));
    let rows = report.iterations.iter().map(|row| {
        let mut cells = row_cells(row, now).to_vec();
        cells.extend(outputs.iter().map(|(node, port)| {
            let value = row.result.get(node).and_then(|node| node.get(port));
            value.map_or_else(|| String::from("-"), |value| output::short(value, 40))
        }));
        cells
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    Some(format!("{path}\n{}", output::table(&head, rows)))
}
