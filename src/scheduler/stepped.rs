//! A scheduler without a thread and without a clock: whoever has it says what time it is and when
//! it takes its next round. It is the same driver, so a simulation on virtual time proves what
//! runs in production; dropping it between two calls is what a crash is. It never waits.

use super::clock::Clock;
use super::driver::Driver;
use super::gates::{Gates, Limits};
use super::metrics::Metrics;
use super::tasks::Workshop;
use super::{Loader, Message, Reply, ScheduleError, Start};
use crate::machine::{Event, RunStatus};
use crate::model::Name;
use crate::store::Store;
use crate::time::Timestamp;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A scheduler that is moved by hand.
pub struct Stepped {
    driver: Driver,
    messages: Sender<Message>,
}

/// What becomes of something that was asked; there once the round that did it is over.
pub type Answer<T> = oneshot::Receiver<Result<T, ScheduleError>>;

impl Stepped {
    /// A scheduler of a store, on a clock of the caller's. Its tasks run on `tasks`.
    pub fn new(
        store: Arc<dyn Store>,
        loader: Arc<dyn Loader>,
        tasks: Handle,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let (messages, inbox) = std::sync::mpsc::channel();
        let clock = Clock::of(clock);
        let limits = Limits::default();
        let workshop = Workshop {
            handle: tasks,
            gates: Gates::new(limits),
            metrics: Metrics::default(),
            messages: messages.clone(),
        };
        let driver = Driver::new(store, loader, workshop, inbox, limits, false);
        Self {
            driver: driver.on(clock),
            messages,
        }
    }

    /// One round: takes what has come, fires what is due, advances, commits, and does what the
    /// steps ask for.
    pub fn round(&mut self) {
        self.driver.round(false);
    }

    /// Whether the next round has something to do without a message or a timer.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.driver.is_busy()
    }

    /// When a timer fires, or a run that left memory comes back.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.driver.due_at()
    }

    /// Asks for a start.
    #[must_use]
    pub fn start(&self, start: Start) -> Answer<()> {
        self.ask(|reply| Message::Start(Box::new(start), reply))
    }

    /// Asks to go on with what a crash left.
    #[must_use]
    pub fn recover(&self) -> Answer<Vec<Name>> {
        self.ask(|reply| Message::Recover(false, reply))
    }

    /// Delivers an event.
    #[must_use]
    pub fn deliver(&self, run: &str, event: Event) -> Answer<RunStatus> {
        self.ask(|reply| Message::Deliver(Name::from(run), event, reply))
    }

    fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        // The receiver is the driver beside it.
        let _ = self.messages.send(message(reply));
        answer
    }
}
