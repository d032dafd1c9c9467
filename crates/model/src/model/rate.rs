//! Rates: how often something may happen.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use windlass_value::time::{human_duration, parse_duration};

/// Maximum count of a rate. It bounds the memory, because the times of the last `count` starts are stored there.
const MAX_COUNT: u32 = 1_000_000;

/// Maximum period of a rate.
const MAX_PER: Duration = Duration::from_secs(31 * 24 * 3600);

/// At most `count` starts in any period of the length `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    per: Duration,
}

impl Rate {
    /// Returns `None` if a number is out of bounds. The count is 1 to a million, the period a millisecond to 31 days.
    #[must_use]
    pub fn new(count: u32, per: Duration) -> Option<Self> {
        let fits = (1..=MAX_COUNT).contains(&count);
        let fits = fits && (Duration::from_millis(1)..=MAX_PER).contains(&per);
        fits.then_some(Self { count, per })
    }

    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    #[must_use]
    pub fn per(self) -> Duration {
        self.per
    }

    /// Returns the slower of the two rates: the one that allows fewer starts over a long time.
    #[must_use]
    pub fn slower(self, other: Self) -> Self {
        let ours = u128::from(self.count) * other.per.as_nanos();
        match ours > u128::from(other.count) * self.per.as_nanos() {
            true => other,
            false => self,
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Parses `100/1s`, `5000/h`, `10/PT1M`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a rate: it is a number from 1 to {MAX_COUNT}, `/`, and a duration up to 31 days, \
                 e.g. 100/1s or 5000/h"
            )
        };
        let (count, per) = text.split_once('/').ok_or_else(wrong)?;
        let count = count.trim().parse().map_err(|_| wrong())?;
        let per = per.trim();
        let per = match per.starts_with(['s', 'm', 'h', 'd']) {
            true => format!("1{per}"),
            false => per.to_owned(),
        };
        let per = parse_duration(&per).map_err(|_| wrong())?;
        Self::new(count, per).ok_or_else(wrong)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} per {}", self.count, human_duration(self.per))
    }
}

/// A rate that limits the calls to a host, or the calls whose actions name this rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRate {
    /// The host or the name: `api.example.com` for all of its ports, `api.example.com:8080`, or a name that actions
    /// have as `rate`.
    pub host: String,
    pub rate: Rate,
}

impl HostRate {
    /// Returns true if the rate applies to `host_and_port`, which may also be the name of a rate.
    #[must_use]
    pub fn applies_to(&self, host_and_port: &str) -> bool {
        let host = host_and_port.rsplit_once(':').map(|(host, _)| host);
        [Some(host_and_port), host]
            .into_iter()
            .flatten()
            .any(|host| host.eq_ignore_ascii_case(&self.host))
    }
}

impl FromStr for HostRate {
    type Err = String;

    /// Parses `api.example.com=100/1s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (host, rate) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not NAME=RATE, e.g. api.example.com=100/1s"))?;
        Self::new(host.trim(), rate.trim())
    }
}

impl HostRate {
    /// Creates the rate of a host or of a name, both as text.
    ///
    /// # Errors
    /// The name or the rate is invalid.
    pub fn new(host: &str, rate: &str) -> Result<Self, String> {
        check_rate_name(host)?;
        Ok(Self {
            host: host.to_owned(),
            rate: rate.parse()?,
        })
    }

    /// Returns true if the rate is certainly that of a host. Any other name needs an action that has the name as
    /// `rate`.
    #[must_use]
    pub fn is_host(&self) -> bool {
        is_host(&self.host)
    }
}

/// Returns true if the name of a rate is certainly a host: it has a dot or a port, or is `localhost`.
#[must_use]
pub fn is_host(name: &str) -> bool {
    name.contains(['.', ':']) || name.eq_ignore_ascii_case("localhost")
}

/// Checks that a name can be a host or the `rate` of an action.
///
/// # Errors
/// The name is empty, is a pattern, or is an address with more than a host and a port.
pub fn check_rate_name(name: &str) -> Result<(), String> {
    let reason = match name {
        "" => "it is empty",
        _ if name.contains('*') => {
            "`*` matches nothing: name each host, or give its actions a common `rate`"
        }
        _ if name.contains(['/', '?', '#', '@']) => "a host has no scheme, path, query or user",
        _ if name.contains(|letter: char| letter.is_whitespace() || letter.is_control()) => {
            "it has a space"
        }
        _ if has_wrong_port(name) => "a port is a number from 1 to 65535",
        _ => return Ok(()),
    };
    Err(format!(
        "`{name}` is not a host or the name of a rate ({reason}), e.g. api.example.com, api.example.com:8080 or quota-a"
    ))
}

/// Returns true if the text after the last colon can only be intended as a port, but is not a valid one.
fn has_wrong_port(name: &str) -> bool {
    let Some((_, port)) = name.rsplit_once(':') else {
        return false;
    };
    port.chars().all(|sign| sign.is_ascii_digit())
        && !port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_read() {
        assert_eq!(rate("100/1s"), rate("100/s"));
        assert_eq!(rate("5000/h").per(), Duration::from_secs(3600));
        assert_eq!(rate("10/PT1M").to_string(), "10 per 1m");
        for wrong in [
            "",
            "100",
            "0/s",
            "1/0s",
            "x/s",
            "1/32d",
            "-1/s",
            "2000000/s",
        ] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        assert_eq!(rate("100/s").slower(rate("5000/m")), rate("5000/m"));
    }

    #[test]
    fn a_host_is_meant_with_all_of_its_ports() {
        let of: HostRate = "api.example.com=1/s".parse().unwrap();
        assert!(of.applies_to("API.example.com:443"));
        assert!(!of.applies_to("example.com:443"));
        let of: HostRate = "localhost:80=1/s".parse().unwrap();
        assert!(of.applies_to("localhost:80") && !of.applies_to("localhost:8080"));
        for wrong in [
            "https://x/",
            "*.example.com",
            "*",
            "a b",
            "",
            "a@b",
            "a/b",
            "a?",
            "host:99999",
            "host:0",
            "host:",
        ] {
            assert!(HostRate::new(wrong, "1/s").is_err(), "{wrong}");
        }
        for right in ["host:65535", "[::1]:8080", "[::1]", "team:a"] {
            assert!(HostRate::new(right, "1/s").is_ok(), "{right}");
        }
        assert!(!HostRate::new("quota-a", "1/s").unwrap().is_host());
    }
}
