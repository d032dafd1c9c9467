//! The authenticated sender of a command.

use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use utoipa::ToSchema;

/// Cached names of Unix users. They are cached because a directory service may be slow.
static USERS: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());

/// The sender of a command, in audit entries and in the records of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// Name of its token, or of its Unix user; `anonymous` on a server without tokens.
    pub name: String,
    /// IP address of the sender, `control socket`, or `command line` for a command that opened the store itself.
    pub from: String,
}

impl Actor {
    /// Makes the actor of a client without a token.
    #[must_use]
    pub fn anonymous(from: impl Into<String>) -> Self {
        Self {
            name: String::from("anonymous"),
            from: from.into(),
        }
    }

    /// Makes the actor of a Unix user's process on this machine.
    #[must_use]
    pub fn unix(uid: u32, from: impl Into<String>) -> Self {
        Self {
            name: user_name(uid),
            from: from.into(),
        }
    }

    /// Makes the actor of this process's user.
    #[must_use]
    pub fn command_line() -> Self {
        Self::unix(Uid::effective().as_raw(), "command line")
    }
}

/// Returns a user's name, or its number if it has no name.
fn user_name(uid: u32) -> String {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = users.get(&uid) {
        return name.clone();
    }
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let name = found.map_or_else(|| format!("uid {uid}"), |user| user.name);
    users.insert(uid, name.clone());
    name
}
