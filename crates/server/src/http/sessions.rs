//! The sessions of browsers that a server accepts.
//! A session has a random id, its start time, and a Unix user if `windlass ui` began it. It is signed with the token
//! and with a key of the store. So no other server accepts the session, although browsers send its cookie to every
//! port of a host.
//! A session ends after [`SESSION_AGE`], with its token, or when its browser ends it. Sessions survive restarts of
//! the server: the key and the ids of ended sessions are stored in a file of the state directory.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_engine::{Timestamp, replace_private_file};

/// How long a session is valid, in seconds: 30 days.
pub(super) const SESSION_AGE: u32 = 30 * 24 * 60 * 60;

/// The name of the file in the state directory.
const FILE: &str = "sessions";

/// If more sessions than this were ended, all sessions are ended.
const MAX_ENDED: usize = 10_000;

/// Prefix of the signed bytes of a session, so that a signature for another purpose is never valid for a session.
const SESSION: &[u8] = b"windlass session";

/// The sessions of one store.
pub(crate) struct Sessions {
    /// The path of the file that stores the key and the ended sessions.
    path: PathBuf,
    state: Mutex<State>,
}

/// The content of the file.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    key: [u8; 32],
    /// The ids of ended sessions, each with the time until which the session would have been valid, in milliseconds
    /// since 1970.
    ended: BTreeMap<String, i64>,
    /// Whether the file has the current key.
    #[serde(skip)]
    is_stored: bool,
}

impl State {
    fn new() -> io::Result<Self> {
        let mut key = [0; 32];
        fill(&mut key)?;
        Ok(Self {
            key,
            ended: BTreeMap::new(),
            is_stored: false,
        })
    }

    /// Adds an ended session, and removes the entries of sessions that have expired.
    fn end(&mut self, session: &Session, now: Timestamp) -> io::Result<()> {
        self.ended.retain(|_, until| *until > now.0);
        if self.ended.len() >= MAX_ENDED {
            *self = Self::new()?;
        }
        self.ended.insert(session.id(), session.until());
        Ok(())
    }
}

/// A session as the cookie encodes it.
struct Session {
    id: [u8; 16],
    begun_at: Timestamp,
    signature: [u8; 32],
    /// The Unix user. Empty if the session was begun with a token.
    user: String,
}

impl Session {
    fn read(cookie: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (id, rest) = bytes.split_first_chunk()?;
        let (begun_at, rest) = rest.split_first_chunk()?;
        let (signature, user) = rest.split_first_chunk()?;
        Some(Self {
            id: *id,
            begun_at: Timestamp(i64::from_be_bytes(*begun_at)),
            signature: *signature,
            user: String::from_utf8(user.to_vec()).ok()?,
        })
    }

    fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.id)
    }

    /// Returns until when the session is valid, in milliseconds since 1970.
    fn until(&self) -> i64 {
        self.begun_at
            .0
            .saturating_add(i64::from(SESSION_AGE) * 1_000)
    }

    /// Returns the bytes of the session that are signed.
    fn signed(&self, state: &State) -> Vec<u8> {
        let begun_at = self.begun_at.0.to_be_bytes();
        let user = self.user.as_bytes();
        [SESSION, &state.key, &self.id, &begun_at, user].concat()
    }

    fn is_made_with(&self, token: &hmac::Key, state: &State) -> bool {
        hmac::verify(token, &self.signed(state), &self.signature).is_ok()
    }
}

impl Sessions {
    /// Loads the sessions of the store in a state directory.
    /// If the file cannot be read, no earlier session is valid any more.
    pub fn of(state: &Path) -> io::Result<Self> {
        let path = state.join(FILE);
        let found = fs::read(&path).ok();
        let found = found.and_then(|bytes| serde_json::from_slice::<State>(&bytes).ok());
        let state = match found {
            Some(state) => State {
                is_stored: true,
                ..state
            },
            None => State::new()?,
        };
        Ok(Self {
            path,
            state: Mutex::new(state),
        })
    }

    /// Returns a name that distinguishes the cookie of this store from the cookies of other stores.
    pub fn name(&self) -> String {
        let digest = digest(&SHA256, &self.lock().key);
        let first = digest.as_ref().iter().take(4);
        first.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the key for sessions that are begun without a token.
    pub fn own_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.lock().key)
    }

    /// Begins a session. Returns the value of its cookie.
    pub fn begin(&self, token: &hmac::Key, user: &str, now: Timestamp) -> io::Result<String> {
        let mut state = self.lock();
        if !state.is_stored {
            self.store(&mut state);
        }
        let mut session = Session {
            id: [0; 16],
            begun_at: now,
            signature: [0; 32],
            user: user.to_owned(),
        };
        fill(&mut session.id)?;
        let signature = hmac::sign(token, &session.signed(&state));
        let begun_at = now.0.to_be_bytes();
        let all = [
            &session.id,
            begun_at.as_slice(),
            signature.as_ref(),
            user.as_bytes(),
        ]
        .concat();
        Ok(URL_SAFE_NO_PAD.encode(all))
    }

    /// Returns the user of a cookie's session, or `None` if the session is not valid or was begun with another token.
    pub fn accepts(&self, cookie: &str, token: &hmac::Key, now: Timestamp) -> Option<String> {
        let session = Session::read(cookie)?;
        let state = self.lock();
        let valid = session.is_made_with(token, &state)
            && now.0 < session.until()
            && !state.ended.contains_key(&session.id());
        drop(state);
        valid.then_some(session.user)
    }

    /// Ends the session of a cookie. After that, the cookie is refused.
    pub fn end(&self, cookie: &str, token: &hmac::Key, now: Timestamp) -> io::Result<()> {
        if self.accepts(cookie, token, now).is_none() {
            return Ok(());
        }
        let mut state = self.lock();
        if let Some(session) = Session::read(cookie) {
            state.end(&session, now)?;
            self.store(&mut state);
        }
        Ok(())
    }

    /// Stores the key and the ended sessions.
    /// If this fails, they are valid only until the process ends.
    fn store(&self, state: &mut State) {
        let bytes = serde_json::to_vec(state).map_err(io::Error::from);
        match bytes.and_then(|bytes| replace_private_file(&self.path, &bytes)) {
            Ok(()) => state.is_stored = true,
            Err(error) => tracing::warn!(%error, "the sessions of browsers cannot be stored"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))
}
