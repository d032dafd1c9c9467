//! What every format needs to read a tree.
//! It reads maps and reports unknown keys. It reads templates and conditions, and their mistakes have a position in
//! the text. Reading never stops at the first mistake.

use super::json_hint::as_json;
use std::rc::Rc;
use std::time::Duration;
use windlass_expression::{
    Condition, ParseError, Reference, Syntax, Template, TemplateCache, Value, is_wdl,
    text_condition, time_zone,
};
use windlass_model::hir::Script;
use windlass_model::model::Name;
use windlass_source::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use windlass_source::source::{Entry, Kind, Node, SourceFile, Span};
use windlass_value::time::human_duration;

/// A name that an expression of the file reads, and its position.
pub struct Mention {
    pub reference: Reference,
    pub span: Span,
    /// Whether the expression is inside of the loop whose name it mentions.
    pub is_inside: bool,
    /// Whether the template checks that the value exists, or has a default.
    pub is_optional: bool,
    /// Whether the expression is Jinja, in which the names of data have a case.
    pub is_jinja: bool,
}

/// Reads values of one file, and collects their mistakes.
pub struct Reader<'a> {
    content: &'a str,
    /// The language of the file's templates.
    pub syntax: Syntax,
    pub diagnostics: &'a mut Diagnostics,
    /// The names that the file's expressions read. They are checked when all names of the file are known.
    pub mentions: Vec<Mention>,
    /// Texts that are a path such as `inputs.job`. They are plain text, but an author who has such a name probably means
    /// its value.
    pub plain_paths: Vec<(Span, String)>,
    /// Whether texts are for a shell, in which `${NAME}` is an environment variable and not a mistake.
    pub in_shell: bool,
    /// The compiled templates of all files of the workflow.
    pub templates: Rc<TemplateCache>,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a SourceFile, syntax: Syntax, diagnostics: &'a mut Diagnostics) -> Self {
        Self {
            content: file.content(),
            syntax,
            diagnostics,
            mentions: Vec::new(),
            plain_paths: Vec::new(),
            in_shell: false,
            templates: Rc::default(),
        }
    }

    /// Returns a reader of another file of the same workflow.
    pub fn of_file<'b>(&'b mut self, file: &'b SourceFile) -> Reader<'b> {
        Reader {
            templates: Rc::clone(&self.templates),
            ..Reader::new(file, self.syntax, self.diagnostics)
        }
    }

    pub fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = self.worded(hint.into());
        self.diagnostics
            .push(Diagnostic::error(code, span, message).hint(hint));
    }

    /// Translates a hint to the words of the file's format.
    fn worded(&self, hint: String) -> String {
        match self.syntax {
            Syntax::Azure => as_json(&super::synonyms::in_azure(hint)),
            Syntax::Loom | Syntax::Jinja | Syntax::Canvas => hint,
        }
    }

    /// Reports an error. `hint` is called only if the error is shown.
    pub fn error_with(
        &mut self,
        code: &'static str,
        span: Span,
        message: String,
        hint: impl FnOnce() -> String,
    ) {
        let hint = match self.diagnostics.is_full() {
            true => String::new(),
            false => hint(),
        };
        self.error(code, span, message, hint);
    }

    pub fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = self.worded(hint.into());
        self.diagnostics
            .push(Diagnostic::warning(code, span, message).hint(hint));
    }

    pub fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str, hint: impl Into<String>) {
        let (code, message) = match node.kind {
            Kind::Null => ("missing-value", format!("{what} has no value")),
            // The number has the right type but is out of range, so the message shows it.
            Kind::Int(number) if wanted.contains("number") => (
                "wrong-type",
                format!("{what} must be {wanted}, this is {number}"),
            ),
            _ => (
                "wrong-type",
                format!("{what} must be {wanted}, this is {}", node.kind_name()),
            ),
        };
        self.error(code, node.span, message, hint);
    }

    /// Reads a whole number.
    /// In a definition it may be text, because deployments write numbers as text.
    pub fn whole(&self, node: &Node) -> Option<i64> {
        match &node.kind {
            Kind::Int(number) => Some(*number),
            Kind::String(text) if self.syntax == Syntax::Azure => text.text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Reads a text that is not a template.
    pub fn text<'n>(&mut self, entry: &'n Entry, hint: &str) -> Option<&'n str> {
        let text = entry.value.as_str();
        if text.is_none() {
            self.wrong_type(&entry.value, &format!("`{}`", entry.key), "text", hint);
        }
        text
    }

    /// Returns the value that belongs to a word in `known`. `wrong` makes the message for an unknown word.
    pub fn choice<T: Copy>(
        &mut self,
        entry: &Entry,
        known: &[(&str, T)],
        wrong: impl FnOnce(&str) -> String,
    ) -> Option<T> {
        self.choice_as("unknown-value", entry, known, wrong)
    }

    /// Like `choice`, but with another code of the error.
    pub fn choice_as<T: Copy>(
        &mut self,
        code: &'static str,
        entry: &Entry,
        known: &[(&str, T)],
        wrong: impl FnOnce(&str) -> String,
    ) -> Option<T> {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let hint = format!("known are: {}", words.join(", "));
        let text = self.text(entry, &hint)?;
        let found = known
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text));
        if found.is_none() {
            let hint = did_you_mean(text, words).unwrap_or(hint);
            self.error(code, entry.value.span, wrong(text), hint);
        }
        found.map(|(_, meant)| *meant)
    }

    pub fn list<'n>(&mut self, entry: &'n Entry, hint: &str) -> Option<&'n [Node]> {
        if let Kind::Array(items) = &entry.value.kind {
            return Some(items);
        }
        self.wrong_type(&entry.value, &format!("`{}`", entry.key), "a list", hint);
        None
    }

    /// Reads the items of a list. The list may be missing or null.
    pub fn items<'n>(&mut self, entry: Option<&'n Entry>, hint: &str) -> Option<&'n [Node]> {
        let entry = entry.filter(|entry| !matches!(entry.value.kind, Kind::Null));
        self.list(entry?, hint)
    }

    /// Reports a maximum number of iterations that is below 1 or above the operator's cap.
    pub fn within_cap(&mut self, count: i64, cap: u64, span: Span) {
        let wanted = u64::try_from(count).unwrap_or(0);
        if wanted == 0 {
            let what = format!("a loop cannot have {count} iterations at most");
            let hint = "how many iterations at most: a whole number from 1, or an expression";
            self.error("out-of-range", span, what, hint);
        } else if wanted > cap {
            let what = format!("{count} iterations are more than the cap of {cap}");
            let hint = "lower it, or raise the cap with --max-count (WINDLASS_MAX_COUNT)";
            self.error("over-cap", span, what, hint);
        }
    }

    /// Reports a timeout of a loop that is zero or above the operator's cap.
    pub fn within_time(&mut self, timeout: Duration, cap: Duration, span: Span) {
        if timeout.is_zero() {
            let what = "a loop with no time at all never runs";
            self.error("out-of-range", span, what, "use at least PT1S");
        } else if timeout > cap {
            let (timeout, cap) = (human_duration(timeout), human_duration(cap));
            let what = format!("a timeout of {timeout} is more than the cap of {cap}");
            let hint = "lower it, or raise the cap with --max-timeout (WINDLASS_MAX_TIMEOUT)";
            self.error("over-cap", span, what, hint);
        }
    }

    /// Returns true if a value is a template, and false if it is a constant.
    pub fn is_computed(&mut self, node: &Node) -> bool {
        node.as_str().is_some() && self.template(node).as_constant().is_none()
    }

    /// Reads a boolean. Any other value is reported.
    pub fn flag(&mut self, entry: &Entry, hint: &str) -> Option<bool> {
        if let Kind::Bool(flag) = entry.value.kind {
            return Some(flag);
        }
        let what = format!("`{}`", entry.key);
        self.wrong_type(&entry.value, &what, "true or false", hint);
        None
    }

    /// Returns the entries of a map. Any other value is reported, and has no entries.
    pub fn map<'n>(&mut self, entry: &'n Entry, hint: &str) -> &'n [Entry] {
        let entries = entry.value.entries();
        if entries.is_none() {
            self.wrong_type(&entry.value, &format!("`{}`", entry.key), "a map", hint);
        }
        entries.unwrap_or_default()
    }

    /// Reads a value whose strings are templates.
    /// An invalid template is reported, and becomes null.
    pub fn template(&mut self, node: &Node) -> Template {
        match &node.kind {
            Kind::String(_) if self.is_full(node) => Template::constant(Value::Null),
            Kind::String(text) => match self.parse(&text.text) {
                Ok(template) => {
                    self.warn_missing_marker(node, &text.text);
                    self.foreign_placeholders(node, &text.text);
                    self.warn_of_plain_braces(node, &text.text);
                    self.warn_of_refused(node, template.refused_calls());
                    self.mention(node, template.references());
                    template
                }
                Err(error) => {
                    self.invalid_expression(node, error);
                    Template::constant(Value::Null)
                }
            },
            Kind::Array(items) => {
                Template::array(items.iter().map(|item| self.template(item)).collect())
            }
            Kind::Object(entries) => {
                let members = entries
                    .iter()
                    .map(|entry| (self.key(entry), self.template(&entry.value)));
                Template::object(members.collect())
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {
                Template::constant(node.to_value())
            }
        }
    }

    /// Parses a text in the language of the file.
    pub fn parse(&self, text: &str) -> Result<Template, ParseError> {
        Template::parse_cached(text, self.syntax, &self.templates)
    }

    /// Warns of calls with wrong arguments.
    /// In a definition this is not an error, because such calls fail only when they are evaluated.
    fn warn_of_refused(&mut self, node: &Node, calls: Vec<ParseError>) {
        for call in calls {
            let span = node.place(self.content, call.offset, call.length);
            let hint = call.hint.unwrap_or_else(|| {
                String::from("docs/reference/expressions.md shows how functions are called")
            });
            let message = format!("{}: this fails when it is evaluated", call.message);
            self.warning("bad-call", span, message, hint);
        }
    }

    /// Warns of a text that calls a function but does not have the `@` or the braces of an expression.
    fn warn_missing_marker(&mut self, node: &Node, text: &str) {
        if self.syntax != Syntax::Loom {
            return;
        }
        let Some(forgotten) = looks_like_expression(text) else {
            if is_path(text) {
                self.plain_paths.push((node.span, text.to_owned()));
            }
            return;
        };
        let (offset, what, hint) = match forgotten {
            MissingMarker::At => (
                0,
                "this is plain text: an expression begins with `@`",
                format!("write \"@{}\"", text.trim()),
            ),
            MissingMarker::Braces(offset) => (
                offset,
                "this is plain text: inside text, write an expression as `@{…}`",
                String::from("write @{…} around it, for example job @{inputs('job')}"),
            ),
        };
        let span = node.place(self.content, offset, 1);
        self.warning("plain-text", span, what, hint);
    }

    /// Warns of `${NAME}`, the form of shells, and of `${inputs.n}`, the form of other tools.
    /// Both are plain text in a template.
    fn foreign_placeholders(&mut self, node: &Node, text: &str) {
        if self.syntax != Syntax::Loom {
            return;
        }
        for (offset, _) in text.match_indices("${") {
            let inside = text.get(offset + 2..).and_then(|rest| rest.split_once('}'));
            let Some((inside, _)) = inside else { return };
            if inside.starts_with("secret:") || (self.in_shell && !inside.contains('.')) {
                continue;
            }
            let Some(expression) = expression_for(inside) else {
                continue;
            };
            let whole = text.len() == inside.len() + 3;
            let hint = match expression {
                PlaceholderKind::Expression(expression) if self.in_shell => format!(
                    "pass it through env: {{ NAME: \"@{expression}\" }} and write \"$NAME\""
                ),
                PlaceholderKind::Secret(name) => format!("write ${{secret:{name}}}"),
                PlaceholderKind::Expression(expression) if whole => {
                    format!("write \"@{expression}\"")
                }
                PlaceholderKind::Expression(expression) => format!("write @{{{expression}}}"),
                PlaceholderKind::Any => format!(
                    "for an input write @{{inputs('{inside}')}}, for a variable \
                     @{{variables('{inside}')}}, for a secret ${{secret:{inside}}}"
                ),
            };
            let what =
                format!("`${{{inside}}}` is plain text: only `${{secret:NAME}}` is replaced");
            let span = node.place(self.content, offset, inside.len() + 3);
            self.warning("plain-text", span, what, hint);
        }
    }

    /// Warns of `{{ inputs.n }}` in a text with `@`: the braces of Jinja are plain text there.
    fn warn_of_plain_braces(&mut self, node: &Node, text: &str) {
        if self.syntax != Syntax::Loom || !is_wdl(text) {
            return;
        }
        for (offset, _) in text.match_indices("{{") {
            let inside = text
                .get(offset + 2..)
                .and_then(|rest| rest.split_once("}}"));
            let Some((inside, _)) = inside else { return };
            // Other programs have braces, too, such as `{{.Names}}` of Docker.
            let root = inside
                .trim()
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next();
            if !root.is_some_and(|root| BRACE_ROOTS.contains(&root)) {
                continue;
            }
            let expression = match expression_for(inside.trim()) {
                Some(PlaceholderKind::Expression(expression)) => Some(expression),
                _ => None,
            };
            let what =
                format!("`{{{{{inside}}}}}` is plain text: this text has an expression with `@`");
            let hint = match (expression, text.contains("@{")) {
                (Some(expression), true) => {
                    format!("write @{{{expression}}}, or the other expression with braces")
                }
                (Some(expression), false) => format!("write {expression}, outside of the quotes"),
                (None, _) => {
                    String::from("write all expressions of a text with `@`, or all with braces")
                }
            };
            let span = node.place(self.content, offset, inside.len() + 4);
            self.warning("plain-text", span, what, hint);
        }
    }

    fn key(&mut self, entry: &Entry) -> Template {
        match self.parse(&entry.key) {
            Ok(template) => {
                for reference in template.references() {
                    let span = entry.key_span;
                    self.mentions.push(Mention {
                        reference,
                        span,
                        is_inside: false,
                        is_optional: is_optional(&entry.key),
                        is_jinja: is_jinja(&entry.key),
                    });
                }
                template
            }
            Err(error) => {
                let hint = error.hint.unwrap_or_else(|| String::from("this is a key"));
                self.error("bad-expression", entry.key_span, error.message, hint);
                Template::constant(Value::Null)
            }
        }
    }

    /// Reads a condition: text, a boolean, or WDL's object form.
    pub fn condition(&mut self, entry: &Entry) -> Option<Condition> {
        let node = &entry.value;
        if self.is_full(node) {
            return None;
        }
        if let Some(text) = node.as_str().filter(|_| self.syntax == Syntax::Loom)
            && let Some((what, hint)) = text_condition(text)
        {
            let span = node.place(self.content, 0, text.len());
            let what = format!("`{}` {what}", entry.key);
            self.error("text-condition", span, what, hint);
            // Without a condition, the loop would be missing, and names of the loop would be reported, too.
            return Some(Condition::never());
        }
        let parsed = match &node.kind {
            Kind::String(text) => Condition::parse_cached(&text.text, self.syntax, &self.templates)
                .inspect(|condition| {
                    self.warn_of_refused(node, condition.refused_calls());
                    self.mention(node, condition.references());
                }),
            Kind::Object(_) | Kind::Bool(_) => Condition::from_template(self.template(node)),
            Kind::Null | Kind::Int(_) | Kind::Float(_) | Kind::Array(_) => {
                let what = format!("`{}`", entry.key);
                let hint = "for example \"@equals(variables('status'), 'done')\"";
                self.wrong_type(node, &what, "a condition", hint);
                return None;
            }
        };
        match parsed {
            Ok(condition) => Some(condition),
            Err(error) => {
                self.invalid_expression(node, error);
                None
            }
        }
    }

    /// Returns the span of a part of a text. `offset` and `length` are in bytes.
    pub fn place(&self, node: &Node, offset: usize, length: usize) -> Span {
        node.place(self.content, offset, length)
    }

    /// Makes a script from its unchanged text, with the span of each line.
    pub fn script(&self, executor: &'static str, code: &Node, text: &str) -> Script {
        let mut lines = Vec::new();
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let shown = line.trim_end();
            let blank = shown.len() - shown.trim_start().len();
            lines.push(self.place(code, offset + blank, shown.len() - blank));
            offset += line.len();
        }
        Script {
            executor,
            code: text.to_owned(),
            lines,
        }
    }

    /// Returns true if the limit of memory for templates is reached, and reports this.
    fn is_full(&mut self, node: &Node) -> bool {
        let full = self.templates.is_full();
        if full {
            let message = "the file has more templates than fit into 56 MiB of memory";
            let hint = "thousands of templates are data: a step can read them, or be given them as an input";
            self.error("too-large", node.span, message, hint);
        }
        full
    }

    fn invalid_expression(&mut self, node: &Node, error: ParseError) {
        let span = node.place(self.content, error.offset, error.length);
        let diagnostic = Diagnostic::error("bad-expression", span, error.message);
        let text = node.as_str().unwrap_or_default();
        let hint = error
            .hint
            .or_else(|| foreign_operator(text, error.offset).map(str::to_owned));
        self.diagnostics.push(match hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic.hint("expressions are described in docs/reference/expressions.md"),
        });
    }

    /// Reports a key that `what` does not have.
    /// `nearest_key` is the key that was probably meant. The report is an error in Loom, and a warning in a
    /// definition. In the other formats it is an error only if there is a `nearest_key`.
    pub fn unknown_key(
        &mut self,
        what: &str,
        entry: &Entry,
        nearest_key: Option<&str>,
        known: &[&str],
    ) {
        let (loom, azure) = (self.syntax == Syntax::Loom, self.syntax == Syntax::Azure);
        let what = format!("unknown key `{}` in {what}", entry.key);
        let is_error = loom || (nearest_key.is_some() && !azure);
        let meant = match nearest_key {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("known are: {}", known.join(", ")),
        };
        match is_error {
            true => self.error("unknown-key", entry.key_span, what, meant),
            false => {
                let hint = format!("it is ignored; {meant}");
                self.warning("unknown-key", entry.key_span, what, hint);
            }
        }
    }

    /// Records the names that an expression mentions, each with its position in the text.
    fn mention(&mut self, node: &Node, references: Vec<Reference>) {
        let text = node.as_str().unwrap_or_default();
        for reference in references {
            let span = name_of(&reference)
                .and_then(|name| Some((find_name(text, name)?, name.len())))
                .map_or(node.span, |(offset, length)| {
                    node.place(self.content, offset, length)
                });
            self.mentions.push(Mention {
                reference,
                span,
                is_inside: false,
                is_optional: is_optional(text),
                is_jinja: is_jinja(text),
            });
        }
    }

    /// Reads the name of a time zone.
    pub fn time_zone(&mut self, entry: &Entry) -> Option<Name> {
        let text = self.text(entry, "for example Europe/Berlin")?;
        if time_zone(text).is_none() {
            let what = format!("`{text}` is not a valid time zone");
            let hint = "an IANA or Windows name, for example Europe/Berlin or UTC";
            self.error("unknown-value", entry.value.span, what, hint);
        }
        Some(Name::from(text))
    }
}

