//! Checks the syntax of scripts before anything runs. Scripts are compiled and never run. If the interpreter
//! (`python3`, `swipl`) is missing, its scripts are not checked and no mistake is reported.

use super::lua;
use std::io::Write;
use std::process::{Command, Stdio};

/// The Python program that checks Python scripts. It reads a list of scripts from standard input, and answers with a
/// list that has `[line, message]` or null for each.
const CHECK: &str = include_str!("check.py");

/// Maximum size, in bytes, of all code that one check parses.
const MAX_CODE: usize = 1 << 20;

/// A syntax error in a script.
pub struct SyntaxMistake {
    /// The line in the script, from 1.
    pub line: usize,
    /// The error message, in one line.
    pub message: String,
}

/// Returns the syntax errors of scripts, each with the index of its script in `codes`.
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

/// Returns the answer of an interpreter that only parses the scripts, or `None` if the interpreter is missing or its
/// answer is not valid.
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
    // Write everything before reading: the interpreter reads all input before it answers. An error is ignored, because
    // the answer of a process that died is not valid.
    let _ = child.stdin.take()?.write_all(&sent);
    let answer = child.wait_with_output().ok()?.stdout;
    serde_json::from_slice(&answer).ok()
}
