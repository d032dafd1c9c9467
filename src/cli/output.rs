//! What goes to standard output, in the format that was asked for, and what goes to standard
//! error. A reader that has gone away is never a failure.

use super::exit::Failure;
use crate::engine::Value;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};

/// The formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON document on one line; of `logs`, which is read as it grows, one for each event.
    Json,
    /// JSON Lines: one JSON document a line for each thing.
    Jsonl,
    /// YAML.
    Yaml,
}

/// When there is colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where a command writes to.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Whether results have colour.
    pub colour: bool,
    /// Whether what goes to standard error has colour.
    pub error_colour: bool,
    /// Whether standard error is a terminal, so that a progress line can be redrawn.
    pub live: bool,
    /// How much is told: `-v`.
    pub verbose: u8,
}

impl Screen {
    /// Looks at the terminal and the environment.
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
        }
    }

    /// Text for standard error, in a colour if there is any.
    pub fn tint(&self, code: &str, text: &str) -> String {
        paint(self.error_colour, code, text)
    }

    /// A line on standard error. When that is closed there is nobody to tell.
    pub fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// `warning: …`
    pub fn warn(&self, message: &str) {
        let head = self.tint("1;33", "warning");
        self.say(&format!("{head}: {}", printable(message)));
    }

    /// `error: …` and what to do about it.
    pub fn fail(&self, message: &str, hint: Option<&str>) {
        let head = self.tint("1;31", "error");
        self.say(&format!("{head}: {}", printable(message)));
        if let Some(hint) = hint {
            self.say(&format!(
                "  {}: {}",
                self.tint("34", "hint"),
                printable(hint)
            ));
        }
    }
}

/// Text in a colour, if there is any.
pub fn paint(colour: bool, code: &str, text: &str) -> String {
    if colour {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// Text on standard output, with a line break at its end.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let end: &[u8] = if text.is_empty() || text.ends_with('\n') {
        b""
    } else {
        b"\n"
    };
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::Output),
    }
}

/// One document: JSON on one line, or YAML; indented JSON where people read.
pub fn document(format: Format, value: &impl Serialize) -> Result<(), Failure> {
    print(&text(format, value))
}

/// A list: one document, or with `jsonl` one for each.
pub fn list<T: Serialize>(format: Format, items: &[T]) -> Result<(), Failure> {
    print(&list_text(format, items))
}

/// What [`document`] prints.
pub fn text(format: Format, value: &impl Serialize) -> String {
    match format {
        Format::Table => json(value, true),
        Format::Json | Format::Jsonl => json(value, false),
        Format::Yaml => yaml(value),
    }
}

/// What [`list`] prints.
pub fn list_text<T: Serialize>(format: Format, items: &[T]) -> String {
    match format {
        Format::Jsonl => items.iter().map(|item| json(item, false) + "\n").collect(),
        _ => text(format, &items),
    }
}

fn json(value: &impl Serialize, indented: bool) -> String {
    let text = if indented {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    // Only a map with keys that are no text cannot be written, and there is none.
    text.unwrap_or_else(|_| String::from("null"))
}

fn yaml(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).unwrap_or_else(|_| String::from("null\n"))
}

/// Rows under a head, as wide as they are, without lines.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head.to_vec());
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// A value in a cell or a line: compact JSON, cut in the middle when it is long.
pub fn short(value: &Value, most: usize) -> String {
    let text = value.to_json();
    cut(&text, most)
}

/// The same of what an iteration gave, without the headers of HTTP answers: they come first, and say
/// the least.
pub fn brief(value: &Value, most: usize) -> String {
    short(&bare(value), most)
}

fn bare(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    let is_answer = members.contains_key("statusCode") && members.contains_key("body");
    let kept = members
        .iter()
        .filter(|(name, _)| !(is_answer && &***name == "headers"));
    Value::object(
        kept.map(|(name, member)| (name.clone(), bare(member)))
            .collect(),
    )
}

/// So many of something: `1 run`, `2 runs`.
pub fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// Text of somebody else's for a terminal: its lines, without control characters.
pub fn printable(text: &str) -> String {
    let clean = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    text.chars().map(clean).collect()
}

/// Text that is cut when it is long, without control characters.
pub fn cut(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= most {
        return text.chars().map(clean).collect();
    }
    let head: String = text
        .chars()
        .take(most.saturating_sub(1))
        .map(clean)
        .collect();
    format!("{head}…")
}
