//! When a loop begins and ends its iterations: the semantics of all loops (docs/reference/loops.md).
//!
//! ```text
//!   enter ─▶ check ─▶ begin ─▶ body ─▶ repeat ─▶ check ─▶ delay ─▶ begin …
//!              │                                   │
//!              └──────── end | limit ◀─────────────┘
//! ```
//!
//! `check` first evaluates the condition. Then, in a loop over pages, it checks whether the next page was read before.
//! Then it checks the limits, with the limit for unchanged iterations as the last. A delay begins only after these
//! checks, so there is no delay after the last iteration.

use super::bug::{Bug, MachineResult, StepResult, split_fault};
use super::condition::{ConditionResult, evaluate_condition, fault_inside, limit_fault};
use super::evaluate::millis;
use super::feedback::hash_of;
use super::reader::LoopRef;
use super::record::{LoopEnd, Output, Records};
use super::retry::{self, FaultOrigin};
use super::state::{CursorId, FrameKind, LoopState, PauseReason, TimerId, TimerPurpose, Wait};
use super::transition::{LoopHandler, Next, own_output};
use super::usage::eval_budgets;
use crate::program::{Caps, LoopSpec, Scope, ScopeId};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::model::{
    Backoff, Delay, Fault, Name, OnLimit, OnRepeat, Pages, Status, Test, fault_kind,
};
use windlass_value::shortened;
use windlass_value::time::{Timestamp, human_duration};

/// The purpose of the expression for the delay, as a part of error messages.
const LOOP_DELAY: &str = "the delay of a loop";

/// Maximum number of pages that a loop stores. Later pages are compared only with these. So the state of a loop with a
/// very high limit stays small.
const MAX_PAGES: usize = 100_000;

