//! The driver without a thread and a clock, for simulations. The caller passes the time and starts each round.
//! Production uses the same driver, with a thread and a clock. Dropping a [`ManualDriver`] between two calls simulates
//! a crash.

use super::clock::Clock;
use super::driver::Driver;
use super::effects::EffectRuntime;
use super::limiter::Limits;
use super::rates::Rates;
use super::{Loader, Message, Reply, ScheduleError, Start};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use windlass_machine::{Event, RunStatus};
use windlass_model::model::Name;
use windlass_store::Store;
use windlass_value::time::Timestamp;

/// A scheduler whose rounds the caller starts.
pub struct ManualDriver {
    driver: Driver,
    messages: UnboundedSender<Message>,
}

/// Receives the reply to a command. The reply is available after the round that carries out the command.
pub type ReplyReceiver<T> = oneshot::Receiver<Result<T, ScheduleError>>;

impl ManualDriver {
    /// Makes a scheduler on a store, with the caller's clock. Its effects run on `tasks`.
    pub fn new(
        store: Arc<dyn Store>,
        loader: Arc<dyn Loader>,
        tasks: Handle,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let (messages, inbox) = unbounded_channel();
        let clock = Clock::of(clock);
        let limits = Limits::default();
        let runtime = EffectRuntime::new(tasks, limits, Rates::default(), messages.clone());
        let driver = Driver::new(store, loader, runtime, inbox, limits, false);
        Self {
            driver: driver.with_clock(clock),
            messages,
        }
    }

    /// Does one round: reads messages, fires timers, advances, commits, and releases effects.
    pub fn round(&mut self) {
        self.driver.round();
    }

    /// Returns whether the next round has steps to commit, even if no message arrives and no timer fires.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.driver.is_busy()
    }

    /// Returns when the driver has to act next, such as when a timer fires or a run is loaded again.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.driver.due_at()
    }

    /// Requests the start of a run.
    #[must_use]
    pub fn start(&self, start: Start) -> ReplyReceiver<()> {
        self.ask(|reply| Message::Start(Box::new(start), reply))
    }

    /// Requests the recovery of the runs that a crash left.
    #[must_use]
    pub fn recover(&self) -> ReplyReceiver<Vec<Name>> {
        self.ask(|reply| Message::Recover(false, reply))
    }

    #[must_use]
    pub fn deliver(&self, run: &str, event: Event) -> ReplyReceiver<RunStatus> {
        self.ask(|reply| Message::Deliver(Name::from(run), event, reply))
    }

    fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> ReplyReceiver<T> {
        let (reply, answer) = oneshot::channel();
        // This cannot fail: the driver has the receiver and lives as long as `self`.
        let _ = self.messages.send(message(reply));
        answer
    }
}
