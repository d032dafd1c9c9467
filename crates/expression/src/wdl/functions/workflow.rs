//! The workflow: action actionBody actionOutputs actions body item items iterationIndexes outputs parameters result
//! trigger triggerBody triggerOutputs variables workflow, and our own: inputs, env, schedule, secret, state, lastRun,
//! serverDelay. They read only the environment.

use super::{Args, Function, passing};
use crate::wdl::eval::{Ctx, Fail, Outcome, find_member};
use crate::{Lookup, Mode, SCHEDULE_MEMBERS, Value};
use std::time::Duration;
use windlass_value::time::{format_duration, parse_duration};
use windlass_value::{LONGEST_REQUESTED_WAIT, Timestamp, did_you_mean, requested_wait};

pub(super) const TABLE: &[Function] = &[
    passing("action", 0, 0, |ctx, _| match ctx.env.current_action() {
        Some(view) => Ok(view.to_value()),
        None => Err(Fail::new(
            "`action` is known only inside an action's own inputs and conditions",
        )),
    }),
    passing("actionBody", 1, 1, body),
    passing("actionOutputs", 1, 1, outputs),
    passing("actions", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let found = ctx.env.action(name);
        let found = ran(ctx, name, "action", found)?;
        let found = found.map_or(Value::Null, |view| view.to_value());
        ctx.charge_value(&found)?;
        Ok(found)
    }),
    passing("body", 1, 1, body),
    passing("env", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        match ctx.env.env_var(name) {
            Some(value) => ctx.text(value),
            None => Err(Fail::argument(
                0,
                format!("unknown environment variable `{name}`: --allow-env must allow it"),
            )),
        }
    }),
    passing("inputs", 0, 1, inputs),
    passing("item", 0, 0, |ctx, _| {
        ctx.env
            .item(None)
            .ok_or_else(|| Fail::new("`item` is known only inside a foreach"))
    }),
    passing("items", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let missing = || Fail::argument(0, format!("no foreach `{name}` around this place"));
        ctx.env.item(Some(name)).ok_or_else(missing)
    }),
    passing("iterationIndexes", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let missing = || Fail::argument(0, format!("no loop `{name}` around this place"));
        ctx.env
            .iteration_index(name)
            .map(Value::Int)
            .ok_or_else(missing)
    }),
    passing("lastRun", 0, 0, |ctx, _| {
        let last = ctx.env.last_run();
        ctx.charge_value(&last)?;
        Ok(last)
    }),
    passing("callbackUrl", 1, 2, callback_url),
    passing("outputs", 1, 1, outputs),
    passing("parameters", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let missing = || Fail::argument(0, format!("unknown parameter `{name}`"));
        ctx.env.parameter(name).ok_or_else(missing)
    }),
    passing("result", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let found = ctx.env.result(name);
        let found = ran(ctx, name, "scope", found)?.unwrap_or_default();
        ctx.charge_value(&found)?;
        Ok(found)
    }),
    passing("schedule", 1, 1, schedule),
    passing("secret", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        let missing = || Fail::argument(0, format!("unknown secret `{name}`"));
        ctx.env.secret(name).ok_or_else(missing)
    }),
    passing("serverDelay", 1, 1, server_delay),
    passing("state", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        ctx.env.state(name).ok_or_else(|| {
            let known = ctx.env.state_names();
            Fail::argument(0, unknown("state", name, &known))
        })
    }),
    passing("trigger", 0, 0, |ctx, _| {
        let trigger = ctx.env.trigger();
        ctx.charge_value(&trigger)?;
        Ok(trigger)
    }),
    passing("triggerBody", 0, 0, |ctx, _| {
        let outputs = trigger_outputs(ctx)?;
        Ok(body_of(ctx, outputs))
    }),
    passing("triggerOutputs", 0, 0, |ctx, _| trigger_outputs(ctx)),
    passing("variables", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        ctx.env.variable(name).ok_or_else(|| {
            let known = ctx.env.variable_names();
            Fail::argument(0, unknown("variable", name, &known))
        })
    }),
    passing("workflow", 0, 0, |ctx, _| Ok(ctx.env.workflow())),
];

/// How long the address of a callback is valid by default.
const CALLBACK_VALID: Duration = Duration::from_secs(7 * 24 * 3600);

/// `callbackUrl('SIGNAL')`, with an optional duration.
fn callback_url(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let signal = args.text(0)?;
    let valid = match args.optional_text(1)? {
        None => CALLBACK_VALID,
        Some(text) => parse_duration(text).map_err(|error| Fail::argument(1, error.to_string()))?,
    };
    let refused = || Fail::new("`callbackUrl` is for the inputs of actions only");
    ctx.env.callback_url(signal, valid).ok_or_else(refused)
}