impl<'a> LoopHandler<'_, 'a> {
    pub fn enter(
        &mut self,
        cursor: CursorId,
        id: ScopeId,
        scope: &'a Scope,
        (loop_type, spec): (&Name, &LoopSpec),
    ) -> StepResult<Next> {
        let read = self.read();
        let (program, now) = (read.program, read.now);
        let max_iterations = read.eval_count(cursor, &spec.count)?;
        let timeout = match &spec.timeout {
            Some(timeout) => Some(read.eval_duration(cursor, timeout, "the timeout of a loop")?),
            None => None,
        };
        check_caps(program.caps, max_iterations, timeout, scope)?;
        let budgets = eval_budgets(read, cursor, spec)?;
        let path = read.view(cursor).path_of(&scope.name);
        let deadline = timeout.map(|timeout| now.plus(timeout));
        let deadline_timer = self.arm_deadline(cursor, deadline, id)?;
        let name = self.read().reported_loop(scope);
        let mut iterations = self.iterations();
        iterations.report_start(name, path.clone(), max_iterations);
        let action = scope.action.and_then(|action| program.action(action));
        let state = LoopState {
            path,
            kind: loop_type.clone(),
            title: action.and_then(|action| action.title.clone()),
            iteration: 0,
            max_iterations,
            budget: max_iterations,
            timeout_ms: timeout.map(millis),
            started_at: now,
            deadline,
            deadline_timer,
            iteration_started_at: None,
            next_due_at: None,
            last_condition: None,
            last_status: None,
            last: Records::new(),
            collected: Value::object(budgets),
            ended: None,
            pages: BTreeMap::new(),
        };
        let kind = FrameKind::Loop(Box::new(state));
        self.movement().enter(cursor, id, kind)?;
        let this = self.read().loop_on_top(cursor)?;
        self.check(this, spec.test == Test::Before, true)
    }

    fn arm_deadline(
        &mut self,
        cursor: CursorId,
        deadline: Option<Timestamp>,
        id: ScopeId,
    ) -> MachineResult<Option<TimerId>> {
        let mut timers = self.timers();
        let purpose = TimerPurpose::Deadline(id);
        let timer = deadline.map(|due_at| timers.arm(cursor, due_at, purpose));
        timer.transpose()
    }

    /// `Op::Repeat`: ends an iteration, then checks whether another one begins.
    pub fn repeat(&mut self, cursor: CursorId) -> StepResult<Next> {
        let this = self.read().loop_on_top(cursor)?;
        let mut iterations = self.iterations();
        if !iterations.try_cross_boundary(this) {
            return Ok(Next::Nothing);
        }
        iterations.collect_outputs(this)?;
        iterations.end(this, Status::Succeeded)?;
        self.check(this, true, false)
    }

    /// `Op::Break`: ends the iteration and the loop.
    pub fn break_out(&mut self, this: LoopRef<'a>) -> StepResult<Next> {
        let mut iterations = self.iterations();
        if !iterations.try_cross_boundary(this) {
            return Ok(Next::Nothing);
        }
        iterations.collect_outputs(this)?;
        iterations.end(this, Status::Succeeded)?;
        Ok(self.end(this, LoopEnd::Break)?)
    }

    /// Checks the condition, then the limits. Then ends the loop, begins the delay, or begins the next iteration. If
    /// the condition ends the loop, the reason is `Condition`, even if the deadline has passed.
    fn check(
        &mut self,
        this: LoopRef<'a>,
        checks_condition: bool,
        first: bool,
    ) -> StepResult<Next> {
        let state = self.read().loop_state(this)?;
        let iteration = state.iteration;
        let is_count_used_up = iteration >= state.max_iterations;
        let late = self.read().is_late(this)?;
        if checks_condition && (!is_count_used_up || this.spec.test_when_spent) {
            let result = evaluate_condition(self.read(), this)?;
            let mut iterations = self.iterations();
            match result {
                ConditionResult::Stop => {
                    iterations.record_condition(this, !this.spec.negated)?;
                    return Ok(self.end(this, LoopEnd::Condition)?);
                }
                ConditionResult::Continue => {
                    iterations.record_condition(this, this.spec.negated)?;
                }
                ConditionResult::Missing(_) => {}
            }
            if !first {
                iterations.record_feedback(this)?;
            }
        } else if checks_condition
            && let Ok(ConditionResult::Stop) = evaluate_condition(self.read(), this)
        {
            // The condition decides nothing any more. But a loop that has reached its goal is not reported as ended by
            // a limit.
            self.iterations().note_condition(this, !this.spec.negated)?;
        }
        if let Some(pages) = &this.spec.pages
            && let Some(next) = self.end_at_repeated_page(this, pages, iteration)?
        {
            return Ok(next);
        }
        let unchanged = !first && self.iterations().is_unchanged(this)?;
        let limit = match (late, is_count_used_up) {
            (true, _) => Some(LoopEnd::Timeout),
            (false, true) => Some(LoopEnd::Count),
            (false, false) => {
                let used = self.iterations().used_budget(this)?;
                used.or(unchanged.then_some(LoopEnd::Unchanged))
            }
        };
        match limit {
            Some(end) => Ok(self.limit(this, end, true)?),
            None => self.delay_or_begin(this, first),
        }
    }

    /// Ends or fails the loop if its next iteration would read a page for the second time.
    fn end_at_repeated_page(
        &mut self,
        this: LoopRef<'a>,
        pages: &Pages,
        iteration: u64,
    ) -> StepResult<Option<Next>> {
        let read = self.read();
        let token = read.condition_view(this.cursor).computed(&pages.token)?;
        let page = hash_of(&token.revealed().to_json());
        let state = read.loop_state(this)?;
        let Some(first) = state.pages.get(&page).copied() else {
            if state.pages.len() < MAX_PAGES {
                self.iterations().record_page(this, iteration, page)?;
            }
            return Ok(None);
        };
        Ok(Some(match pages.on_repeat {
            OnRepeat::Stop => self.end(this, LoopEnd::Repeat)?,
            OnRepeat::Fail => {
                // People count iterations from 1.
                let message = format!(
                    "loop `{}` is at page {} again: iteration {} would read what iteration {} has read",
                    this.scope.name,
                    shortened(&token.to_json(), 80),
                    iteration.saturating_add(1),
                    first.saturating_add(1)
                );
                let fault = Fault::new(fault_kind::REPEAT, message);
                self.fail(this, LoopEnd::Repeat, fault)?
            }
        }))
    }

    fn delay_or_begin(&mut self, this: LoopRef<'a>, first: bool) -> StepResult<Next> {
        let delay = match &this.spec.delay {
            Some(delay) if !first => self.delay(this, delay)?,
            _ => Duration::ZERO,
        };
        if delay.is_zero() {
            return Ok(self.begin(this)?);
        }
        let due_at = self.read().now.plus(delay);
        let timer = self
            .timers()
            .arm(this.cursor, due_at, TimerPurpose::Delay)?;
        self.iterations().delay(this, due_at)?;
        Ok(self.movement().wait(this.cursor, Wait::Timer(timer))?)
    }

    fn delay(&self, this: LoopRef<'a>, delay: &Delay) -> StepResult<Duration> {
        let read = self.read();
        let computed = |wait| read.eval_duration(this.cursor, wait, LOOP_DELAY);
        // Used for a delay that depends only on the number of the iteration.
        let backoff_delay = |backoff: &Backoff| -> MachineResult<Duration> {
            let iteration = read.loop_state(this)?.iteration;
            let seed = read.view(this.cursor).seed(&format!("delay/{iteration}"));
            let attempt = u32::try_from(iteration).unwrap_or(u32::MAX);
            Ok(retry::delay(backoff, attempt, None, seed))
        };
        match delay {
            Delay::Every(delay) => Ok(computed(delay)?),
            Delay::Backoff(backoff) => Ok(backoff_delay(backoff)?),
            Delay::Server {
                own: backoff,
                interval,
                requested,
            } => {
                let mut longest = backoff_delay(backoff)?;
                for wait in interval.iter().chain([requested]) {
                    longest = longest.max(computed(wait)?);
                }
                Ok(longest)
            }
        }
    }

    fn begin(&mut self, this: LoopRef<'a>) -> MachineResult<Next> {
        self.iterations().begin(this)?;
        self.movement().move_to(this.cursor, this.scope.body)
    }

    /// Continues after a delay. If no process was running, the loop's deadline may have passed. Then no iteration
    /// begins, because it would be cancelled at once.
    pub fn delay_ended(&mut self, cursor: CursorId) -> MachineResult<Next> {
        let this = self.read().loop_on_top(cursor)?;
        match self.read().is_late(this)? {
            true => self.limit(this, LoopEnd::Timeout, true),
            false => self.begin(this),
        }
    }

    /// Applies the loop's policy for a limit that the loop has reached. The limit is reported in the loop's output, in
    /// the history and in `status`.
    /// `between` is true if a check between two iterations found the limit. It is false if the deadline's timer fired,
    /// which may be during an iteration or during a delay.
    pub fn limit(&mut self, this: LoopRef<'a>, end: LoopEnd, between: bool) -> MachineResult<Next> {
        let name = self.read().reported_loop(this.scope);
        let path = self.read().loop_state(this)?.path.clone();
        let mut iterations = self.iterations();
        iterations.report_limit(name, path.clone(), end);
        let then = match end {
            LoopEnd::Timeout => this.spec.on_timeout,
            _ => this.spec.on_limit,
        };
        match then {
            OnLimit::Continue => {
                self.cancel_iteration(this)?;
                self.end(this, end)
            }
            OnLimit::Fail => {
                let fault = limit_fault(self.read(), this, end)?;
                self.cancel_iteration(this)?;
                self.fail(this, end, fault)
            }
            OnLimit::Pause => {
                // If the timer fired, the cursor stays where it is, and the loop gets more time when the run is
                // resumed.
                if between {
                    self.movement().wait_for_budget(this.cursor)?;
                }
                self.pauses().pause(PauseReason::Limit(path, end))
            }
        }
    }

    /// Cancels the current iteration, if there is one. A cancelled iteration has a row, too.
    fn cancel_iteration(&mut self, this: LoopRef<'a>) -> MachineResult {
        let mut movement = self.movement();
        movement.cancel(this.cursor, this.frame() + 1, Status::Cancelled)?;
        self.iterations().end(this, Status::TimedOut)
    }

    /// Grants the loop its number of iterations and its timeout again, when the run is resumed after `on_limit: pause`.
    pub fn grant_budget(&mut self, path: &str) -> MachineResult<Next> {
        let read = self.read();
        let found = read.run.loops().find(|(_, _, state)| state.path == path);
        let gone = || Bug::new(format!("the run paused at loop {path}, which does not run"));
        let (cursor, scope, state) = found.ok_or_else(gone)?;
        let max_iterations = state.iteration.saturating_add(state.budget);
        let (old, first) = (state.deadline_timer, state.iteration == 0);
        let timeout = state.timeout_ms.map(Duration::from_millis);
        let due_at = timeout.map(|timeout| read.now.plus(timeout));
        let this = read.loop_of_frame(cursor, read.depth_of(cursor, scope)?)?;
        if let Some(old) = old {
            self.timers().disarm(old)?;
        }
        let timer = self.arm_deadline(cursor, due_at, this.id)?;
        let mut iterations = self.iterations();
        iterations.grant(this, max_iterations, due_at.zip(timer))?;
        iterations.reset_unchanged_count(this)?;
        iterations.grant_usage(this)?;
        if self.read().run.cursor(cursor)?.wait != Wait::Budget {
            return Ok(Next::Nothing);
        }
        let next = self.delay_or_begin(this, first);
        self.raise_between(this, next)
    }

    /// Ends an iteration whose body failed. A loop that survives failures continues then, as in Logic Apps.
    pub fn iteration_failed(&mut self, this: LoopRef<'a>) -> MachineResult<Next> {
        self.iterations().end(this, Status::Failed)?;
        let next = self.check(this, true, false);
        self.raise_between(this, next)
    }

    /// Raises a fault of the loop itself between two iterations.
    /// The cursor may still be at the place where the last iteration failed.
    fn raise_between(&self, this: LoopRef<'a>, next: StepResult<Next>) -> MachineResult<Next> {
        Ok(match split_fault(next)? {
            Ok(next) => next,
            Err(fault) => self.raise(this, fault, FaultOrigin::Operation),
        })
    }

    fn raise(&self, this: LoopRef<'a>, fault: Fault, origin: FaultOrigin) -> Next {
        let read = self.read();
        let error = read.locate_fault_at(this.cursor, this.scope.action, fault);
        Next::Raise(this.cursor, Box::new(error), origin)
    }

    /// Ends a loop that is complete.
    /// If the loop survives failures and its last iteration failed, the loop fails, as in Logic Apps.
    fn end(&mut self, this: LoopRef<'a>, end: LoopEnd) -> MachineResult<Next> {
        let last = self.read().loop_state(this)?.last_status;
        if this.spec.survives_failure && last == Some(Status::Failed) {
            let name = &this.scope.name;
            let because = fault_inside(self.read(), this)?.unwrap_or_default();
            let message = format!("the last iteration of loop `{name}` failed{because}");
            let fault = Fault::new("iteration", message).transient();
            return self.fail(this, LoopEnd::Failed, fault);
        }
        match split_fault(self.output(this, end))? {
            Ok(output) => {
                let mut iterations = self.iterations();
                iterations.close(this, end, Status::Succeeded, Some(output), None)?;
                let mut movement = self.movement();
                movement.pop(this.cursor, this.frame())?;
                movement.move_to(this.cursor, this.scope.exit)
            }
            Err(fault) => self.fail(this, LoopEnd::Failed, fault),
        }
    }

    /// Returns the output of a loop.
    /// If the loop's step maps outputs, the mapping computes the output from the loop's own output and the collected
    /// values.
    fn output(&self, this: LoopRef<'a>, end: LoopEnd) -> StepResult<Output> {
        let read = self.read();
        let state = read.loop_state(this)?;
        let own = own_output(this, state, end, Status::Succeeded);
        match this.scope.action {
            Some(action) => Ok(read.map_loop_output(this.cursor, action, own, &state.collected)?),
            None => Ok(own),
        }
    }

    /// Ends the loop with a fault of its own and raises the fault.
    fn fail(&mut self, this: LoopRef<'a>, end: LoopEnd, fault: Fault) -> MachineResult<Next> {
        let error = Some(fault.without_output());
        let mut iterations = self.iterations();
        iterations.close(this, end, fault.status(), None, error)?;
        self.movement().pop(this.cursor, this.frame())?;
        Ok(self.raise(this, fault, FaultOrigin::Scope))
    }
}

/// Refuses a computed limit above the operator's caps, in the same way as a limit in the file.
fn check_caps(
    caps: Caps,
    count: u64,
    timeout: Option<Duration>,
    scope: &Scope,
) -> Result<(), Fault> {
    let requested = if count > caps.count {
        format!("{count} iterations; the cap is {}", caps.count)
    } else if let Some(timeout) = timeout.filter(|timeout| *timeout > caps.timeout) {
        let (timeout, cap) = (human_duration(timeout), human_duration(caps.timeout));
        format!("a timeout of {timeout}; the cap is {cap}")
    } else {
        return Ok(());
    };
    let message = format!("loop `{}` asks for {requested}", scope.name);
    Err(Fault::new(fault_kind::LIMIT, message))
}
