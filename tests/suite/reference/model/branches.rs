//! Branches: "foreach, parallel, runAfter". A branch that fails never aborts the others.

use super::*;
use windlass_model::hir::{After, DagStep, ForEach};
use windlass_model::model::OnError;

/// How branches ended, by their index.
type Ended = BTreeMap<usize, Flow>;

/// The result of each item of a foreach, and for a failed item its failure.
type Left = RefCell<BTreeMap<usize, (Value, Option<Value>)>>;

impl Place<'_> {
    /// Runs branches concurrently until all have ended. Each starts when its condition is true; the condition gets the
    /// branch's index, the number of active branches, and how others ended. A jump out of one branch aborts the others.
    async fn fork<'s>(
        &self,
        branches: impl Iterator<Item = Running<'s>>,
        can_start: impl Fn(usize, usize, &Ended) -> bool,
    ) -> Ended {
        let mut open: BTreeMap<usize, Running<'_>> = branches.enumerate().collect();
        let (mut running, mut ended) = (BTreeMap::new(), Ended::new());
        poll_fn(|context| {
            loop {
                let mut indexes = open.keys().copied();
                let start = indexes.find(|index| can_start(*index, running.len(), &ended));
                running.extend(start.and_then(|index| open.remove_entry(&index)));
                let mut polled = running.iter_mut().map(|(index, branch)| {
                    let polled = branch.as_mut().poll(context);
                    polled.map(|flow| (*index, flow))
                });
                if let Some(Poll::Ready((index, flow))) = polled.find(Poll::is_ready) {
                    running.remove(&index);
                    // The branch that started this one continues next.
                    self.run.clock.turn.set(self.branch);
                    let is_jump = is_jump(&flow);
                    ended.insert(index, flow);
                    if is_jump {
                        let others = running.values_mut();
                        others.for_each(|branch| self.run.abort(branch.as_mut()));
                        return Poll::Ready(());
                    }
                } else if running.is_empty() {
                    return Poll::Ready(());
                } else if start.is_none() {
                    return Poll::Pending;
                }
            }
        })
        .await;
        ended
    }

    /// "foreach": starts items in order, `concurrency` at a time. After a failure it starts no further item, unless
    /// `on_error` allows it.
    pub async fn each(self: &Rc<Self>, spec: &ForEach, items: &[Value]) -> Flow {
        let left = Left::default();
        let item = |(at, item)| -> Running<'_> { Box::pin(self.item(spec, at, item, &left)) };
        let branches = items.iter().enumerate().map(item);
        let most = usize::try_from(spec.concurrency.max(1)).unwrap_or(usize::MAX);
        let can_start = |_, running, ended: &Ended| {
            running < most && (spec.on_error != OnError::Stop || outcome(ended).is_ok())
        };
        let flow = match outcome(&self.fork(branches, can_start).await) {
            Err(Stop::Break) => Ok(()),
            Err(Stop::Failed(_)) if spec.on_error == OnError::Continue => Ok(()),
            flow => flow,
        };
        let survives = spec.on_error == OnError::Continue && flow.is_ok();
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        for (result, failure) in left.into_inner().into_values() {
            let is_null = survives && failure.is_some();
            results.push(if is_null { Value::Null } else { result });
            failed.extend(failure);
        }
        let (results, failed) = (Value::array(results), Value::array(failed));
        let output = match survives {
            true => Value::from_pairs([("results", results), ("failed", failed)]),
            false => results,
        };
        self.record(status(&flow), output);
        flow
    }

    /// An item is a branch with its own records. Its end is a boundary of its foreach.
    async fn item(self: &Rc<Self>, spec: &ForEach, at: usize, item: &Value, left: &Left) -> Flow {
        let round = Round {
            index: at as u64,
            item: Some(item.clone()),
            since: self.run.clock.now.get(),
            result: Value::Null,
        };
        let mut inside = self.branch().within_round(round);
        inside.records = Rc::default();
        let inside = Rc::new(inside);
        let ended = inside.block(&spec.body).await;
        let is_light = matches!(ended, Ok(()) | Err(Stop::Continue)) && inside.is_light();
        let flow = match ended {
            Err(Stop::Break) => ended,
            Err(Stop::Continue) => inside.boundary(self.branch, is_light).await,
            _ => inside.boundary(self.branch, is_light).await.and(ended),
        };
        inside.row(exact_status(&flow), None, &spec.body);
        let failed = match &flow {
            Err(Stop::Aborted) => return flow,
            Err(Stop::Failed(failure)) => Some(failed_item(at, item, failure)),
            Ok(()) | Err(Stop::Break | Stop::Continue) => None,
        };
        let result = (inside.outputs(&spec.body), failed);
        left.borrow_mut().insert(at, result);
        flow
    }

    /// "parallel": all branches run to their ends; then it fails if one of them failed.
    pub async fn parallel(self: &Rc<Self>, branches: &[(Name, Block)]) -> Flow {
        let running = branches.iter().map(|(_, block)| -> Running<'_> {
            Box::pin(async move { self.branch().block(block).await })
        });
        let flow = outcome(&self.fork(running, |_, _, _| true).await);
        let results = branches.iter();
        let results = results.map(|(name, block)| (name.clone(), self.outputs(block)));
        self.record(status(&flow), Value::from_pairs(results));
        flow
    }

    /// "runAfter graph": a step starts when all before it have ended in a status that it accepts, and is Skipped
    /// when one ended in another.
    pub async fn dag(self: &Rc<Self>, steps: &[DagStep]) -> Flow {
        let statuses: RefCell<BTreeMap<&Name, Status>> = RefCell::default();
        let status_of = |name: &Name| statuses.borrow().get(name).copied();
        let branches = steps.iter().map(|DagStep { step, after }| -> Running<'_> {
            let (statuses, status_of) = (&statuses, &status_of);
            Box::pin(async move {
                let accepts = |after: &After| {
                    status_of(&after.name).is_some_and(|ended| after.statuses.contains(&ended))
                };
                if !after.iter().all(accepts) {
                    self.of(step).record(Status::Skipped, Value::Null);
                    statuses.borrow_mut().insert(&step.name, Status::Skipped);
                    return Ok(());
                }
                let inside = self.branch();
                inside.until(|| true).await?;
                let flow = inside.step(step).await;
                // The steps after it read the status of its record. A step that succeeded and whose jump cannot be
                // computed counts as Failed.
                let recorded = self.find(&step.name).filter(|_| flow.is_err());
                let recorded = recorded.filter(|(status, _)| *status != Status::Succeeded);
                let status = recorded.map_or(exact_status(&flow), |(status, _)| status);
                statuses.borrow_mut().insert(&step.name, status);
                flow
            })
        });
        let has_ended = |after: &After| status_of(&after.name).is_some();
        let can_start = |index: usize, _, _: &Ended| {
            let step = steps.get(index);
            step.is_some_and(|step| step.after.iter().all(has_ended))
        };
        let mut ended = self.fork(branches, can_start).await;
        let statuses = statuses.borrow();
        let counts = |step: &DagStep| counts(steps, &statuses, step);
        ended.retain(|at, flow| is_jump(flow) || steps.get(*at).is_some_and(counts));
        outcome(&ended)
    }
}

