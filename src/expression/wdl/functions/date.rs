//! Dates and times: utcNow addSeconds. The clock is the environment's.

use super::{Args, Function, eager};
use crate::expression::Value;
use crate::expression::wdl::eval::{Ctx, Fail, Outcome};
use chrono::{DateTime, TimeDelta, Utc};

pub(super) const TABLE: &[Function] = &[
    eager("addSeconds", 2, 3, add_seconds),
    eager("utcNow", 0, 1, |ctx, _| Ok(show(ctx.env.now()))),
];

fn show(time: DateTime<Utc>) -> Value {
    Value::text(
        time.format("%Y-%m-%dT%H:%M:%S").to_string()
            + &format!(".{:07}Z", time.timestamp_subsec_nanos() / 100),
    )
}

fn add_seconds(_: &mut Ctx<'_>, args: &Args) -> Outcome {
    let time = DateTime::parse_from_rfc3339(args.text(0)?)
        .map_err(|_| args.wrong(0, "a time"))?
        .with_timezone(&Utc);
    let sum = TimeDelta::try_seconds(args.int(1)?).and_then(|delta| time.checked_add_signed(delta));
    sum.map(show)
        .ok_or_else(|| Fail::argument(1, "the time is out of range"))
}