/// Returns a member of the run's schedule; null in a run that no schedule started.
fn schedule(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let name = args.text(0)?;
    let known = SCHEDULE_MEMBERS.iter().find(|known| **known == name);
    let known = known.ok_or_else(|| {
        let known = SCHEDULE_MEMBERS.map(str::to_owned);
        Fail::argument(0, unknown("member of the schedule", name, &known))
    })?;
    Ok(ctx.env.schedule().get(known).cloned().unwrap_or_default())
}

/// Returns the wait that the last answer requests, as a duration. The argument is outputs, or the results of a loop's
/// actions.
fn server_delay(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let given = args.value(0);
    let results = match given.as_array() {
        Some(results) => &**results,
        None => std::slice::from_ref(given),
    };
    ctx.charge_work(results.len())?;
    let headers = results.iter().rev().find_map(|result| {
        let outputs = result.get("outputs").unwrap_or(result);
        outputs.get("headers")
    });
    let header = |name: &str| headers?.get(name)?.as_str();
    let now = Timestamp(ctx.env.now().timestamp_millis());
    let wait = requested_wait(header, now).unwrap_or_default();
    ctx.text(format_duration(wait.min(LONGEST_REQUESTED_WAIT)))
}

fn unknown(what: &str, name: &str, known: &[String]) -> String {
    let message = format!("unknown {what} `{name}`");
    if let Some(hint) = did_you_mean(name, known) {
        return format!("{message}; {hint}");
    }
    match known {
        [] => message,
        [only] => format!("{message}; the only one is `{only}`"),
        _ => {
            let more = if known.len() > 8 { ", …" } else { "" };
            let names: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
            format!("{message}; there are {}{more}", names.join(", "))
        }
    }
}

/// Returns the found value, or `None` if the action has not run and the environment allows that.
fn ran<T>(ctx: &mut Ctx<'_>, name: &str, what: &str, found: Lookup<T>) -> Outcome<Option<T>> {
    match found {
        Lookup::Found(found) => Ok(Some(found)),
        Lookup::NotRun if ctx.env.missing_as_null() => {
            ctx.unrun(name);
            Ok(None)
        }
        Lookup::NotRun => Err(Fail::argument(
            0,
            format!("the {what} `{name}` has not run"),
        )),
        Lookup::Unknown(known) => Err(Fail::argument(0, unknown(what, name, &known))),
    }
}

pub(super) fn outputs(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let name = args.text(0)?;
    let found = ctx.env.action_outputs(name);
    let found = ran(ctx, name, "action", found)?.unwrap_or_default();
    ctx.charge_value(&found)?;
    Ok(found)
}

fn body(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let name = args.text(0)?;
    let found = ctx.env.action_outputs(name);
    let Some(outputs) = ran(ctx, name, "action", found)? else {
        return Ok(Value::Null);
    };
    ctx.charge_value(&outputs)?;
    match outputs.as_array() {
        Some(items) if ctx.env.is_iterated(name) => {
            ctx.charge_elements(items.len())?;
            let bodies = items.iter().map(|item| body_of(ctx, item.clone()));
            Ok(Value::array(bodies.collect()))
        }
        _ => Ok(body_of(ctx, outputs)),
    }
}

/// Returns the member `body` of outputs. Without one, returns the whole outputs in Loom, and null in Azure.
fn body_of(ctx: &Ctx<'_>, outputs: Value) -> Value {
    match outputs.as_object().and_then(|map| find_member(map, "body")) {
        Some(body) => body.clone(),
        None => match ctx.env.mode() {
            Mode::Loom => outputs,
            Mode::Azure => Value::Null,
        },
    }
}

pub(super) fn trigger_outputs(ctx: &mut Ctx<'_>) -> Outcome {
    let trigger = ctx.env.trigger();
    let outputs = trigger
        .as_object()
        .and_then(|map| find_member(map, "outputs"));
    let outputs = outputs.cloned().unwrap_or_default();
    ctx.charge_value(&outputs)?;
    Ok(outputs)
}

/// `inputs()`, `inputs('name')`: returns the caller's inputs.
fn inputs(ctx: &mut Ctx<'_>, args: &Args) -> Outcome {
    let all = ctx.env.inputs();
    if args.len() == 0 {
        return Ok(all);
    }
    let name = args.text(0)?;
    let map = all.as_object();
    map.and_then(|map| find_member(map, name))
        .cloned()
        .ok_or_else(|| {
            let known: Vec<String> = map
                .map(|map| map.keys().map(|key| key.to_string()).collect())
                .unwrap_or_default();
            Fail::argument(0, unknown("input", name, &known))
        })
}
