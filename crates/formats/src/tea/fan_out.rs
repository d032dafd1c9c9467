//! Edges that start several nodes at once, and the node that joins them (docs/reference/tea.md).
//!
//! Each branch works on a copy of the state, and the copies are not merged. The joining node receives the final
//! states of the branches as `parallel_results`.

use super::builder::{anonymous_step, block, executor_result, only, output_of, set, state, text};
use super::graph::START;
use super::{SourcePosition, Tea};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expression::Template;
use windlass_model::hir::{Block, Edge, Step, StepKind};
use windlass_model::model::Name;
use windlass_source::source::{Kind, Node, Span};

/// The key of the state with the results of the branches.
pub(super) const PARALLEL_RESULTS: &str = "parallel_results";

/// A step of the graph and its outgoing edges.
pub(super) type StepWithEdges = (Step, Vec<Edge>);

/// Those outgoing edges of one node that are marked to start several nodes.
#[derive(Clone, Debug)]
pub(super) struct FanOutEdges {
    /// The joining node, if an edge names it.
    pub fan_in: Option<String>,
    pub span: Span,
}

/// A node from which several nodes are started.
#[derive(Clone, Debug)]
pub(super) struct FanOut {
    from: Name,
    targets: Vec<Name>,
    join: Name,
    /// The step that runs the branches.
    place: SourcePosition,
}

impl<'n> Tea<'_, 'n> {
    /// Finds the nodes from which several nodes are started (fan-outs): at least two of their edges have no condition.
    /// In addition, the edges are marked (`wishes`), or a node of the file has `fan_in: true`.
    pub(super) fn fan_outs(
        &mut self,
        edges: &BTreeMap<String, Vec<Edge>>,
        wishes: &BTreeMap<String, FanOutEdges>,
    ) -> Vec<FanOut> {
        let flagged = |(name, node): &(&'n str, &'n Node)| {
            let flag = node.get("fan_in").map(|flag| &flag.kind);
            matches!(flag, Some(Kind::Bool(true))).then_some(*name)
        };
        let joins: Vec<&str> = self.nodes.iter().filter_map(flagged).collect();
        let mut fan_outs = Vec::new();
        for (from, edges) in edges {
            let mut targets: Vec<Name> = Vec::new();
            let open = edges.iter().filter(|edge| edge.when.is_none());
            for to in open.filter_map(|edge| edge.to.as_ref()) {
                if !targets.contains(to) {
                    targets.push(to.clone());
                }
            }
            let wish = wishes.get(from);
            if targets.len() < 2 || (wish.is_none() && joins.is_empty()) {
                continue;
            }
            let span = edges.first().map_or_else(Span::default, |edge| edge.span);
            let span = wish.map_or(span, |wish| wish.span);
            if from == START {
                let what = format!("'{START}' cannot start several nodes at once");
                let hint = "start them from a first node: { name: begin, run: \"return {}\" }";
                self.error("fan_out-from-start", span, what, hint);
                continue;
            }
            let named = wish.and_then(|wish| wish.fan_in.as_deref());
            let join = match (named, joins.as_slice()) {
                (Some(named), _) => Some(named),
                (None, [only]) => Some(*only),
                (None, _) => None,
            };
            let known = join.filter(|join| self.nodes.iter().any(|(name, _)| name == join));
            let Some(join) = known else {
                let what = format!("no node is named that joins the branches of '{from}'");
                let hint = "for example { from: a, to: b, type: parallel, fan_in: join }";
                self.error("fan_out-in-undefined", span, what, hint);
                continue;
            };
            let join = Name::from(join);
            let owner = Name::from(from.as_str());
            let place = self.place(&format!("{from}.parallel"), &owner, span, true);
            let known = self.joins.insert(join.to_string(), place.name.clone());
            if known.is_some() {
                let what = format!("`{join}` joins the branches of more than one node");
                let hint =
                    "parallel_results are those of one: add a separate joining node for each";
                self.error("fan_out-in-shared", span, what, hint);
            }
            fan_outs.push(FanOut {
                from: owner,
                targets,
                join,
                place,
            });
        }
        fan_outs
    }

    /// Replaces each fan-out by one step.
    /// If a fan-out is in a branch of another one, it is replaced before the other one.
    pub(super) fn fold_all(
        &mut self,
        mut fan_outs: Vec<FanOut>,
        steps: &mut Vec<StepWithEdges>,
        max_steps: u32,
    ) {
        while !fan_outs.is_empty() {
            let around = |fan_out: &FanOut, other: &FanOut| {
                let mut inside = fan_out.targets.iter();
                fan_out.from != other.from
                    && inside
                        .any(|target| closure(target, &fan_out.join, steps).contains(&other.from))
            };
            let innermost = fan_outs
                .iter()
                .position(|fan_out| !fan_outs.iter().any(|other| around(fan_out, other)));
            let fan_out = fan_outs.remove(innermost.unwrap_or_default());
            self.fold(fan_out, steps, max_steps);
        }
    }

    /// Moves the branches of a fan-out out of the graph, and adds one step that runs them.
    fn fold(&mut self, fan_out: FanOut, steps: &mut Vec<StepWithEdges>, max_steps: u32) {
        let mut branches = Vec::new();
        let mut taken = BTreeSet::new();
        for target in &fan_out.targets {
            let inside = closure(target, &fan_out.join, steps);
            if inside.iter().any(|name| taken.contains(name)) || inside.contains(&fan_out.from) {
                let what = format!(
                    "the branches that '{}' starts have nodes in common",
                    fan_out.from
                );
                let hint = "a branch has its own nodes up to the node that joins them";
                self.error("fan_out-out-overlap", fan_out.place.span, what, hint);
                return;
            }
            taken.extend(inside.iter().cloned());
            let mut branch = Vec::new();
            let mut rest = Vec::new();
            for (step, edges) in std::mem::take(steps) {
                if inside.contains(&step.name) {
                    let edges = edges.into_iter().map(|edge| ends_at(edge, &fan_out.join));
                    branch.push((step, edges.collect()));
                } else {
                    rest.push((step, edges));
                }
            }
            *steps = rest;
            branches.push((target.clone(), branch));
        }
        let step = self.branches(&fan_out, branches, max_steps);
        let span = fan_out.place.span;
        let step = self.collected_into_state(step, &fan_out.place);
        let name = step.name.clone();
        let edge = |to: &Name| Edge {
            when: None,
            to: Some(to.clone()),
            span,
        };
        for (from, edges) in steps.iter_mut() {
            if from.name == fan_out.from {
                edges.retain(|edge| edge.when.is_some());
                edges.push(edge(&name));
            }
        }
        steps.push((step, vec![edge(&fan_out.join)]));
    }

    /// Makes a step that runs the branches, and then stores their results in the state.
    fn collected_into_state(&mut self, step: Step, place: &SourcePosition) -> Step {
        let results = set(PARALLEL_RESULTS, output_of(&step.name), place.span);
        let last = self.assigned(place, "results", vec![results]);
        let both = self.part(place, "both");
        anonymous_step(both, "parallel", block(vec![step, last]))
    }

    fn branches(
        &mut self,
        fan_out: &FanOut,
        branches: Vec<(Name, Vec<StepWithEdges>)>,
        max_steps: u32,
    ) -> Step {
        let branches = branches.into_iter().map(|(target, branch)| {
            let inside = self.part(&fan_out.place, &target);
            let body = super::graph::in_order(branch, &target, max_steps);
            let branch = Step {
                output: Some(final_state(body.steps())),
                ..anonymous_step(inside, "branch", StepKind::Block(body))
            };
            (target, only(branch))
        });
        let fork = StepKind::Parallel {
            branches: branches.collect(),
            isolated: true,
        };
        Step {
            output: Some(executor_result()),
            ..anonymous_step(fan_out.place.clone(), "parallel", fork)
        }
    }
}

