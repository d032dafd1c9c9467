//! The log on standard error: nothing unless somebody asks, with `-v` what scripts print and what
//! goes wrong, with `-vv` what the engine does. `WINDLASS_LOG` says it in full
//! (`warn,script=info`).

use super::output::Screen;
use tracing_subscriber::EnvFilter;

/// Begins to write the log.
pub(super) fn begin(screen: Screen) {
    let wanted = std::env::var("WINDLASS_LOG").unwrap_or_default();
    let filter = match (wanted.as_str(), screen.verbose) {
        ("", 0) => return,
        ("", 1) => EnvFilter::new("warn,script=info"),
        ("", _) => EnvFilter::new("info,windlass=debug"),
        (wanted, _) => EnvFilter::new(wanted),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time();
    // Fails where a library's user has a log already.
    let _ = log.try_init();
}
