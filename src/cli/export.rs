//! `windlass export`: prints a run as one HTML file that needs no server, no network and no script.

use super::access::inspect;
use super::args::{ExportArgs, ExportFormat, Global};
use super::exit::{Exit, Failure};
use super::output::{self, Format};
use super::{format, status};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use std::fmt::Write as _;
use windlass_engine::report::{
    ExportReport, IterationEntry, IterationReport, LoopExport, StripCell, StripReport, Totals,
    export,
};
use windlass_engine::{Timestamp, Value, now, picture, sha256, visible};
use windlass_value::escape_markup;

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1b2430;--soft:#5b6777;--rule:#d5dbe3;--ok:#2f7d4f;\
--bad:#c02637;--cut:#a05a00}\
@media(prefers-color-scheme:dark){:root{--paper:#10151c;--ink:#e6ebf2;--soft:#9fadbd;--rule:#3b4757;\
--ok:#5fc28a;--bad:#ff7d88;--cut:#eeb35c}}\
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;margin:0 auto;\
max-width:70rem;padding:1rem}h1,h2,h3{line-height:1.25;overflow-wrap:anywhere}\
pre{background:color-mix(in srgb,var(--ink) 5%,transparent);padding:.6rem;overflow:auto;\
white-space:pre-wrap;overflow-wrap:anywhere}figure{margin:0;overflow-x:auto}\
table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid var(--rule);padding:.2rem .5rem;\
text-align:left;vertical-align:top;overflow-wrap:anywhere}caption,.soft{color:var(--soft);\
text-align:left}summary{cursor:pointer}.ok{fill:var(--ok)}.bad{fill:var(--bad)}.cut{fill:var(--cut)}\
.none{fill:var(--rule)}";

/// The width of a drawn strip of iterations.
const WIDTH: u64 = 1_000;
/// The height of a drawn strip.
const HEIGHT: u64 = 48;
/// The part of the height that shows durations.
const ROOM: u64 = 40;

pub async fn run(global: &Global, args: &ExportArgs) -> Result<Exit, Failure> {
    let report = inspect(
        global,
        async |client| client.export(&args.run).await,
        |store| export(store, &args.run, now()),
    )
    .await?;
    match args.output {
        ExportFormat::Html => output::print_exact(html(&report))?,
        ExportFormat::Json => output::document(Format::Json, &report)?,
    }
    Ok(Exit::Succeeded)
}

/// Escapes text for HTML.
/// Characters that control a terminal or the direction of text are made visible.
fn text(text: &str) -> String {
    escape_markup(&visible(text), |out, letter| match letter {
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        other => out.push(other),
    })
}

/// Returns the hash of a style sheet, for the content security policy of the page.
fn hash(style: &str) -> String {
    let digest = sha256(style.as_bytes());
    format!("'sha256-{}'", BASE64_STANDARD.encode(digest))
}

fn html(report: &ExportReport) -> String {
    let status = &report.status;
    let drawn = { report.graph.as_ref() }.map(|graph| picture(graph, &status.workflow));
    let own = drawn.as_deref().and_then(|svg| {
        let (_, rest) = svg.split_once("<style>")?;
        Some(rest.split_once("</style>")?.0)
    });
    let styles: Vec<String> = own.into_iter().chain([STYLE]).map(hash).collect();
    let title = text(&format!("{} {}", status.run, status.status.as_str()));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n",
        styles.join(" ")
    );
    let why = status::text(status, "", false, false);
    let _ = writeln!(out, "<pre>{}</pre>", text(why.trim_end()));
    if let Some(svg) = drawn {
        let _ = writeln!(out, "<h2>Workflow</h2>\n<figure>{svg}</figure>");
    }
    out.push_str("<h2>Outside of loops</h2>\n");
    steps(&mut out, &report.outermost, status.at);
    for one in &report.loops {
        of_loop(&mut out, one, status.at);
    }
    if report.more_loops > 0 {
        let _ = writeln!(out, "<p>And {} more loops.</p>", report.more_loops);
    }
    let _ = writeln!(
        out,
        "<p class=\"soft\">As it was at {}. Written by Windlass {}.</p>\n</main>\n</body>\n</html>",
        status.at,
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn of_loop(out: &mut String, one: &LoopExport, now: Timestamp) {
    let (summary, report) = (&one.summary, &one.strip);
    let title = summary.title.as_ref().unwrap_or(&summary.path);
    let _ = writeln!(out, "<h2>{} {}</h2>", text(&summary.kind), text(title));
    let most = summary.max_iterations;
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    let others = [
        (report.totals.retried, "retried"),
        (report.forgotten, "no longer stored"),
    ];
    let mut parts = nonzero_counts(&report.totals, &others);
    parts.insert(0, text(&summary.status));
    let _ = writeln!(
        out,
        "<p><code>{}</code>: {} iterations{most}; {}</p>",
        text(&summary.path),
        report.iterations,
        parts.join(", ")
    );
    strip(out, report);
    out.push_str("<ul>\n");
    for message in &report.messages {
        let (count, escaped) = (message.count, text(&message.message));
        let (first, last) = (message.first + 1, message.last + 1);
        let _ = writeln!(
            out,
            "<li>{count}×, iterations {first} to {last}: {escaped}</li>"
        );
    }
    out.push_str("</ul>\n");
    table(out, &one.iterations, report.iterations);
    for shown in &one.shown {
        let (number, word) = (shown.iteration + 1, word(&shown.status));
        let _ = writeln!(out, "<h3>Iteration {number} ({word})</h3>");
        steps(out, shown, now);
    }
}

/// Returns the counts of statuses and the others that are not 0, each with its word.
fn nonzero_counts(totals: &Totals, others: &[(u64, &str)]) -> Vec<String> {
    let statuses = [
        (totals.succeeded, "succeeded"),
        (totals.failed, "failed"),
        (totals.timed_out, "timed out"),
        (totals.cancelled, "cancelled"),
        (totals.skipped, "skipped"),
    ];
    let all = statuses.iter().chain(others);
    let some = all.filter(|(count, _)| *count > 0);
    some.map(|(count, word)| format!("{count} {word}"))
        .collect()
}

/// Draws the durations of a strip. A cell in which something failed has a mark below it.
fn strip(out: &mut String, report: &StripReport) {
    let longest = report.cells.iter().filter_map(|cell| cell.max_ms).max();
    let longest = longest.unwrap_or(0).max(1);
    let _ = writeln!(
        out,
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-label=\"how the iterations ended, and how long they took\">"
    );
    let count = report.cells.len().max(1) as u64;
    for (place, cell) in (0..).zip(&report.cells) {
        let (x, end) = (WIDTH * place / count, WIDTH * (place + 1) / count);
        let width = end - x - u64::from(end - x > 3);
        let tall = cell.max_ms.unwrap_or(0).saturating_mul(ROOM) / longest;
        let tall = tall.clamp(2, ROOM);
        let y = ROOM - tall;
        let _ = writeln!(
            out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{tall}\">\
             <title>{}</title></rect>",
            cell_class(cell),
            text(&cell_text(cell))
        );
        if cell_class(cell) == "bad" {
            let y = ROOM + 2;
            let _ = writeln!(
                out,
                "<rect class=\"bad\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"6\"/>"
            );
        }
    }
    out.push_str("</svg></figure>\n");
}

/// Returns the class of the worst status in a cell.
fn cell_class(cell: &StripCell) -> &'static str {
    let totals = &cell.totals;
    if totals.failed + totals.timed_out > 0 {
        "bad"
    } else if totals.cancelled > 0 {
        "cut"
    } else if totals.succeeded > 0 {
        "ok"
    } else {
        "none"
    }
}

