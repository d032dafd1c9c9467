//! Time zones by their Windows or IANA names. The rules of the zones are in the binary; the machine's own rules are
//! never read.

use super::Stamp;
use chrono::{Datelike, Timelike};
use chrono::{FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};
use jiff::{Timestamp, civil, tz};
use std::fmt;
use strum::IntoEnumIterator;
use windows_timezones::WindowsTimezone;

/// A zone of the IANA database, for calculations by `chrono`.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(tz::TimeZone);

/// The offset of a zone from UTC at one time.
#[derive(Clone)]
pub struct ZoneOffset {
    zone: Zone,
    fixed: FixedOffset,
}

/// Finds a zone by its name without regard to case. By the reference, Windows names may be written without points and
/// brackets.
pub fn find(name: &str) -> Option<Zone> {
    let name = name.trim();
    if let Some(zone) = of_the_iana(name) {
        return Some(zone);
    }
    let wanted = bare(name);
    let windows = WindowsTimezone::iter().find(|zone| bare(zone.name()) == wanted)?;
    of_the_iana(windows.tzdb_id())
}

fn of_the_iana(name: &str) -> Option<Zone> {
    tz::db().get(name).ok().map(Zone)
}

fn bare(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

impl Zone {
    pub const UTC: Self = Self(tz::TimeZone::UTC);

    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    fn at(&self, offset: tz::Offset) -> ZoneOffset {
        let fixed = FixedOffset::east_opt(offset.seconds());
        ZoneOffset {
            zone: self.clone(),
            // The database has offsets of less than 26 hours, and `chrono` allows less than 24. No known zone has more.
            fixed: fixed.unwrap_or_else(|| chrono::Utc.fix()),
        }
    }
}

impl TimeZone for Zone {
    type Offset = ZoneOffset;

    fn from_offset(offset: &ZoneOffset) -> Self {
        offset.zone.clone()
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> MappedLocalTime<ZoneOffset> {
        self.offset_from_local_datetime(&local.and_time(NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<ZoneOffset> {
        let ambiguous = clock(local).map(|time| self.0.to_ambiguous_timestamp(time).offset());
        match ambiguous {
            Some(tz::AmbiguousOffset::Unambiguous { offset }) => {
                MappedLocalTime::Single(self.at(offset))
            }
            Some(tz::AmbiguousOffset::Fold { before, after }) => {
                MappedLocalTime::Ambiguous(self.at(before), self.at(after))
            }
            Some(tz::AmbiguousOffset::Gap { .. }) | None => MappedLocalTime::None,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        self.offset_from_utc_datetime(&utc.and_time(NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        let seconds = utc.and_utc().timestamp();
        let seconds = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        self.at(self.0.to_offset(at))
    }
}

/// Returns the wall-clock time, or `None` outside of the years that have rules.
fn clock(local: &NaiveDateTime) -> Option<civil::DateTime> {
    let small = |number: u32| i8::try_from(number).ok();
    civil::DateTime::new(
        i16::try_from(local.year()).ok()?,
        small(local.month())?,
        small(local.day())?,
        small(local.hour())?,
        small(local.minute())?,
        small(local.second())?,
        0,
    )
    .ok()
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.fixed
    }
}

impl fmt::Debug for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.fixed, f)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Converts UTC to a zone's wall clock.
pub fn from_utc(utc: NaiveDateTime, zone: &Zone) -> Stamp {
    Stamp {
        wall: zone.from_utc_datetime(&utc).naive_local(),
        utc: *zone == Zone::UTC,
    }
}

/// Converts a zone's wall clock to UTC. A time that occurs twice is standard time, as in .NET. A time that does not
/// occur is `None`.
pub fn to_utc(wall: NaiveDateTime, zone: &Zone) -> Option<NaiveDateTime> {
    let local = match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(time) => time,
        MappedLocalTime::Ambiguous(first, second) => {
            let offset = |time: &chrono::DateTime<Zone>| time.offset().fix().local_minus_utc();
            if offset(&first) <= offset(&second) {
                first
            } else {
                second
            }
        }
        MappedLocalTime::None => return None,
    };
    Some(local.naive_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names() {
        let named = |name: &str| find(name).map(|zone| zone.name().to_owned());
        for (name, zone) in [
            ("Pacific Standard Time", "America/Los_Angeles"),
            ("pacific standard time", "America/Los_Angeles"),
            ("europe/berlin", "Europe/Berlin"),
            ("W. Europe Standard Time", "Europe/Berlin"),
            ("W Europe Standard Time", "Europe/Berlin"),
            ("UTC", "UTC"),
            ("UTC+12", "Etc/GMT-12"),
            ("US/Pacific", "US/Pacific"),
        ] {
            assert_eq!(named(name).as_deref(), Some(zone), "{name}");
        }
        assert_eq!(named("Middle Earth Standard Time"), None);
    }

    #[test]
    fn every_windows_zone_has_rules() {
        for windows in WindowsTimezone::iter() {
            assert!(find(windows.name()).is_some(), "{}", windows.name());
        }
    }

    /// The rules of the tz database, including those for years after the last one that it lists.
    #[test]
    fn clocks_follow_the_rules_of_their_zone() {
        let berlin = find("Europe/Berlin").unwrap();
        let time = |text: &str| text.parse::<NaiveDateTime>().unwrap();
        for (wall, utc) in [
            ("2026-01-15T12:00:00", Some("2026-01-15T11:00:00")),
            ("2026-07-15T12:00:00", Some("2026-07-15T10:00:00")),
            ("2026-03-29T02:30:00", None),
            // This time occurs twice: the second one is used.
            ("2026-10-25T02:30:00", Some("2026-10-25T01:30:00")),
            ("2090-07-15T12:00:00", Some("2090-07-15T10:00:00")),
            ("1970-07-15T12:00:00", Some("1970-07-15T11:00:00")),
            ("0001-01-01T12:00:00", Some("0001-01-01T11:06:32")),
        ] {
            assert_eq!(to_utc(time(wall), &berlin), utc.map(time), "{wall}");
            if let Some(utc) = utc {
                assert_eq!(from_utc(time(utc), &berlin).wall, time(wall), "{utc}");
            }
        }
    }

    #[test]
    fn no_time_is_too_far_away() {
        let tokyo = find("Asia/Tokyo").unwrap();
        for utc in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
            let local = tokyo.offset_from_utc_datetime(&utc).fix();
            assert!(local.local_minus_utc() > 0);
            assert_eq!(to_utc(utc, &tokyo), None);
        }
    }
}
