//! Loops: "One iteration", "Limits" and "What a loop returns".

use super::clock::{Branch, TimerId};
use super::records::{Around, Place, Record};
use super::steps::backoff;
use super::{Failure, Flow, Row, Run};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::hir::{Loop, Step};
use windlass_model::model::{Delay, Fault, Name, OnLimit, OnRepeat, Status, Test, fault_kind};
use windlass_value::time::Timestamp;

/// Why a loop ended: "What a loop returns".
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    Condition,
    Break,
    Count,
    Timeout,
    Unchanged,
    Repeat,
    Failed,
    Cancelled,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Condition => "condition",
            Self::Break => "break",
            Self::Count => "count",
            Self::Timeout => "timeout",
            Self::Unchanged => "unchanged",
            Self::Repeat => "repeat",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A loop that runs.
pub struct LoopState {
    pub name: Name,
    path: String,
    branch: Branch,
    test: Test,
    on_timeout: OnLimit,
    /// How many iterations have ended.
    pub iteration: Cell<u64>,
    /// Since when an iteration runs.
    runs_since: Cell<Option<Timestamp>>,
    pub started_at: Timestamp,
    /// The count as it was computed, and with what resumes granted.
    count: u64,
    most: Cell<u64>,
    timeout: Option<Duration>,
    deadline: Cell<Option<TimerId>>,
    /// It reached a limit with `on_limit: pause`, and waits for the resume: between two iterations or in one.
    waits_for_grant: Cell<Option<Waits>>,
    /// The resume was just now.
    was_granted: Cell<bool>,
    /// What the author's condition was when it was last checked.
    condition: Cell<Option<bool>>,
    last_status: Cell<Option<Status>>,
    /// The records of the iteration before the one that runs, and what that returned.
    last: RefCell<BTreeMap<Name, Record>>,
    last_result: RefCell<Value>,
    /// The iteration that read each page first.
    pages: RefCell<BTreeMap<String, u64>>,
    /// The last result, and how often in a row it was the same.
    same: RefCell<(String, u64)>,
}

impl LoopState {
    /// `loopIndex`: between two iterations the next one, for `doUntil` the ended one.
    pub fn index(&self) -> u64 {
        let ended = self.iteration.get();
        match self.test == Test::After && self.runs_since.get().is_none() {
            true => ended.saturating_sub(1),
            false => ended,
        }
    }

    /// `loopResult`.
    pub fn last_result(&self) -> Value {
        self.last_result.borrow().clone()
    }
}

/// Where a loop was when it reached a limit.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Between,
    Inside,
}

/// What ends the iterations.
enum Over {
    Done(Reason),
    /// A fault of the loop itself, such as a limit with `on_limit: fail`.
    Fault(Reason, Fault),
    /// A failure of its body or its condition.
    Failed(Failure),
}

impl<'s> Run<'s> {
    pub async fn repeat(&'s self, place: &'s Place, step: &'s Step, spec: &'s Loop) -> Flow {
        let limits = self.limits(place, spec);
        let (count, timeout) = match limits {
            Ok(limits) => limits,
            Err(fault) => return self.fail(place, step, fault),
        };
        let name = spec.name.as_ref().unwrap_or(&step.name);
        place.take_inside(&self.tree, step);
        let deadline = timeout.map(|timeout| {
            let due = self.clock.now().plus(timeout);
            self.clock.arm(place.branch, due)
        });
        let state = Rc::new(LoopState {
            name: name.clone(),
            path: place.path_of(name),
            branch: place.branch,
            test: spec.test,
            on_timeout: spec.on_timeout,
            iteration: Cell::new(0),
            runs_since: Cell::new(None),
            started_at: self.clock.now(),
            count,
            most: Cell::new(count),
            timeout,
            deadline: Cell::new(deadline),
            waits_for_grant: Cell::new(None),
            was_granted: Cell::new(false),
            condition: Cell::new(None),
            last_status: Cell::new(None),
            last: RefCell::default(),
            last_result: RefCell::default(),
            pages: RefCell::default(),
            same: RefCell::default(),
        });
        self.note(format!("enter {} count {count}", state.path));
        let inside = place.in_step(step).in_loop(Around::Loop(state.clone()));
        let mut open = OpenLoop {
            run: self,
            inside: inside.clone(),
            step,
            spec,
            state,
            has_ended: false,
        };
        let over = self.iterations(&inside, &open).await;
        // An Azure loop survives failures of its body, but the last iteration counts.
        let last_failed = open.state.last_status.get() == Some(Status::Failed);
        match over {
            Over::Done(_) if spec.survives_failure && last_failed => {
                let fault = Fault::new("iteration", "the last iteration failed").transient();
                open.close(Status::Failed, Reason::Failed);
                Flow::Failed(self.loop_failure(place, step, fault))
            }
            Over::Done(reason) => {
                open.close(Status::Succeeded, reason);
                Flow::Next
            }
            Over::Fault(reason, fault) => {
                open.close(fault.status(), reason);
                Flow::Failed(self.loop_failure(place, step, fault))
            }
            Over::Failed(failure) => {
                open.close(Status::Failed, Reason::Failed);
                let through = true;
                Flow::Failed(Failure { through, ..failure })
            }
        }
    }

