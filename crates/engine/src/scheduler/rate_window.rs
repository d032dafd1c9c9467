//! The calls that count for a rate limit, and how a limit is learned from a server's answers. The code reads no clock:
//! the caller passes the time, in milliseconds.

use std::collections::VecDeque;
use std::time::Duration;
use windlass_model::model::Rate;
use windlass_value::LONGEST_REQUESTED_WAIT;

/// Maximum number of accepted calls that are remembered to learn a rate.
const REMEMBERED: usize = 4_096;

/// A server counts a request when it arrives. If an answer took longer than the fastest answers, its request may have
/// arrived late by this difference. The assumed lateness is at most the rate's period divided by `LATE_PART`, and at
/// most [`LATEST`] milliseconds.
const LATE_PART: i64 = 4;
const LATEST: i64 = 250;

/// Answers are compared in groups of this size. The fastest answers of the current and of the previous group are
/// stored.
const COMPARED: u32 = 64;

/// When an answer arrives, its call is searched among this number of the last calls.
const SEARCHED: usize = 1_024;

/// Shortest period of a learned rate, in milliseconds.
const LEAST_LEARNED: u64 = 100;

/// Minimum number of accepted calls to learn a rate from.
const LEAST_COUNT: u32 = 5;

/// How long all calls wait, in milliseconds, after the server refused a call without stating a wait. The wait doubles
/// with each further refusal of this kind in a row, up to [`LONGEST_WAIT`].
const FIRST_WAIT: u64 = 1_000;
const LONGEST_WAIT: u64 = 60_000;

/// A learned rate is dropped after this time without a refusal, in milliseconds.
pub(super) const FORGOTTEN_AFTER: i64 = 600_000;

/// What the answer to a call says about the server's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuotaAnswer {
    Accepted,
    /// The call was refused. If the server states how long to wait, that is the value.
    Refused(Option<Duration>),
    /// The call was accepted, but the server accepts no further call for this time.
    LastOne(Duration),
}

#[derive(Debug, Default)]
pub(super) struct RateWindow {
    /// The configured rate. No answer changes it.
    declared: Option<Rate>,
    learned: Option<Rate>,
    /// The estimated arrival times of the last calls, the oldest first: when each call began, plus the time by which
    /// its request was late. There is at most one entry for each call that the rate allows.
    arrivals: VecDeque<i64>,
    /// When calls were accepted. Recorded only while no rate is configured.
    accepted: VecDeque<i64>,
    blocked_until: i64,
    refused_at: i64,
    /// Number of refusals in a row that did not state how long to wait.
    refusals: u32,
    latency: Latency,
    /// When the next call may begin while calls are evenly spaced, in microseconds.
    next_slot: i64,
    /// Calls are evenly spaced until this time. Spacing begins when the rate is used up, because bursts would be slower
    /// from then on.
    paced_until: i64,
}

/// How long the fastest of the last answers took, in milliseconds.
#[derive(Debug, Default)]
struct Latency {
    /// The fastest of the current group of answers, and of the group before.
    current: Option<i64>,
    before: Option<i64>,
    compared: u32,
}

impl Latency {
    /// Records how long an answer took. Returns how much longer that is than the fastest answer.
    fn excess(&mut self, latency: i64) -> i64 {
        self.current = Some(self.current.map_or(latency, |fastest| fastest.min(latency)));
        let fastest = self.before.into_iter().chain(self.current).min();
        self.compared += 1;
        if self.compared == COMPARED {
            self.before = self.current.take();
            self.compared = 0;
        }
        latency - fastest.unwrap_or(latency)
    }
}

impl RateWindow {
    /// Restores the window that an earlier process stored.
    pub fn restored(
        arrivals: impl IntoIterator<Item = i64>,
        (blocked_until, learned): (i64, Option<Rate>),
    ) -> Self {
        let mut arrivals: Vec<i64> = arrivals.into_iter().collect();
        arrivals.sort_unstable();
        Self {
            arrivals: arrivals.into(),
            blocked_until,
            learned,
            // The time of the last refusal is not stored. `blocked_until` is close to it.
            refused_at: blocked_until,
            ..Self::default()
        }
    }

