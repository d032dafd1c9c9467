//! Loops: "One iteration", "What a loop returns" and "Limits".

use super::clock::{Branch, For, WaitId};
use super::records::{Around, Place, Record};
use super::steps::backoff;
use super::{Flow, OnDrop, Run, Stop};
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

/// Why a loop ended, in the words of "What a loop returns".
type Reason = &'static str;

/// A loop that runs, as others see it.
#[derive(Default)]
pub struct LoopState {
    pub name: Name,
    path: String,
    branch: Branch,
    checks_after: bool,
    /// How many iterations have ended.
    pub iteration: Cell<u64>,
    is_running: Cell<bool>,
    pub started_at: Timestamp,
    /// The count as it was computed, and with what resumes granted.
    count: u64,
    most: Cell<u64>,
    timeout: Option<Duration>,
    deadline: Cell<Option<WaitId>>,
    /// The run paused at its limit: between two iterations or in one.
    pause: Cell<Option<Pause>>,
    was_granted: Cell<bool>,
    /// What the author's condition was when it was last checked.
    condition: Cell<Option<bool>>,
    last_status: Cell<Option<Status>>,
    /// The records of the iteration before the one that runs.
    last: RefCell<BTreeMap<Name, Record>>,
    /// `loopResult`.
    pub last_result: RefCell<Value>,
    pages: RefCell<Vec<Value>>,
    /// The last result, and how often in a row it was the same.
    same: RefCell<(Value, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Pause {
    Between,
    Inside,
}

impl LoopState {
    /// `loopIndex`: between two iterations the next one, for `doUntil` the ended one.
    pub fn index(&self) -> u64 {
        let between = !self.is_running.get();
        let ended = self.iteration.get();
        ended.saturating_sub(u64::from(self.checks_after && between))
    }
}

/// What ends the iterations: why, and with which failure.
enum Over {
    Done(Reason),
    /// A fault of the loop as a whole, such as a limit with `on_limit: fail`.
    Fault(Reason, Fault),
    /// A failure of its body or its condition.
    Failed(Stop),
}

/// A loop that runs, as it sees itself.
struct Iterations<'s> {
    run: &'s Run<'s>,
    /// Inside of it.
    place: Place,
    step: &'s Step,
    spec: &'s Loop,
    state: Rc<LoopState>,
}

impl<'s> Run<'s> {
    pub async fn repeat(&'s self, outer: &'s Place, step: &'s Step, spec: &'s Loop) -> Flow {
        // "Limits: computed once, when the loop is entered."
        let time = spec.timeout.as_ref();
        let time = || time.map(|time| self.duration(outer, time)).transpose();
        let count = self.whole(outer, &spec.count);
        let limits = count.and_then(|count| Ok((count, time()?)));
        let (count, timeout) = self.recorded(outer, limits)?;
        outer.take_inside(step);
        let deadline = timeout.map(|time| self.clock.wait_for(outer, For::Timer, Some(time)));
        let state = Rc::new(LoopState {
            name: step.name.clone(),
            path: outer.path_of(&step.name),
            branch: outer.branch,
            checks_after: spec.test == Test::After,
            started_at: self.clock.now.get(),
            count,
            most: Cell::new(count),
            timeout,
            deadline: Cell::new(deadline),
            ..LoopState::default()
        });
        self.note(format!("enter {} count {count}", state.path));
        let place = outer.within_loop(Around::Loop(state.clone()));
        let this = Iterations {
            run: self,
            place,
            step,
            spec,
            state,
        };
        let open = OnDrop(Some(|| {
            this.end_iteration(Status::Cancelled);
            this.close(Status::Cancelled, "cancelled");
        }));
        let over = this.run().await;
        open.over();
        // An Azure loop survives failures of its body, but the last iteration counts.
        let last_failed = this.state.last_status.get() == Some(Status::Failed);
        match over {
            Over::Done(_) if spec.survives_failure && last_failed => {
                this.close(Status::Failed, "failed");
                let fault = Fault::new("iteration", "the last one failed");
                Err(self.failed(outer, fault.transient()).through())
            }
            Over::Done(reason) => {
                this.close(Status::Succeeded, reason);
                Ok(())
            }
            // Its place is the loop.
            Over::Fault(reason, fault) => {
                this.close(fault.status(), reason);
                Err(self.failed(outer, fault).through())
            }
            Over::Failed(stop) => {
                this.close(Status::Failed, "failed");
                Err(stop.through())
            }
        }
    }

