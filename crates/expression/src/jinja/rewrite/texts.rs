//! Rewrites the constants of expressions.

use super::Writer;
use crate::jinja::complexity::TOO_COMPLEX;
use minijinja::value::{Value, ValueKind};
use std::fmt::Write;

impl Writer {
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
