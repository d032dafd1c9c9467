//! `workflow` starts a run of another workflow.
//! The workflow is a file next to this one, or is named by the name of a saved workflow.

use super::action_fields::{ActionFields, Body};
use super::{ActionReader, Format};
use crate::Found;
use crate::builder::text;
use windlass_expression::Template;
use windlass_model::hir::StepKind;
use windlass_model::model::WORKFLOW;
use windlass_source::source::{Kind, Node};

const EXAMPLE: &str = "for example workflow: child.yaml";

/// Keys whose values are data. The values of all other keys may contain actions.
const DATA: [&str; 5] = ["inputs", "input", "variables", "outputs", "value"];

/// Collects the files of the workflows that a workflow starts.
pub(crate) fn collect_workflows(workflow: &Node, found: &mut Vec<Found>) {
    let kind = workflow.get("type").and_then(Node::as_str);
    let called = workflow.get(WORKFLOW).filter(|_| kind == Some(WORKFLOW));
    if let Some(called) = called
        && let Some(path) = called.as_str().filter(|name| is_file(name))
    {
        found.push(Found::new(path, called.span, crate::collect_from_workflow));
    }
    for (key, child) in workflow.children() {
        if !key.is_some_and(|key| DATA.contains(&key)) {
            collect_workflows(child, found);
        }
    }
}

/// Returns true if this is the path of a file, and false if it is the name of a saved workflow.
fn is_file(name: &str) -> bool {
    let ends = [".yaml", ".yml", ".json"];
    let name = name.to_ascii_lowercase();
    ends.iter().any(|end| name.ends_with(end)) || name.contains('/')
}

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn call_workflow(&mut self, act: &mut ActionFields<'_>) -> Body {
        let timeout = self.step_timeout(act);
        let given = act.fields.non_null(self, "inputs");
        let Some(entry) = act.fields.required(self, WORKFLOW, act.span, EXAMPLE) else {
            return StepKind::Nothing.into();
        };
        let Some(name) = self.text(entry, EXAMPLE) else {
            return StepKind::Nothing.into();
        };
        if self.template(&entry.value).as_constant().is_none() {
            let what = "which workflow this is, is known only when it runs";
            let hint =
                "write the file or the name itself; an `if` or a `switch` chooses between several";
            self.error("bad-value", entry.value.span, what, hint);
        }
        let mut members = vec![(text(WORKFLOW), text(name))];
        if let Some(given) = given {
            let is_map = matches!(given.value.kind, Kind::Object(_));
            if !is_map && !self.is_computed(&given.value) {
                let hint = "the inputs of the workflow: for example inputs: { city: Oslo }";
                self.wrong_type(&given.value, "`inputs`", "a map", hint);
            }
            members.push((text("inputs"), self.template(&given.value)));
        }
        Body {
            timeout,
            ..Self::call(WORKFLOW, Template::object(members), None).into()
        }
    }
}
