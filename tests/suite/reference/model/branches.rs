//! Branches: "foreach, parallel, runAfter". A branch that fails never aborts the others.

use super::clock::Branch;
use super::records::{Around, Place, Record};
use super::steps::{Running, error_object};
use super::{Failure, Flow, Row, Run};
use std::future::poll_fn;
use std::task::Poll;
use windlass_expression::Value;
use windlass_model::hir::{Block, DagStep, ForEach, Step};
use windlass_model::model::{Fault, Name, OnError, Status, fault_kind};
use windlass_value::time::Timestamp;

enum State<'s> {
    Pending,
    Runs {
        branch: Branch,
        place: Place,
        since: Timestamp,
        block: Running<'s>,
    },
    Ended {
        status: Status,
        failure: Option<Failure>,
        place: Place,
    },
}

/// What a fork is, for its results.
enum Kind<'s> {
    /// A foreach: its path and the actions of an item.
    Items(String, &'s Block),
    Parallel(&'s [(Name, Block)]),
    Graph,
}

/// Branches that run side by side. Dropped, it aborts those that still run.
struct Fork<'s> {
    run: &'s Run<'s>,
    /// The branch that waits for these.
    owner: Branch,
    kind: Kind<'s>,
    branches: Vec<State<'s>>,
    /// A branch that has just ended.
    ended: Option<(usize, Flow)>,
}

impl<'s> Fork<'s> {
    fn new(run: &'s Run<'s>, place: &Place, kind: Kind<'s>, count: usize) -> Self {
        Self {
            run,
            owner: place.branch,
            kind,
            branches: (0..count).map(|_| State::Pending).collect(),
            ended: None,
        }
    }

    fn start(&mut self, index: usize, place: Place, block: Running<'s>) {
        let (branch, since) = (place.branch, self.run.clock.now());
        if let Some(state) = self.branches.get_mut(index) {
            *state = State::Runs {
                branch,
                place,
                since,
                block,
            };
        }
    }

    fn next_pending(&self) -> Option<usize> {
        let mut all = self.branches.iter();
        all.position(|state| matches!(state, State::Pending))
    }

    fn running(&self) -> usize {
        let all = self.branches.iter();
        all.filter(|state| matches!(state, State::Runs { .. }))
            .count()
    }

    /// How a branch ended, if it has.
    fn status(&self, index: usize) -> Option<Status> {
        match self.branches.get(index)? {
            State::Ended { status, .. } => Some(*status),
            State::Pending | State::Runs { .. } => None,
        }
    }

    fn failure(&self, index: usize) -> Option<&Failure> {
        match self.branches.get(index)? {
            State::Ended { failure, .. } => failure.as_ref(),
            State::Pending | State::Runs { .. } => None,
        }
    }

    /// The first fault, in the order of the items.
    fn first_failure(&self) -> Option<Failure> {
        let mut all = (0..self.branches.len()).filter_map(|index| self.failure(index));
        all.next().cloned()
    }