    /// A resume grants the same count and the same time again.
    pub fn grant(&self, state: &LoopState) {
        state
            .most
            .set(state.iteration.get().saturating_add(state.count));
        if let (Some(old), Some(timeout)) = (state.deadline.get(), state.timeout) {
            self.clock.forget(old);
            let place = Place {
                branch: state.branch,
                ..Place::root()
            };
            let deadline = self.clock.wait_for(&place, For::Timer, Some(timeout));
            state.deadline.set(Some(deadline));
        }
        state.same.take();
        if state.pause.take() == Some(Pause::Between) {
            state.was_granted.set(true);
            self.clock.grant(state.branch);
        }
    }
}

impl Iterations<'_> {
    /// "One iteration": check, delay, iteration, end of the iteration, check …
    async fn run(&self) -> Over {
        let (run, state) = (self.run, &self.state);
        let mut first = true;
        loop {
            if let Err(over) = self.check(first).await {
                return over;
            }
            if let Err(over) = self.delay(first).await {
                return over;
            }
            first = false;
            self.begin();
            if state.was_granted.take() {
                run.clock.yield_now(self.place.branch).await;
            }
            let Some(ended) = self
                .before_deadline(run.block(&self.place, &self.spec.body))
                .await
            else {
                // The body was dropped: what it did is Cancelled.
                self.end_iteration(Status::TimedOut);
                return self.timed_out();
            };
            run.clock
                .boundary(self.place.branch, self.place.branch, true)
                .await;
            self.end_iteration(match ended {
                Err(Stop::Failed(_)) => Status::Failed,
                Ok(()) | Err(Stop::Break | Stop::Continue) => Status::Succeeded,
            });
            match ended {
                Err(Stop::Break) => return Over::Done("break"),
                Err(Stop::Failed(failure)) if !self.spec.survives_failure => {
                    return Over::Failed(Stop::Failed(failure));
                }
                Ok(()) | Err(Stop::Continue | Stop::Failed(_)) => {}
            }
        }
    }

    /// "Each check has this order: condition, page, timeout, count, unchanged." After the last allowed iteration, the
    /// condition is checked once more.
    async fn check(&self, first: bool) -> Result<(), Over> {
        let (run, state) = (self.run, &self.state);
        let looks = !first || self.spec.test == Test::Before;
        let is_late = self.is_late();
        let is_spent = state.iteration.get() >= state.most.get();
        if looks && (!is_spent || self.spec.test_when_spent) {
            let stops = self.located(run.holds(&self.place, &self.spec.stop_when, true))?;
            self.saw_condition(stops != self.spec.negated);
            if stops {
                return Err(Over::Done("condition"));
            }
        }
        self.check_page()?;
        let is_unchanged = !first && self.is_unchanged()?;
        let limits = [
            (is_late, "timeout"),
            (is_spent, "count"),
            (is_unchanged, "unchanged"),
        ];
        match limits.into_iter().find(|(is_reached, _)| *is_reached) {
            Some((_, limit)) => self.limit(limit).await,
            None => Ok(()),
        }
    }

