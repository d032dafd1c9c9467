//! Lowers loop and map nodes to `hir`.
//! Their inputs become bindings. Their outputs are made of the values that are collected in every iteration.

use super::lower::{GraphContext, InputSource, LoweredNode, Lowerer, MappedInput};
use super::lower_node::result;
use super::scope::{Scope, object};
use super::tree::{LoopNode, Mapping, MappingPhase, Node, Origin, PortRef, Test};
use crate::builder::{expression, looped};
use crate::reader::Reader;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use windlass_expression::{Binding, Condition, Template, Value};
use windlass_model::hir::{Block, ForEach, Keep, Loop, StepKind};
use windlass_model::model::{CollectMode, Delay, LinkKind, Name, OnError, OnLimit};

impl Lowerer<'_, '_> {
    pub(super) fn repeated(
        &mut self,
        node: &Node,
        repeated: &LoopNode,
        scope: &Scope<'_>,
    ) -> LoweredNode {
        let step = &node.step;
        let mut inputs: BTreeMap<Name, Template> = scope.own.iter().cloned().collect();
        let items = repeated.over.as_ref().map(|(over, _)| {
            let item = Template::binding(Binding::Item(step.clone()));
            let items = inputs.insert(over.clone(), item);
            items.unwrap_or_else(|| Template::constant(Value::Null))
        });
        let around = GraphContext {
            container: Some(step),
            looped: Some(step),
            given: InputSource::Loop(self.mapped(node, repeated, &inputs), inputs),
            reads: reads(repeated),
            break_when: repeated
                .break_when
                .as_ref()
                .and_then(|test| Some((test.at.node, self.condition(repeated, test)?))),
        };
        let body = Block::Dag(self.graph(&repeated.inner, &around));
        self.link_outputs(node, repeated);
        let checks: Vec<Template> = scope.own.iter().map(|(_, value)| value.clone()).collect();
        let count = repeated.count.as_ref();
        let count = count.map(|count| scope.text(count, self.reader.diagnostics));
        if let (Some(items), Some((_, concurrency))) = (items, &repeated.over) {
            let output = of_map(node, repeated, count.as_ref().map(|_| &items));
            let each = ForEach {
                items: Template::binding(Binding::Checked(checks, items)),
                count,
                concurrency: *concurrency,
                on_error: OnError::Stop,
                body,
            };
            return LoweredNode {
                kind: StepKind::ForEach(Box::new(each)),
                output: Some(output),
            };
        }
        let inside = Scope {
            looped: Some(step),
            session: None,
            ..*scope
        };
        let mut timed = |text: &Option<super::tree::Text>| {
            text.as_ref()
                .map(|text| inside.text(text, self.reader.diagnostics))
        };
        let (delay, timeout) = (timed(&repeated.delay), timed(&repeated.timeout));
        let continue_while = repeated.continue_while.as_ref();
        let stop_when = continue_while.and_then(|test| self.condition(repeated, test));
        let negated = stop_when.is_some();
        let stop_when = stop_when.map_or_else(Condition::never, Condition::negated);
        let count = count.unwrap_or_else(|| Template::constant(1_i64.into()));
        let count = Template::binding(Binding::Checked(checks, count));
        // The outputs are those of the last iteration that succeeded.
        // If the limit is reached, the history has a warning, and the loop's output `status` is `limit`.
        let spec = Loop {
            negated,
            condition_text: continue_while
                .map(|test| test.text.clone())
                .unwrap_or_default(),
            timeout,
            delay: delay.map(Delay::Every),
            on_timeout: OnLimit::Fail,
            keep: collected_values(repeated),
            ..looped(stop_when, count, body)
        };
        LoweredNode {
            kind: StepKind::Loop(Box::new(spec)),
            output: Some(of_loop(self.reader, node, repeated)),
        }
    }

    /// Makes a condition on an output of an inner node.
    fn condition(&mut self, repeated: &LoopNode, test: &Test) -> Option<Condition> {
        let node = repeated.inner.nodes.get(test.at.node)?;
        let shown = format!(
            "output `{}` of `{}` (line {})",
            test.at.port, node.id, test.span.line
        );
        let compare = Binding::Compare(
            value_of(repeated, &test.at)?,
            test.comparison,
            test.value.clone(),
            Name::from(shown),
        );
        Condition::from_template(Template::binding(compare)).ok()
    }