    /// Waits until a branch ends. The branch that runs now may be deep in one of these.
    async fn next_end(&mut self) -> (usize, Flow) {
        poll_fn(|context| {
            let clock = &self.run.clock;
            if clock.is_current(self.owner) {
                return self.ended.take().map_or(Poll::Pending, Poll::Ready);
            }
            for (index, state) in self.branches.iter_mut().enumerate() {
                if let State::Runs { branch, block, .. } = state
                    && clock.runs_in(*branch)
                    && let Poll::Ready(flow) = block.as_mut().poll(context)
                {
                    clock.end_branch(*branch);
                    clock.wake(self.owner);
                    self.ended = Some((index, flow));
                    break;
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The end of a branch; `status` and `failure` as they count for its fork.
    fn end(&mut self, index: usize, status: Status, failure: Option<Failure>) {
        self.row(index, status);
        let Some(state) = self.branches.get_mut(index) else {
            return;
        };
        let place = match state {
            State::Runs { place, .. } | State::Ended { place, .. } => place.clone(),
            State::Pending => return,
        };
        *state = State::Ended {
            status,
            failure,
            place,
        };
    }

    /// The row of an item.
    fn row(&self, index: usize, status: Status) {
        let (Kind::Items(path, body), Some(State::Runs { place, .. })) =
            (&self.kind, self.branches.get(index))
        else {
            return;
        };
        let row = Row {
            iteration: format!("{path}#{index}"),
            status,
            condition: None,
            result: place.outputs(body.steps()),
        };
        self.run.story.borrow_mut().rows.push(row);
    }

    /// Aborts the branches that still run: they are Cancelled.
    fn abort(&mut self) {
        for index in 0..self.branches.len() {
            self.row(index, Status::Cancelled);
            let Some(state) = self.branches.get_mut(index) else {
                continue;
            };
            if let State::Runs { branch, .. } = state {
                self.run.clock.end_branch(*branch);
                *state = State::Pending;
            }
        }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        self.abort();
    }
}

/// The step of a fork: dropped before its end, it is Cancelled.
struct OpenFork<'s, 'p> {
    fork: Fork<'s>,
    place: &'p Place,
    step: &'s Step,
    has_ended: bool,
}

impl OpenFork<'_, '_> {
    /// The results of the items that have ended, in their order.
    fn results(&self, body: &Block) -> Value {
        let ended = self.fork.branches.iter().filter_map(|state| match state {
            State::Ended { place, .. } => Some(place.outputs(body.steps())),
            State::Pending | State::Runs { .. } => None,
        });
        Value::array(ended.collect())
    }

    /// `on_error: continue` makes a value of the results; else the record refers to those of the items.
    fn record(&mut self, status: Status, output: Value, is_nested: bool) {
        self.has_ended = true;
        let record = Record {
            is_nested,
            ..Record::new(status, output)
        };
        self.fork.run.record(self.place, &self.step.name, record);
    }
}

impl Drop for OpenFork<'_, '_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.fork.abort();
            let output = match self.fork.kind {
                Kind::Items(_, body) => self.results(body),
                Kind::Parallel(branches) => branch_results(self.place, branches),
                Kind::Graph => Value::Null,
            };
            self.record(Status::Cancelled, output, true);
        }
    }
}

impl<'s> Run<'s> {
    /// "foreach": starts items in order, `concurrency` at a time. After a failure it starts no further item, unless
    /// `on_error` says so.
    pub async fn each(&'s self, place: &'s Place, step: &'s Step, spec: &'s ForEach) -> Flow {
        let items = match self.items(place, step, spec) {
            Ok(items) => items,
            Err(fault) => return self.fail(place, step, fault),
        };
        let concurrency = usize::try_from(spec.concurrency.max(1)).unwrap_or(usize::MAX);
        let kind = Kind::Items(place.path_of(&step.name), &spec.body);
        let mut open = OpenFork {
            fork: Fork::new(self, place, kind, items.len()),
            place,
            step,
            has_ended: false,
        };
        let (mut is_closed, mut has_broken) = (false, false);
        loop {
            let fork = &mut open.fork;
            while !is_closed
                && fork.running() < concurrency
                && let Some(index) = fork.next_pending()
            {
                let item = items.get(index).cloned().unwrap_or_default();
                let inside = self.item_place(place, step, index, item);
                let block = self.item(place.branch, inside.clone(), &spec.body);
                fork.start(index, inside, block);
            }
            if fork.running() == 0 {
                break;
            }
            match fork.next_end().await {
                (index, Flow::Failed(failure)) => {
                    is_closed |= spec.on_error == OnError::Stop;
                    fork.end(index, failure.fault.status(), Some(failure));
                }
                (index, Flow::Break) => {
                    fork.end(index, Status::Succeeded, None);
                    fork.abort();
                    has_broken = true;
                    break;
                }
                (index, Flow::Next | Flow::Continue) => {
                    fork.end(index, Status::Succeeded, None);
                }
            }
        }
        let failure = open.fork.first_failure();
        let continues = spec.on_error == OnError::Continue;
        let output = match continues {
            true => self.results_and_failed(&open, &items, &spec.body),
            false => open.results(&spec.body),
        };
        match failure.filter(|_| !continues && !has_broken) {
            None => {
                open.record(Status::Succeeded, output, !continues);
                Flow::Next
            }
            Some(failure) => {
                open.record(Status::Failed, output, true);
                let through = true;
                Flow::Failed(Failure { through, ..failure })
            }
        }
    }

    fn items(&self, place: &Place, step: &Step, spec: &ForEach) -> Result<Vec<Value>, Fault> {
        let items = self.eval(place, &spec.items)?;
        let wrong = || Fault::new(fault_kind::EXPRESSION, "a foreach needs an array");
        let mut items = items.as_array().cloned().ok_or_else(wrong)?;
        if let Some(count) = &spec.count {
            let count = self.whole(place, count)?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if items.len() > count {
                self.note(format!("limit {} count", place.path_of(&step.name)));
                items.truncate(count);
            }
        }
        Ok(items)
    }

    fn item_place(&self, place: &Place, step: &Step, index: usize, item: Value) -> Place {
        let around = Around::Item {
            name: step.name.clone(),
            index: u64::try_from(index).unwrap_or(u64::MAX),
            item,
            since: self.clock.now(),
        };
        let branch = self.clock.start_branch(place.branch);
        let inside = place.in_step(step).in_loop(around).with_own_records();
        Place { branch, ..inside }
    }

    /// An item; its end is a boundary of its foreach.
    fn item(&'s self, owner: Branch, place: Place, body: &'s Block) -> Running<'s> {
        Box::pin(async move {
            let flow = self.block(&place, body).await;
            let alone = match flow {
                Flow::Break => return flow,
                Flow::Failed(_) => true,
                Flow::Next | Flow::Continue => !place.is_light(),
            };
            self.clock.boundary(owner, place.branch, alone).await;
            flow
        })
    }

    /// "`foreach` with `on_error: continue`".
    fn results_and_failed(&self, open: &OpenFork<'_, '_>, items: &[Value], body: &Block) -> Value {
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        for (index, state) in open.fork.branches.iter().enumerate() {
            let State::Ended { failure, place, .. } = state else {
                continue;
            };
            let Some(failure) = failure else {
                results.push(place.outputs(body.steps()));
                continue;
            };
            results.push(Value::Null);
            failed.push(Value::from_pairs([
                (
                    "index",
                    Value::from(i64::try_from(index).unwrap_or(i64::MAX)),
                ),
                ("item", items.get(index).cloned().unwrap_or_default()),
                ("error", Value::object(error_object(failure))),
            ]));
        }
        Value::from_pairs([
            ("results", Value::array(results)),
            ("failed", Value::array(failed)),
        ])
    }

    /// "parallel": all branches run to their ends; then it fails. A jump out of it aborts the others.
    pub async fn parallel(
        &'s self,
        place: &'s Place,
        step: &'s Step,
        branches: &'s [(Name, Block)],
    ) -> Flow {
        place.take_inside(&self.tree, step);
        let mut open = OpenFork {
            fork: Fork::new(self, place, Kind::Parallel(branches), branches.len()),
            place,
            step,
            has_ended: false,
        };
        for (index, (_, block)) in branches.iter().enumerate() {
            let branch = self.clock.start_branch(place.branch);
            let inside = place.in_step(step);
            let inside = Place { branch, ..inside };
            let block = self.branch(inside.clone(), block);
            open.fork.start(index, inside, block);
        }
        let mut flow = Flow::Next;
        while open.fork.running() > 0 {
            match open.fork.next_end().await {
                (index, Flow::Next) => open.fork.end(index, Status::Succeeded, None),
                (index, Flow::Failed(failure)) => {
                    open.fork.end(index, failure.fault.status(), Some(failure));
                }
                (index, jump) => {
                    open.fork.end(index, Status::Succeeded, None);
                    open.fork.abort();
                    flow = jump;
                    break;
                }
            }
        }
        let output = branch_results(place, branches);
        let failure = open.fork.first_failure();
        match (flow, failure) {
            (Flow::Next, Some(failure)) => {
                open.record(Status::Failed, output, true);
                let through = true;
                Flow::Failed(Failure { through, ..failure })
            }
            (flow, _) => {
                open.record(Status::Succeeded, output, true);
                flow
            }
        }
    }

    fn branch(&'s self, place: Place, block: &'s Block) -> Running<'s> {
        Box::pin(async move { self.block(&place, block).await })
    }

