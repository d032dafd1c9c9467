//! The process's own engine on a store, and the runs it follows there.

use super::exit::Failure;
use crate::engine::{Engine, EngineBuilder, Notice};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long effects in flight may take to end when the process leaves.
const GRACE: Duration = Duration::from_secs(3);

/// What one who follows runs hears.
pub enum Told {
    /// Of a run.
    Notice(Notice),
    /// Nothing more comes, though the run has not ended.
    Lost,
    /// The store cannot be read.
    Failed(Failure),
}

/// Where notices of several runs come together: the run, and what is told of it.
pub type Feed = mpsc::Sender<(String, Told)>;

/// A store that this process moves.
pub struct Session {
    engine: Arc<Engine>,
}

impl Session {
    /// Opens the store.
    pub fn open(state: &Path, builder: EngineBuilder) -> Result<Self, Failure> {
        let engine = Arc::new(builder.open(state)?);
        Ok(Self { engine })
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sends what happens to a run; with `events`, also its history after that number.
    #[allow(
        clippy::disallowed_methods,
        reason = "a run that is followed has a task of its own"
    )]
    pub async fn watch(&self, run: &str, events: Option<u64>, feed: Feed) -> Result<(), Failure> {
        let mut follower = self.engine.follow(run, events).await?;
        tokio::spawn(async move {
            let run = follower.id().to_owned();
            loop {
                let told = match follower.next().await {
                    Ok(Some(notice)) => Told::Notice(notice),
                    Ok(None) => Told::Lost,
                    Err(error) => Told::Failed(error.into()),
                };
                let last = !matches!(told, Told::Notice(_));
                if feed.send((run.clone(), told)).await.is_err() || last {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Pauses a run.
    pub async fn pause(&self, run: &str) -> Result<(), Failure> {
        self.engine.pause(run).await?;
        Ok(())
    }

    /// Lets effects in flight end for a while, and releases the store.
    pub async fn leave(self) {
        let _ = tokio::time::timeout(GRACE, self.engine.drain()).await;
        self.engine.stop().await;
    }
}
