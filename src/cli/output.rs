//! Writes results to standard output in the chosen format, and everything else to standard error.
//! All output is [`TerminalText`], so text from other sources cannot control a terminal. If the reader of the output
//! has closed the pipe, this does not count as a failure.

use super::args::LogFormat;
use super::exit::{Exit, Failure};
use super::log;
use super::yaml;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use windlass_engine::{TerminalText, Value, drives_terminals, visible};
use windlass_value::fitted;

/// The formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and text for people
    Table,
    /// One JSON document on one line (`logs`: one per event)
    Json,
    /// JSON Lines: one JSON document per line
    Jsonl,
    /// YAML
    Yaml,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Where a command writes to, and how.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Whether standard output has colour.
    pub colour: bool,
    /// Whether standard error has colour.
    pub error_colour: bool,
    /// Whether standard error is a terminal, so that a progress line can be redrawn.
    pub live: bool,
    /// How many times the user passed `-v`.
    pub verbose: u8,
    /// The format of lines on standard error.
    pub log: LogFormat,
}

impl Screen {
    /// Creates the screen from the properties of the terminal and the environment variables.
    pub fn new(colour: Colour, verbose: u8) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = |terminal: bool| match colour {
            Colour::Auto => terminal && !refused && !dumb,
            Colour::Always => true,
            Colour::Never => false,
        };
        let error_terminal = std::io::stderr().is_terminal();
        Self {
            colour: wanted(std::io::stdout().is_terminal()),
            error_colour: wanted(error_terminal),
            live: error_terminal && !dumb,
            verbose,
            log: LogFormat::Text,
        }
    }

    /// Returns this screen, with log lines in the given format on standard error.
    pub fn with_log(self, log: LogFormat) -> Self {
        match log {
            LogFormat::Text => self,
            LogFormat::Json => Self {
                error_colour: false,
                live: false,
                log,
                ..self
            },
        }
    }

    /// Returns a text for standard error, in colour if standard error has colour.
    pub fn tint(&self, code: &'static str, text: &str) -> TerminalText {
        TerminalText::tinted(self.error_colour, code, text)
    }

    /// Prints a line on standard error.
    /// An error is ignored, because it cannot be reported anywhere else.
    pub fn say(&self, text: impl Into<TerminalText>) {
        let text = text.into();
        let _ = match self.log {
            LogFormat::Text => writeln!(std::io::stderr().lock(), "{text}"),
            LogFormat::Json => {
                writeln!(std::io::stderr().lock(), "{}", log::message("INFO", &text))
            }
        };
    }

    pub fn warn(&self, message: &str) {
        self.at("WARN", self.tint("1;33", "warning").and(": "), message);
    }

    /// Prints a line with its level.
    /// A JSON log has the level as a member. Text has `word` before the message.
    fn at(&self, level: &str, word: TerminalText, message: &str) {
        match self.log {
            LogFormat::Text => self.say(word.and(message)),
            LogFormat::Json => {
                let _ = writeln!(std::io::stderr().lock(), "{}", log::message(level, message));
            }
        }
    }

    /// Prints `error: …` and a hint about what to do.
    pub fn fail(&self, message: &str, hint: Option<&str>) {
        self.at("ERROR", self.tint("1;31", "error").and(": "), message);
        if let Some(hint) = hint {
            let mut line = TerminalText::from("  ");
            line.push(&self.tint("34", "hint").and(": ").and(hint));
            self.say(line);
        }
    }
}

/// Prints text on standard output, with a line break at its end.
pub fn print(text: impl Into<TerminalText>) -> Result<(), Failure> {
    let text = text.into();
    let mut out = std::io::stdout().lock();
    let end: &[u8] = if text.is_empty() || text.ends_with('\n') {
        b""
    } else {
        b"\n"
    };
    written(
        out.write_all(text.as_bytes())
            .and_then(|()| out.write_all(end))
            .and_then(|()| out.flush()),
    )
}

