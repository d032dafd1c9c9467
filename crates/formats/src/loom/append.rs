//! `appendFile`: how long each file is after the run's last append is a variable of the run, so
//! that it is part of the checkpoint.

use super::Loom;
use super::action_fields::{ActionFields, Body};
use crate::append::{self, LOOM_FILES as FILES};
use crate::builder::{call, only, step, text, when};
use crate::reader::Fields;
use windlass_expression::{ParseError, Syntax, Template, Value};
use windlass_model::hir::{Block, Call, Step, StepKind, Workflow};
use windlass_model::model::Name;

const HINT: &str = "for example inputs: { path: rows.jsonl, rows: \"@body('fetch').items\" }";

impl Loom<'_> {
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

    /// `path` and what is appended.
    fn append_inputs(
        &mut self,
        fields: &mut Fields<'_>,
        span: windlass_source::source::Span,
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
        let Some(first) = first else {
            let what = "there is nothing to append";
            self.error("missing-key", span, what, HINT);
            return None;
        };
        let path = self.template(&path?.value);
        let key = Template::constant(Value::text(first.key.as_str()));
        Some(vec![
            (text("path"), path),
            (key, self.template(&first.value)),
        ])
    }

    fn lowered(
        &mut self,
        act: &ActionFields<'_>,
        mut members: Vec<(Template, Template)>,
        replaces: bool,
    ) -> Result<Body, ParseError> {
        let wdl = |text: &str| Template::parse(text, Syntax::Azure);
        let output = Template::object(vec![
            (text("path"), wdl("@variables('result').path")?),
            (text("length"), wdl("@variables('result').length")?),
            (text("rows"), wdl("@variables('result').rows")?),
        ]);
        let path = members.first().map(|(_, path)| path.clone());
        if replaces {
            members.push((text("replace"), Template::constant(Value::Bool(true))));
        }
        members.push((text("files"), append::files(FILES)?));
        let call = StepKind::Call(Call {
            then: vec![append::remember(FILES, act.span)?],
            ..call(append::EXECUTOR, Template::object(members))
        });
        let (false, Some(path)) = (replaces, path) else {
            return Ok(Body {
                output: Some(output),
                ..call.into()
            });
        };
        let measure = StepKind::Call(append::measure(FILES, &path, act.span)?);
        let measure = self.hidden(act, "measure", measure);
        let unknown = self.hidden(
            act,
            "first",
            when(append::unknown(FILES, &path)?, only(measure)),
        );
        let mut last = self.hidden(act, "append", call);
        last.output = Some(output);
        let record = format!("@outputs('{}.append')", act.name.replace('\'', "''"));
        Ok(Body {
            output: Some(wdl(&record)?),
            ..StepKind::Block(Block::Sequence(vec![unknown, last])).into()
        })
    }

    /// A step inside an action that its author does not see as one.
    fn hidden(&mut self, act: &ActionFields<'_>, name: &str, kind: StepKind) -> Step {
        let name = Name::from(format!("{}.{name}", act.name));
        self.declare(&name, act.span);
        Step {
            anonymous: true,
            ..step(name, append::EXECUTOR, kind, act.span)
        }
    }

    /// Makes the variable, when something appends, and puts new files in the place of old ones at
    /// the end.
    pub(super) fn remember_files(&mut self, workflow: &mut Workflow) {
        if self.replaces {
            workflow.at_success = append::put(FILES).ok();
        }
        if self.appends {
            let none = Template::constant(Value::from_pairs([] as [(&str, Value); 0]));
            workflow.variables.push((Name::from(FILES), none));
        }
    }
}