    /// Returns the value of each mapped input of the inner nodes.
    fn mapped(
        &mut self,
        node: &Node,
        repeated: &LoopNode,
        inputs: &BTreeMap<Name, Template>,
    ) -> HashMap<(usize, Name), MappedInput> {
        let mut values: HashMap<(usize, Name), [Option<Template>; 2]> = HashMap::new();
        for mapping in &repeated.mappings {
            let Some(value) = self.source(node, repeated, mapping, inputs) else {
                continue;
            };
            let key = (mapping.to.node, mapping.to.port.clone());
            let [first, later] = values.entry(key).or_default();
            if mapping.when.first() {
                *first = Some(value.clone());
            }
            if mapping.when.later() {
                *later = Some(value);
            }
        }
        let both = |(key, [first, later]): ((usize, Name), [Option<Template>; 2])| {
            let nothing = || Template::constant(Value::Null);
            let (has_first, has_later) = (first.is_some(), later.is_some());
            let (first, later) = (first.unwrap_or_else(nothing), later.unwrap_or_else(nothing));
            let value = if first == later {
                first
            } else {
                Template::binding(Binding::First(node.step.clone(), first, later))
            };
            let mapped = MappedInput {
                value,
                first: has_first,
                later: has_later,
            };
            (key, mapped)
        };
        values.into_iter().map(both).collect()
    }

    fn source(
        &mut self,
        node: &Node,
        repeated: &LoopNode,
        mapping: &Mapping,
        inputs: &BTreeMap<Name, Template>,
    ) -> Option<Template> {
        let to = repeated.inner.nodes.get(mapping.to.node)?;
        let input = &mapping.to.port;
        let when = match mapping.when {
            MappingPhase::All => None,
            when => Some(when.as_str()),
        };
        match &mapping.from {
            Origin::Outer(name) => {
                let kind = LinkKind::Outer;
                self.link(Some(&node.step), name, &to.step, input, kind, when);
                inputs.get(name).cloned()
            }
            Origin::Previous(place) => {
                let from = repeated.inner.nodes.get(place.node)?;
                let kind = LinkKind::Previous;
                self.link(Some(&from.step), &place.port, &to.step, input, kind, when);
                let before = Binding::Previous(from.step.clone(), Some(node.step.clone()));
                Some(Template::binding(before).part(&place.port))
            }
            Origin::Iteration => {
                let name = Name::from(super::scope::ITERATION);
                let kind = LinkKind::Outer;
                self.link(Some(&node.step), &name, &to.step, input, kind, when);
                Some(Template::binding(Binding::Iteration(node.step.clone())))
            }
        }
    }

    /// Records which inner outputs become outputs of the loop, for diagrams.
    fn link_outputs(&mut self, node: &Node, repeated: &LoopNode) {
        for outcome in &repeated.output_mappings {
            let from = outcome.from.as_ref();
            if let Some((place, from)) =
                from.and_then(|place| Some((place, repeated.inner.nodes.get(place.node)?)))
            {
                let (output, target) = (&place.port, &outcome.target);
                let take = Some(take_word(outcome.take));
                let kind = LinkKind::Result;
                self.link(Some(&from.step), output, &node.step, target, kind, take);
            }
        }
    }
}

fn take_word(take: CollectMode) -> &'static str {
    match take {
        CollectMode::First => "first",
        CollectMode::Last => "last",
        CollectMode::All => "all",
    }
}

/// Returns the inner outputs that the loop itself reads.
fn reads(repeated: &LoopNode) -> BTreeSet<(usize, Name)> {
    let tests = [&repeated.continue_while, &repeated.break_when]
        .into_iter()
        .flatten();
    let previous = repeated
        .mappings
        .iter()
        .filter_map(|mapping| match &mapping.from {
            Origin::Previous(place) => Some(place),
            Origin::Outer(_) | Origin::Iteration => None,
        });
    let results = repeated
        .output_mappings
        .iter()
        .filter_map(|one| one.from.as_ref());
    let places = tests.map(|test| &test.at).chain(previous).chain(results);
    places
        .map(|place| (place.node, place.port.clone()))
        .collect()
}

