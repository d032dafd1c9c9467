//! Time zones by their Windows or IANA names.

use super::Stamp;
use chrono::{MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use windows_timezones::WindowsTimezone;

/// The zone of this name, without case; none when there is none. Windows names may be written
/// without their points and brackets, as the reference allows.
pub(crate) fn find(name: &str) -> Option<Tz> {
    let name = name.trim();
    if let Ok(zone) = name.parse::<Tz>() {
        return Some(zone);
    }
    if let Ok(windows) = name.parse::<WindowsTimezone>() {
        return windows.tzdb_id().parse().ok();
    }
    let wanted = bare(name);
    TZ_VARIANTS.into_iter().find_map(|zone| {
        if zone.name().eq_ignore_ascii_case(name) {
            return Some(zone);
        }
        let windows = WindowsTimezone::try_from(zone).ok()?;
        let same = bare(windows.name()) == wanted;
        same.then(|| windows.tzdb_id().parse().ok()).flatten()
    })
}

fn bare(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// UTC to a zone's wall clock.
pub(crate) fn from_utc(utc: NaiveDateTime, zone: Tz) -> Stamp {
    Stamp {
        wall: zone.from_utc_datetime(&utc).naive_local(),
        utc: zone == Tz::UTC,
    }
}

/// A zone's wall clock to UTC. A time that occurs twice is taken as standard time, as .NET does;
/// one that does not occur is an error.
pub(crate) fn to_utc(wall: NaiveDateTime, zone: Tz) -> Option<NaiveDateTime> {
    let local = match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(time) => time,
        MappedLocalTime::Ambiguous(first, second) => {
            let offset = |time: &chrono::DateTime<Tz>| time.offset().fix().local_minus_utc();
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
        assert_eq!(
            find("Pacific Standard Time"),
            Some(Tz::America__Los_Angeles)
        );
        assert_eq!(
            find("pacific standard time"),
            Some(Tz::America__Los_Angeles)
        );
        assert_eq!(find("europe/berlin"), Some(Tz::Europe__Berlin));
        assert_eq!(find("W. Europe Standard Time"), Some(Tz::Europe__Berlin));
        assert_eq!(find("W Europe Standard Time"), Some(Tz::Europe__Berlin));
        assert_eq!(find("UTC"), Some(Tz::UTC));
        assert_eq!(find("UTC+12").map(|zone| zone.name()), Some("Etc/GMT-12"));
        assert_eq!(find("Middle Earth Standard Time"), None);
    }
}
