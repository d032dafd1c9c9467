//! A connection to Temporal, and the requests that are made over it.

use super::target::Target;
use super::{TemporalError, WORKFLOW};
use std::time::Duration;
use temporalio_client::tonic::{Code, IntoRequest, Request, Response};
use temporalio_client::{ClientTlsOptions, ConnectionOptions, TlsOptions, Url};
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution};
use temporalio_common::protos::temporal::api::enums::v1::{
    HistoryEventFilterType, PendingActivityState, TaskQueueType, WorkflowExecutionStatus,
};
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1 as service;

/// Timeout of the connection to Temporal.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of a long poll (a request that waits for an event). Temporal answers earlier, even if nothing has happened.
const LONG_POLL: Duration = Duration::from_secs(70);

/// Number of executions per page of a list.
const PAGE: i32 = 1_000;

/// Sends a request to Temporal. The result is the answer or a status of gRPC.
macro_rules! send {
    ($connection:ident.$method:ident($request:expr)) => {
        $connection
            .inner
            .workflow_service()
            .$method($request.into_request())
            .await
            .map(Response::into_inner)
    };
}

#[derive(Clone)]
pub struct Connection {
    pub inner: temporalio_client::Connection,
    pub target: Target,
}

/// A page of an execution's history.
pub struct Page {
    pub events: Vec<HistoryEvent>,
    /// The token of the next page. `None` after the last page of an execution that has ended.
    pub next: Option<Vec<u8>>,
}

/// Temporal's description of an execution.
pub struct Description {
    pub info: WorkflowExecutionInfo,
    /// The rest of the description: the tasks that have not ended.
    pub tasks: service::DescribeWorkflowExecutionResponse,
}

impl Connection {
    pub async fn open(target: Target) -> Result<Self, TemporalError> {
        let unreachable = |why: String| TemporalError::Unreachable {
            at: target.address.clone(),
            why,
        };
        let secure = target.tls.is_some() || target.api_key.is_some();
        let scheme = if secure { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{}", target.address))
            .map_err(|error| unreachable(error.to_string()))?;
        let tls = target.tls.clone().map(|tls| {
            TlsOptions::builder()
                .maybe_server_root_ca_cert(tls.authority)
                .maybe_domain(tls.server_name)
                .maybe_client_tls_options(tls.client.map(|(cert, key)| {
                    ClientTlsOptions::builder()
                        .client_cert(cert)
                        .client_private_key(key)
                        .build()
                }))
                .build()
        });
        let options = ConnectionOptions::new(url)
            .identity(format!("windlass-{}", std::process::id()))
            .client_name("windlass".to_owned())
            .client_version(env!("CARGO_PKG_VERSION").to_owned())
            .connect_timeout(CONNECT)
            .dns_load_balancing(None)
            .maybe_tls_options(tls)
            .maybe_api_key(target.api_key.clone())
            .build();
        let inner = temporalio_client::Connection::connect(options)
            .await
            .map_err(|error| unreachable(deepest(&error)))?;
        Ok(Self { inner, target })
    }

    fn namespace(&self) -> String {
        self.target.namespace.clone()
    }

    pub fn queue(&self) -> TaskQueue {
        TaskQueue {
            name: self.target.queue.clone(),
            ..TaskQueue::default()
        }
    }

    /// Returns a page of an execution's history. With `wait`, the request waits until the history has a new event.
    pub async fn history(
        &self,
        run: &str,
        execution: &str,
        token: Vec<u8>,
        wait: bool,
    ) -> Result<Page, TemporalError> {
        let request = service::GetWorkflowExecutionHistoryRequest {
            next_page_token: token,
            wait_new_event: wait,
            ..Default::default()
        };
        self.history_page(run, execution, request).await
    }

    /// Requests a page of an execution's history. `request` has what is particular to it.
    async fn history_page(
        &self,
        run: &str,
        execution: &str,
        request: service::GetWorkflowExecutionHistoryRequest,
    ) -> Result<Page, TemporalError> {
        let wait = request.wait_new_event;
        let mut request = Request::new(service::GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace(),
            execution: Some(execution_id(run, execution)),
            skip_archival: true,
            ..request
        });
        if wait {
            request.set_timeout(LONG_POLL);
        }
        let answer = send!(self.get_workflow_execution_history(request))?;
        let next = answer.next_page_token;
        Ok(Page {
            events: answer
                .history
                .map(|history| history.events)
                .unwrap_or_default(),
            next: (!next.is_empty()).then_some(next),
        })
    }

