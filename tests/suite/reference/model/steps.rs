//! Steps and blocks: "Failures in the body", "break_when and continue_when", "Retries".

use super::clock::{For, WaitId};
use super::records::{Place, Record, within};
use super::view::wrong;
use super::{Ended, Failure, Flow, OnDrop, Run, Stop};
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::Value;
use windlass_model::hir::{Assignment, Block, RetryPolicy, Step, StepKind, Wait};
use windlass_model::model::{AssignOp, Backoff, Fault, Name, Status, fault_kind};

/// No server makes a retry wait longer.
const LONGEST_REQUESTED: Duration = Duration::from_secs(3600);

/// A step or a block that runs. To drop it ends it early: what is open in it is Cancelled.
pub type Running<'s> = Pin<Box<dyn Future<Output = Flow> + 's>>;

/// What a single action does.
enum Act {
    Returns(Value),
    WaitsFor(WaitId),
    EndsTheRun,
}

impl Stop {
    /// It leaves a block, a loop or a retry.
    pub fn through(self) -> Self {
        match self {
            Self::Failed(mut failure) => {
                failure.through = true;
                Self::Failed(failure)
            }
            jump => jump,
        }
    }
}

impl<'s> Run<'s> {
    pub fn block(&'s self, place: &'s Place, block: &'s Block) -> Running<'s> {
        Box::pin(async move {
            match block {
                Block::Dag(steps) => return self.dag(place, steps).await,
                Block::Sequence(steps) => {
                    for step in steps {
                        self.step(place, step).await?;
                    }
                }
                // `subset` has none.
                Block::Graph(_) => {}
            }
            Ok(())
        })
    }

    /// A step: its attempts, within its timeout, within its `catch`; then its jumps.
    pub async fn step(&'s self, around: &'s Place, step: &'s Step) -> Flow {
        let place = around.of(step);
        match (self.within_timeout(&place, step).await, &step.catch) {
            (Ok(()), _) => self.jump(&place, step),
            (Err(Stop::Failed(_)), Some(handler)) => {
                self.block(around, handler).await.map_err(Stop::through)
            }
            (other, _) => other,
        }
    }

    /// "break_when and continue_when": checked after the action has succeeded, `break_when` first.
    fn jump(&self, place: &Place, step: &Step) -> Flow {
        let jumps = [
            (&step.break_when, Stop::Break),
            (&step.continue_when, Stop::Continue),
        ];
        for (when, stop) in jumps {
            let jumps = when.as_ref().map(|when| self.holds(place, when, false));
            if self.located(place, jumps.transpose())? == Some(true) {
                return Err(stop);
            }
        }
        Ok(())
    }

    /// The timeout of a step is around all its attempts. What it aborts is Cancelled, the step TimedOut.
    async fn within_timeout(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        let Some(timeout) = &step.timeout else {
            return self.with_retries(place, step).await;
        };
        let after = self.located(place, self.duration(place, timeout))?;
        place.take_inside(step);
        let mut deadline = Box::pin(self.sleep(place, after));
        let mut attempts: Running<'s> = Box::pin(self.with_retries(place, step));
        let ended = poll_fn(move |context| match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => attempts.as_mut().poll(context).map(Some),
        });
        if let Some(ended) = ended.await {
            return ended.map_err(Stop::through);
        }
        let known = place.records.own.borrow().get(&step.name).cloned();
        let known = known.unwrap_or(Record::new(Status::TimedOut, Value::Null));
        let (status, is_cut) = (Status::TimedOut, true);
        self.record(
            place,
            Record {
                status,
                is_cut,
                ..known
            },
        );
        let fault = Fault::new(fault_kind::TIMEOUT, "the step was not done in time");
        Err(self.failed(place, fault.transient()).through())
    }

    /// "Retries": each attempt starts its step from the beginning.
    async fn with_retries(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        let Some(policy) = &step.retry else {
            return self.attempt(place, step).await;
        };
        let most = self
            .located(place, self.whole(place, &policy.count))?
            .saturating_add(1);
        let mut inside = place.clone();
        for attempt in 1.. {
            if most > 1 {
                inside.attempt = attempt;
            }
            let failure = match self.attempt(&inside, step).await {
                Err(Stop::Failed(failure)) => failure,
                flow => return flow,
            };
            if u64::from(attempt) >= most || !self.is_retried(&inside, policy, &failure) {
                return Err(Stop::Failed(failure).through());
            }
            let wait = backoff(&policy.backoff, attempt, failure.fault.retry_after_ms);
            let due = self.clock.now.get().plus(wait);
            self.note(format!("retry {} after {attempt} at {}", step.name, due.0));
            self.sleep(place, wait).await;
        }
        Ok(())
    }

