//! The syntax of scripts, before anything runs. It compiles and never runs; what cannot be checked
//! here, as there is no `python3` or `swipl`, is not complained of.

use super::lua;
use std::io::Write;
use std::process::{Command, Stdio};

/// Reads a list of codes from standard input and answers with a list of `[line, message]` or null.
const CHECK: &str = include_str!("check.py");

/// Maximum bytes of code that is checked.
const MAX_CODE: usize = 1 << 20;

/// What is wrong with a script.
pub struct SyntaxMistake {
    /// In which line of it, from 1.
    pub line: usize,
    /// What, in one line.
    pub message: String,
}

/// The scripts of a language that do not compile, by their places in the list.
#[must_use]
pub fn syntax_mistakes(language: &str, codes: &[&str]) -> Vec<(usize, SyntaxMistake)> {
    let size: usize = codes.iter().map(|code| code.len()).sum();
    if codes.is_empty() || size > MAX_CODE {
        return Vec::new();
    }
    let found: Vec<Option<(usize, String)>> = match language {
        "lua" => codes.iter().map(|code| lua::mistake(code)).collect(),
        "python" => {
            let words = ["-I", "-S", "-c", CHECK].map(str::to_owned);
            of_interpreter("python3", &words, codes).unwrap_or_default()
        }
        "prolog" => of_interpreter("swipl", &super::prolog::reader(), codes).unwrap_or_default(),
        _ => Vec::new(),
    };
    let placed = found.into_iter().enumerate();
    placed
        .filter_map(|(place, mistake)| {
            let (line, message) = mistake?;
            Some((place, SyntaxMistake { line, message }))
        })
        .collect()
}

/// What an interpreter says of scripts that it only reads; none when it is not there, or does not
/// say.
fn of_interpreter(
    program: &str,
    words: &[String],
    codes: &[&str],
) -> Option<Vec<Option<(usize, String)>>> {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let sent = serde_json::to_vec(codes).ok()?;
    // It reads everything before it answers; one that is gone reads nothing.
    let _ = child.stdin.take()?.write_all(&sent);
    let answer = child.wait_with_output().ok()?.stdout;
    serde_json::from_slice(&answer).ok()
}