    /// Returns an execution's whole history.
    pub async fn whole_history(
        &self,
        run: &str,
        execution: &str,
    ) -> Result<Vec<HistoryEvent>, TemporalError> {
        let mut events = Vec::new();
        let mut token = Vec::new();
        loop {
            let page = self.history(run, execution, token, false).await?;
            events.extend(page.events);
            match page.next {
                Some(next) => token = next,
                None => return Ok(events),
            }
        }
    }

    /// Returns the first event of an execution.
    pub async fn first_event(
        &self,
        run: &str,
        execution: &str,
    ) -> Result<Option<HistoryEvent>, TemporalError> {
        let request = service::GetWorkflowExecutionHistoryRequest {
            maximum_page_size: 1,
            ..Default::default()
        };
        let page = self.history_page(run, execution, request).await?;
        Ok(page.events.into_iter().next())
    }

    /// Returns Temporal's description of the last execution of a run.
    pub async fn describe(&self, run: &str) -> Result<Description, TemporalError> {
        let request = service::DescribeWorkflowExecutionRequest {
            namespace: self.namespace(),
            execution: Some(execution_id(run, "")),
        };
        let mut whole = send!(self.describe_workflow_execution(request))?;
        let info = whole.workflow_execution_info.take();
        let nothing = || TemporalError::Payload(String::from("a description has nothing in it"));
        Ok(Description {
            info: info.ok_or_else(nothing)?,
            tasks: whole,
        })
    }

    /// Returns the last execution of every run.
    pub async fn executions(&self) -> Result<Vec<WorkflowExecutionInfo>, TemporalError> {
        let mut found = Vec::new();
        let mut token = Vec::new();
        loop {
            let request = service::ListWorkflowExecutionsRequest {
                namespace: self.namespace(),
                page_size: PAGE,
                next_page_token: token,
                query: format!(
                    "WorkflowType = '{WORKFLOW}' AND ExecutionStatus != 'ContinuedAsNew'"
                ),
            };
            let answer = send!(self.list_workflow_executions(request))?;
            found.extend(answer.executions);
            token = answer.next_page_token;
            if token.is_empty() {
                return Ok(found);
            }
        }
    }

    /// Starts a run.
    pub async fn start(
        &self,
        mut request: service::StartWorkflowExecutionRequest,
    ) -> Result<(), TemporalError> {
        request.namespace = self.namespace();
        request.task_queue = Some(self.queue());
        request.identity = self.inner.identity().to_owned();
        send!(self.start_workflow_execution(request))?;
        Ok(())
    }

    /// Delivers an update, and waits up to `patience` for the answer.
    pub async fn update(
        &self,
        mut request: service::UpdateWorkflowExecutionRequest,
        patience: Duration,
    ) -> Result<service::UpdateWorkflowExecutionResponse, TemporalError> {
        request.namespace = self.namespace();
        let mut request = Request::new(request);
        request.set_timeout(patience);
        Ok(send!(self.update_workflow_execution(request))?)
    }

    /// Sends the heartbeat of an activity. Returns false if the activity does not belong to this worker any more.
    pub async fn heartbeat(&self, token: &[u8]) -> Result<bool, TemporalError> {
        let request = service::RecordActivityTaskHeartbeatRequest {
            namespace: self.namespace(),
            task_token: token.to_vec(),
            identity: self.inner.identity().to_owned(),
            ..Default::default()
        };
        match send!(self.record_activity_task_heartbeat(request)) {
            Ok(answer) => Ok(!answer.cancel_requested),
            Err(status) if status.code() == Code::NotFound => Ok(false),
            Err(status) => Err(status.into()),
        }
    }