/// Returns true if a text has several names with dots between them, such as `inputs.job`.
fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.contains('.') && text.split('.').all(is_name)
}

/// Returns how Jinja writes an operator of other languages, which an expression has at this byte offset.
fn foreign_operator(text: &str, offset: usize) -> Option<&'static str> {
    // A mistake may be found at the second character of an operator.
    let at = |offset: usize| text.get(offset..).unwrap_or_default();
    let (here, before) = (at(offset), at(offset.saturating_sub(1)));
    let begins = |operator: &str| here.starts_with(operator) || before.starts_with(operator);
    match () {
        () if begins("&&") => Some("write `and`"),
        () if begins("||") => Some("write `or`"),
        () if here.starts_with('=') => Some("`==` compares two values"),
        () if begins("??") => Some("write `a or b`, or the filter `default`"),
        () if begins("?.") => Some("write `a.b`, and the filter `default` for a missing member"),
        () if begins("<>") => Some("write `!=`"),
        () if here.starts_with('!') => Some("write `not`"),
        () if here.starts_with('?') => Some("write `a if condition else b`"),
        () => None,
    }
}

/// Returns true if a text that has an expression is Jinja.
fn is_jinja(text: &str) -> bool {
    text.contains("{{") || !(text.is_empty() || text.starts_with('@') || text.contains("@{"))
}

