//! Reads the headers of HTTP answers that say how long a client must wait, and how often it may call.

use crate::time::Timestamp;
use chrono::NaiveDateTime;
use std::time::Duration;

/// Maximum wait that is honoured if a server requests one.
pub const LONGEST_REQUESTED_WAIT: Duration = Duration::from_secs(3600);

/// In a header, a number of at least this is an instant in seconds since 1970. A smaller number is a number of seconds
/// from now.
const LEAST_INSTANT: f64 = 1e9;

/// A number of at least this is an instant in milliseconds since 1970. As seconds, it would be in the year 5138 or
/// later.
const LEAST_INSTANT_IN_MILLIS: f64 = 1e11;

/// Returns the wait that an answer requests. Reads `Retry-After` (RFC 9110, 10.2.3), the headers of OpenAI and Azure
/// with milliseconds, the headers of rate limits if nothing of the quota is left, and GitHub's `X-Poll-Interval`.
/// `header` returns the value of a header by its name in lower case. Returns `None` if no wait is requested, if its
/// form is unknown, or if its time is in the past.
pub fn requested_wait<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: Timestamp,
) -> Option<Duration> {
    let in_millis = [
        "retry-after-ms",
        "x-ms-retry-after-ms",
        "openai-poll-after-ms",
    ];
    let millis = in_millis.into_iter().filter_map(&header);
    let mut millis = millis.filter_map(|text| seconds(number(text)? / 1000.0));
    let after = || {
        let text = header("retry-after")?;
        match number(text) {
            Some(given) => seconds(given),
            None => until(http_date(text)?, now),
        }
    };
    let reset = || {
        if !has_spent_quota(&header) {
            return None;
        }
        // Use the longest time of all used-up quotas: while a daily quota is used up, calls are refused, even if a
        // shorter quota is available again.
        let spent = header("ratelimit").into_iter().flat_map(spent_quotas);
        let structured = spent.filter_map(|quota| parameter(quota, "t"));
        let reset = ["x-ratelimit-reset", "ratelimit-reset"];
        let plain = || reset.into_iter().find_map(|name| number(header(name)?));
        match structured.max_by(f64::total_cmp).or_else(plain)? {
            instant if instant >= LEAST_INSTANT_IN_MILLIS => until(Timestamp(instant as i64), now),
            instant if instant >= LEAST_INSTANT => until(Timestamp((instant * 1000.0) as i64), now),
            given => seconds(given),
        }
    };
    let poll = || seconds(number(header("x-poll-interval")?)?);
    millis.next().or_else(after).or_else(reset).or_else(poll)
}

/// Returns true if an answer refuses a call only because a quota is used up, so that a later attempt may succeed. Such
/// an answer says when to try again, or that nothing of the quota is left.
pub fn is_over_quota<'a>(header: impl Fn(&str) -> Option<&'a str>) -> bool {
    header("retry-after").is_some() || has_spent_quota(&header)
}

/// Returns the rate limit that an answer states, as a number of requests and the time for these. Reads
/// `RateLimit-Policy: "default";q=100;w=60` of the IETF draft, and `100;w=60` of older drafts. If there are several
/// policies, returns the one that allows the fewest requests over a long time.
pub fn stated_rate<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<(u32, Duration)> {
    let text = ["ratelimit-policy", "ratelimit-limit"]
        .into_iter()
        .find_map(header)?;
    let policies = text.split(',').filter_map(|item| {
        let count = parameter(item, "q").or_else(|| number(item.split(';').next()?))?;
        let window = parameter(item, "w").filter(|window| *window > 0.0)?;
        (count >= 1.0).then_some((count, window))
    });
    let (count, window) = policies.min_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))?;
    Some((count as u32, seconds(window)?))
}

/// Returns true if nothing of a quota is left: `X-RateLimit-Remaining: 0`, the same header in an older IETF draft, or
/// `r=0` of `RateLimit`.
pub fn has_spent_quota<'a>(header: impl Fn(&str) -> Option<&'a str>) -> bool {
    let plain = ["x-ratelimit-remaining", "ratelimit-remaining"];
    let mut left = plain.into_iter().filter_map(|name| number(header(name)?));
    let structured = || header("ratelimit").and_then(|text| spent_quotas(text).next());
    left.any(|left| left == 0.0) || structured().is_some()
}

