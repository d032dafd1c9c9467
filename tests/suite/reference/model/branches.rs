//! Branches: "foreach, parallel, runAfter". A branch that fails never aborts the others.

use super::clock::Branch;
use super::records::{Around, Place, Record};
use super::steps::Running;
use super::view::wrong;
use super::{Failure, Flow, OnDrop, Run, Stop};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::task::Poll;
use windlass_expression::Value;
use windlass_model::hir::{Block, DagStep, ForEach, Step};
use windlass_model::model::{Fault, Name, OnError, Status};

/// How a branch ended, as it counts for its fork.
struct End {
    status: Status,
    failure: Option<Box<Failure>>,
    place: Place,
}

/// Branches that run side by side, by their index. Dropped, it aborts those that still run.
struct Fork<'s> {
    run: &'s Run<'s>,
    /// The branch that waits for these.
    owner: Branch,
    running: RefCell<BTreeMap<u64, (Place, Running<'s>)>>,
    ended: RefCell<BTreeMap<u64, End>>,
    /// Of a foreach, its path and the actions of an item: items have rows.
    items: Option<(String, &'s Block)>,
}

impl<'s> Fork<'s> {
    fn new(run: &'s Run<'s>, owner: Branch, items: Option<(String, &'s Block)>) -> Self {
        let (running, ended) = Default::default();
        Self {
            run,
            owner,
            running,
            ended,
            items,
        }
    }

    fn start(&self, index: u64, place: Place, block: Running<'s>) {
        self.running.borrow_mut().insert(index, (place, block));
    }

    fn running(&self) -> usize {
        self.running.borrow().len()
    }

    fn has_started(&self, index: u64) -> bool {
        self.running.borrow().contains_key(&index) || self.ended.borrow().contains_key(&index)
    }

    fn status(&self, index: u64) -> Option<Status> {
        self.ended.borrow().get(&index).map(|end| end.status)
    }

    /// "The first fault in the order of the items."
    fn first_failure(&self) -> Option<Box<Failure>> {
        let ended = self.ended.borrow();
        ended.values().find_map(|end| end.failure.clone())
    }

    /// Waits until a branch ends. The branch that runs now may be deep in one of these.
    async fn next_end(&self) -> (u64, Flow) {
        let (clock, mut has_ended) = (&self.run.clock, None);
        poll_fn(|context| {
            if clock.is_current(self.owner) {
                return has_ended.take().map_or(Poll::Pending, Poll::Ready);
            }
            for (index, (place, block)) in self.running.borrow_mut().iter_mut() {
                if clock.runs_in(place.branch)
                    && let Poll::Ready(flow) = block.as_mut().poll(context)
                {
                    clock.end_branch(place.branch);
                    clock.wake(self.owner);
                    has_ended = Some((*index, flow));
                }
            }
            Poll::Pending
        })
        .await
    }

    fn end(&self, index: u64, status: Status, failure: Option<Box<Failure>>) {
        let ended = self.running.borrow_mut().remove(&index);
        if let Some((place, _)) = ended {
            self.row(index, status, &place);
            let end = End {
                status,
                failure,
                place,
            };
            self.ended.borrow_mut().insert(index, end);
        }
    }

    /// The row of an item.
    fn row(&self, index: u64, status: Status, place: &Place) {
        if let Some((path, body)) = &self.items {
            let result = place.outputs(body.steps());
            self.run
                .row(format!("{path}#{index}"), status, None, result);
        }
    }

    /// Aborts the branches that still run: they are Cancelled.
    fn abort(&self) {
        let running = self.running.take();
        for (index, (place, block)) in running {
            self.run.clock.end_branch(place.branch);
            drop(block);
            self.row(index, Status::Cancelled, &place);
        }
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        self.abort();
    }
}

impl<'s> Run<'s> {
    /// "foreach": starts items in order, `concurrency` at a time. After a failure it starts no further item, unless
    /// `on_error` says so.
    pub async fn each(&'s self, place: &'s Place, step: &'s Step, spec: &'s ForEach) -> Flow {
        let items = self.recorded(place, self.items(place, spec))?;
        let concurrency = usize::try_from(spec.concurrency).unwrap_or(usize::MAX);
        let rows = (place.path_of(&step.name), &spec.body);
        let fork = Fork::new(self, place.branch, Some(rows));
        let continues = spec.on_error == OnError::Continue;
        let end = |status| {
            fork.abort();
            let output = match continues && status != Status::Cancelled {
                true => results_and_failed(&fork, &items, &spec.body),
                false => {
                    let ended = fork.ended.borrow();
                    let results = ended
                        .values()
                        .map(|end| end.place.outputs(spec.body.steps()));
                    Value::array(results.collect())
                }
            };
            let mut record = Record::new(status, output);
            record.is_nested = !continues || status == Status::Cancelled;
            self.record(place, record);
        };
        let open = OnDrop(Some(|| end(Status::Cancelled)));
        let none = Vec::new();
        let (mut has_broken, mut pending) = (false, (0..).zip(&items));
        while !has_broken {
            while fork.running() < concurrency.max(1)
                && let Some((index, item)) = pending.next()
            {
                self.start_item(&fork, index, item.clone(), place, &spec.body);
            }
            if fork.running() == 0 {
                break;
            }
            match fork.next_end().await {
                (index, Err(Stop::Failed(failure))) => {
                    if spec.on_error == OnError::Stop {
                        pending = (0..).zip(&none);
                    }
                    fork.end(index, failure.fault.status(), Some(failure));
                }
                (index, ended) => {
                    has_broken = matches!(ended, Err(Stop::Break));
                    fork.end(index, Status::Succeeded, None);
                }
            }
        }
        open.over();
        match fork.first_failure().filter(|_| !continues && !has_broken) {
            None => {
                end(Status::Succeeded);
                Ok(())
            }
            Some(failure) => {
                end(Status::Failed);
                Err(Stop::Failed(failure).through())
            }
        }
    }

    fn items(&self, place: &Place, spec: &ForEach) -> Result<Vec<Value>, Fault> {
        let items = self.eval(place, &spec.items)?;
        items
            .as_array()
            .cloned()
            .ok_or_else(|| wrong("a foreach needs an array"))
    }

    /// Starts an item; its end is a boundary of its foreach.
    fn start_item(
        &'s self,
        fork: &Fork<'s>,
        index: u64,
        item: Value,
        place: &'s Place,
        body: &'s Block,
    ) {
        let around = Around::Item(place.step.clone(), index, item, self.clock.now.get());
        let branch = self.clock.start_branch(place.branch);
        let inside = place.within_loop(around).with_own_records(branch);
        let here = inside.clone();
        let running = Box::pin(async move {
            let ended = self.block(&here, body).await;
            let alone = match ended {
                Err(Stop::Break) => return ended,
                Err(Stop::Failed(_)) => true,
                Ok(()) | Err(Stop::Continue) => !here.is_light(),
            };
            self.clock.boundary(place.branch, branch, alone).await;
            ended
        });
        fork.start(index, inside, running);
    }

    /// "parallel": all branches run to their ends; then it fails. A jump out of it aborts the others.
    pub async fn parallel(
        &'s self,
        place: &'s Place,
        step: &'s Step,
        branches: &'s [(Name, Block)],
    ) -> Flow {
        place.take_inside(step);
        let fork = Fork::new(self, place.branch, None);
        let end = |status| {
            fork.abort();
            let results = branch_results(place, branches);
            self.record(place, Record::nested(status, results));
        };
        let open = OnDrop(Some(|| end(Status::Cancelled)));
        for (index, (_, block)) in (0..).zip(branches) {
            let branch = self.clock.start_branch(place.branch);
            let inside = place.within().in_branch(branch);
            let here = inside.clone();
            let running = async move { self.block(&here, block).await };
            fork.start(index, inside, Box::pin(running));
        }
        let mut jump = None;
        while fork.running() > 0 && jump.is_none() {
            match fork.next_end().await {
                (index, Err(Stop::Failed(failure))) => {
                    fork.end(index, failure.fault.status(), Some(failure));
                }
                (index, ended) => {
                    fork.end(index, Status::Succeeded, None);
                    jump = ended.err();
                }
            }
        }
        open.over();
        let failure = fork.first_failure().filter(|_| jump.is_none());
        match failure {
            None => {
                end(Status::Succeeded);
                jump.map_or(Ok(()), Err)
            }
            Some(failure) => {
                end(Status::Failed);
                Err(Stop::Failed(failure).through())
            }
        }
    }

    /// "runAfter graph": a step starts when all before it have ended in a status that it accepts, and is Skipped
    /// when one ended in another.
    pub async fn dag(&'s self, place: &'s Place, steps: &'s [DagStep]) -> Flow {
        let fork = Fork::new(self, place.branch, None);
        loop {
            while let Some((index, step, runs)) = next_step(&fork, steps) {
                if runs {
                    let branch = self.clock.start_branch(place.branch);
                    let here = place.in_branch(branch);
                    let running = async move { self.step(&here, step).await };
                    fork.start(index, place.in_branch(branch), Box::pin(running));
                } else {
                    let skipped = Record::new(Status::Skipped, Value::Null);
                    self.record(&place.of(step), skipped);
                    fork.start(index, place.clone(), Box::pin(pending()));
                    fork.end(index, Status::Skipped, None);
                }
            }
            if fork.running() == 0 {
                break;
            }
            match fork.next_end().await {
                (index, Ok(())) => fork.end(index, Status::Succeeded, None),
                (index, Err(Stop::Failed(failure))) => {
                    // What waits for an action asks how that ended: its record says it. One that succeeded and whose
                    // jump cannot be computed counts as Failed.
                    let record = step_at(steps, index).and_then(|step| place.find(&step.name));
                    let ended = record.map(|record| record.status);
                    let ended = ended.filter(|status| *status != Status::Succeeded);
                    let status = ended.unwrap_or(failure.fault.status());
                    fork.end(index, status, Some(failure));
                }
                (_, jump) => return jump,
            }
        }
        match graph_failure(steps, &fork) {
            None => Ok(()),
            Some(failure) => Err(Stop::Failed(failure)),
        }
    }
}

fn step_at(steps: &[DagStep], index: u64) -> Option<&Step> {
    let found = (0..).zip(steps).find(|(at, _)| *at == index);
    found.map(|(_, step)| &step.step)
}

fn position(steps: &[DagStep], name: &str) -> Option<u64> {
    let mut all = (0..).zip(steps);
    let found = all.find(|(_, step)| step.step.name.eq_ignore_ascii_case(name));
    found.map(|(at, _)| at)
}

/// The first step in the order of the file that can start, or has to be skipped.
fn next_step<'s>(fork: &Fork<'s>, steps: &'s [DagStep]) -> Option<(u64, &'s Step, bool)> {
    let verdict = |(index, step): (u64, &'s DagStep)| {
        let before = step.after.iter().map(|after| {
            let ended = fork.status(position(steps, &after.name)?)?;
            Some(after.statuses.contains(&ended))
        });
        let accepted = before.collect::<Option<Vec<bool>>>();
        let accepted = accepted.filter(|_| !fork.has_started(index))?;
        let runs = accepted.into_iter().all(|accepted| accepted);
        Some((index, &step.step, runs))
    };
    (0..).zip(steps).find_map(verdict)
}

/// "A graph fails if one of its last actions failed. If one was skipped, the actions before it count instead."
fn graph_failure(steps: &[DagStep], fork: &Fork<'_>) -> Option<Box<Failure>> {
    let after = |step: &DagStep| {
        step.after
            .iter()
            .filter_map(|one| position(steps, &one.name))
            .collect::<Vec<u64>>()
    };
    let mut counted: Vec<u64> = (0..).zip(steps).map(|(at, _)| at).collect();
    counted.retain(|index| !steps.iter().any(|step| after(step).contains(index)));
    // Nothing is after a step that was reached again.
    for _ in steps {
        let skipped = |(index, _): &(u64, &DagStep)| {
            counted.contains(index) && fork.status(*index) == Some(Status::Skipped)
        };
        let before: Vec<u64> = (0..)
            .zip(steps)
            .filter(skipped)
            .flat_map(|(_, step)| after(step))
            .collect();
        counted.extend(before);
    }
    let ended = fork.ended.borrow();
    let mut counted = ended.iter().filter(|(index, _)| counted.contains(index));
    counted.find_map(|(_, end)| end.failure.clone())
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

/// "`foreach` with `on_error: continue`": the results, null for an item that failed, and what failed.
fn results_and_failed(fork: &Fork<'_>, items: &[Value], body: &Block) -> Value {
    let (mut results, mut failed) = (Vec::new(), Vec::new());
    for (index, end) in fork.ended.borrow().iter() {
        let Some(failure) = &end.failure else {
            results.push(end.place.outputs(body.steps()));
            continue;
        };
        let fault = &failure.fault;
        let error = Value::from_pairs([
            ("kind", Value::from(&*fault.kind)),
            ("code", Value::from(fault.code.as_deref())),
            ("message", Value::from(fault.message.as_str())),
            ("action", Value::from(&*failure.action)),
        ]);
        let item = usize::try_from(*index).ok().and_then(|at| items.get(at));
        let item = item.cloned().unwrap_or_default();
        results.push(Value::Null);
        failed.push(Value::from_pairs([
            (
                "index",
                Value::from(i64::try_from(*index).unwrap_or(i64::MAX)),
            ),
            ("item", item),
            ("error", error),
        ]));
    }
    Value::from_pairs([
        ("results", Value::array(results)),
        ("failed", Value::array(failed)),
    ])
}
