//! Steps and blocks: "Failures in the body", "Retries", "break_when and continue_when".

use super::clock::{Call, CallId};
use super::records::{Place, Record};
use super::{Ended, Failure, Flow, Run};
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use windlass_expression::{Object, Value};
use windlass_model::hir::{
    Assign, Assignment, Block, Call as CallSpec, RetryPolicy, Step, StepKind, Wait,
};
use windlass_model::model::{AssignOp, Backoff, Fault, Name, Status, fault_kind};

/// No server makes a retry wait longer.
const LONGEST_REQUESTED: Duration = Duration::from_secs(3600);

/// A step or a block that runs. To drop it ends it early: what is open in it is Cancelled.
pub type Running<'s> = Pin<Box<dyn Future<Output = Flow> + 's>>;

impl Failure {
    fn through(self) -> Self {
        Self {
            through: true,
            ..self
        }
    }
}

impl<'s> Run<'s> {
    // ── blocks ──────────────────────────────────────────────────────────────────────────────

    pub fn block(&'s self, place: &'s Place, block: &'s Block) -> Running<'s> {
        Box::pin(async move {
            match block {
                Block::Sequence(steps) => self.sequence(place, steps).await,
                Block::Dag(steps) => self.dag(place, steps).await,
                Block::Graph(_) => Flow::Next,
            }
        })
    }

    async fn sequence(&'s self, place: &'s Place, steps: &'s [Step]) -> Flow {
        for step in steps {
            match self.step(place, step).await {
                Flow::Next => {}
                ended => return ended,
            }
        }
        Flow::Next
    }

    /// A step: its attempts, within its timeout, within its `catch`; then its jumps.
    pub async fn step(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        match (self.within_timeout(place, step).await, &step.catch) {
            (Flow::Next, _) => self.jump(place, step),
            (Flow::Failed(_), Some(handler)) => match self.block(place, handler).await {
                Flow::Failed(failure) => Flow::Failed(failure.through()),
                handled => handled,
            },
            (other, _) => other,
        }
    }

    /// "break_when and continue_when": checked after the action has succeeded, `break_when` first.
    fn jump(&self, place: &Place, step: &Step) -> Flow {
        let jumps = [
            (&step.break_when, Flow::Break),
            (&step.continue_when, Flow::Continue),
        ];
        for (when, flow) in jumps {
            let Some(when) = when else { continue };
            match self.holds(place, when, false) {
                Ok(true) => return flow,
                Ok(false) => {}
                Err(fault) => return Flow::Failed(self.failure(place, step, fault)),
            }
        }
        Flow::Next
    }

    /// The timeout of a step is around all its attempts. What it aborts is Cancelled, the step TimedOut.
    async fn within_timeout(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        let Some(timeout) = &step.timeout else {
            return self.with_retries(place, step).await;
        };
        let after = match self.duration(place, timeout) {
            Ok(after) => after,
            Err(fault) => return Flow::Failed(self.failure(place, step, fault)),
        };
        place.take_inside(&self.tree, step);
        let due = self.clock.now().plus(after);
        let mut deadline = Box::pin(self.clock.wait_until(place.branch, due));
        let mut attempts: Running<'s> = Box::pin(self.with_retries(place, step));
        let ended = poll_fn(move |context| match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => attempts.as_mut().poll(context).map(Some),
        });
        match ended.await {
            Some(Flow::Failed(failure)) => Flow::Failed(failure.through()),
            Some(flow) => flow,
            None => {
                let known = place.records.own.borrow().get(&step.name).cloned();
                let known = known.unwrap_or(Record::new(Status::TimedOut, Value::Null));
                let (status, is_cut) = (Status::TimedOut, true);
                let record = Record {
                    status,
                    is_cut,
                    ..known
                };
                self.record(place, &step.name, record);
                let fault = Fault::new(fault_kind::TIMEOUT, "the step was not done in time");
                let failure = self.failure(place, step, fault.transient());
                Flow::Failed(failure.through())
            }
        }
    }

