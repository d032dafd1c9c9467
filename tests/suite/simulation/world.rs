//! The world outside, on virtual time: it answers requests when their time has come, the same to
//! the same request, and keeps account of who asked.

use super::books::{Books, lock};
use crate::store::contract::noise;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass::internals::action::{Attempt, Executor};
use windlass::internals::expression::Value;
use windlass::internals::machine::EffectId;
use windlass::internals::model::{Fault, Name, Request};
use windlass::internals::time::Timestamp;

type Answer = Result<Value, Fault>;

/// What will be said to an effect, once and for all, however often it is asked.
#[derive(Clone, Debug)]
struct Planned {
    request: Request,
    /// None: never anything.
    due: Option<Timestamp>,
    answer: Answer,
}

struct Flying {
    run: Name,
    id: EffectId,
    due: Option<Timestamp>,
    to: oneshot::Sender<Answer>,
}

pub struct World {
    seed: u64,
    books: Arc<Mutex<Books>>,
    pub now: Timestamp,
    planned: BTreeMap<(Name, EffectId), Planned>,
    flying: Vec<Flying>,
    /// When each effect was first asked for, and with what.
    pub asked: BTreeMap<(Name, EffectId), (Timestamp, Request)>,
    /// How often each effect was begun.
    pub begun: BTreeMap<(Name, EffectId), usize>,
    /// Those begun since the last crash.
    life: BTreeSet<(Name, EffectId)>,
    dead: bool,
    pub wrong: Vec<String>,
    /// How many answers were given.
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
            asked: BTreeMap::new(),
            begun: BTreeMap::new(),
            life: BTreeSet::new(),
            dead: false,
            wrong: Vec::new(),
            given: 0,
        }
    }

    /// Whoever asked is no more. What it had begun and what it was about to begin ends with it,
    /// at the next poll.
    pub fn crashed(&mut self) {
        self.dead = true;
        self.flying.clear();
        self.life.clear();
    }

    /// Somebody asks again.
    pub fn back(&mut self) {
        self.dead = false;
    }

    /// Some of what was begun was cut, and begins again.
    pub fn refused(&mut self) {
        self.life.clear();
    }

    fn begin(&mut self, request: &Request) -> Option<oneshot::Receiver<Answer>> {
        if self.dead {
            return None;
        }
        let run = request.key.split('/').next().unwrap_or_default();
        let Some(id) = lock(&self.books).effect_of(run, request) else {
            self.wrong.push(format!(
                "{} was begun before its step was stored",
                request.key
            ));
            return None;
        };
        let key = (Name::from(run), id);
        if !self.life.insert(key.clone()) {
            self.wrong
                .push(format!("{} was begun twice by one process", request.key));
        }
        *self.begun.entry(key.clone()).or_default() += 1;
        if !self.planned.contains_key(&key) {
            let planned = self.plan(&key, request);
            self.planned.insert(key.clone(), planned);
            self.asked.insert(key.clone(), (self.now, request.clone()));
        }
        let planned = &self.planned[&key];
        if planned.request != *request {
            self.wrong
                .push(format!("{} was repeated with another request", request.key));
        }
        let (to, receiver) = oneshot::channel();
        let due = planned.due;
        let (run, id) = key;
        self.flying.push(Flying { run, id, due, to });
        Some(receiver)
    }

    fn plan(&self, key: &(Name, EffectId), request: &Request) -> Planned {
        let mut hasher = DefaultHasher::new();
        (self.seed, &*key.0, key.1.0).hash(&mut hasher);
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
            _ => Ok(said(request, hash)),
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

    /// Gives the answers that are due: the first one, or all of them. Gives whose they were.
    pub fn give(&mut self, all: bool) -> Vec<Name> {
        let now = self.now;
        let mut due: Vec<(Timestamp, Name, EffectId)> = self
            .flying
            .iter()
            .filter_map(|one| Some((one.due.filter(|due| *due <= now)?, one.run.clone(), one.id)))
            .collect();
        due.sort();
        due.truncate(if all { usize::MAX } else { 1 });
        let mut whose = Vec::new();
        for (_, run, id) in due {
            let at = self
                .flying
                .iter()
                .position(|one| one.run == run && one.id == id);
            let one = self.flying.remove(at.unwrap());
            let key = (one.run, one.id);
            if one.to.send(self.planned[&key].answer.clone()).is_ok() {
                self.given += 1;
                whose.push(key.0);
            }
        }
        whose
    }

    /// Whether an effect will never be answered.
    pub fn is_never(&self, run: &Name, id: EffectId) -> bool {
        let planned = self.planned.get(&(run.clone(), id));
        planned.is_some_and(|planned| planned.due.is_none())
    }
}

/// A number, in the form in which it is expected.
fn said(request: &Request, hash: u64) -> Value {
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

/// The executor through which the world is asked.
pub struct Door(pub Arc<Mutex<World>>);

impl Executor for Door {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        let answer = lock(&self.0).begin(request);
        Box::pin(async move {
            match answer {
                Some(answer) => match answer.await {
                    Ok(answer) => answer,
                    Err(_) => Err(Fault::new("internal", "whoever asked is no more")),
                },
                None => Err(Fault::new("internal", "it should not have been asked")),
            }
        })
    }
}