/// Converts the result of a write. A closed pipe does not count as an error, because the reader may have exited.
fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::Output),
    }
}

/// Returns true if standard output is a pipe whose reader is gone, or a terminal that is closed.
pub fn is_unread() -> bool {
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|_| {
        let [polled] = &polled;
        polled.revents().intersects(gone)
    })
}

/// Prints text of a command or a server unchanged.
/// On a terminal, characters that control the terminal are removed.
pub fn print_plain(text: &str) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return print(text);
    }
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints a file unchanged. Returns false if the reader closed the pipe before the end.
pub fn print_file(path: &Path) -> Result<bool, Failure> {
    let mut file = std::fs::File::open(path).map_err(Failure::Machine)?;
    let mut out = std::io::stdout().lock();
    let copied = std::io::copy(&mut file, &mut out).and_then(|_| out.flush());
    let is_closed = matches!(&copied, Err(error) if error.kind() == ErrorKind::BrokenPipe);
    written(copied).map(|()| !is_closed)
}

/// Prints text for programs on standard output, unchanged.
pub fn print_exact(text: impl Into<String>) -> Result<(), Failure> {
    print(TerminalText::exact(text.into()))
}

/// Prints a document, as JSON on one line or as YAML. For `table`, prints indented JSON.
pub fn document(format: Format, value: &impl Serialize) -> Result<(), Failure> {
    print(text(format, value))
}

/// Prints a list as one document. For `jsonl`, prints one document for each item.
pub fn list<T: Serialize>(format: Format, items: &[T]) -> Result<(), Failure> {
    print(list_text(format, items))
}

/// Prints `text` for `table`, and otherwise a document.
pub fn show<T: Into<TerminalText>>(
    format: Format,
    value: &impl Serialize,
    text: impl FnOnce() -> T,
) -> Result<Exit, Failure> {
    match format {
        Format::Table => print(text())?,
        format => document(format, value)?,
    }
    Ok(Exit::Succeeded)
}

/// Prints items as the rows of a table, or as [`list`] does. Prints `none` instead of a table without rows.
pub fn rows<T: Serialize>(
    format: Format,
    items: &[T],
    none: &str,
    head: &[&str],
    cells: impl Fn(&T) -> Vec<String>,
) -> Result<Exit, Failure> {
    match format {
        Format::Table if items.is_empty() => print(none)?,
        Format::Table => print(table(head, items.iter().map(cells)))?,
        format => list(format, items)?,
    }
    Ok(Exit::Succeeded)
}

/// Returns the text that [`document`] prints.
pub fn text(format: Format, value: &impl Serialize) -> TerminalText {
    TerminalText::exact(match format {
        Format::Table => shown_json(value),
        Format::Json | Format::Jsonl => json(value),
        Format::Yaml => yaml(value),
    })
}

/// Returns the text that [`list`] prints.
pub fn list_text<T: Serialize>(format: Format, items: &[T]) -> TerminalText {
    match format {
        Format::Jsonl => TerminalText::exact(items.iter().map(|item| json(item) + "\n").collect()),
        _ => text(format, &items),
    }
}

/// Returns a value as JSON on one line.
pub fn json(value: &impl Serialize) -> String {
    // This fails only for a map whose keys are not text. No caller passes such a map.
    serde_json::to_string(value).unwrap_or_else(|_| String::from("null"))
}

/// Returns indented JSON for people.
/// Characters that control a terminal are escaped, so the values are not changed.
fn shown_json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| String::from("null"));
    let escaped = |c: char| c != '\n' && drives_terminals(c);
    if !text.contains(escaped) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if escaped(char) {
            let _ = write!(shown, "\\u{:04x}", u32::from(char));
        } else {
            shown.push(char);
        }
    }
    shown
}

fn yaml(value: &impl Serialize) -> String {
    // As for JSON, no caller passes a value for which this fails.
    yaml::to_text(&serde_json::to_value(value).unwrap_or_default())
}

