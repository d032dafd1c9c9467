//! The bare program: a workflow that only runs one activity repeatedly.

use std::sync::Arc;
use std::time::Duration;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::{ActivityOptions, Runtime, Worker, WorkerOptions};
use temporalio_sdk::{WorkflowContext, WorkflowResult};

/// Connects to the server at a port.
pub async fn client(port: u16) -> Client {
    let url = Url::parse(&format!("http://127.0.0.1:{port}")).unwrap();
    let options = ConnectionOptions::new(url).build();
    let connection = Connection::connect(options).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}

pub struct Activities {
    http: reqwest::Client,
}

#[activities]
impl Activities {
    /// Sends a request to a URL.
    #[activity]
    pub async fn ask(
        self: Arc<Self>,
        _context: ActivityContext,
        url: String,
    ) -> Result<String, ActivityError> {
        let answer = self.http.get(url).send().await.unwrap();
        Ok(answer.text().await.unwrap())
    }
}

/// A workflow that requests a URL a number of times.
#[workflow]
#[derive(Default)]
pub struct Asking;

#[workflow_methods]
impl Asking {
    #[run]
    pub async fn run(
        context: &mut WorkflowContext<Self>,
        input: (u32, String),
    ) -> WorkflowResult<u32> {
        let (times, url) = input;
        for _ in 0..times {
            let options =
                ActivityOptions::with_start_to_close_timeout(Duration::from_secs(60)).build();
            context
                .execute_activity(Activities::ask, url.clone(), options)
                .await?;
        }
        Ok(times)
    }
}

/// Runs a worker until the process is killed.
pub async fn work(port: u16, queue: &str) {
    let runtime = Runtime::from_current_tokio(Default::default()).unwrap();
    let http = reqwest::Client::new();
    let options = WorkerOptions::new(queue)
        .register_activities(Activities { http })
        .register_workflow::<Asking>()
        .unwrap()
        .build();
    let client = client(port).await;
    let mut worker = Worker::new(&runtime, client, options).unwrap();
    worker.run().await.unwrap();
}