    /// Without `on`, a policy retries what is transient, and around a block any failure.
    fn is_retried(&self, place: &Place, policy: &RetryPolicy, failure: &Failure) -> bool {
        match &policy.when {
            None => failure.fault.transient || failure.through,
            Some(when) => self.holds(place, when, true).unwrap_or(false),
        }
    }

    fn attempt(&'s self, place: &'s Place, step: &'s Step) -> Running<'s> {
        Box::pin(async move {
            match &step.kind {
                StepKind::Loop(spec) => self.repeat(place, step, spec).await,
                StepKind::ForEach(spec) => self.each(place, step, spec).await,
                StepKind::Parallel { branches, .. } => self.parallel(place, step, branches).await,
                StepKind::Block(_) | StepKind::If { .. } | StepKind::Switch { .. } => {
                    self.scope(place, step).await
                }
                _ => self.single(place, step).await,
            }
        })
    }

    /// A block that is a step. A jump out of it ends it as Succeeded, with what ran in it.
    async fn scope(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        place.take_inside(step);
        let end = |status| {
            let steps = step.kind.blocks().into_iter().flat_map(Block::steps);
            self.record(place, Record::new(status, place.outputs(steps)));
        };
        let open = OnDrop(Some(|| end(Status::Cancelled)));
        let ended = self.choose(&place.within(), step).await;
        open.over();
        end(match ended {
            Err(Stop::Failed(_)) => Status::Failed,
            Ok(()) | Err(Stop::Break | Stop::Continue) => Status::Succeeded,
        });
        ended.map_err(Stop::through)
    }

    /// What of a block runs.
    async fn choose(&self, place: &Place, step: &Step) -> Flow {
        let block = match &step.kind {
            StepKind::Block(block) => block,
            StepKind::If { arms, otherwise } => {
                let mut chosen = otherwise;
                for (when, block) in arms {
                    if self.located(place, self.holds(place, when, false))? {
                        chosen = block;
                        break;
                    }
                }
                chosen
            }
            StepKind::Switch { on, cases, default } => {
                let value = self.located(place, self.eval(place, on))?;
                // A case that is written as a key equals the number that it spells.
                let text = Value::text(value.to_json());
                let mut cases = cases.iter();
                let equal = cases.find(|(case, _)| *case == value || *case == text);
                equal.map_or(default, |(_, block)| block)
            }
            _ => return Ok(()),
        };
        self.block(place, block).await
    }

    /// An action without others in it.
    async fn single(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        let returned = match self.act(place, step) {
            Ok(Act::EndsTheRun) => pending().await,
            Ok(Act::WaitsFor(id)) => {
                return self.located(place, self.answer(id).await).map(drop);
            }
            Ok(Act::Returns(value)) => Ok(value),
            Err(fault) => Err(fault),
        };
        self.record(place, Record::of(&returned));
        self.located(place, returned).map(drop)
    }

    fn act(&self, place: &Place, step: &Step) -> Result<Act, Fault> {
        let clock = &self.clock;
        Ok(match &step.kind {
            StepKind::Call(call) => {
                let inputs = self.eval(place, &call.inputs)?.to_json();
                let (key, attempt) = (place.path_of(&step.name), place.attempt);
                let line = format!("request run/{key} attempt {attempt}");
                self.note(&line);
                let request = For::Request(Some(format!("{line} {inputs}")));
                Act::WaitsFor(clock.wait_for(place, request, None))
            }
            StepKind::Wait(Wait::For(time) | Wait::Until(time)) => {
                let time = self.duration(place, time)?;
                let due = clock.now.get().plus(time);
                self.note(format!("wait {} until {}", step.name, due.0));
                Act::WaitsFor(clock.wait_for(place, For::Sleep, Some(time)))
            }
            StepKind::AwaitSignal(awaited) => match clock.stored_signal(&awaited.name) {
                Some(payload) => Act::Returns(payload),
                None => {
                    let signal = For::Signal(awaited.name.clone());
                    Act::WaitsFor(clock.wait_for(place, signal, None))
                }
            },
            StepKind::Terminate { status, error } => {
                let detail = error.as_ref().map(|error| self.eval(place, error));
                let detail = detail.transpose()?.unwrap_or_default();
                self.record(place, Record::new(Status::Succeeded, detail));
                let fault = Fault::new(fault_kind::TERMINATED, "the workflow ended the run");
                *clock.terminated.borrow_mut() = Some(match status {
                    Status::Succeeded => self.succeed(place, true),
                    _ => Ended::failed(*status, &self.failure(place, fault)),
                });
                Act::EndsTheRun
            }
            StepKind::Compose(template) => Act::Returns(self.eval(place, template)?),
            StepKind::Assign(assign) => {
                let mut last = Value::Null;
                for one in &assign.assignments {
                    last = self.assign(place, one)?;
                }
                Act::Returns(last)
            }
            StepKind::Raise { kind, message } => {
                let message = self.eval(place, message)?.to_text();
                return Err(Fault::new(kind, message).transient());
            }
            _ => Act::Returns(Value::Null),
        })
    }

    // ── faults and records ──────────────────────────────────────────────────────────────────

    /// "The run's error names the action, the iteration of the innermost loop, and the line."
    fn failure(&self, place: &Place, fault: Fault) -> Failure {
        let (action, line) = (place.step.clone(), place.line);
        let (iteration, through) = (place.iteration(), false);
        Failure {
            fault,
            action,
            line,
            iteration,
            through,
        }
    }

    pub fn failed(&self, place: &Place, fault: Fault) -> Stop {
        Stop::Failed(Box::new(self.failure(place, fault)))
    }

    /// A fault with its place.
    pub fn located<T>(&self, place: &Place, returned: Result<T, Fault>) -> Result<T, Stop> {
        returned.map_err(|fault| self.failed(place, fault))
    }

    /// The same, and the record of an action that fails before it begins.
    pub fn recorded<T>(&self, place: &Place, begun: Result<T, Fault>) -> Result<T, Stop> {
        if let Err(fault) = &begun {
            self.record(place, Record::of(&Err(fault.clone())));
        }
        self.located(place, begun)
    }

    /// The record of an action that ended.
    pub fn record(&self, place: &Place, record: Record) {
        let (status, attempt) = (record.status.as_str(), place.attempt);
        let within = within(place.iteration().as_ref());
        self.note(format!(
            "end {} {status} attempt {attempt}{within}",
            place.step
        ));
        self.set_record(place, record);
    }

    /// The same, without a line of the story.
    pub fn set_record(&self, place: &Place, record: Record) {
        let mut own = place.records.own.borrow_mut();
        own.insert(place.step.clone(), record);
    }

    // ── variables ───────────────────────────────────────────────────────────────────────────

    pub fn set_variable(&self, name: &Name, value: Value) {
        let mut variables = self.variables.borrow_mut();
        let mut known = variables.as_object().cloned().unwrap_or_default();
        known.insert(name.clone(), value);
        *variables = Value::object(known);
    }

    /// Returns what the variable became; of an append, what was appended.
    fn assign(&self, place: &Place, one: &Assignment) -> Result<Value, Fault> {
        let given = self.eval(place, &one.value)?;
        let before = self.variables.borrow().get(&one.variable).cloned();
        let before = before.unwrap_or_default();
        let wrong = || wrong("a variable of another type");
        let sum = |sign: i64| {
            let before = if before.is_null() {
                Some(0)
            } else {
                before.as_int()
            };
            let sum = before
                .zip(given.as_int())
                .map(|(before, by)| before + sign * by);
            sum.map(Value::Int).ok_or_else(wrong)
        };
        let (value, output) = match one.op {
            AssignOp::Increment => (sum(1)?, sum(1)?),
            AssignOp::Decrement => (sum(-1)?, sum(-1)?),
            AssignOp::AppendToArray => {
                let items = before.as_array().cloned();
                let items = if before.is_null() {
                    Some(Vec::new())
                } else {
                    items
                };
                let mut items = items.ok_or_else(wrong)?;
                items.push(given.clone());
                (Value::array(items), given)
            }
            AssignOp::AppendToString => {
                let text = if before.is_null() {
                    Some("")
                } else {
                    before.as_str()
                };
                let (text, more) = (text.ok_or_else(wrong)?, given.to_text());
                (Value::text(format!("{text}{more}")), Value::text(more))
            }
            // `subset` has no other.
            _ => (given.clone(), given),
        };
        self.set_variable(&one.variable, value);
        Ok(output)
    }
}

/// The wait after a failed attempt, or after an iteration, from 1. One that a server asks for is not shorter than the
/// first of the policy.
pub fn backoff(backoff: &Backoff, attempt: u32, requested_ms: Option<u64>) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let (first, longest, own) = match backoff {
        Backoff::Exponential {
            interval, max, min, ..
        } => {
            let own = interval.saturating_mul(doubled).clamp(*min.min(max), *max);
            (*interval.min(max), *max, own)
        }
        // `subset` has no other.
        Backoff::Fixed { interval, .. } | Backoff::AzureExponential { interval, .. } => {
            (*interval, *interval, *interval)
        }
    };
    let requested = requested_ms.map(Duration::from_millis);
    requested.map_or(own, |wait| {
        wait.clamp(first, LONGEST_REQUESTED.max(longest))
    })
}
