//! How many connections there may be, and who leaves when there are too many: the one that has kept
//! the server waiting for the longest. A few more are let in beyond the limit, to ask whether the
//! server is there. This file never reads or writes anything.

use futures_util::task::AtomicWaker;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::Instant;

/// So many connections beyond the limit, for those that ask about the server's health.
const SPARE: usize = 32;

/// All connections of a listener.
pub(super) struct Connections {
    limit: usize,
    began: Instant,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    next: u64,
    taken: HashMap<u64, Arc<Slot>>,
    /// How many there are of each kind.
    counts: [usize; 3],
}

/// What a connection counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// One of so many.
    Usual,
    /// It hears events: it may stay for as long as it likes, and is counted apart.
    Stream,
    /// Beyond the limit.
    Spare,
}

/// One connection.
pub(super) struct Slot {
    number: u64,
    kind: Mutex<Kind>,
    /// How many of its requests are being answered.
    busy: AtomicUsize,
    /// It sends a body.
    sends: AtomicBool,
    /// It does not take what it is sent.
    stalls: AtomicBool,
    /// Since when the client is waited for, if it is, in milliseconds since the listener began.
    since: AtomicU64,
    /// It has to leave.
    ousted: AtomicBool,
    waker: AtomicWaker,
}

impl Slot {
    /// Whether a request of it is being answered.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }

    fn keeps_waiting(&self) -> bool {
        let waits = [&self.sends, &self.stalls];
        !self.is_busy() || waits.iter().any(|one| one.load(Ordering::Relaxed))
    }

    /// Ready when it has to leave.
    pub fn poll_ousted(&self, cx: &Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        match self.ousted.load(Ordering::Acquire) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn oust(&self) {
        self.ousted.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn kind(&self) -> Kind {
        *self.kind.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn count(&mut self, kind: Kind) -> &mut usize {
        let [usual, streams, spare] = &mut self.counts;
        match kind {
            Kind::Usual => usual,
            Kind::Stream => streams,
            Kind::Spare => spare,
        }
    }

    fn turn(&mut self, slot: &Slot, into: Kind) {
        let mut kind = slot.kind.lock().unwrap_or_else(PoisonError::into_inner);
        if self.taken.contains_key(&slot.number) {
            let before = self.count(*kind);
            *before = before.saturating_sub(1);
            *self.count(into) += 1;
        }
        *kind = into;
    }

    fn leave(&mut self, number: u64) {
        if let Some(slot) = self.taken.remove(&number) {
            let count = self.count(slot.kind());
            *count = count.saturating_sub(1);
        }
    }

    /// Sends away the one that has kept the server waiting for the longest; false: none does.
    fn oust(&mut self, kind: Kind) -> bool {
        let waiting = self.taken.values();
        let waiting = waiting.filter(|slot| slot.kind() == kind && slot.keeps_waiting());
        let longest = waiting.min_by_key(|slot| (slot.since.load(Ordering::Relaxed), slot.number));
        let Some(longest) = longest.cloned() else {
            return false;
        };
        self.leave(longest.number);
        longest.oust();
        true
    }
}

impl Connections {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            began: Instant::now(),
            slots: Mutex::default(),
        })
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in; none when there is no room even for one that asks about health.
    pub fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut slots = self.slots();
        let usual = *slots.count(Kind::Usual) < self.limit || slots.oust(Kind::Usual);
        let spare = usual || *slots.count(Kind::Spare) < SPARE || slots.oust(Kind::Spare);
        let kind = match (usual, spare) {
            (true, _) => Kind::Usual,
            (false, true) => Kind::Spare,
            (false, false) => return None,
        };
        let number = slots.next;
        slots.next += 1;
        let slot = Arc::new(Slot {
            number,
            kind: Mutex::new(kind),
            busy: AtomicUsize::new(0),
            sends: AtomicBool::new(false),
            stalls: AtomicBool::new(false),
            since: AtomicU64::new(self.now()),
            ousted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        *slots.count(kind) += 1;
        slots.taken.insert(number, Arc::clone(&slot));
        Some(Entry {
            connections: Arc::clone(self),
            slot,
        })
    }

    /// Makes room, where there is no file left for another connection.
    pub fn thin(&self) {
        self.slots().oust(Kind::Usual);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A connection that was let in, until this is dropped.
pub(super) struct Entry {
    connections: Arc<Connections>,
    pub slot: Arc<Slot>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.slots().leave(self.slot.number);
    }
}

impl Entry {
    /// Whether it takes what it is sent.
    pub fn takes(&self, takes: bool) {
        if self.slot.stalls.swap(!takes, Ordering::Relaxed) == takes && !takes {
            self.slot
                .since
                .store(self.connections.now(), Ordering::Relaxed);
        }
    }

    pub fn share(&self) -> Share {
        Share {
            connections: Arc::clone(&self.connections),
            slot: Arc::clone(&self.slot),
        }
    }
}

/// What requests know of their connection's place.
#[derive(Clone)]
pub(super) struct Share {
    connections: Arc<Connections>,
    slot: Arc<Slot>,
}

impl Share {
    /// Whether any request is answered, or only those about health: there may be room by now.
    pub fn has_room(&self) -> bool {
        if self.slot.kind() != Kind::Spare {
            return true;
        }
        let mut slots = self.connections.slots();
        let room = *slots.count(Kind::Usual) < self.connections.limit || slots.oust(Kind::Usual);
        if room {
            slots.turn(&self.slot, Kind::Usual);
        }
        room
    }

    /// Counts the connection as one that hears events, until this is dropped; none when there are
    /// as many as there may be.
    pub fn stream(&self) -> Option<Streaming> {
        let mut slots = self.connections.slots();
        if *slots.count(Kind::Stream) >= self.connections.limit {
            return None;
        }
        slots.turn(&self.slot, Kind::Stream);
        Some(Streaming(self.clone()))
    }

    /// A request is being answered until this is dropped.
    pub fn busy(&self) -> Busy {
        self.slot.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// A body is waited for until this is dropped.
    pub fn sends(&self) -> Sends {
        self.waits();
        self.slot.sends.store(true, Ordering::Relaxed);
        Sends(Arc::clone(&self.slot))
    }

    fn waits(&self) {
        self.slot
            .since
            .store(self.connections.now(), Ordering::Relaxed);
    }
}

/// A connection that hears events.
pub(super) struct Streaming(Share);

impl Drop for Streaming {
    fn drop(&mut self) {
        let Self(share) = self;
        share.connections.slots().turn(&share.slot, Kind::Usual);
    }
}

/// A request that is being answered.
pub(super) struct Busy(Share);

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(share) = self;
        share.waits();
        share.slot.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that comes.
pub(super) struct Sends(Arc<Slot>);

impl Drop for Sends {
    fn drop(&mut self) {
        self.0.sends.store(false, Ordering::Relaxed);
    }
}
