//! `appendFile`: how long each file is after the run's last append is a variable of the run, so
//! that it is part of the checkpoint (spec: the executor, `action`).

use super::Loom;
use super::action::{Act, Body};
use crate::dialect::append;
use crate::dialect::reader::Fields;
use crate::expression::{Condition, ParseError, Syntax, Template, Value};
use crate::hir::{Assignment, Block, Call, Step, StepKind, Workflow};
use crate::model::Name;
use crate::source::Kind;

/// The variable: a map from canonical paths to lengths, and from other paths to canonical ones.
const FILES: &str = "$files";
const HINT: &str = "for example inputs: { path: rows.jsonl, rows: \"@body('fetch').items\" }";

impl Loom<'_> {
    pub(super) fn append_file(&mut self, act: &mut Act<'_>) -> Body {
        let mut inner = act
            .fields
            .some(&mut self.reader, "inputs")
            .and_then(|entry| {
                let what = format!("`inputs` of `{}`", act.name);
                self.reader.fields(&entry.value, &what, HINT)
            });
        let fields = match &mut inner {
            Some(fields) => fields,
            None => &mut act.fields,
        };
        let members = self.append_inputs(fields, act.span);
        let keeps = fields
            .get("append")
            .is_some_and(|entry| matches!(entry.value.kind, Kind::Bool(true)));
        if let Some(fields) = inner {
            fields.finish(&mut self.reader);
        }
        let Some(members) = members else {
            return StepKind::Nothing.into();
        };
        self.appends = true;
        match self.lowered(act, members, keeps) {
            Ok(body) => body,
            Err(error) => {
                self.reader
                    .error("bad-expression", act.span, error.message, HINT);
                StepKind::Nothing.into()
            }
        }
    }

    /// `path` and what is appended.
    fn append_inputs(
        &mut self,
        fields: &mut Fields<'_>,
        span: crate::source::Span,
    ) -> Option<Vec<(Template, Template)>> {
        let path = fields.need(&mut self.reader, "path", span, HINT);
        let data = ["row", "rows", "text"].map(|key| fields.get(key));
        let mut given = data.into_iter().flatten();
        let (first, second) = (given.next(), given.next());
        if let Some(second) = second {
            let what = format!("`{}` and another kind of rows", second.key);
            let hint = "give one of row, rows and text";
            self.reader.error("conflict", second.key_span, what, hint);
        }
        let Some(first) = first else {
            let what = "there is nothing to append";
            self.reader.error("missing-key", span, what, HINT);
            return None;
        };
        let path = self.reader.template(&path?.value);
        let key = Template::constant(Value::text(first.key.as_str()));
        Some(vec![
            (text("path"), path),
            (key, self.reader.template(&first.value)),
        ])
    }

    fn lowered(
        &mut self,
        act: &Act<'_>,
        members: Vec<(Template, Template)>,
        keeps: bool,
    ) -> Result<Body, ParseError> {
        let wdl = |text: &str| Template::parse(text, Syntax::Azure);
        let files = append::files(FILES)?;
        let output = Template::object(vec![
            (text("path"), wdl("@variables('result').path")?),
            (text("length"), wdl("@variables('result').length")?),
            (text("rows"), wdl("@variables('result').rows")?),
        ]);
        let path = members.first().map(|(_, path)| path.clone());
        let call = |mut members: Vec<(Template, Template)>, then: Assignment| {
            members.push((text("files"), files.clone()));
            StepKind::Call(Call {
                executor: Name::from("appendFile"),
                inputs: Template::object(members),
                attempt_timeout: None,
                then: vec![then],
            })
        };
        let whole = Body {
            kind: call(members, append::remember(FILES, act.span)?),
            retry: None,
            timeout: None,
            output: Some(output),
        };
        let (true, Some(path)) = (keeps, path) else {
            return Ok(whole);
        };
        // What is there already is kept: how long it is must be known for good before the first
        // append. Another spelling of a file that is known is measured too, which changes nothing.
        let known = Template::call("contains", vec![files.clone(), path.clone()])?;
        let measure = (text("measure"), Template::constant(Value::Bool(true)));
        let members = vec![(text("path"), path), measure];
        let measure = call(members, append::measured(FILES, act.span)?);
        let measure = self.hidden(act, "measure", measure);
        let unknown = self.hidden(
            act,
            "first",
            StepKind::If {
                arms: vec![(
                    Condition::from_template(known)?.negated(),
                    Block::Sequence(vec![measure]),
                )],
                otherwise: Block::Sequence(Vec::new()),
            },
        );
        let mut last = self.hidden(act, "append", whole.kind);
        last.output = whole.output;
        let record = format!("@outputs('{}.append')", act.name.replace('\'', "''"));
        Ok(Body {
            kind: StepKind::Block(Block::Sequence(vec![unknown, last])),
            retry: None,
            timeout: None,
            output: Some(wdl(&record)?),
        })
    }

    /// A step inside an action that its author does not see as one.
    fn hidden(&mut self, act: &Act<'_>, name: &str, kind: StepKind) -> Step {
        let name = Name::from(format!("{}.{name}", act.name));
        self.declare(&name, act.span);
        Step {
            name,
            label: Name::from("appendFile"),
            title: None,
            anonymous: true,
            kind,
            output: None,
            retry: None,
            timeout: None,
            break_when: None,
            continue_when: None,
            span: act.span,
        }
    }

    /// Makes the variable, when something appends.
    pub(super) fn remember_files(&mut self, workflow: &mut Workflow) {
        if self.appends {
            let none = Template::constant(Value::from_pairs([] as [(&str, Value); 0]));
            workflow.variables.push((Name::from(FILES), none));
        }
    }
}

fn text(text: &str) -> Template {
    Template::constant(Value::text(text))
}
