//! The log on standard error.
//! By default, most commands log nothing. A server logs the starts and ends of runs, the changes by clients, and what
//! prevents its runs from continuing. `-v` adds warnings and what scripts print, `-vv` adds what the engine does.
//! `WINDLASS_LOG` sets the filter (`warn,script=info`).

use super::args::LogFormat;
use super::output::Screen;
use serde_json::json;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use windlass_engine::{TerminalText, drives_terminals, now};

/// The filter for the log of a server.
const SERVER: &str = "run=info,audit=info,windlass_server=info,windlass_engine=warn,windlass_actions=warn,\
                      windlass_temporal=warn";

/// Maximum number of a server's log lines that wait to be written.
/// Further lines are lost, because a reader of standard error that stalls must not delay runs.
const MAX_WAITING: usize = 8_192;

/// How long a server waits at its end until the last lines are written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The channel to the thread that writes the log lines of a server.
static LINES: OnceLock<SyncSender<Line>> = OnceLock::new();

/// Number of lines that were lost since the last written line.
static LOST: AtomicU64 = AtomicU64::new(0);

enum Line {
    Text(Vec<u8>),
    /// Answered when all earlier lines are written.
    Flush(SyncSender<()>),
}

/// Starts the log of a server (`serves`) or of another command.
pub(super) fn begin(screen: Screen, serves: bool, format: LogFormat) {
    let wanted = std::env::var("WINDLASS_LOG").unwrap_or_default();
    let filter = match (wanted.as_str(), screen.verbose) {
        ("", 0) if serves => EnvFilter::new(SERVER),
        ("", 0) => return,
        ("", 1) if serves => EnvFilter::new(format!("warn,script=info,{SERVER}")),
        // The command itself reports how its runs ended, so the log does not.
        ("", 1) => EnvFilter::new("warn,script=info,run=off"),
        ("", _) => EnvFilter::new("info,windlass=debug"),
        (wanted, _) => EnvFilter::new(wanted),
    };
    if serves {
        let (lines, waiting) = mpsc::sync_channel(MAX_WAITING);
        let thread = std::thread::Builder::new().name(String::from("log"));
        // If the thread cannot start, each thread writes its own lines itself.
        if thread.spawn(move || write_all(format, &waiting)).is_ok() {
            let _ = LINES.set(lines);
        }
    }
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Otherwise, an error of writing a line would be reported on standard error. If standard error is closed,
        // this panics.
        .log_internal_errors(false)
        .with_ansi(false);
    let writer = move || Writer(format);
    // The result is ignored: this fails only if a log was already set.
    let _ = match format {
        LogFormat::Text => log.without_time().with_writer(writer).try_init(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_writer(writer)
            .try_init(),
    };
}

/// Waits until the log lines of a server are written, at most for [`LAST_LINES`].
pub(super) fn flush() {
    let (done, written) = mpsc::sync_channel(1);
    if let Some(lines) = LINES.get()
        && lines.try_send(Line::Flush(done)).is_ok()
    {
        let _ = written.recv_timeout(LAST_LINES);
    }
}

fn write_all(format: LogFormat, lines: &Receiver<Line>) {
    while let Ok(line) = lines.recv() {
        let lost = LOST.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let warning = format!("{lost} lines of the log were lost: standard error is too slow");
            let warning = match format {
                LogFormat::Text => format!(" WARN {warning}"),
                LogFormat::Json => message("WARN", &warning),
            };
            let _ = writeln!(io::stderr().lock(), "{warning}");
        }
        match line {
            Line::Text(text) => drop(io::stderr().lock().write_all(&text)),
            Line::Flush(done) => drop(done.send(())),
        }
    }
}

/// Writes a line, or sends it to the thread that writes a server's log.
fn write(text: Vec<u8>) -> io::Result<()> {
    let Some(lines) = LINES.get() else {
        return io::stderr().lock().write_all(&text);
    };
    if lines.try_send(Line::Text(text)).is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// A writer to standard error that removes characters which control a terminal, or escapes them in JSON. Each line is
/// one write.
struct Writer(LogFormat);

impl Write for Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        write(match self.0 {
            LogFormat::Text => TerminalText::from(text).as_bytes().to_vec(),
            LogFormat::Json => escape(&text).into_bytes(),
        })?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Escapes characters that control a terminal in a line of JSON.
fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match drives_terminals(c) && c != '\n' {
            true => escaped.extend(
                c.encode_utf16(&mut [0; 2])
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            ),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Returns a message of this program as a line of a JSON log.
pub(super) fn message(level: &str, text: &str) -> String {
    let line = json!({
        "timestamp": now(),
        "level": level,
        "message": text,
        "target": "windlass",
    });
    escape(&line.to_string())
}

/// Hides the panics of the database, unless `-v` is set. Such panics are caught and become errors of the store.
pub(super) fn without_the_database(screen: Screen) {
    if screen.verbose > 0 {
        return;
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let of_database = panic
            .location()
            .is_some_and(|location| location.file().contains("/sled-0.34"));
        if !of_database {
            usual(panic);
        }
    }));
}
