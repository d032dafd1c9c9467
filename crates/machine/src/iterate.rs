//! The semantics of loops, all of them, in one place (docs/reference/loops.md).
//!
//! ```text
//!   enter ─▶ check ─▶ begin ─▶ body ─▶ repeat ─▶ check ─▶ delay ─▶ begin …
//!              │                                   │
//!              └──────── end | limit ◀─────────────┘
//! ```
//!
//! The condition is checked before a delay, so a delay is never after the last iteration; then the
//! page, in a loop over pages; then the limits, of which standing still is the last.

use super::advance::Stepper;
use super::bug::{Bug, MachineResult, StepResult, split_fault};
use super::change::Change;
use super::env::View;
use super::evaluate::{EvalResult, expression_fault, millis};
use super::event::{HistoryKind, IterationRow};
use super::movement::depth_to_u32;
use super::record::LoopEnd;
use super::record::{Output, Records};
use super::retry::{self, RaisedAt};
use super::state::{CursorId, FrameKind, LoopState, PauseReason, TimerPurpose, Wait};
use crate::program::{LoopSpec, Scope, ScopeId, ScopeKind};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_expression::{Missing, Template, Value};
use windlass_model::model::{
    Backoff, Delay, Fault, Name, OnLimit, OnMissing, OnRepeat, Pages, Status, Test, fault_kind,
    sha256,
};
use windlass_value::time::human_duration;
use windlass_value::{members, shortened};

/// A loop that a cursor is in.
#[derive(Clone, Copy)]
pub(super) struct LoopRef<'a> {
    pub cursor: CursorId,
    pub depth: u32,
    id: ScopeId,
    pub scope: &'a Scope,
    pub spec: &'a LoopSpec,
}

impl LoopRef<'_> {
    fn frame(&self) -> usize {
        self.depth as usize
    }

    /// The first and the end of the action ids in its body.
    fn inner(&self) -> (u32, u32) {
        (self.scope.inner.start, self.scope.inner.end)
    }
}

/// What an expression is for, in a message.
const LOOP_DELAY: &str = "the delay of a loop";

/// Maximum number of pages that a loop remembers: the first ones. More are not compared, so that a loop
/// whose count the operator has raised beyond all measure stays a small record.
const MAX_PAGES: usize = 100_000;

/// 128 bits of SHA-256: two tokens that differ never meet by chance.
pub(super) fn hash_of(token: &str) -> u128 {
    let hash = sha256(token.as_bytes());
    hash.first_chunk().copied().map_or(0, u128::from_be_bytes)
}

/// What the condition of a loop comes to between two iterations.
enum ConditionResult {
    Stop,
    Continue,
    /// It reads what does not exist yet.
    Missing(Box<Missing>),
}

impl<'a> Stepper<'a> {
    /// What the history calls a loop.
    pub fn reported_loop(&self, scope: &Scope) -> Name {
        self.display_name(scope.action, &scope.name)
    }

    /// Why a loop ended, in the words of its format.
    fn exit_reason(&self, label: &Name, end: LoopEnd) -> Name {
        let mut words = self.program.rules.exit_words.iter();
        let own = words.find(|(kind, reason, _)| *kind == &**label && *reason == end.as_str());
        Name::from(own.map_or(end.as_str(), |(_, _, word)| word))
    }

