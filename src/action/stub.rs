//! Stubs: answers from a file for handlers that nobody has registered, so that a workflow can be
//! tried without what it is connected to. A handler always comes before a stub.

use crate::expression::Value;
use crate::model::{Answer, Fault, Name, Request, fault_kind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The stubs by name. A clone shares how far each sequence of answers is.
#[derive(Clone, Default)]
pub(super) struct Stubs {
    /// By the name without case.
    stubs: BTreeMap<String, Stub>,
}

#[derive(Clone)]
struct Stub {
    name: Name,
    answers: Vec<Answer>,
    given: Arc<AtomicUsize>,
}

impl Stubs {
    /// Adds a stub, or replaces the one of that name.
    pub(super) fn add(&mut self, name: Name, answers: Vec<Answer>) {
        let stub = Stub {
            name: Arc::clone(&name),
            answers,
            given: Arc::default(),
        };
        self.stubs.insert(name.to_lowercase(), stub);
    }

    pub(super) fn know(&self, handler: &str, action: &str) -> bool {
        self.stub(handler, action).is_some()
    }

    /// The names as they were given.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stubs.values().map(|stub| &*stub.name)
    }

    /// The next answer for this handler; none when there is no stub. After the last answer of a
    /// sequence it is given again.
    pub(super) fn answer(&self, handler: &str, request: &Request) -> Option<Result<Value, Fault>> {
        let stub = self.stub(handler, &request.action)?;
        let last = stub.answers.len().checked_sub(1)?;
        let next = stub.given.fetch_add(1, Ordering::Relaxed).min(last);
        Some(match stub.answers.get(next)? {
            Answer::Value(value) => Ok(value.clone()),
            Answer::Error {
                kind,
                code,
                message,
                output,
            } => {
                let kind = kind.as_deref().unwrap_or(fault_kind::HANDLER);
                let mut fault = Fault::new(kind, message.clone());
                fault.code = code.as_deref().map(Name::from);
                fault.output = output.clone();
                Err(fault)
            }
        })
    }

    /// That of the action, else of the handler, else of its connector.
    fn stub(&self, handler: &str, action: &str) -> Option<&Stub> {
        let connector = handler.split_once('/').map(|(connector, _)| connector);
        [Some(action), Some(handler), connector]
            .into_iter()
            .flatten()
            .find_map(|name| self.stubs.get(&name.to_lowercase()))
    }
}
