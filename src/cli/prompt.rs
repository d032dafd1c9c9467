//! Questions on a terminal: `windlass signal` asks the user for the answer of a `waitForSignal`.

use super::exit::Failure;
use std::io::{self, BufRead, IsTerminal, Write};
use windlass_engine::report::{FieldKind, FormField, QuestionReport, field_text};
use windlass_engine::{TerminalText, Value};

/// Asks the user for the choice and the fields of a question.
/// Returns null if there is no terminal. Then the run refuses the answer and says what it needs.
pub fn ask(question: &QuestionReport) -> Result<Value, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Value::Null);
    }
    if let Some(title) = &question.title {
        say(&format!("{}\n", TerminalText::from(title)))?;
    }
    let mut texts = Vec::new();
    for field in &question.fields {
        texts.push((field.name.clone(), ask_field(field)?));
    }
    let choice = ask_choice(&question.choices)?;
    let text_of = |field: &FormField| {
        let mut texts = texts.iter();
        let found = texts.find(|(name, _)| *name == field.name);
        found.map(|(_, text)| text.clone())
    };
    let answer = question.answer(choice.as_deref(), text_of);
    answer.map_err(Failure::Usage)
}

/// Asks for a field until the user enters a valid text.
fn ask_field(field: &FormField) -> Result<String, Failure> {
    let default = field.default.as_ref().map(field_text);
    let mut wanted = match field.kind {
        FieldKind::Text => Vec::new(),
        FieldKind::Boolean => vec![String::from("yes/no")],
        FieldKind::Integer => vec![String::from("whole number")],
        FieldKind::Number => vec![String::from("number")],
        FieldKind::Options => vec![
            field
                .options
                .iter()
                .map(field_text)
                .collect::<Vec<_>>()
                .join("/"),
        ],
        FieldKind::Json => vec![String::from("JSON")],
    };
    if !field.required {
        wanted.push(String::from("optional"));
    }
    if let Some(default) = &default {
        wanted.push(format!("default {default}"));
    }
    let wanted = match wanted.is_empty() {
        true => String::new(),
        false => format!(" ({})", wanted.join(", ")),
    };
    loop {
        say(&format!(
            "{}{}: ",
            TerminalText::from(&field.label),
            TerminalText::from(&wanted)
        ))?;
        let line = read_line()?;
        let text = match (line.is_empty(), &default) {
            (true, Some(default)) => default.clone(),
            _ => line,
        };
        match field.parse(&text) {
            Ok(_) => return Ok(text),
            Err(why) => say(&format!("{}\n", TerminalText::from(&why)))?,
        }
    }
}

/// Asks for one of the choices. The user enters its number or its text.
fn ask_choice(choices: &[String]) -> Result<Option<String>, Failure> {
    if choices.is_empty() {
        return Ok(None);
    }
    for (index, choice) in choices.iter().enumerate() {
        say(&format!(
            "  {}  {}\n",
            index + 1,
            TerminalText::from(choice)
        ))?;
    }
    loop {
        say("choice: ")?;
        let line = read_line()?;
        let number = line
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|index| choices.get(index));
        let chosen = choices.iter().find(|choice| **choice == line).or(by_number);
        match chosen {
            Some(choice) => return Ok(Some(choice.clone())),
            None => say("enter the number or the text of a choice\n")?,
        }
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stderr().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(Failure::Machine)
}

fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(Failure::Machine)?;
    if read == 0 {
        return Err(Failure::Usage(String::from(
            "the answer is incomplete: nothing was sent",
        )));
    }
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
