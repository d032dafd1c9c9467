//! `windlass mcp`: an agent starts, follows and signals runs.
//! It uses the Model Context Protocol over standard input and output. This process sends requests to the owner of the
//! store, or becomes the owner. A server offers the same protocol at `/mcp`.

mod http;
mod lines;
mod message;
mod resources;
mod stdio;
mod task_requests;
mod tasks;
mod tools;
mod trial;
mod wait_for;

use super::access::{RETRY_EVERY, RETRY_TIME, remote};
use super::args::{Global, LoadArgs, McpArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::oneliner;
use super::output::Screen;
use super::session::{Session, Setup};
use super::signals::Signals;
use axum::http::request::Parts;
pub use http::routes;
use lines::ToolWorkflow;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, ContentBlock, CreateTaskResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use stdio::Stdio;
use tasks::InputAnswer;
use tokio::sync::Notify;
use tokio::time::Instant;
use tools::{Call, Request};
use windlass_engine::report::{ListReport, SourceReport, StatusReport};
use windlass_engine::{ErrorCode, new_id};
use windlass_server::InnerApi;
use windlass_server::api::LocalStart;
use windlass_server::client::ClientError;
use windlass_value::first_bytes;

/// Maximum size of an answer in bytes. A longer answer is cut, because an agent has to read all of it.
const MAX_ANSWER: usize = 64 * 1024;

const INSTRUCTIONS: &str = "Windlass waits and repeats for you, and survives a crash. Do not sleep and check yourself: \
     wait_for waits for a URL, a time, a CI run, a file, a process or a command; poll repeats a request until a condition \
     holds; paginate, operation and try do the same for pages, long operations and commands. For more, read \
     workflow_reference, check a text with validate_workflow, and start it with start_run. Each returns a task, or the id of \
     a run: call wait_for_run once, with enough seconds. A run continues without you; get_run says why it is where it is.";

/// How long `wait_for_run` waits by default. Most clients end a call after a minute.
const WAIT: Duration = Duration::from_secs(50);

/// How long `wait_for_run` waits for a client that requests progress reports. Such a client waits as long as reports
/// arrive.
const WAIT_WITH_PROGRESS: Duration = Duration::from_secs(600);

/// The longest wait that an agent can request.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Serves an agent until its input ends or a signal arrives.
pub async fn mcp(global: &Global, screen: Screen, args: &McpArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let load = LoadArgs {
        env: args.env.clone(),
        ..LoadArgs::default()
    };
    if global.engine.is_some() {
        let message = "agents need a server: start `windlass serve --engine …`, and use --server";
        return Err(Failure::Usage(message.to_owned()));
    }
    let server = remote(global)?;
    let options = inputs::options(global, &load, &args.handlers)?;
    let setup = Setup {
        guest: args.guest.clone(),
        ..Setup::new(global, screen, server, options, true)
    };
    let mut session = Session::attach(setup.clone()).await?;
    if !session.is_joined() {
        session.resume_all(false).await?;
    }
    let lost = Arc::new(Notify::new());
    let agent = Agent(Api::Owner {
        setup: Box::new(setup),
        lost: Arc::clone(&lost),
    });
    let served = async {
        match agent.serve(Stdio::new()).await {
            // If an agent disconnects before its first message, this is not a failure of the command.
            Err(error) => screen.warn(&format!("no agent: {error}")),
            Ok(service) => {
                if let Err(error) = service.waiting().await {
                    screen.warn(&format!("the agent's connection failed: {error}"));
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = take_over(&mut session, &lost) => {}
        () = signals.next() => {}
    }
    session.close(&mut signals).await;
    Ok(Exit::Succeeded)
}

/// If the owner ends, becomes the owner and resumes its runs, until a server requests the store.
/// If another process has become the owner by then, only connects to it.
async fn take_over(session: &mut Session, lost: &Notify) {
    loop {
        tokio::select! {
            () = lost.notified() => {}
            () = session.drain_for_server() => session.release().await,
        }
        // The error is ignored here: the next request has the same error and reports it.
        if session.renew(&[]).await.is_ok() && !session.is_joined() {
            let _ = session.resume_all(false).await;
        }
    }
}

/// The MCP server that answers an agent.
#[derive(Clone)]
struct Agent(Api);

/// Where the requests of an agent are executed.
#[derive(Clone)]
enum Api {
    /// At the owner of a store, or at a server (`--server`).
    Owner {
        setup: Box<Setup>,
        /// Notified if the owner does not answer.
        lost: Arc<Notify>,
    },
    /// In the server that contains this agent. A request has the rights of the HTTP request in which the agent sent
    /// it.
    Inner(InnerApi),
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_tasks();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    /// Proposes a version to a client whose own version is not supported. A client of 2025-03-26 often has only that
    /// version and the one before it.
    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        let mut info = self.get_info();
        if request.protocol_version == ProtocolVersion::V_2025_03_26 {
            info.protocol_version = ProtocolVersion::V_2024_11_05;
        }
        Ok(info)
    }

    /// Returns all versions except the only one that requires batches.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let known = known.filter(|version| **version != ProtocolVersion::V_2025_03_26);
        known.cloned().collect()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = lines::described().chain([wait_for::described()]);
        Ok(ListToolsResult::with_all_items(
            tools.chain(tools::described()).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let answer = match self.call(&request.name, given, &context).await {
            Ok(answer) => answer,
            Err(message) => Answer::Failed(message),
        };
        Ok(match answer {
            Answer::Text(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Answer::Failed(text) => {
                CallToolResult::error(vec![ContentBlock::text(cut(text))]).into()
            }
            Answer::Result(report) => tasks::tool_result(&report).into(),
            Answer::Started(report) if takes_tasks(&context) => {
                task_requests::notify(self, &report.run, &context);
                CallToolResponse::Task(CreateTaskResult::new(tasks::task(&report)))
            }
            Answer::Started(report) => tasks::tool_result(&report).into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resources::read(&request.uri) {
            Some(found) => Ok(ReadResourceResult::new(vec![found]).into()),
            None => {
                let message = cut(format!("no resource `{}`", request.uri));
                Err(ErrorData::resource_not_found(message, None))
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method("prompts/list"))
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(unknown_method("prompts/get"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method("completion/complete"))
    }

    #[allow(deprecated)] // Clients still send it.
    async fn set_level(
        &self,
        _: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(unknown_method("logging/setLevel"))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(unknown_method("resources/subscribe"))
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(unknown_method("resources/unsubscribe"))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        task_requests::answer(self, request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let report = self.task(&request.task_id, &context).await?;
        Ok(GetTaskResult::new(tasks::detailed(&report)))
    }

    /// Sends the answers of a person to the run.
    /// They become signals. For a paused run they become a resume or a cancel.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let run = &request.task_id;
        let report = self.task(run, &context).await?;
        for (key, response) in &request.input_responses {
            // If the person declined to answer, the run continues to wait.
            if response.get("action").and_then(Json::as_str) != Some("accept") {
                continue;
            }
            let content = response.get("content").cloned().unwrap_or_default();
            let answer = tasks::answer(&report, key, &content);
            let answer = answer.map_err(invalid)?;
            // By the protocol, an answer to a request that is not open is ignored.
            let request = match answer {
                None => continue,
                Some(InputAnswer::Continue) => tools::resume(run),
                Some(InputAnswer::Cancel) => tools::cancel(run),
                Some(InputAnswer::Signal {
                    name,
                    payload,
                    received,
                }) => tools::signal(run, &name, &payload, received, &new_id("signal")),
            };
            match self.ask(request, &context).await {
                // If another client has answered first, the request is not open either.
                Err(error) if error.code() == Some(ErrorCode::Answered) => {}
                sent => drop(sent.map_err(refused)?),
            }
        }
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let run = &request.task_id;
        let report = self.task(run, &context).await?;
        if report.status.is_final() {
            return Ok(());
        }
        let cancelled = self.ask(tools::cancel(run), &context);
        match cancelled.await {
            // If the run has ended meanwhile, a cancel has no effect, which is not an error.
            Err(error) if error.code() == Some(ErrorCode::RunEnded) => Ok(()),
            other => other.map(drop).map_err(refused),
        }
    }
}

/// The result of a tool call.
enum Answer {
    Text(String),
    Failed(String),
    /// A run was started. A client that supports tasks receives it as a task.
    Started(Box<StatusReport>),
    /// A run has ended, or the call has waited as long as possible.
    Result(Box<StatusReport>),
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    capabilities.is_some_and(|capabilities| capabilities.supports_tasks())
}

fn invalid(why: String) -> ErrorData {
    ErrorData::invalid_params(cut(why), None)
}

/// Returns the error for a method that this server does not have.
fn unknown_method(method: &str) -> ErrorData {
    let message = cut(format!("unknown method `{method}`"));
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn refused(error: ClientError) -> ErrorData {
    invalid(error.to_string())
}

impl Agent {
    async fn call(
        &self,
        name: &str,
        given: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, String> {
        if let Some(line) = lines::find(name) {
            return self.start_line(line.make(&given)?, context).await;
        }
        if name == wait_for::NAME {
            return self.start_line(wait_for::make(given)?, context).await;
        }
        let request = match tools::call(name, given)? {
            Call::Page(page) => return Ok(Answer::Text(page.to_owned())),
            Call::Try(trial, given) => {
                let tried = trial::run(trial, given).await;
                return tried.map(|text| Answer::Text(cut(text)));
            }
            Call::Ask(request) => request,
            Call::Wait { run, seconds } => {
                return tokio::select! {
                    report = self.wait(&run, seconds, context) => report.map(Answer::Result).map_err(text),
                    () = context.ct.cancelled() => Err(String::from("the call was cancelled")),
                };
            }
        };
        let starts = request.starts;
        let answer = self.ask(request, context).await.map_err(text)?;
        match answer.get("run").and_then(Json::as_str).filter(|_| starts) {
            Some(run) => {
                let report = self.status(run, context).await.map_err(text)?;
                Ok(Answer::Started(report))
            }
            None => Ok(Answer::Text(cut(answer.to_string()))),
        }
    }

    /// Starts the run of a one-line command.
    /// If the run of an earlier call has not ended, starts no second one, and returns the status of that run. So a call
    /// can be repeated.
    async fn start_line(
        &self,
        made: ToolWorkflow,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, String> {
        let ToolWorkflow { name, text: of, id } = made;
        let prefix = oneliner::id_prefix(&name, &of);
        let mut tries = 5;
        loop {
            let (run, is_there) = match &id {
                Some(id) => (id.clone(), false),
                None => {
                    let listed = self.ask(tools::list_with_prefix(&prefix), context).await;
                    let listed: ListReport = read(listed.map_err(text)?).map_err(text)?;
                    oneliner::next_run(&prefix, &listed.runs)
                }
            };
            if is_there {
                self.check_line(&run, &of, context).await?;
            } else {
                let body = json!({ "text": of, "run": run });
                let started = self.ask(Request::start(body), context).await;
                match started {
                    // A concurrent call has started the run meanwhile, so try to find it again.
                    Err(error)
                        if error.code() == Some(ErrorCode::RunExists)
                            && id.is_none()
                            && tries > 0 =>
                    {
                        tries -= 1;
                        continue;
                    }
                    other => drop(other.map_err(text)?),
                }
            }
            let report = self.status(&run, context).await.map_err(text)?;
            return Ok(Answer::Started(report));
        }
    }

    /// Checks that the run with the id of a one-line command has the workflow of this command.
    /// Everyone with the right to start runs can choose such an id for another workflow.
    async fn check_line(
        &self,
        run: &str,
        line: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), String> {
        let source = self.ask(tools::source(run), context).await.map_err(text)?;
        let source: SourceReport = read(source).map_err(text)?;
        match source.files.first().is_some_and(|file| file.text == line) {
            true => Ok(()),
            false => Err(format!(
                "the run {run} has the id of this line and another workflow: cancel it, or choose an `id`"
            )),
        }
    }

    /// Returns the status of a task's run.
    async fn task(
        &self,
        run: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Box<StatusReport>, ErrorData> {
        tools::check_run(run).map_err(invalid)?;
        self.status(run, context).await.map_err(refused)
    }

    async fn status(
        &self,
        run: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Box<StatusReport>, ClientError> {
        read(self.ask(tools::status(run), context).await?).map(Box::new)
    }

    /// Waits until a run has ended or the time is over. Sends progress reports meanwhile.
    async fn wait(
        &self,
        run: &str,
        seconds: Option<u64>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Box<StatusReport>, ClientError> {
        let token = context.meta.get_progress_token();
        let usual = match token {
            Some(_) => WAIT_WITH_PROGRESS,
            None => WAIT,
        };
        let time = seconds.map_or(usual, Duration::from_secs);
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let step = left.min(PROGRESS_INTERVAL);
            let started = Instant::now();
            // The API accepts whole seconds.
            let seconds = step.as_millis().div_ceil(1000);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            self.ask(tools::result(run, seconds), context).await?;
            let report = self.status(run, context).await?;
            let is_early = started.elapsed() + Duration::from_millis(500) < step;
            if report.status.is_final() || begun.elapsed() + Duration::from_millis(500) > time {
                return Ok(report);
            }
            match &self.0 {
                // The owner has ended. The next owner will continue the run.
                Api::Owner { .. } if is_early => tokio::time::sleep(RETRY_EVERY).await,
                // The server stops and has ended the request early.
                Api::Inner(_) if is_early => return Ok(report),
                _ => {}
            }
            if let Some(token) = &token {
                let progress =
                    ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64());
                let progress = progress.with_message(tasks::message(&report));
                // The error is ignored: other code notices that the client has disconnected.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }

    async fn ask(
        &self,
        request: Request,
        context: &RequestContext<RoleServer>,
    ) -> Result<Json, ClientError> {
        match &self.0 {
            Api::Owner { setup, lost } => ask_owner(setup, lost, &request).await,
            Api::Inner(api) => {
                let none = || ClientError::Foreign(String::from("the request has no credentials"));
                let serves = context.extensions.get::<Parts>().ok_or_else(none)?;
                let (method, query) = (request.method, &request.query);
                api.json(serves, method, &request.path, query, request.body.as_ref())
                    .await
            }
        }
    }
}

/// Sends a request to the owner of the store. If the owner has ended, sends it to the next owner.
async fn ask_owner(setup: &Setup, lost: &Notify, request: &Request) -> Result<Json, ClientError> {
    let patience = Instant::now() + RETRY_TIME;
    loop {
        let answer = match setup.client().await {
            Ok(client) => {
                let mut body = request.body.clone();
                if let (true, Some(Json::Object(body)), Some(_)) =
                    (request.starts, &mut body, client.owner())
                    // Only for a text: a saved workflow has the rights with which it was saved.
                    && body.contains_key("text")
                {
                    let guest = LocalStart {
                        guest: true,
                        ..LocalStart::default()
                    };
                    body.insert("local".to_owned(), json!(guest));
                }
                let (method, path) = (request.method.clone(), &request.path);
                client
                    .json(method, path, &request.query, body.as_ref())
                    .await
            }
            Err(error) => Err(error),
        };
        match answer {
            // The owner that ended may have executed the request, and this request must not be executed twice.
            Err(error @ ClientError::Lost) if !request.is_repeatable() => return Err(error),
            Err(error) if error.is_gone() && Instant::now() < patience => {
                lost.notify_one();
                tokio::time::sleep(RETRY_EVERY).await;
            }
            other => return other,
        }
    }
}

fn read<T: DeserializeOwned>(answer: Json) -> Result<T, ClientError> {
    serde_json::from_value(answer).map_err(|error| ClientError::Foreign(error.to_string()))
}

fn text(error: ClientError) -> String {
    error.to_string()
}

/// Cuts a long answer in the middle, and adds a note about this to the text.
fn cut(answer: String) -> String {
    if answer.len() <= MAX_ANSWER {
        return answer;
    }
    // The end of the answer is retained, because it contains how a run ended.
    let first = first_bytes(&answer, MAX_ANSWER / 2);
    let all = answer.len();
    let mut rest = all - MAX_ANSWER / 2..all;
    let rest = rest.find_map(|at| answer.get(at..)).unwrap_or_default();
    format!(
        "{first}…\n(cut here: {all} bytes in all. Ask for less: a smaller `limit`, one iteration, or `at` of a test)\n…{rest}"
    )
}