    pub fn enter_loop(
        &mut self,
        cursor: CursorId,
        id: ScopeId,
        scope: &'a Scope,
        (label, spec): (&Name, &LoopSpec),
    ) -> StepResult {
        let max_iterations = self.eval_count(cursor, &spec.count)?;
        let timeout = match &spec.timeout {
            Some(timeout) => Some(self.eval_duration(cursor, timeout, "the timeout of a loop")?),
            None => None,
        };
        self.within_caps(max_iterations, timeout, scope)?;
        let budgets = self.eval_budgets(cursor, spec)?;
        let path = self.view(cursor).path_of(&scope.name);
        let deadline = timeout.map(|timeout| self.now.plus(timeout));
        let deadline_timer = match deadline {
            Some(due_at) => Some(self.arm(cursor, due_at, TimerPurpose::Deadline(id))?),
            None => None,
        };
        self.report(HistoryKind::LoopStart {
            node_name: self.reported_loop(scope),
            path: path.clone(),
            max_iterations,
        });
        let action = scope.action.and_then(|action| self.program.action(action));
        let state = LoopState {
            path,
            kind: label.clone(),
            title: action.and_then(|action| action.title.clone()),
            iteration: 0,
            max_iterations,
            budget: max_iterations,
            timeout_ms: timeout.map(millis),
            started_at: self.now,
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
        self.push(cursor, id, FrameKind::Loop(Box::new(state)))?;
        let this = self.loop_on_top(cursor)?;
        self.check(this, spec.test == Test::Before, true)
    }

    /// How many iterations or items at most.
    pub fn eval_count(&mut self, cursor: CursorId, count: &Template) -> EvalResult<u64> {
        let count = self.eval(cursor, count)?;
        let whole = count.revealed().as_whole();
        let whole = whole.and_then(|count| u64::try_from(count).ok());
        whole.ok_or_else(|| {
            let count = count.to_json();
            let message = format!("the count of a loop must be a whole number, not {count}");
            Fault::new(fault_kind::EXPRESSION, message)
        })
    }

    /// A computed limit is held to the operator's caps as a written one is.
    fn within_caps(&self, count: u64, timeout: Option<Duration>, scope: &Scope) -> EvalResult<()> {
        let caps = self.program.caps;
        let asked = if count > caps.count {
            format!("{count} iterations; the cap is {}", caps.count)
        } else if let Some(timeout) = timeout.filter(|timeout| *timeout > caps.timeout) {
            let (timeout, cap) = (human_duration(timeout), human_duration(caps.timeout));
            format!("a timeout of {timeout}; the cap is {cap}")
        } else {
            return Ok(());
        };
        Err(Fault::new(
            fault_kind::LIMIT,
            format!("loop `{}` asks for {asked}", scope.name),
        ))
    }

    /// `Op::Repeat`: the iteration boundary.
    pub fn repeat(&mut self, cursor: CursorId) -> StepResult {
        let this = self.loop_on_top(cursor)?;
        if !self.try_cross_boundary(cursor, cursor, true) {
            return Ok(());
        }
        self.collect_outputs(this)?;
        self.end_iteration(this, Status::Succeeded)?;
        self.check(this, true, false)
    }

    /// Checks condition and limits, in this order: a condition that holds when it is checked counts as met,
    /// however late. Ends the loop, delays, or begins an iteration.
    fn check(&mut self, this: LoopRef<'a>, look: bool, first: bool) -> StepResult {
        let state = self.loop_state(this)?;
        let iteration = state.iteration;
        let spent = iteration >= state.max_iterations;
        let late = self.is_late(this)?;
        if look && (!spent || this.spec.test_when_spent) {
            match self.evaluate_condition(this)? {
                ConditionResult::Stop => {
                    self.record_condition(this, !this.spec.negated)?;
                    return Ok(self.end_loop(this, LoopEnd::Condition)?);
                }
                ConditionResult::Continue => self.record_condition(this, this.spec.negated)?,
                ConditionResult::Missing(_) => {}
            }
            if !first {
                self.record_feedback(this)?;
            }
        }
        if let Some(pages) = &this.spec.pages
            && self.is_repeated_page(this, pages, iteration)?
        {
            return Ok(());
        }
        let unchanged = !first && self.is_unchanged(this)?;
        let limit = match (late, spent) {
            (true, _) => Some(LoopEnd::Timeout),
            (false, true) => Some(LoopEnd::Count),
            (false, false) => {
                let used = self.used_budget(this)?;
                used.or(unchanged.then_some(LoopEnd::Unchanged))
            }
        };
        match limit {
            Some(end) => Ok(self.limit(this, end, true)?),
            None => self.delay_or_begin(this, first),
        }
    }

    fn evaluate_condition(&self, this: LoopRef<'a>) -> EvalResult<ConditionResult> {
        let view = View {
            missing_as_null: true,
            ..self.view(this.cursor)
        };
        match (view.holds(&this.spec.stop_when), this.spec.on_missing) {
            (Ok(true), _) => Ok(ConditionResult::Stop),
            (Ok(false), _) => Ok(ConditionResult::Continue),
            (Err(error), OnMissing::Fail) => Err(expression_fault(&error)),
            (Err(mut error), OnMissing::Wait) => match error.missing.take() {
                Some(missing) => Ok(ConditionResult::Missing(missing)),
                None => Err(expression_fault(&error)),
            },
        }
    }

    /// Whether the next iteration would read a page again; then the loop is over.
    fn is_repeated_page(
        &mut self,
        this: LoopRef<'a>,
        pages: &Pages,
        iteration: u64,
    ) -> StepResult<bool> {
        let token = self.eval_missing_as_null(this.cursor, &pages.token)?;
        let page = hash_of(&token.revealed().to_json());
        let state = self.loop_state(this)?;
        let Some(first) = state.pages.get(&page).copied() else {
            if state.pages.len() < MAX_PAGES {
                let LoopRef { cursor, depth, .. } = this;
                self.emit(Change::PageSeen {
                    cursor,
                    depth,
                    iteration,
                    page,
                })?;
            }
            return Ok(false);
        };
        match pages.on_repeat {
            OnRepeat::Stop => self.end_loop(this, LoopEnd::Repeat)?,
            OnRepeat::Fail => {
                let message = format!(
                    "loop `{}` is at page {} again: iteration {iteration} would read what \
                     iteration {first} has read",
                    this.scope.name,
                    shortened(&token.to_json(), 80)
                );
                let fault = Fault::new(fault_kind::REPEAT, message);
                self.fail_loop(this, LoopEnd::Repeat, fault)?;
            }
        }
        Ok(true)
    }

    fn delay_or_begin(&mut self, this: LoopRef<'a>, first: bool) -> StepResult {
        let LoopRef { cursor, depth, .. } = this;
        if !first && let Some(delay) = &this.spec.delay {
            let delay = match delay {
                Delay::Every(delay) => self.eval_duration(cursor, delay, LOOP_DELAY)?,
                Delay::Backoff(own) => self.own_delay(this, own)?,
                Delay::Server {
                    own,
                    interval,
                    asked,
                } => {
                    let mut delay = self.own_delay(this, own)?;
                    for wait in interval.iter().chain([asked]) {
                        delay = delay.max(self.eval_duration(cursor, wait, LOOP_DELAY)?);
                    }
                    delay
                }
            };
            if !delay.is_zero() {
                let due_at = self.now.plus(delay);
                let timer = self.arm(cursor, due_at, TimerPurpose::Delay)?;
                self.emit(Change::LoopDelayed {
                    cursor,
                    depth,
                    due_at,
                })?;
                return Ok(self.emit(Change::Waits(cursor, Wait::Timer(timer)))?);
            }
        }
        Ok(self.begin(this)?)
    }

    /// A wait between two iterations that needs nothing but their number.
    fn own_delay(&self, this: LoopRef<'a>, backoff: &Backoff) -> MachineResult<Duration> {
        let iteration = self.loop_state(this)?.iteration;
        let seed = self.view(this.cursor).seed(&format!("delay/{iteration}"));
        let attempt = u32::try_from(iteration).unwrap_or(u32::MAX);
        Ok(retry::delay(backoff, attempt, None, seed))
    }

    fn begin(&mut self, this: LoopRef<'a>) -> MachineResult {
        let LoopRef { cursor, depth, .. } = this;
        if this.spec.test == Test::Before && !self.program.rules.reports_checks {
            let seen = self.loop_state(this)?.last_condition;
            self.report_iteration(this, seen)?;
        }
        self.emit(Change::IterationBegan {
            cursor,
            depth,
            inner: this.inner(),
            at: self.now,
        })?;
        self.emit(Change::Moved(cursor, this.scope.body))
    }

    /// A delay is over. When the loop's time has passed meanwhile, because no process was running, nothing begins
    /// that would be cancelled at once.
    pub fn begin_iteration(&mut self, cursor: CursorId) -> MachineResult {
        let this = self.loop_on_top(cursor)?;
        match self.is_late(this)? {
            true => self.limit(this, LoopEnd::Timeout, true),
            false => self.begin(this),
        }
    }

    fn is_late(&self, this: LoopRef<'a>) -> MachineResult<bool> {
        let deadline = self.loop_state(this)?.deadline;
        Ok(deadline.is_some_and(|deadline| self.now >= deadline))
    }

    /// `Op::Break`.
    pub fn break_out(&mut self, cursor: CursorId) -> StepResult {
        let (depth, _) = self.top_frame(cursor)?;
        let Some(this) = self.loop_at(cursor, depth)? else {
            return Ok(self.break_fork(cursor)?);
        };
        if self.try_cross_boundary(cursor, cursor, true) {
            self.collect_outputs(this)?;
            self.end_iteration(this, Status::Succeeded)?;
            self.end_loop(this, LoopEnd::Break)?;
        }
        Ok(())
    }

    fn record_condition(&mut self, this: LoopRef<'a>, value: bool) -> MachineResult {
        let LoopRef { cursor, depth, .. } = this;
        self.emit(Change::ConditionSeen {
            cursor,
            depth,
            value,
        })?;
        if this.spec.test != Test::Before {
            // It belongs to the iteration that has just ended: to its row and its event.
            if let Some(row) = self.out.iterations.last_mut() {
                row.condition = Some(value);
            }
            let event = self.out.history.last_mut().map(|event| &mut event.what);
            if let Some(HistoryKind::LoopIteration {
                condition_result, ..
            }) = event
            {
                *condition_result = Some(value);
            }
        } else if self.program.rules.reports_checks {
            self.report_iteration(this, Some(value))?;
        }
        Ok(())
    }

    fn report_iteration(&mut self, this: LoopRef<'a>, condition: Option<bool>) -> MachineResult {
        let state = self.loop_state(this)?;
        let (path, iteration) = (state.path.clone(), state.iteration);
        self.report(HistoryKind::LoopIteration {
            node_name: self.reported_loop(this.scope),
            path,
            iteration,
            condition_result: condition,
        });
        Ok(())
    }

    /// Ends the current iteration, if one runs: its row, and its count. One that is cancelled has a
    /// row too, and is as if it had never begun for all that comes after: so that is the same
    /// wherever the iteration was when it was cancelled.
    fn end_iteration(&mut self, this: LoopRef<'a>, status: Status) -> MachineResult {
        let state = self.loop_state(this)?;
        let Some(started_at) = state.iteration_started_at else {
            return Ok(());
        };
        let before = this.spec.test == Test::Before;
        let reading = self.reading(self.run.records_of(this.cursor)?);
        let row = IterationRow {
            path: state.path.clone(),
            iteration: state.iteration,
            condition: state.last_condition.filter(|_| before),
            status,
            result: reading.bounded(&this.scope.children),
            started_at,
            ended_at: self.now,
        };
        self.out.iterations.push(row);
        if !before {
            self.report_iteration(this, None)?;
        }
        let LoopRef { cursor, depth, .. } = this;
        self.emit(match status {
            Status::TimedOut | Status::Cancelled => Change::IterationCancelled {
                cursor,
                depth,
                inner: this.inner(),
            },
            Status::Succeeded | Status::Failed | Status::Skipped => Change::IterationEnded {
                cursor,
                depth,
                status,
            },
        })
    }

    // ── limits ──────────────────────────────────────────────────────────────────────────────

    /// A limit never passes silently: it is in the loop's output, in the history and in `status`.
    /// `between`: it is reached between two iterations, not by a deadline in the middle of things.
    fn limit(&mut self, this: LoopRef<'a>, end: LoopEnd, between: bool) -> MachineResult {
        let path = self.loop_state(this)?.path.clone();
        self.report(HistoryKind::LoopLimit {
            node_name: self.reported_loop(this.scope),
            path: path.clone(),
            limit: end,
        });
        let then = match end {
            LoopEnd::Timeout => this.spec.on_timeout,
            _ => this.spec.on_limit,
        };
        match then {
            OnLimit::Continue => {
                self.cancel_iteration(this)?;
                self.end_loop(this, end)
            }
            OnLimit::Fail => {
                let fault = self.limit_fault(this, end)?;
                self.cancel_iteration(this)?;
                self.fail_loop(this, end, fault)
            }
            OnLimit::Pause => {
                // In the middle of things everything stays as it is: the resume gives more time.
                if between {
                    self.emit(Change::Waits(this.cursor, Wait::Budget))?;
                }
                self.pause(PauseReason::Limit(path, end))
            }
        }
    }

    /// The loop is over and failed, with a fault of its own.
    fn fail_loop(&mut self, this: LoopRef<'a>, end: LoopEnd, fault: Fault) -> MachineResult {
        let error = Some(fault.without_output());
        self.close_loop(this, end, fault.status(), None, error)?;
        self.pop(this.cursor, this.frame())?;
        let error = self.locate_fault_at(this.cursor, this.scope.action, fault);
        self.raise(this.cursor, error, RaisedAt::Through)
    }

    /// What the condition waited for at a limit, if that does not exist.
    fn missing_at_limit(&self, this: LoopRef<'a>) -> MachineResult<String> {
        let state = self.loop_state(this)?;
        // In the middle of an iteration, some actions of the last one are gone.
        let between = state.iteration_started_at.is_none();
        let waits = between && this.spec.on_missing == OnMissing::Wait;
        let missing = match waits.then(|| self.evaluate_condition(this)) {
            Some(Ok(ConditionResult::Missing(missing))) => missing,
            _ => return Ok(String::new()),
        };
        let path = &missing.path;
        let members = missing.object.map(|(object, names)| {
            let members = members(names.iter().map(String::as_str));
            format!("; `{object}`: {members}")
        });
        let members = members.unwrap_or_default();
        Ok(match state.last_condition {
            None => format!(": `{path}` never appeared{members}"),
            Some(_) => format!(": `{path}` is missing from the last result{members}"),
        })
    }

    fn limit_fault(&self, this: LoopRef<'a>, end: LoopEnd) -> MachineResult<Fault> {
        let (name, state) = (&this.scope.name, self.loop_state(this)?);
        let missing = self.missing_at_limit(this)?;
        let handled = self.fault_inside(this)?;
        let handled = handled.map(|fault| format!("; its last iteration had a failure{fault}"));
        let handled = handled.unwrap_or_default();
        let answer = match handled.is_empty() {
            true => self.last_answer(this)?,
            false => String::new(),
        };
        let fault = match end {
            LoopEnd::Timeout => {
                let after = Duration::from_millis(state.timeout_ms.unwrap_or(0));
                let after = human_duration(after);
                let because = self.failed_attempt(this.cursor, this.frame())?;
                let message = format!(
                    "loop `{name}` was not done within its timeout of {after}{missing}{answer}{because}{handled}"
                );
                Fault::new(fault_kind::TIMEOUT, message)
            }
            LoopEnd::Unchanged => {
                let times = this.spec.unchanged.as_ref().map_or(0, |limit| limit.times);
                let message = format!("loop `{name}` gave the same {times} times in a row");
                Fault::new(fault_kind::LIMIT, message)
            }
            LoopEnd::Tokens | LoopEnd::Cost => {
                let mut budgets = state.budgets();
                let used = budgets.find(|budget| budget.kind.as_str() == end.as_str());
                let used = used.map(|used| used.text()).unwrap_or_default();
                let message = format!(
                    "loop `{name}` was not done within its budget: {used}{missing}{answer}{handled}"
                );
                Fault::new(fault_kind::LIMIT, message)
            }
            _ => {
                let count = state.max_iterations;
                let message = format!(
                    "loop `{name}` was not done after its {count} iterations{missing}{answer}{handled}"
                );
                Fault::new(fault_kind::LIMIT, message)
            }
        };
        Ok(fault.transient())
    }

    /// A deadline in the middle of an iteration cancels it; it still has a row.
    fn cancel_iteration(&mut self, this: LoopRef<'a>) -> MachineResult {
        self.cancel(this.cursor, this.frame() + 1, Status::Cancelled)?;
        self.end_iteration(this, Status::TimedOut)
    }

    /// A loop's or a deadline's time is up.
    pub fn deadline_passed(&mut self, cursor: CursorId, scope: ScopeId) -> MachineResult {
        let mut frames = self.run.cursor(cursor)?.frames.iter();
        let depth = frames.rposition(|frame| frame.scope == scope);
        let depth = depth.ok_or_else(|| {
            Bug::new(format!(
                "no cursor is in {scope}, whose deadline has passed"
            ))
        })?;
        match self.loop_at(cursor, depth)? {
            Some(this) => self.limit(this, LoopEnd::Timeout, false),
            None => self.step_timed_out(cursor, depth),
        }
    }

    /// A resume after `on_limit: pause` grants the same budget again.
    pub fn grant_budget(&mut self, path: &str) -> MachineResult {
        let mut loops = self.run.cursors.iter().flat_map(|(id, cursor)| {
            let frames = cursor.frames.iter().enumerate();
            frames.filter_map(move |(depth, frame)| match &frame.kind {
                FrameKind::Loop(state) => Some((*id, depth, state)),
                _ => None,
            })
        });
        let found = loops.find(|(_, _, state)| state.path == path);
        let gone = || Bug::new(format!("the run paused at loop {path}, which does not run"));
        let (cursor, depth, state) = found.ok_or_else(gone)?;
        let max_iterations = state.iteration.saturating_add(state.budget);
        let (timeout, old, first) = (state.timeout_ms, state.deadline_timer, state.iteration == 0);
        let this = self.loop_at(cursor, depth)?.ok_or_else(gone)?;
        if let Some(old) = old {
            self.disarm(old)?;
        }
        let deadline = match timeout {
            Some(timeout) => {
                let due_at = self.now.plus(Duration::from_millis(timeout));
                let timer = self.arm(cursor, due_at, TimerPurpose::Deadline(this.id))?;
                Some((due_at, timer))
            }
            None => None,
        };
        self.emit(Change::BudgetGranted {
            cursor,
            depth: this.depth,
            max_iterations,
            deadline,
        })?;
        self.reset_unchanged_count(this)?;
        self.grant_usage(this)?;
        if self.run.cursor(cursor)?.wait == Wait::Budget {
            let done = self.delay_or_begin(this, first);
            self.raise_between(this, done)?;
        }
        Ok(())
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    /// Azure: a failed body ends the iteration, not the loop.
    pub fn iteration_failed(&mut self, this: LoopRef<'a>) -> MachineResult {
        self.end_iteration(this, Status::Failed)?;
        let done = self.check(this, true, false);
        self.raise_between(this, done)
    }

    /// Raises a fault of the loop's own between two iterations. The cursor may still be where the last one failed.
    fn raise_between(&mut self, this: LoopRef<'a>, done: StepResult) -> MachineResult {
        match split_fault(done)? {
            Ok(()) => Ok(()),
            Err(fault) => {
                let error = self.locate_fault_at(this.cursor, this.scope.action, fault);
                self.raise(this.cursor, error, RaisedAt::Here)
            }
        }
    }

    /// The loop is over and did what it should, unless it survived a failure that was its last
    /// iteration's: that one counts (Azure).
    fn end_loop(&mut self, this: LoopRef<'a>, end: LoopEnd) -> MachineResult {
        let last = self.loop_state(this)?.last_status;
        if this.spec.survives_failure && last == Some(Status::Failed) {
            let name = &this.scope.name;
            let because = self.fault_inside(this)?.unwrap_or_default();
            let message = format!("the last iteration of loop `{name}` failed{because}");
            let fault = Fault::new("iteration", message).transient();
            return self.fail_loop(this, LoopEnd::Failed, fault);
        }
        match split_fault(self.loop_output(this, end))? {
            Ok(output) => {
                self.close_loop(this, end, Status::Succeeded, Some(output), None)?;
                self.pop(this.cursor, this.frame())?;
                self.emit(Change::Moved(this.cursor, this.scope.exit))
            }
            Err(fault) => self.fail_loop(this, LoopEnd::Failed, fault),
        }
    }

    /// What went wrong last in an iteration that ended.
    fn fault_inside(&self, this: LoopRef<'a>) -> MachineResult<Option<String>> {
        let records = self.run.records_of(this.cursor)?;
        let mut faults = this.scope.children.iter().filter_map(|id| {
            let fault = records.get(id)?.error.as_ref()?;
            let name = &self.program.action(*id)?.name;
            Some(format!(": `{name}`: {}", fault.message))
        });
        Ok(faults.next_back())
    }

    /// The output of a loop: its own, or what its step makes of it and of what was collected.
    fn loop_output(&self, this: LoopRef<'a>, end: LoopEnd) -> StepResult<Output> {
        let state = self.loop_state(this)?;
        let own = own_output(this, state, end, Status::Succeeded);
        match this.scope.action {
            Some(action) => Ok(self.map_loop_output(this.cursor, action, own, &state.collected)?),
            None => Ok(own),
        }
    }

    /// The loop's record, and its last event in the history; its frame is popped by the caller.
    fn close_loop(
        &mut self,
        this: LoopRef<'a>,
        end: LoopEnd,
        status: Status,
        output: Option<Output>,
        error: Option<Fault>,
    ) -> MachineResult {
        let LoopRef { cursor, depth, .. } = this;
        self.emit(Change::LoopEnded { cursor, depth, end })?;
        let state = self.loop_state(this)?;
        let output = output.unwrap_or_else(|| own_output(this, state, end, status));
        let (iterations, started_at) = (state.iteration, state.started_at);
        let exit_reason = self.exit_reason(&state.kind, end);
        let (path, row) = (state.path.clone(), state.row());
        self.out.loops.push(row);
        self.report(HistoryKind::LoopEnd {
            node_name: self.reported_loop(this.scope),
            path,
            iterations_completed: iterations,
            exit_reason,
        });
        match this.scope.action {
            Some(action) => self.record(cursor, action, status, output, error, started_at),
            None => Ok(()),
        }
    }

    /// A fault is on its way out through this loop.
    pub fn loop_failed(&mut self, this: LoopRef<'a>, fault: &Fault) -> MachineResult {
        self.end_iteration(this, Status::Failed)?;
        let fault = Some(fault.without_output());
        self.close_loop(this, LoopEnd::Failed, Status::Failed, None, fault)
    }

    /// Something that encloses this loop ends it; its frame is popped by the caller.
    pub fn loop_cancelled(&mut self, cursor: CursorId, depth: usize) -> MachineResult {
        let Some(this) = self.loop_at(cursor, depth)? else {
            return Err(not_in_loop(cursor));
        };
        if let Some(timer) = self.loop_state(this)?.deadline_timer {
            self.disarm(timer)?;
        }
        self.end_iteration(this, Status::Cancelled)?;
        self.close_loop(this, LoopEnd::Cancelled, Status::Cancelled, None, None)
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    pub fn loop_on_top(&self, cursor: CursorId) -> MachineResult<LoopRef<'a>> {
        let (depth, _) = self.top_frame(cursor)?;
        self.loop_at(cursor, depth)?
            .ok_or_else(|| not_in_loop(cursor))
    }

    /// The loop at this depth, if that is a loop.
    pub fn loop_at(&self, cursor: CursorId, depth: usize) -> MachineResult<Option<LoopRef<'a>>> {
        let id = self.run.frame(cursor, depth)?.scope;
        let scope = self.scope(id)?;
        Ok(match &scope.kind {
            ScopeKind::Loop(_, spec) => Some(LoopRef {
                cursor,
                depth: depth_to_u32(depth),
                id,
                scope,
                spec,
            }),
            _ => None,
        })
    }

    pub fn loop_state(&self, this: LoopRef<'_>) -> MachineResult<&LoopState> {
        match &self.run.frame(this.cursor, this.frame())?.kind {
            FrameKind::Loop(state) => Ok(state),
            _ => Err(not_in_loop(this.cursor)),
        }
    }
}

fn not_in_loop(cursor: CursorId) -> Bug {
    Bug::new(format!("cursor {} is in no loop there", cursor.0))
}

fn own_output(this: LoopRef<'_>, state: &LoopState, end: LoopEnd, status: Status) -> Output {
    Output::Loop {
        iterations: state.iteration,
        status,
        end,
        body: this.scope.children.clone(),
    }
}
