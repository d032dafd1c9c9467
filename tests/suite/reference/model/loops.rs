//! Loops: "One iteration", "What a loop returns" and "Limits".

use super::steps::backoff;
use super::*;
use std::convert::Infallible;
use windlass_model::hir::Loop;
use windlass_model::model::{Delay, OnLimit, OnRepeat, Test};

type Limits = (u64, Option<Duration>);

/// An active loop. [`Stop::Break`] ends it as Succeeded.
struct Looping<'s> {
    step: &'s Step,
    spec: &'s Loop,
    /// The loop as a step, and its inside.
    outer: &'s Rc<Place<'s>>,
    place: Rc<Place<'s>>,
    round: Round,
    limits: Limits,
    /// The limits, with what resumes added.
    count: u64,
    deadline: Option<Wait>,
    /// The number of ended iterations, and the status of the last one.
    ended: u64,
    last: Option<Status>,
    /// Why it ends, with the words of "What a loop returns".
    reason: Option<&'static str>,
    /// The value of the author's condition when it was last checked.
    condition: Option<bool>,
    pages: Vec<Value>,
    /// The last result, and how many times in a row it was the same.
    same: (Value, u64),
}

impl<'s> Place<'s> {
    /// "Limits: computed once, when the loop is entered."
    pub fn limits(&self, spec: &Loop) -> Flow<Limits> {
        let timeout = spec.timeout.as_ref().map(|timeout| self.duration(timeout));
        Ok((self.whole(&spec.count)?, timeout.transpose()?))
    }

    pub async fn repeat(self: &Rc<Self>, step: &Step, spec: &Loop, limits: Limits) -> Flow {
        let line = format!("enter {} count {}", self.path(), limits.0);
        self.run.note(line);
        let round = Round {
            since: self.run.clock.now.get(),
            ..Round::default()
        };
        let mut this = Looping {
            step,
            spec,
            outer: self,
            place: self.clone(),
            round,
            limits,
            count: 0,
            deadline: None,
            ended: 0,
            last: None,
            reason: None,
            condition: None,
            pages: Vec::new(),
            same: (Value::Null, 0),
        };
        this.enter(0);
        this.grant();
        let Err(stop) = this.iterate().await;
        this.close(stop)
    }
}

