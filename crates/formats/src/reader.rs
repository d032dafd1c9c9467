//! What every format needs to read a tree.
//! It reads maps and reports unknown keys. It reads templates and conditions, and their mistakes have a position in
//! the text. Reading never stops at the first mistake.

use super::json_hint::as_json;
use super::plain_text::{PlainText, is_path};
use super::secrets::secret_in_condition;
use std::rc::Rc;
use std::time::Duration;
use windlass_expression::{
    Condition, ParseError, Reference, Syntax, Template, TemplateCache, Value,
    interpolated_condition, text_condition, time_zone,
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
                    self.warn_of_plain_text(node, &text.text);
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

    /// Warns of plain text that the author probably means as an expression.
    fn warn_of_plain_text(&mut self, node: &Node, text: &str) {
        if self.syntax == Syntax::Loom && is_path(text) {
            self.plain_paths.push((node.span, text.to_owned()));
        }
        for found in PlainText::find(text, self.syntax, self.in_shell) {
            let span = node.place(self.content, found.offset, found.length);
            self.warning("plain-text", span, found.message, found.hint);
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
        if let Some(text) = node.as_str()
            && let Some(condition) = self.refuse_text_condition(entry, text)
        {
            return Some(condition);
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

    /// Reports a condition whose value is a text, or which has a `${secret:NAME}`.
    /// Returns a condition in its place, because without one the loop would be missing, and names of the loop would be
    /// reported, too.
    fn refuse_text_condition(&mut self, entry: &Entry, text: &str) -> Option<Condition> {
        if let Some((place, message, hint)) = secret_in_condition(text) {
            let span = self.place(&entry.value, place.start, place.len());
            self.error("secret-outside", span, message, hint);
            return Some(Condition::never());
        }
        let span = entry.value.place(self.content, 0, text.len());
        match self.syntax {
            Syntax::Loom => {
                let (what, hint) = text_condition(text)?;
                let what = format!("`{}` {what}", entry.key);
                self.error("text-condition", span, what, hint);
                Some(Condition::never())
            }
            // A definition fails only when the condition is evaluated.
            Syntax::Azure => {
                let meant = interpolated_condition(text)?;
                let what = format!(
                    "`{}` is a text, and a condition returns a boolean: this fails when it is evaluated",
                    entry.key
                );
                self.warning("text-condition", span, what, format!("write {meant}"));
                None
            }
            Syntax::Jinja | Syntax::Canvas => None,
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
        self.diagnostics.push(match error.hint {
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
            None if entry.key == "true" && known.contains(&"on") => String::from(
                "did you mean `on`? A library for YAML 1.1, such as PyYAML, writes it as `true`",
            ),
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
                .and_then(|name| Some((find_name(text, &reference, name)?, name.len())))
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
        | Reference::ActionMember(name)
        | Reference::Items(name)
        | Reference::Parameter(name)
        | Reference::Secret(name)
        | Reference::Environment(name)
        | Reference::Root(name) => Some(name),
        Reference::Item | Reference::Anything => None,
    }
}

/// Returns the functions and the maps that a reference reads by a name, in lower case. Empty if it has only the name.
fn readers(reference: &Reference) -> &'static [&'static str] {
    match reference {
        Reference::Variable(_) => &["variables"],
        Reference::State(_) => &["state"],
        Reference::Action(_) => &[
            "actionbody",
            "actionoutputs",
            "actions",
            "body",
            "formdatamultivalues",
            "formdatavalue",
            "multipartbody",
            "outputs",
        ],
        Reference::Scope(_) => &["result"],
        Reference::Input(_) => &["inputs"],
        Reference::Items(_) => &["items"],
        Reference::Loop(_) => &["iterationindexes", "loops"],
        Reference::Parameter(_) => &["parameters"],
        Reference::Secret(_) => &["secret", "secrets"],
        Reference::Environment(_) => &["env"],
        _ => &[],
    }
}

/// Returns the byte offset of the name of a reference in an expression.
/// The name is searched after its function or map (`variables('x')`, `variables.x`), then in quotes, then after a dot,
/// then anywhere.
fn find_name(text: &str, reference: &Reference, name: &str) -> Option<usize> {
    let (text, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_read = |at: &usize| {
        let (before, rest) = text.split_at(*at);
        let reader = before.trim_end_matches(['\'', '"', '(', '[', '.', '?', ' ']);
        let mut readers = readers(reference).iter();
        before.ends_with(['\'', '"', '.'])
            && rest
                .get(name.len()..)
                .is_some_and(|rest| !rest.starts_with(is_word))
            && readers.any(|word| {
                reader
                    .strip_suffix(word)
                    .is_some_and(|rest| !rest.ends_with(is_word))
            })
    };
    if let Some((at, _)) = text.match_indices(&name).find(|(at, _)| is_read(at)) {
        return Some(at);
    }
    let quoted = |quote: char| Some(text.find(&format!("{quote}{name}{quote}"))? + 1);
    quoted('\'')
        .or_else(|| quoted('"'))
        .or_else(|| Some(text.find(&format!(".{name}"))? + 1))
        .or_else(|| text.find(&name))
}