/// Makes the template of a branch's final state, for `parallel_results`.
/// Unless a step of the branch sets `parallel_results`, it is without those that the branch was given. Otherwise the
/// state would contain the results of all earlier iterations of a loop around the branches.
pub(super) fn final_state<'s>(steps: impl IntoIterator<Item = &'s Step>) -> Template {
    if steps.into_iter().any(sets_results) {
        return state();
    }
    let inputs = vec![state(), text(PARALLEL_RESULTS)];
    Template::call("removeProperty", inputs).unwrap_or_else(|_| state())
}

fn sets_results(step: &Step) -> bool {
    let StepKind::Assign(assign) = &step.kind else {
        return step
            .blocks()
            .into_iter()
            .flat_map(Block::steps)
            .any(sets_results);
    };
    let mut assignments = assign.assignments.iter();
    assignments.any(|assignment| *assignment.variable == *PARALLEL_RESULTS)
}

/// Returns the nodes that a branch can reach before the joining node.
fn closure(first: &Name, join: &Name, steps: &[StepWithEdges]) -> BTreeSet<Name> {
    let mut inside = BTreeSet::new();
    let mut open = vec![first.clone()];
    while let Some(name) = open.pop() {
        if name == *join || !inside.insert(name.clone()) {
            continue;
        }
        let found = steps.iter().find(|(step, _)| step.name == name);
        let edges = found.map(|(_, edges)| edges.as_slice()).unwrap_or_default();
        open.extend(edges.iter().filter_map(|edge| edge.to.clone()));
    }
    inside
}

/// Changes an edge to the joining node to an edge to the end of the branch.
fn ends_at(edge: Edge, join: &Name) -> Edge {
    let to = edge.to.filter(|to| to != join);
    Edge { to, ..edge }
}
