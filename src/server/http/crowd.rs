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
pub(super) struct Crowd {
    limit: usize,
    began: Instant,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    next: u64,
    taken: HashMap<u64, Arc<Seat>>,
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
pub(super) struct Seat {
    number: u64,
    kind: Mutex<Kind>,
    /// How many of its requests are being answered.
    busy: AtomicUsize,
    /// It sends a body.
    sends: AtomicBool,
    /// It does not take what it is sent.
    stalls: AtomicBool,
    /// Since when the client is waited for, if it is, in milliseconds of the crowd's time.
    since: AtomicU64,
    /// It has to leave.
    ousted: AtomicBool,
    waker: AtomicWaker,
}

impl Seat {
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

impl Seats {
    fn count(&mut self, kind: Kind) -> &mut usize {
        let [usual, streams, spare] = &mut self.counts;
        match kind {
            Kind::Usual => usual,
            Kind::Stream => streams,
            Kind::Spare => spare,
        }
    }

    fn turn(&mut self, seat: &Seat, into: Kind) {
        let mut kind = seat.kind.lock().unwrap_or_else(PoisonError::into_inner);
        if self.taken.contains_key(&seat.number) {
            let before = self.count(*kind);
            *before = before.saturating_sub(1);
            *self.count(into) += 1;
        }
        *kind = into;
    }

    fn leave(&mut self, number: u64) {
        if let Some(seat) = self.taken.remove(&number) {
            let count = self.count(seat.kind());
            *count = count.saturating_sub(1);
        }
    }

    /// Sends away the one that has kept the server waiting for the longest; false: none does.
    fn oust(&mut self, kind: Kind) -> bool {
        let waiting = self.taken.values();
        let waiting = waiting.filter(|seat| seat.kind() == kind && seat.keeps_waiting());
        let longest = waiting.min_by_key(|seat| (seat.since.load(Ordering::Relaxed), seat.number));
        let Some(longest) = longest.cloned() else {
            return false;
        };
        self.leave(longest.number);
        longest.oust();
        true
    }
}

impl Crowd {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            began: Instant::now(),
            seats: Mutex::default(),
        })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a connection in; none when there is no room even for one that asks about health.
    pub fn enter(self: &Arc<Self>) -> Option<Entry> {
        let mut seats = self.seats();
        let usual = *seats.count(Kind::Usual) < self.limit || seats.oust(Kind::Usual);
        let spare = usual || *seats.count(Kind::Spare) < SPARE || seats.oust(Kind::Spare);
        let kind = match (usual, spare) {
            (true, _) => Kind::Usual,
            (false, true) => Kind::Spare,
            (false, false) => return None,
        };
        let number = seats.next;
        seats.next += 1;
        let seat = Arc::new(Seat {
            number,
            kind: Mutex::new(kind),
            busy: AtomicUsize::new(0),
            sends: AtomicBool::new(false),
            stalls: AtomicBool::new(false),
            since: AtomicU64::new(self.now()),
            ousted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        *seats.count(kind) += 1;
        seats.taken.insert(number, Arc::clone(&seat));
        Some(Entry {
            crowd: Arc::clone(self),
            seat,
        })
    }

    /// Makes room, where there is no file left for another connection.
    pub fn thin(&self) {
        self.seats().oust(Kind::Usual);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A connection that was let in, until this is dropped.
pub(super) struct Entry {
    crowd: Arc<Crowd>,
    pub seat: Arc<Seat>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.crowd.seats().leave(self.seat.number);
    }
}

impl Entry {
    /// Whether it takes what it is sent.
    pub fn takes(&self, takes: bool) {
        if self.seat.stalls.swap(!takes, Ordering::Relaxed) == takes && !takes {
            self.seat.since.store(self.crowd.now(), Ordering::Relaxed);
        }
    }

    pub fn share(&self) -> Share {
        Share {
            crowd: Arc::clone(&self.crowd),
            seat: Arc::clone(&self.seat),
        }
    }
}

/// What requests know of their connection's place.
#[derive(Clone)]
pub(super) struct Share {
    crowd: Arc<Crowd>,
    seat: Arc<Seat>,
}

impl Share {
    /// Whether any request is answered, or only those about health: there may be room by now.
    pub fn has_room(&self) -> bool {
        if self.seat.kind() != Kind::Spare {
            return true;
        }
        let mut seats = self.crowd.seats();
        let room = *seats.count(Kind::Usual) < self.crowd.limit || seats.oust(Kind::Usual);
        if room {
            seats.turn(&self.seat, Kind::Usual);
        }
        room
    }

    /// Counts the connection as one that hears events, until this is dropped; none when there are
    /// as many as there may be.
    pub fn stream(&self) -> Option<Streaming> {
        let mut seats = self.crowd.seats();
        if *seats.count(Kind::Stream) >= self.crowd.limit {
            return None;
        }
        seats.turn(&self.seat, Kind::Stream);
        Some(Streaming(self.clone()))
    }

    /// A request is being answered until this is dropped.
    pub fn busy(&self) -> Busy {
        self.seat.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// A body is waited for until this is dropped.
    pub fn sends(&self) -> Sends {
        self.waits();
        self.seat.sends.store(true, Ordering::Relaxed);
        Sends(Arc::clone(&self.seat))
    }

    fn waits(&self) {
        self.seat.since.store(self.crowd.now(), Ordering::Relaxed);
    }
}

/// A connection that hears events.
pub(super) struct Streaming(Share);

impl Drop for Streaming {
    fn drop(&mut self) {
        let Self(share) = self;
        share.crowd.seats().turn(&share.seat, Kind::Usual);
    }
}

/// A request that is being answered.
pub(super) struct Busy(Share);

impl Drop for Busy {
    fn drop(&mut self) {
        let Self(share) = self;
        share.waits();
        share.seat.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that comes.
pub(super) struct Sends(Arc<Seat>);

impl Drop for Sends {
    fn drop(&mut self) {
        self.0.sends.store(false, Ordering::Relaxed);
    }
}
