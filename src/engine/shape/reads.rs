//! What the text of an expression reads: of which action, trigger, variable or item, and at which path.

/// How deep paths and schemas are followed.
pub(super) const MAX_DEPTH: usize = 24;

/// Something that expressions read members of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    Trigger,
    /// The outputs of an action, by its name in lower case.
    Action(String),
    Variable(String),
    /// An item of a list, by the text of that list's expression. Where a text reads one, until it is
    /// known of which list: by the name of its foreach, or without a name.
    Item(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Item,
}

/// The members that an expression goes on to read, and what stands behind them.
fn path(text: &str) -> (Vec<Step>, &str) {
    let mut steps = Vec::new();
    let mut rest = text;
    while steps.len() < MAX_DEPTH {
        let next = rest.strip_prefix('?').unwrap_or(rest);
        if let Some(inner) = next.strip_prefix('[') {
            let inner = inner.trim_start();
            if let Some((name, after)) = inner
                .strip_prefix('\'')
                .and_then(|text| text.split_once('\''))
            {
                let Some(after) = after.trim_start().strip_prefix(']') else {
                    break;
                };
                steps.extend(name.split('/').map(|part| Step::Key(part.to_owned())));
                rest = after;
                continue;
            }
            let Some((_, after)) = inner.split_once(']') else {
                break;
            };
            if !inner.starts_with(|c: char| c.is_ascii_digit()) {
                break;
            }
            steps.push(Step::Item);
            rest = after;
        } else if let Some(inner) = next.strip_prefix('.') {
            let end = inner
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(inner.len());
            let (name, after) = inner.split_at(end);
            if name.is_empty() {
                break;
            }
            steps.push(Step::Key(name.to_owned()));
            rest = after;
        } else {
            break;
        }
    }
    (steps, rest)
}

/// Everything that a text reads: where, of what, at which path, and what stands behind it.
pub(super) fn reads(text: &str) -> Vec<(usize, Root, Vec<Step>, &str)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (word, inside) in [
        ("body(", Some("body")),
        ("outputs(", None),
        ("variables(", None),
        ("triggerbody()", Some("body")),
        ("triggeroutputs()", None),
        ("trigger()", None),
        ("items(", None),
        ("item()", None),
    ] {
        for (at, _) in lower.match_indices(word) {
            let before = text.get(..at).unwrap_or_default();
            if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let after = text.get(at + word.len()..).unwrap_or_default();
            let (root, after) = match word {
                "item()" => (Root::Item(String::new()), after),
                word if word.ends_with("()") => (Root::Trigger, after),
                _ => {
                    let Some((name, rest)) = quoted(after) else {
                        continue;
                    };
                    let root = match word {
                        "variables(" => Root::Variable(name.to_lowercase()),
                        "items(" => Root::Item(name.to_lowercase()),
                        _ => Root::Action(name.to_lowercase()),
                    };
                    (root, rest)
                }
            };
            let (mut path, rest) = path(after);
            match (word, path.first()) {
                ("trigger()", Some(Step::Key(first))) if first == "outputs" => {
                    path.remove(0);
                }
                ("trigger()", _) => continue,
                _ => {}
            }
            if let Some(inside) = inside {
                path.insert(0, Step::Key(inside.to_owned()));
            }
            found.push((at, root, path, rest));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found
}

/// The name in `'name')`, and what stands behind it.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix('\'')?.split_once('\'')?;
    Some((name, rest.trim_start().strip_prefix(')')?))
}
