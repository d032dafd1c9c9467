//! `appendFile`.
//! A variable of the run has, for each file, its length after the run's last append. So the lengths are part of the
//! checkpoint.

use super::action_fields::{ActionFields, Body};
use super::block::is_item;
use super::{ActionReader, Format};
use crate::append::{self, LOOM_FILES as FILES};
use crate::builder::{call, only, step, text, when};
use crate::fields::Fields;
use windlass_expression::{ParseError, Syntax, Template, Value};
use windlass_model::hir::{Block, Call, Step, StepKind, Workflow};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Node, Span};

/// The file formats in which rows (one for each appended item) can be written.
const FORMATS: [(&str, &str); 3] = [("ndjson", "ndjson"), ("json", "json"), ("csv", "csv")];

const HINT: &str = "for example inputs: { path: rows.jsonl, rows: \"@body('fetch').items\" }";

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn append_file(&mut self, act: &mut ActionFields<'_>) -> Body {
        let mut inner = act.fields.non_null(self, "inputs").and_then(|entry| {
            let what = format!("`inputs` of `{}`", act.name);
            self.fields(&entry.value, &what, HINT)
        });
        let fields = match &mut inner {
            Some(fields) => fields,
            None => &mut act.fields,
        };
        let members = self.append_inputs(fields, act.span);
        let (append, replace) = (fields.get("append"), fields.get("replace"));
        let replaces = append::replaces(self, append, replace);
        if let Some(fields) = inner {
            fields.finish(self);
        }
        let Some(members) = members else {
            return StepKind::Nothing.into();
        };
        self.appends = true;
        self.replaces |= replaces;
        match self.lowered(act, members, replaces) {
            Ok(body) => body,
            Err(error) => {
                self.error("bad-expression", act.span, error.message, HINT);
                StepKind::Nothing.into()
            }
        }
    }

    /// Reads `path` and the rows or text to append. Returns the inputs of the executor.
    fn append_inputs(
        &mut self,
        fields: &mut Fields<'_>,
        span: Span,
    ) -> Option<Vec<(Template, Template)>> {
        let path = fields.required(self, "path", span, HINT);
        let data = ["row", "rows", "text"].map(|key| fields.get(key));
        let mut given = data.into_iter().flatten();
        let (first, second) = (given.next(), given.next());
        if let Some(second) = second {
            let what = format!("`{}` and another kind of rows", second.key);
            let hint = "set one of row, rows and text";
            self.error("conflict", second.key_span, what, hint);
        }
        let about_rows = ["key", "format", "columns"].map(|key| fields.non_null(self, key));
        let Some(first) = first else {
            let what = "there is nothing to append";
            self.error("missing-key", span, what, HINT);
            return None;
        };
        let content = self.template(&first.value);
        if first.key == "rows"
            && content
                .as_constant()
                .is_some_and(|rows| rows.as_str().is_some())
        {
            self.wrong_type(&first.value, "`rows`", "a list", HINT);
        }
        let mut members = vec![(text("path"), self.template(&path?.value))];
        let mut about_rows = about_rows.into_iter().flatten().peekable();
        if first.key == "text"
            && let Some(entry) = about_rows.peek()
        {
            let what = format!(
                "`{}` is about rows, and `text` is appended as it is",
                entry.key
            );
            self.error("conflict", entry.key_span, what, "use `row` or `rows`");
            return None;
        }
        for entry in about_rows {
            let member = match &*entry.key {
                "key" => {
                    let keys = self.row_keys(entry, first, &content)?;
                    members.push((text("key"), text(entry.value.as_str().unwrap_or_default())));
                    (text("keys"), keys)
                }
                "format" => {
                    let wrong = |text: &str| format!("`format: {text}` is not known");
                    let format = self.choice(entry, &FORMATS, wrong)?;
                    (text("format"), text(format))
                }
                _ => (text("columns"), self.template(&entry.value)),
            };
            members.push(member);
        }
        members.push((text(&first.key), content));
        Some(members)
    }

    /// Reads `key`, which identifies a row.
    /// It is a member of each row, such as `id` or `meta.id`, or an expression that reads the row as `item`.
    fn row_keys(&mut self, entry: &Entry, rows: &Entry, content: &Template) -> Option<Template> {
        let hint = "for example key: id, or key: \"{{ item.kind ~ item.id }}\"";
        let given = self.text(entry, hint)?;
        let key = match given.contains(['@', '{']) {
            true => self.template_about_items(&entry.value),
            false if given == "item" => Template::parse("@item()", Syntax::Loom).ok()?,
            false => {
                let members = given.split('.').map(|name| match name.trim() {
                    "" => Err(()),
                    name => Ok(format!("?['{}']", name.replace('\'', "''"))),
                });
                match members.collect::<Result<String, ()>>() {
                    Ok(path) => Template::parse(&format!("@item(){path}"), Syntax::Loom).ok()?,
                    Err(()) => {
                        let what = format!("`key: {given}` does not name a member of a row");
                        self.error("bad-value", entry.value.span, what, hint);
                        return None;
                    }
                }
            }
        };
        let rows = match &*rows.key {
            "rows" => content.clone(),
            _ => Template::array(vec![content.clone()]),
        };
        Some(Template::select(rows, key))
    }

    /// Reads a template in which `item` is a row.
    fn template_about_items(&mut self, node: &Node) -> Template {
        let first = self.mentions.len();
        let template = self.template(node);
        for mention in self.mentions.iter_mut().skip(first) {
            mention.is_inside |= is_item(&mention.reference);
        }
        template
    }

    fn lowered(
        &mut self,
        act: &ActionFields<'_>,
        mut members: Vec<(Template, Template)>,
        replaces: bool,
    ) -> Result<Body, ParseError> {
        let wdl = |text: &str| Template::parse(text, Syntax::Azure);
        let has_keys = members.iter().any(|(key, _)| *key == text("keys"));
        let mut shown = vec!["path", "length", "rows"];
        shown.extend(has_keys.then_some("duplicates"));
        let output = shown.into_iter().map(|key| {
            let value = wdl(&format!("@variables('result').{key}"))?;
            Ok((text(key), value))
        });
        let output = Template::object(output.collect::<Result<_, ParseError>>()?);
        let path = members.first().map(|(_, path)| path.clone());
        if replaces {
            members.push((text("replace"), Template::constant(Value::Bool(true))));
        }
        members.push((text("files"), append::files(self, FILES)?));
        let call = StepKind::Call(Call {
            then: vec![append::remember(self, FILES, act.span)?],
            ..call(append::EXECUTOR, Template::object(members))
        });
        let (false, Some(path)) = (replaces, path) else {
            return Ok(Body {
                output: Some(output),
                ..call.into()
            });
        };
        let measure = StepKind::Call(append::measure(self, FILES, &path, act.span)?);
        let measure = self.hidden(act, "measure", measure);
        let unknown = self.hidden(
            act,
            "first",
            when(append::unknown(self, FILES, &path)?, only(measure)),
        );
        let mut last = self.hidden(act, "append", call);
        last.output = Some(output);
        let record = format!("@outputs('{}.append')", act.name.replace('\'', "''"));
        Ok(Body {
            output: Some(wdl(&record)?),
            ..StepKind::Block(Block::Sequence(vec![unknown, last])).into()
        })
    }

    /// Makes a step that is a part of an action. The author does not see this step as an action.
    fn hidden(&mut self, act: &ActionFields<'_>, name: &str, kind: StepKind) -> Step {
        let name = Name::from(format!("{}.{name}", act.name));
        self.declare(&name, act.span);
        Step {
            anonymous: true,
            ..step(name, append::EXECUTOR, kind, act.span)
        }
    }

    /// Adds the variable with the files to the workflow if an action appends.
    /// If an action replaces files, also adds the call that replaces the old files by the new ones when the run
    /// succeeds.
    pub(super) fn remember_files(&mut self, workflow: &mut Workflow) {
        if self.replaces {
            workflow.at_success = append::put(self, FILES).ok();
        }
        if self.appends {
            let none = Template::constant(Value::from_pairs([] as [(&str, Value); 0]));
            workflow.variables.push((Name::from(FILES), none));
        }
    }
}
