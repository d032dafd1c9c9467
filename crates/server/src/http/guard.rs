//! Checks the token, the host name and the origin of requests over TCP.
//! Two attacks are prevented. A page of another site must not reach the server under a host name of its own (DNS
//! rebinding). And it must not make a user's browser send requests (CSRF).

use super::listener::OPEN;
use super::roles::Access;
use super::sessions::{SESSION_AGE, Sessions};
use super::token_file::{Token, Tokens};
use super::ui;
use crate::api::Problem;
use axum::http::{HeaderMap, Method, Uri, header};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use windlass_engine::{ErrorCode, now};

/// The access settings for requests over TCP.
#[derive(Default)]
pub(crate) struct Settings {
    pub tokens: Tokens,
    pub console: Console,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub tls: bool,
    /// The URL under which browsers reach the server.
    pub url: Option<String>,
    /// The sessions of browsers. `None` on a server without tokens.
    pub sessions: Option<Sessions>,
}

/// What the console may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Console {
    /// There is no console, only the API.
    #[default]
    Off,
    /// The console only reads, even if its token allows more.
    Read,
    /// The console may do what its token allows.
    Full,
}

/// The rights and the identity that a request is admitted with.
#[derive(Clone)]
pub(super) struct Admitted {
    pub access: Access,
    pub credential: Credential,
}

/// How a caller proved its identity.
#[derive(Clone)]
pub(super) enum Credential {
    /// The caller proved nothing: the server has no tokens, or the request needs none.
    None,
    Token(Arc<Token>),
    /// A Unix user, by the control socket or by a ticket that was created over it.
    User(String),
}

impl Admitted {
    pub fn anonymous(access: Access) -> Self {
        let credential = Credential::None;
        Self { access, credential }
    }

    fn token(token: &Arc<Token>, access: Access) -> Self {
        let credential = Credential::Token(Arc::clone(token));
        Self { access, credential }
    }

    /// Returns the rights of a user of this machine that may do everything.
    pub fn operator(user: String) -> Self {
        Self {
            access: Access::Admin,
            credential: Credential::User(user),
        }
    }

    /// Returns the name of the caller, or `None` if the caller did not prove its identity.
    pub fn name(&self) -> Option<&str> {
        match &self.credential {
            Credential::None => None,
            Credential::Token(token) => Some(&token.name),
            Credential::User(user) => Some(user),
        }
    }
}

/// Checks every request.
pub(super) struct Guard {
    /// The accepted tokens. Without tokens, every client that reaches the server has all rights.
    tokens: RwLock<Tokens>,
    console: Console,
    /// Host names that are accepted in addition to `localhost` and to IP addresses.
    hosts: Vec<String>,
    /// Origins, other than the server's own, whose pages may send requests.
    origins: Vec<String>,
    /// The scheme of the server's own URL: `http` or `https`.
    scheme: &'static str,
    sessions: Option<Sessions>,
}

impl Guard {
    pub fn new(settings: Settings) -> Self {
        Self {
            tokens: RwLock::new(settings.tokens),
            console: settings.console,
            hosts: settings.hosts,
            origins: settings.origins,
            scheme: if settings.tls { "https" } else { "http" },
            sessions: settings.sessions,
        }
    }

    fn tokens(&self) -> RwLockReadGuard<'_, Tokens> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the accepted tokens. A session that was begun with a token becomes invalid if this token is no longer
    /// accepted.
    pub fn replace_tokens(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Returns the caller's rights. Refuses the request if they do not include the access `wanted`.
    pub fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        wanted: Access,
    ) -> Result<Admitted, Problem> {
        let host = self.host(uri, headers)?;
        let console = self.has_console() && ui::is_console_path(uri.path());
        if !(console && opens_shell(method, uri, headers)) {
            self.origin(&host, headers)?;
        }
        // The files of the console contain no data of the store, so they need no token.
        if console || OPEN.contains(&uri.path()) {
            return Ok(Admitted::anonymous(Access::View));
        }
        let admitted = match self.admit(headers) {
            // A request that needs no access, such as the one that begins a session, may have a ticket instead of a
            // token.
            Err(_) if wanted == Access::Nothing => Admitted::anonymous(Access::Nothing),
            admitted => admitted?,
        };
        if admitted.access >= wanted {
            return Ok(admitted);
        }
        let detail = match admitted.credential {
            Credential::Token(ref token) if token.access >= wanted => {
                String::from("the console is read-only (--ui)")
            }
            Credential::Token(ref token) => format!(
                "the token `{}` has the role {}; this needs {}",
                token.name,
                token.access.as_str(),
                wanted.as_str()
            ),
            Credential::None | Credential::User(_) => {
                String::from("the console is read-only (--ui)")
            }
        };
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }

