//! The only place where the clock is read, and its replacement in a simulation.

use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use windlass_value::time::Timestamp;

/// A clock that also runs while the computer is suspended, and that cannot be set.
#[cfg(target_os = "linux")]
const PASSING: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const PASSING: ClockId = ClockId::CLOCK_MONOTONIC;

/// The time of this process minus the time of [`PASSING`], in microseconds. It only grows.
static AHEAD: AtomicI64 = AtomicI64::new(i64::MIN);

/// Returns the time of this process, as wall clock time, so that due times mean the same after a restart.
///
/// If the wall clock is set back, this time is not, so that no timer is delayed. If the wall clock is set forward, this
/// time moves forward, too.
#[must_use]
pub fn now() -> Timestamp {
    // Read the wall clock first. If the thread is interrupted between the two reads, `ahead` is too small, and
    // `fetch_max` ignores it.
    let wall = micros(ClockId::CLOCK_REALTIME);
    let passing = micros(PASSING);
    let ahead = wall.saturating_sub(passing);
    let ahead = AHEAD.fetch_max(ahead, Ordering::Relaxed).max(ahead);
    Timestamp(passing.saturating_add(ahead).div_euclid(1_000))
}

/// Moves the time of this process forward to an instant. Does nothing if the time is already later.
fn not_before(instant: Timestamp) {
    let ahead = instant
        .0
        .saturating_mul(1_000)
        .saturating_sub(micros(PASSING));
    AHEAD.fetch_max(ahead, Ordering::Relaxed);
}

fn micros(clock: ClockId) -> i64 {
    // This fails only if the system does not have this clock.
    clock_gettime(clock).map_or(0, |time| {
        time.tv_sec()
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_nsec() / 1_000)
    })
}

/// The source of a driver's time.
#[derive(Clone)]
pub(super) enum Clock {
    /// The clock of the process.
    Process,
    /// The clock of a simulation.
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

    /// Moves the time forward to `instant`, the time when stored data was written. If the wall clock was set back while
    /// no process was running, the time continues from `instant`, so that timers are not delayed.
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