/// Makes the template of an inner output in this iteration.
fn value_of(repeated: &LoopNode, place: &PortRef) -> Option<Template> {
    let node = repeated.inner.nodes.get(place.node)?;
    let outputs = Binding::Outputs(node.step.clone());
    Some(Template::binding(outputs).part(&place.port))
}

fn collected_values(repeated: &LoopNode) -> Vec<Keep> {
    let keep = repeated.output_mappings.iter().filter_map(|outcome| {
        let place = outcome.from.as_ref()?;
        Some(Keep {
            name: outcome.target.clone(),
            take: outcome.take,
            of: repeated.inner.nodes.get(place.node)?.step.clone(),
            value: value_of(repeated, place)?,
        })
    });
    keep.collect()
}

/// Makes the outputs of a loop. They are the collected values, and the outputs that every loop has.
fn of_loop(reader: &Reader<'_>, node: &Node, repeated: &LoopNode) -> Template {
    loop_outputs(
        node,
        repeated,
        |target, take| {
            let value = result().part("kept").part(target);
            match take {
                CollectMode::All => or_empty_list(value),
                CollectMode::First | CollectMode::Last => value,
            }
        },
        |name| match name {
            "iteration_count" => result().part("iterations"),
            _ => expression(
                reader,
                "'limit' if result.reason == 'count' else 'done' if result.reason == 'condition' \
                 else result.reason",
            ),
        },
    )
}

/// Makes the template of a list that is empty if no iteration ran.
fn or_empty_list(list: Template) -> Template {
    let empty = Template::constant(Value::array(Vec::new()));
    Template::call("coalesce", vec![list.clone(), empty]).unwrap_or(list)
}

/// Makes the outputs of a map from the list of the items' outputs.
fn of_map(node: &Node, repeated: &LoopNode, bounded: Option<&Template>) -> Template {
    let wdl = |name: &str, of: Template| Template::call(name, vec![of.clone()]).unwrap_or(of);
    let values_at = |place: &PortRef| {
        let node = repeated.inner.nodes.get(place.node)?;
        let path = [node.step.clone(), place.port.clone()];
        Some(Template::binding(Binding::Each(result(), path)))
    };
    let of_items = |target: &str, take: CollectMode| {
        let outcome = repeated
            .output_mappings
            .iter()
            .find(|one| *one.target == *target);
        let place = outcome.and_then(|outcome| outcome.from.as_ref());
        let all = place.and_then(values_at);
        let all = all.unwrap_or_else(|| Template::constant(Value::Null));
        match take {
            CollectMode::All => all,
            CollectMode::First => wdl("first", all),
            CollectMode::Last => wdl("last", all),
        }
    };
    let choice = |when: Option<Template>, word: &str, otherwise: Template| {
        let word = Template::constant(word.into());
        let choice = when.map(|when| Template::call("if", vec![when, word, otherwise.clone()]));
        choice.and_then(Result::ok).unwrap_or(otherwise)
    };
    let broken = repeated.break_when.as_ref().and_then(|test| {
        let any = Binding::AnyHolds(values_at(&test.at)?, test.comparison, test.value.clone());
        Some(Template::binding(any))
    });
    let limited = bounded.and_then(|items| {
        let lengths = vec![wdl("length", items.clone()), wdl("length", result())];
        Template::call("greater", lengths).ok()
    });
    let status = choice(limited, "limit", Template::constant("done".into()));
    let status = choice(broken, "break", status);
    loop_outputs(node, repeated, of_items, |name| match name {
        "iteration_count" => wdl("length", result()),
        _ => status.clone(),
    })
}

fn loop_outputs(
    node: &Node,
    repeated: &LoopNode,
    mapped: impl Fn(&str, CollectMode) -> Template,
    built_in: impl Fn(&str) -> Template,
) -> Template {
    let members = node.outputs.list.iter().map(|socket| {
        let name = &socket.port.name;
        let outcome = repeated
            .output_mappings
            .iter()
            .find(|one| one.target == *name);
        let value = match outcome {
            Some(outcome) if outcome.from.is_some() => mapped(name, outcome.take),
            Some(outcome) => built_in(outcome.builtin),
            None if super::mapping::BUILT_IN
                .iter()
                .any(|(known, _)| *known == &**name) =>
            {
                built_in(name)
            }
            None => Template::constant(Value::Null),
        };
        let port = Binding::Port(value, socket.port.clone());
        (name.clone(), Template::binding(port))
    });
    object(members)
}