    /// "Limits: computed once, when the loop is entered."
    fn limits(&self, place: &Place, spec: &Loop) -> Result<(u64, Option<Duration>), Fault> {
        let count = self.whole(place, &spec.count)?;
        let timeout = spec.timeout.as_ref();
        let timeout = timeout.map(|timeout| self.duration(place, timeout));
        Ok((count, timeout.transpose()?))
    }

    /// "One iteration": check, delay, iteration, end of the iteration, check …
    async fn iterations(&'s self, place: &Place, open: &OpenLoop<'s>) -> Over {
        let (spec, state) = (open.spec, &open.state);
        let mut first = true;
        let mut looks = spec.test == Test::Before;
        loop {
            if let Some(over) = self.check(place, open, looks, first).await {
                return over;
            }
            if let Some(over) = self.delay(place, open, first).await {
                return over;
            }
            (first, looks) = (false, true);
            self.begin(place, open);
            if state.was_granted.take() {
                self.clock.yield_now(place.branch).await;
            }
            let body = self.block(place, &spec.body);
            let Some(flow) = self.before_deadline(state, body).await else {
                // The body was dropped: what it did is Cancelled.
                open.end_iteration(Status::TimedOut);
                return timed_out(spec);
            };
            self.clock.boundary(place.branch, place.branch, true).await;
            match flow {
                Flow::Failed(failure) => {
                    open.end_iteration(Status::Failed);
                    if !spec.survives_failure {
                        return Over::Failed(failure);
                    }
                }
                Flow::Break => {
                    open.end_iteration(Status::Succeeded);
                    return Over::Done(Reason::Break);
                }
                Flow::Next | Flow::Continue => open.end_iteration(Status::Succeeded),
            }
        }
    }

    /// "Each check has this order: condition, page, timeout, count, unchanged."
    async fn check(
        &self,
        place: &Place,
        open: &OpenLoop<'_>,
        looks: bool,
        first: bool,
    ) -> Option<Over> {
        let (spec, state) = (open.spec, &open.state);
        let is_late = self.is_late(state);
        let is_spent = state.iteration.get() >= state.most.get();
        let failed = |fault| Some(Over::Failed(self.failure(place, open.step, fault)));
        if looks && (!is_spent || spec.test_when_spent) {
            match self.holds(place, &spec.stop_when, true) {
                Ok(stops) => {
                    open.saw_condition(stops != spec.negated);
                    if stops {
                        return Some(Over::Done(Reason::Condition));
                    }
                }
                Err(fault) => return failed(fault),
            }
        }
        match self.page(place, open) {
            Ok(None) => {}
            Ok(Some(over)) => return Some(over),
            Err(fault) => return failed(fault),
        }
        let is_unchanged = match first {
            true => false,
            false => match self.is_unchanged(place, open) {
                Ok(is_unchanged) => is_unchanged,
                Err(fault) => return failed(fault),
            },
        };
        let reached = [
            (is_late, Reason::Timeout),
            (is_spent, Reason::Count),
            (is_unchanged, Reason::Unchanged),
        ];
        let limit = reached.into_iter().find(|(reached, _)| *reached);
        match limit {
            Some((_, limit)) => self.limit(open, limit).await,
            None => None,
        }
    }

    /// "Page": each leads to an iteration once.
    fn page(&self, place: &Place, open: &OpenLoop<'_>) -> Result<Option<Over>, Fault> {
        let Some(pages) = &open.spec.pages else {
            return Ok(None);
        };
        let page = self.eval_with(place, &pages.token, true)?.to_json();
        let mut known = open.state.pages.borrow_mut();
        if !known.contains_key(&page) {
            known.insert(page, open.state.iteration.get());
            return Ok(None);
        }
        Ok(Some(match pages.on_repeat {
            OnRepeat::Stop => Over::Done(Reason::Repeat),
            OnRepeat::Fail => {
                let fault = Fault::new(fault_kind::REPEAT, "a page was read before");
                Over::Fault(Reason::Repeat, fault)
            }
        }))
    }