    /// Returns the limits that were not configured: until when all calls wait, and the learned rate.
    pub fn limits(&self) -> (i64, Option<Rate>) {
        (self.blocked_until, self.learned)
    }

    pub fn declare(&mut self, rate: Rate) {
        let slower = self.declared.map_or(rate, |declared| declared.slower(rate));
        self.declared = Some(slower);
    }

    pub fn rate(&self) -> Option<Rate> {
        self.declared.or(self.learned)
    }

    /// Returns the latest possible arrival times of the last calls.
    pub fn latest_arrivals(&self) -> impl Iterator<Item = i64> {
        let latest = self.rate().map_or(0, latest);
        self.arrivals
            .iter()
            .map(move |began| began.saturating_add(latest))
    }

    /// Returns whether no limit delays calls.
    pub fn is_open(&self, now: i64) -> bool {
        self.rate().is_none() && self.blocked_until <= now
    }

    /// Returns when a call begins that has `ahead` calls before it.
    pub fn begins_at(&self, now: i64, ahead: usize) -> i64 {
        // If `blocked_until` is in the far future, it was recorded before the clock was set back.
        let longest = now.saturating_add(millis(LONGEST_REQUESTED_WAIT));
        let from = self.blocked_until.min(longest).max(now);
        let Some(rate) = self.rate() else {
            return from;
        };
        let (count, per) = (rate.count() as usize, millis(rate.per()));
        let latest = now.saturating_add(latest(rate));
        let rounds = i64::try_from(ahead / count).unwrap_or(i64::MAX);
        let freed = (self.arrivals.len() + ahead % count).checked_sub(count);
        let freed = freed.and_then(|at| self.arrivals.get(at));
        let from = match now < self.paced_until {
            true => from.max(self.slot(now, rate, ahead % count)),
            false => from,
        };
        let first = freed.map_or(from, |arrival| {
            // One millisecond is added because the times are rounded.
            from.max(arrival.min(&latest).saturating_add(per).saturating_add(1))
        });
        first.saturating_add(rounds.saturating_mul(per))
    }

    /// Records that a call has to wait. Calls are evenly spaced for the next two periods of the rate.
    pub fn record_wait(&mut self, now: i64) {
        if let Some(rate) = self.rate() {
            self.paced_until = now.saturating_add(2 * millis(rate.per()));
        }
    }

    /// Returns when a call begins that has `ahead` calls before it, while calls are evenly spaced.
    fn slot(&self, now: i64, rate: Rate, ahead: usize) -> i64 {
        let ahead = i64::try_from(ahead).unwrap_or(i64::MAX);
        // Limit the delay: the slot may be in the far future if the clock was set back.
        let next = self
            .next_slot
            .min(now.saturating_mul(1_000).saturating_add(gap(rate)));
        let slot = next.saturating_add(gap(rate).saturating_mul(ahead));
        slot.saturating_add(999) / 1_000
    }

    /// Counts a call that begins. Returns the latest possible arrival time of its request if a rate is known. If not,
    /// returns `now`.
    pub fn begin(&mut self, now: i64) -> i64 {
        let Some(rate) = self.rate() else {
            return now;
        };
        // If a call began a little late, the next calls begin earlier to catch up. `late` is the maximum delay, in
        // microseconds, that they catch up.
        let late = millis(rate.per()) * 1_000 / LATE_PART;
        let slot = now.saturating_mul(1_000).saturating_sub(late);
        self.next_slot = self.next_slot.max(slot).saturating_add(gap(rate));
        let room = (rate.count() as usize).saturating_sub(1);
        let old = self.arrivals.len().saturating_sub(room);
        self.arrivals.drain(..old);
        self.arrivals.push_back(now);
        now.saturating_add(latest(rate))
    }

    /// Records the answer to the call that began at `began`.
    pub fn arrived(&mut self, began: i64, now: i64) {
        let excess = self.latency.excess(now.saturating_sub(began).max(0));
        let Some(rate) = self.rate() else {
            return;
        };
        let mut last = self.arrivals.iter_mut().rev().take(SEARCHED);
        if let Some(found) = last.find(|known| **known == began) {
            *found = began.saturating_add(excess.min(latest(rate)));
        }
    }

