//! Plain text that the author probably means as an expression or a secret.
//! A guess is only a warning, because other programs have texts of the same form.

use windlass_expression::{Syntax, is_wdl};

/// A part of a text that looks like an expression and is not one.
pub(super) struct PlainText {
    /// Bytes from the beginning of the text.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
    pub message: String,
    /// The form that was probably meant.
    pub hint: String,
}

impl PlainText {
    /// Finds all such parts of a text that is a template of `syntax`.
    /// `in_shell`: the text is for a shell, in which `${NAME}` is an environment variable.
    pub fn find(text: &str, syntax: Syntax, in_shell: bool) -> Vec<Self> {
        let mut found = misspelt_secrets(text);
        if syntax == Syntax::Loom {
            found.extend(missing_marker(text));
            found.extend(foreign_placeholders(text, in_shell));
            found.extend(shell_variable(text).filter(|_| !in_shell));
            found.extend(plain_braces(text));
        }
        found
    }
}

/// Returns the parts of a text between `open` and `close`, each with the byte offset of `open`. Each part is as short as
/// possible. The text is read once, because it may be large.
pub(super) fn between<'t>(
    text: &'t str,
    open: &'t str,
    close: &'t str,
) -> impl Iterator<Item = (usize, &'t str)> {
    let mut start = 0;
    text.match_indices(close).filter_map(move |(end, _)| {
        let part = text.get(start..end);
        let begin = part.and_then(|part| part.rfind(open)).map(|at| start + at);
        start = end + close.len();
        Some((begin?, text.get(begin? + open.len()..end)?))
    })
}

/// Finds `${SECRET:NAME}`, `${secrets.NAME}`, and `${secret:NAME` without its brace.
fn misspelt_secrets(text: &str) -> Vec<PlainText> {
    let mut found: Vec<PlainText> = between(text, "${", "}")
        .filter(|(_, inside)| !inside.starts_with("secret:"))
        .filter_map(|(offset, inside)| {
            Some(PlainText {
                offset,
                length: inside.len() + 3,
                message: only_secrets(inside),
                hint: format!("write ${{secret:{}}}", misspelt_secret(inside)?.trim()),
            })
        })
        .collect();
    let open = text.rsplit('}').next().unwrap_or_default();
    if let Some(at) = open.find("${secret:") {
        found.push(PlainText {
            offset: text.len() - open.len() + at,
            length: "${secret:".len(),
            message: String::from("this secret is plain text: its closing `}` is missing"),
            hint: String::from("write ${secret:NAME}"),
        });
    }
    found
}

/// Returns the name after `secret:`, `secrets:`, `secret.` or `secrets.` in any case.
fn misspelt_secret(inside: &str) -> Option<&str> {
    let (word, name) = inside.split_once([':', '.'])?;
    let is_word = ["secret", "secrets"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known));
    // A shell takes a part of a variable with `${secret:0:4}`.
    let begins = |first: char| first.is_alphabetic() || first == '_';
    (is_word && name.trim_start().starts_with(begins)).then_some(name)
}

fn only_secrets(inside: &str) -> String {
    format!("`${{{inside}}}` is plain text: only `${{secret:NAME}}` is replaced")
}

/// Finds text that calls a function and has no `@`, or no braces around the `@`.
fn missing_marker(text: &str) -> Option<PlainText> {
    const READERS: [&str; 8] = [
        "variables('",
        "body('",
        "outputs('",
        "inputs('",
        "actions('",
        "parameters('",
        "items('",
        "item()",
    ];
    let is_template = text.starts_with('@') || text.contains("@{") || text.contains("{{");
    if is_template || text.contains('\n') {
        return None;
    }
    if READERS.iter().any(|reader| text.trim().starts_with(reader)) {
        return Some(PlainText {
            offset: 0,
            length: 1,
            message: String::from("this is plain text: an expression begins with `@`"),
            hint: format!("write \"@{}\"", text.trim()),
        });
    }
    let at = |reader: &&str| text.find(&format!("@{reader}"));
    Some(PlainText {
        offset: READERS.iter().find_map(at)?,
        length: 1,
        message: String::from("this is plain text: inside text, write an expression as `@{…}`"),
        hint: String::from("write @{…} around it, for example job @{inputs('job')}"),
    })
}

/// Finds `${NAME}`, the form of shells, and `${inputs.n}`, the form of other tools.
fn foreign_placeholders(text: &str, in_shell: bool) -> Vec<PlainText> {
    let mut found = Vec::new();
    for (offset, inside) in between(text, "${", "}") {
        if in_shell && !inside.contains('.') {
            continue;
        }
        let Some(meaning) = placeholder_meaning(inside) else {
            continue;
        };
        let is_whole = text.len() == inside.len() + 3;
        let hint = match meaning {
            Placeholder::Expression(expression) if in_shell => {
                format!("pass it through env: {{ NAME: \"@{expression}\" }} and write \"$NAME\"")
            }
            Placeholder::Expression(expression) if is_whole => format!("write \"@{expression}\""),
            Placeholder::Expression(expression) => format!("write @{{{expression}}}"),
            Placeholder::Secret(name) => format!("write ${{secret:{name}}}"),
            Placeholder::Any => format!(
                "for an input write @{{inputs('{inside}')}}, for a variable \
                 @{{variables('{inside}')}}, for a secret ${{secret:{inside}}}"
            ),
        };
        found.push(PlainText {
            offset,
            length: inside.len() + 3,
            message: only_secrets(inside),
            hint,
        });
    }
    found
}

