//! The semantics of loops, all of them, in one place (spec: loom.md, "Loops").
//!
//! ```text
//!   enter ─▶ check ─▶ begin ─▶ body ─▶ repeat ─▶ check ─▶ delay ─▶ begin …
//!              │                                   │
//!              └──────── end | limit ◀─────────────┘
//! ```
//!
//! The condition is looked at before a delay, so a delay is never after the last iteration; then the
//! page, in a loop over pages; then the limits.

use super::advance::Stepper;
use super::change::Change;
use super::evaluate::{Faulty, millis};
use super::event::{Happening, IterationRow};
use super::fault::Raised;
use super::movement::narrow;
use super::record::{Output, Reading};
use super::state::{CursorId, FrameKind, LoopEnd, LoopState, PauseReason, TimerPurpose, Wait};
use crate::expression::{Object, Value};
use crate::model::{Dialect, Fault, Name, OnLimit, OnRepeat, Pages, Status, Test, fault_kind};
use crate::program::{LoopSpec, Scope, ScopeId, ScopeKind};
use crate::time::{Timestamp, format_duration};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// A loop a cursor is in.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    cursor: CursorId,
    depth: usize,
    id: ScopeId,
    scope: &'a Scope,
    spec: &'a LoopSpec,
}

impl Here<'_> {
    fn at(&self) -> (CursorId, u32) {
        (self.cursor, narrow(self.depth))
    }

    /// The first and the end of the action ids in its body.
    fn inner(&self) -> (u32, u32) {
        (self.scope.inner.start, self.scope.inner.end)
    }
}

/// Why a loop ended, in the words of its format: TEA's are those of its story TEA-PY-003, the
/// canvas has `limit` (spec: canvas.md).
fn exit_reason(spec: &LoopSpec, end: LoopEnd) -> Name {
    Name::from(match (&*spec.label, end) {
        ("while_loop", LoopEnd::Condition) => "condition_false",
        ("while_loop", LoopEnd::Count) => "max_iterations_reached",
        ("loop", LoopEnd::Count) => "limit",
        (_, end) => end.as_str(),
    })
}

/// So many pages of a loop are remembered: the first ones. More are not compared, so that a loop
/// whose count the operator has raised beyond all measure stays a small record.
const MAX_PAGES: usize = 100_000;

/// 128 bits of SHA-256: two tokens that differ never meet by chance.
fn page_hash(token: &str) -> u128 {
    let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    hash.first_chunk().copied().map_or(0, u128::from_be_bytes)
}

/// The beginning of a token, for people.
fn shortened(token: &str) -> String {
    let mut short: String = token.chars().take(80).collect();
    if short.len() < token.len() {
        short.push('…');
    }
    short
}

impl<'a> Stepper<'a> {
    /// What the history calls a loop.
    fn told_loop(&self, scope: &Scope) -> Name {
        let node = self.told(scope.action);
        node.unwrap_or_else(|| scope.name.clone())
    }

    pub fn enter_loop(
        &mut self,
        cursor: CursorId,
        id: ScopeId,
        scope: &'a Scope,
        spec: &'a LoopSpec,
    ) -> Faulty<()> {
        let count = self.eval(cursor, &spec.count)?;
        let max_iterations = count
            .revealed()
            .as_int()
            .and_then(|count| u64::try_from(count).ok());
        let max_iterations = max_iterations.ok_or_else(|| {
            let count = count.to_json();
            let message = format!("the count of a loop must be a whole number, not {count}");
            Fault::new(fault_kind::EXPRESSION, message)
        })?;
        let timeout = match &spec.timeout {
            Some(timeout) => Some(self.eval_duration(cursor, timeout, "the timeout of a loop")?),
            None => None,
        };
        self.within_caps(max_iterations, timeout, scope)?;
        let path = self.view(cursor).path_of(&scope.name);
        let deadline = timeout.map(|timeout| self.now.plus(timeout));
        let deadline_timer =
            deadline.map(|due_at| self.arm(cursor, due_at, TimerPurpose::Deadline(id)));
        self.note(Happening::LoopStart {
            node_name: self.told_loop(scope),
            path: path.clone(),
            max_iterations,
        });
        let state = LoopState {
            path,
            kind: spec.label.clone(),
            title: scope
                .action
                .and_then(|action| self.program.action(action)?.title.clone()),
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
            last: super::Records::new(),
            kept: Value::object(Object::new()),
            ended: None,
            pages: std::collections::BTreeMap::new(),
        };
        self.push(cursor, id, FrameKind::Loop(state));
        match self.loop_on_top(cursor) {
            Some(here) => self.check(here, spec.test == Test::Before, true),
            None => Ok(()),
        }
    }

