//! Makes edits from the hints of diagnostics, if a hint names a replacement.

use super::Diagnostic;
use crate::source::{Lines, TextEdit};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use utoipa::ToSchema;

/// A possible correction of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fix {
    /// Title of the correction: "change `htp` to `http`".
    pub title: String,
    /// Edits of the file that has the mistake.
    pub edits: Vec<TextEdit>,
}

/// Returns the fixes that result from a diagnostic's hint.
pub(super) fn fixes(one: &Diagnostic, lines: &Lines<'_>) -> Vec<Fix> {
    let found = || {
        let content = lines.text();
        let place = lines.of_span(one.span);
        let hint = one.hint.as_deref()?;
        let (wrong, new) = match suggested_word(hint) {
            Some(meant) => (wrong_word(one, content, &place)?, meant),
            None => (place, quoted(hint)?),
        };
        let old = content.get(wrong.clone()).unwrap_or_default();
        let title = match old.is_empty() {
            true => format!("insert `{new}`"),
            false => format!("change `{old}` to `{new}`"),
        };
        let edits = vec![TextEdit {
            range: lines.range(wrong),
            new_text: new.to_owned(),
        }];
        Some(Fix { title, edits })
    };
    found().into_iter().collect()
}

/// Returns the word that the hint `did you mean …?` suggests.
fn suggested_word(hint: &str) -> Option<&str> {
    let (_, rest) = hint.split_once("did you mean `")?;
    let (meant, rest) = rest.rsplit_once("`?")?;
    (rest.is_empty() && !meant.contains('`')).then_some(meant)
}

/// Returns the text of a hint that only adds quotes.
fn quoted(hint: &str) -> Option<&str> {
    let starts = ["quote the whole text: ", "quote it: "];
    starts
        .iter()
        .find_map(|start| hint.strip_prefix(start))
        .filter(|new| !new.contains('…'))
}

/// Returns the range of the wrong word, in bytes. This is the word that the message names, if it is at the position.
/// Otherwise it is the text at the position, without its quotes.
fn wrong_word(one: &Diagnostic, content: &str, place: &Range<usize>) -> Option<Range<usize>> {
    let text = content.get(place.clone())?;
    let named = one.message.split('`').skip(1).step_by(2);
    for word in named.filter(|word| !word.is_empty()) {
        if let Some(at) = text.find(word) {
            let start = place.start + at;
            return Some(start..start + word.len());
        }
    }
    let inner = text.trim_matches(['"', '\'']);
    let at = text.find(inner)?;
    let plain = !inner.is_empty() && !inner.contains(char::is_whitespace);
    plain.then(|| place.start + at..place.start + at + inner.len())
}
