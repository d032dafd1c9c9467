//! Limits the number of connections.
//! If there are too many, the connection for whose client the server has waited longest is closed. A few more
//! connections than the limit are accepted, but only for requests about health.

use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Number of connections beyond the limit that are accepted, only for requests about health.
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

/// Against which limit a connection counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The connection counts against the limit of all connections.
    Usual,
    /// The connection receives events. It may remain open without a time limit, and has a limit of its own.
    Stream,
    /// The connection is beyond the limit, and may only send requests about health.
    Spare,
}

/// The state of a connection.
struct Slot {
    kind: Kind,
    /// Number of the connection's requests that are being answered.
    busy: usize,
    /// Whether the client is sending a body.
    sends: bool,
    /// Whether the client has stopped reading what the server sends.
    stalls: bool,
    /// The time since when the server has been waiting for the client. Not used while the server does not wait.
    since: Instant,
    eviction: Arc<Eviction>,
}

/// Whether a connection must be closed to make room for another one.
#[derive(Default)]
struct Eviction {
    is_evicted: AtomicBool,
    waker: AtomicWaker,
}

impl Slots {
    /// Returns true if there is room for one more connection of a kind. May close another connection to make room.
    fn has_room(&mut self, kind: Kind, limit: usize) -> bool {
        let there = self.taken.values().filter(|slot| slot.kind == kind);
        there.count() < limit || self.evict_longest_waiting(kind)
    }

    /// Closes the connection for whose client the server has waited longest. Returns false if the server does not wait
    /// for any client with a connection of this kind.
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
        slot.eviction.is_evicted.store(true, Ordering::Release);
        slot.eviction.waker.wake();
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

    /// Admits a connection. Returns `None` if there is no room, not even for requests about health.
    pub fn enter(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut slots = self.slots();
        let kind = match slots.has_room(Kind::Usual, self.limit) {
            true => Kind::Usual,
            false if slots.has_room(Kind::Spare, SPARE) => Kind::Spare,
            false => return None,
        };
        let eviction = Arc::<Eviction>::default();
        let slot = Slot {
            kind,
            busy: 0,
            sends: false,
            stalls: false,
            since: Instant::now(),
            eviction: Arc::clone(&eviction),
        };
        let number = slots.next;
        slots.next += 1;
        slots.taken.insert(number, slot);
        Some(Arc::new(Connection {
            all: Arc::clone(self),
            number,
            eviction,
        }))
    }

    /// Closes a connection. Called if the process has no file descriptor left for a new one.
    pub fn evict_one(&self) {
        self.slots().evict_longest_waiting(Kind::Usual);
    }
}

/// An admitted connection. It is counted until this value is dropped.
pub(super) struct Connection {
    all: Arc<Connections>,
    number: u64,
    eviction: Arc<Eviction>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.slots().taken.remove(&self.number);
    }
}

impl Connection {
    /// Reads or changes the connection's state. Returns `None` if the connection must be closed.
    fn slot<T>(&self, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.all.slots().taken.get_mut(&self.number).map(change)
    }

    /// Returns true if a request of the connection is being answered.
    pub fn is_busy(&self) -> bool {
        self.slot(|slot| slot.busy > 0).unwrap_or(false)
    }

    /// Returns `Ready` when the connection must be closed, to make room for another one.
    pub fn poll_evicted(&self, cx: &Context<'_>) -> Poll<()> {
        self.eviction.waker.register(cx.waker());
        match self.eviction.is_evicted.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Sets whether the client reads what the server sends.
    pub fn set_reading(&self, is_reading: bool) {
        self.slot(|slot| {
            if !is_reading && !slot.stalls {
                slot.since = Instant::now();
            }
            slot.stalls = !is_reading;
        });
    }

    /// Returns true if the connection may send any request. If false, it may only send requests about health.
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

    /// Counts the connection as one that receives events, until the guard is dropped.
    /// Returns `None` if the maximum number of such connections is reached.
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

    /// Counts a request as being answered until the guard is dropped.
    pub fn busy(self: &Arc<Self>) -> ActivityGuard {
        self.slot(|slot| slot.busy += 1);
        self.until(|slot| {
            slot.since = Instant::now();
            slot.busy = slot.busy.saturating_sub(1);
        })
    }

    /// Marks that the server waits for a body until the guard is dropped.
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

/// Undoes a change of a connection's state when it is dropped.
pub(super) struct ActivityGuard(Arc<Connection>, fn(&mut Slot));

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.slot(self.1);
    }
}
