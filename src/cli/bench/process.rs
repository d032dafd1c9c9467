//! A `windlass serve` process of this program with its own store. It is started, measured and killed.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use windlass_engine::StoreKind;
use windlass_server::client::Client;

/// A directory that is removed with its contents when this value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(at: &Path) -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let made = at.join(format!("windlass-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&made).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", made.display()))
        })?;
        Ok(Self(made))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that cannot be removed is left behind. Nothing depends on its removal.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server. It is killed when this value is dropped.
pub struct Server {
    process: Child,
    pub client: Client,
}

impl Server {
    /// Starts a server on the store in a directory, and waits until the server is ready.
    pub fn start(state: &Path, store: StoreKind) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--max-count", "2000000"])
            .arg("--allow-private-network")
            .arg("--state")
            .arg(state)
            .args(["--store", &store.to_string()])
            .env_remove("WINDLASS_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut last_line = String::new();
        if let Some(errors) = process.stderr.take() {
            let mut lines = BufReader::new(errors).lines();
            while let Some(line) = lines.next().transpose()? {
                if let Some(url) = line.strip_prefix("ready at ") {
                    let client =
                        Client::for_url(url.trim(), None, false).map_err(io::Error::other)?;
                    // All output of the server is read, because otherwise the server would wait when the pipe is
                    // full.
                    thread::spawn(move || lines.for_each(drop));
                    return Ok(Self { process, client });
                }
                last_line = line;
            }
        }
        let _ = process.wait();
        Err(io::Error::other(format!(
            "`windlass serve` did not start: {last_line}"
        )))
    }

    /// Returns the CPU time of all threads so far, in microseconds. Returns `None` if the system does not report it.
    pub fn cpu_us(&self) -> Option<f64> {
        let stat = self.proc("stat")?;
        // The name before `)` may contain blanks. After it are the state and further fields; the ticks are the 12th
        // and 13th.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_whitespace().skip(11);
        let user: f64 = ticks.next()?.parse().ok()?;
        let system: f64 = ticks.next()?.parse().ok()?;
        // Linux reports CPU times to programs in units of 1/100 s.
        Some((user + system) * 10_000.0)
    }

    /// Returns the resident memory in bytes. Returns `None` if the system does not report it.
    pub fn memory(&self) -> Option<f64> {
        let status = self.proc("status")?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024.0)
    }

    fn proc(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