    /// A computed limit is held to the operator's caps as a written one is.
    fn within_caps(&self, count: u64, timeout: Option<Duration>, scope: &Scope) -> Faulty<()> {
        let caps = self.program.caps;
        let asked = if count > caps.count {
            format!("{count} iterations; the cap is {}", caps.count)
        } else if let Some(timeout) = timeout.filter(|timeout| *timeout > caps.timeout) {
            let (timeout, cap) = (format_duration(timeout), format_duration(caps.timeout));
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
    pub fn repeat(&mut self, cursor: CursorId) -> Faulty<()> {
        let Some(here) = self.loop_on_top(cursor) else {
            return Ok(());
        };
        if !self.may_cross(cursor, cursor) {
            return Ok(());
        }
        self.keep(here.cursor, here.at().1, here.spec)?;
        self.end_iteration(here, Status::Succeeded);
        self.check(here, true, false)
    }

    /// Looks at condition and limits, in this order: what holds when it is looked at was reached,
    /// however late. Ends the loop, delays, or begins an iteration.
    fn check(&mut self, here: Here<'a>, look: bool, first: bool) -> Faulty<()> {
        let Some(state) = self.loop_state(here) else {
            return Ok(());
        };
        let iteration = state.iteration;
        let spent = iteration >= state.max_iterations;
        let late = self.is_late(here);
        if look && (!spent || here.spec.test_when_spent) {
            let stop = self.holds(here.cursor, &here.spec.stop_when, true)?;
            self.saw_condition(here, stop != here.spec.negated);
            if stop {
                self.end_loop(here, LoopEnd::Condition);
                return Ok(());
            }
        }
        if let Some(pages) = &here.spec.pages
            && self.page_repeats(here, pages, iteration)?
        {
            return Ok(());
        }
        if late || spent {
            let end = match late {
                true => LoopEnd::Timeout,
                false => LoopEnd::Count,
            };
            self.limit(here, end, true);
            return Ok(());
        }
        self.delay_or_begin(here, first)
    }

    /// Whether the next iteration would read a page again; then the loop is over.
    fn page_repeats(&mut self, here: Here<'a>, pages: &Pages, iteration: u64) -> Faulty<bool> {
        let token = self.eval_forgiving(here.cursor, &pages.token)?;
        let page = page_hash(&token.revealed().to_json());
        let Some(state) = self.loop_state(here) else {
            return Ok(false);
        };
        let Some(first) = state.pages.get(&page).copied() else {
            if state.pages.len() < MAX_PAGES {
                let (cursor, depth) = here.at();
                self.emit(Change::PageSeen {
                    cursor,
                    depth,
                    iteration,
                    page,
                });
            }
            return Ok(false);
        };
        match pages.on_repeat {
            OnRepeat::Stop => self.end_loop(here, LoopEnd::Repeat),
            OnRepeat::Fail => {
                let message = format!(
                    "loop `{}` is at page {} again: iteration {iteration} would read what \
                     iteration {first} has read",
                    here.scope.name,
                    shortened(&token.to_json())
                );
                let fault = Fault::new(fault_kind::REPEAT, message);
                self.fail_loop(here, LoopEnd::Repeat, fault);
            }
        }
        Ok(true)
    }

    fn delay_or_begin(&mut self, here: Here<'a>, first: bool) -> Faulty<()> {
        if !first && let Some(delay) = &here.spec.delay {
            let delay = self.eval_duration(here.cursor, delay, "the delay of a loop")?;
            if !delay.is_zero() {
                let due_at = self.now.plus(delay);
                let timer = self.arm(here.cursor, due_at, TimerPurpose::Delay);
                let (cursor, depth) = here.at();
                self.emit(Change::LoopDelayed {
                    cursor,
                    depth,
                    due_at,
                });
                self.emit(Change::Waits(cursor, Wait::Timer(timer)));
                return Ok(());
            }
        }
        self.begin(here);
        Ok(())
    }

    fn begin(&mut self, here: Here<'a>) {
        let (cursor, depth) = here.at();
        if here.spec.test == Test::Before && self.program.dialect != Dialect::Tea {
            let state = self.loop_state(here);
            self.tell_iteration(here, state.and_then(|state| state.last_condition));
        }
        self.emit(Change::IterationBegan {
            cursor,
            depth,
            inner: here.inner(),
            at: self.now,
        });
        self.emit(Change::Moved(cursor, here.scope.body));
    }

    /// A delay is over. When its time has passed meanwhile, because nobody was there, nothing begins
    /// that would be cut at once.
    pub fn begin_iteration(&mut self, cursor: CursorId) {
        if let Some(here) = self.loop_on_top(cursor) {
            match self.is_late(here) {
                true => self.limit(here, LoopEnd::Timeout, true),
                false => self.begin(here),
            }
        }
    }

    fn is_late(&self, here: Here<'a>) -> bool {
        let deadline = self.loop_state(here).and_then(|state| state.deadline);
        deadline.is_some_and(|deadline| self.now >= deadline)
    }

    /// `Op::Break`.
    pub fn break_out(&mut self, cursor: CursorId) -> Faulty<()> {
        let Some(here) = self.loop_on_top(cursor) else {
            self.break_fork(cursor);
            return Ok(());
        };
        if self.may_cross(cursor, cursor) {
            self.keep(here.cursor, here.at().1, here.spec)?;
            self.end_iteration(here, Status::Succeeded);
            self.end_loop(here, LoopEnd::Break);
        }
        Ok(())
    }

    fn saw_condition(&mut self, here: Here<'a>, value: bool) {
        let (cursor, depth) = here.at();
        self.emit(Change::ConditionSeen {
            cursor,
            depth,
            value,
        });
        if here.spec.test == Test::After {
            // It belongs to the iteration that has just ended: to what is kept and told of that.
            if let Some(row) = self.out.iterations.last_mut() {
                row.condition = Some(value);
            }
            let told = self.out.history.last_mut().map(|event| &mut event.what);
            if let Some(Happening::LoopIteration {
                condition_result, ..
            }) = told
            {
                *condition_result = Some(value);
            }
        } else if self.program.dialect == Dialect::Tea {
            // The Edge Agent tells the look that ends a loop too; elsewhere an iteration is told once.
            self.tell_iteration(here, Some(value));
        }
    }

    fn tell_iteration(&mut self, here: Here<'a>, condition: Option<bool>) {
        let state = self.loop_state(here);
        let iteration = state.map_or(0, |state| state.iteration);
        let path = self.loop_path(here);
        self.note(Happening::LoopIteration {
            node_name: self.told_loop(here.scope),
            path,
            iteration,
            condition_result: condition,
        });
    }

    /// Ends the current iteration, if one runs: its row, and its count. One that is cut has a row
    /// too, and is as if it had never begun for all that comes after: so it is the same for them
    /// where the cut fell.
    fn end_iteration(&mut self, here: Here<'a>, status: Status) {
        let Some(state) = self.loop_state(here) else {
            return;
        };
        let Some(started_at) = state.iteration_started_at else {
            return;
        };
        let row = IterationRow {
            path: state.path.clone(),
            iteration: state.iteration,
            condition: state
                .last_condition
                .filter(|_| here.spec.test == Test::Before),
            status,
            result: self.body_result(here),
            started_at,
            ended_at: self.now,
        };
        self.out.iterations.push(row);
        if here.spec.test == Test::After {
            self.tell_iteration(here, None);
        }
        let (cursor, depth) = here.at();
        self.emit(match status {
            Status::TimedOut | Status::Cancelled => Change::IterationCut {
                cursor,
                depth,
                inner: here.inner(),
            },
            Status::Succeeded | Status::Failed | Status::Skipped => Change::IterationEnded {
                cursor,
                depth,
                status,
            },
        });
    }

    fn body_result(&self, here: Here<'a>) -> crate::expression::Value {
        let home = self.run.home(here.cursor);
        let Some(home) = self.run.cursors.get(&home) else {
            return Default::default();
        };
        let reading = Reading {
            program: self.program,
            variables: self.run.variables_of(here.cursor),
            records: &home.records,
            row: true,
        };
        reading.bounded(&here.scope.children)
    }

    // ── limits ──────────────────────────────────────────────────────────────────────────────

    /// A limit never passes silently: it is in the loop's output, in the history and in `status`.
    /// `between`: it is reached between two iterations, not by a deadline in the middle of things.
    fn limit(&mut self, here: Here<'a>, end: LoopEnd, between: bool) {
        let path = self.loop_path(here);
        self.note(Happening::LoopLimit {
            node_name: self.told_loop(here.scope),
            path: path.clone(),
            limit: end,
        });
        let then = match end {
            LoopEnd::Timeout => here.spec.on_timeout,
            _ => here.spec.on_limit,
        };
        match then {
            OnLimit::Continue => {
                self.cut_iteration(here);
                self.end_loop(here, end);
            }
            OnLimit::Fail => {
                let fault = self.limit_fault(here, end);
                self.cut_iteration(here);
                self.fail_loop(here, end, fault);
            }
            OnLimit::Pause => {
                // In the middle of things everything stays as it is: the resume gives more time.
                if between {
                    self.emit(Change::Waits(here.cursor, Wait::Budget));
                }
                self.pause(PauseReason::Limit(path, end));
            }
        }
    }

    /// The loop is over and failed, with a fault of its own.
    fn fail_loop(&mut self, here: Here<'a>, end: LoopEnd, fault: Fault) {
        let status = super::fault::status_of(&fault);
        let output = self.own_output(here, end, status);
        let error = Some(fault.without_output());
        self.close_loop(here, end, status, output, error);
        self.pop(here.cursor, here.depth);
        let error = self.located_at(here.cursor, here.scope.action, fault);
        self.raise(here.cursor, error, Raised::Through);
    }

    fn limit_fault(&self, here: Here<'a>, end: LoopEnd) -> Fault {
        let name = &here.scope.name;
        let state = self.loop_state(here);
        let count = state.map_or(0, |state| state.max_iterations);
        let after = state.and_then(|state| state.timeout_ms).unwrap_or(0);
        let after = format_duration(Duration::from_millis(after));
        match end {
            LoopEnd::Timeout => Fault::new(
                fault_kind::TIMEOUT,
                format!("loop `{name}` was not done within its timeout of {after}"),
            ),
            _ => Fault::new(
                fault_kind::LIMIT,
                format!("loop `{name}` was not done after its {count} iterations"),
            ),
        }
        .transient()
    }

    /// A deadline in the middle of an iteration cuts it; it still has a row.
    fn cut_iteration(&mut self, here: Here<'a>) {
        self.cut(here.cursor, here.depth + 1, Status::Cancelled);
        self.end_iteration(here, Status::TimedOut);
    }

    /// A loop's or a deadline's time is up.
    pub fn deadline_passed(&mut self, cursor: CursorId, scope: ScopeId) {
        let frames = self
            .run
            .cursors
            .get(&cursor)
            .map(|here| here.frames.as_slice());
        let depth = frames
            .unwrap_or_default()
            .iter()
            .rposition(|frame| frame.scope == scope);
        let Some(depth) = depth else { return };
        match self.loop_at(cursor, depth) {
            Some(here) => self.limit(here, LoopEnd::Timeout, false),
            None => self.step_timed_out(cursor, depth),
        }
    }

    /// A resume after `on_limit: pause` grants the same budget again.
    pub fn grant_budget(&mut self, path: &str) {
        let cursors = self.run.cursors.iter();
        let mut places = cursors.flat_map(|(id, here)| {
            here.frames
                .iter()
                .enumerate()
                .filter_map(move |(depth, frame)| match &frame.kind {
                    FrameKind::Loop(state) if state.path == path => Some((*id, depth)),
                    _ => None,
                })
        });
        let Some((cursor, depth)) = places.next() else {
            return;
        };
        drop(places);
        let Some(here) = self.loop_at(cursor, depth) else {
            return;
        };
        let Some(state) = self.loop_state(here) else {
            return;
        };
        let max_iterations = state.iteration.saturating_add(state.budget);
        let (timeout, old) = (state.timeout_ms, state.deadline_timer);
        old.into_iter().for_each(|old| self.disarm(old));
        let deadline = timeout.map(|timeout| {
            let due_at: Timestamp = self.now.plus(Duration::from_millis(timeout));
            (
                due_at,
                self.arm(cursor, due_at, TimerPurpose::Deadline(here.id)),
            )
        });
        let (cursor, depth) = here.at();
        self.emit(Change::BudgetGranted {
            cursor,
            depth,
            max_iterations,
            deadline,
        });
        let waits = self.run.cursors.get(&cursor).map(|here| &here.wait);
        if waits == Some(&Wait::Budget) {
            let first = self
                .loop_state(here)
                .is_some_and(|state| state.iteration == 0);
            if let Err(fault) = self.delay_or_begin(here, first) {
                self.raise_here(cursor, fault);
            }
        }
    }

    // ── ends ────────────────────────────────────────────────────────────────────────────────

    /// Azure: a failed body ends the iteration, not the loop.
    pub fn iteration_failed(&mut self, cursor: CursorId, depth: usize) {
        let Some(here) = self.loop_at(cursor, depth) else {
            return;
        };
        self.end_iteration(here, Status::Failed);
        if let Err(fault) = self.check(here, true, false) {
            self.raise_here(cursor, fault);
        }
    }

    /// The loop is over and did what it should, unless it survived a failure that was its last
    /// iteration's: that one counts (Azure).
    fn end_loop(&mut self, here: Here<'a>, end: LoopEnd) {
        let last = self.loop_state(here).and_then(|state| state.last_status);
        if here.spec.survives_failure && last == Some(Status::Failed) {
            let name = &here.scope.name;
            let because = self.fault_inside(here).unwrap_or_default();
            let message = format!("the last iteration of loop `{name}` failed{because}");
            let fault = Fault::new("iteration", message).transient();
            return self.fail_loop(here, LoopEnd::Failed, fault);
        }
        match self.loop_output(here, end) {
            Ok(output) => {
                self.close_loop(here, end, Status::Succeeded, output, None);
                self.pop(here.cursor, here.depth);
                self.emit(Change::Moved(here.cursor, here.scope.exit));
            }
            Err(fault) => self.fail_loop(here, LoopEnd::Failed, fault),
        }
    }

    /// What went wrong last in an iteration that ended.
    fn fault_inside(&self, here: Here<'a>) -> Option<String> {
        let home = self.run.home(here.cursor);
        let records = &self.run.cursors.get(&home)?.records;
        let mut faults = here.scope.children.iter().filter_map(|id| {
            let fault = records.get(id)?.error.as_ref()?;
            let name = &self.program.action(*id)?.name;
            Some(format!(": `{name}`: {}", fault.message))
        });
        faults.next_back()
    }

    /// What a loop gives: its own output, or what its step makes of it and of what was kept.
    fn loop_output(&self, here: Here<'a>, end: LoopEnd) -> Faulty<Output> {
        let own = self.own_output(here, end, Status::Succeeded);
        match (here.scope.action, self.loop_state(here)) {
            (Some(action), Some(state)) => self.shaped_loop(here.cursor, action, own, &state.kept),
            _ => Ok(own),
        }
    }

    fn own_output(&self, here: Here<'a>, end: LoopEnd, status: Status) -> Output {
        Output::Loop {
            iterations: self.loop_state(here).map_or(0, |state| state.iteration),
            status,
            end,
            body: here.scope.children.clone(),
        }
    }

    /// The loop's record, and its last word in the history; its frame is popped by the caller.
    fn close_loop(
        &mut self,
        here: Here<'a>,
        end: LoopEnd,
        status: Status,
        output: Output,
        error: Option<Fault>,
    ) {
        let (cursor, depth) = here.at();
        self.emit(Change::LoopEnded { cursor, depth, end });
        let Some(state) = self.loop_state(here) else {
            return;
        };
        let (iterations, started_at) = (state.iteration, state.started_at);
        let (path, row) = (state.path.clone(), state.row());
        self.out.loops.push(row);
        self.note(Happening::LoopEnd {
            node_name: self.told_loop(here.scope),
            path,
            iterations_completed: iterations,
            exit_reason: exit_reason(here.spec, end),
        });
        if let Some(action) = here.scope.action {
            self.record(here.cursor, action, status, output, error, started_at);
        }
    }

    /// A fault is on its way out through this loop.
    pub fn loop_failed(&mut self, cursor: CursorId, depth: usize, fault: &Fault) {
        if let Some(here) = self.loop_at(cursor, depth) {
            self.end_iteration(here, Status::Failed);
            let output = self.own_output(here, LoopEnd::Failed, Status::Failed);
            let fault = Some(fault.without_output());
            self.close_loop(here, LoopEnd::Failed, Status::Failed, output, fault);
        }
    }

    /// Something around this loop ends it; its frame is popped by the caller.
    pub fn loop_cut(&mut self, cursor: CursorId, depth: usize) {
        let Some(here) = self.loop_at(cursor, depth) else {
            return;
        };
        let timer = self.loop_state(here).and_then(|state| state.deadline_timer);
        timer.into_iter().for_each(|timer| self.disarm(timer));
        self.end_iteration(here, Status::Cancelled);
        let output = self.own_output(here, LoopEnd::Cancelled, Status::Cancelled);
        self.close_loop(here, LoopEnd::Cancelled, Status::Cancelled, output, None);
    }

    // ── looking ─────────────────────────────────────────────────────────────────────────────

    fn loop_on_top(&self, cursor: CursorId) -> Option<Here<'a>> {
        let (depth, _) = self.top(cursor)?;
        self.loop_at(cursor, depth)
    }

    fn loop_at(&self, cursor: CursorId, depth: usize) -> Option<Here<'a>> {
        let program = self.program;
        let id = self.run.cursors.get(&cursor)?.frames.get(depth)?.scope;
        let scope = program.scope(id)?;
        match &scope.kind {
            ScopeKind::Loop(spec) => Some(Here {
                cursor,
                depth,
                id,
                scope,
                spec,
            }),
            _ => None,
        }
    }

    fn loop_state(&self, here: Here<'_>) -> Option<&LoopState> {
        match &self
            .run
            .cursors
            .get(&here.cursor)?
            .frames
            .get(here.depth)?
            .kind
        {
            FrameKind::Loop(state) => Some(state),
            _ => None,
        }
    }

    /// Whether the loop at this depth is in the middle of an iteration.
    pub fn iteration_runs(&self, cursor: CursorId, depth: usize) -> bool {
        self.loop_at(cursor, depth)
            .and_then(|here| self.loop_state(here))
            .is_some_and(|state| state.iteration_started_at.is_some())
    }

    fn loop_path(&self, here: Here<'_>) -> String {
        self.loop_state(here)
            .map(|state| state.path.clone())
            .unwrap_or_default()
    }
}
