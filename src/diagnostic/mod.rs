//! An author's mistakes: code, message, place, hint. All of them are reported, not the first.
//! This room never decides what is a mistake.

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file runs; something in it looks wrong.
    Warning,
}

/// One mistake of an author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable, documented code in kebab case, such as `unknown-type`.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake for which the file is refused.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    /// Something that looks wrong in a file that runs.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The candidate that `name` is most likely a slip of, compared without case; none when nothing
/// is near.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
            (distance, candidate)
        })
        // A third of the letters may be wrong: more than that is another word.
        .filter(|(distance, candidate)| {
            *distance <= (name.chars().count().max(candidate.chars().count()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean …?` as a hint, when a candidate is near. Long names are not compared.
pub fn did_you_mean<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    const MAX_LENGTH: usize = 64;
    let candidates = candidates.into_iter().map(AsRef::as_ref);
    let short = candidates.filter(|candidate| candidate.len().max(name.len()) <= MAX_LENGTH);
    nearest(name, short).map(|found| format!("did you mean `{found}`?"))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word() {
        let known = ["http", "shell", "until", "doUntil"];
        assert_eq!(nearest("htpt", known), Some("http"));
        assert_eq!(nearest("Until", known), Some("until"));
        assert_eq!(nearest("dountil", known), Some("doUntil"));
        assert_eq!(nearest("spreadsheet", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
