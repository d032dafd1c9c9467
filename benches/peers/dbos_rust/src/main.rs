//! DBOS in Rust with its client: `dbos-peer FOLDER SERVER DATABASE`. Reads jobs as JSON lines and runs them.

use dbos::{Config, DBOS, WorkflowRef, step};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};

/// The number of steps of a workflow that would otherwise run forever: after a restart, DBOS reads all steps of a
/// workflow again.
const STEPS: u64 = 500;

/// How many runs are started at the same time: one per connection.
const STARTS: usize = 50;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a step failed.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
struct StepError(String);

impl StepError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

type Durable<T> = dbos::Result<T, StepError>;

#[derive(Deserialize)]
#[serde(tag = "work", content = "sizes", rename_all = "lowercase")]
enum Work {
    Loop { count: u64 },
    Loops { runs: usize, count: u64 },
    Polls { key: String, count: u64 },
    Begin { key: String },
    Sleepers { count: usize },
    Pages { path: String, count: u64 },
}

struct Worker {
    database: PgPool,
    repeat: WorkflowRef<u64, u64, StepError>,
    polls: WorkflowRef<(String, u64), (), StepError>,
    sleeper: WorkflowRef<(), (), StepError>,
    pages: WorkflowRef<(String, u64), u64, StepError>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(2);
    let (Some(server), Some(database)) = (arguments.next(), arguments.next()) else {
        return Err("usage: dbos-peer FOLDER SERVER DATABASE".into());
    };
    let dbos = DBOS::new(Config {
        app_version: Some("1".to_owned()),
        max_connections: 50,
        // The default of one second would be part of each measured time.
        outcome_poll_interval: Some(Duration::from_millis(20)),
        ..Config::new("peers", &database)
    });
    let worker = register(&dbos, &server, &database)?;
    dbos.launch().await?;
    println!("{}", json!({ "ready": true }));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = match worker.work(serde_json::from_str(&line)?).await {
            Ok((seconds, done)) => json!({ "seconds": seconds, "done": done }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        println!("{answer}");
    }
    Ok(())
}

fn register(dbos: &DBOS, server: &str, database: &str) -> Result<Worker, Failure> {
    let client = reqwest::Client::new();
    let base = format!("http://{server}");
    let repeat = dbos.register_workflow("loop", |count: u64| async move {
        let mut n = 0;
        while n < count {
            n = step("step", || async move { Durable::Ok(n + 1) }).await?;
        }
        Durable::Ok(n)
    })?;
    let next: Arc<OnceLock<WorkflowRef<(String, u64), (), StepError>>> = Arc::default();
    let polls = {
        let (client, base, next) = (client.clone(), base.clone(), Arc::clone(&next));
        dbos.register_workflow("polls", move |(key, count): (String, u64)| {
            let (client, base, next) = (client.clone(), base.clone(), Arc::clone(&next));
            async move {
                let url = format!("{base}/poll/{key}?until={count}");
                for _ in 0..if count == 0 { STEPS } else { count } {
                    let poll = || get(&client, &url);
                    let answer: Value = step("poll", poll).await?;
                    if answer["status"] == "complete" {
                        return Ok(());
                    }
                }
                if let Some(next) = next.get() {
                    next.start((key, count)).await?;
                }
                Durable::Ok(())
            }
        })?
    };
    let _ = next.set(polls.clone());
    let sleeper = dbos.register_workflow("sleeper", |()| async {
        dbos::sleep(Duration::from_secs(43_200)).await
    })?;
    let pages = dbos.register_workflow("pages", move |(path, count): (String, u64)| {
        let (client, base) = (client.clone(), base.clone());
        async move {
            let (mut number, mut length) = (Some(1), 0);
            while let Some(page) = number {
                let url = format!("{base}/page?number={page}&pages={count}");
                // The rows are in the file when the step ends.
                let fetch = || async {
                    let page = get(&client, &url).await?;
                    let length = append_rows(&path, length, &page["items"]);
                    let length = length.map_err(StepError::new)?;
                    Durable::Ok((page["next"].as_u64(), length))
                };
                (number, length) = step("fetch", fetch).await?;
            }
            Durable::Ok(length)
        }
    })?;
    Ok(Worker {
        database: PgPool::connect_lazy(database)?,
        repeat,
        polls,
        sleeper,
        pages,
    })
}

async fn get(client: &reqwest::Client, url: &str) -> Durable<Value> {
    let answer = client.get(url).send().await.map_err(StepError::new)?;
    Ok(answer.json().await.map_err(StepError::new)?)
}

/// Truncates the file to `length`, appends the rows and syncs. Returns the new length. A repeated step thus replaces
/// what the interrupted one wrote.
fn append_rows(path: &str, length: u64, rows: &Value) -> std::io::Result<u64> {
    let mut lines = Vec::new();
    for row in rows.as_array().into_iter().flatten() {
        serde_json::to_writer(&mut lines, row)?;
        lines.push(b'\n');
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    file.write_all(&lines)?;
    file.sync_data()?;
    file.stream_position()
}

impl Worker {
    /// Runs a job. Returns its seconds, and how much of it is in the store afterwards.
    async fn work(&self, work: Work) -> Result<(f64, i64), Failure> {
        let begin = Instant::now();
        match work {
            Work::Loop { count } => {
                let before = self.steps("step").await?;
                self.repeat.start(count).await?.result().await?;
                let seconds = begin.elapsed().as_secs_f64();
                Ok((seconds, self.steps("step").await? - before))
            }
            Work::Loops { runs, count } => {
                let before = self.steps("step").await?;
                let begin = Instant::now();
                let starts = stream::iter(0..runs).map(async |_| self.repeat.start(count).await);
                let handles: Vec<_> = starts.buffer_unordered(STARTS).try_collect().await?;
                for handle in handles {
                    handle.result().await?;
                }
                let seconds = begin.elapsed().as_secs_f64();
                Ok((seconds, self.steps("step").await? - before))
            }
            Work::Polls { key, count } => {
                let before = self.steps("poll").await?;
                let begin = Instant::now();
                self.polls.start((key, count)).await?.result().await?;
                let seconds = begin.elapsed().as_secs_f64();
                Ok((seconds, self.steps("poll").await? - before))
            }
            Work::Begin { key } => {
                self.polls.start((key, 0)).await?;
                Ok((0.0, 0))
            }
            Work::Sleepers { count } => {
                let starts = stream::iter(0..count).map(async |_| self.sleeper.start(()).await);
                let _: Vec<_> = starts.buffer_unordered(STARTS).try_collect().await?;
                while self.steps("DBOS.sleep").await? < i64::try_from(count)? {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                let seconds = begin.elapsed().as_secs_f64();
                let query = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'PENDING' AND name = 'sleeper'";
                let sleep: i64 = sqlx::query_scalar(query).fetch_one(&self.database).await?;
                Ok((seconds, sleep))
            }
            Work::Pages { path, count } => {
                let file = path.clone();
                self.pages.start((path, count)).await?.result().await?;
                let seconds = begin.elapsed().as_secs_f64();
                let rows = std::fs::read_to_string(file)?.lines().count();
                Ok((seconds, i64::try_from(rows)?))
            }
        }
    }

    /// How many steps of a function the database contains.
    async fn steps(&self, function: &str) -> Result<i64, Failure> {
        let query = "SELECT count(*) FROM dbos.operation_outputs WHERE function_name = $1";
        let count = sqlx::query_scalar(query).bind(function);
        Ok(count.fetch_one(&self.database).await?)
    }
}