    /// "page": no page leads to a second iteration.
    fn check_page(&self) -> Result<(), Over> {
        let Some(pages) = &self.spec.pages else {
            return Ok(());
        };
        let page = self.located(self.run.eval_with(&self.place, &pages.token, true))?;
        let mut known = self.state.pages.borrow_mut();
        let is_known = known.contains(&page);
        known.push(page);
        match (is_known, pages.on_repeat) {
            (false, _) => Ok(()),
            (true, OnRepeat::Stop) => Err(Over::Done("repeat")),
            (true, OnRepeat::Fail) => {
                let fault = Fault::new(fault_kind::REPEAT, "the page was read before");
                Err(Over::Fault("repeat", fault))
            }
        }
    }

    /// "unchanged": the last iterations returned the same.
    fn is_unchanged(&self) -> Result<bool, Over> {
        let Some(limit) = &self.spec.unchanged else {
            return Ok(false);
        };
        let value = match &limit.of {
            Some(of) => self.located(self.run.eval_with(&self.place, of, true))?,
            None => self.result(),
        };
        let mut same = self.state.same.borrow_mut();
        let before = if same.0 == value { same.1 } else { 0 };
        *same = (value, before + 1);
        Ok(same.1 >= limit.times)
    }

    /// A limit that was reached between two iterations: `on_limit`.
    async fn limit(&self, limit: Reason) -> Result<(), Over> {
        let (run, state) = (self.run, &self.state);
        run.note(format!("limit {} {limit}", state.path));
        let then = if limit == "timeout" {
            self.spec.on_timeout
        } else {
            self.spec.on_limit
        };
        match then {
            OnLimit::Continue => Err(Over::Done(limit)),
            OnLimit::Fail => Err(Over::Fault(limit, limit_fault(limit))),
            OnLimit::Pause => {
                self.pause(Pause::Between);
                poll_fn(|_| match state.pause.get() {
                    Some(_) => Poll::Pending,
                    None => Poll::Ready(Ok(())),
                })
                .await
            }
        }
    }

    fn pause(&self, pause: Pause) {
        self.state.pause.set(Some(pause));
        self.run.pause(Some(self.state.clone()));
    }

    /// "delay": follows a check that continues the loop, but not the first one. "An iteration that is due after the
    /// deadline never begins."
    async fn delay(&self, first: bool) -> Result<(), Over> {
        let (run, state) = (self.run, &self.state);
        if first {
            return Ok(());
        }
        loop {
            let iteration = u32::try_from(state.iteration.get()).unwrap_or(u32::MAX);
            let delay = match &self.spec.delay {
                Some(Delay::Every(delay)) => self.located(run.duration(&self.place, delay))?,
                Some(Delay::Backoff(own)) => backoff(own, iteration, None),
                // `subset` has no other.
                Some(Delay::Server { .. }) | None => Duration::ZERO,
            };
            if delay.is_zero() {
                return Ok(());
            }
            if self
                .before_deadline(run.sleep(&self.place, delay))
                .await
                .is_none()
            {
                return Err(self.timed_out());
            }
            if !self.is_late() {
                return Ok(());
            }
            self.limit("timeout").await?;
        }
    }

    fn is_late(&self) -> bool {
        let deadline = self.state.deadline.get();
        deadline.is_some_and(|deadline| self.run.clock.is_due(deadline))
    }

    /// Runs a part of the loop up to its deadline; none: that has passed first, and the part was aborted. With
    /// `on_limit: pause`, the run pauses where it is.
    async fn before_deadline<T>(&self, part: impl Future<Output = T>) -> Option<T> {
        let state = &self.state;
        let mut part = pin!(part);
        poll_fn(|context| {
            let deadline = state.deadline.get();
            let has_passed = deadline.is_some_and(|deadline| self.run.clock.is_over(deadline));
            if !has_passed || state.pause.get().is_some() {
                return part.as_mut().poll(context).map(Some);
            }
            self.run.note(format!("limit {} timeout", state.path));
            if self.spec.on_timeout != OnLimit::Pause {
                return Poll::Ready(None);
            }
            self.pause(Pause::Inside);
            Poll::Pending
        })
        .await
    }