    /// "runAfter graph": a step starts when all before it have ended in a status that it accepts, and is Skipped
    /// when one ended in another.
    pub async fn dag(&'s self, place: &'s Place, steps: &'s [DagStep]) -> Flow {
        let mut fork = Fork::new(self, place, Kind::Graph, steps.len());
        loop {
            self.start_ready(place, steps, &mut fork);
            if fork.running() == 0 {
                break;
            }
            match fork.next_end().await {
                (index, Flow::Next) => fork.end(index, Status::Succeeded, None),
                // What waits for an action asks how that ended: its record says it. One that succeeded and whose jump
                // cannot be computed counts as Failed.
                (index, Flow::Failed(failure)) => {
                    let name = steps.get(index).map(|step| &step.step.name);
                    let record = name.and_then(|name| place.find(name));
                    let ended = record.map(|record| record.status);
                    let ended = ended.filter(|status| *status != Status::Succeeded);
                    let status = ended.unwrap_or(failure.fault.status());
                    fork.end(index, status, Some(failure));
                }
                (_, jump) => {
                    fork.abort();
                    return jump;
                }
            }
        }
        match dag_failure(steps, &fork) {
            None => Flow::Next,
            Some(failure) => Flow::Failed(failure),
        }
    }

    fn start_ready(&'s self, place: &'s Place, steps: &'s [DagStep], fork: &mut Fork<'s>) {
        let mut has_changed = true;
        while std::mem::take(&mut has_changed) {
            for (index, step) in steps.iter().enumerate() {
                if !matches!(fork.branches.get(index), Some(State::Pending)) {
                    continue;
                }
                let before = step.after.iter().map(|after| {
                    let at = position(steps, &after.name);
                    let ended = at.and_then(|at| fork.status(at))?;
                    Some(after.statuses.contains(&ended))
                });
                let Some(accepted) = before.collect::<Option<Vec<bool>>>() else {
                    continue;
                };
                has_changed = true;
                if accepted.into_iter().all(|accepted| accepted) {
                    let branch = self.clock.start_branch(place.branch);
                    let inside = Place {
                        branch,
                        ..place.clone()
                    };
                    let block = self.single(inside.clone(), &step.step);
                    fork.start(index, inside, block);
                } else {
                    let record = Record::new(Status::Skipped, Value::Null);
                    self.record(place, &step.step.name, record);
                    fork.skip(index, place);
                }
            }
        }
    }