    /// Updates the limits from an answer. `policy` is a rate that the server states.
    pub fn learn(&mut self, now: i64, answer: QuotaAnswer, policy: Option<Rate>) {
        if policy.is_some() {
            self.learned = policy;
        } else if now.saturating_sub(self.refused_at) > FORGOTTEN_AFTER {
            self.learned = None;
        }
        if !matches!(answer, QuotaAnswer::Refused(_)) {
            self.refusals = 0;
        }
        match answer {
            QuotaAnswer::Accepted if self.declared.is_some() => {}
            QuotaAnswer::Accepted => {
                if self.accepted.len() >= REMEMBERED {
                    self.accepted.pop_front();
                }
                self.accepted.push_back(now);
            }
            QuotaAnswer::LastOne(wait) => self.block(now, wait),
            QuotaAnswer::Refused(stated) => {
                self.refused_at = now;
                // If several calls are refused together, learn a rate only from the first of them.
                let is_first = self.blocked_until <= now;
                let wait = match stated {
                    Some(wait) => wait,
                    None if is_first => self.unstated_wait(),
                    None => return,
                };
                if is_first && policy.is_none() {
                    self.learn_refusal(now, wait);
                }
                self.block(now, wait);
            }
        }
    }

    /// Returns how long to wait after a refusal that does not state a wait.
    fn unstated_wait(&mut self) -> Duration {
        let factor = 1_u64.checked_shl(self.refusals).unwrap_or(LONGEST_WAIT);
        self.refusals = self.refusals.saturating_add(1);
        Duration::from_millis(FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT))
    }

    fn block(&mut self, now: i64, wait: Duration) {
        let wait = millis(wait.min(LONGEST_REQUESTED_WAIT));
        self.blocked_until = self.blocked_until.max(now.saturating_add(wait));
    }

    /// Learns a rate from a refusal. The period is the wait that the refusal states. The rate allows as many calls in a
    /// period as were accepted in the last period of this length. If a learned rate was too fast, the new rate is
    /// slower.
    fn learn_refusal(&mut self, now: i64, wait: Duration) {
        let stretch = wait.clamp(Duration::from_millis(LEAST_LEARNED), LONGEST_REQUESTED_WAIT);
        let since = now.saturating_sub(millis(stretch));
        let accepted = self.accepted.iter().rev().take_while(|at| **at > since);
        let count = accepted.count();
        // If the list is full, it may lack calls of the period, so do not learn from it.
        let count = u32::try_from(count).ok().filter(|_| count < REMEMBERED);
        let seen = count.filter(|count| *count >= LEAST_COUNT);
        let seen = seen.and_then(|count| Rate::new(count, stretch));
        let slower = self
            .learned
            .and_then(|old| Rate::new(old.count(), old.per() * 5 / 4));
        self.learned = match (seen, slower) {
            (Some(seen), Some(slower)) => Some(seen.slower(slower)),
            (seen, slower) => seen.or(slower).or(self.learned),
        };
    }
}

/// Returns the time between evenly spaced calls, in microseconds. It is a little longer than the rate requires, so that
/// a late request is not refused.
fn gap(rate: Rate) -> i64 {
    let per = millis(rate.per()).saturating_mul(1_000) / i64::from(rate.count());
    per.saturating_add(per / 200)
}

