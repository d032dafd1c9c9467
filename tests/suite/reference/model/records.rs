//! Where a branch is, what its actions left, and what blocks return: "Variables of a loop".

use super::clock::Branch;
use super::loops::LoopState;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use windlass_expression::Value;
use windlass_model::hir::{Block, Step, StepKind, Workflow};
use windlass_model::model::{Name, Status, path_part};
use windlass_value::time::Timestamp;

/// An item of a foreach may share a checkpoint when each of its actions left no more than this.
const LIGHT_BYTES: usize = 1 << 10;

/// What an action left.
#[derive(Clone, Debug)]
pub struct Record {
    pub status: Status,
    pub output: Value,
    /// A timeout ended it: what has not run in it reads as null.
    pub is_cut: bool,
    /// Whether its output is made of that of others, as a loop's.
    pub is_nested: bool,
}

impl Record {
    pub fn new(status: Status, output: Value) -> Self {
        Self {
            status,
            output,
            is_cut: status == Status::TimedOut,
            is_nested: false,
        }
    }
}

/// The records of the run, or of one item of a foreach; those around it can be read, too.
#[derive(Default)]
pub struct Records {
    pub own: RefCell<BTreeMap<Name, Record>>,
    outer: Option<Rc<Records>>,
}

/// A loop or an item of a foreach around a place.
pub enum Around {
    Loop(Rc<LoopState>),
    Item {
        name: Name,
        index: u64,
        item: Value,
        since: Timestamp,
    },
}

/// The enclosing loops, innermost first.
pub struct Enclosing {
    pub what: Around,
    outer: Option<Rc<Enclosing>>,
}

/// Where something happens.
#[derive(Clone)]
pub struct Place {
    pub branch: Branch,
    pub records: Rc<Records>,
    pub around: Option<Rc<Enclosing>>,
    /// The steps that it is inside of.
    pub inside: Vec<Name>,
    /// The attempt of the innermost retry around it, from 1.
    pub attempt: u32,
}

impl Place {
    pub fn root() -> Self {
        Self {
            branch: 0,
            records: Rc::default(),
            around: None,
            inside: Vec::new(),
            attempt: 1,
        }
    }

    pub fn in_step(&self, step: &Step) -> Self {
        let mut place = self.clone();
        place.inside.push(step.name.clone());
        place
    }

    pub fn in_loop(&self, what: Around) -> Self {
        let outer = self.around.clone();
        Self {
            around: Some(Rc::new(Enclosing { what, outer })),
            ..self.clone()
        }
    }

    /// An item has records of its own.
    pub fn with_own_records(self) -> Self {
        let outer = Some(self.records.clone());
        let own = RefCell::default();
        Self {
            records: Rc::new(Records { own, outer }),
            ..self
        }
    }

    /// The enclosing loops, innermost first.
    pub fn enclosing(&self) -> impl Iterator<Item = &Around> {
        let mut next = self.around.as_deref();
        std::iter::from_fn(move || {
            let here = next?;
            next = here.outer.as_deref();
            Some(&here.what)
        })
    }

    /// The path of a loop or an action here, such as `outer#2/inner`.
    pub fn path_of(&self, name: &str) -> String {
        let mut parts: Vec<String> = self.enclosing().map(Around::part).collect();
        parts.reverse();
        parts.push(path_part(name).into_owned());
        parts.join("/")
    }

    /// The innermost loop or foreach: its path and its iteration.
    pub fn iteration(&self) -> Option<(String, u64)> {
        let innermost = self.around.as_deref()?;
        let outer = Self {
            around: innermost.outer.clone(),
            ..self.clone()
        };
        let what = &innermost.what;
        Some((outer.path_of(what.name()), what.index()))
    }

    /// A record that can be read from here.
    pub fn find(&self, name: &Name) -> Option<Record> {
        let mut next = Some(&self.records);
        while let Some(records) = next {
            if let Some(record) = records.own.borrow().get(name) {
                return Some(record.clone());
            }
            next = records.outer.as_ref();
        }
        None
    }

