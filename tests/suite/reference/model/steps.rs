//! Steps and blocks: "Failures in the body", "break_when and continue_when", "Retries".

use super::*;
use windlass_expression::Condition;
use windlass_model::hir::{Assignment, Wait as Time};
use windlass_model::model::AssignOp;

impl Place<'_> {
    pub fn block<'s>(self: &'s Rc<Self>, block: &'s Block) -> Running<'s> {
        Box::pin(async move {
            self.until(|| true).await?;
            match block {
                Block::Dag(steps) => return self.dag(steps).await,
                Block::Sequence(steps) => {
                    for step in steps {
                        self.step(step).await?;
                    }
                }
                Block::Graph(_) => {}
            }
            Ok(())
        })
    }

    /// Runs a step: its attempts within its timeout, the timeout within its `catch`, and then its jumps.
    pub async fn step(self: &Rc<Self>, step: &Step) -> Flow {
        let place = self.of(step);
        match (place.within_timeout(step).await, &step.catch) {
            (Ok(()), _) => {}
            (Err(Stop::Failed(_)), Some(handler)) => return self.block(handler).await,
            (other, _) => return other,
        }
        // Checked after the action has succeeded, `break_when` first.
        let holds = |when: &Condition| place.holds(when, false);
        if step.break_when.as_ref().map(holds).transpose()? == Some(true) {
            return Err(Stop::Break);
        }
        if step.continue_when.as_ref().map(holds).transpose()? == Some(true) {
            return Err(Stop::Continue);
        }
        Ok(())
    }

    /// The timeout of a step covers all its attempts. An action that it aborts is Cancelled, and the step is TimedOut.
    async fn within_timeout(self: &Rc<Self>, step: &Step) -> Flow {
        let Some(timeout) = &step.timeout else {
            return self.with_retries(step).await;
        };
        let deadline = self.sleep(self.duration(timeout)?);
        let mut attempts = Box::pin(self.with_retries(step));
        if let Some(ended) = race(deadline, attempts.as_mut()).await {
            return ended;
        }
        self.run.abort(attempts.as_mut());
        let left = self.find(&step.name);
        self.record(Status::TimedOut, left.map_or(Value::Null, |left| left.1));
        self.cut(step);
        Err(self.fault(fault_kind::TIMEOUT))
    }

    /// "Retries": each attempt starts its step from the beginning.
    async fn with_retries(self: &Rc<Self>, step: &Step) -> Flow {
        let Some(policy) = &step.retry else {
            return self.attempt(step).await;
        };
        let most = self.whole(&policy.count)?;
        let mut inside = self.clone();
        for attempt in 1.. {
            if most > 0 {
                Rc::make_mut(&mut inside).attempt = attempt;
            }
            let ended = inside.attempt(step).await;
            let Err(Stop::Failed(failure)) = &ended else {
                return ended;
            };
            let is_retried = match &policy.when {
                None => failure.fault.transient,
                Some(when) => inside.holds(when, true).unwrap_or(false),
            };
            if u64::from(attempt) > most || !is_retried {
                return ended;
            }
            let wait = backoff(&policy.backoff, attempt, failure.fault.retry_after_ms);
            let due = self.run.clock.now.get().plus(wait).0;
            let line = format!("retry {} after {attempt} at {due}", step.name);
            self.run.note(line);
            self.sleep(wait).await?;
            self.records.borrow_mut().remove(&step.name);
        }
        Ok(())
    }

    /// "Without the records of the earlier attempt."
    async fn attempt(self: &Rc<Self>, step: &Step) -> Flow {
        self.take_inside(step);
        let mut ended = match &step.kind {
            StepKind::Loop(spec) => {
                let limits = self.begun(self.limits(spec))?;
                self.repeat(step, spec, limits).await
            }
            StepKind::ForEach(spec) => {
                let items = self.eval(&spec.items);
                let items = items.and_then(|items| self.checked(items.as_array().cloned()));
                self.each(spec, &self.begun(items)?).await
            }
            StepKind::Parallel { branches, .. } => self.parallel(branches).await,
            kind => match self.chosen(kind).transpose() {
                Some(block) => self.scope(block).await,
                None => return self.single(kind).await,
            },
        };
        // A retry of a block repeats any failure.
        if let Err(Stop::Failed(failure)) = &mut ended {
            failure.fault.transient = true;
        }
        ended
    }

    /// Writes the record of an action that fails before it begins.
    fn begun<T>(&self, begun: Flow<T>) -> Flow<T> {
        begun.inspect_err(|stop| self.returned(&Err(stop.clone())))
    }

    /// The block that a step chooses to run, if it is a block.
    fn chosen<'s>(&self, kind: &'s StepKind) -> Flow<Option<&'s Block>> {
        Ok(match kind {
            StepKind::Block(block) => Some(block),
            StepKind::If { arms, otherwise } => {
                for (when, block) in arms {
                    if self.holds(when, false)? {
                        return Ok(Some(block));
                    }
                }
                Some(otherwise)
            }
            StepKind::Switch { on, cases, default } => {
                let value = self.eval(on)?;
                // A case that is written as a key matches the number of the same text.
                let text = Value::text(value.to_json());
                let mut cases = cases.iter();
                let equal = cases.find(|(case, _)| *case == value || *case == text);
                Some(equal.map_or(default, |(_, block)| block))
            }
            _ => None,
        })
    }

    /// A step that is a block. A jump out of it ends it as Succeeded, with the output of what ran in it.
    async fn scope(self: &Rc<Self>, block: Flow<&Block>) -> Flow {
        let inside = Rc::new(self.within());
        let (ended, output) = match block {
            Ok(block) => (inside.block(block).await, self.outputs(block)),
            Err(stop) => (Err(stop), Value::from_pairs::<&str>([])),
        };
        self.record(status(&ended), output);
        ended
    }

    /// A single action.
    async fn single(&self, kind: &StepKind) -> Flow {
        let returned = self.act(kind).await;
        self.returned(&returned);
        if let (StepKind::Terminate { status, .. }, Ok(_)) = (kind, &returned) {
            let fault = self.fault(fault_kind::TERMINATED);
            match status {
                Status::Succeeded => self.run.succeed(self, true),
                _ => self.run.end(*status, Err(fault)),
            }
        }
        // After an answer during a pause, the action continues only at the resume.
        self.until(|| true).await?;
        returned.map(drop)
    }

    async fn act(&self, kind: &StepKind) -> Flow<Value> {
        let clock = &self.run.clock;
        match kind {
            StepKind::Call(call) => {
                let inputs = self.eval(&call.inputs)?.to_json();
                let line = format!("request run/{} attempt {}", self.path(), self.attempt);
                self.run.note(&line);
                let (wait, requests) = (clock.number(), &clock.requests);
                let request = (self.step.clone(), format!("{line} {inputs}"));
                requests.borrow_mut().insert(wait, request);
                let answer = self.receive(&wait.to_string()).await;
                // A request that is aborted before it was sent is not sent.
                requests.borrow_mut().remove(&wait);
                answer
            }
            StepKind::Wait(Time::For(time) | Time::Until(time)) => {
                let time = self.duration(time)?;
                let due = clock.now.get().plus(time).0;
                self.run.note(format!("wait {} until {due}", self.step));
                self.sleep(time).await.map(|()| Value::Null)
            }
            StepKind::AwaitSignal(awaited) => self.receive(&awaited.name).await,
            StepKind::Compose(template) => self.eval(template),
            StepKind::Assign(assign) => {
                let mut all = assign.assignments.iter();
                all.try_fold(Value::Null, |_, one| self.assign(one))
            }
            _ => Ok(Value::Null),
        }
    }

    /// Writes the record of what an action returned; Cancelled if it was aborted.
    fn returned(&self, returned: &Flow<Value>) {
        let output = match returned {
            Ok(output) => Some(output),
            Err(Stop::Failed(failure)) => failure.fault.output.as_ref(),
            Err(_) => None,
        };
        self.record(exact_status(returned), output.cloned().unwrap_or_default());
    }

    /// Returns the new value of the variable; for an append, the appended value.
    fn assign(&self, one: &Assignment) -> Flow<Value> {
        let given = self.eval(&one.value)?;
        let story = &self.run.story;
        let before = story.borrow().variables.get(&one.variable).cloned();
        let before = before.unwrap_or_default();
        let sum = |sign: i64| {
            let both = before.as_int().zip(given.as_int());
            self.checked(both.map(|(before, by)| Value::Int(before + sign * by)))
        };
        let (value, appended) = match one.op {
            AssignOp::Increment => (sum(1)?, None),
            AssignOp::Decrement => (sum(-1)?, None),
            AssignOp::AppendToArray => {
                let mut items = self.checked(before.as_array().cloned())?;
                items.push(given.clone());
                (Value::array(items), Some(given))
            }
            AssignOp::AppendToString => {
                let more = given.to_text();
                let text = self.checked(before.as_str())?.to_owned() + &more;
                (Value::text(text), Some(Value::text(more)))
            }
            _ => (given, None),
        };
        let variables = &mut story.borrow_mut().variables;
        variables.insert(one.variable.clone(), value.clone());
        Ok(appended.unwrap_or(value))
    }
}

/// The wait after a failed attempt or an iteration, counted from 1. A wait that a server requests is not shorter than
/// the first one of the policy.
pub fn backoff(backoff: &Backoff, attempt: u32, requested_ms: Option<u64>) -> Duration {
    let (first, longest) = match backoff {
        Backoff::Exponential { interval, max, .. } => (*interval.min(max), *max),
        Backoff::Fixed { interval, .. } | Backoff::AzureExponential { interval, .. } => {
            (*interval, *interval)
        }
    };
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    match requested_ms.map(Duration::from_millis) {
        None => first.saturating_mul(doubled).min(longest),
        Some(requested) => requested.max(first),
    }
}
