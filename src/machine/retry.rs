//! When a fault is retried and how long the wait is (docs/loom.md). Pure: jitter comes
//! from a seed.

use crate::model::{Backoff, Fault, RetryOn};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// Where a fault comes from, as the innermost try sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// From the operation itself: a policy without `on` asks whether the fault is transient.
    Here,
    /// Through a scope: a policy without `on` around a block retries any failure.
    Through,
}

/// The longest a `Retry-After` is honoured under a fixed backoff, which has no maximum of its own.
const FIXED_MAX: Duration = Duration::from_secs(60);

/// Whether a policy retries a fault.
pub(super) fn applies(on: &[RetryOn], fault: &Fault, raised: Raised) -> bool {
    if on.is_empty() {
        return fault.transient || raised == Raised::Through;
    }
    let code: Option<u16> = fault.code.as_deref().and_then(|code| code.parse().ok());
    on.iter().any(|wanted| match wanted {
        RetryOn::Code(wanted) => code == Some(*wanted),
        RetryOn::Class(class) => code.is_some_and(|code| code / 100 == u16::from(*class)),
        RetryOn::Kind(kind) => kind.eq_ignore_ascii_case(&fault.kind),
    })
}

/// The wait after the failed attempt `attempt` (from 1).
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
        Backoff::Fixed { interval } => {
            after.map_or(*interval, |after| after.min(FIXED_MAX.max(*interval)))
        }
        Backoff::Exponential { interval, max, min } => {
            if let Some(after) = after {
                return after.min(*max);
            }
            let base = doubled(*interval, doublings).clamp(*min.min(max), *max);
            base.saturating_add(base.mul_f64(random.random_range(0.0..0.1)))
                .min(*max)
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
    fn retry_after_is_honoured_up_to_the_maximum() {
        let backoff = Backoff::Exponential {
            interval: 5 * SECOND,
            max: 60 * SECOND,
            min: SECOND,
        };
        assert_eq!(delay(&backoff, 1, Some(7_000), 0), 7 * SECOND);
        assert_eq!(delay(&backoff, 1, Some(700_000), 0), 60 * SECOND);
        assert_eq!(
            delay(&Backoff::Fixed { interval: SECOND }, 1, None, 0),
            SECOND
        );
    }
}
