//! Mistakes that both the reader of YAML and the reader of JSON report.

use super::{MAX_DEPTH, MAX_NODES, Mistake, Span};

/// The mistake of a file that nests too deep (if `depth` is true) or has too many values.
pub(super) fn too_much(span: Span, depth: bool) -> Mistake {
    if depth {
        Mistake::new("too-deep", span, "the file nests too deep")
            .hint(format!("{MAX_DEPTH} levels at most"))
    } else {
        Mistake::new("too-many-values", span, "the file holds too many values")
            .hint(format!("{MAX_NODES} at most, with every alias written out"))
    }
}

/// The mistake of a key that occurs twice in a map.
pub(super) fn duplicate(key: &str, span: Span, first: Span) -> Mistake {
    Mistake::new(
        "duplicate-key",
        span,
        format!("the key `{key}` is here twice"),
    )
    .hint(format!(
        "it is already at line {}, column {}; remove or rename one",
        first.line, first.column
    ))
    .forgiven("the last one counts")
}

/// The mistake of a template `{{ x }}` without quotes.
pub(super) fn unquoted_template(span: Span, template: Option<&str>) -> Mistake {
    let template = template.unwrap_or("{{ … }}");
    let quoted = if template.contains('"') {
        format!("'{template}'")
    } else {
        format!("\"{template}\"")
    };
    let length = u32::try_from(template.chars().count()).unwrap_or(1);
    Mistake::new(
        "unquoted-template",
        Span { length, ..span },
        "`{{` without quotes begins a YAML map, not a template",
    )
    .hint(format!("quote the whole text: {quoted}"))
}

/// The mistake of an integer that would be rounded.
pub(super) fn out_of_range(number: &str, span: Span) -> Mistake {
    let what = format!("the number {number} does not fit 64 bits");
    Mistake::new("number", span, what).hint("quote it if it is meant as text")
}
