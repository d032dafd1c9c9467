//! `python`: `python3` processes that run one script after the other.

use super::Job;
use super::pool::Pool;
use crate::process::Processes;
use crate::{Attempt, Executor};
use std::sync::Arc;
use std::time::Duration;
use windlass_model::model::Request;

const WORKER: &str = include_str!("worker.py");

/// Maximum size in bytes of a script's memory, if the action has no limit.
const DEFAULT_MEMORY: usize = 1 << 30;

pub(crate) struct Python {
    pool: Pool,
}

impl Python {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        let command = || Ok(["python3", "-c", WORKER].map(str::to_owned).to_vec());
        Self {
            pool: Pool::new("python", command, processes),
        }
    }
}

impl Executor for Python {
    fn timeout(&self, _: &Request) -> Option<Duration> {
        None
    }

    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let job = Job::read(request, DEFAULT_MEMORY)?;
            Ok(self.pool.run(&job, request).await?.into_value())
        })
    }
}
