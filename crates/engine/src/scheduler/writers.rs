//! The threads that make batches of steps durable, while the driver advances the next ones. The threads start with the
//! first batch.

use super::Message;
use super::commits::{Batch, Outcomes};
use super::metrics::Metrics;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::mpsc::UnboundedSender;
use windlass_store::Store;

/// Number of batches that are written at a time. Two are useful: the database accepts one while the disk syncs another.
pub(super) const WRITERS: usize = 2;
/// Maximum number of batches in flight: those that are being written, and one that waits. Large batches do not count.
pub(super) const MAX_IN_FLIGHT: usize = WRITERS + 1;

/// A batch that a thread has written, with its outcome or with the panic of the store.
pub(super) type WrittenBatch = (Batch, Result<Outcomes, Box<dyn Any + Send>>);

/// The threads, and the batches that they write.
#[derive(Default)]
pub(super) struct Writers {
    usual: Lane,
    /// A single thread for the large batches, so that the usual batches do not wait for them.
    large: Lane,
}

/// Threads that share a queue of batches.
#[derive(Default)]
struct Lane {
    threads: Option<Threads>,
    in_flight: usize,
}

struct Threads {
    /// The sender of the queue. It is dropped first, because that ends the threads.
    batches: Option<Sender<Batch>>,
    written: Receiver<WrittenBatch>,
    handles: Vec<JoinHandle<()>>,
}

impl Writers {
    /// Returns the number of batches in flight, without the large ones.
    pub fn in_flight(&self) -> usize {
        self.usual.in_flight
    }

    /// Returns whether no batch is in flight.
    pub fn are_idle(&self) -> bool {
        self.usual.in_flight + self.large.in_flight == 0
    }

    /// Hands a batch to a thread. [`Message::Written`] reports when a batch is done.
    ///
    /// # Errors
    /// Returns the batch, and the reason, if no thread accepts it.
    pub fn write(
        &mut self,
        batch: Batch,
        store: &Arc<dyn Store>,
        metrics: &Metrics,
        messages: &UnboundedSender<Message>,
    ) -> Result<(), (Batch, io::Error)> {
        match batch.is_large() {
            true => self.large.write(batch, 1, store, metrics, messages),
            false => self.usual.write(batch, WRITERS, store, metrics, messages),
        }
    }

    /// Returns a batch that was written, if there is one.
    pub fn try_recv_batch(&mut self) -> Option<WrittenBatch> {
        let usual = self.usual.try_recv_batch();
        usual.or_else(|| self.large.try_recv_batch())
    }

    /// Waits until a batch is written. Returns `None` if none is in flight.
    pub fn recv_batch(&mut self) -> Option<WrittenBatch> {
        let usual = self.usual.recv_batch();
        usual.or_else(|| self.large.recv_batch())
    }
}

impl Lane {
    fn write(
        &mut self,
        batch: Batch,
        count: usize,
        store: &Arc<dyn Store>,
        metrics: &Metrics,
        messages: &UnboundedSender<Message>,
    ) -> Result<(), (Batch, io::Error)> {
        let threads = match &mut self.threads {
            Some(threads) => threads,
            none => match Threads::new(count, store, metrics, messages) {
                Ok(threads) => none.insert(threads),
                Err(error) => return Err((batch, error)),
            },
        };
        let Some(batches) = &threads.batches else {
            return Err((batch, io::Error::other("the writers have ended")));
        };
        batches
            .send(batch)
            .map_err(|refused| (refused.0, io::Error::other("the writers have ended")))?;
        self.in_flight += 1;
        Ok(())
    }

    fn try_recv_batch(&mut self) -> Option<WrittenBatch> {
        let written = self.threads.as_ref()?.written.try_recv().ok()?;
        self.in_flight -= 1;
        Some(written)
    }

    fn recv_batch(&mut self) -> Option<WrittenBatch> {
        if self.in_flight == 0 {
            return None;
        }
        let written = self.threads.as_ref()?.written.recv().ok()?;
        self.in_flight -= 1;
        Some(written)
    }
}

impl Threads {
    fn new(
        count: usize,
        store: &Arc<dyn Store>,
        metrics: &Metrics,
        messages: &UnboundedSender<Message>,
    ) -> io::Result<Self> {
        let (batches, to_write) = channel::<Batch>();
        let to_write = Arc::new(Mutex::new(to_write));
        let (done, written) = channel();
        let mut threads = Self {
            batches: Some(batches),
            written,
            handles: Vec::with_capacity(count),
        };
        for _ in 0..count {
            let (store, metrics, messages) = (store.clone(), metrics.clone(), messages.clone());
            let (to_write, done) = (to_write.clone(), done.clone());
            let next = move || {
                let batches = to_write.lock().unwrap_or_else(PoisonError::into_inner);
                batches.recv()
            };
            let work = move || {
                while let Ok(batch) = next() {
                    // Report a panic to the driver, which would otherwise wait for this batch forever.
                    let write = AssertUnwindSafe(|| batch.write(&*store, &metrics));
                    let outcome = catch_unwind(write);
                    // If the driver has ended, nothing receives the batch.
                    let _ = done.send((batch, outcome));
                    let _ = messages.send(Message::Written);
                }
            };
            let name = String::from("windlass-writer");
            threads
                .handles
                .push(thread::Builder::new().name(name).spawn(work)?);
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        drop(self.batches.take());
        for handle in self.handles.drain(..) {
            // Panics of the store were caught above.
            let _ = handle.join();
        }
    }
}