/// Returns the quotas of `RateLimit` of which nothing is left.
fn spent_quotas(text: &str) -> impl Iterator<Item = &str> {
    let quotas = text.split(',');
    quotas.filter(|quota| parameter(quota, "r") == Some(0.0))
}

/// Returns the number of a parameter in an item of a structured field: `"default";r=0;t=30` (RFC 9651).
fn parameter(item: &str, name: &str) -> Option<f64> {
    let mut parts = item.split(';').skip(1);
    parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        (key.trim() == name).then(|| number(value)).flatten()
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn seconds(given: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(given).ok()
}

fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    let millis = u64::try_from(then.0.saturating_sub(now.0)).unwrap_or(0);
    Some(Duration::from_millis(millis))
}

/// Parses a date in one of the three forms of HTTP (RFC 9110, 5.6.7).
#[must_use]
pub fn http_date(text: &str) -> Option<Timestamp> {
    let forms = [
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    ];
    let mut read = forms.into_iter().filter_map(|form| {
        let read = NaiveDateTime::parse_from_str(text.trim(), form);
        read.ok()
    });
    Some(Timestamp(read.next()?.and_utc().timestamp_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-31T08:00:00Z.
    const NOW: Timestamp = Timestamp(1_769_846_400_000);

    fn waits(headers: &[(&str, &str)]) -> Option<f64> {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        requested_wait(header, NOW).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn each_way_to_ask_is_understood() {
        for (headers, wait) in [
            (&[("retry-after", "7")][..], Some(7.0)),
            (&[("retry-after", " 1.5 ")], Some(1.5)),
            (
                &[("retry-after", "Sat, 31 Jan 2026 08:00:04 GMT")],
                Some(4.0),
            ),
            (
                &[("retry-after", "Saturday, 31-Jan-26 08:00:04 GMT")],
                Some(4.0),
            ),
            (&[("retry-after", "Sat Jan 31 08:00:04 2026")], Some(4.0)),
            (
                &[("retry-after", "Sat, 31 Jan 2026 07:00:00 GMT")],
                Some(0.0),
            ),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "soon")], None),
            (
                &[("retry-after-ms", "250"), ("retry-after", "1")],
                Some(0.25),
            ),
            (&[("x-ms-retry-after-ms", "1200")], Some(1.2)),
            (&[("openai-poll-after-ms", "5000")], Some(5.0)),
            (&[("x-poll-interval", "60")], Some(60.0)),
            (&[("ratelimit", "\"default\";r=0;t=30")], Some(30.0)),
            (&[("ratelimit", "\"default\";r=9;t=30")], None),
            (
                &[("ratelimit", "\"burst\";r=5;t=1, \"daily\";r=0;t=4")],
                Some(4.0),
            ),
            (
                &[("ratelimit", "\"a\";r=0;t=9, \"b\";r=1;t=60, \"c\";r=0;t=2")],
                Some(9.0),
            ),
            (&[("ratelimit", "\"a\";r=5;t=1, \"b\";r=1;t=4")], None),
            (
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1769846404000"),
                ],
                Some(4.0),
            ),
            (
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1769846409"),
                ],
                Some(9.0),
            ),
            (
                &[
                    ("x-ratelimit-remaining", "8"),
                    ("x-ratelimit-reset", "1769846409"),
                ],
                None,
            ),
            (
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")],
                Some(12.0),
            ),
            (&[], None),
        ] {
            assert_eq!(waits(headers), wait, "{headers:?}");
        }
    }

    #[test]
    fn of_several_policies_the_slowest_is_stated() {
        let stated = |text: &'static str| {
            let header = |name: &str| (name == "ratelimit-policy").then_some(text);
            stated_rate(header).map(|(count, window)| (count, window.as_secs()))
        };
        let several = "\"burst\";q=10;w=1, \"daily\";q=500;w=86400, \"hour\";q=100;w=3600";
        assert_eq!(stated(several), Some((500, 86_400)));
        assert_eq!(stated("10;w=1, 50;w=60"), Some((50, 60)));
        assert_eq!(stated("\"burst\";q=10"), None);
    }
}
