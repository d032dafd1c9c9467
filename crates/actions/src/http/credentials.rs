//! The authentication of a call (docs/reference/actions.md): a fixed header, a token that is fetched, or a signature
//! over the call.

use super::fault::shown;
use super::signature::Signer;
use super::tokens::TokenRequest;
use crate::inputs::{Inputs, invalid, mismatch};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use windlass_expression::Value;
use windlass_model::model::{Fault, fault_kind};

/// The server for Microsoft's tokens, if `authority` does not name another one (Logic Apps reference).
const MICROSOFT: &str = "https://login.microsoftonline.com/";

/// The types of `authentication`, for messages.
const TYPES: &str = "Basic, Bearer, Raw, OAuth2, ActiveDirectoryOAuth or AwsSigV4";

pub(super) enum Credentials {
    None,
    Header(HeaderValue),
    Token(TokenRequest),
    Signature(Signer),
}

impl Credentials {
    /// Reads `{type: Basic | Bearer | …}`. The case of the type is ignored, as in Logic Apps.
    pub(super) fn of(inputs: Inputs<'_>) -> Result<Self, Fault> {
        let Some(given) = inputs.get("authentication") else {
            return Ok(Self::None);
        };
        let given = Keys(Inputs::from_value("authentication", given)?);
        let kind = given.need("type")?;
        match kind.to_lowercase().as_str() {
            "none" => Ok(Self::None),
            "basic" => {
                let pair = format!("{}:{}", given.need("username")?, given.need("password")?);
                header(&format!("Basic {}", BASE64.encode(pair))).map(Self::Header)
            }
            "bearer" => {
                let token = given.need("token").or_else(|_| given.need("value"))?;
                bearer(token).map(Self::Header)
            }
            "raw" => header(given.need("value")?).map(Self::Header),
            "oauth2" => oauth2(given).map(Self::Token),
            "activedirectoryoauth" => active_directory(given).map(Self::Token),
            "awssigv4" => Ok(Self::Signature(Signer {
                key_id: given.need("accessKeyId")?.to_owned(),
                secret: given.need("secretAccessKey")?.to_owned(),
                session: given.text("sessionToken")?.map(str::to_owned),
                region: given.need("region")?.to_owned(),
                service: given.need("service")?.to_owned(),
            })),
            _ => Err(invalid(format!(
                "`authentication.type` must be {TYPES}, not {kind:?}"
            ))),
        }
    }

    /// Adds the credentials to a call. If the call needs a token, returns the request for the token instead.
    /// `body_digest` is the SHA-256 of a body that is a file: a signature covers it.
    pub(super) fn put_on(
        &self,
        call: &mut reqwest::Request,
        body_digest: Option<String>,
    ) -> Result<Option<&TokenRequest>, Fault> {
        match self {
            Self::None => {}
            Self::Token(request) => return Ok(Some(request)),
            Self::Signature(signer) => signer.sign(call, body_digest)?,
            Self::Header(value) => {
                call.headers_mut().insert(AUTHORIZATION, value.clone());
            }
        }
        Ok(None)
    }
}

/// Builds a token request with client credentials (RFC 6749, 4.4).
fn oauth2(given: Keys<'_>) -> Result<TokenRequest, Fault> {
    let (id, secret) = (given.need("clientId")?, given.need("clientSecret")?);
    let mut form = vec![("grant_type", "client_credentials")];
    for key in ["scope", "audience", "resource"] {
        if let Some(value) = given.text(key)? {
            form.push((key, value));
        }
    }
    let sent_in = given.text("clientAuthentication")?.unwrap_or("header");
    let basic = match sent_in {
        "header" => Some((id, secret)),
        "body" => {
            form.extend([("client_id", id), ("client_secret", secret)]);
            None
        }
        other => {
            return Err(invalid(format!(
                "`authentication.clientAuthentication` must be header or body, not {other:?}"
            )));
        }
    };
    Ok(TokenRequest::new(
        token_url(given.need("tokenUrl")?)?,
        &form,
        basic,
    ))
}

/// Builds a token request with a secret (Logic Apps reference, "Microsoft Entra ID OAuth authentication").
fn active_directory(given: Keys<'_>) -> Result<TokenRequest, Fault> {
    let authority = given.text("authority")?.unwrap_or(MICROSOFT);
    let tenant = given.need("tenant")?;
    let url = format!("{}/{tenant}/oauth2/token", authority.trim_end_matches('/'));
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", given.need("clientId")?),
        ("client_secret", given.need("secret")?),
        ("resource", given.need("audience")?),
    ];
    Ok(TokenRequest::new(token_url(&url)?, &form, None))
}

fn token_url(text: &str) -> Result<Url, Fault> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| invalid("the address of the token is not a valid http:// or https:// URL"))
}

pub(super) fn bearer(token: &str) -> Result<HeaderValue, Fault> {
    header(&format!("Bearer {token}"))
}

fn header(text: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| invalid("`authentication` has characters that no header can have"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Makes the fault of a call whose token request failed. The fault has only the words of the error from the token
/// server's answer.
pub(super) fn no_token(url: &Url, fault: Fault) -> Fault {
    let words = fault.output.as_ref().and_then(|output| {
        let body = output.get("body")?;
        let word = body.get("error")?.as_str()?;
        let more = body.get("error_description").and_then(Value::as_str);
        Some(match more {
            Some(more) => format!("{word}: {more}"),
            None => word.to_owned(),
        })
    });
    let message = match (words, &fault.code) {
        (Some(words), Some(code)) => format!("{} answered {code}: {words}", shown(url)),
        _ => fault.message.clone(),
    };
    Fault {
        message: format!("no token for the call: {message}"),
        output: None,
        ..fault
    }
}

pub(super) fn unusable(url: &Url, what: &str) -> Fault {
    let message = format!("no token for the call: the answer of {} {what}", shown(url));
    Fault::new(fault_kind::HTTP, message)
}

/// The keys of `authentication`.
#[derive(Clone, Copy)]
struct Keys<'a>(Inputs<'a>);

impl<'a> Keys<'a> {
    fn text(self, key: &str) -> Result<Option<&'a str>, Fault> {
        let text = |value: &'a Value| {
            let text = value.as_str();
            text.ok_or_else(|| mismatch(&format!("authentication.{key}"), "a string", value))
        };
        self.0.get(key).map(text).transpose()
    }

    fn need(self, key: &str) -> Result<&'a str, Fault> {
        let missing = || invalid(format!("`authentication.{key}` is missing"));
        self.text(key)?.ok_or_else(missing)
    }
}