    fn single(&'s self, place: Place, step: &'s Step) -> Running<'s> {
        Box::pin(async move { self.step(&place, step).await })
    }
}

impl Fork<'_> {
    fn skip(&mut self, index: usize, place: &Place) {
        if let Some(state) = self.branches.get_mut(index) {
            *state = State::Ended {
                status: Status::Skipped,
                failure: None,
                place: place.clone(),
            };
        }
    }
}

/// A map of the branches' results. Of a branch that is one action under its own name, that action's output.
fn branch_results(place: &Place, branches: &[(Name, Block)]) -> Value {
    let results = branches.iter().map(|(name, block)| {
        let all = place.outputs(block.steps());
        let is_single = block.steps().count() == 1;
        let own = all.get(name).filter(|_| is_single).cloned();
        (name.clone(), own.unwrap_or(all))
    });
    Value::from_pairs(results)
}

fn position(steps: &[DagStep], name: &str) -> Option<usize> {
    let mut all = steps.iter();
    all.position(|step| step.step.name.eq_ignore_ascii_case(name))
}

/// "A graph fails if one of its last actions failed. If one was skipped, the actions before it count instead."
fn dag_failure(steps: &[DagStep], fork: &Fork<'_>) -> Option<Failure> {
    let is_last = |index: &usize| {
        let name = steps.get(*index).map(|step| &step.step.name);
        let waits = |step: &DagStep| step.after.iter().any(|after| Some(&after.name) == name);
        !steps.iter().any(waits)
    };
    let mut open: Vec<usize> = (0..steps.len()).filter(is_last).collect();
    let mut counted = Vec::new();
    while let Some(index) = open.pop() {
        if counted.contains(&index) {
            continue;
        }
        counted.push(index);
        if fork.status(index) == Some(Status::Skipped) {
            let after = steps.get(index).map(|step| &step.after);
            let before = after.into_iter().flatten();
            open.extend(before.filter_map(|after| position(steps, &after.name)));
        }
    }
    counted.sort_unstable();
    let mut failures = counted.into_iter().filter_map(|index| fork.failure(index));
    failures.next().cloned()
}