fn cell_text(cell: &StripCell) -> String {
    let from = cell.from + 1;
    let mut parts = nonzero_counts(&cell.totals, &[]);
    let which = match cell.to == from {
        true => format!("iteration {from}"),
        false => format!("iterations {from} to {}", cell.to),
    };
    parts.insert(0, which);
    parts.extend(cell.max_ms.map(|ms| format!("{ms} ms at most")));
    parts.join(", ")
}

fn table(out: &mut String, rows: &[IterationEntry], all: u64) {
    let _ = writeln!(
        out,
        "<table><caption>{} of {all} iterations: the first, the last, and those that failed last\
         </caption>\n<thead><tr><th scope=\"col\">Iteration</th><th scope=\"col\">Ended</th>\
         <th scope=\"col\">Began</th><th scope=\"col\">Took</th><th scope=\"col\">Attempts</th>\
         <th scope=\"col\">Error</th></tr></thead>\n<tbody>",
        rows.len()
    );
    let mut next = 0;
    for entry in rows {
        let row = &entry.row;
        if row.iteration != next {
            out.push_str("<tr><td colspan=\"6\">…</td></tr>\n");
        }
        next = row.iteration.saturating_add(1);
        let _ = writeln!(
            out,
            "<tr><td>{next}</td><td>{}</td><td>{}</td><td>{} ms</td><td>{}</td><td>{}</td></tr>",
            row.status.as_str(),
            row.started_at,
            entry.duration_ms,
            entry.attempts,
            text(entry.error.as_deref().unwrap_or_default())
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Writes the steps of an iteration with their data.
fn steps(out: &mut String, report: &IterationReport, now: Timestamp) {
    if let Some(error) = &report.error {
        let _ = writeln!(out, "<p>{}</p>", text(error));
    }
    for action in &report.actions {
        let took = match (action.started_at, action.ended_at) {
            (Some(from), Some(to)) => format!(", {}", format::duration(to.since(from))),
            (Some(from), None) => format!(", since {}", format::time(from, now)),
            _ => String::new(),
        };
        let attempts = match action.attempts.len() {
            0 | 1 => String::new(),
            many => format!(", {many} attempts"),
        };
        let open = if action.error.is_some() { " open" } else { "" };
        let _ = writeln!(
            out,
            "<details{open}><summary><code>{}</code> {}{took}{attempts}</summary>",
            text(&action.path),
            word(&action.status)
        );
        if let Some(error) = &action.error {
            let _ = writeln!(out, "<p>{}</p>", text(error));
        }
        data(out, "inputs", action.inputs.as_ref());
        data(out, "outputs", action.outputs.as_ref());
        out.push_str("</details>\n");
    }
    if let Some(variables) = &report.variables {
        out.push_str("<details><summary>Variables</summary>\n");
        data(out, "at the end", Some(variables));
        out.push_str("</details>\n");
    }
}

fn data(out: &mut String, name: &str, value: Option<&Value>) {
    if let Some(value) = value {
        let json = output::text(Format::Table, value);
        let _ = writeln!(
            out,
            "<p class=\"soft\">{name}</p>\n<pre>{}</pre>",
            text(&json)
        );
    }
}

/// Returns the word for a status.
fn word(status: &impl Serialize) -> String {
    let word = serde_json::to_value(status).unwrap_or_default();
    text(word.as_str().unwrap_or_default())
}