/// Returns true if a Jinja template has defaults, or checks whether a value is defined.
fn is_optional(text: &str) -> bool {
    let asks = [
        "| default",
        "|default",
        "| d(",
        "|d(",
        "is defined",
        "is not defined",
        "is undefined",
    ];
    asks.iter().any(|word| text.contains(word))
}

/// Adds a script unless it is already known.
/// The same lines may be read again, for another step.
pub(super) fn keep(scripts: &mut Vec<Script>, script: Script) {
    if !scripts.iter().any(|known| known.lines == script.lines) {
        scripts.push(script);
    }
}

/// Lists the first 40 known names, and the number of further names.
pub(super) fn list_known(known: &[&str]) -> String {
    const SHOWN: usize = 40;
    let more = known.len().saturating_sub(SHOWN);
    let shown = known.get(..SHOWN).unwrap_or(known).join(", ");
    match more {
        0 => shown,
        _ => format!("{shown} and {more} more"),
    }
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
enum PlaceholderKind {
    Secret(String),
    Expression(String),
    /// A bare name.
    Any,
}

/// Returns the probable meaning of the text in `${…}`, or `None` if it is not a name.
fn expression_for(inside: &str) -> Option<PlaceholderKind> {
    let named = |name: &str| {
        let known = |char: char| char.is_ascii_alphanumeric() || "_-.[]".contains(char);
        name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && name.chars().all(known)
    };
    if !named(inside) {
        return None;
    }
    let Some((root, rest)) = inside.split_once('.') else {
        return Some(PlaceholderKind::Any);
    };
    let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
    let path = if path.is_empty() {
        String::new()
    } else {
        format!(".{path}")
    };
    Some(match root {
        "secret" | "secrets" | "env" => PlaceholderKind::Secret(name.to_owned()),
        "input" | "inputs" => PlaceholderKind::Expression(format!("inputs('{name}'){path}")),
        "variable" | "variables" | "vars" | "state" => {
            PlaceholderKind::Expression(format!("variables('{name}'){path}"))
        }
        "action" | "actions" | "steps" => {
            let (member, rest) = path
                .trim_start_matches('.')
                .split_once('.')
                .unwrap_or_default();
            PlaceholderKind::Expression(match member {
                "outputs" => format!("outputs('{name}').{rest}"),
                _ if matches!(&*path, ".status" | ".error" | ".code") => {
                    format!("actions('{name}'){path}")
                }
                _ if path == ".outputs" => format!("outputs('{name}')"),
                _ => format!("body('{name}'){path}"),
            })
        }
        "item" | "workflow" => PlaceholderKind::Expression(format!("{root}().{rest}")),
        "loop" if rest == "index" => {
            PlaceholderKind::Expression(String::from("variables('loopIndex')"))
        }
        "loops" if path == ".index" => {
            PlaceholderKind::Expression(format!("iterationIndexes('{name}')"))
        }
        "loop" | "loops" => return None,
        action => PlaceholderKind::Expression(format!("body('{action}').{rest}")),
    })
}

/// Why a text that the author meant as an expression is not one.
enum MissingMarker {
    /// The text has no `@`.
    At,
    /// The `@` at this byte offset is inside of other text, where an expression needs braces.
    Braces(usize),
}

/// Finds text that calls a function but is not an expression.
fn looks_like_expression(text: &str) -> Option<MissingMarker> {
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
        return Some(MissingMarker::At);
    }
    let at = |reader: &&str| text.find(&format!("@{reader}"));
    READERS.iter().find_map(at).map(MissingMarker::Braces)
}

/// Returns the name in a reference, if it has a name.
pub(super) fn name_of(reference: &Reference) -> Option<&str> {
    match reference {
        Reference::Variable(name)
        | Reference::State(name)
        | Reference::Action(name)
        | Reference::Scope(name)
        | Reference::Input(name)
        | Reference::Loop(name)
        | Reference::LoopMember(name)
        | Reference::Items(name)
        | Reference::Parameter(name)
        | Reference::Secret(name)
        | Reference::Environment(name)
        | Reference::Root(name) => Some(name),
        Reference::Item | Reference::Anything => None,
    }
}

/// Returns the byte offset of a name in an expression.
/// The name is searched in quotes first, then after a dot, then anywhere.
fn find_name(text: &str, name: &str) -> Option<usize> {
    let (text, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let quoted = |quote: char| Some(text.find(&format!("{quote}{name}{quote}"))? + 1);
    quoted('\'')
        .or_else(|| quoted('"'))
        .or_else(|| Some(text.find(&format!(".{name}"))? + 1))
        .or_else(|| text.find(&name))
}
