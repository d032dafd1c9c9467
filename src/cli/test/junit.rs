//! Formats the results of cases as JUnit XML.

use super::cases::Outcome;
use std::fmt::Write as _;
use windlass_value::escape_markup;

pub fn xml(outcomes: &[Outcome]) -> String {
    let failed = outcomes.iter().filter(|one| !one.failures.is_empty());
    let seconds: f64 = outcomes.iter().map(|one| one.seconds).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites>\n<testsuite name=\"windlass\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{seconds:.3}\">",
        outcomes.len(),
        failed.count()
    );
    for one in outcomes {
        let (file, name) = (escaped(&one.file), escaped(&one.name));
        let _ = write!(
            out,
            "<testcase classname=\"{file}\" name=\"{name}\" time=\"{:.3}\"",
            one.seconds
        );
        if one.failures.is_empty() {
            out.push_str("/>\n");
            continue;
        }
        let all = one.failures.join("\n");
        let first = one.failures.first().map_or("", String::as_str);
        let _ = writeln!(
            out,
            "><failure message=\"{}\">{}</failure></testcase>",
            escaped(first),
            escaped(&all)
        );
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// Escapes text for an attribute. Control characters are replaced, because XML cannot contain them.
fn escaped(text: &str) -> String {
    escape_markup(text, |out, char| match char {
        '"' => out.push_str("&quot;"),
        '\n' | '\t' => out.push(char),
        char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {
            out.push('\u{fffd}');
        }
        char => out.push(char),
    })
}
