//! Dates and times: addDays addHours addMinutes addSeconds addToTime convertFromUtc
//! convertTimeZone convertToUtc dateDifference dayOfMonth dayOfWeek dayOfYear formatDateTime
//! formatTimeSpan getFutureTime getPastTime isDate parseDateTime startOfDay startOfHour
//! startOfMonth subtractFromTime ticks utcNow. The clock is the environment's.

use super::{Args, Function, eager};
use crate::Value;
use crate::wdl::culture::Culture;
use crate::wdl::eval::{Ctx, Fail, Outcome};
use crate::wdl::time::format::format;
use crate::wdl::time::parse::{parse, parse_exact};
use crate::wdl::time::zone::{self, Zone};
use crate::wdl::time::{Stamp, Unit, span};
use chrono::{Datelike, NaiveDateTime, TimeDelta};

pub(super) const TABLE: &[Function] = &[
    eager("addDays", 2, 3, |ctx, args| add(ctx, args, Unit::Day)),
    eager("addHours", 2, 3, |ctx, args| add(ctx, args, Unit::Hour)),
    eager("addMinutes", 2, 3, |ctx, args| add(ctx, args, Unit::Minute)),
    eager("addSeconds", 2, 3, |ctx, args| add(ctx, args, Unit::Second)),
    eager("addToTime", 3, 4, |ctx, args| shift(ctx, args, 1)),
    eager("convertFromUtc", 2, 3, convert_from_utc),
    eager("convertTimeZone", 3, 4, convert_time_zone),
    eager("convertToUtc", 2, 3, convert_to_utc),
    eager("dateDifference", 2, 2, |ctx, args| {
        let (start, end) = (stamp(ctx, args, 0)?, stamp(ctx, args, 1)?);
        let ticks = span::ticks(end.wall.signed_duration_since(start.wall));
        ctx.text(span::show(ticks))
    }),
    eager("dayOfMonth", 1, 1, |ctx, args| {
        Ok(stamp(ctx, args, 0)?.wall.day().into())
    }),
    eager("dayOfWeek", 1, 1, |ctx, args| {
        Ok(stamp(ctx, args, 0)?
            .wall
            .weekday()
            .num_days_from_sunday()
            .into())
    }),
    eager("dayOfYear", 1, 1, |ctx, args| {
        Ok(stamp(ctx, args, 0)?.wall.ordinal().into())
    }),
    eager("formatDateTime", 1, 3, |ctx, args| {
        let culture = culture(args, 2)?;
        let time = stamp(ctx, args, 0)?;
        show_in(ctx, args, 1, time, culture)
    }),
    eager("formatTimeSpan", 1, 3, format_time_span),
    eager("getFutureTime", 2, 3, |ctx, args| from_now(ctx, args, 1)),
    eager("getPastTime", 2, 3, |ctx, args| from_now(ctx, args, -1)),
    eager("isDate", 1, 2, |ctx, args| {
        let culture = culture(args, 1)?;
        let read = args
            .value(0)
            .as_str()
            .and_then(|text| parse(text, culture, ctx.env.now()));
        Ok(read.is_some().into())
    }),
    eager("parseDateTime", 1, 3, parse_date_time),
    eager("startOfDay", 1, 2, |ctx, args| {
        start(ctx, args, Stamp::start_of_day)
    }),
    eager("startOfHour", 1, 2, |ctx, args| {
        start(ctx, args, Stamp::start_of_hour)
    }),
    eager("startOfMonth", 1, 2, |ctx, args| {
        start(ctx, args, Stamp::start_of_month)
    }),
    eager("subtractFromTime", 3, 4, |ctx, args| shift(ctx, args, -1)),
    eager("ticks", 1, 1, |ctx, args| {
        Ok(Value::Int(stamp(ctx, args, 0)?.ticks()))
    }),
    eager("utcNow", 0, 1, |ctx, args| {
        let now = Stamp::utc(ctx.env.now());
        show(ctx, args, 0, now)
    }),
];

/// Returns the culture in an argument, or `en-US` without one.
pub(super) fn culture(args: &Args, index: usize) -> Outcome<Culture> {
    match args.optional_text(index)? {
        None => Ok(Culture::EN_US),
        Some(code) => {
            Culture::find(code).ok_or_else(|| args.wrong(index, "a locale such as 'en-US'"))
        }
    }
}

fn stamp(ctx: &Ctx<'_>, args: &Args, index: usize) -> Outcome<Stamp> {
    parse(args.text(index)?, Culture::EN_US, ctx.env.now())
        .ok_or_else(|| args.wrong(index, "a timestamp such as '2018-03-15T13:00:00Z'"))
}

/// Formats the timestamp in the format of an argument, or `o` without one.
fn show(ctx: &mut Ctx<'_>, args: &Args, index: usize, time: Stamp) -> Outcome {
    show_in(ctx, args, index, time, Culture::EN_US)
}