    /// Completes an activity with a request of our own, and not through the SDK's worker. A call of a workflow is
    /// completed this way.
    pub async fn complete(&self, token: &[u8], answer: Payload) -> Result<(), TemporalError> {
        let request = service::RespondActivityTaskCompletedRequest {
            namespace: self.namespace(),
            task_token: token.to_vec(),
            identity: self.inner.identity().to_owned(),
            result: Some(single_payload(answer)),
            ..Default::default()
        };
        send!(self.respond_activity_task_completed(request))?;
        Ok(())
    }

    /// Waits until an execution ends. Returns its last event. If `execution` is empty, uses the last execution of the
    /// run.
    pub async fn close(&self, run: &str, execution: &str) -> Result<HistoryEvent, TemporalError> {
        let mut token = Vec::new();
        loop {
            let request = service::GetWorkflowExecutionHistoryRequest {
                next_page_token: token,
                wait_new_event: true,
                history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
                ..Default::default()
            };
            let mut page = self.history_page(run, execution, request).await?;
            if let Some(last) = page.events.pop() {
                return Ok(last);
            }
            token = page.next.unwrap_or_default();
        }
    }

    /// Returns whether an execution still waits for an activity. Also true if it was continued as another execution,
    /// because that execution requests the activity again.
    pub async fn waits_for(
        &self,
        run: &str,
        execution: &str,
        activity: &str,
    ) -> Result<bool, TemporalError> {
        let request = service::DescribeWorkflowExecutionRequest {
            namespace: self.namespace(),
            execution: Some(execution_id(run, execution)),
        };
        let answer = match send!(self.describe_workflow_execution(request)) {
            Ok(answer) => answer,
            Err(status) if status.code() == Code::NotFound => return Ok(false),
            Err(status) => return Err(status.into()),
        };
        let info = answer.workflow_execution_info.unwrap_or_default();
        Ok(match info.status() {
            WorkflowExecutionStatus::ContinuedAsNew => true,
            WorkflowExecutionStatus::Running => {
                let mut pending = answer.pending_activities.iter();
                pending.any(|one| {
                    one.activity_id == activity
                        && one.state() != PendingActivityState::CancelRequested
                })
            }
            _ => false,
        })
    }

    /// Requests that Temporal cancels a run.
    pub async fn cancel(&self, run: &str, reason: &str) -> Result<(), TemporalError> {
        let request = service::RequestCancelWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(execution_id(run, "")),
            identity: self.inner.identity().to_owned(),
            reason: reason.to_owned(),
            ..Default::default()
        };
        send!(self.request_cancel_workflow_execution(request))?;
        Ok(())
    }

    /// Ends a run at once: no worker receives a further task of it.
    pub async fn terminate(&self, run: &str, reason: &str) -> Result<(), TemporalError> {
        let request = service::TerminateWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(execution_id(run, "")),
            identity: self.inner.identity().to_owned(),
            reason: reason.to_owned(),
            ..Default::default()
        };
        send!(self.terminate_workflow_execution(request))?;
        Ok(())
    }

    /// Deletes a run that has ended.
    pub async fn delete(&self, run: &str, execution: &str) -> Result<(), TemporalError> {
        let request = service::DeleteWorkflowExecutionRequest {
            namespace: self.namespace(),
            workflow_execution: Some(execution_id(run, execution)),
        };
        send!(self.delete_workflow_execution(request))?;
        Ok(())
    }

    /// Returns whether a worker has polled for tasks in the last minutes.
    pub async fn has_workers(&self) -> Result<bool, TemporalError> {
        let request = service::DescribeTaskQueueRequest {
            namespace: self.namespace(),
            task_queue: Some(self.queue()),
            task_queue_type: TaskQueueType::Workflow.into(),
            ..Default::default()
        };
        let answer = send!(self.describe_task_queue(request))?;
        Ok(!answer.pollers.is_empty())
    }
}

/// Identifies an execution of a run. If `execution` is empty, it is the last execution.
pub fn execution_id(run: &str, execution: &str) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: run.to_owned(),
        run_id: execution.to_owned(),
    }
}

pub fn single_payload(payload: Payload) -> Payloads {
    Payloads {
        payloads: vec![payload],
    }
}

/// Returns the message of an error's root cause.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
