//! Checks the token, the host name and the origin of requests over TCP. A page of another site must
//! neither reach the server under a name of its own (DNS rebinding) nor make a user's browser send
//! requests (CSRF).

use super::language;
use super::listener::OPEN;
use super::sessions::{SESSION_AGE, Sessions};
use super::ui;
use crate::api::Problem;
use axum::http::{HeaderMap, Method, Uri, header};
use ring::hmac;
use std::io;
use std::net::IpAddr;
use windlass_engine::{ErrorCode, now};

/// Who is let in over TCP.
#[derive(Default)]
pub(crate) struct Settings {
    pub token: Option<String>,
    pub view_token: Option<String>,
    pub console: Console,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub tls: bool,
    /// Where browsers reach the server.
    pub url: Option<String>,
    /// Their sessions; none without a token.
    pub sessions: Option<Sessions>,
}

/// What the console may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Console {
    /// No console.
    #[default]
    Off,
    /// It shows, whatever its token allows.
    Read,
    /// What its token allows.
    Full,
}

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everything.
    Full,
    /// Looking.
    View,
    /// Nothing but to begin a session with a ticket.
    Nothing,
}

impl Access {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::View => "view",
            Self::Nothing => "nothing",
        }
    }
}

/// A token as it is checked: the digest reveals nothing about its length or its beginning.
struct Token {
    key: hmac::Key,
    name: &'static str,
    access: Access,
}

impl Token {
    fn new(name: &'static str, token: &str, access: Access) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        Self { key, name, access }
    }

    /// Whether this is the token.
    fn is(&self, given: &str) -> bool {
        let given = hmac::Key::new(hmac::HMAC_SHA256, given.as_bytes());
        hmac::verify(&self.key, PROOF, hmac::sign(&given, PROOF).as_ref()).is_ok()
    }
}

/// What is signed to compare two tokens: it is never taken for a session.
const PROOF: &[u8] = b"windlass token";

/// Where a session begins and ends.
const SESSION_PATH: &str = "/v1/session";

/// What every request is checked against.
pub(super) struct Guard {
    /// Without a token, every client that reaches the server may do everything.
    tokens: Vec<Token>,
    console: Console,
    /// Host names besides `localhost` and addresses.
    hosts: Vec<String>,
    /// Other origins whose pages may ask.
    origins: Vec<String>,
    /// `http` or `https`.
    scheme: &'static str,
    sessions: Option<Sessions>,
}

impl Guard {
    pub fn new(settings: Settings) -> Self {
        let full = settings.token.iter();
        let full = full.map(|token| Token::new("admin", token, Access::Full));
        let view = settings.view_token.iter();
        let view = view.map(|token| Token::new("view", token, Access::View));
        Self {
            tokens: full.chain(view).collect(),
            console: settings.console,
            hosts: settings.hosts,
            origins: settings.origins,
            scheme: if settings.tls { "https" } else { "http" },
            sessions: settings.sessions,
        }
    }

    /// What the caller may do, and the name of its token.
    pub fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(Access, Option<&str>), Problem> {
        let host = self.host(uri, headers)?;
        let console = self.has_console() && ui::is_its(uri.path());
        if !(console && opens_shell(method, uri, headers)) {
            self.origin(&host, headers)?;
        }
        // The files of the console hold no data.
        if console || OPEN.contains(&uri.path()) {
            return Ok((Access::View, None));
        }
        if *method == Method::POST && uri.path() == SESSION_PATH {
            // It may bring a ticket.
            return Ok(self.access(headers).unwrap_or((Access::Nothing, None)));
        }
        let (access, name) = self.access(headers)?;
        let looks = match *method {
            Method::GET | Method::HEAD => true,
            Method::POST => language::read_only_routes(uri.path()),
            _ => uri.path() == SESSION_PATH,
        };
        if access == Access::Full || looks {
            return Ok((access, name));
        }
        let detail = "this token or session may only look (--view-token-file, --ui)";
        Err(Problem::new(ErrorCode::Forbidden, detail))
    }

    /// Whether there is a console.
    pub fn has_console(&self) -> bool {
        self.console != Console::Off
    }

    /// The cookie of a new session, which replaces a caller's token. No script of a page can read it, and
    /// no page of another site can send it.
    pub fn cookie(&self, access: Access) -> io::Result<String> {
        let mut tokens = self.tokens.iter();
        let token = tokens.find(|token| token.access == access);
        let (Some(token), Some(sessions)) = (token, &self.sessions) else {
            return Ok(self.no_cookie());
        };
        let session = sessions.begin(&token.key, now())?;
        Ok(self.cookie_of(&session, SESSION_AGE))
    }

    /// Ends the sessions that a browser sends.
    pub fn end_sessions(&self, headers: &HeaderMap) -> io::Result<()> {
        let Some(sessions) = &self.sessions else {
            return Ok(());
        };
        for session in cookies(headers, &self.cookie_name()) {
            for token in &self.tokens {
                sessions.end(session, &token.key, now())?;
            }
        }
        Ok(())
    }

    /// The cookie that takes it away.
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

    /// Each store has its own: browsers send a cookie to every port of a host. With TLS, they take this
    /// name from this host alone.
    fn cookie_name(&self) -> String {
        let store = self.sessions.as_ref().map(Sessions::name);
        let store = store.unwrap_or_default();
        match self.scheme {
            "https" => format!("__Host-windlass-{store}"),
            _ => format!("windlass-{store}"),
        }
    }

    /// Refuses host names that an attacker could point at this machine. Addresses and `localhost` are
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

    fn access(&self, headers: &HeaderMap) -> Result<(Access, Option<&str>), Problem> {
        // Browsers mark what they send for a page. Without a token, these marks distinguish the console
        // from other clients.
        let browser =
            headers.contains_key("sec-fetch-site") || headers.contains_key(header::ORIGIN);
        let session = |access| match self.console {
            Console::Read if browser || !self.tokens.is_empty() => Access::View,
            _ => access,
        };
        if self.tokens.is_empty() {
            return Ok((session(Access::Full), None));
        }
        let refused = |detail: &str| Err(Problem::new(ErrorCode::Unauthorized, detail));
        if let Some(given) = bearer(headers) {
            let mut tokens = self.tokens.iter();
            return match tokens.find(|token| token.is(given)) {
                Some(token) => Ok((token.access, Some(token.name))),
                None => refused("the token is another one"),
            };
        }
        let name = self.cookie_name();
        let now = now();
        let accepted = |session: &str, token: &Token| {
            let sessions = self.sessions.as_ref();
            sessions.is_some_and(|sessions| sessions.accepts(session, &token.key, now))
        };
        let known = |session: &str| self.tokens.iter().find(|token| accepted(session, token));
        match cookies(headers, &name).filter_map(known).next() {
            Some(token) => Ok((session(token.access), Some(token.name))),
            None => refused("send the header `Authorization: Bearer TOKEN`"),
        }
    }
}

/// Whether a person follows a link to the console, on any page. The page that opens then sends its
/// own requests, and only the shell is admitted in this way.
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

/// What the cookies of this name hold.
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
