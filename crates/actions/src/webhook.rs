//! The signatures of webhooks. They show whether the sender of a request knows the secret, and identify the delivery,
//! so that a repeated delivery is recognised.

use super::SecretSources;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use windlass_model::model::{WebhookSignature, sha256};
use windlass_value::hex;
use windlass_value::time::Timestamp;

/// Maximum age in seconds of a signature, as Stripe and Standard Webhooks recommend. It is also the maximum by which
/// the time of a signature may be in the future.
const TOLERANCE: i64 = 300;

/// The prefix of a secret of Standard Webhooks. The secret in Base64 follows.
const STANDARD_PREFIX: &str = "whsec_";

impl SecretSources {
    /// Reads a secret by its name for an unauthenticated request. For such requests, the secret command runs only once
    /// at a time.
    ///
    /// # Errors
    /// Returns the reason if the secret cannot be read.
    pub async fn read(&self, name: &str) -> Result<Option<String>, String> {
        self.run_command_limited(name).await?;
        self.get(name)
    }
}

/// Returns the name of the header with the signature, in lower case.
#[must_use]
pub fn signature_header(signature: WebhookSignature) -> &'static str {
    match signature {
        WebhookSignature::Github => "x-hub-signature-256",
        WebhookSignature::Stripe => "stripe-signature",
        WebhookSignature::Standard => "webhook-signature",
    }
}

/// Checks the signature of a request. The result identifies the delivery: a repeated delivery has the same result.
///
/// # Errors
/// Returns what is wrong with the signature, as text for the sender.
pub fn check_webhook<'h>(
    signature: WebhookSignature,
    secret: &str,
    header: impl Fn(&str) -> Option<&'h str>,
    body: &[u8],
    now: Timestamp,
) -> Result<String, String> {
    let needed = |name: &str| header(name).ok_or_else(|| format!("the header `{name}` is missing"));
    match signature {
        WebhookSignature::Github => {
            let given = needed(signature_header(signature))?;
            let given = given.strip_prefix("sha256=").and_then(unhex);
            verify(secret.as_bytes(), &[body], given.into_iter())?;
            let delivery = header("x-github-delivery").map(str::to_owned);
            Ok(delivery.unwrap_or_else(|| digest(body)))
        }
        WebhookSignature::Stripe => {
            let parts = needed(signature_header(signature))?;
            let parts = parts
                .split(',')
                .filter_map(|part| part.trim().split_once('='));
            let parts: Vec<(&str, &str)> = parts.collect();
            let mut times = parts.iter().filter(|(key, _)| *key == "t");
            let time = times.next().map_or("", |(_, time)| *time);
            check_time(time, now)?;
            let given = parts.iter().filter(|(key, _)| *key == "v1");
            let given = given.filter_map(|(_, signature)| unhex(signature));
            verify(secret.as_bytes(), &[time.as_bytes(), b".", body], given)?;
            let event: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            let id = event
                .get("id")
                .and_then(|id| id.as_str())
                .map(str::to_owned);
            Ok(id.unwrap_or_else(|| digest(body)))
        }
        WebhookSignature::Standard => {
            let (id, time) = (needed("webhook-id")?, needed("webhook-timestamp")?);
            check_time(time, now)?;
            let key = secret
                .strip_prefix(STANDARD_PREFIX)
                .and_then(|key| STANDARD.decode(key).ok())
                .filter(|key| !key.is_empty());
            let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
            let given = needed(signature_header(signature))?.split_ascii_whitespace();
            let given = given.filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
            let parts = [id.as_bytes(), b".", time.as_bytes(), b".", body];
            verify(&key, &parts, given)?;
            Ok(id.to_owned())
        }
    }
}

/// Returns an error unless one of the signatures is the HMAC of the parts.
fn verify(
    key: &[u8],
    parts: &[&[u8]],
    mut given: impl Iterator<Item = Vec<u8>>,
) -> Result<(), String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let signed = parts.concat();
    match given.any(|signature| hmac::verify(&key, &signed, &signature).is_ok()) {
        true => Ok(()),
        false => Err(String::from("the signature is wrong")),
    }
}

fn check_time(seconds: &str, now: Timestamp) -> Result<(), String> {
    let then: i64 = seconds
        .parse()
        .map_err(|_| String::from("the signature has no time"))?;
    match (now.0 / 1_000).abs_diff(then) <= TOLERANCE.unsigned_abs() {
        true => Ok(()),
        false => Err(format!("the signature is from another time: {then}")),
    }
}

fn digest(body: &[u8]) -> String {
    hex(&sha256(body))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    bytes
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"Hello, World!";

    fn check(
        signature: WebhookSignature,
        secret: &str,
        headers: &[(&str, &'static str)],
        body: &[u8],
        now: i64,
    ) -> Result<String, String> {
        let header = |name: &str| {
            headers
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        check_webhook(signature, secret, header, body, Timestamp(now * 1_000))
    }

    /// The example of GitHub's documentation.
    #[test]
    fn github() {
        let secret = "It's a Secret to Everybody";
        let given = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let headers = [("x-hub-signature-256", given), ("x-github-delivery", "d1")];
        let good = |body| check(WebhookSignature::Github, secret, &headers, body, 0);
        assert_eq!(good(BODY).as_deref(), Ok("d1"));
        assert!(good(b"Hello, World?").is_err());
        assert!(check(WebhookSignature::Github, "another", &headers, BODY, 0).is_err());
        assert!(check(WebhookSignature::Github, secret, &[], BODY, 0).is_err());
        let odd = [("x-hub-signature-256", "sha256=7")];
        assert!(check(WebhookSignature::Github, secret, &odd, BODY, 0).is_err());
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn standard() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            (
                "webhook-signature",
                "v1,xx v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
        ];
        let at = |now| check(WebhookSignature::Standard, secret, &headers, body, now);
        assert_eq!(
            at(1_614_265_400).as_deref(),
            Ok("msg_p5jXN8AQM9LWM0D4loKWxJek")
        );
        assert!(at(1_614_265_631).is_err());
    }

    #[test]
    fn stripe() {
        let body = br#"{"id": "evt_1"}"#;
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"whsec_x");
        let signed = hmac::sign(&key, &[b"100.", &body[..]].concat());
        let given: &'static str =
            Box::leak(format!("t=100,v0=00,v1={}", hex(signed.as_ref())).into_boxed_str());
        let headers = [("stripe-signature", given)];
        let at = |now| check(WebhookSignature::Stripe, "whsec_x", &headers, body, now);
        assert_eq!(at(200).as_deref(), Ok("evt_1"));
        assert!(at(401).is_err());
    }
}
