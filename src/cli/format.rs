//! Formats times and durations for people.

use chrono::Local;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_engine::{Timestamp, human_duration};

/// Formats a measured duration with its two largest units: `450ms`, `8s`, `5m12s`, `3d4h`.
pub fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    let unit = match seconds {
        0 => 1,
        1..3_600 => 1_000,
        3_600..86_400 => 60_000,
        _ => 3_600_000,
    };
    let whole = millis - millis % unit;
    human_duration(Duration::from_millis(
        u64::try_from(whole).unwrap_or(u64::MAX),
    ))
}

/// Formats the time until an instant: `in 8s`, or `now`.
pub fn until(at: Timestamp, now: Timestamp) -> String {
    if at <= now {
        return String::from("now");
    }
    let left = at.since(now);
    let step = match left.as_millis() {
        0..1_000 => 100,
        _ => 1_000,
    };
    // The time is rounded to the nearest step, but an instant in the near future is not shown as `now`.
    let left = ((left.as_millis() + step / 2) / step).max(1) * step;
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(u64::MAX));
    format!("in {}", self::duration(left))
}

/// Formats the time since an instant: `8s ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", duration(now.since(at)))
}

/// Whether instants are shown in the time zone of this machine. If not, they are shown in UTC, with a `Z`.
static LOCAL: AtomicBool = AtomicBool::new(false);

/// Selects the time zone that the flags set. Without flags, it is the local one on a terminal, and UTC for other
/// outputs.
pub fn begin(local: bool, utc: bool) {
    let local = local || (!utc && std::io::stdout().is_terminal());
    LOCAL.store(local, Ordering::Relaxed);
}

fn shown(at: Timestamp, format: &str) -> String {
    let at = at.to_utc();
    match LOCAL.load(Ordering::Relaxed) {
        true => at.with_timezone(&Local).format(format).to_string(),
        false => format!("{}Z", at.format(format)),
    }
}

/// Formats an instant: `2026-11-20 14:02:11Z`.
/// A local time has no `Z`. This is also true for the functions below.
pub fn date(at: Timestamp) -> String {
    shown(at, "%Y-%m-%d %H:%M:%S")
}

/// Formats an instant: `2026-11-20T14:02:11.123Z`.
pub fn instant(at: Timestamp) -> String {
    shown(at, "%Y-%m-%dT%H:%M:%S%.3f")
}

/// Formats an instant: `14:02:11Z`, with the date if it is not the day of `now`.
pub fn time(at: Timestamp, now: Timestamp) -> String {
    let day = |at| shown(at, "%Y-%m-%d");
    match day(at) == day(now) {
        true => shown(at, "%H:%M:%S"),
        false => date(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = |millis| duration(Duration::from_millis(millis));
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(450), "450ms");
        assert_eq!(shown(8_000), "8s");
        assert_eq!(shown(312_000), "5m12s");
        assert_eq!(shown(18_720_000), "5h12m");
        assert_eq!(shown(273_600_000), "3d4h");
    }

    #[test]
    fn times_are_relative_to_now() {
        let now = Timestamp(1_763_647_331_000);
        assert_eq!(until(Timestamp(now.0 + 7_500), now), "in 8s");
        assert_eq!(until(Timestamp(now.0 + 1_100), now), "in 1s");
        assert_eq!(until(Timestamp(now.0 + 101), now), "in 100ms");
        assert_eq!(until(Timestamp(now.0 + 10), now), "in 100ms");
        assert_eq!(until(Timestamp(now.0 + 990), now), "in 1s");
        assert_eq!(until(now, now), "now");
        assert_eq!(ago(Timestamp(now.0 - 8_000), now), "8s ago");
        assert_eq!(date(now), "2025-11-20 14:02:11Z");
        assert_eq!(time(now, now), "14:02:11Z");
        assert_eq!(
            time(now, Timestamp(now.0 + 86_400_000)),
            "2025-11-20 14:02:11Z"
        );
    }
}
