//! What commands print while they run, for those who follow their run. Nothing of it is kept, and no
//! command waits for a reader: a slow one misses lines.

use crate::action::Stream;
use crate::model::Name;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// So many lines may wait for a reader.
const WAITING: usize = 1_024;

/// A line that a command printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The action.
    pub action: Name,
    /// Where it printed it.
    pub stream: Stream,
    /// The line, without its end.
    pub text: String,
}

/// Those who listen, by run.
#[derive(Clone, Default)]
pub struct Printing(Arc<Mutex<HashMap<Name, Vec<mpsc::Sender<Printed>>>>>);

impl Printing {
    /// Listens to a run from now on.
    #[must_use]
    pub fn listen(&self, run: &str) -> mpsc::Receiver<Printed> {
        let (to, from) = mpsc::channel(WAITING);
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have gone from runs that print nothing any more.
        listeners.retain(|_, of| {
            of.retain(|one| !one.is_closed());
            !of.is_empty()
        });
        listeners.entry(Name::from(run)).or_default().push(to);
        from
    }

    /// Tells a line to those who listen.
    pub(super) fn tell(&self, run: &Name, action: &Name, stream: Stream, text: String) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of) = listeners.get_mut(run) else {
            return;
        };
        let printed = Printed {
            action: action.clone(),
            stream,
            text,
        };
        of.retain(|to| {
            use mpsc::error::TrySendError::Closed;
            !matches!(to.try_send(printed.clone()), Err(Closed(_)))
        });
    }
}