/// Finds a text that is only `$NAME`, or `Bearer $NAME`.
fn shell_variable(text: &str) -> Option<PlainText> {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let (before, name) = text.split_once('$')?;
    let is_name = name.len() > 1 && name.chars().all(is_upper);
    let is_alone = matches!(before, "" | "Bearer " | "Basic " | "Token " | "token ");
    (is_name && is_alone).then(|| PlainText {
        offset: before.len(),
        length: name.len() + 1,
        message: format!("`${name}` is plain text: only `${{secret:NAME}}` is replaced"),
        hint: format!("for a secret write ${{secret:{name}}}, for an input @{{inputs('{name}')}}"),
    })
}

/// Finds `{{ inputs.n }}` in a text with `@`: the braces of Jinja are plain text there.
fn plain_braces(text: &str) -> Vec<PlainText> {
    let mut found = Vec::new();
    if !is_wdl(text) {
        return found;
    }
    for (offset, inside) in between(text, "{{", "}}") {
        // Other programs have braces, too, such as `{{.Names}}` of Docker.
        let root = inside
            .trim()
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next();
        if !root.is_some_and(|root| BRACE_ROOTS.contains(&root)) {
            continue;
        }
        let hint = match placeholder_meaning(inside.trim()) {
            Some(Placeholder::Expression(expression)) if text.contains("@{") => {
                format!("write @{{{expression}}}, or the other expression with braces")
            }
            Some(Placeholder::Expression(expression)) => {
                format!("write {expression}, outside of the quotes")
            }
            _ => String::from("write all expressions of a text with `@`, or all with braces"),
        };
        found.push(PlainText {
            offset,
            length: inside.len() + 4,
            message: format!(
                "`{{{{{inside}}}}}` is plain text: this text has an expression with `@`"
            ),
            hint,
        });
    }
    found
}

/// Returns true if a text has several names with dots between them, such as `inputs.job`.
pub(super) fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.contains('.') && text.split('.').all(is_name)
}

/// The names at the beginning of a Jinja expression that other programs with braces do not have.
const BRACE_ROOTS: [&str; 9] = [
    "actions",
    "env",
    "inputs",
    "item",
    "loop",
    "loops",
    "secrets",
    "variables",
    "workflow",
];

/// The probable meaning of `${…}` in a text.
enum Placeholder {
    Secret(String),
    Expression(String),
    /// A bare name.
    Any,
}

/// Returns the probable meaning of the text in `${…}`, or `None` if it is not a name.
fn placeholder_meaning(inside: &str) -> Option<Placeholder> {
    let named = |name: &str| {
        let known = |char: char| char.is_ascii_alphanumeric() || "_-.[]".contains(char);
        name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && name.chars().all(known)
    };
    if !named(inside) {
        return None;
    }
    let Some((root, rest)) = inside.split_once('.') else {
        return Some(Placeholder::Any);
    };
    let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
    let path = if path.is_empty() {
        String::new()
    } else {
        format!(".{path}")
    };
    Some(match root {
        "env" => Placeholder::Secret(name.to_owned()),
        // `misspelt_secrets` has them.
        "secret" | "secrets" => return None,
        "input" | "inputs" => Placeholder::Expression(format!("inputs('{name}'){path}")),
        "variable" | "variables" | "vars" | "state" => {
            Placeholder::Expression(format!("variables('{name}'){path}"))
        }
        "action" | "actions" | "steps" => {
            let (member, rest) = path
                .trim_start_matches('.')
                .split_once('.')
                .unwrap_or_default();
            Placeholder::Expression(match member {
                "outputs" => format!("outputs('{name}').{rest}"),
                _ if matches!(&*path, ".status" | ".error" | ".code") => {
                    format!("actions('{name}'){path}")
                }
                _ if path == ".outputs" => format!("outputs('{name}')"),
                _ => format!("body('{name}'){path}"),
            })
        }
        "item" | "workflow" => Placeholder::Expression(format!("{root}().{rest}")),
        "loop" if rest == "index" => {
            Placeholder::Expression(String::from("variables('loopIndex')"))
        }
        "loops" if path == ".index" => {
            Placeholder::Expression(format!("iterationIndexes('{name}')"))
        }
        "loop" | "loops" => return None,
        action => Placeholder::Expression(format!("body('{action}').{rest}")),
    })
}
