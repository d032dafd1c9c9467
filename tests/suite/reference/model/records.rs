//! Where a branch is, and what its actions left: "Variables of a loop".

use super::clock::Branch;
use super::loops::LoopState;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use windlass_expression::Value;
use windlass_model::hir::{Block, Step};
use windlass_model::model::{Fault, Name, Status, path_part};
use windlass_value::time::Timestamp;

/// An item of a foreach may share a checkpoint when each of its actions left no more than this.
const LIGHT_BYTES: usize = 1 << 10;

/// What an action left.
#[derive(Clone)]
pub struct Record {
    pub status: Status,
    pub output: Value,
    /// A timeout ended it: what has not run in it reads as null.
    pub is_cut: bool,
    /// Its output is made of those of others, as a loop's.
    pub is_nested: bool,
}

impl Record {
    pub fn new(status: Status, output: Value) -> Self {
        let (is_cut, is_nested) = (status == Status::TimedOut, false);
        Self {
            status,
            output,
            is_cut,
            is_nested,
        }
    }

    pub fn nested(status: Status, output: Value) -> Self {
        let mut record = Self::new(status, output);
        record.is_nested = true;
        record
    }

    /// Of what an action returned.
    pub fn of(returned: &Result<Value, Fault>) -> Self {
        match returned {
            Ok(output) => Self::new(Status::Succeeded, output.clone()),
            Err(fault) => Self::new(fault.status(), fault.output.clone().unwrap_or_default()),
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
    /// Its name, index and value, and since when it runs.
    Item(Name, u64, Value, Timestamp),
}

pub struct Enclosing {
    what: Around,
    outer: Option<Rc<Enclosing>>,
}

/// Where something happens.
#[derive(Clone)]
pub struct Place {
    pub branch: Branch,
    /// The step, and its line.
    pub step: Name,
    pub line: u32,
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
            step: Name::from(""),
            line: 0,
            records: Rc::default(),
            around: None,
            inside: Vec::new(),
            attempt: 1,
        }
    }

    /// The place of a step in the block here.
    pub fn of(&self, step: &Step) -> Self {
        let (step, line) = (step.name.clone(), step.span.line);
        Self {
            step,
            line,
            ..self.clone()
        }
    }

    /// The inside of the step here.
    pub fn within(&self) -> Self {
        let mut place = self.clone();
        place.inside.push(self.step.clone());
        place
    }

    pub fn within_loop(&self, what: Around) -> Self {
        let outer = self.around.clone();
        let around = Some(Rc::new(Enclosing { what, outer }));
        Self {
            around,
            ..self.within()
        }
    }

    pub fn in_branch(&self, branch: Branch) -> Self {
        let mut place = self.clone();
        place.branch = branch;
        place
    }

    /// An item is a branch with records of its own.
    pub fn with_own_records(self, branch: Branch) -> Self {
        let (own, outer) = (RefCell::default(), Some(self.records.clone()));
        let records = Rc::new(Records { own, outer });
        Self {
            branch,
            records,
            ..self
        }
    }

    pub fn outermost(&self) -> Self {
        let mut place = self.clone();
        while let Some(outer) = place.records.outer.clone() {
            place.records = outer;
        }
        place
    }

    /// The enclosing loops, innermost first.
    pub fn enclosing(&self) -> impl Iterator<Item = &Around> {
        let all = std::iter::successors(self.around.as_deref(), |here| here.outer.as_deref());
        all.map(|here| &here.what)
    }

    /// The loop of this name around here.
    pub fn named(&self, name: &str) -> Option<&Around> {
        self.enclosing()
            .find(|one| one.name().eq_ignore_ascii_case(name))
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
    pub fn find(&self, name: &str) -> Option<Record> {
        let all = std::iter::successors(Some(&self.records), |here| here.outer.as_ref());
        all.into_iter()
            .find_map(|here| here.own.borrow().get(name).cloned())
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
        match ran.as_slice() {
            [(step, output)] if step.anonymous => output.clone(),
            _ => Value::from_pairs(
                ran.into_iter()
                    .map(|(step, output)| (step.name.clone(), output)),
            ),
        }
    }

    /// Whether all that happened here fits into a checkpoint with that of other items.
    pub fn is_light(&self) -> bool {
        let own = self.records.own.borrow();
        let mut all = own.values();
        all.all(|record| !record.is_nested && record.output.fits_in_bytes(LIGHT_BYTES))
    }

    /// Takes the records of all steps inside of a step.
    pub fn take_inside(&self, step: &Step) -> BTreeMap<Name, Record> {
        let mut own = self.records.own.borrow_mut();
        let inside = inside(step);
        inside
            .iter()
            .filter_map(|step| own.remove_entry(&step.name))
            .collect()
    }
}

impl Around {
    pub fn name(&self) -> &Name {
        match self {
            Self::Loop(state) => &state.name,
            Self::Item(name, ..) => name,
        }
    }

    /// `loopIndex`.
    pub fn index(&self) -> u64 {
        match self {
            Self::Loop(state) => state.index(),
            Self::Item(_, index, ..) => *index,
        }
    }

    /// Its part of a path.
    fn part(&self) -> String {
        let at = match self {
            Self::Loop(state) => state.iteration.get(),
            Self::Item(_, index, ..) => *index,
        };
        format!("{}#{at}", path_part(self.name()))
    }
}

/// All steps inside of a step, also those that handle its failure.
pub fn inside(step: &Step) -> Vec<&Step> {
    let mut found: Vec<&Step> = step.blocks().into_iter().flat_map(Block::steps).collect();
    let mut at = 0;
    while let Some(inner) = found.get(at) {
        let more: Vec<&Step> = inner.blocks().into_iter().flat_map(Block::steps).collect();
        found.extend(more);
        at += 1;
    }
    found
}

/// The words for an iteration that something is in.
pub fn within(iteration: Option<&(String, u64)>) -> String {
    iteration.map_or_else(String::new, |(path, at)| format!(" in {path}#{at}"))
}