    /// "Retries": each attempt starts its step from the beginning.
    async fn with_retries(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        let Some(policy) = &step.retry else {
            return self.attempt(place, step).await;
        };
        let most = match self.whole(place, &policy.count) {
            Ok(count) => u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1),
            Err(fault) => return Flow::Failed(self.failure(place, step, fault)),
        };
        let mut inside = place.clone();
        for attempt in 1..=most {
            if most > 1 {
                inside.attempt = attempt;
            }
            let failure = match self.attempt(&inside, step).await {
                Flow::Failed(failure) => failure,
                flow => return flow,
            };
            if attempt == most || !self.is_retried(&inside, policy, &failure) {
                return Flow::Failed(failure.through());
            }
            let wait = backoff(&policy.backoff, attempt, failure.fault.retry_after_ms);
            let due = self.clock.now().plus(wait);
            self.note(format!("retry {} after {attempt} at {}", step.name, due.0));
            self.clock.wait_until(place.branch, due).await;
        }
        Flow::Next
    }

    /// Without `on`, a policy retries what is transient, and around a block any failure.
    fn is_retried(&self, place: &Place, policy: &RetryPolicy, failure: &Failure) -> bool {
        let fault = &failure.fault;
        let transient = fault.transient || failure.through;
        match &policy.when {
            None => transient,
            Some(when) => self.holds(place, when, true).unwrap_or(false),
        }
    }

    fn attempt(&'s self, place: &'s Place, step: &'s Step) -> Running<'s> {
        Box::pin(async move {
            match &step.kind {
                StepKind::Call(call) => self.call(place, step, call).await,
                StepKind::Wait(wait) => self.wait(place, step, wait).await,
                StepKind::AwaitSignal(awaited) => {
                    let name = &awaited.name;
                    if let Some(payload) = self.clock.stored_signal(name) {
                        return self.done(place, step, Ok(payload));
                    }
                    let id = self.clock.await_signal(&step.name, place, name);
                    self.answer(place, step, id).await
                }
                StepKind::Terminate { status, error } => {
                    match self.terminate(place, step, *status, error.as_ref()) {
                        Ok(ended) => self.clock.terminate(ended),
                        Err(fault) => return self.fail(place, step, fault),
                    }
                    pending().await
                }
                StepKind::Compose(template) => {
                    let value = self.eval(place, template);
                    self.done(place, step, value)
                }
                StepKind::Assign(assign) => {
                    let value = self.assign(place, assign);
                    self.done(place, step, value)
                }
                StepKind::Raise { kind, message } => {
                    let text = self.eval(place, message);
                    let fault = text.map(|text| Fault::new(kind, text.to_text()).transient());
                    self.done(place, step, fault.and_then(Err))
                }
                StepKind::Nothing => self.done(place, step, Ok(Value::Null)),
                StepKind::Loop(spec) => self.repeat(place, step, spec).await,
                StepKind::ForEach(spec) => self.each(place, step, spec).await,
                StepKind::Parallel { branches, .. } => self.parallel(place, step, branches).await,
                StepKind::Block(_)
                | StepKind::If { .. }
                | StepKind::Switch { .. }
                | StepKind::Catch { .. } => self.scope(place, step).await,
                StepKind::Respond(_) => Flow::Next,
            }
        })
    }

    // ── scopes ──────────────────────────────────────────────────────────────────────────────

    /// A block that is a step. A jump out of it ends it as Succeeded, with what ran in it.
    async fn scope(&'s self, place: &'s Place, step: &'s Step) -> Flow {
        place.take_inside(&self.tree, step);
        let blocks = step.kind.blocks();
        let open = Open::of(self, place, step, &blocks);
        let inside = place.in_step(step);
        let flow = self.choose(&inside, step).await;
        let status = match flow {
            Flow::Failed(_) => Status::Failed,
            Flow::Next | Flow::Break | Flow::Continue => Status::Succeeded,
        };
        let output = open.outputs();
        open.end(Record::new(status, output));
        match flow {
            Flow::Failed(failure) => Flow::Failed(failure.through()),
            flow => flow,
        }
    }

    /// What of a block runs.
    async fn choose(&self, place: &Place, step: &Step) -> Flow {
        match &step.kind {
            StepKind::Block(block) => self.block(place, block).await,
            StepKind::If { arms, otherwise } => {
                for (when, block) in arms {
                    match self.holds(place, when, false) {
                        Ok(true) => return self.block(place, block).await,
                        Ok(false) => {}
                        Err(fault) => return Flow::Failed(self.failure(place, step, fault)),
                    }
                }
                self.block(place, otherwise).await
            }
            StepKind::Switch { on, cases, default } => {
                let value = match self.eval(place, on) {
                    Ok(value) => value,
                    Err(fault) => return Flow::Failed(self.failure(place, step, fault)),
                };
                let mut cases = cases.iter();
                let equal = cases.find(|(case, _)| is_case(case, &value));
                let block = equal.map_or(default, |(_, block)| block);
                self.block(place, block).await
            }
            StepKind::Catch {
                body,
                error,
                handler,
            } => {
                let failure = match self.block(place, body).await {
                    Flow::Failed(failure) => failure,
                    flow => return flow,
                };
                if !error.is_empty() {
                    let mut value = error_object(&failure);
                    let output = failure.fault.output.clone().unwrap_or_default();
                    value.insert("output".into(), output);
                    self.set_variable(error, Value::object(value));
                }
                self.block(place, handler).await
            }
            _ => Flow::Next,
        }
    }

    // ── single actions ──────────────────────────────────────────────────────────────────────

    async fn call(&'s self, place: &'s Place, step: &'s Step, call: &CallSpec) -> Flow {
        let inputs = match self.eval(place, &call.inputs) {
            Ok(inputs) => inputs,
            Err(fault) => return self.fail(place, step, fault),
        };
        let key = format!("run/{}", place.path_of(&step.name));
        let request = format!("request {key} attempt {}", place.attempt);
        self.note(&request);
        let line = format!("{request} {}", inputs.to_json());
        let id = self.clock.request(&step.name, place, line);
        self.answer(place, step, id).await
    }

    /// Waits for an answer, whose record is there already.
    async fn answer(&self, place: &Place, step: &Step, id: CallId) -> Flow {
        let sent = Sent { run: self, id };
        let answer = poll_fn(|_| match self.clock.answer(id) {
            None => Poll::Pending,
            Some(answer) => Poll::Ready(answer),
        });
        let answer = answer.await;
        drop(sent);
        match answer {
            Ok(_) => Flow::Next,
            Err(fault) => Flow::Failed(self.failure(place, step, fault)),
        }
    }

    pub fn record_answer(&self, call: &Call, answer: &Result<Value, Fault>) {
        let record = match answer {
            Ok(output) => Record::new(Status::Succeeded, output.clone()),
            Err(fault) => failed(fault),
        };
        self.record(&call.place, &call.name, record);
    }

    async fn wait(&'s self, place: &'s Place, step: &'s Step, wait: &Wait) -> Flow {
        let Wait::For(duration) = wait else {
            return Flow::Next;
        };
        let due = match self.duration(place, duration) {
            Ok(duration) => self.clock.now().plus(duration),
            Err(fault) => return self.fail(place, step, fault),
        };
        self.note(format!("wait {} until {}", step.name, due.0));
        let open = Open::of(self, place, step, &[]);
        self.clock.wait_until(place.branch, due).await;
        open.end(Record::new(Status::Succeeded, Value::Null));
        Flow::Next
    }

    /// The end of the run as its workflow orders it.
    fn terminate(
        &self,
        place: &Place,
        step: &Step,
        status: Status,
        error: Option<&windlass_expression::Template>,
    ) -> Result<Ended, Fault> {
        let detail = error.map(|error| self.eval(place, error)).transpose()?;
        let record = Record::new(Status::Succeeded, detail.unwrap_or_default());
        self.record(place, &step.name, record);
        if status == Status::Succeeded {
            return Ok(self.succeed(place, true));
        }
        let fault = Fault::new(fault_kind::TERMINATED, "the workflow ended the run");
        Ok(Ended::failed(&self.failure(place, step, fault), status))
    }

    /// What a step that waits for nothing leaves.
    fn done(&self, place: &Place, step: &Step, value: Result<Value, Fault>) -> Flow {
        match value {
            Ok(value) => {
                self.record(place, &step.name, Record::new(Status::Succeeded, value));
                Flow::Next
            }
            Err(fault) => self.fail(place, step, fault),
        }
    }

    /// A step failed before it did anything else.
    pub fn fail(&self, place: &Place, step: &Step, fault: Fault) -> Flow {
        self.record(place, &step.name, failed(&fault));
        Flow::Failed(self.failure(place, step, fault))
    }

    /// The run's error names the action, the iteration of the innermost loop, and the line.
    pub fn failure(&self, place: &Place, step: &Step, fault: Fault) -> Failure {
        Failure {
            fault,
            action: step.name.clone(),
            line: step.span.line,
            iteration: place.iteration(),
            through: false,
        }
    }

    /// The record of an action that ended.
    pub fn record(&self, place: &Place, name: &Name, record: Record) {
        let iteration = place.iteration();
        let iteration = iteration.map(|(path, at)| format!(" in {path}#{at}"));
        self.note(format!(
            "end {name} {} attempt {}{}",
            record.status.as_str(),
            place.attempt,
            iteration.unwrap_or_default()
        ));
        self.set_record(place, name, record);
    }

    /// The same, without a line of the story.
    pub fn set_record(&self, place: &Place, name: &Name, record: Record) {
        let mut own = place.records.own.borrow_mut();
        own.insert(name.clone(), record);
    }

    // ── variables ───────────────────────────────────────────────────────────────────────────

    pub fn set_variable(&self, name: &Name, value: Value) {
        let mut variables = self.variables.borrow_mut();
        let mut known = variables.as_object().cloned().unwrap_or_default();
        let own = known.keys().find(|known| known.eq_ignore_ascii_case(name));
        let own = own.unwrap_or(name).clone();
        known.insert(own, value);
        *variables = Value::object(known);
    }

    fn variable(&self, name: &str) -> Value {
        let variables = self.variables.borrow();
        let mut known = variables.as_object().into_iter().flatten();
        let found = known.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn assign(&self, place: &Place, assign: &Assign) -> Result<Value, Fault> {
        let mut last = Value::Null;
        for one in &assign.assignments {
            last = self.assign_one(place, one)?;
        }
        Ok(last)
    }

    /// Returns what the variable became; of an append, what was appended.
    fn assign_one(&self, place: &Place, one: &Assignment) -> Result<Value, Fault> {
        let given = self.eval(place, &one.value)?;
        let before = self.variable(&one.variable);
        let wrong = || Fault::new(fault_kind::EXPRESSION, "a variable of another type");
        let sum = |by: i64| {
            let before = if before.is_null() {
                Some(0)
            } else {
                before.as_int()
            };
            let sum = before.and_then(|before| before.checked_add(by));
            sum.map(Value::Int).ok_or_else(wrong)
        };
        let (value, output) = match one.op {
            AssignOp::Increment => {
                let sum = sum(given.as_int().ok_or_else(wrong)?)?;
                (sum.clone(), sum)
            }
            AssignOp::Decrement => {
                let sum = sum(-given.as_int().ok_or_else(wrong)?)?;
                (sum.clone(), sum)
            }
            AssignOp::AppendToArray => {
                let mut items = match before {
                    Value::Null => Vec::new(),
                    before => before.as_array().cloned().ok_or_else(wrong)?,
                };
                items.push(given.clone());
                (Value::array(items), given)
            }
            AssignOp::AppendToString => {
                let more = given.to_text();
                let before = match &before {
                    Value::Null => "",
                    before => before.as_str().ok_or_else(wrong)?,
                };
                (Value::text(format!("{before}{more}")), Value::text(more))
            }
            // `subset` has no other.
            _ => (given.clone(), given),
        };
        self.set_variable(&one.variable, value);
        Ok(output)
    }
}

/// A request in flight: dropped before its answer, it is aborted and its action Cancelled.
struct Sent<'s> {
    run: &'s Run<'s>,
    id: CallId,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.run.clock.drop_call(self.id) {
            let record = Record::new(Status::Cancelled, Value::Null);
            self.run.record(&call.place, &call.name, record);
        }
    }
}

