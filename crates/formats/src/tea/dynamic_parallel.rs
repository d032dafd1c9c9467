//! `type: dynamic_parallel`: an action, steps or a workflow for each item, concurrently (docs/reference/tea.md).
//!
//! The node becomes a foreach whose body is one isolated branch. So each item has its own copy of the state. A failed
//! item has a result like any other item. `parallel_results` has the results of all items.

use super::builder::{
    anonymous_step, block, executor_result, forget_fault, jinja, map_of, output_of, remove,
    replace, set, state, with_result,
};
use super::fan_out::{PARALLEL_RESULTS, final_state};
use super::node::{LoweredNode, ResultTarget};
use super::{SourcePosition, Tea, builder};
use crate::builder::{expression, object, only, text};
use crate::fields::Fields;
use windlass_expression::{Binding, Condition, Syntax, Template, Value};
use windlass_model::hir::{Assignment, ForEach, Step, StepKind};
use windlass_model::model::{Name, OnError, WORKFLOW};
use windlass_source::source::{Entry, Kind};

/// The default maximum number of concurrent items. It is the number of threads in TEA.
const CONCURRENCY: u32 = 32;
const ITEMS: &str = "for example items: \"{{ state.batches }}\"";
const BODY: &str = "for example steps: [{ run: \"return {'n': state['item'] * 2}\" }]";
const FAN_IN: &str = "for example fan_in: collect";
/// The variable with the result of an action, until the result becomes the state of the branch.
const RESULT: &str = "_windlass_result";
/// The variable of the reason why a branch failed.
const ERROR: &str = "_windlass_error";
/// The variable that is true after a branch has failed, so that no further branches begin. It is shared by all
/// branches.
const STOP: &str = "_windlass_stop";
/// The template for the list of items from a result. For `none`, the list is empty; for a map, it has the keys.
const LISTED: &str =
    "{{ [] if result is none else (result.keys() | list if result is mapping else result) }}";

/// The key of the workflow that runs for each item.
pub(super) const SUBGRAPH: &str = "subgraph";

/// Returns true if a subgraph is a file that may be in the workflow's folder, not a URL.
pub(super) fn is_file(path: &str) -> bool {
    let ends = [".yaml", ".yml", ".json"];
    let lower = path.to_ascii_lowercase();
    !path.contains("://") && ends.iter().any(|end| lower.ends_with(end))
}

/// The two keys of the state with an item and its index, and their values.
struct Item {
    name: Name,
    value: Template,
    index: Name,
    number: Template,
}

impl Item {
    fn put(&self, place: &SourcePosition) -> Vec<Assignment> {
        vec![
            set(&self.name, self.value.clone(), place.span),
            set(&self.index, self.number.clone(), place.span),
        ]
    }
}

