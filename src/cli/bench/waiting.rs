//! `windlass bench waiting`.
//! It measures the cost of loops that wait for an hour, the time until a server is ready after a SIGKILL, and the
//! delay of loops that are due in the same second.

use super::process::Server;
use super::{Bench, clock, millis, next_request, quantile, start_all, start_target};
use crate::cli::exit::Failure;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;
use windlass_engine::report::ListFilter;
use windlass_engine::{Timestamp, Value, now};

/// A loop that has finished one iteration and waits an hour for the next one.
const WAITS: &str = "
name: waits
inputs: { n: { type: integer } }
actions:
  wait:
    type: until
    condition: \"@equals(1, 2)\"
    limit: { count: 10, timeout: PT10H }
    delay: PT1H
    actions:
      step: { type: compose, inputs: \"@inputs('n')\" }
";

/// A run that waits until an instant, and then sends one request.
const DUE: &str = "
name: due
inputs: { url: { type: string }, at: { type: string } }
actions:
  wait: { type: wait, inputs: { until: \"@inputs('at')\" } }
  ask: { type: http, inputs: { method: GET, uri: \"@inputs('url')\" } }
";

/// Maximum number of runs whose due times are in the same second.
const MAX_DUE: u32 = 10_000;

/// The time after which waiting runs have left the memory.
const REST: Duration = Duration::from_secs(1);

/// Number of reads of a page. Their median is reported.
const READS: usize = 9;

impl Bench<'_> {
    pub(super) async fn waiting(&mut self) -> Result<(), Failure> {
        for loops in self.args.loops.clone() {
            self.wait_of(loops).await?;
        }
        Ok(())
    }

    async fn wait_of(&mut self, loops: u32) -> Result<(), Failure> {
        let name = |what: &str| format!("{loops} loops, {what}");
        let scratch = self.scratch()?;
        let server = self.serve(&scratch, WAITS).await?;
        let state = scratch.path().join("state");
        let (empty, no_bytes) = (server.memory(), disk_bytes(&state)?);
        let (begun, cpu) = (clock(), server.cpu_us());
        let inputs = (0..loops).map(|n| Value::from_pairs([("n", Value::from(i64::from(n)))]));
        let last = start_all(&server, inputs).await?;
        let starts = (clock() - begun).as_secs_f64();
        let count = f64::from(loops);
        self.add_figure(name("started a second"), count / starts, "/s");
        if let (Some(before), Some(after)) = (cpu, server.cpu_us()) {
            self.add_figure(name("CPU a start"), (after - before) / count, "µs");
        }
        sleep(REST).await;
        if let (Some(empty), Some(now)) = (empty, server.memory()) {
            self.add_figure(name("memory"), now / 1e6, "MB");
            self.add_figure(name("memory a loop"), (now - empty) / count, "B");
        }
        let bytes = disk_bytes(&state)?.saturating_sub(no_bytes);
        self.add_figure(name("disk a loop"), bytes as f64 / count, "B");
        self.pages(&server, &name, &last).await?;
        self.backup(&scratch.path().join("copy"), &server, &name, &state)
            .await?;
        drop(server);
        let begun = clock();
        let server = self.restart_server(&scratch)?;
        server.client.ready().await?;
        let ready = clock() - begun;
        self.add_figure(name("ready after SIGKILL"), ready.as_secs_f64(), "s");
        if let Some(memory) = server.memory() {
            self.add_figure(name("memory after it"), memory / 1e6, "MB");
        }
        self.due_at_once(&server, loops.min(MAX_DUE), &name).await
    }

    /// Measures the time to read the list: its first page, a page in the middle, one run by its id, and counts.
    async fn pages(
        &mut self,
        server: &Server,
        name: &impl Fn(&str) -> String,
        run: &str,
    ) -> Result<(), Failure> {
        let page = ListFilter {
            detail: true,
            limit: Some(100),
            ..ListFilter::default()
        };
        let total = server.client.list(&page).await?.total;
        let reads = [
            ("the first page of the list", page.clone()),
            (
                "a page in the middle",
                ListFilter {
                    offset: total / 2,
                    ..page.clone()
                },
            ),
            (
                "a search",
                ListFilter {
                    text: Some(run.to_owned()),
                    ..page.clone()
                },
            ),
            (
                "counts",
                ListFilter {
                    facets: true,
                    limit: Some(1),
                    ..page
                },
            ),
        ];
        for (what, filter) in reads {
            let mut times = Vec::new();
            for _ in 0..READS {
                let begun = clock();
                server.client.list(&filter).await?;
                times.push(millis(clock() - begun));
            }
            self.add_figure(name(what), quantile(&mut times, 0.5), "ms");
        }
        Ok(())
    }

    async fn backup(
        &mut self,
        to: &Path,
        server: &Server,
        name: &impl Fn(&str) -> String,
        state: &Path,
    ) -> Result<(), Failure> {
        let owner = windlass_server::client::Client::for_state_dir(state).await?;
        let Some(owner) = owner else {
            let gone = "the server does not own its store";
            return Err(Failure::Machine(io::Error::other(gone)));
        };
        let to = std::path::absolute(to).map_err(Failure::Machine)?;
        let begun = clock();
        let copying = owner.backup(&to);
        tokio::pin!(copying);
        let mut worst: Option<f64> = None;
        loop {
            tokio::select! {
                copied = &mut copying => {
                    copied?;
                    break;
                }
                () = sleep(Duration::from_millis(20)) => {
                    let started = clock();
                    server.client.ready().await?;
                    let took = millis(clock() - started);
                    worst = Some(worst.map_or(took, |worst| worst.max(took)));
                }
            }
        }
        self.add_figure(name("a backup"), (clock() - begun).as_secs_f64(), "s");
        if let Some(worst) = worst {
            self.add_figure(name("the longest answer during it"), worst, "ms");
        }
        Ok(())
    }

    /// Measures how late runs start if their due times are spread over one second.
    async fn due_at_once(
        &mut self,
        server: &Server,
        runs: u32,
        name: &impl Fn(&str) -> String,
    ) -> Result<(), Failure> {
        let target = start_target()?;
        self.put(server, DUE).await?;
        // The due times are after all starts, because this is longer than the starts need.
        let begins = Duration::from_millis(2_000 + u64::from(runs));
        let (first, begun) = (now().plus(begins), clock());
        let due = |n: u32| Duration::from_micros(u64::from(n) * 1_000_000 / u64::from(runs));
        let inputs = (0..runs).map(|n| {
            let at: Timestamp = first.plus(due(n));
            Value::from_pairs([
                ("url", Value::text(target.url.as_str())),
                ("at", Value::text(at.to_string())),
            ])
        });
        start_all(server, inputs).await?;
        if clock() - begun > begins {
            let slow = "the runs were due before all of them were started";
            return Err(Failure::Machine(io::Error::other(slow)));
        }
        let mut late = Vec::new();
        for n in 0..runs {
            // Timers fire in the order of their due times, so the next request is that of run `n`.
            let elapsed = next_request(&target)? - begun;
            late.push(millis(elapsed.saturating_sub(begins + due(n))));
        }
        let what = format!("{runs} due in one second, late p99");
        self.add_figure(name(&what), quantile(&mut late, 0.99), "ms");
        Ok(())
    }
}

/// Returns the size of all files in a directory, in bytes.
fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
    let sum = |dir: &Path| -> io::Result<u64> {
        let mut bytes = 0;
        let mut folders = vec![dir.to_owned()];
        while let Some(folder) = folders.pop() {
            // The database may remove a file or folder while the folders are read.
            for entry in std::fs::read_dir(&folder).into_iter().flatten() {
                let entry = entry?;
                match entry.metadata() {
                    Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                    Ok(meta) => bytes += meta.len(),
                    Err(_) => {}
                }
            }
        }
        Ok(bytes)
    };
    sum(dir).map_err(Failure::Machine)
}
