//! `windlass mcp`: an agent starts, watches and signals loops, over the Model Context Protocol on
//! standard input and output. This process joins the owner of the store, or becomes it.

mod lines;
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
use lines::Made;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, GetTaskParams, GetTaskResult, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tools::{Call, Request};
use windlass_engine::ErrorCode;
use windlass_engine::report::{ListFilter, StatusReport};
use windlass_server::api::{LocalStart, StartRun};
use windlass_server::client::{Client, ClientError};
use windlass_value::first_bytes;

/// An answer is cut here, in bytes: an agent reads all of it.
const MAX_ANSWER: usize = 64 * 1024;

const INSTRUCTIONS: &str = "Windlass waits and repeats for you, and survives a crash. Do not sleep and check yourself: \
     wait_for waits for a URL, a time, a CI run, a file, a process or a command; poll repeats a request until a condition \
     holds; paginate, operation and try do the same for pages, long operations and commands. For more, read \
     workflow_reference, check a text with validate_workflow, and start it with start_run. Each returns a task, or the id of \
     a run: call wait_for_run once, with enough seconds. A run continues without you; get_run says why it is where it is.";

/// How long `wait_for_run` waits unless the agent says it: most clients end a call after a minute.
const WAIT: Duration = Duration::from_secs(50);

/// The same for a client that asks for reports of progress: it waits as long as they arrive.
const WAIT_WITH_PROGRESS: Duration = Duration::from_secs(600);

/// The maximum.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Between two reports of progress.
const PROGRESS: Duration = Duration::from_secs(10);

/// The command. It ends with its input.
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
    let setup = Setup {
        state: global.state.clone(),
        store: global.store,
        server: remote(global)?,
        engine: None,
        create: true,
        options: inputs::options(global, &load, &args.handlers)?,
        untrusted: args.untrusted.clone(),
        screen,
    };
    let mut session = Session::attach(setup.clone()).await?;
    if !session.is_joined() {
        session.resume_all(false).await?;
    }
    let lost = Arc::new(Notify::new());
    let agent = Agent {
        setup,
        lost: Arc::clone(&lost),
    };
    let served = async {
        match agent.serve(rmcp::transport::io::stdio()).await {
            // An agent that leaves before it has said anything is no failure.
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
    session.leave(&mut signals).await;
    Ok(Exit::Succeeded)
}

/// Whenever the owner has gone: what it ran goes on here, unless there is another one.
async fn take_over(session: &mut Session, lost: &Notify) {
    loop {
        lost.notified().await;
        // What fails here, the next question meets again and tells.
        if session.renew(&[]).await.is_ok() && !session.is_joined() {
            let _ = session.resume_all(false).await;
        }
    }
}

/// Answers an agent.
struct Agent {
    setup: Setup,
    /// Told when nobody answers.
    lost: Arc<Notify>,
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
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
            Answer::Failed(text) => CallToolResult::error(vec![ContentBlock::text(text)]).into(),
            Answer::Result(report) => tasks::tool_result(&report).into(),
            Answer::Started(report) if takes_tasks(&context) => {
                CallToolResponse::Task(CreateTaskResult::new(tasks::task(&report)))
            }
            Answer::Started(report) => tasks::tool_result(&report).into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let report = self.status(&request.task_id).await.map_err(unknown_task)?;
        Ok(GetTaskResult::new(tasks::detailed(&report)))
    }

    /// Sends the answers as signals.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let run = &request.task_id;
        let report = self.status(run).await.map_err(unknown_task)?;
        for (key, response) in &request.input_responses {
            // The protocol ignores answers to what is no longer asked.
            let Some(signal) = tasks::signal_of(&report, key) else {
                continue;
            };
            // The person may decline: the run continues to wait.
            if response.get("action").and_then(Json::as_str) != Some("accept") {
                continue;
            }
            let content = response.get("content").cloned().unwrap_or_default();
            let sent = self.request(|client| {
                let (run, signal) = (run.clone(), signal.clone());
                let payload = serde_json::from_value(content.clone()).unwrap_or_default();
                async move { client.signal(&run, &signal, payload).await }
            });
            sent.await.map_err(refused)?;
        }
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let run = &request.task_id;
        let cancelled = self.request(|client| {
            let run = run.clone();
            async move { client.cancel(&run).await }
        });
        match cancelled.await {
            // The task has ended already.
            Err(error) if error.code() == Some(ErrorCode::RunEnded) => Ok(()),
            other => other.map(drop).map_err(unknown_task),
        }
    }
}

/// What a call comes to.
enum Answer {
    Text(String),
    Failed(String),
    /// A run that has begun: a task, if the client knows tasks.
    Started(Box<StatusReport>),
    /// A run that has ended, or could not be waited for any longer.
    Result(Box<StatusReport>),
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    capabilities.is_some_and(|capabilities| capabilities.supports_tasks())
}

