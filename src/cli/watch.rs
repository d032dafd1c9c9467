//! `--watch`: prints the same report again when it has changed.

use super::access::Outage;
use super::exit::{Exit, Failure};
use super::output::{self, Format, Screen};
use super::signals::Signals;
use std::io::IsTerminal;
use std::time::Duration;
use windlass_engine::TerminalText;

/// The time between two reports.
const EVERY: Duration = Duration::from_secs(1);

/// A report to print.
pub struct Shown {
    /// The report in the requested format.
    pub text: TerminalText,
    /// The report without the time at which it was made. It is compared with the last report.
    pub key: TerminalText,
    /// Whether the report is final, because it cannot change any more.
    pub last: bool,
}

/// Prints a report.
/// With `watch`, prints it again after each change, until it cannot change any more, a Unix signal arrives, or its
/// reader is gone.
pub async fn show(
    screen: Screen,
    format: Format,
    watch: bool,
    mut look: impl AsyncFnMut() -> Result<Shown, Failure>,
) -> Result<Exit, Failure> {
    let mut shown = look().await?;
    output::print(shown.text.clone())?;
    if !watch {
        return Ok(Exit::Succeeded);
    }
    let redraw = format == Format::Table && std::io::stdout().is_terminal() && screen.live;
    let mut signals = Signals::new()?;
    let mut outage = Outage::default();
    while !shown.last {
        tokio::select! {
            () = signals.next_or_unread() => return Ok(Exit::Succeeded),
            () = tokio::time::sleep(EVERY) => {}
        }
        let Some(next) = outage.answer(screen, look().await)? else {
            continue;
        };
        if redraw {
            // Move the cursor to the top left, and clear the screen.
            let mut text = TerminalText::exact(String::from("\u{1b}[H\u{1b}[2J"));
            text.push(&next.text);
            output::print(text)?;
        } else if next.key != shown.key {
            output::print(next.text.clone())?;
        }
        shown = next;
    }
    Ok(Exit::Succeeded)
}
