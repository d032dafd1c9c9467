//! OAuth 2.0 tokens (RFC 6749). If several calls need the same token, it is fetched once. It is cached only in memory,
//! until shortly before it expires. A token may be requested before the step of its call is durable, because no run
//! stores tokens.

use super::client::Client;
use super::credentials::{no_token, unusable};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::form_urlencoded::{Serializer, byte_serialize};
use windlass_expression::Value;
use windlass_model::model::Fault;

/// The assumed lifetime of a token whose server does not name one.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// A token is fetched again this long before the end of its lifetime, or a tenth of its lifetime before, if that is
/// shorter.
const MARGIN: Duration = Duration::from_secs(60);

/// Maximum number of cached tokens. If there are more, all of them are dropped.
const MAX_CACHED: usize = 1_000;

/// A request for a token: the server's address, the form, and the client's Basic authentication.
pub(super) struct TokenRequest {
    url: Url,
    form: String,
    basic: Option<HeaderValue>,
}

impl TokenRequest {
    pub(super) fn new(url: Url, form: &[(&str, &str)], basic: Option<(&str, &str)>) -> Self {
        // The id and the secret are encoded as in a form before they are joined (RFC 6749, 2.3.1).
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let basic = basic.and_then(|(id, secret)| {
            let pair = BASE64.encode(format!("{}:{}", encoded(id), encoded(secret)));
            HeaderValue::from_str(&format!("Basic {pair}")).ok()
        });
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        Self { url, form, basic }
    }

    /// Returns a digest that identifies the requested token. It does not reveal a secret.
    fn key(&self) -> [u8; 32] {
        let basic = self.basic.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
        let whole = [self.url.as_str().as_bytes(), self.form.as_bytes(), basic].join(&b'\n');
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, &whole).as_ref());
        key
    }

    fn call(&self) -> reqwest::Request {
        let mut call = reqwest::Request::new(Method::POST, self.url.clone());
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        call.headers_mut().insert(CONTENT_TYPE, form);
        let json = HeaderValue::from_static("application/json");
        call.headers_mut().insert(ACCEPT, json);
        if let Some(basic) = &self.basic {
            call.headers_mut().insert(AUTHORIZATION, basic.clone());
        }
        *call.body_mut() = Some(self.form.clone().into());
        call
    }
}

struct CachedToken {
    token: String,
    until: Instant,
}

/// The cached token of one request. The task that holds the lock fetches the token. Other tasks wait for the lock, and
/// then use the cached token.
type TokenSlot = Arc<tokio::sync::Mutex<Option<CachedToken>>>;

#[derive(Default)]
pub(super) struct Tokens {
    places: Mutex<BTreeMap<[u8; 32], TokenSlot>>,
}

impl Tokens {
    /// Returns the requested token, from the cache or from the server. If the cached token is `refused`, fetches a new
    /// one.
    pub(super) async fn get(
        &self,
        client: &Client,
        request: &TokenRequest,
        refused: Option<&str>,
    ) -> Result<String, Fault> {
        let place = self.place(request.key());
        let mut place = place.lock().await;
        if let Some(cached) = &*place
            && cached.until > Instant::now()
            && refused != Some(&*cached.token)
        {
            return Ok(cached.token.clone());
        }
        *place = None;
        let reply = client.call(request.call()).await;
        let reply = reply.map_err(|fault| no_token(&request.url, fault))?;
        let Some(token) = reply.body.get("access_token").and_then(Value::as_str) else {
            return Err(unusable(&request.url, "has no `access_token`"));
        };
        let kind = reply.body.get("token_type").and_then(Value::as_str);
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(unusable(
                &request.url,
                "is not a valid token of type Bearer",
            ));
        }
        let life = reply.body.get("expires_in").and_then(seconds);
        let life = life.unwrap_or(DEFAULT_LIFETIME);
        let life = life.saturating_sub(MARGIN.min(life / 10));
        let token = token.to_owned();
        *place = Some(CachedToken {
            token: token.clone(),
            until: Instant::now() + life.min(Duration::from_secs(24 * 3600)),
        });
        Ok(token)
    }

    fn place(&self, key: [u8; 32]) -> TokenSlot {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_CACHED && !places.contains_key(&key) {
            places.clear();
        }
        Arc::clone(places.entry(key).or_default())
    }
}

/// Reads a lifetime. Microsoft's server sends it as text, other servers as a number.
fn seconds(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::String(text) => text.as_str().trim().parse().ok()?,
        other => other.to_json().parse::<f64>().ok()?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}