    /// Returns true if the server has a console.
    pub fn has_console(&self) -> bool {
        self.console != Console::Off
    }

    /// Begins a session of a caller, and returns its cookie.
    /// No script can read the cookie, and pages of other sites cannot make a browser send it.
    pub fn cookie(&self, credential: &Credential) -> io::Result<String> {
        let session = match (&self.sessions, credential) {
            (None, _) | (_, Credential::None) => return Ok(self.no_cookie()),
            (Some(sessions), Credential::Token(token)) => sessions.begin(&token.key, "", now())?,
            (Some(sessions), Credential::User(user)) => {
                sessions.begin(&sessions.own_key(), user, now())?
            }
        };
        Ok(self.cookie_of(&session, SESSION_AGE))
    }

    /// Ends the sessions whose cookies are in the request of a browser.
    pub fn end_sessions(&self, headers: &HeaderMap) -> io::Result<()> {
        let Some(sessions) = &self.sessions else {
            return Ok(());
        };
        for session in cookies(headers, &self.cookie_name()) {
            for token in self.tokens().iter() {
                sessions.end(session, &token.key, now())?;
            }
            sessions.end(session, &sessions.own_key(), now())?;
        }
        Ok(())
    }

    /// Returns the cookie that makes a browser remove the cookie of its session.
    pub fn no_cookie(&self) -> String {
        self.cookie_of("", 0)
    }

    fn cookie_of(&self, session: &str, age: u32) -> String {
        let secure = if self.scheme == "https" {
            "; Secure"
        } else {
            ""
        };
        let name = self.cookie_name();
        format!("{name}={session}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
    }

    /// Returns the name of the cookie.
    /// The name differs for each store, because browsers send a cookie to every port of a host. With TLS, the name
    /// has a prefix with which browsers accept the cookie only from this host.
    fn cookie_name(&self) -> String {
        let store = self.sessions.as_ref().map(Sessions::name);
        let store = store.unwrap_or_default();
        match self.scheme {
            "https" => format!("__Host-windlass-{store}"),
            _ => format!("windlass-{store}"),
        }
    }

    /// Refuses host names that an attacker could resolve to this machine.
    /// IP addresses and `localhost` cannot be resolved differently, so they are accepted.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            let detail = "a request names one Host";
            return Err(Problem::new(ErrorCode::BadRequest, detail));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let hosts = [Some(host.as_str()), uri.authority().map(|one| one.as_str())];
        for one in hosts.into_iter().flatten() {
            if !self.is_known(one) {
                let detail =
                    format!("`{one}` is not a host name of this server; --allow-host adds names");
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

    /// Checks the origin of the page that sends a request.
    /// Only browsers send the headers that name it, so a request without these headers is accepted.
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

    fn admit(&self, headers: &HeaderMap) -> Result<Admitted, Problem> {
        let tokens = self.tokens();
        // Browsers send these headers with requests of pages. Without a token, they distinguish the console from
        // other clients.
        let browser =
            headers.contains_key("sec-fetch-site") || headers.contains_key(header::ORIGIN);
        let session = |access: Access| match self.console {
            Console::Read if browser || !tokens.is_empty() => access.min(Access::View),
            _ => access,
        };
        if tokens.is_empty() {
            return Ok(Admitted::anonymous(session(Access::Admin)));
        }
        let refused = |detail: &str| Err(Problem::new(ErrorCode::Unauthorized, detail));
        if let Some(given) = bearer(headers) {
            return match tokens.find(given) {
                Some(token) => Ok(Admitted::token(token, token.access)),
                None => refused("the token is another one"),
            };
        }
        let Some(sessions) = &self.sessions else {
            return refused("send the header `Authorization: Bearer TOKEN`");
        };
        let (name, now) = (self.cookie_name(), now());
        for cookie in cookies(headers, &name) {
            let mut all = tokens.iter();
            if let Some(token) = all.find(|one| sessions.accepts(cookie, &one.key, now).is_some()) {
                return Ok(Admitted::token(token, session(token.access)));
            }
            if let Some(user) = sessions.accepts(cookie, &sessions.own_key(), now) {
                let operator = Admitted::operator(user);
                let access = session(operator.access);
                return Ok(Admitted { access, ..operator });
            }
        }
        refused("send the header `Authorization: Bearer TOKEN`")
    }
}

/// Returns true if a person follows a link to the console, from any page.
/// Only the shell (the document of the console, without data) is admitted in this way. The opened page then sends its
/// own requests.
fn opens_shell(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|given| given == value);
    *method == Method::GET
        && ui::is_shell(uri.path())
        && !headers.contains_key(header::ORIGIN)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the values of all cookies with this name.
fn cookies<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs.filter_map(move |pair| {
        let (own, value) = pair.trim().split_once('=')?;
        (own == name).then_some(value)
    })
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
