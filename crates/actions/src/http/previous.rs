//! The values that an action in a loop passes to its request in the next iteration. Such a value, for example a version
//! or a position, is a member of the output, and the workflow format passes it to the next request as an input. It
//! belongs to one address and is never sent to another address.

use crate::inputs::{Inputs, mismatch};
use crate::mask::MASK;
use crate::secrets::fits_parts;
use windlass_expression::{Value, shared_key};
use windlass_model::model::Fault;

/// The member of such a value that has the address to which it belongs.
pub(super) const URI: &str = "uri";

/// Returns the value from the last output, if it belongs to the address of this request. `what` names the value in
/// messages.
pub(super) fn previous_value<'a>(
    inputs: Inputs<'a>,
    key: &str,
    what: &str,
    uri: &Value,
) -> Result<Option<&'a Value>, Fault> {
    let Some(previous) = inputs.get(key) else {
        return Ok(None);
    };
    if previous.as_object().is_none() {
        return Err(mismatch(key, what, previous));
    }
    let known = previous.get(URI).and_then(Value::as_str);
    let is_of_address = known.zip(uri.as_str()).is_some_and(|(a, b)| is_same(a, b));
    Ok(is_of_address.then_some(previous))
}

/// Adds a member to the output. If `member` is `None`, returns the output unchanged.
pub(super) fn with_member(output: Value, key: &str, member: Option<Value>) -> Value {
    match (member, output.as_object()) {
        (Some(member), Some(members)) => {
            let mut members = members.clone();
            members.insert(shared_key(key), member);
            Value::object(members)
        }
        _ => output,
    }
}

/// Returns true if an address is equal to the address in an output. Secrets in the output are masked: a mask is equal
/// to any text.
pub(super) fn is_same(known: &str, uri: &str) -> bool {
    fits_parts(known.split(MASK), uri)
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn an_address_is_known_again_where_secrets_are_masked() {
        for (known, uri, expected) in [
            ("http://h/a", "http://h/a", true),
            ("http://h/a", "http://h/ab", false),
            ("http://h/a", "http://h/", false),
            ("http://h/***/a", "http://h/token/a", true),
            ("http://h/***/a", "http://h/token/b", false),
            ("http://h/***/a?k=***", "http://h/token/a?k=key", true),
            ("http://h/***/a?k=***", "http://h/token/b?k=key", false),
        ] {
            assert_eq!(is_same(known, uri), expected, "{known} {uri}");
        }
    }
}
