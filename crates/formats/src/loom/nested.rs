//! Loops and retries that have their keys under `inputs`, a form that Loom's own files have (docs/reference/loom.md).
//! They are read as if the keys were next to `type`, but their output has more members.

use super::Loom;
use crate::actions::ActionReader;
use crate::builder::{expression, object};
use crate::reader::Reader;
use windlass_expression::{Binding, Template};
use windlass_model::hir::{Block, Keep, Step, StepKind};
use windlass_model::model::{CollectMode, Name, Test};
use windlass_source::source::{Entry, Kind, Node};
use windlass_value::words;

/// The member of a loop's output that has a value of every iteration.
const RESULTS: &str = "results";
const LOOPS: [&str; 3] = ["until", "while", "doUntil"];
/// The types of actions that do not occur in a Logic Apps definition.
const OWN: [&str; 11] = words! {
    operation while doUntil retry parallel actor activity ai shell appendFile waitForSignal
};

impl ActionReader<'_, Loom> {
    /// Returns the action with the keys of `inputs` next to its `type`.
    /// Returns `None` if the action is not in this form.
    pub(super) fn flat(&mut self, node: &Node) -> Option<Node> {
        let kind = node.get("type")?.as_str()?;
        if !(is_one_of(kind, &LOOPS) || kind.eq_ignore_ascii_case("retry")) {
            return None;
        }
        let (own, under): (Vec<&Entry>, Vec<&Entry>) =
            node.entries()?.iter().partition(|one| one.key != "inputs");
        let under = under.first()?.value.entries()?;
        for entry in under {
            if own.iter().any(|other| other.key == entry.key) {
                let what = format!("`{}` is next to `type` and under `inputs`", entry.key);
                let hint = "leave one of them out";
                self.error("conflict", entry.key_span, what, hint);
            }
        }
        let entries = own.into_iter().chain(under).cloned().collect();
        Some(Node {
            span: node.span,
            kind: Kind::Object(entries),
        })
    }
}

/// Sets the output of a step in this form. It has the names that Loom's own files read.
pub(super) fn as_nested(reader: &Reader<'_>, step: &mut Step) {
    let own = |name: &str| Template::binding(Binding::Root(Name::from("result"))).part(name);
    match &mut step.kind {
        StepKind::Loop(spec) => {
            if spec.test == Test::After {
                spec.test = Test::AfterAsNext;
            }
            let Some(keep) = every_result(&spec.body) else {
                return;
            };
            spec.keep.push(keep);
            step.output = Some(object([
                ("iterations", own("iterations")),
                ("status", own("status")),
                ("reason", own("reason")),
                ("result", own("result")),
                ("lastResult", own("result")),
                (RESULTS, own("kept").part(RESULTS)),
                (
                    "conditionMet",
                    expression(reader, "result.reason == 'condition'"),
                ),
                (
                    "completed",
                    expression(reader, "result.reason not in ['count', 'timeout']"),
                ),
            ]));
        }
        StepKind::Block(_) if *step.label == *"retry" => {
            step.output = Some(object([
                ("status", expression(reader, "'Succeeded'")),
                ("attempts", Template::binding(Binding::Attempt)),
                (
                    "result",
                    Template::binding(Binding::Root(Name::from("result"))),
                ),
            ]));
        }
        _ => {}
    }
}

/// Collects the outputs of the actions of each iteration, as a map.
/// An iteration in which the first action did not succeed has no value.
fn every_result(body: &Block) -> Option<Keep> {
    let steps: Vec<&Step> = match body {
        Block::Sequence(steps) => steps.iter().collect(),
        Block::Dag(steps) => steps.iter().map(|placed| &placed.step).collect(),
        Block::Graph(_) => return None,
    };
    let first = steps.first()?.name.clone();
    let outputs = |name: &Name| Template::binding(Binding::Outputs(name.clone()));
    let members = steps.iter().map(|step| (&*step.name, outputs(&step.name)));
    Some(Keep {
        name: Name::from(RESULTS),
        take: CollectMode::All,
        of: first,
        value: object(members),
    })
}

/// Returns true if a Logic Apps definition contains types or keys of actions that only Loom has.
pub(crate) fn is_loom(definition: &Node) -> bool {
    actions_of(definition).any(is_own)
}

fn is_own(action: &Node) -> bool {
    let kind = action
        .get("type")
        .and_then(Node::as_str)
        .unwrap_or_default();
    let inputs = action.get("inputs");
    let conditional =
        |node: Option<&Node>| node.is_some_and(|node| node.get("condition").is_some());
    is_one_of(kind, &OWN)
        || kind.eq_ignore_ascii_case("until") && (conditional(inputs) || conditional(Some(action)))
        || actions_of(action).any(is_own)
        || inputs.is_some_and(|inputs| actions_of(inputs).any(is_own))
        || ["else", "default"]
            .iter()
            .filter_map(|key| action.get(key))
            .any(|part| actions_of(part).any(is_own))
        || members(action.get("cases")).any(|case| actions_of(case).any(is_own))
}

fn actions_of(node: &Node) -> impl Iterator<Item = &Node> {
    members(node.get("actions"))
}

fn members(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    let entries = node.and_then(Node::entries).unwrap_or_default();
    entries.iter().map(|entry| &entry.value)
}

fn is_one_of(kind: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(kind))
}
