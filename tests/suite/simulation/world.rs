//! The world outside, on virtual time. It answers requests when they are due, always the same to the same request, and
//! records each caller.

use super::books::{Books, Call, lock};
use crate::store::contract::noise;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass_actions::{Attempt, Executor};
use windlass_expression::Value;
use windlass_model::model::{Fault, Name, Request};
use windlass_value::time::Timestamp;

type Answer = Result<Value, Fault>;

/// The final answer to an effect, however often it is requested.
#[derive(Clone, Debug)]
struct Planned {
    request: Request,
    /// None means that there is never an answer.
    due: Option<Timestamp>,
    answer: Answer,
}

struct Flying {
    call: Call,
    due: Option<Timestamp>,
    to: oneshot::Sender<Answer>,
}

pub struct World {
    seed: u64,
    books: Arc<Mutex<Books>>,
    pub now: Timestamp,
    planned: BTreeMap<Call, Planned>,
    flying: Vec<Flying>,
    /// When each effect was first requested, and its request.
    pub requests: BTreeMap<Call, (Timestamp, Request)>,
    /// How often each effect was started.
    pub begun: BTreeMap<Call, usize>,
    /// The effects that were started since the last crash.
    life: BTreeSet<Call>,
    dead: bool,
    pub wrong: Vec<String>,
    /// How many calls started before their steps were stored.
    pub early: usize,
    /// How many answers were delivered.
    pub given: usize,
}

impl World {
    pub fn new(seed: u64, books: Arc<Mutex<Books>>, now: Timestamp) -> Self {
        Self {
            seed,
            books,
            now,
            planned: BTreeMap::new(),
            flying: Vec::new(),
            requests: BTreeMap::new(),
            begun: BTreeMap::new(),
            life: BTreeSet::new(),
            dead: false,
            wrong: Vec::new(),
            early: 0,
            given: 0,
        }
    }

    /// The caller has died. Everything that it had started or was about to start ends at the next poll.
    pub fn crashed(&mut self) {
        self.dead = true;
        self.flying.clear();
        self.refused();
    }

    /// A new process has started.
    pub fn back(&mut self) {
        self.dead = false;
    }

    /// Some started effects were interrupted, and start again.
    pub fn refused(&mut self) {
        let mut books = lock(&self.books);
        for call in std::mem::take(&mut self.life) {
            if !books.knows(&call) {
                books.ties.insert(call.0);
            }
        }
    }

    fn begin(&mut self, request: &Request) -> Option<oneshot::Receiver<Answer>> {
        if self.dead {
            return None;
        }
        let books = lock(&self.books);
        let pending = books.is_pending(request);
        let last = books.last(request).filter(|_| pending);
        let call = match last {
            Some(last) if !request.is_safe() || !self.life.contains(&last) => last,
            _ => books.next(request),
        };
        drop(books);
        if !request.is_safe() && !pending {
            self.wrong.push(format!(
                "{} was begun before its step was stored",
                request.key
            ));
            return None;
        }
        if !self.life.insert(call.clone()) {
            self.wrong
                .push(format!("{} was begun twice by one process", request.key));
        }
        self.early += usize::from(!pending);
        *self.begun.entry(call.clone()).or_default() += 1;
        if !self.planned.contains_key(&call) {
            let planned = self.plan(&call, request);
            self.planned.insert(call.clone(), planned);
            self.requests
                .insert(call.clone(), (self.now, request.clone()));
        }
        let planned = &self.planned[&call];
        if planned.request != *request {
            self.wrong
                .push(format!("{} was repeated with another request", request.key));
        }
        let (to, receiver) = oneshot::channel();
        let due = planned.due;
        self.flying.push(Flying { call, due, to });
        Some(receiver)
    }

    fn plan(&self, call: &Call, request: &Request) -> Planned {
        let mut hasher = DefaultHasher::new();
        (self.seed, &*call.0, &call.1, call.2).hash(&mut hasher);
        let hash = hasher.finish();
        let after = match (hash >> 32) % 4 {
            0 => 0,
            _ => (hash >> 8) % 9_000,
        };
        let fault = |kind: &str| Fault::new(kind, format!("it was {kind}"));
        let answer = match hash % 100 {
            0..=5 => Err(fault("shell").transient()),
            6 => Err(fault("input")),
            7 => Err(fault("timeout").transient()),
            _ if request.inputs.get("big").is_some() => Ok(Value::text(noise(7, 20_000))),
            _ => Ok(answer_value(request, hash)),
        };
        Planned {
            request: request.clone(),
            due: (!hash.is_multiple_of(97)).then(|| self.now.plus(Duration::from_millis(after))),
            answer,
        }
    }

    /// When the next answer is due.
    pub fn due_at(&mut self) -> Option<Timestamp> {
        self.flying.retain(|one| !one.to.is_closed());
        self.flying.iter().filter_map(|one| one.due).min()
    }

    /// Delivers the answers that are due, either the first one or all. Returns their runs.
    pub fn give(&mut self, all: bool) -> Vec<Name> {
        let now = self.now;
        let mut due: Vec<(Timestamp, Call)> = self
            .flying
            .iter()
            .filter_map(|one| Some((one.due.filter(|due| *due <= now)?, one.call.clone())))
            .collect();
        due.sort();
        due.truncate(if all { usize::MAX } else { 1 });
        let mut whose = Vec::new();
        for (_, call) in due {
            let at = self.flying.iter().position(|one| one.call == call);
            let one = self.flying.remove(at.unwrap());
            if one.to.send(self.planned[&call].answer.clone()).is_ok() {
                self.given += 1;
                whose.push(call.0);
            }
        }
        whose
    }

    /// Whether an effect will never be answered.
    pub fn is_never(&self, books: &Books, request: &Request) -> bool {
        let call = books.last(request);
        let planned = call.and_then(|call| self.planned.get(&call));
        planned.is_some_and(|planned| planned.due.is_none())
    }
}

/// A number in the expected form.
fn answer_value(request: &Request, hash: u64) -> Value {
    let number = Value::from(i64::try_from(hash % 7).unwrap());
    let valid = || {
        let score = Value::Float((hash % 10) as f64 / 10.0);
        let valid = Value::Bool((hash >> 4).is_multiple_of(3));
        let errors = Value::array(vec![Value::text("no")]);
        Value::from_pairs([("valid", valid), ("score", score), ("errors", errors)])
    };
    match &*request.executor {
        "http" => {
            let body = if request.inputs.to_json().contains("/valid") {
                valid()
            } else {
                number
            };
            let headers = Value::from_json("{}").unwrap();
            Value::from_pairs([
                ("statusCode", Value::from(200_i64)),
                ("headers", headers),
                ("body", body),
            ])
        }
        "agent" => Value::from_pairs([(
            "content",
            Value::text(format!(
                "{{\"n\": {}, \"session_id\": \"s{}\"}}",
                hash % 7,
                hash % 5
            )),
        )]),
        _ if request.action.contains("evaluat") => valid(),
        _ => number,
    }
}

/// The executor that passes requests to the world.
pub struct Door(pub Arc<Mutex<World>>);

impl Executor for Door {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        let answer = lock(&self.0).begin(request);
        Box::pin(async move {
            match answer {
                Some(answer) => match answer.await {
                    Ok(answer) => answer,
                    Err(_) => Err(Fault::new("internal", "the caller is gone")),
                },
                None => Err(Fault::new("internal", "it should not have been asked")),
            }
        })
    }
}
