//! The only place where the clock is read, and its replacement in a simulation.

use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use windlass_value::time::Timestamp;

/// A clock that also runs while the machine is suspended, and is never set.
#[cfg(target_os = "linux")]
const PASSING: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const PASSING: ClockId = ClockId::CLOCK_MONOTONIC;

/// How far this process's time is ahead of [`PASSING`], in microseconds. It only grows.
static AHEAD: AtomicI64 = AtomicI64::new(i64::MIN);

/// The time of this process, in the terms of the wall clock, so that due times mean the same after
/// a restart. It goes by what has passed: a wall clock that is set back delays nothing, and one
/// that is set forward is followed.
#[must_use]
pub fn now() -> Timestamp {
    // In this order a thread that is held up in between finds too little, which does no harm.
    let wall = micros(ClockId::CLOCK_REALTIME);
    let passing = micros(PASSING);
    let ahead = wall.saturating_sub(passing);
    let ahead = AHEAD.fetch_max(ahead, Ordering::Relaxed).max(ahead);
    Timestamp(passing.saturating_add(ahead).div_euclid(1_000))
}

/// Moves the time of this process forward to an instant, if it is before that.
fn not_before(instant: Timestamp) {
    let ahead = instant
        .0
        .saturating_mul(1_000)
        .saturating_sub(micros(PASSING));
    AHEAD.fetch_max(ahead, Ordering::Relaxed);
}

fn micros(clock: ClockId) -> i64 {
    // Only a clock that the system does not have cannot be read.
    clock_gettime(clock).map_or(0, |time| {
        time.tv_sec()
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_nsec() / 1_000)
    })
}

/// Where a driver's time comes from.
#[derive(Clone)]
pub(super) enum Clock {
    /// The process's own.
    Process,
    /// A simulation's.
    Virtual(Arc<dyn Fn() -> Timestamp + Send + Sync>),
}

impl Clock {
    pub fn of(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::Virtual(Arc::new(clock))
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::Process => now(),
            Self::Virtual(clock) => clock(),
        }
    }

    /// What is stored was written at `instant`: a clock that was set back while no process was
    /// running continues from then, so that what is due is not delayed by as much.
    pub fn not_before(&self, instant: Timestamp) {
        let now = self.now();
        if matches!(self, Self::Process) && now < instant {
            let behind = instant.since(now).as_secs();
            tracing::warn!(
                behind,
                "the clock is behind the stored time by this many seconds: time continues from the \
                 stored value"
            );
            not_before(instant);
        }
    }
}
