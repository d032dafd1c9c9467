//! How many connections there may be. When there are too many, the one that has made the server wait
//! for the longest is closed. A few more than the limit are accepted, to ask about health.

use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Instant;

/// How many connections beyond the limit are accepted, to ask about health.
const SPARE: usize = 32;

/// All connections of a listener.
pub(super) struct Connections {
    limit: usize,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    next: u64,
    taken: BTreeMap<u64, Slot>,
}

/// What a connection counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It counts against the limit.
    Usual,
    /// It follows events. It may stay for as long as it likes, and is counted separately.
    Stream,
    /// Beyond the limit.
    Spare,
}

/// What is known of a connection.
struct Slot {
    kind: Kind,
    /// How many of its requests are being answered.
    busy: usize,
    /// It sends a body.
    sends: bool,
    /// It does not take what it is sent.
    stalls: bool,
    /// Since when the server waits for the client, if it does.
    since: Instant,
    ousted: Arc<Eviction>,
}

/// Whether a connection has to leave.
#[derive(Default)]
struct Eviction {
    is: AtomicBool,
    waker: AtomicWaker,
}

impl Slots {
    /// Whether there is room for one more of a kind, by now.
    fn has_room(&mut self, kind: Kind, limit: usize) -> bool {
        let there = self.taken.values().filter(|slot| slot.kind == kind);
        there.count() < limit || self.evict_longest_waiting(kind)
    }

    /// Closes the one that has made the server wait for the longest; false: none makes it wait.
    fn evict_longest_waiting(&mut self, kind: Kind) -> bool {
        let waiting = self
            .taken
            .iter()
            .filter(|(_, slot)| slot.kind == kind && (slot.busy == 0 || slot.sends || slot.stalls));
        let longest = waiting.min_by_key(|(number, slot)| (slot.since, **number));
        let longest = longest.map(|(number, _)| *number);
        let Some(slot) = longest.and_then(|number| self.taken.remove(&number)) else {
            return false;
        };
        slot.ousted.is.store(true, Ordering::Release);
        slot.ousted.waker.wake();
        true
    }
}

impl Connections {
    pub fn new(limit: usize) -> Arc<Self> {
        let slots = Mutex::default();
        Arc::new(Self { limit, slots })
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; none when there is no room even for one that asks about health.
    pub fn enter(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut slots = self.slots();
        let kind = match slots.has_room(Kind::Usual, self.limit) {
            true => Kind::Usual,
            false if slots.has_room(Kind::Spare, SPARE) => Kind::Spare,
            false => return None,
        };
        let ousted = Arc::<Eviction>::default();
        let slot = Slot {
            kind,
            busy: 0,
            sends: false,
            stalls: false,
            since: Instant::now(),
            ousted: Arc::clone(&ousted),
        };
        let number = slots.next;
        slots.next += 1;
        slots.taken.insert(number, slot);
        Some(Arc::new(Connection {
            all: Arc::clone(self),
            number,
            ousted,
        }))
    }

    /// Makes room when no file descriptor is left for another connection.
    pub fn evict_one(&self) {
        self.slots().evict_longest_waiting(Kind::Usual);
    }
}

/// A connection that was let in, until this is dropped.
pub(super) struct Connection {
    all: Arc<Connections>,
    number: u64,
    ousted: Arc<Eviction>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.slots().taken.remove(&self.number);
    }
}

impl Connection {
    /// Reads or changes its slot; none once it has to leave.
    fn slot<T>(&self, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.all.slots().taken.get_mut(&self.number).map(change)
    }

    /// Whether a request of it is being answered.
    pub fn is_busy(&self) -> bool {
        self.slot(|slot| slot.busy > 0).unwrap_or(false)
    }

    /// Ready when it has to leave.
    pub fn poll_evicted(&self, cx: &Context<'_>) -> Poll<()> {
        self.ousted.waker.register(cx.waker());
        match self.ousted.is.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Whether it takes what it is sent.
    pub fn set_takes(&self, takes: bool) {
        self.slot(|slot| {
            if !takes && !slot.stalls {
                slot.since = Instant::now();
            }
            slot.stalls = !takes;
        });
    }

    /// Whether any request is answered, or only those about health: there may be room by now.
    pub fn has_room(&self) -> bool {
        let mut slots = self.all.slots();
        let spare = |slot: &Slot| slot.kind == Kind::Spare;
        if !slots.taken.get(&self.number).is_some_and(spare) {
            return true;
        }
        let room = slots.has_room(Kind::Usual, self.all.limit);
        if room && let Some(slot) = slots.taken.get_mut(&self.number) {
            slot.kind = Kind::Usual;
        }
        room
    }

    /// Counts the connection as one that receives events, until this is dropped; none when the
    /// maximum is reached.
    pub fn stream(self: &Arc<Self>) -> Option<ActivityGuard> {
        let mut slots = self.all.slots();
        let streams = slots.taken.values();
        let streams = streams.filter(|slot| slot.kind == Kind::Stream).count();
        if streams >= self.all.limit {
            return None;
        }
        if let Some(slot) = slots.taken.get_mut(&self.number) {
            slot.kind = Kind::Stream;
        }
        drop(slots);
        Some(self.until(|slot| slot.kind = Kind::Usual))
    }

    /// A request is being answered until this is dropped.
    pub fn busy(self: &Arc<Self>) -> ActivityGuard {
        self.slot(|slot| slot.busy += 1);
        self.until(|slot| {
            slot.since = Instant::now();
            slot.busy = slot.busy.saturating_sub(1);
        })
    }

    /// A body is waited for until this is dropped.
    pub fn sends(self: &Arc<Self>) -> ActivityGuard {
        self.slot(|slot| {
            slot.since = Instant::now();
            slot.sends = true;
        });
        self.until(|slot| slot.sends = false)
    }

    fn until(self: &Arc<Self>, end: fn(&mut Slot)) -> ActivityGuard {
        ActivityGuard(Arc::clone(self), end)
    }
}

/// What a connection does until this is dropped.
pub(super) struct ActivityGuard(Arc<Connection>, fn(&mut Slot));

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.slot(self.1);
    }
}
