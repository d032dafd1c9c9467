//! `windlass logs`: prints the events of a run, one per line, with `-f` as they happen.

use super::access::{Outage, remote};
use super::args::{Global, LogsArgs};
use super::exit::{Exit, Failure};
use super::format;
use super::history::{missing_parts, report};
use super::oneliner::{is_line, with_line_expressions};
use super::output::{self, Format, Screen};
use super::signals::Signals;
use serde_json::{Value, json};
use std::time::Duration;
use windlass_engine::report::{HistoryFilter, NumberedEvent};
use windlass_engine::{Notice, TerminalText, now};
use windlass_server::client::Client;

/// Number of events that are requested at a time.
const PAGE: usize = 1_000;

/// The time between two reads of the store if it has no owner.
const EVERY: Duration = Duration::from_millis(500);

/// Maximum length of a line in characters.
const LINE: usize = 400;

pub async fn logs(global: &Global, screen: Screen, args: &LogsArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut after = args.after;
    let mut outage = Outage::default();
    let mut is_followed = false;
    if args.follow
        && let Some(client) = owner(global).await?
    {
        is_followed = true;
        if follow(&client, screen, args, &mut after, &mut signals).await? {
            return Ok(Exit::Succeeded);
        }
    }
    loop {
        let filter = HistoryFilter {
            iterations: Some(0),
            events: true,
            after,
            limit: Some(PAGE),
            ..HistoryFilter::default()
        };
        let report = report(global, &args.run, &filter).await;
        let report = match is_followed {
            true => outage.answer(screen, report)?,
            false => Some(report?),
        };
        let Some(report) = report else {
            tokio::select! {
                () = signals.next_or_unread() => return Ok(Exit::Succeeded),
                () = tokio::time::sleep(EVERY) => continue,
            }
        };
        for message in missing_parts(global, &report) {
            screen.say(message);
        }
        let events = report.events.unwrap_or_default();
        if let Some(last) = events.last() {
            after = last.sequence;
            let text = match args.output.output {
                Format::Table => events
                    .iter()
                    .map(|one| line(&args.run, one, screen.colour))
                    .collect(),
                format => output::list_text(jsonl(format), &events),
            };
            output::print(text)?;
        }
        if events.len() == PAGE {
            continue;
        }
        if !args.follow || report.status.is_final() {
            return Ok(Exit::Succeeded);
        }
        tokio::select! {
            () = signals.next_or_unread() => return Ok(Exit::Succeeded),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Returns the client of the server or of the store's owner, which executes the run. Returns `None` if there is
/// neither.
async fn owner(global: &Global) -> Result<Option<Client>, Failure> {
    match remote(global)? {
        Some(client) => Ok(Some(client)),
        None => Ok(Client::for_state_dir(&global.state).await?),
    }
}

/// Prints events as they happen, and the lines that commands print.
/// Returns false if the owner ends before the run has ended.
async fn follow(
    client: &Client,
    screen: Screen,
    args: &LogsArgs,
    after: &mut u64,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    let format = args.output.output;
    let mut notices = client.follow(&args.run, Some(*after)).await?;
    loop {
        let notice = tokio::select! {
            () = signals.next_or_unread() => return Ok(true),
            notice = notices.next() => notice,
        };
        match notice {
            Ok(Some(Notice::Event { sequence, event })) => {
                *after = sequence;
                let one = NumberedEvent { sequence, event };
                output::print(match format {
                    Format::Table => line(&args.run, &one, screen.colour),
                    format => output::list_text(jsonl(format), &[one]),
                })?;
            }
            Ok(Some(Notice::Printed {
                action,
                stream,
                text,
            })) => output::print(match format {
                Format::Table => printed(&action, &text, screen.colour),
                format => {
                    let document = json!({ "event": "Printed", "at": now(), "node_name": action, "stream": stream, "text": text });
                    output::list_text(jsonl(format), &[document])
                }
            })?,
            Ok(Some(Notice::Finished { .. })) => return Ok(true),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(error) if error.is_outage() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A log has no end, so it cannot be one document: JSON becomes JSON Lines.
fn jsonl(format: Format) -> Format {
    match format {
        Format::Json => Format::Jsonl,
        other => other,
    }
}

/// Formats an event: `2026-11-21T14:02:11.123Z  ActionEnded  fetch  status=Succeeded`.
fn line(run: &str, one: &NumberedEvent, colour: bool) -> TerminalText {
    let fields = serde_json::to_value(&one.event.what).unwrap_or_default();
    let mut rest = fields.as_object().cloned().unwrap_or_default();
    let word = |value: Option<Value>| value.as_ref().map(output::plain).unwrap_or_default();
    let name = word(rest.remove("event"));
    let node = word(rest.remove("node_name"));
    let bad = rest.get("error").is_some_and(|error| !error.is_null());
    let rest = rest.iter().filter(|(_, value)| !value.is_null());
    let parts: Vec<String> = rest
        .map(|(key, value)| format!("{key}={}", output::plain(value)))
        .collect();
    let text = with_line_expressions(is_line(run), &format!("{node}  {}", parts.join(" ")));
    let text = output::cut(text.trim(), LINE);
    let code = if bad { "1;31" } else { "1;36" };
    let mut line = TerminalText::from(format!("{}  ", format::instant(one.event.at)));
    let name = TerminalText::tinted(colour, code, &format!("{name:<14}"));
    line.push(&name.and(format!("  {text}\n")));
    line
}

fn printed(action: &str, text: &str, colour: bool) -> TerminalText {
    let mut line = TerminalText::from(format!("{}  ", format::instant(now())));
    let name = TerminalText::tinted(colour, "2", &format!("{:<14}", "Printed"));
    line.push(&name.and(format!(
        "  {}  {}\n",
        output::line(action),
        output::cut(text, LINE)
    )));
    line
}
