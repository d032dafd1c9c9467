//! The streams of events that remain open between two calls. An iteration receives one event, and the next iteration
//! continues the stream. Open streams exist only in memory: if a call finds none, it connects again.

use super::events::EventStream;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_model::model::{EVENTS, Request};

/// Maximum number of open streams. If there are more, the stream that no call has used for the longest time is closed.
const MAX_STREAMS: usize = 100;

/// A stream that no call uses for this time is closed. Streams are checked every [`CHECK_INTERVAL`].
const MAX_WAIT: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

#[derive(Default)]
pub(super) struct Streams(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// The streams, by the action that reads each.
    streams: BTreeMap<String, HeldStream>,
    /// The task that closes unused streams.
    closer: Option<JoinHandle<()>>,
}

struct HeldStream {
    /// The iteration that received the last event of the stream.
    iteration: u64,
    since: Instant,
    stream: Box<EventStream>,
}

/// An action, and the number of the current iteration of its innermost loop.
#[derive(Debug, PartialEq)]
struct Place {
    action: String,
    iteration: u64,
}

impl Place {
    /// Parses an idempotency key, `run/outer#2/inner#0/action`. Returns `None` outside of loops.
    fn of(key: &str) -> Option<Self> {
        let (before, after) = key.rsplit_once('#')?;
        let end = after.find(|letter: char| !letter.is_ascii_digit());
        let (iteration, rest) = after.split_at(end.unwrap_or(after.len()));
        Some(Self {
            action: format!("{before}#{rest}"),
            iteration: iteration.parse().ok()?,
        })
    }
}

impl Streams {
    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.0)
    }

    /// Returns true if there is an open stream that a call continues.
    pub fn has(&self, request: &Request) -> bool {
        let Some(place) = continued(request) else {
            return false;
        };
        let held = self.held();
        let held = held.streams.get(&place.action);
        held.is_some_and(|held| held.is_before(&place))
    }

    /// Returns the stream that a call continues. Another open stream of the action is closed, because it is not at the
    /// position of the run.
    pub fn take(&self, request: &Request) -> Option<Box<EventStream>> {
        let place = Place::of(&request.key)?;
        let held = self.held().streams.remove(&place.action)?;
        let continues = continued(request).is_some() && held.is_before(&place);
        continues.then_some(held.stream)
    }

    /// Stores a stream for the next iteration, if the action is in a loop.
    pub fn hold(&self, request: &Request, stream: Box<EventStream>) {
        let Some(place) = Place::of(&request.key) else {
            return;
        };
        // Do not store it for items of a foreach: the items are independent, so an item never continues the stream of
        // another one.
        if place.iteration > 0 && continued(request).is_none() {
            return;
        }
        let mut held = self.held();
        let since = Instant::now();
        let unused = HeldStream {
            iteration: place.iteration,
            since,
            stream,
        };
        held.streams.insert(place.action, unused);
        if held.streams.len() > MAX_STREAMS {
            let oldest = held.streams.iter().min_by_key(|(_, held)| held.since);
            let oldest = oldest.map(|(action, _)| action.clone());
            oldest.and_then(|oldest| held.streams.remove(&oldest));
        }
        if held.closer.as_ref().is_none_or(JoinHandle::is_finished) {
            let closer = close_unused(Arc::downgrade(&self.0));
            // The task does not belong to a call. It ends when no stream is open.
            #[allow(clippy::disallowed_methods)]
            let closer = tokio::spawn(closer);
            held.closer = Some(closer);
        }
    }
}

impl HeldStream {
    fn is_before(&self, place: &Place) -> bool {
        self.iteration.checked_add(1) == Some(place.iteration)
    }
}

/// Returns the place of a call, if the iteration before received an event of the same stream.
fn continued(request: &Request) -> Option<Place> {
    let position = request.inputs.get(EVENTS)?;
    Place::of(&request.key).filter(|_| !position.is_null())
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes unused streams. Ends when no stream is open.
async fn close_unused(all: Weak<Mutex<Held>>) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(all) = all.upgrade() else {
            return;
        };
        let mut held = lock(&all);
        held.streams
            .retain(|_, stream| stream.since.elapsed() < MAX_WAIT);
        if held.streams.is_empty() {
            held.closer = None;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_key_has_the_action_and_the_iteration() {
        let place = |action: &str, iteration| {
            let action = action.to_owned();
            Some(Place { action, iteration })
        };
        for (key, expected) in [
            ("run/look", None),
            ("run/poll#0/look", place("run/poll#/look", 0)),
            ("run/a#3/b#12/look", place("run/a#3/b#/look", 12)),
            ("run/each#7/~2/look", place("run/each#/~2/look", 7)),
        ] {
            assert_eq!(Place::of(key), expected, "{key}");
        }
    }
}