impl Looping<'_> {
    /// "One iteration": check, delay, iteration, end of the iteration, check …
    async fn iterate(&mut self) -> Flow<Infallible> {
        loop {
            self.check().await?;
            self.delay().await?;
            self.enter(self.ended);
            if !self.checks_after() {
                self.note();
            }
            let (place, body) = (self.place.clone(), &self.spec.body);
            let before = place.take_inside(self.step);
            let iteration = async {
                // After a pause at the loop's limit, branches that started earlier have their turns first.
                let is_its_turn = || place.run.clock.first.get().is_none();
                place.until(is_its_turn).await?;
                let ended = place.block(body).await;
                place.boundary(place.branch, false).await.and(ended)
            };
            let ended = self.before_deadline(iteration).await;
            let continues = match &ended {
                Ok(()) | Err(Stop::Continue) => true,
                Err(Stop::Failed(_)) => self.spec.survives_failure && self.reason.is_none(),
                Err(Stop::Break | Stop::Aborted) => false,
            };
            self.end(&ended, continues, before);
            if !continues {
                ended?;
            }
        }
    }

    fn checks_after(&self) -> bool {
        self.spec.test == Test::After
    }

    /// Enters an iteration.
    fn enter(&mut self, index: u64) {
        self.round.index = index;
        self.place = Rc::new(self.outer.within_round(self.round.clone()));
    }

    /// "The history has one `LoopIteration` for each iteration: at its begin, with the result of the condition; for
    /// `doUntil` at its end", with the result of the check that follows.
    fn note(&self) {
        let (iteration, condition) = (self.place.iteration(), self.condition);
        let line = format!("iteration {iteration} {condition:?}");
        self.place.run.note(line);
    }

    /// The row of an iteration; for `doUntil`, with the check that follows.
    fn row(&self, status: Status) {
        self.place.row(status, self.condition, &self.spec.body);
        if self.checks_after() {
            self.note();
        }
    }

    /// Ends an iteration. "A failed iteration counts, an aborted one does not."
    fn end(&mut self, ended: &Flow, continues: bool, before: Records) {
        let status = match self.reason {
            Some(_) => Status::TimedOut,
            None => status(ended),
        };
        if self.checks_after() {
            self.condition = None;
        }
        if !continues || !self.checks_after() {
            self.row(status);
        }
        if let Status::TimedOut | Status::Cancelled = status {
            // "The loop's outcome is that of its last ended iteration."
            self.place.take_inside(self.step);
            self.place.records.borrow_mut().extend(before);
        } else {
            self.ended += 1;
            self.last = Some(status);
            self.round.result = self.place.outputs(&self.spec.body);
        }
        // "Between two iterations, `loopIndex` is the next iteration for `until` and `while`, and the ended one for
        // `doUntil`."
        self.enter(self.ended.saturating_sub(self.checks_after().into()));
    }

    /// "Each check has this order: condition, page, timeout, count, unchanged." After the last allowed iteration, the
    /// condition is checked once more.
    async fn check(&mut self) -> Flow {
        let (spec, place, is_first) = (self.spec, self.place.clone(), self.ended == 0);
        let is_spent = self.ended >= self.count;
        let is_checked = !(is_first && self.checks_after()) && (!is_spent || spec.test_when_spent);
        let stops = is_checked.then(|| place.holds(&spec.stop_when, true));
        let value = stops.as_ref().and_then(|stops| stops.as_ref().ok());
        self.condition = value.map(|stops| *stops != spec.negated);
        if let Some(status) = self.last.filter(|_| self.checks_after()) {
            self.row(status);
        }
        if stops.transpose()? == Some(true) {
            return Err(self.over("condition"));
        }
        if let Some(pages) = &spec.pages {
            let page = place.eval_with(&pages.token, true)?;
            if self.pages.contains(&page) {
                return Err(match pages.on_repeat {
                    OnRepeat::Stop => self.over("repeat"),
                    OnRepeat::Fail => self.fault("repeat", fault_kind::REPEAT),
                });
            }
            self.pages.push(page);
        }
        let mut is_unchanged = false;
        if let Some(limit) = spec.unchanged.as_ref().filter(|_| !is_first) {
            let of = limit.of.as_ref().map(|of| place.eval_with(of, true));
            let value = of.unwrap_or_else(|| Ok(self.place.outputs(&self.spec.body)))?;
            let before = if self.same.0 == value { self.same.1 } else { 0 };
            self.same = (value, before + 1);
            is_unchanged = self.same.1 >= limit.times;
        }
        let is_late = |timer| place.run.clock.is_due(timer);
        let limit = match () {
            () if self.deadline.is_some_and(is_late) => "timeout",
            () if is_spent => "count",
            () if is_unchanged => "unchanged",
            () => return Ok(()),
        };
        self.reached(limit)?;
        place.until(|| true).await?;
        self.grant();
        Ok(())
    }

    /// "delay": follows a check that continues the loop, except for the first check.
    async fn delay(&mut self) -> Flow {
        let place = self.place.clone();
        let iteration = u32::try_from(self.ended).unwrap_or(u32::MAX);
        let delay = match &self.spec.delay {
            Some(Delay::Every(delay)) if iteration > 0 => place.duration(delay)?,
            Some(Delay::Backoff(own)) if iteration > 0 => backoff(own, iteration, None),
            _ => Duration::ZERO,
        };
        if delay.is_zero() {
            return Ok(());
        }
        self.before_deadline(place.sleep(delay)).await
    }

    /// Runs a part of the loop until its deadline, which aborts the part. With `on_limit: pause`, "the run pauses where
    /// it is".
    async fn before_deadline(&mut self, part: impl Future<Output = Flow>) -> Flow {
        let (place, mut part) = (self.place.clone(), pin!(part));
        loop {
            let (clock, timer) = (&place.run.clock, self.deadline);
            let deadline = place.until(|| timer.is_some_and(|timer| clock.has_fired(timer)));
            if let Some(ended) = race(deadline, part.as_mut()).await {
                return ended;
            }
            if let Err(stop) = self.reached("timeout") {
                place.run.abort(part);
                return Err(stop);
            }
            if let Some(ended) = race(place.until(|| true), part.as_mut()).await {
                return ended;
            }
            self.grant();
        }
    }

    /// `on_limit`: ends the loop or pauses the run.
    fn reached(&mut self, limit: &'static str) -> Flow {
        let line = format!("limit {} {limit}", self.outer.path());
        self.place.run.note(line);
        let (then, kind) = match limit {
            "timeout" => (self.spec.on_timeout, fault_kind::TIMEOUT),
            _ => (self.spec.on_limit, fault_kind::LIMIT),
        };
        match then {
            OnLimit::Continue => Err(self.over(limit)),
            OnLimit::Fail => Err(self.fault(limit, kind)),
            OnLimit::Pause => {
                self.place.run.pause(Some(self.place.branch));
                Ok(())
            }
        }
    }

    /// Counts the limits from here. A resume grants them again.
    fn grant(&mut self) {
        let (count, timeout) = self.limits;
        self.count = self.ended.saturating_add(count);
        self.deadline = timeout.map(|timeout| self.place.run.clock.timer(timeout));
        self.same = (Value::Null, 0);
    }

    fn over(&mut self, reason: &'static str) -> Stop {
        self.reason = Some(reason);
        Stop::Break
    }

    /// A fault of the loop as a whole.
    fn fault(&mut self, reason: &'static str, kind: &'static str) -> Stop {
        self.reason = Some(reason);
        self.outer.fault(kind)
    }

    /// `{iterations, status, reason, result}`.
    fn close(&self, stop: Stop) -> Flow {
        // An Azure loop continues after failures in its body, but the last iteration counts.
        let has_failed = self.spec.survives_failure && self.last == Some(Status::Failed);
        let (ended, reason) = match stop {
            Stop::Break if has_failed => (Err(self.outer.fault("iteration")), None),
            Stop::Break => (Ok(()), self.reason.or(Some("break"))),
            stop => (Err(stop), self.reason),
        };
        let (status, reason) = match (&ended, reason) {
            (Err(Stop::Aborted), _) => (Status::Cancelled, "cancelled"),
            (ended, Some(reason)) => (exact_status(ended), reason),
            (ended, None) => (status(ended), "failed"),
        };
        let (path, iterations) = (self.outer.path(), self.ended);
        let line = format!("leave {path} after {iterations}: {reason}");
        self.place.run.note(line);
        let output = Value::from_pairs([
            ("iterations", Value::from(i64::try_from(iterations).ok())),
            ("status", Value::from(status.as_str())),
            ("reason", Value::from(reason)),
            ("result", self.place.outputs(&self.spec.body)),
        ]);
        if reason == "timeout" {
            self.outer.cut(self.step);
        }
        match status {
            // The preceding line has set it.
            Status::Succeeded => self.outer.set_record(status, output),
            _ => self.place.record(status, output),
        }
        ended
    }
}