impl<'n> Tea<'_, 'n> {
    pub(super) fn dynamic_parallel(
        &mut self,
        fields: &mut Fields<'n>,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let items = fields.required(self, "items", place.span, ITEMS);
        let action = fields.non_null(self, "action");
        let steps = fields.non_null(self, "steps");
        let subgraph = fields.non_null(self, SUBGRAPH);
        let input = fields.non_null(self, "input");
        let config = fields.non_null(self, "parallel_config");
        let of_config = |key: &str| {
            let entries = config?.value.entries()?;
            entries.iter().find(|entry| entry.key == key)
        };
        let limit = fields.non_null(self, "max_concurrency");
        let limit = limit.or(of_config("max_concurrency"));
        let fail_fast = fields
            .non_null(self, "fail_fast")
            .or(of_config("fail_fast"));
        let item = self.named(fields, "item_var", "item")?;
        let index = self.named(fields, "index_var", "index")?;
        fields.allow(&["output", "output_key", "with", "interrupt"]);
        self.collected(fields, place);
        let fail_fast =
            fail_fast.is_some_and(|entry| self.flag(entry, "for example true").unwrap_or_default());
        let concurrency = self.concurrency(limit);
        let work: Vec<&'n Entry> = [action, steps, subgraph].into_iter().flatten().collect();
        let work = match work.as_slice() {
            [only] => *only,
            [_, second, ..] => {
                let what = format!("`{}` has more than one thing to do", place.shown());
                let hint = "use one of `action`, `steps` and `subgraph`";
                self.error("conflict", second.key_span, what, hint);
                return None;
            }
            [] => {
                let what = format!("`{}` needs `action`, `steps` or `subgraph`", place.shown());
                self.error("missing-key", place.span, what, BODY);
                return None;
            }
        };
        let items = self.template(&items?.value);

        let each = self.part(place, "each");
        let number = format!("@iterationIndexes('{}')", each.name);
        let item = Item {
            name: item,
            value: Template::binding(Binding::Root(Name::from("item"))),
            index,
            number: Template::parse(&number, Syntax::Loom).ok()?,
        };
        let branch = match work.key.as_str() {
            "steps" => self.branch_of_steps(work, place)?,
            SUBGRAPH => self.branch_of_subgraph(work, input, place)?,
            _ => self.branch_of_action(work, &item, place)?,
        };
        let last_state = match work.key.as_str() {
            "steps" => final_state(&branch),
            _ => state(),
        };
        let body = self.iteration(branch, last_state, &item, fail_fast, place)?;
        let spec = ForEach {
            items: with_result(&items, jinja(self, LISTED)),
            count: None,
            concurrency,
            on_error: OnError::Stop,
            body: only(body),
        };
        let each = Step {
            output: Some(executor_result()),
            ..anonymous_step(each, "dynamic_parallel", StepKind::ForEach(Box::new(spec)))
        };
        let results = output_of(&each.name);
        let mut last = vec![set(PARALLEL_RESULTS, results.clone(), place.span)];
        if fail_fast {
            last.push(remove(STOP, place.span));
        }
        let last = self.assigned(place, "output", last);
        Some(LoweredNode {
            output: Some(results),
            ..LoweredNode::new("dynamic_parallel", block(vec![each, last]))
        })
    }

    fn named(&mut self, fields: &mut Fields<'n>, key: &'static str, absent: &str) -> Option<Name> {
        match fields.non_null(self, key) {
            Some(entry) => Some(Name::from(self.text(entry, "a key of the state")?)),
            None => Some(Name::from(absent)),
        }
    }

    /// Checks that `fan_in` names an existing node.
    /// As in TEA, it has no other effect, because edges decide which node is next.
    fn collected(&mut self, fields: &mut Fields<'n>, place: &SourcePosition) {
        let Some(entry) = fields.required(self, "fan_in", place.span, FAN_IN) else {
            return;
        };
        let Some(name) = self.text(entry, FAN_IN) else {
            return;
        };
        if !self.nodes.iter().any(|(known, _)| *known == name) {
            let what = format!("unknown node '{name}' to collect the results");
            let known = self.node_names();
            self.unknown("fan_in-undefined", what, entry.value.span, name, known);
        }
    }

    fn concurrency(&mut self, entry: Option<&'n Entry>) -> u32 {
        let Some(entry) = entry else {
            return CONCURRENCY;
        };
        match entry.value.kind {
            Kind::Int(count) if count >= 1 => u32::try_from(count).unwrap_or(u32::MAX),
            Kind::String(_) => {
                let what = "a computed `max_concurrency` counts as 1";
                let hint = "the results are the same; for more at a time write a number";
                self.warning("computed-limit", entry.value.span, what, hint);
                1
            }
            _ => {
                let what = "`max_concurrency` must be a whole number from 1";
                self.error("out-of-range", entry.value.span, what, "for example 3");
                1
            }
        }
    }

    fn branch_of_steps(&mut self, entry: &'n Entry, place: &SourcePosition) -> Option<Vec<Step>> {
        let steps = self.list(entry, BODY)?;
        Some(self.inner(steps, place, "step"))
    }

    /// Makes the branch that calls an action. Its state has only the result of the action and the item.
    fn branch_of_action(
        &mut self,
        entry: &'n Entry,
        item: &Item,
        place: &SourcePosition,
    ) -> Option<Vec<Step>> {
        let hint = "for example action: { uses: llm.call, with: { prompt: \"…\" } }";
        let mut fields = self.fields(&entry.value, "`action`", hint)?;
        let uses = fields.required(self, "uses", entry.key_span, hint)?;
        let with = fields.get("with");
        let timeout = fields.non_null(self, "timeout");
        let target = self.result_target(&mut fields);
        fields.finish(self);
        let inside = self.part(place, "action");
        let built = self.read_action(
            uses,
            with,
            timeout,
            &ResultTarget::Key(Name::from(RESULT)),
            &inside,
        )?;
        let result = expression(self, &format!("state.{RESULT}"));
        let next_state = match &target {
            ResultTarget::Merge => map_of(self, &result),
            ResultTarget::Key(key) => object([(&**key, result)]),
            ResultTarget::Map(members) => {
                let members = members
                    .iter()
                    .map(|(key, template)| (text(key), with_result(&result, template.clone())));
                Template::object(members.collect())
            }
        };
        let mut then = vec![replace(next_state, place.span)];
        then.extend(item.put(place));
        let call = Step {
            anonymous: true,
            ..built.step(inside)
        };
        Some(vec![call, self.assigned(place, "kept", then)])
    }

    /// Makes the branch that runs another workflow, as a run of its own. The state of the branch is the result of
    /// that run.
    fn branch_of_subgraph(
        &mut self,
        entry: &'n Entry,
        input: Option<&'n Entry>,
        place: &SourcePosition,
    ) -> Option<Vec<Step>> {
        let hint = "for example subgraph: agents/researcher.yaml, a file in the workflow's folder";
        let path = self.text(entry, hint)?;
        if !is_file(path) {
            let what = format!("`{path}` is not a file that can run for each item");
            self.error("not-supported", entry.value.span, what, hint);
            return None;
        }
        let mut members = Vec::new();
        if let Some(input) = input {
            let hint = "for example input: { topic: \"{{ state.item }}\" }";
            let Some(entries) = input.value.entries() else {
                self.wrong_type(&input.value, "`input`", "a map", hint);
                return None;
            };
            for entry in entries {
                members.push((text(&entry.key), self.template(&entry.value)));
            }
        }
        let inputs = object([
            (WORKFLOW, text(path)),
            ("inputs", Template::object(members)),
        ]);
        let then = vec![set(RESULT, executor_result(), place.span)];
        let call = builder::call(WORKFLOW, inputs, None, then);
        let call = anonymous_step(self.part(place, SUBGRAPH), WORKFLOW, call);
        let result = expression(self, &format!("state.{RESULT}"));
        let next_state = replace(map_of(self, &result), place.span);
        Some(vec![call, self.assigned(place, "kept", vec![next_state])])
    }

    /// Makes the step of one item.
    /// It runs the branch. With `fail_fast`, it does nothing if another branch has already failed.
    fn iteration(
        &mut self,
        work: Vec<Step>,
        last_state: Template,
        item: &Item,
        fail_fast: bool,
        place: &SourcePosition,
    ) -> Option<Step> {
        let begin = self.assigned(place, "item", item.put(place));
        let work = anonymous_step(self.part(place, "work"), "block", block(work));
        let failed = object([(ERROR, expression(self, builder::FAULT_TEXT))]);
        let mut failed = vec![replace(failed, place.span), forget_fault(place.span)];
        failed.extend(item.put(place));
        let handler = vec![self.assigned(place, "failed", failed)];
        let tried = self.catch_step(place, "tried", work, handler);
        let mut members = vec![("branch", self.branch_name(item, place))];
        let flags = [
            ("success", format!("'{ERROR}' not in state")),
            ("error", format!("state.get('{ERROR}')")),
        ];
        members.extend(
            flags
                .iter()
                .map(|(name, text)| (*name, expression(self, text))),
        );
        let without = vec![last_state, text(ERROR)];
        members.push(("state", Template::call("removeProperty", without).ok()?));
        members.extend(others());
        let branch = Step {
            output: Some(object(members)),
            ..anonymous_step(
                self.part(place, "branch"),
                "branch",
                block(vec![begin, tried]),
            )
        };
        let fork = StepKind::Parallel {
            branches: vec![(branch.name.clone(), only(branch))],
            isolated: true,
        };
        let fork = self.forked(fork, place);
        if !fail_fast {
            return Some(fork);
        }
        let ran = output_of(&fork.name);
        let go = format!("not state.get('{STOP}', false)");
        let go = Condition::from_template(expression(self, &go)).ok()?;
        let go = anonymous_step(self.part(place, "go"), "if", builder::when(go, only(fork)));
        let mut cancelled = vec![("branch", self.branch_name(item, place))];
        cancelled.extend([
            ("success", Template::constant(Value::Bool(false))),
            ("error", text("Cancelled due to fail_fast")),
            ("state", expression(self, "{}")),
        ]);
        cancelled.extend(others());
        let result = Template::call("coalesce", vec![ran, object(cancelled)]).ok()?;
        let result = anonymous_step(
            self.part(place, "result"),
            "compose",
            StepKind::Compose(result),
        );
        let ended = output_of(&result.name);
        let bad =
            Condition::from_template(with_result(&ended, expression(self, "not result.success")));
        let stop = vec![set(STOP, Template::constant(Value::Bool(true)), place.span)];
        let stop = self.assigned(place, "stop", stop);
        let stop = anonymous_step(
            self.part(place, "unless_good"),
            "if",
            builder::when(bad.ok()?, only(stop)),
        );
        let all = self.part(place, "iteration");
        Some(Step {
            output: Some(ended),
            ..anonymous_step(all, "block", block(vec![go, result, stop]))
        })
    }

    /// Makes the step that forks the branch.
    /// Its output is the result of the only branch, and not a list with one result.
    fn forked(&mut self, fork: StepKind, place: &SourcePosition) -> Step {
        Step {
            output: Some(with_result(
                &executor_result(),
                expression(self, "result[0]"),
            )),
            ..anonymous_step(self.part(place, "apart"), "parallel", fork)
        }
    }

    fn branch_name(&self, item: &Item, place: &SourcePosition) -> Template {
        let name = with_result(&text(place.shown()), expression(self, "result ~ '['"));
        let parts = vec![name, item.number.clone(), text("]")];
        Template::call("concat", parts).unwrap_or_else(|_| text(place.shown()))
    }
}

/// Returns those members of TEA's results that have a constant value here.
fn others() -> Vec<(&'static str, Template)> {
    let null = || Template::constant(Value::Null);
    let zero = || Template::constant(Value::Int(0));
    vec![
        ("error_type", null()),
        ("traceback", null()),
        ("timeout", Template::constant(Value::Bool(false))),
        ("timing_ms", zero()),
        ("retry_count", zero()),
        ("circuit_state", null()),
        (
            "attempt_errors",
            Template::constant(Value::array(Vec::new())),
        ),
        ("exit_code", null()),
    ]
}
