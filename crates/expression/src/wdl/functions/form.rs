//! Forms and parts: formDataMultiValues formDataValue listCallbackUrl multipartBody
//! triggerFormDataMultiValues triggerFormDataValue triggerMultipartBody. They read the outputs
//! of an action or of the trigger.

use super::workflow::{outputs, trigger_outputs};
use super::{Args, Function, eager};
use crate::Value;
use crate::wdl::content;
use crate::wdl::eval::{Ctx, Fail, Outcome, find_member};

pub(super) const TABLE: &[Function] = &[
    eager("formDataMultiValues", 2, 2, |ctx, args| {
        let from = outputs(ctx, args)?;
        let values = form_values(ctx, args, 1, &from)?;
        Ok(Value::array(values))
    }),
    eager("formDataValue", 2, 2, |ctx, args| {
        let from = outputs(ctx, args)?;
        single(ctx, args, 1, &from)
    }),
    eager("listCallbackUrl", 0, 0, |ctx, _| {
        let trigger = ctx.env.trigger();
        let url = trigger
            .as_object()
            .and_then(|map| find_member(map, "callbackUrl"));
        url.cloned()
            .ok_or_else(|| Fail::new("`listCallbackUrl`: nothing here has a callback URL"))
    }),
    eager("multipartBody", 2, 2, |ctx, args| {
        let from = outputs(ctx, args)?;
        part(args, 1, &from)
    }),
    eager("triggerFormDataMultiValues", 1, 1, |ctx, args| {
        let from = trigger_outputs(ctx)?;
        let values = form_values(ctx, args, 0, &from)?;
        Ok(Value::array(values))
    }),
    eager("triggerFormDataValue", 1, 1, |ctx, args| {
        let from = trigger_outputs(ctx)?;
        single(ctx, args, 0, &from)
    }),
    eager("triggerMultipartBody", 1, 1, |ctx, args| {
        let from = trigger_outputs(ctx)?;
        part(args, 0, &from)
    }),
];

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    find_member(value.as_object()?, name)
}

/// Returns the values of a key: in `$formdata` of the body, in a URL-encoded body, or in the parts of a multipart body
/// with that name.
fn form_values(
    ctx: &mut Ctx<'_>,
    args: &Args,
    index: usize,
    outputs: &Value,
) -> Outcome<Vec<Value>> {
    let key = args.text(index)?;
    let body = member(outputs, "body").unwrap_or(outputs);
    if let Some(pairs) = member(body, "$formdata").and_then(Value::as_array) {
        ctx.charge_elements(pairs.len())?;
        let named = pairs.iter().filter(|pair| {
            let name = member(pair, "key").or_else(|| member(pair, "name"));
            name.and_then(Value::as_str) == Some(key)
        });
        return Ok(named
            .filter_map(|pair| member(pair, "value").cloned())
            .collect());
    }
    if let Some(parts) = member(body, "$multipart").and_then(Value::as_array) {
        ctx.charge_elements(parts.len())?;
        let named = parts
            .iter()
            .filter(|part| part_name(part).as_deref() == Some(key));
        return Ok(named.map(part_body).collect());
    }
    let text = match body {
        Value::String(text) => text.to_string(),
        other => match content::text_of(other) {
            Some(text) => text,
            None => {
                let name = args.function.name;
                return Err(Fail::new(format!("`{name}`: the body is not a form")));
            }
        },
    };
    ctx.charge_output(text.len().saturating_mul(2))?;
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    Ok(pairs
        .filter(|(name, _)| name == key)
        .map(|(_, value)| Value::text(value.into_owned()))
        .collect())
}

/// Returns the only value of a key, or null if it has none. Several values are an error.
fn single(ctx: &mut Ctx<'_>, args: &Args, index: usize, outputs: &Value) -> Outcome {
    let mut values = form_values(ctx, args, index, outputs)?;
    if values.len() > 1 {
        let name = args.function.name;
        let message = format!("`{name}`: the form has {} values of that key", values.len());
        return Err(Fail::argument(index, message));
    }
    Ok(values.pop().unwrap_or_default())
}

fn part(args: &Args, index: usize, outputs: &Value) -> Outcome {
    let wanted = args.count(index)?;
    let name = args.function.name;
    let body = member(outputs, "body").unwrap_or(outputs);
    let parts = member(body, "$multipart")
        .and_then(Value::as_array)
        .ok_or_else(|| Fail::new(format!("`{name}`: the body has no parts")))?;
    parts.get(wanted).map(part_body).ok_or_else(|| {
        Fail::argument(
            index,
            format!("`{name}`: the body has {} parts", parts.len()),
        )
    })
}

fn part_body(part: &Value) -> Value {
    member(part, "body").cloned().unwrap_or_default()
}

/// Returns the name in a part's Content-Disposition.
fn part_name(part: &Value) -> Option<String> {
    let disposition = member(member(part, "headers")?, "Content-Disposition")?.as_str()?;
    let name = disposition
        .split(';')
        .find_map(|piece| piece.trim().strip_prefix("name="))?;
    Some(name.trim_matches('"').to_owned())
}
