//! How a session starts and retries runs.
//! The owner may end before it has answered. Then the next owner recognizes the repeated request by its id.

use super::{OwnerReply, Session};
use crate::cli::exit::Failure;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use windlass_engine::{
    Engine, EngineError, ErrorCode, RequestId, StartOptions, Timestamp, Value, Workflow, new_id,
};
use windlass_server::api::{FileText, LocalStart, RetryRun, StartRun};

/// The workflow of a new run.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A workflow that this process has loaded.
    Loaded(&'a Workflow),
    /// The stored workflow with this name. It has the permissions with which it was stored.
    Stored(&'a str),
}

pub struct NewRun<'a> {
    pub id: &'a str,
    pub source: Source<'a>,
    pub input: &'a Value,
    pub labels: &'a BTreeMap<String, String>,
    pub scheduled_time: Option<Timestamp>,
}

impl Session {
    /// Returns the failure of a start. If a run has the id already, it says whether that run has ended. `what` is the
    /// part of the command line with the workflow.
    pub async fn failed_start(
        &self,
        failure: Failure,
        new: &NewRun<'_>,
        what: &str,
        target: &str,
    ) -> Failure {
        if failure.code() != Some(ErrorCode::RunExists) {
            return failure;
        }
        let Some(report) = self.status(new.id).await else {
            return failure;
        };
        let id = new.id;
        Failure::Usage(match (report.status.is_final(), new.source) {
            (true, _) => format!("{failure}, and it has ended: choose another --id"),
            (false, Source::Loaded(workflow))
                if workflow.program().hash.to_string() != report.program =>
            {
                format!(
                    "{failure}: it is unfinished, and this {what} differs from its {what}; `windlass resume{target} \
                     {id}` continues it, or choose another --id"
                )
            }
            (false, _) => format!(
                "{failure}: it is unfinished, and `windlass resume{target} {id}` continues it; or choose another --id"
            ),
        })
    }

    /// Starts a run. The run's first step is durable when this returns.
    pub async fn start(&mut self, new: &NewRun<'_>) -> Result<(), Failure> {
        let request_id = self.request_id();
        let request = self.start_request(new, request_id.clone());
        let request_id = request_id.as_deref().map(RequestId::unique);
        let reply = self.send_request(async |client| client.start(&request).await);
        let reply = reply.await?;
        let mut options = StartOptions {
            id: Some(new.id.to_owned()),
            labels: new.labels.clone(),
        };
        if let Some(time) = new.scheduled_time {
            let name = match new.source {
                Source::Loaded(_) => None,
                Source::Stored(name) => Some(name),
            };
            options = options.scheduled(name, time);
        }
        options = options.request_id(request_id.as_ref());
        let handle = Mutex::new(None);
        self.start_if_owner(new.id, request_id.as_ref(), reply, async |engine| {
            let stored;
            let workflow = match new.source {
                Source::Loaded(workflow) => workflow,
                Source::Stored(name) => {
                    let found = engine.workflow(name)?;
                    stored = found.ok_or_else(|| engine.inspector().no_workflow(name))?;
                    &*stored
                }
            };
            let started = engine.start_with(workflow, new.input.clone(), options.clone());
            let run = started.await?;
            *handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
            Ok(())
        })
        .await?;
        let handle = handle.into_inner().unwrap_or_else(PoisonError::into_inner);
        let started = self.started.get_mut();
        let started = started.unwrap_or_else(PoisonError::into_inner);
        started.extend(handle.map(|run| (run.id().to_owned(), run)));
        if let Source::Loaded(workflow) = new.source {
            self.note_environment(workflow);
        }
        Ok(())
    }

    /// Retries the ended run `run`. The retry is a new run with the id `id`.
    pub async fn retry(&mut self, run: &str, id: &str, from: Option<&str>) -> Result<(), Failure> {
        let request_id = self.request_id();
        let request = RetryRun {
            run: Some(id.to_owned()),
            from: from.map(str::to_owned),
            request_id: request_id.clone(),
        };
        let reply = self.send_request(async |client| client.retry(run, &request).await);
        let reply = reply.await?;
        let request_id = request_id.as_deref().map(RequestId::unique);
        let request_id = request_id.as_ref();
        self.start_if_owner(id, request_id, reply, async |engine| {
            let options = StartOptions::default().id(id).request_id(request_id);
            engine.retry(run, from, options).await.map(drop)
        })
        .await
    }

    /// Makes an id for a request that may have to be repeated. `None` if this process is the owner, because no owner can
    /// end then.
    fn request_id(&self) -> Option<String> {
        self.is_joined().then(|| new_id("request"))
    }

    /// Starts the run by calling `start`, if this process is now the owner.
    /// If an earlier owner has already started the run for this request, resumes it, so that it does not run twice.
    async fn start_if_owner(
        &mut self,
        id: &str,
        request_id: Option<&RequestId>,
        reply: OwnerReply<String>,
        start: impl AsyncFn(&Engine) -> Result<(), EngineError>,
    ) -> Result<(), Failure> {
        let engine = match reply {
            OwnerReply::Answered(_) => return Ok(()),
            OwnerReply::Owned { engine } => engine,
        };
        match start(&engine).await {
            Err(error)
                if error.code() == ErrorCode::RunExists
                    && engine.was_started_by(id, request_id).await? => {}
            other => return Ok(other?),
        }
        self.resume(id).await
    }

    fn start_request(&self, new: &NewRun<'_>, request_id: Option<String>) -> StartRun {
        let request = StartRun {
            run: Some(new.id.to_owned()),
            request_id,
            input: new.input.clone(),
            labels: new.labels.clone(),
            scheduled_time: new.scheduled_time,
            ..StartRun::default()
        };
        let workflow = match new.source {
            Source::Loaded(workflow) => workflow,
            Source::Stored(name) => {
                return StartRun {
                    workflow: Some(name.to_owned()),
                    ..request
                };
            }
        };
        let options = &self.setup.options;
        let mut files = workflow.bundle().files.iter();
        let file = files.next();
        let further = files.map(|file| FileText {
            path: file.path.clone(),
            text: file.text.clone(),
        });
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        StartRun {
            text: file.map(|file| file.text.clone()),
            file: file.map(|file| file.path.clone()),
            files: further.collect(),
            dialect: options.dialect.map(|dialect| dialect.as_str().to_owned()),
            local: Some(LocalStart {
                max_count: options.max_count,
                max_timeout_ms: options.max_timeout.map(millis),
                handlers: options.handlers.clone(),
                folder: options.folder.clone(),
                guest: false,
            }),
            ..request
        }
    }
}
