//! Secure inputs of an action. The executor gets the plain values, and this module searches the result for their texts.
//! A fault never contains the text of a secure value, and an output that contains one becomes secure. The plain values
//! are never stored.

use super::mask::Mask;
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use std::sync::Arc;
use url::Url;
use windlass_expression::{Secure, Value};
use windlass_model::model::{Fault, Request};

/// Minimum length in bytes of a secure text that is masked in faults. Shorter texts occur by chance in many messages.
const SHORTEST: usize = 4;

/// Minimum length in bytes of a text that makes an output secure. Shorter texts, such as `POST` or `json`, often occur
/// by chance.
const SHORTEST_ECHO: usize = 8;

/// Maximum number of texts to search for. If an action has more, the details of its faults are removed.
const MAX_TEXTS: usize = 256;

/// A request with the plain values of its secure inputs, and the texts to search for in its result.
pub(super) struct RevealedRequest {
    pub request: Request,
    pub mask: Arc<Mask>,
    echoed: Mask,
}

/// Reveals a request. Returns `None` if it has no secure input.
pub(super) fn revealed(request: &Request) -> Option<RevealedRequest> {
    if !request.inputs.has_secure() {
        return None;
    }
    let (mut hidden, mut echoed) = (BTreeSet::new(), BTreeSet::new());
    collect(&request.inputs, false, &mut |text| {
        hidden.extend(secret_candidates(text, SHORTEST));
    });
    // If an author makes all inputs of an action secure, the inputs include constants, which results often repeat. Then
    // only values that were already secure within the inputs make an output secure.
    let inside = match &request.inputs {
        Value::Secure(secure) => match &**secure {
            Secure::Open(value) => value,
            Secure::Sealed(_) => &request.inputs,
        },
        value => value,
    };
    collect(inside, false, &mut |text| {
        echoed.extend(secret_candidates(text, SHORTEST_ECHO));
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
    /// Returns the result in a form that may be stored: faults are masked, and outputs with secure texts become secure.
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

/// Reports the texts of the secure values in a value. The text of a number is its digits.
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

/// Returns a text and the words in it. The words are searched for, too, because the text may be computed from a secure
/// value and other text (`Bearer …`, `?token=…`). The host of a URL is not included, because it is assumed to be the
/// author's text.
fn secret_candidates(text: &str, shortest: usize) -> impl Iterator<Item = String> + '_ {
    let host = Url::parse(text.trim()).ok();
    let host = host.and_then(|url| url.host_str().map(str::to_owned));
    let words = text.split(|c: char| c.is_whitespace() || "\"',;&".contains(c));
    let pieces = text.split(|c: char| c.is_whitespace() || "\"',;&=?#/:@|<>(){}[]".contains(c));
    let pieces = pieces.filter(move |piece| host.as_deref() != Some(*piece));
    // Only words that are long enough are searched for. Shorter ones are probably the author's text.
    let within = words
        .chain(pieces)
        .filter(|word| word.len() >= SHORTEST_ECHO);
    let within = within.flat_map(|word| [word.to_owned(), decoded(word)]);
    std::iter::once(text.trim().to_owned())
        .filter(move |whole| whole.len() >= shortest)
        .chain(within)
}

/// Percent-decodes a word of a URL, because the server may return it in this form.
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
        // The secure text is in a URL: as a part of the query, and percent-encoded.
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
        // If all inputs are secure, only texts that were computed from secure values are searched for.
        let all = super::revealed(&request(inputs.secure())).unwrap();
        let other = Value::from_pairs([("method", Value::from("POST"))]);
        assert_eq!(all.outcome(Ok(other.clone())), Ok(other));
        assert!(super::revealed(&request(Value::Null)).is_none());
    }
}
