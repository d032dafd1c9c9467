//! Detects hosts that are down. If many calls in a row from several runs failed, only one call at a time tries the
//! host, and the other calls wait. The code reads no clock: the caller passes the time, in milliseconds.

use windlass_model::model::{Fault, Name, fault_kind};

/// A host counts as down after this number of failed calls in a row, if they are from at least [`RUNS`] different runs.
/// One run is not enough, because its failures may be caused by one URL of the host.
const FAILURES: u32 = 10;
const RUNS: usize = 3;

/// Time between two tries, in milliseconds. It doubles after each failed try, up to [`LONGEST_INTERVAL`].
const FIRST_INTERVAL: i64 = 1_000;
const LONGEST_INTERVAL: i64 = 30_000;

/// If a try has not ended after this time, in milliseconds, another call may try, too.
const LONGEST_TRY: i64 = 30_000;

#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    /// Some runs whose calls failed since the last success.
    runs: Vec<Name>,
    down: Option<Down>,
    last_number: u64,
}

#[derive(Debug)]
struct Down {
    next_try_at: i64,
    interval: i64,
    /// The number of the try in flight, and the time when it began.
    trying: Option<(u64, i64)>,
}

/// What a call does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerTurn {
    Begin,
    /// The call begins as a try with this number.
    Try(u64),
    /// The call has to wait. It checks again at this time, or earlier if the try in flight ends.
    WaitUntil(i64),
}

impl Breaker {
    pub fn is_closed(&self) -> bool {
        self.down.is_none()
    }

    /// Returns how many calls failed in a row. `None` if the host does not count as down.
    pub fn failures(&self) -> Option<u32> {
        self.down.as_ref().map(|_| self.failures)
    }

    /// Returns when the next call begins, as an estimate: a try in flight may end earlier or later.
    pub fn begins_at(&self, now: i64) -> i64 {
        self.down
            .as_ref()
            .map_or(now, |down| down.next_try_at.max(now))
    }

    pub fn turn(&mut self, now: i64) -> BreakerTurn {
        let Some(down) = &mut self.down else {
            return BreakerTurn::Begin;
        };
        if let Some((_, since)) = down.trying
            && now < since.saturating_add(LONGEST_TRY)
        {
            return BreakerTurn::WaitUntil(since.saturating_add(LONGEST_TRY));
        }
        if now < down.next_try_at {
            return BreakerTurn::WaitUntil(down.next_try_at);
        }
        self.last_number += 1;
        down.trying = Some((self.last_number, now));
        BreakerTurn::Try(self.last_number)
    }

    /// Ends a try, whatever its result. Another call may then try the host.
    pub fn give_back(&mut self, number: u64) {
        if let Some(down) = &mut self.down
            && down.trying.is_some_and(|(trying, _)| trying == number)
        {
            down.trying = None;
        }
    }

    /// Records the result of a run's call. A `fault` of `None` is a success.
    pub fn learn(&mut self, now: i64, run: &Name, fault: Option<&Fault>) {
        if !fault.is_some_and(is_down) {
            let number = self.last_number;
            *self = Self {
                last_number: number,
                ..Self::default()
            };
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.runs.len() < RUNS && !self.runs.contains(run) {
            self.runs.push(run.clone());
        }
        match &mut self.down {
            // Ignore failures before the next try: they are of calls that were in flight when the host went down.
            Some(down) if now >= down.next_try_at => {
                down.interval = down.interval.saturating_mul(2).min(LONGEST_INTERVAL);
                down.next_try_at = now.saturating_add(down.interval);
            }
            None if self.failures >= FAILURES && self.runs.len() >= RUNS => {
                self.down = Some(Down {
                    next_try_at: now.saturating_add(FIRST_INTERVAL),
                    interval: FIRST_INTERVAL,
                    trying: None,
                });
            }
            Some(_) | None => {}
        }
    }
}

/// Returns whether a fault means that the host is down: no connection, no answer in time, or an error of the server.
fn is_down(fault: &Fault) -> bool {
    match &*fault.kind {
        fault_kind::CONNECTION | fault_kind::TIMEOUT => true,
        _ => {
            let code = fault.code.as_deref().and_then(|code| code.parse().ok());
            code.is_some_and(|code: u16| code >= 500 && code != 501)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault::new(fault_kind::CONNECTION, "refused")
    }

    fn down() -> Breaker {
        let mut breaker = Breaker::default();
        for number in 0..FAILURES {
            let run = Name::from(format!("run-{}", number % 3));
            breaker.learn(0, &run, Some(&fault()));
        }
        assert_eq!(breaker.failures(), Some(FAILURES));
        breaker
    }

    #[test]
    fn one_try_an_interval_stands_for_all() {
        let (mut breaker, run) = (down(), Name::from("run-0"));
        assert_eq!(breaker.turn(0), BreakerTurn::WaitUntil(1_000));
        let BreakerTurn::Try(first) = breaker.turn(1_000) else {
            panic!("it is due");
        };
        assert_eq!(breaker.turn(1_001), BreakerTurn::WaitUntil(31_000));
        breaker.learn(1_500, &run, Some(&fault()));
        breaker.give_back(first);
        assert_eq!(breaker.turn(1_500), BreakerTurn::WaitUntil(3_500));
        // After a try that hangs, and after a try that was aborted, another try may begin.
        assert!(matches!(breaker.turn(3_500), BreakerTurn::Try(_)));
        let BreakerTurn::Try(cut) = breaker.turn(33_500) else {
            panic!("the try hangs");
        };
        breaker.give_back(cut);
        assert!(matches!(breaker.turn(33_501), BreakerTurn::Try(_)));
        breaker.learn(33_600, &run, None);
        assert_eq!(breaker.turn(33_600), BreakerTurn::Begin);
    }

    #[test]
    fn the_failures_of_one_run_are_its_own() {
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            breaker.learn(0, &Name::from("run"), Some(&fault()));
        }
        assert_eq!(breaker.turn(0), BreakerTurn::Begin);
        let refused = Fault {
            code: Some(Name::from("404")),
            ..Fault::new(fault_kind::HTTP, "not found")
        };
        breaker.learn(0, &Name::from("other"), Some(&refused));
        assert_eq!(breaker.failures, 0);
    }
}
