//! The log on standard error. By default a command logs nothing, and a server what keeps its runs from
//! going on. `-v` adds warnings and what scripts print, `-vv` what the engine does. `WINDLASS_LOG`
//! sets the filter (`warn,script=info`).

use super::output::Screen;
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;
use windlass_engine::TerminalText;

/// Begins to write the log of a server, or of another command.
pub(super) fn begin(screen: Screen, serves: bool) {
    let wanted = std::env::var("WINDLASS_LOG").unwrap_or_default();
    let filter = match (wanted.as_str(), screen.verbose) {
        ("", 0) if serves => EnvFilter::new(
            "windlass_engine::scheduler=warn,windlass_engine::schedule=warn,windlass_temporal=warn",
        ),
        ("", 0) => return,
        ("", 1) => EnvFilter::new("warn,script=info"),
        ("", _) => EnvFilter::new("info,windlass=debug"),
        (wanted, _) => EnvFilter::new(wanted),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Visible)
        // Else a line that cannot be written is told on standard error, with a panic where that is closed.
        .log_internal_errors(false)
        .with_ansi(false)
        .without_time();
    // It fails when there is a log already.
    let _ = log.try_init();
}

/// Standard error without what drives a terminal. Each line comes in one write.
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

/// Does not print panics of the database, unless with `-v`: they are caught and become errors of the
/// store.
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