    /// What these steps returned: a map of the outputs of those that ran to an end. Of a single one that has no name
    /// of its own, its output.
    pub fn outputs<'a>(&self, steps: impl IntoIterator<Item = &'a Step>) -> Value {
        let own = self.records.own.borrow();
        let ran = steps.into_iter().filter_map(|step| {
            let record = own.get(&step.name)?;
            let ran = !matches!(record.status, Status::Skipped | Status::Cancelled);
            ran.then(|| (step, record.output.clone()))
        });
        let ran: Vec<(&Step, Value)> = ran.collect();
        if let [(step, output)] = ran.as_slice()
            && step.anonymous
        {
            return output.clone();
        }
        Value::from_pairs(
            ran.into_iter()
                .map(|(step, output)| (step.name.clone(), output)),
        )
    }

    /// Whether all that happened here fits into a checkpoint with that of others.
    pub fn is_light(&self) -> bool {
        let own = self.records.own.borrow();
        own.values()
            .all(|record| !record.is_nested && record.output.fits_in_bytes(LIGHT_BYTES))
    }

    /// Takes the records of all steps inside of a step.
    pub fn take_inside(&self, tree: &Tree<'_>, step: &Step) -> BTreeMap<Name, Record> {
        let mut own = self.records.own.borrow_mut();
        let inside = tree.inside(&step.name);
        let taken = inside.iter().filter_map(|name| own.remove_entry(name));
        taken.collect()
    }
}

impl Around {
    pub fn name(&self) -> &Name {
        match self {
            Self::Loop(state) => &state.name,
            Self::Item { name, .. } => name,
        }
    }

    /// `loopIndex`.
    pub fn index(&self) -> u64 {
        match self {
            Self::Loop(state) => state.index(),
            Self::Item { index, .. } => *index,
        }
    }

    /// Its part of a path.
    fn part(&self) -> String {
        let at = match self {
            Self::Loop(state) => state.iteration.get(),
            Self::Item { index, .. } => *index,
        };
        format!("{}#{at}", path_part(self.name()))
    }
}

/// The steps of a workflow and what is inside of each.
pub struct Tree<'a> {
    steps: BTreeMap<Name, Node<'a>>,
}

struct Node<'a> {
    step: &'a Step,
    inside: Vec<Name>,
}

impl<'a> Tree<'a> {
    pub fn of(workflow: &'a Workflow) -> Self {
        let steps = workflow.steps().into_iter().map(|step| {
            let mut inside = Vec::new();
            let mut open: Vec<&Step> = children(step).collect();
            while let Some(inner) = open.pop() {
                inside.push(inner.name.clone());
                open.extend(children(inner));
            }
            (step.name.clone(), Node { step, inside })
        });
        Self {
            steps: steps.collect(),
        }
    }

    fn inside(&self, name: &Name) -> &[Name] {
        self.steps.get(name).map_or(&[], |node| &node.inside)
    }

    /// The step of this name, without case.
    pub fn find(&self, name: &str) -> Option<&'a Step> {
        let mut nodes = self.steps.values();
        let found = nodes.find(|node| node.step.name.eq_ignore_ascii_case(name));
        found.map(|node| node.step)
    }

    pub fn names(&self) -> Vec<String> {
        self.steps.keys().map(ToString::to_string).collect()
    }

    /// Whether a timeout ended a block around this action, so that it never ran there and reads as null. An action
    /// of a foreach belongs to its item.
    pub fn was_cut(&self, name: &Name, place: &Place) -> bool {
        let around = self
            .steps
            .values()
            .filter(|node| node.inside.contains(name));
        let mut outside = around.filter(|node| {
            let each = matches!(node.step.kind, StepKind::ForEach(_));
            !each && !place.inside.contains(&node.step.name)
        });
        outside.any(|node| {
            let record = place.find(&node.step.name);
            record.is_some_and(|record| record.is_cut)
        })
    }

    /// What a run without `outputs` returns.
    pub fn top_outputs(&self, workflow: &Workflow, place: &Place) -> Value {
        let mut root = place.clone();
        while let Some(outer) = root.records.outer.clone() {
            root.records = outer;
        }
        root.outputs(workflow.body.steps())
    }
}

/// The steps directly in a step, also those that handle its failure.
fn children(step: &Step) -> impl Iterator<Item = &Step> {
    step.blocks().into_iter().flat_map(Block::steps)
}
