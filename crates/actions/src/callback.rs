//! Callbacks: addresses (`callbackUrl`) to which a request without a token sends a signal to a run. Each address is
//! signed with a key in the state directory. So it is still valid after a restart, and only this server can make a
//! valid one.

use super::private_file::replace_private_file;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use windlass_model::model::{CallbackClaim, sha256_of_parts};

/// The file with the key, in a state directory.
const FILE: &str = "callbacks.key";

/// The prefix of an address's path, after the address of the server.
pub const CALLBACK_PATH: &str = "/v1/callbacks";

/// Escapes all characters except those that a segment of a path may have.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Makes and checks the addresses of one state directory. Clones share their state.
#[derive(Clone, Default)]
pub struct Callbacks(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The state directory. Without a state directory, no address can be made.
    directory: Option<PathBuf>,
    key: Mutex<Option<hmac::Key>>,
    /// The address of the server.
    server: OnceLock<String>,
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callbacks({:?})", self.0.server.get())
    }
}

impl Callbacks {
    /// Makes the addresses of a state directory.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self(Arc::new(Shared {
            directory: Some(directory.to_owned()),
            ..Shared::default()
        }))
    }

    /// Sets the address at which others reach the server, such as `https://loops.example.com`. Only the first call has
    /// an effect.
    pub fn set_server(&self, address: &str) {
        let address = address.trim_end_matches('/').to_owned();
        let _ = self.0.server.set(address);
    }

    /// Returns true if this process can make addresses.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.0.server.get().is_some()
    }

    /// Returns the address that sends a signal to a run.
    ///
    /// # Errors
    /// Returns the reason, as text for users, if this process cannot make an address.
    pub fn address(&self, run: &str, signal: &str, claim: CallbackClaim) -> Result<String, String> {
        let Some(server) = self.0.server.get() else {
            return Err(String::from(
                "`callbackUrl` needs the address of a server: start the run on `windlass serve`, and pass \
                 --public-url if it listens on every interface or others reach it under another address",
            ));
        };
        let key = self.key().map_err(|error| format!("{FILE}: {error}"))?;
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, &signed(run, signal, claim)));
        Ok(format!(
            "{server}{CALLBACK_PATH}/{}/{}?received={}&expires={}&signature={signature}",
            utf8_percent_encode(run, PATH),
            utf8_percent_encode(signal, PATH),
            claim.received,
            claim.expires_at.0,
        ))
    }

    /// Returns true if the signature of an address was made with the key of this state directory.
    #[must_use]
    pub fn is_signed(
        &self,
        run: &str,
        signal: &str,
        claim: CallbackClaim,
        signature: &str,
    ) -> bool {
        let (Ok(key), Ok(signature)) = (self.key(), URL_SAFE_NO_PAD.decode(signature)) else {
            return false;
        };
        hmac::verify(&key, &signed(run, signal, claim), &signature).is_ok()
    }

    /// Returns the key. The lock is held while the key is made, so that concurrent callers make only one key.
    fn key(&self) -> io::Result<hmac::Key> {
        let mut known = self.0.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = &*known {
            return Ok(key.clone());
        }
        let Some(directory) = &self.0.directory else {
            return Err(io::Error::other("the store has no state directory"));
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &stored_key(directory)?);
        Ok(known.insert(key).clone())
    }
}

fn signed(run: &str, signal: &str, claim: CallbackClaim) -> [u8; 32] {
    let claim = claim.to_string();
    let parts = ["windlass callback", run, signal, &claim];
    sha256_of_parts(&parts.map(str::as_bytes))
}

/// Reads the key of a state directory. The first call makes the key.
fn stored_key(directory: &Path) -> io::Result<[u8; 32]> {
    let path = directory.join(FILE);
    match fs::read(&path) {
        Ok(bytes) => {
            let key = <[u8; 32]>::try_from(bytes.as_slice());
            return key.map_err(|_| {
                io::Error::other(
                    "the file is damaged; remove it, and every address becomes invalid",
                )
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut key = [0; 32];
    let random = SystemRandom::new().fill(&mut key);
    random.map_err(|_| io::Error::other("the system has no random numbers"))?;
    replace_private_file(&path, &key)?;
    Ok(key)
}