fn unknown_task(error: ClientError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

fn refused(error: ClientError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

impl Agent {
    async fn call(
        &self,
        name: &str,
        given: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, String> {
        if let Some(line) = lines::find(name) {
            return self.start_line(line.make(&given)?).await;
        }
        if name == wait_for::NAME {
            return self.start_line(wait_for::make(given)?).await;
        }
        let request = match tools::call(name, given)? {
            Call::Page(page) => return Ok(Answer::Text(page.to_owned())),
            Call::Test(given) => {
                return trial::test_workflow(&given)
                    .await
                    .map(|text| Answer::Text(cut(text)));
            }
            Call::Evaluate(given) => {
                return trial::evaluate(&given).map(|text| Answer::Text(cut(text)));
            }
            Call::Ask(request) => request,
            Call::Wait { run, seconds } => {
                let report = self.wait(&run, seconds, context).await;
                return report.map(Answer::Result).map_err(text);
            }
        };
        let starts = request.starts;
        let answer = self.ask(request).await.map_err(text)?;
        match answer.get("run").and_then(Json::as_str).filter(|_| starts) {
            Some(run) => {
                let report = self.status(run).await.map_err(text)?;
                Ok(Answer::Started(report))
            }
            None => Ok(Answer::Text(cut(answer.to_string()))),
        }
    }

    /// Starts the run of a line. The same line joins its run until that has ended, so that a call can be repeated.
    async fn start_line(&self, made: Made) -> Result<Answer, String> {
        let Made { name, text: of, id } = made;
        let prefix = oneliner::id_prefix(&name, &of);
        loop {
            let (run, is_there) = match &id {
                Some(id) => (id.clone(), false),
                None => {
                    let filter = ListFilter {
                        prefix: Some(prefix.clone()),
                        ..ListFilter::default()
                    };
                    let listed = self.request(|client| {
                        let filter = filter.clone();
                        async move { client.list(&filter).await }
                    });
                    oneliner::next_run(&prefix, &listed.await.map_err(text)?.runs)
                }
            };
            if !is_there {
                let start = StartRun {
                    text: Some(of.clone()),
                    run: Some(run.clone()),
                    ..StartRun::default()
                };
                let body = serde_json::to_value(start).map_err(|error| error.to_string())?;
                let started = self.ask(Request::start(body)).await;
                match started {
                    // A call at the same time has begun it.
                    Err(error) if error.code() == Some(ErrorCode::RunExists) && id.is_none() => {
                        continue;
                    }
                    other => drop(other.map_err(text)?),
                }
            }
            let report = self.status(&run).await.map_err(text)?;
            return Ok(Answer::Started(report));
        }
    }

    async fn status(&self, run: &str) -> Result<Box<StatusReport>, ClientError> {
        let report = self.request(|client| {
            let run = run.to_owned();
            async move { client.status(&run).await }
        });
        report.await.map(Box::new)
    }

    /// Waits for the end of a run, for as long as the client waits for this call.
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
        let time = seconds.map_or(usual, Duration::from_secs).min(MAX_WAIT);
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let step = left.min(PROGRESS).as_secs_f64().ceil();
            self.ask(tools::result(run, step as u64)).await?;
            let report = self.status(run).await?;
            if report.status.is_final() || begun.elapsed() >= time {
                return Ok(report);
            }
            if let Some(token) = &token {
                let progress =
                    ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64());
                let progress = progress.with_message(tasks::message(&report));
                // A client that has gone is noticed elsewhere.
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    }

    /// Asks the owner of the store; the next one, or this process, if it has ended.
    async fn request<T, F>(&self, ask: impl Fn(Client) -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let patience = Instant::now() + RETRY_TIME;
        loop {
            let answer = match self.setup.client().await {
                Ok(client) => ask(client).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if error.is_gone() && Instant::now() < patience => {
                    self.lost.notify_one();
                    tokio::time::sleep(RETRY_EVERY).await;
                }
                other => return other,
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<Json, ClientError> {
        let Request {
            method,
            path,
            query,
            body,
            starts,
        } = request;
        self.request(|client| {
            let mut body = body.clone();
            if let (true, Some(Json::Object(body)), Some(_)) = (starts, &mut body, client.owner())
                // A saved workflow has rights of its own: those that it was saved with.
                && body.contains_key("text")
            {
                let guest = LocalStart {
                    guest: true,
                    ..LocalStart::default()
                };
                body.insert("local".to_owned(), json!(guest));
            }
            let (method, path, query) = (method.clone(), path.clone(), query.clone());
            async move { client.json(method, &path, &query, body.as_ref()).await }
        })
        .await
    }
}

fn text(error: ClientError) -> String {
    error.to_string()
}

/// Cuts a long answer, and says so.
fn cut(mut answer: String) -> String {
    if answer.len() > MAX_ANSWER {
        let all = answer.len();
        answer.truncate(first_bytes(&answer, MAX_ANSWER).len());
        answer.push_str(&format!(
            "… cut: {all} bytes in all. Ask for less: a smaller `limit`, or one iteration."
        ));
    }
    answer
}