/// Returns the maximum lateness that is assumed for a request at this rate, in milliseconds. The fastest requests are
/// not late.
fn latest(rate: Rate) -> i64 {
    (millis(rate.per()) / LATE_PART).clamp(1, LATEST)
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(count: u32) -> Rate {
        Rate::new(count, SECOND).unwrap()
    }

    /// Returns when the next calls begin, each as early as possible.
    fn times(window: &mut RateWindow, from: i64, calls: usize) -> Vec<i64> {
        let mut now = from;
        let mut begin = || {
            now = window.begins_at(now, 0);
            window.begin(now);
            now
        };
        (0..calls).map(|_| begin()).collect()
    }

    #[test]
    fn no_stretch_has_more_calls_than_the_rate() {
        let mut window = RateWindow::default();
        window.declare(rate(3));
        assert_eq!(
            times(&mut window, 0, 7),
            [0, 0, 0, 1_001, 1_001, 1_001, 2_002]
        );
        // After a quiet time a burst is allowed, and then the rate applies again.
        assert_eq!(times(&mut window, 9_000, 3), [9_000, 9_000, 9_000]);
        let mut restored = RateWindow::restored(window.latest_arrivals(), (0, None));
        restored.declare(rate(3));
        assert_eq!(restored.begins_at(9_005, 0), 10_251);
        assert_eq!(restored.begins_at(9_005, 3), 11_251);
    }

    #[test]
    fn a_request_that_was_late_counts_from_then_and_a_slow_server_costs_nothing() {
        let mut window = RateWindow::default();
        window.declare(rate(1));
        for (began, answered, next) in [
            (0, 400, 1_001),
            (2_000, 2_430, 3_031),
            (9_000, 9_999, 10_251),
        ] {
            assert_eq!(times(&mut window, began, 1), [began]);
            window.arrived(began, answered);
            assert_eq!(window.begins_at(answered, 0), next);
        }
    }

    #[test]
    fn calls_that_had_to_wait_begin_at_even_distances() {
        let mut window = RateWindow::default();
        window.declare(rate(100));
        times(&mut window, 0, 100);
        assert_eq!(window.begins_at(0, 0), 1_001);
        window.record_wait(0);
        let all = times(&mut window, 0, 1_000);
        // The rate is used almost completely.
        assert_eq!(all.last(), Some(&11_009));
        assert!(all.windows(2).all(|two| two[1] - two[0] <= 11));
        // After a call that begins late, the next calls catch up.
        let mut window = RateWindow::default();
        window.declare(rate(100));
        window.record_wait(0);
        let first = times(&mut window, 0, 50);
        let next = times(&mut window, first[49] + 40, 50);
        assert!((990..1_000).contains(&next[49]), "{next:?}");
    }

    #[test]
    fn a_rate_is_learned_from_a_refusal() {
        let mut window = RateWindow::default();
        assert!(window.is_open(0));
        for at in 0..100 {
            window.learn(at, QuotaAnswer::Accepted, None);
        }
        for at in 100..140 {
            window.learn(at, QuotaAnswer::Refused(Some(SECOND)), None);
        }
        assert_eq!(window.rate(), Some(rate(100)));
        assert_eq!(window.begins_at(200, 0), 1_139);
        assert_eq!(times(&mut window, 1_200, 101).last(), Some(&2_201));
        // The learned rate was still too fast.
        window.learn(3_000, QuotaAnswer::Refused(Some(SECOND)), None);
        assert!(window.rate().unwrap().per() > SECOND);
        window.learn(4_000, QuotaAnswer::Accepted, Some(rate(7)));
        assert_eq!(window.rate(), Some(rate(7)));
    }

    #[test]
    fn a_refusal_that_says_no_time_blocks_for_a_growing_one() {
        let refused = QuotaAnswer::Refused(None);
        let mut window = RateWindow::default();
        let mut now = 0;
        for wait in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
            // Calls that were in flight together count as one refusal.
            for at in 0..12 {
                window.learn(now + at, refused, None);
            }
            assert!(!window.is_open(now + 20));
            assert_eq!(window.begins_at(now + 20, 0), now + wait);
            now += wait;
        }
        window.learn(now, QuotaAnswer::Accepted, None);
        window.learn(now, refused, None);
        assert_eq!(window.begins_at(now, 0), now + 1_000);
        // A refusal that states a time overrides the doubled wait.
        window.learn(now, QuotaAnswer::Refused(Some(5 * SECOND)), None);
        assert_eq!(window.begins_at(now, 0), now + 5_000);
    }

    #[test]
    fn a_rate_is_learned_from_a_refusal_that_says_no_time() {
        let mut window = RateWindow::default();
        for at in 0..24 {
            window.learn(at, QuotaAnswer::Accepted, None);
        }
        window.learn(30, QuotaAnswer::Refused(None), None);
        assert_eq!(window.rate(), Some(rate(24)));
        assert_eq!(window.limits().0, 1_030);
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_nothing_for_long() {
        let mut window = RateWindow::restored([1_000_000, 1_000_001], (0, None));
        window.declare(rate(2));
        assert_eq!(window.begins_at(5, 0), 1_256);
    }
}
