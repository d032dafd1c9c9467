//! `windlass mcp`: an agent starts, watches and signals loops, over the Model Context Protocol on
//! standard input and output. This process joins the owner of the store, or becomes it.

mod tools;

use super::access::{RETRY_EVERY, RETRY_TIME, remote};
use super::args::{Global, LoadArgs, McpArgs};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::Screen;
use super::session::{Session, Setup};
use super::signals::Signals;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;
use tools::{Call, Request};
use windlass_server::api::LocalStart;
use windlass_server::client::ClientError;
use windlass_value::first_bytes;

/// An answer is cut here, in bytes: an agent reads all of it.
const MAX_ANSWER: usize = 64 * 1024;

const INSTRUCTIONS: &str = "Windlass runs loops that survive a crash: poll until done, fetch every page, retry with \
     backoff, refine until valid. Read workflow_reference, check a text with validate_workflow, \
     start it with start_run, and inspect it with get_run. A run continues without a client; \
     wait_for_run returns its result.";

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
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::described()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = tools::call(&request.name, request.arguments.unwrap_or_default());
        let answer = match asked {
            Ok(Call::Page(page)) => Ok(page.to_owned()),
            Ok(Call::Ask(request)) => match self.ask(request).await {
                Ok(answer) => Ok(cut(answer.to_string())),
                Err(error) => Err(error.to_string()),
            },
            Err(message) => Err(message),
        };
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(message) => CallToolResult::error(vec![ContentBlock::text(message)]),
        };
        Ok(result.into())
    }
}

impl Agent {
    /// Asks the owner; the next one, or this process, when it has gone.
    async fn ask(&self, mut request: Request) -> Result<Json, ClientError> {
        let patience = Instant::now() + RETRY_TIME;
        let starts = request.path == "/v1/runs";
        loop {
            let answer = match self.setup.client().await {
                Ok(client) => {
                    if let (true, Some(Json::Object(body)), Some(_)) =
                        (starts, &mut request.body, client.owner())
                        // A workflow that is kept has rights of its own: whoever kept it gave them.
                        && body.contains_key("text")
                    {
                        let guest = LocalStart {
                            guest: true,
                            ..LocalStart::default()
                        };
                        body.insert("local".to_owned(), json!(guest));
                    }
                    let Request {
                        method,
                        path,
                        query,
                        body,
                    } = &request;
                    client
                        .json(method.clone(), path, query, body.as_ref())
                        .await
                }
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
