//! Finds what the text of an expression reads: a root (an action, trigger, variable or item), and the path in the root.

/// Maximum depth of paths and schemas.
pub(super) const MAX_DEPTH: usize = 24;

/// A value whose members expressions read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    Trigger,
    /// The outputs of an action, by its name in lower case.
    Action(String),
    Variable(String),
    /// A parameter of a definition or of a template.
    Parameter(String),
    /// An app setting.
    Setting(String),
    /// An item of a list. The text is the list's expression. While that is not known, the text is the name of the
    /// foreach, or empty.
    Item(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Key(String),
    Item,
    /// `[expression]`: an item if the expression is a number, or a member if it is text.
    Computed(String),
    /// The value that is parsed from a text of JSON.
    Json,
    /// The text that is decoded from base64.
    Base64,
    /// The value that is parsed from a text of XML.
    Xml,
}

/// Functions whose result has members that expressions read, and the step that each of them adds to the path. `None`:
/// the result has the form of the argument.
const WRAPPERS: [(&str, Option<Step>); 14] = [
    ("json", Some(Step::Json)),
    ("xml", Some(Step::Xml)),
    ("base64tostring", Some(Step::Base64)),
    ("decodebase64", Some(Step::Base64)),
    ("base64tobinary", Some(Step::Base64)),
    ("first", Some(Step::Item)),
    ("last", Some(Step::Item)),
    ("string", None),
    ("trim", None),
    ("tolower", None),
    ("toupper", None),
    ("decodeuricomponent", None),
    ("uricomponenttostring", None),
    ("coalesce", None),
];

/// Returns the path at the beginning of a text (`.name`, `['name']`, `[0]`), and the text after the path.
fn path(text: &str) -> (Vec<Step>, &str) {
    let mut steps = Vec::new();
    let mut rest = text;
    while steps.len() < MAX_DEPTH {
        let next = rest.strip_prefix('?').unwrap_or(rest);
        if let Some(inner) = next.strip_prefix('[') {
            let inner = inner.trim_start();
            if let Some((name, after)) = literal(inner) {
                let Some(after) = after.trim_start().strip_prefix(']') else {
                    break;
                };
                steps.extend(name.split('/').map(|part| Step::Key(part.to_owned())));
                rest = after;
                continue;
            }
            let Some((inner, after)) = bracketed(inner) else {
                break;
            };
            steps.push(match inner.starts_with(|c: char| c.is_ascii_digit()) {
                true => Step::Item,
                false => Step::Computed(inner.to_owned()),
            });
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

/// Returns the text before the closing bracket, and the text after the bracket.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '[' | '(' => depth += 1,
            ']' if depth == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            ']' | ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// If this text ends with `function(`, returns where the name of the function begins, and the name.
fn wrapper(before: &str) -> Option<(usize, &str)> {
    let call = before.trim_end().strip_suffix('(')?;
    let start = call
        .rfind(|c: char| !c.is_ascii_alphanumeric())
        .map_or(0, |at| at + 1);
    Some((start, call.get(start..)?))
}

/// Returns the text after the closing bracket of a call.
fn after_call(rest: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' if depth == 0 => return rest.get(at + 1..),
            ')' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Returns everything that a text reads. Each entry has the position, the root, the path, and the text after the path.
pub(super) fn reads(text: &str) -> Vec<(usize, Root, Vec<Step>, &str)> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for (word, inside) in [
        ("body(", Some("body")),
        ("actionbody(", Some("body")),
        ("outputs(", None),
        ("actionoutputs(", None),
        ("appsetting(", None),
        ("variables(", None),
        ("parameters(", None),
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
                        "parameters(" => Root::Parameter(name.to_lowercase()),
                        "appsetting(" => Root::Setting(name.to_lowercase()),
                        "items(" => Root::Item(name.to_lowercase()),
                        _ => Root::Action(name.to_lowercase()),
                    };
                    (root, rest)
                }
            };
            let (mut path, mut rest) = self::path(after);
            let mut at = at;
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
            // Add the steps of the functions that enclose this read: `json(body('x')).name`.
            while path.len() < MAX_DEPTH {
                let Some((start, function)) = text.get(..at).and_then(wrapper) else {
                    break;
                };
                let function = function.to_ascii_lowercase();
                let known = WRAPPERS.iter().find(|(name, _)| *name == function);
                let Some((_, step)) = known else { break };
                let closed = match function.as_str() {
                    "coalesce" => after_call(rest),
                    _ => rest.trim_start().strip_prefix(')'),
                };
                let Some(behind) = closed else { break };
                path.extend(step.clone());
                let (more, behind) = self::path(behind);
                path.extend(more);
                at = start;
                rest = behind;
            }
            found.push((at, root, path, rest));
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    found
}

/// Returns the string literal at the beginning of a text, and the text after the literal. Two quotes in the literal
/// mean one quote.
pub(super) fn literal(text: &str) -> Option<(String, &str)> {
    let mut rest = text.trim_start().strip_prefix('\'')?;
    let mut found = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        found.push_str(part);
        let Some(more) = after.strip_prefix('\'') else {
            return Some((found, after));
        };
        found.push('\'');
        rest = more;
    }
}

/// Returns the name at the beginning of the text `'name')`, and the text after the bracket.
pub(super) fn quoted(text: &str) -> Option<(String, &str)> {
    let (name, rest) = literal(text)?;
    Some((name, rest.trim_start().strip_prefix(')')?))
}

/// Returns the arguments of a call, if the text is only that call.
pub(super) fn arguments<'t>(text: &'t str, function: &str) -> Option<Vec<&'t str>> {
    let text = text.trim();
    let is_call = text
        .get(..function.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(function));
    let inner = text.get(function.len()..).filter(|_| is_call)?;
    let inner = inner.trim_start().strip_prefix('(')?;
    if !after_call(inner)?.trim().is_empty() {
        return None;
    }
    let mut found = Vec::new();
    let (mut depth, mut is_quoted, mut start) = (0_usize, false, 0);
    for (at, letter) in inner.char_indices() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(inner.get(start..at)?.trim());
                start = at + 1;
            }
            ')' if depth == 0 => {
                found.push(inner.get(start..at)?.trim());
                return Some(found);
            }
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}
