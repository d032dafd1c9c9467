//! The sessions of browsers that a server accepts. A session is a random id, when it began, and the Unix user if
//! `windlass ui` began it. It is signed with the token and with a key of this store's own, so that no other server
//! accepts it, though browsers send it to every port of a host. It ends after a while, with its token, and when its browser ends it, also through
//! restarts: the key and the ids of sessions that were ended are stored in a file of the state directory.

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

/// How long a session is good, in seconds: 30 days.
pub(super) const SESSION_AGE: u32 = 30 * 24 * 60 * 60;

/// The file in a state directory.
const FILE: &str = "sessions";

/// With more sessions that were ended than this, all of them end.
const MAX_ENDED: usize = 10_000;

/// What is signed for a session: it is never taken for anything else that a token signs.
const SESSION: &[u8] = b"windlass session";

/// The sessions of one store.
pub(crate) struct Sessions {
    /// Where they are stored.
    path: PathBuf,
    state: Mutex<State>,
}

/// As it is in the file.
#[derive(Clone, Serialize, Deserialize)]
struct State {
    key: [u8; 32],
    /// The sessions that were ended, and until when they would have been good, in milliseconds.
    ended: BTreeMap<String, i64>,
    /// Whether the key is in the file.
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

    /// Adds a session that was ended. Those that nothing accepts any more are forgotten.
    fn end(&mut self, session: &Session, now: Timestamp) -> io::Result<()> {
        self.ended.retain(|_, until| *until > now.0);
        if self.ended.len() >= MAX_ENDED {
            *self = Self::new()?;
        }
        self.ended.insert(session.id(), session.until());
        Ok(())
    }
}

/// A session as a cookie says it.
struct Session {
    id: [u8; 16],
    begun_at: Timestamp,
    signature: [u8; 32],
    /// The Unix user; empty if a token began it.
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

    /// Until when it is good.
    fn until(&self) -> i64 {
        self.begun_at
            .0
            .saturating_add(i64::from(SESSION_AGE) * 1_000)
    }

    /// What its signature is of.
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
    /// Those of the store in a state directory. What cannot be read ends all that were begun.
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

    /// A name that distinguishes the cookie of this store from those of others.
    pub fn name(&self) -> String {
        let digest = digest(&SHA256, &self.lock().key);
        let first = digest.as_ref().iter().take(4);
        first.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key of sessions that no token begins.
    pub fn own_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.lock().key)
    }

    /// A new session, as its cookie says it.
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

    /// The user of a cookie's session, if it is valid and was begun with this token.
    pub fn accepts(&self, cookie: &str, token: &hmac::Key, now: Timestamp) -> Option<String> {
        let session = Session::read(cookie)?;
        let state = self.lock();
        let valid = session.is_made_with(token, &state)
            && now.0 < session.until()
            && !state.ended.contains_key(&session.id());
        drop(state);
        valid.then_some(session.user)
    }

    /// Ends a session: its cookie is refused from then on.
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

    /// Keeps them. Without the file they are good, or ended, as long as the process lives.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_of_one_store_and_ends() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = |token: &str| hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        let (token, other) = (key("token"), key("other"));
        let sessions = Sessions::of(here.path()).unwrap();
        let begun = Timestamp(1_000);
        let [one, two] = [(); 2].map(|()| sessions.begin(&token, "", begun).unwrap());
        let last = Timestamp(begun.0 + i64::from(SESSION_AGE) * 1_000 - 1);
        assert!(sessions.accepts(&one, &token, last).is_some());
        assert!(
            sessions
                .accepts(&one, &token, Timestamp(last.0 + 1))
                .is_none()
        );
        assert!(sessions.accepts(&one, &other, begun).is_none());
        // A later beginning is not what was signed.
        let mut forged = URL_SAFE_NO_PAD.decode(&one).unwrap();
        forged[20] ^= 1;
        assert!(
            sessions
                .accepts(&URL_SAFE_NO_PAD.encode(forged), &token, begun)
                .is_none()
        );
        let elsewhere = Sessions::of(there.path()).unwrap();
        assert!(elsewhere.accepts(&one, &token, begun).is_none());
        assert_ne!(sessions.name(), elsewhere.name());
        sessions.end(&one, &token, begun).unwrap();
        for sessions in [sessions, Sessions::of(here.path()).unwrap()] {
            assert!(sessions.accepts(&one, &token, begun).is_none());
            assert!(sessions.accepts(&two, &token, begun).is_some());
        }
    }
}