fn is_jump(ended: &Flow) -> bool {
    matches!(ended, Err(Stop::Break | Stop::Continue | Stop::Aborted))
}

/// A jump, or "the first fault in the order of the items".
fn outcome(ended: &Ended) -> Flow {
    let jump = ended.values().find(|ended| is_jump(ended));
    let first = || ended.values().find(|ended| ended.is_err());
    jump.or_else(first).cloned().unwrap_or(Ok(()))
}

/// "A graph fails if one of its last actions failed. If one was skipped, the actions before it count instead."
fn counts(steps: &[DagStep], statuses: &BTreeMap<&Name, Status>, step: &DagStep) -> bool {
    let is_next = |next: &&DagStep| next.after.iter().any(|one| one.name == step.step.name);
    let is_skipped = |next: &DagStep| statuses.get(&next.step.name) == Some(&Status::Skipped);
    let mut next = steps.iter().filter(is_next).peekable();
    next.peek().is_none() || next.any(|next| is_skipped(next) && counts(steps, statuses, next))
}

/// The entry for a failed item of "`foreach` with `on_error: continue`".
fn failed_item(index: usize, item: &Value, failure: &Failure) -> Value {
    let fault = &failure.fault;
    let error = Value::from_pairs([
        ("kind", Value::from(&*fault.kind)),
        ("code", Value::from(fault.code.as_deref())),
        ("action", Value::from(&*failure.action)),
    ]);
    let index = Value::from(i64::try_from(index).ok());
    Value::from_pairs([("index", index), ("item", item.clone()), ("error", error)])
}
