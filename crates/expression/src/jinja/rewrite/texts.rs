//! Rewrites the constants of expressions.

use super::Writer;
use crate::jinja::complexity::TOO_COMPLEX;
use minijinja::machinery::ast::Expr;
use minijinja::machinery::parse_expr;
use minijinja::value::{Value, ValueKind};
use std::fmt::Write;

impl Writer<'_> {
    /// Returns the value of a quoted text if Python reads its escapes differently from minijinja.
    pub(super) fn python_text(&self, expr: &Expr<'_>) -> Option<String> {
        let span = expr.span();
        let range = span.start_offset as usize..span.end_offset as usize;
        let quoted = self
            .source
            .get(range)
            .filter(|quoted| quoted.starts_with(['"', '\'']));
        let known = unescape(quoted?)?;
        match parse_expr(&known).ok()? {
            Expr::Const(constant) => constant.value.as_str().map(str::to_owned),
            _ => None,
        }
    }

    pub(super) fn constant(&mut self, value: &Value) {
        match value.kind() {
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Number if !value.is_integer() => {
                let float = f64::try_from(value.clone()).unwrap_or(f64::NAN);
                let text = format!("{float}");
                let whole = !text.contains('.');
                self.push(&text);
                self.push(if whole { ".0" } else { "" });
            }
            ValueKind::Undefined | ValueKind::None => self.push("none"),
            ValueKind::Bool => self.push(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => {
                let _ = write!(self.out, "{value}");
            }
            // The parser does not make any other constants.
            _ => self.trouble = Some(TOO_COMPLEX),
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push('\'');
        for letter in text.chars() {
            match letter {
                '\'' => self.push("\\'"),
                '\\' => self.push("\\\\"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                // Braces in a text must not be read as tags.
                '{' | '}' | '%' | '#' | '\0'..='\u{1f}' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(letter));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('\'');
    }
}

/// Replaces the escapes of Python in a quoted text that minijinja does not know. Returns `None` if there are none.
fn unescape(quoted: &str) -> Option<String> {
    let mut out = String::with_capacity(quoted.len());
    let mut is_changed = false;
    let mut rest = quoted;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let letter = after.chars().next()?;
        rest = after.get(letter.len_utf8()..)?;
        let code = rest
            .get(..8)
            .and_then(|code| u32::from_str_radix(code, 16).ok());
        let replaced = match (letter, code.and_then(char::from_u32)) {
            ('U', Some(named)) => {
                rest = rest.get(8..)?;
                Some(named)
            }
            ('a', _) => Some('\u{7}'),
            ('v', _) => Some('\u{b}'),
            _ => None,
        };
        is_changed |= replaced.is_some();
        match replaced {
            Some(quote @ ('"' | '\'' | '\\')) => out.extend(['\\', quote]),
            Some(letter) => out.push(letter),
            None => out.extend(['\\', letter]),
        }
    }
    out.push_str(rest);
    is_changed.then_some(out)
}
