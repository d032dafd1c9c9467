//! When a fault is retried, and how long the wait before the next attempt is (docs/reference/loom.md). These are pure
//! functions: a seed determines the random part of the wait (jitter).

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;
use windlass_model::model::{Backoff, Fault, Jitter, RetryOn};
use windlass_value::LONGEST_REQUESTED_WAIT;

/// The origin of a fault, from the point of view of the innermost try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultOrigin {
    /// The fault is from the operation itself. A policy without `on` retries such a fault only if it is transient.
    Operation,
    /// The fault left a scope inside the try. A policy without `on` retries any such fault.
    Scope,
}

/// Returns true if a policy retries a fault.
pub(super) fn applies(on: &[RetryOn], fault: &Fault, origin: FaultOrigin) -> bool {
    if on.is_empty() {
        return fault.transient || origin == FaultOrigin::Scope;
    }
    let code: Option<u16> = fault.code.as_deref().and_then(|code| code.parse().ok());
    on.iter().any(|wanted| match wanted {
        RetryOn::Code(wanted) => code == Some(*wanted),
        // A status above 599 is treated as one of the class 5xx (RFC 9110, 15).
        RetryOn::Class(class) => code.is_some_and(|code| (code / 100).min(5) == u16::from(*class)),
        RetryOn::Kind(kind) => kind.eq_ignore_ascii_case(&fault.kind),
        RetryOn::Named(class) => fault.code.as_ref() == Some(class),
        RetryOn::Transient => fault.transient,
        RetryOn::Unprocessed => fault.is_unprocessed(),
    })
}

/// Returns the wait after the failed attempt `attempt` (from 1).
/// If the server requests a wait, this wait is used within two bounds. It is at least the first wait of the policy. It
/// is at most the longer of [`LONGEST_REQUESTED_WAIT`] and the policy's longest wait.
pub(super) fn delay(
    backoff: &Backoff,
    attempt: u32,
    retry_after_ms: Option<u64>,
    seed: u64,
) -> Duration {
    let mut random = StdRng::seed_from_u64(seed);
    let after = retry_after_ms.map(Duration::from_millis);
    let doublings = attempt.saturating_sub(1);
    match backoff {
        Backoff::Fixed { interval, jitter } => match after {
            Some(after) => after.clamp(*interval, LONGEST_REQUESTED_WAIT.max(*interval)),
            None => spread(*interval, *jitter, &mut random),
        },
        Backoff::Exponential {
            interval,
            max,
            min,
            jitter,
        } => {
            if let Some(after) = after {
                let least = (*interval).min(*max);
                return after.clamp(least, LONGEST_REQUESTED_WAIT.max(*max));
            }
            let min = *min.min(max);
            let base = doubled(*interval, doublings).clamp(min, *max);
            spread(base, *jitter, &mut random).clamp(min, *max)
        }
        Backoff::AzureExponential { interval, max, min } => {
            if let Some(after) = after {
                return after.min(*max);
            }
            let low = if doublings == 0 {
                *interval / 2
            } else {
                doubled(*interval, doublings - 1)
            };
            let high = doubled(*interval, doublings).min(*max);
            let low = low.max(*min).min(high);
            low.saturating_add((high - low).mul_f64(random.random_range(0.0..=1.0)))
        }
    }
}

fn spread(wait: Duration, jitter: Jitter, random: &mut StdRng) -> Duration {
    match jitter {
        Jitter::None => wait,
        Jitter::Tenth => wait.saturating_add(wait.mul_f64(random.random_range(0.0..0.1))),
        Jitter::Equal => wait.mul_f64(random.random_range(0.5..=1.0)),
        Jitter::Full => wait.mul_f64(random.random_range(0.0..=1.0)),
    }
}

fn doubled(interval: Duration, times: u32) -> Duration {
    interval.saturating_mul(2_u32.saturating_pow(times.min(31)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn loom(attempt: u32, seed: u64) -> Duration {
        let backoff = Backoff::Exponential {
            interval: 5 * SECOND,
            max: 60 * SECOND,
            min: SECOND,
            jitter: Jitter::Tenth,
        };
        delay(&backoff, attempt, None, seed)
    }

    #[test]
    fn exponential_doubles_with_a_tenth_of_jitter_and_never_passes_the_maximum() {
        for seed in 0..200 {
            for (attempt, base) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
                let wait = loom(attempt, seed);
                assert!(
                    wait >= base * SECOND && wait <= (base * SECOND).mul_f64(1.1),
                    "{wait:?}"
                );
            }
            assert_eq!(loom(5, seed), 60 * SECOND);
            assert_eq!(loom(400, seed), 60 * SECOND);
        }
        assert_ne!(loom(1, 1), loom(1, 2));
        assert_eq!(loom(1, 1), loom(1, 1));
    }

    #[test]
    fn azure_is_uniform_between_its_bounds() {
        let backoff = Backoff::AzureExponential {
            interval: 8 * SECOND,
            max: 60 * SECOND,
            min: 5 * SECOND,
        };
        for seed in 0..200 {
            for (attempt, low, high) in [(1, 5, 8), (2, 8, 16), (3, 16, 32), (4, 32, 60)] {
                let wait = delay(&backoff, attempt, None, seed);
                assert!(
                    wait >= low * SECOND && wait <= high * SECOND,
                    "{attempt} {wait:?}"
                );
            }
        }
        for (attempt, low, high) in [(1, 5, 8), (2, 8, 16), (3, 16, 32), (4, 32, 60)] {
            let middle = (low + high) * SECOND / 2;
            let lower = (0..200).filter(|seed| delay(&backoff, attempt, None, *seed) < middle);
            assert!((60..140).contains(&lower.count()), "{attempt}");
        }
    }

    #[test]
    fn retry_after_is_honoured_up_to_an_hour() {
        let growing = Backoff::Exponential {
            interval: 5 * SECOND,
            max: 60 * SECOND,
            min: SECOND,
            jitter: Jitter::Full,
        };
        let fixed = Backoff::Fixed {
            interval: SECOND,
            jitter: Jitter::None,
        };
        for backoff in [&growing, &fixed] {
            assert_eq!(delay(backoff, 1, Some(7_000), 0), 7 * SECOND);
            assert_eq!(delay(backoff, 1, Some(700_000), 0), 700 * SECOND);
            assert_eq!(delay(backoff, 1, Some(7_000_000), 0), 3600 * SECOND);
        }
        assert_eq!(delay(&fixed, 1, None, 0), SECOND);
    }

    #[test]
    fn jitter_spreads_a_wait_over_its_share_of_it() {
        for (jitter, low, high) in [
            (Jitter::None, 100, 100),
            (Jitter::Tenth, 100, 110),
            (Jitter::Equal, 50, 100),
            (Jitter::Full, 0, 100),
        ] {
            let interval = 100 * SECOND;
            let backoff = Backoff::Fixed { interval, jitter };
            let waits: Vec<_> = (0..200)
                .map(|seed| delay(&backoff, 1, None, seed))
                .collect();
            let bounds = low * SECOND..=high * SECOND;
            assert!(waits.iter().all(|wait| bounds.contains(wait)), "{jitter:?}");
            let middle = (low + high) * SECOND / 2;
            let lower = waits.iter().filter(|wait| **wait < middle).count();
            let share = if low == high { 0..=0 } else { 60..=140 };
            assert!(share.contains(&lower), "{jitter:?} {lower}");
        }
    }
}