    /// "Unchanged": whether the last iterations returned the same.
    fn is_unchanged(&self, place: &Place, open: &OpenLoop<'_>) -> Result<bool, Fault> {
        let Some(limit) = &open.spec.unchanged else {
            return Ok(false);
        };
        let value = match &limit.of {
            Some(of) => self.eval_with(place, of, true)?,
            None => open.result(),
        };
        let value = value.to_json();
        let mut same = open.state.same.borrow_mut();
        let times = if same.1 > 0 && same.0 == value {
            same.1 + 1
        } else {
            1
        };
        *same = (value, times);
        Ok(times >= limit.times)
    }

    /// A limit that was reached between two iterations: `on_limit`.
    async fn limit(&self, open: &OpenLoop<'_>, limit: Reason) -> Option<Over> {
        let (spec, state) = (open.spec, &open.state);
        self.note(format!("limit {} {}", state.path, limit.as_str()));
        let then = match limit {
            Reason::Timeout => spec.on_timeout,
            _ => spec.on_limit,
        };
        match then {
            OnLimit::Continue => Some(Over::Done(limit)),
            OnLimit::Fail => Some(Over::Fault(limit, limit_fault(limit))),
            OnLimit::Pause => {
                state.waits_for_grant.set(Some(Waits::Between));
                self.pause(Some(state.clone()));
                poll_fn(|_| match state.waits_for_grant.get() {
                    Some(_) => Poll::Pending,
                    None => Poll::Ready(()),
                })
                .await;
                None
            }
        }
    }

    /// A resume grants the same count and the same time again.
    pub fn grant(&self, state: &LoopState) {
        let most = state.iteration.get().saturating_add(state.count);
        state.most.set(most);
        if let (Some(old), Some(timeout)) = (state.deadline.get(), state.timeout) {
            self.clock.disarm(old);
            let due = self.clock.now().plus(timeout);
            state.deadline.set(Some(self.clock.arm(state.branch, due)));
        }
        *state.same.borrow_mut() = Default::default();
        if state.waits_for_grant.take() == Some(Waits::Between) {
            state.was_granted.set(true);
            self.clock.grant(state.branch);
        }
    }

    /// "Delay": none before the first iteration. An iteration that is due after the deadline never begins.
    async fn delay(&self, place: &Place, open: &OpenLoop<'_>, first: bool) -> Option<Over> {
        let (spec, state) = (open.spec, &open.state);
        loop {
            let delay = match &spec.delay {
                Some(_) if first => Ok(Duration::ZERO),
                None => Ok(Duration::ZERO),
                Some(Delay::Every(delay)) => self.duration(place, delay),
                Some(Delay::Backoff(own)) => {
                    let iteration = u32::try_from(state.iteration.get()).unwrap_or(u32::MAX);
                    Ok(backoff(own, iteration, None))
                }
                // `subset` has no other.
                Some(Delay::Server { .. }) => Ok(Duration::ZERO),
            };
            let delay = match delay {
                Ok(delay) => delay,
                Err(fault) => return Some(Over::Failed(self.failure(place, open.step, fault))),
            };
            if delay.is_zero() {
                return None;
            }
            let due = self.clock.now().plus(delay);
            let wait = self.clock.wait_until(place.branch, due);
            if self.before_deadline(state, wait).await.is_none() {
                return Some(timed_out(spec));
            }
            if !self.is_late(state) {
                return None;
            }
            if let Some(over) = self.limit(open, Reason::Timeout).await {
                return Some(over);
            }
        }
    }

    fn begin(&self, place: &Place, open: &OpenLoop<'_>) {
        let state = &open.state;
        if open.spec.test == Test::Before {
            open.note_iteration(state.condition.get());
        }
        *state.last.borrow_mut() = place.take_inside(&self.tree, open.step);
        state.runs_since.set(Some(self.clock.now()));
    }

    fn is_late(&self, state: &LoopState) -> bool {
        let deadline = state.deadline.get();
        deadline.is_some_and(|deadline| self.clock.is_due(deadline))
    }