/// A step that runs: dropped before its end, it is Cancelled.
struct Open<'s> {
    run: &'s Run<'s>,
    place: &'s Place,
    step: &'s Step,
    blocks: Vec<&'s Block>,
    has_ended: bool,
}

impl<'s> Open<'s> {
    fn of(run: &'s Run<'s>, place: &'s Place, step: &'s Step, blocks: &[&'s Block]) -> Self {
        Self {
            run,
            place,
            step,
            blocks: blocks.to_vec(),
            has_ended: false,
        }
    }

    fn outputs(&self) -> Value {
        match self.blocks.is_empty() {
            true => Value::Null,
            false => {
                let steps = self.blocks.iter().flat_map(|block| block.steps());
                self.place.outputs(steps)
            }
        }
    }

    fn end(mut self, record: Record) {
        self.has_ended = true;
        self.run.record(self.place, &self.step.name, record);
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            let record = Record::new(Status::Cancelled, self.outputs());
            self.run.record(self.place, &self.step.name, record);
        }
    }
}

fn failed(fault: &Fault) -> Record {
    let output = fault.output.clone().unwrap_or_default();
    Record::new(fault.status(), output)
}

/// A fault as an expression sees it.
pub fn error_object(failure: &Failure) -> Object {
    let fault = &failure.fault;
    let pairs = [
        ("kind", Value::from(&*fault.kind)),
        ("code", Value::from(fault.code.as_deref())),
        ("message", Value::from(fault.message.as_str())),
        ("action", Value::from(&*failure.action)),
    ];
    pairs
        .map(|(key, value)| (Name::from(key), value))
        .into_iter()
        .collect()
}

/// A case that is written as a key equals the number or the boolean that it spells.
fn is_case(case: &Value, value: &Value) -> bool {
    let spells = |value: &Value| case.as_str() == Some(&value.to_json());
    case == value || (matches!(value, Value::Int(_) | Value::Bool(_)) && spells(value))
}

/// The wait after a failed attempt, or after an iteration, from 1.
pub fn backoff(backoff: &Backoff, attempt: u32, requested_ms: Option<u64>) -> Duration {
    let (first, longest, own) = match backoff {
        Backoff::Fixed { interval, .. } => (*interval, *interval, *interval),
        Backoff::Exponential {
            interval, max, min, ..
        } => {
            let doubled = interval.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
            let least = (*min).min(*max);
            ((*interval).min(*max), *max, doubled.clamp(least, *max))
        }
        // `subset` has no other.
        Backoff::AzureExponential { interval, .. } => (*interval, *interval, *interval),
    };
    match requested_ms.map(Duration::from_millis) {
        Some(requested) => requested.clamp(first, LONGEST_REQUESTED.max(longest)),
        None => own,
    }
}