fn show_in(ctx: &mut Ctx<'_>, args: &Args, index: usize, time: Stamp, culture: Culture) -> Outcome {
    let pattern = args.optional_text(index)?.unwrap_or("o");
    ctx.charge_work(pattern.len())?;
    match format(time, pattern, culture) {
        Ok(text) => ctx.text(text),
        Err(why) => Err(Fail::argument(
            index,
            format!("`{}`: {why}", args.function.name),
        )),
    }
}

fn out_of_range(args: &Args, index: usize) -> Box<Fail> {
    let name = args.function.name;
    Fail::argument(
        index,
        format!("the result of `{name}` is outside the years 1 to 9999"),
    )
}

fn add(ctx: &mut Ctx<'_>, args: &Args, unit: Unit) -> Outcome {
    let time = stamp(ctx, args, 0)?;
    let sum = time
        .plus(args.int(1)?, unit)
        .ok_or_else(|| out_of_range(args, 1))?;
    show(ctx, args, 2, sum)
}

/// Adds a count of units to the time. The count is multiplied by `direction`.
fn moved(args: &Args, index: usize, time: Stamp, direction: i64) -> Outcome<Stamp> {
    let unit = Unit::find(args.text(index + 1)?)
        .ok_or_else(|| args.wrong(index + 1, &format!("one of {}", Unit::NAMES)))?;
    let count = args.int(index)?.checked_mul(direction);
    let sum = count.and_then(|count| time.plus(count, unit));
    sum.ok_or_else(|| out_of_range(args, index))
}

fn shift(ctx: &mut Ctx<'_>, args: &Args, direction: i64) -> Outcome {
    let sum = moved(args, 1, stamp(ctx, args, 0)?, direction)?;
    show(ctx, args, 3, sum)
}

fn from_now(ctx: &mut Ctx<'_>, args: &Args, direction: i64) -> Outcome {
    let sum = moved(args, 0, Stamp::utc(ctx.env.now()), direction)?;
    show(ctx, args, 2, sum)
}

fn start(ctx: &mut Ctx<'_>, args: &Args, of: fn(Stamp) -> Stamp) -> Outcome {
    let time = of(stamp(ctx, args, 0)?);
    show(ctx, args, 1, time)
}

fn named_zone(args: &Args, index: usize) -> Outcome<Zone> {
    zone::find(args.text(index)?).ok_or_else(|| {
        args.wrong(
            index,
            "a time zone such as 'Pacific Standard Time' or 'Europe/Berlin'",
        )
    })
}

fn to_utc(wall: NaiveDateTime, from: &Zone) -> Outcome<NaiveDateTime> {
    zone::to_utc(wall, from).ok_or_else(|| {
        Fail::argument(
            0,
            format!(
                "{wall} does not occur in {}: the clocks are put forward",
                from.name()
            ),
        )
    })
}

fn convert_from_utc(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let time = stamp(ctx, args, 0)?;
    let local = zone::from_utc(time.wall, &named_zone(args, 1)?);
    show(ctx, args, 2, local)
}

/// The source zone defines the meaning of the timestamp, even if the timestamp ends with `Z`.
fn convert_time_zone(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let time = stamp(ctx, args, 0)?;
    let utc = to_utc(time.wall, &named_zone(args, 1)?)?;
    let local = zone::from_utc(utc, &named_zone(args, 2)?);
    show(ctx, args, 3, local)
}

fn convert_to_utc(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let time = stamp(ctx, args, 0)?;
    let wall = to_utc(time.wall, &named_zone(args, 1)?)?;
    show(ctx, args, 2, Stamp { wall, utc: true })
}

fn parse_date_time(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let culture = culture(args, 1)?;
    let (text, now) = (args.text(0)?, ctx.env.now());
    let read = match args.optional_text(2)? {
        None => parse(text, culture, now),
        Some(pattern) => {
            ctx.charge_work(pattern.len())?;
            parse_exact(text, pattern, culture, now)
                .map_err(|why| Fail::argument(2, format!("`parseDateTime`: {why}")))?
        }
    };
    let time = read.ok_or_else(|| args.wrong(0, "a timestamp of that locale and format"))?;
    match format(time, "o", Culture::EN_US) {
        Ok(text) => ctx.text(text),
        Err(why) => Err(Fail::new(why)),
    }
}

/// Formats a time span in .NET's notation, or a number of seconds.
fn format_time_span(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let ticks = match args.value(0) {
        Value::Int(seconds) => TimeDelta::try_seconds(*seconds).map(span::ticks),
        _ => span::parse(args.text(0)?),
    };
    let ticks = ticks.ok_or_else(|| args.wrong(0, "a time span such as '1.02:03:04'"))?;
    let culture = culture(args, 2)?;
    let pattern = args.optional_text(1)?.unwrap_or("c");
    ctx.charge_work(pattern.len())?;
    match span::format(ticks, pattern, culture) {
        Ok(text) => ctx.text(text),
        Err(why) => Err(Fail::argument(1, format!("`formatTimeSpan`: {why}"))),
    }
}
