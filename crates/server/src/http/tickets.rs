//! Tickets, with which a browser begins a session instead of a token.
//! A command of the operator requests a ticket over the control socket, and a browser exchanges the ticket for a
//! session. So the token is in no URL, no history and no list of processes. A ticket is accepted once, within a
//! minute, and not after a restart of the server.

use crate::api::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use windlass_engine::ErrorCode;

/// How long a ticket is valid after its creation.
const GOOD: Duration = Duration::from_secs(60);

/// The tickets that were not used yet. Each has the time when it expires, and the Unix user that requested it.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<String, (Instant, String)>>);

impl Tickets {
    pub fn make(&self, user: String) -> Result<String, Problem> {
        let mut bytes = [0; 32];
        let made = SystemRandom::new().fill(&mut bytes);
        made.map_err(|_| Problem::new(ErrorCode::Internal, "the system has no random numbers"))?;
        let ticket = URL_SAFE_NO_PAD.encode(bytes);
        let now = Instant::now();
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, (until, _)| *until > now);
        tickets.insert(ticket.clone(), (now + GOOD, user));
        Ok(ticket)
    }

    /// Returns the user of a valid ticket, and removes the ticket so that it is not accepted again.
    pub fn take(&self, ticket: &str) -> Option<String> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, user) = tickets.remove(ticket)?;
        (until > Instant::now()).then_some(user)
    }
}