    /// The deadline has passed in an iteration or a delay.
    fn timed_out(&self) -> Over {
        match self.spec.on_timeout {
            OnLimit::Fail => Over::Fault("timeout", limit_fault("timeout")),
            OnLimit::Continue | OnLimit::Pause => Over::Done("timeout"),
        }
    }

    /// A fault of the loop's own expressions.
    fn located<T>(&self, returned: Result<T, Fault>) -> Result<T, Over> {
        self.run
            .located(&self.place, returned)
            .map_err(Over::Failed)
    }

    /// The outputs of the iteration's actions.
    fn result(&self) -> Value {
        self.place.outputs(self.spec.body.steps())
    }

    fn begin(&self) {
        let state = &self.state;
        if !state.checks_after {
            self.note_iteration(state.iteration.get(), state.condition.get());
        }
        *state.last.borrow_mut() = self.place.take_inside(self.step);
        state.is_running.set(true);
    }

    /// "The history has one `LoopIteration` for each iteration: at its begin, with the result of the condition; for
    /// `doUntil` at its end", with the result of the check that follows.
    fn note_iteration(&self, at: u64, condition: Option<bool>) {
        let path = &self.state.path;
        self.run
            .note(format!("iteration {path}#{at} {condition:?}"));
    }

    fn saw_condition(&self, value: bool) {
        self.state.condition.set(Some(value));
        if self.state.checks_after {
            let mut story = self.run.story.borrow_mut();
            story.lines.pop();
            story
                .rows
                .iter_mut()
                .rev()
                .take(1)
                .for_each(|row| row.condition = Some(value));
            drop(story);
            self.note_iteration(self.state.index(), Some(value));
        }
    }

    /// "A failed iteration counts, an aborted one does not."
    fn end_iteration(&self, status: Status) {
        let (run, state) = (self.run, &self.state);
        if !state.is_running.take() {
            return;
        }
        let at = state.iteration.get();
        let condition = state.condition.get().filter(|_| !state.checks_after);
        run.row(
            format!("{}#{at}", state.path),
            status,
            condition,
            self.result(),
        );
        if state.checks_after {
            self.note_iteration(at, None);
        }
        match status {
            // "The loop's outcome is that of its last ended iteration."
            Status::TimedOut | Status::Cancelled => {
                self.place.take_inside(self.step);
                self.place
                    .records
                    .own
                    .borrow_mut()
                    .extend(state.last.take());
            }
            Status::Succeeded | Status::Failed | Status::Skipped => {
                state.iteration.set(at + 1);
                state.last_status.set(Some(status));
                *state.last_result.borrow_mut() = self.result();
            }
        }
    }

    /// `{iterations, status, reason, result}`.
    fn close(&self, status: Status, reason: Reason) {
        let (run, state) = (self.run, &self.state);
        let iterations = state.iteration.get();
        run.note(format!("leave {} after {iterations}: {reason}", state.path));
        let output = Value::from_pairs([
            (
                "iterations",
                Value::from(i64::try_from(iterations).unwrap_or(i64::MAX)),
            ),
            ("status", Value::from(status.as_str())),
            ("reason", Value::from(reason)),
            ("result", self.result()),
        ]);
        let mut record = Record::nested(status, output);
        record.is_cut = reason == "timeout";
        match status {
            // The line above says it.
            Status::Succeeded => run.set_record(&self.place, record),
            _ => run.record(&self.place, record),
        }
        state
            .deadline
            .take()
            .into_iter()
            .for_each(|deadline| run.clock.forget(deadline));
    }
}

/// "The fault can be retried and handled."
fn limit_fault(limit: Reason) -> Fault {
    let kind = if limit == "timeout" {
        fault_kind::TIMEOUT
    } else {
        fault_kind::LIMIT
    };
    Fault::new(kind, "a limit was reached").transient()
}
