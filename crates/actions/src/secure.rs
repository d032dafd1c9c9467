//! Secure inputs of an action: the executor gets them as they are, and what comes back is looked
//! through. A fault says none of their texts, and what repeats a value that was computed from
//! something secure is secure itself. It never keeps anything.

use super::mask::Mask;
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::sync::Arc;
use url::Url;
use windlass_expression::{Secure, Value};
use windlass_model::model::{Fault, Request};

/// Shorter texts are found in anything.
const SHORTEST: usize = 4;

/// In what comes back shorter texts are no sign: `POST`, `json`.
const SHORTEST_ECHO: usize = 8;

/// Maximum number of texts to look for; the fault of an action with more has no details.
const MAX_TEXTS: usize = 256;

/// A request with its secure inputs as they are, and what to look for in what comes back.
pub(super) struct RevealedRequest {
    pub request: Request,
    pub mask: Arc<Mask>,
    echoed: Mask,
}

/// None when nothing of it is secure.
pub(super) fn revealed(request: &Request) -> Option<RevealedRequest> {
    if !request.inputs.has_secure() {
        return None;
    }
    let (mut hidden, mut echoed) = (BTreeSet::new(), BTreeSet::new());
    collect(&request.inputs, false, &mut |text| {
        hidden.extend(parts(text, SHORTEST));
    });
    // An author who hides all inputs of an action hides constants with them: those come back often.
    let inside = match &request.inputs {
        Value::Secure(secure) => match &**secure {
            Secure::Open(value) => value,
            Secure::Sealed(_) => &request.inputs,
        },
        value => value,
    };
    collect(inside, false, &mut |text| {
        echoed.extend(parts(text, SHORTEST_ECHO));
    });
    let mask = |texts: BTreeSet<String>| match texts.len() > MAX_TEXTS {
        true => Mask::everything(),
        false => Mask::of(texts.iter().map(String::as_str)),
    };
    Some(RevealedRequest {
        request: Request {
            inputs: request.inputs.revealed(),
            ..request.clone()
        },
        mask: Arc::new(mask(hidden)),
        echoed: mask(echoed),
    })
}

impl RevealedRequest {
    /// The result in a form that may be stored.
    pub fn outcome(&self, outcome: Result<Value, Fault>) -> Result<Value, Fault> {
        match outcome {
            Ok(value) => Ok(self.output(value)),
            Err(fault) => {
                let output = fault.output.clone().map(|output| self.output(output));
                let masked = self.mask.outcome(Err(Fault {
                    output: None,
                    ..fault
                }));
                masked.map_err(|fault| Fault { output, ..fault })
            }
        }
    }

    fn output(&self, value: Value) -> Value {
        match self.echoed.changes(&value) {
            true => value.secure(),
            false => value,
        }
    }
}

/// The texts of what is secure in a value; numbers are texts of their digits.
fn collect(value: &Value, secure: bool, found: &mut dyn FnMut(&str)) {
    match value {
        Value::Secure(inside) => {
            if let Secure::Open(value) = &**inside {
                collect(value, true, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secure, found)),
        Value::Object(members) => members.values().for_each(|one| collect(one, secure, found)),
        Value::String(text) if secure => found(text),
        Value::Int(_) | Value::Float(_) | Value::Decimal(_) if secure => found(&value.to_json()),
        _ => {}
    }
}

/// A text and the words in it: what was computed may hold more than what was secure (`Bearer …`,
/// `?token=…`). The host of an address is the author's own.
fn parts(text: &str, shortest: usize) -> impl Iterator<Item = String> + '_ {
    let host = Url::parse(text.trim()).ok();
    let host = host.and_then(|url| url.host_str().map(str::to_owned));
    let words = text.split(|c: char| c.is_whitespace() || "\"',;&".contains(c));
    let pieces = text.split(|c: char| c.is_whitespace() || "\"',;&=?#/:@|<>(){}[]".contains(c));
    let pieces = pieces.filter(move |piece| host.as_deref() != Some(*piece));
    // Among words only those that can be one: an author's own text in the same input is not.
    let within = words
        .chain(pieces)
        .filter(|word| word.len() >= SHORTEST_ECHO);
    let within = within.flat_map(|word| [word.to_owned(), decoded(word)]);
    std::iter::once(text.trim().to_owned())
        .filter(move |whole| whole.len() >= shortest)
        .chain(within)
}

/// A word of an address, percent-decoded as its reader may return it.
fn decoded(word: &str) -> String {
    percent_decode_str(word).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_expression::Object;
    use windlass_model::model::fault_kind;

    fn request(inputs: Value) -> Request {
        Request {
            executor: "http".into(),
            action: "call".into(),
            inputs,
            key: String::from("r/call"),
            attempt: 1,
            timeout_ms: None,
        }
    }

    #[test]
    fn what_comes_back_is_looked_through() {
        let header = Value::from("Bearer tok-123456").secure();
        let headers = Value::object(Object::from_iter([("authorization".into(), header)]));
        let inputs = Value::from_pairs([("headers", headers), ("method", "POST".into())]);
        let revealed = revealed(&request(inputs.clone())).unwrap();
        let given = revealed.request.inputs.to_json();
        assert!(given.contains("Bearer tok-123456"), "{given}");
        let fault = Fault::new(fault_kind::HTTP, "401: tok-123456 is not known");
        let fault = revealed.outcome(Err(fault)).unwrap_err();
        assert_eq!(fault.message, "401: *** is not known");
        let echo = Value::from_pairs([("you_sent", Value::from("tok-123456"))]);
        assert!(matches!(revealed.outcome(Ok(echo)), Ok(Value::Secure(_))));
        let other = Value::from_pairs([("method", Value::from("POST"))]);
        assert_eq!(revealed.outcome(Ok(other.clone())), Ok(other));
        // In an address, in what follows a name, and percent-encoded.
        for whole in [
            "https://example.org/q?token=tok-123456&x=1",
            "https://example.org/users/tok-123456/all",
            "user:tok-123456",
            "token=tok%2D123456",
        ] {
            let inputs = Value::from_pairs([("uri", Value::from(whole).secure())]);
            let revealed = super::revealed(&request(inputs)).unwrap();
            let echo = Value::from("you sent tok-123456");
            assert!(matches!(revealed.outcome(Ok(echo)), Ok(Value::Secure(_))));
            let link = Value::from("https://example.org/next");
            assert_eq!(revealed.outcome(Ok(link.clone())), Ok(link));
        }
        // All inputs hidden: only what was computed from something secure is looked for.
        let all = super::revealed(&request(inputs.secure())).unwrap();
        let other = Value::from_pairs([("method", Value::from("POST"))]);
        assert_eq!(all.outcome(Ok(other.clone())), Ok(other));
        assert!(super::revealed(&request(Value::Null)).is_none());
    }
}
