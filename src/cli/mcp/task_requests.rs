//! Requests and notifications about tasks for which the MCP library has no methods.
//! They are `tasks/list` and `tasks/result` of the protocol version 2025-11-25, and `notifications/tasks`.

use super::{Agent, PROGRESS_INTERVAL, invalid, read, refused, tasks, tools, unknown_method};
use axum::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::{
    CustomRequest, CustomResult, ServerNotification, TaskStatusNotification,
    TaskStatusNotificationParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use serde_json::{Value as Json, json};
use windlass_engine::report::ListReport;

/// Number of tasks on a page of `tasks/list`.
const PAGE: u64 = 20;

/// Further methods that the library reads, and whose parameters are required.
const READ_BY_LIBRARY: [&str; 5] = [
    "initialize",
    "resources/read",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Answers `tasks/list` or `tasks/result`.
///
/// # Errors
/// Any other method, an unknown run, and errors of the store are errors.
pub async fn answer(
    agent: &Agent,
    request: CustomRequest,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let params = request.params.unwrap_or_default();
    let text = |name: &str| params.get(name).and_then(Json::as_str);
    match request.method.as_str() {
        "tasks/list" => list(agent, text("cursor"), context).await,
        "tasks/result" => {
            let run = text("taskId").ok_or_else(|| invalid("`taskId` is missing".to_owned()))?;
            result(agent, run, context).await
        }
        // The library passes a request here if it cannot read the request's parameters.
        "tools/call" => {
            let what = match text("name") {
                Some(_) => "`arguments` has to be an object",
                None => "`name` has to be the name of a tool, and `arguments` an object",
            };
            Err(invalid(what.to_owned()))
        }
        method if READ_BY_LIBRARY.contains(&method) => Err(invalid(format!(
            "the parameters of `{method}` are not valid"
        ))),
        method => Err(unknown_method(method)),
    }
}

/// Returns a page of the newest runs as tasks.
async fn list(
    agent: &Agent,
    cursor: Option<&str>,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let listed = agent.ask(tools::list_page(PAGE, cursor), context).await;
    let listed: ListReport = read(listed.map_err(refused)?).map_err(refused)?;
    let mut found = Vec::new();
    for row in &listed.runs {
        // The run may have been removed since the list was read. Then it is left out.
        if let Ok(report) = agent.status(&row.summary.run, context).await {
            found.push(tasks::task(&report));
        }
    }
    let mut answer = json!({ "tasks": found });
    if let (Json::Object(members), Some(next)) = (&mut answer, listed.next) {
        members.insert(String::from("nextCursor"), json!(next));
    }
    Ok(CustomResult(answer))
}

/// Waits until a task has ended, and returns its result.
async fn result(
    agent: &Agent,
    run: &str,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    agent.task(run, context).await?;
    loop {
        let waited = agent.wait(run, None, context);
        let report = tokio::select! {
            report = waited => report.map_err(refused)?,
            () = context.ct.cancelled() => return Err(invalid("the request was cancelled".to_owned())),
        };
        if report.status.is_final() {
            return Ok(CustomResult(Json::Object(tasks::result(&report))));
        }
    }
}

/// Sends a notification each time that the status of a task changes, until the task has ended or the client has
/// disconnected.
/// Over HTTP, only a client that has a session has a stream for notifications.
#[allow(clippy::disallowed_methods)] // The spawned task ends with the run or with the client.
pub fn notify(agent: &Agent, run: &str, context: &RequestContext<RoleServer>) {
    let parts = context.extensions.get::<Parts>();
    if parts.is_some_and(|parts| !parts.headers.contains_key(HEADER_SESSION_ID)) {
        return;
    }
    let (agent, run, context) = (agent.clone(), run.to_owned(), context.clone());
    tokio::spawn(async move {
        let mut last = None;
        // If the run cannot be read, no more notifications are sent. The client can still request the task.
        while !context.peer.is_transport_closed()
            && let Ok(report) = agent.status(&run, &context).await
        {
            let task = tasks::detailed(&report);
            let status = task.status();
            if last.replace(status) != Some(status) {
                let params = TaskStatusNotificationParams::new(task);
                let notification = TaskStatusNotification::new(params);
                let notification = ServerNotification::TaskStatusNotification(notification);
                if context.peer.send_notification(notification).await.is_err() {
                    return;
                }
            }
            let ends = agent.ask(tools::result(&run, PROGRESS_INTERVAL.as_secs()), &context);
            if report.status.is_final() || ends.await.is_err() {
                return;
            }
        }
    });
}
