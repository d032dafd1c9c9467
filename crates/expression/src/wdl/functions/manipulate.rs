//! Manipulation: addProperty mergeObjects removeProperty setProperty; xpath, encodeXmlName,
//! encodeXmlValue, decodeXmlName, decodeXmlValue.

use super::{ANY, Function, eager, passing};
use crate::wdl::eval::{Ctx, Fail, Outcome, same_name};
use crate::wdl::{content, xml};
use crate::{MAX_DEPTH, Object, Value};
use std::sync::Arc;

pub(super) const TABLE: &[Function] = &[
    passing("addProperty", 3, 3, |ctx, args| {
        let (map, name) = (args.object(0)?, args.text(1)?);
        if key(map, name).is_some() {
            let message = format!("`addProperty`: the object already has a property `{name}`");
            return Err(Fail::argument(1, message));
        }
        set(ctx, map, name, args.value(2))
    }),
    eager("decodeXmlName", 1, 1, |ctx, args| {
        ctx.text(xml::decode_name(args.text(0)?))
    }),
    eager("decodeXmlValue", 1, 1, |ctx, args| {
        ctx.text(xml::decode_value(args.text(0)?))
    }),
    eager("encodeXmlName", 1, 1, |ctx, args| {
        let name = args.text(0)?;
        ctx.charge_output(name.len().saturating_mul(8))?;
        ctx.text(xml::encode_name(name))
    }),
    eager("encodeXmlValue", 1, 1, |ctx, args| {
        let text = args.text(0)?;
        ctx.charge_output(text.len().saturating_mul(2))?;
        ctx.text(xml::encode_value(text))
    }),
    passing("mergeObjects", 1, ANY, |ctx, args| {
        let mut merged: Object = (**args.object(0)?).clone();
        ctx.charge_elements(merged.len())?;
        for index in 1..args.len() {
            merge(ctx, &mut merged, args.object(index)?, 0)?;
        }
        ctx.nested(Value::object(merged))
    }),
    passing("removeProperty", 2, 2, |ctx, args| {
        let (map, name) = (args.object(0)?, args.text(1)?);
        let Some(found) = key(map, name) else {
            return Ok(args.value(0).clone());
        };
        ctx.charge_elements(map.len())?;
        let mut rest = (**map).clone();
        rest.shift_remove(&found);
        Ok(Value::object(rest))
    }),
    passing("setProperty", 3, 3, |ctx, args| {
        set(ctx, args.object(0)?, args.text(1)?, args.value(2))
    }),
    eager("xpath", 2, 2, |ctx, args| {
        let path = args.text(1)?;
        let text = match (args.value(0), content::text_of(args.value(0))) {
            (_, Some(text)) => text,
            (Value::String(text), None) => text.to_string(),
            _ => return Err(args.wrong(0, "XML")),
        };
        ctx.charge_output(text.len())?;
        xml::select(ctx, &text, path)
    }),
];

/// Returns the key of a map that is equal to a name without regard to case.
fn key(map: &Object, name: &str) -> Option<Arc<str>> {
    if let Some((key, _)) = map.get_key_value(name) {
        return Some(Arc::clone(key));
    }
    map.keys().find(|key| same_name(key, name)).cloned()
}

fn set(ctx: &mut Ctx<'_>, map: &Arc<Object>, name: &str, value: &Value) -> Outcome {
    ctx.charge_elements(map.len() + 1)?;
    let key = key(map, name).unwrap_or_else(|| Arc::from(name));
    let mut updated = (**map).clone();
    // As in the service, the changed property becomes the last one.
    updated.shift_remove(&key);
    updated.insert(key, value.clone());
    ctx.nested(Value::object(updated))
}

/// Merges maps member by member. Any other value is replaced by the later one.
fn merge(ctx: &mut Ctx<'_>, into: &mut Object, from: &Object, depth: usize) -> Outcome<()> {
    if depth > MAX_DEPTH {
        return Err(Fail::new(format!(
            "`mergeObjects`: deeper than {MAX_DEPTH} levels"
        )));
    }
    ctx.charge_elements(from.len())?;
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(new)) => {
                ctx.charge_elements(known.len())?;
                merge(ctx, Arc::make_mut(known), new, depth + 1)?;
            }
            _ => {
                into.insert(Arc::clone(key), value.clone());
            }
        }
    }
    Ok(())
}
