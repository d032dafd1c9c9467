//! Checks the token, the host name and the origin of requests over TCP. A page of another site must
//! neither reach the server under a name of its own (DNS rebinding) nor make a user's browser send
//! requests (CSRF).

use super::listener::OPEN;
use crate::api::Problem;
use crate::engine::ErrorCode;
use axum::http::{HeaderMap, Uri, header};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Who is let in over TCP.
#[derive(Default)]
pub(in crate::server) struct Settings {
    pub token: Option<String>,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub tls: bool,
}

/// What every request is checked against.
pub(super) struct Guard {
    /// The hash of the token: comparing hashes tells nothing about its length or its beginning.
    token: Option<[u8; 32]>,
    /// Host names besides `localhost` and addresses.
    hosts: Vec<String>,
    /// Other origins whose pages may ask.
    origins: Vec<String>,
    /// `http` or `https`.
    scheme: &'static str,
}

impl Guard {
    pub fn new(settings: Settings) -> Self {
        Self {
            token: settings.token.as_deref().map(digest),
            hosts: settings.hosts,
            origins: settings.origins,
            scheme: if settings.tls { "https" } else { "http" },
        }
    }

    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = self.host(uri, headers)?;
        self.origin(&host, headers)?;
        if OPEN.contains(&uri.path()) {
            return Ok(());
        }
        self.token(headers)
    }

    /// Refuses names that somebody else could point at this machine. Addresses and `localhost` are
    /// safe.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            let detail = "a request names one Host";
            return Err(Problem::new(ErrorCode::BadRequest, detail));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let asked = [Some(host.as_str()), uri.authority().map(|one| one.as_str())];
        for one in asked.into_iter().flatten() {
            if !self.is_known(one) {
                let detail = format!(
                    "`{one}` is no name of this server; --allow-host says which names it has"
                );
                return Err(Problem::new(ErrorCode::Forbidden, detail));
            }
        }
        Ok(host)
    }

    fn is_known(&self, host: &str) -> bool {
        let name = without_port(host);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    /// A browser says which page asks. Other clients send no such header.
    fn origin(&self, host: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let refused = |what: &str| {
            let detail = format!("{what}; --allow-origin says which pages may ask");
            Err(Problem::new(ErrorCode::Forbidden, detail))
        };
        let Some(origin) = headers.get(header::ORIGIN) else {
            return match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
                Some(b"cross-site" | b"same-site") => refused("a page of another site asks"),
                _ => Ok(()),
            };
        };
        let origin = origin.to_str().unwrap_or_default();
        let own = format!("{}://{host}", self.scheme);
        let same = origin.eq_ignore_ascii_case(&own)
            || self
                .origins
                .iter()
                .any(|one| one.eq_ignore_ascii_case(origin));
        if same {
            return Ok(());
        }
        refused(&format!("a page of `{origin}` asks"))
    }

    fn token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let given = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| digest(token.trim()));
        let Some(given) = given else {
            let detail = "send the header `Authorization: Bearer TOKEN`";
            return Err(Problem::new(ErrorCode::Unauthorized, detail));
        };
        if bool::from(given.ct_eq(token)) {
            Ok(())
        } else {
            let detail = "the token is another one";
            Err(Problem::new(ErrorCode::Unauthorized, detail))
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    crate::engine::sha256(token.as_bytes())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