    /// Runs a part of the loop up to its deadline; none: that has passed first, and the part was aborted. With
    /// `on_limit: pause`, the run pauses where it is.
    async fn before_deadline<T>(
        &self,
        state: &Rc<LoopState>,
        part: impl Future<Output = T>,
    ) -> Option<T> {
        let mut part = pin!(part);
        poll_fn(|context| {
            let deadline = state.deadline.get();
            let has_passed = deadline.is_some_and(|deadline| self.clock.has_fired(deadline));
            if !has_passed || state.waits_for_grant.get().is_some() {
                return part.as_mut().poll(context).map(Some);
            }
            let path = &state.path;
            self.note(format!("limit {path} {}", Reason::Timeout.as_str()));
            match state.on_timeout {
                OnLimit::Fail | OnLimit::Continue => Poll::Ready(None),
                OnLimit::Pause => {
                    state.waits_for_grant.set(Some(Waits::Inside));
                    self.pause(Some(state.clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The place of a fault that a loop made as a whole is the loop.
    fn loop_failure(&self, place: &Place, step: &Step, fault: Fault) -> Failure {
        let through = true;
        Failure {
            through,
            ..self.failure(place, step, fault)
        }
    }
}

/// What a loop does whose deadline has passed, and which does not pause.
fn timed_out(spec: &Loop) -> Over {
    match spec.on_timeout {
        OnLimit::Fail => Over::Fault(Reason::Timeout, limit_fault(Reason::Timeout)),
        OnLimit::Continue | OnLimit::Pause => Over::Done(Reason::Timeout),
    }
}

/// The fault of a limit can be retried and handled.
fn limit_fault(limit: Reason) -> Fault {
    let kind = match limit {
        Reason::Timeout => fault_kind::TIMEOUT,
        _ => fault_kind::LIMIT,
    };
    Fault::new(kind, "a limit was reached").transient()
}

/// A loop that has not ended: dropped, it ends as `cancelled`.
struct OpenLoop<'s> {
    run: &'s Run<'s>,
    inside: Place,
    step: &'s Step,
    spec: &'s Loop,
    state: Rc<LoopState>,
    has_ended: bool,
}

impl OpenLoop<'_> {
    /// The outputs of the iteration's actions.
    fn result(&self) -> Value {
        self.inside.outputs(self.spec.body.steps())
    }

    /// The condition belongs to the iteration that follows; of `doUntil` to the one that has just ended.
    fn saw_condition(&self, value: bool) {
        self.state.condition.set(Some(value));
        let ended = self.state.iteration.get().checked_sub(1);
        if let (Test::After, Some(ended)) = (self.spec.test, ended) {
            let mut story = self.run.story.borrow_mut();
            story.lines.pop();
            if let Some(row) = story.rows.last_mut() {
                row.condition = Some(value);
            }
            drop(story);
            self.note_check(ended, Some(value));
        }
    }

    fn note_iteration(&self, condition: Option<bool>) {
        self.note_check(self.state.iteration.get(), condition);
    }

    fn note_check(&self, at: u64, condition: Option<bool>) {
        let path = &self.state.path;
        self.run
            .note(format!("iteration {path}#{at} {condition:?}"));
    }

    /// The end of an iteration: "a failed iteration counts, an aborted one does not".
    fn end_iteration(&self, status: Status) {
        let state = &self.state;
        if state.runs_since.take().is_none() {
            return;
        }
        // Of `doUntil`, the check that follows says its condition.
        let before = self.spec.test == Test::Before;
        let condition = state.condition.get().filter(|_| before);
        let (path, at) = (&state.path, state.iteration.get());
        self.run.story.borrow_mut().rows.push(Row {
            iteration: format!("{path}#{at}"),
            status,
            condition,
            result: self.result(),
        });
        if !before {
            self.note_iteration(None);
        }
        match status {
            Status::Succeeded | Status::Failed | Status::Skipped => {
                state.iteration.set(at + 1);
                state.last_status.set(Some(status));
                state.last.take();
                *state.last_result.borrow_mut() = self.result();
            }
            // "The loop's outcome is that of its last ended iteration."
            Status::TimedOut | Status::Cancelled => {
                self.inside.take_inside(&self.run.tree, self.step);
                let mut own = self.inside.records.own.borrow_mut();
                own.extend(state.last.take());
            }
        }
    }

    /// `{iterations, status, reason, result}`.
    fn close(&mut self, status: Status, reason: Reason) {
        self.has_ended = true;
        let iterations = self.state.iteration.get();
        let (path, why) = (&self.state.path, reason.as_str());
        self.run
            .note(format!("leave {path} after {iterations}: {why}"));
        let output = Value::from_pairs([
            (
                "iterations",
                Value::from(i64::try_from(iterations).unwrap_or(i64::MAX)),
            ),
            ("status", Value::from(status.as_str())),
            ("reason", Value::from(why)),
            ("result", self.result()),
        ]);
        let record = Record {
            status,
            output,
            is_cut: reason == Reason::Timeout,
            is_nested: true,
        };
        let name = &self.step.name;
        match status {
            // Its own line says it.
            Status::Succeeded => self.run.set_record(&self.inside, name, record),
            _ => self.run.record(&self.inside, name, record),
        }
        if let Some(deadline) = self.state.deadline.take() {
            self.run.clock.disarm(deadline);
        }
    }
}

impl Drop for OpenLoop<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end_iteration(Status::Cancelled);
            self.close(Status::Cancelled, Reason::Cancelled);
        }
    }
}