/// Formats a table with a header, without drawn lines.
/// On a terminal, long cells are cut so that each row fits on one line.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut rows: Vec<Vec<String>> = rows.into_iter().collect();
    if let Some(width) = terminal_width() {
        fit(head, &mut rows, width);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head.iter().map(|cell| line(cell)).collect::<Vec<_>>());
    rows.into_iter().for_each(|row| {
        let cells: Vec<String> = row.iter().map(|cell| line(cell)).collect();
        table.add_row(cells);
    });
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Returns the width of the terminal in characters. Returns `None` if standard output is not a terminal.
fn terminal_width() -> Option<usize> {
    let out = std::io::stdout();
    let size = tcgetwinsize(&out).ok().filter(|_| out.is_terminal())?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Number of blanks between two columns.
const GAP: usize = 2;

/// A column is not made narrower than this number of characters.
const LEAST: usize = 8;

/// Makes columns narrower until a row fits.
/// The last column is cut first, because it has the longest text. Then the widest columns are cut. The first column
/// is cut last, because it names the subject of the row.
fn fit(head: &[&str], rows: &mut [Vec<String>], width: usize) {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let cells = cells.map(|cell| line(cell).chars().count());
        cells.chain(head.get(column).map(|cell| cell.len())).max()
    };
    let columns = 0..head.len();
    let mut widths: Vec<usize> = columns.map(|column| widest(column).unwrap_or(0)).collect();
    let gaps = GAP * head.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let last = widths.len().saturating_sub(1);
        let wide = widths.iter_mut().enumerate();
        let wide = wide.filter(|(_, width)| **width > LEAST);
        let most = wide.max_by_key(|(column, width)| (*column > 0, *column == last, **width));
        let Some((_, most)) = most else { break };
        *most -= 1;
    }
    for row in rows {
        for (cell, most) in row.iter_mut().zip(&widths) {
            *cell = cut(cell, *most);
        }
    }
}

/// Returns a value as compact JSON for a cell or a line. It is cut if it has more than `most` characters.
pub fn short(value: &Value, most: usize) -> String {
    let text = value.to_json();
    cut(&text, most)
}

/// Returns the result of an iteration as [`short`] does, without the headers of HTTP answers.
pub fn brief(value: &Value, most: usize) -> String {
    short(&bare(value), most)
}

fn bare(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let is_answer = members.contains_key("statusCode") && members.contains_key("body");
    let shown = members
        .iter()
        .filter(|(name, _)| !(is_answer && &***name == "headers"));
    Value::object(
        shown
            .map(|(name, member)| (name.clone(), bare(member)))
            .collect(),
    )
}

/// Returns text without quotes, and any other value as JSON.
pub fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a count with its noun: `1 run`, `2 runs`.
pub fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// Returns a text on one line. It is cut if it has more than `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    visible(&fitted(text, most).replace('\n', " ")).into_owned()
}

/// Returns text on one line.
pub fn line(text: &str) -> String {
    cut(text, usize::MAX)
}

/// Returns labels as `name=text name=text`, on one line.
pub fn labels(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter().map(|(name, text)| format!("{name}={text}"));
    line(&labels.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn the_widest_columns_are_cut_and_the_first_one_last() {
        let row = || vec!["a".repeat(30), "b".repeat(40), "ok".into(), "c".repeat(20)];
        let fitted = |width| {
            let mut rows = vec![row(), row()];
            fit(&["RUN", "WORKFLOW", "STATUS", "LABELS"], &mut rows, width);
            let widths = rows[0].iter().map(|cell| cell.chars().count());
            widths.collect::<Vec<_>>()
        };
        assert_eq!(fitted(200), [30, 40, 2, 20]);
        assert_eq!(fitted(90), [30, 40, 2, 8]);
        assert_eq!(fitted(80), [30, 30, 2, 8]);
        assert_eq!(fitted(40), [12, 8, 2, 8]);
        assert_eq!(fitted(10), [8, 8, 2, 8]);
    }
}
