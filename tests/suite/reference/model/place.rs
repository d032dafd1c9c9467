//! The place of a step, and the records of the actions there: "Variables of a loop".

use super::*;
use std::iter::successors;
use windlass_model::model::path_part;

/// An item of a foreach may share a checkpoint if none of its actions returned more than this.
const LIGHT_BYTES: usize = 1 << 10;

/// The records of actions by name: their statuses and outputs.
pub type Records = BTreeMap<Name, (Status, Value)>;

/// An active step, with those around it.
#[derive(Clone)]
pub struct Place<'s> {
    pub run: &'s Run<'s>,
    outer: Option<Rc<Place<'s>>>,
    pub step: Name,
    line: u32,
    pub branch: Branch,
    /// The attempt of the innermost retry around it, from 1.
    pub attempt: u32,
    /// The iterations around it, such as `outer#2/inner#0/`.
    prefix: String,
    /// The iteration or item, inside a loop or a foreach.
    pub round: Option<Round>,
    /// The records of the run, or of one item of a foreach.
    pub records: Rc<RefCell<Records>>,
}

/// An iteration of a loop, or an item of a foreach.
#[derive(Clone, Default)]
pub struct Round {
    /// `loopIndex`.
    pub index: u64,
    /// `loopResult`.
    pub result: Value,
    pub item: Option<Value>,
    pub since: Timestamp,
}

impl<'s> Place<'s> {
    pub fn root(run: &'s Run<'s>) -> Rc<Self> {
        Rc::new(Self {
            run,
            outer: None,
            step: Name::from(""),
            line: 0,
            branch: 0,
            attempt: 1,
            prefix: String::new(),
            round: None,
            records: Rc::default(),
        })
    }

    /// The place inside the step.
    pub fn within(self: &Rc<Self>) -> Self {
        let mut inside = Self::clone(self);
        (inside.outer, inside.round) = (Some(self.clone()), None);
        inside
    }

    /// The same, in an iteration or an item.
    pub fn within_round(self: &Rc<Self>, round: Round) -> Self {
        let mut inside = self.within();
        inside.prefix = format!("{}#{}/", self.path(), round.index);
        inside.round = Some(round);
        inside
    }

    /// The same, in a new branch.
    pub fn branch(self: &Rc<Self>) -> Rc<Self> {
        let mut inside = self.within();
        inside.branch = self.run.clock.number();
        Rc::new(inside)
    }

    /// The place of a step in this block.
    pub fn of(self: &Rc<Self>, step: &Step) -> Rc<Self> {
        let mut place = self.within();
        (place.step, place.line) = (step.name.clone(), step.span.line);
        Rc::new(place)
    }

    /// This place and those around it, innermost first.
    pub fn around(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |here| here.outer.as_deref())
    }

    /// The path of this iteration, such as `outer#2/inner#0`.
    pub fn iteration(&self) -> &str {
        self.prefix.trim_end_matches('/')
    }

    /// The path of this step, such as `outer#2/inner`.
    pub fn path(&self) -> String {
        format!("{}{}", self.prefix, path_part(&self.step))
    }

    // ── records and faults ──────────────────────────────────────────────────────────────────

    /// Writes the record of an action that ended.
    pub fn record(&self, status: Status, output: Value) {
        let (path, attempt, ended) = (self.path(), self.attempt, status.as_str());
        let line = format!("end {path} {ended} attempt {attempt}");
        self.run.note(line);
        self.set_record(status, output);
    }

    pub fn set_record(&self, status: Status, output: Value) {
        let mut records = self.records.borrow_mut();
        records.insert(self.step.clone(), (status, output));
    }

    /// A record that can be read from here.
    pub fn find(&self, name: &str) -> Option<(Status, Value)> {
        let find = |here: &Self| here.records.borrow().get(name).cloned();
        self.around().find_map(find)
    }

    /// Removes and returns the records of all steps inside a step.
    pub fn take_inside(&self, step: &Step) -> Records {
        let mut records = self.records.borrow_mut();
        let inside = inside(step).into_iter();
        let taken = inside.filter_map(|step| records.remove_entry(&step.name));
        taken.collect()
    }

    /// After a timeout ended the step, what did not run in it reads as null. An action of a foreach belongs to its
    /// item.
    pub fn cut(&self, step: &Step) {
        let is_each = matches!(step.kind, StepKind::ForEach(_));
        let mut records = self.records.borrow_mut();
        for step in inside(step).into_iter().filter(|_| !is_each) {
            let unknown = records.entry(step.name.clone());
            unknown.or_insert((Status::Cancelled, Value::Null));
        }
    }

    /// The output of a block: a map of the outputs of the steps that ended.
    pub fn outputs(&self, block: &Block) -> Value {
        let records = self.records.borrow();
        let ran = block.steps().filter_map(|step| {
            let (status, output) = records.get(&step.name)?;
            let ran = !matches!(status, Status::Skipped | Status::Cancelled);
            ran.then(|| (step.name.clone(), output.clone()))
        });
        Value::from_pairs(ran)
    }

    /// Whether the results of this item are small enough to share a checkpoint with other items. Outputs that are
    /// computed from others, such as a loop's, are not counted as small.
    pub fn is_light(&self) -> bool {
        let records = self.records.borrow();
        self.run.workflow.steps().into_iter().all(|step| {
            let output = records.get(&step.name).map(|(_, output)| output);
            output.is_none_or(|output| match step.kind {
                StepKind::Loop(_) | StepKind::Parallel { .. } => output.is_null(),
                StepKind::ForEach(_) if output.as_array().is_some() => false,
                _ => output.fits_in_bytes(LIGHT_BYTES),
            })
        })
    }

    /// Writes the row of an iteration or an item that ended.
    pub fn row(&self, status: Status, condition: Option<bool>, body: &Block) {
        let (path, result) = (self.iteration().to_owned(), self.outputs(body));
        let row = (path, status, condition, result);
        self.run.story.borrow_mut().rows.push(row);
    }

    pub fn failed(&self, fault: Fault) -> Stop {
        let (action, kind) = (self.step.clone(), &fault.kind);
        let error = format!("{kind} of {} at line {}", self.path(), self.line);
        Stop::Failed(Box::new(Failure {
            fault,
            action,
            error,
        }))
    }

    /// The same, by its kind. The model has no messages.
    pub fn fault(&self, kind: &str) -> Stop {
        self.failed(Fault::new(kind, ""))
    }
}

/// All steps inside a step, including those that handle its failure.
fn inside(step: &Step) -> Vec<&Step> {
    let inner = step.blocks().into_iter().flat_map(Block::steps);
    let all = inner.flat_map(|step| [vec![step], inside(step)].concat());
    all.collect()
}
