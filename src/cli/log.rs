//! The log on standard error: nothing unless somebody asks, and of a server what keeps its runs from
//! going on; with `-v` what scripts print and what goes wrong, with `-vv` what the engine does.
//! `WINDLASS_LOG` says it in full (`warn,script=info`).

use super::output::Screen;
use crate::engine::TerminalText;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

/// Begins to write the log: of a server, or of a command that says itself what became of its run.
pub(super) fn begin(screen: Screen, serves: bool) {
    let wanted = std::env::var("WINDLASS_LOG").unwrap_or_default();
    let filter = match (wanted.as_str(), screen.verbose) {
        ("", 0) if serves => EnvFilter::new("windlass::scheduler=warn"),
        ("", 0) => return,
        ("", 1) => EnvFilter::new("warn,script=info"),
        ("", _) => EnvFilter::new("info,windlass=debug"),
        (wanted, _) => EnvFilter::new(wanted),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Visible)
        .with_ansi(false)
        .without_time();
    // Fails where a library's user has a log already.
    let _ = log.try_init();
}

/// Standard error, as far as nothing drives a terminal with it. A line comes in one write.
struct Visible;

impl Write for Visible {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = TerminalText::from(String::from_utf8_lossy(line));
        io::stderr().lock().write_all(text.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Keeps panics of the database from being told unless somebody asks: they are caught, and are errors of
/// the store, which say what it panicked with.
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
