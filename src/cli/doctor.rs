//! `windlass doctor`: checks the store and what it needs from the machine, and repairs a store.

use super::access::{is_owned, remote};
use super::args::{DoctorArgs, Global, STATE};
use super::exit::{Exit, Failure};
use super::follow::target_flag;
use super::output::{self, Screen, counted};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use windlass_engine::TerminalText;
use windlass_engine::report::{ListFilter, RepairReport, StoreReport};
use windlass_engine::{EngineError, StoreError, check_audit_log, doctor};
use windlass_server::client::Client;

/// If the disk has less free space than this, in bytes, the check is a warning.
const LOW_DISK_BYTES: u64 = 512 << 20;
/// If the disk has less free space than this, in bytes, the check fails.
const NO_DISK_BYTES: u64 = 16 << 20;
/// If fewer files than this may be open, the check is a warning. Each request and each script needs some open files.
const FEW_FILES: u64 = 256;
/// Maximum length of a socket's path in bytes. A longer path needs `/proc`.
const SOCKET_PATH: usize = 103;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    Warning,
    Bad,
}

/// One check and its result.
#[derive(Clone, Debug, Serialize)]
struct Check {
    check: &'static str,
    health: Health,
    found: String,
}

impl Check {
    fn new(check: &'static str, health: Health, found: impl Into<String>) -> Self {
        Self {
            check,
            health,
            found: found.into(),
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct Report {
    checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<RepairReport>,
}

pub async fn run(global: &Global, screen: Screen, args: &DoctorArgs) -> Result<Exit, Failure> {
    if let Some(remote) = remote(global)? {
        if args.repair {
            return Err(Failure::Usage(String::from(
                "a store is repaired where it is: `windlass doctor --repair` on the server's machine",
            )));
        }
        let checks = vec![of_server(&remote).await?];
        let report = Report {
            checks,
            ..Report::default()
        };
        return print_report(global, &report, screen, args);
    }
    let state = &global.state;
    // The first run creates the default directory.
    if state != Path::new(STATE) && !state.is_dir() {
        return Err(EngineError::NoStore(state.clone()).into());
    }
    let owned = is_owned(global).await?;
    if owned && args.repair {
        return Err(Failure::Taken(String::from(
            "a process owns the store: stop it before --repair",
        )));
    }
    let mut report = Report::default();
    let mut examined = (!owned).then(|| doctor::examine(state));
    let is_whole = |found: &Result<StoreReport, EngineError>| matches!(found, Ok(found) if found.unreadable.is_empty());
    if args.repair && !examined.as_ref().is_some_and(is_whole) {
        report.repair = Some(doctor::repair(state)?);
        examined = Some(doctor::examine(state));
    }
    let checks = &mut report.checks;
    match examined {
        None => {
            let found = "not read: a process owns the store and its runs continue";
            checks.push(Check::new("store", Health::Good, found));
        }
        Some(examined) => match examined {
            Ok(found) => {
                checks.push(of_store(&found));
                report.store = Some(found);
            }
            Err(EngineError::NoStore(_)) => {
                checks.push(Check::new("store", Health::Good, "no store yet"));
            }
            Err(EngineError::Store(error @ StoreError::Locked { .. })) => {
                checks.push(Check::new("store", Health::Warning, error.to_string()));
            }
            Err(EngineError::Store(error @ StoreError::Io(_))) => {
                let found = format!(
                    "{error}: it can be checked only where it can be written; this does not mean that it is damaged"
                );
                checks.push(Check::new("store", Health::Bad, found));
            }
            Err(EngineError::Store(error @ StoreError::Unopened { .. })) => {
                checks.push(Check::new("store", Health::Bad, error.to_string()));
            }
            Err(error) => return Err(error.into()),
        },
    }
    if let Err(error) = check_audit_log(state) {
        let check = Check::new("audit", Health::Bad, error.to_string());
        report.checks.push(check);
    }
    check_machine(state, &mut report.checks);
    print_report(global, &report, screen, args)
}

/// Checks whether a server (`--server`) accepts work, and whether it accepts requests from this client.
async fn of_server(remote: &Client) -> Result<Check, Failure> {
    remote.ready().await?;
    let filter = ListFilter {
        limit: Some(1),
        ..ListFilter::default()
    };
    remote.list(&filter).await?;
    let found = format!(
        "{} accepts requests and authorises this client",
        remote.url()
    );
    Ok(Check::new("server", Health::Good, found))
}

fn print_report(
    global: &Global,
    report: &Report,
    screen: Screen,
    args: &DoctorArgs,
) -> Result<Exit, Failure> {
    let worst = report.checks.iter().map(|check| check.health).max();
    output::show(args.output.output, report, || {
        text(report, &target_flag(global), screen)
    })?;
    // A repair that lost data counts as failed even if all runs were recovered, because their last reports or steps
    // may be missing.
    let whole = report.repair.as_ref().is_none_or(|repair| {
        repair.lost.is_empty() && repair.unreadable.is_empty() && !repair.stand_still
    });
    Ok(if worst == Some(Health::Bad) || !whole {
        Exit::Store
    } else {
        Exit::Succeeded
    })
}

fn of_store(found: &StoreReport) -> Check {
    if found.unreadable.is_empty() {
        let text = format!("{} runs, all of them can be read", found.runs);
        return Check::new("store", Health::Good, text);
    }
    let what = match found
        .unreadable
        .iter()
        .any(|one| one.what == doctor::THE_STORE)
    {
        true => String::from("it does not open"),
        false => format!(
            "{} damaged, {} complete",
            counted(found.unreadable.len() as u64, "place"),
            counted(found.runs, "run")
        ),
    };
    let text = format!(
        "{what}: --repair builds a new store from all that is readable, and renames this one"
    );
    Check::new("store", Health::Bad, text)
}

/// Checks what a store and its runs need of the machine.
fn check_machine(state: &Path, checks: &mut Vec<Check>) {
    let place = state
        .ancestors()
        .map(|path| match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        })
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("/"));
    checks.push(writes(place));
    checks.push(room(place));
    checks.push(socket(state));
    checks.push(files());
    checks.push(interpreter("python3", "scripts in Python"));
    checks.push(interpreter("swipl", "scripts in Prolog"));
}

/// Checks whether a file can be written in this directory and made durable.
fn writes(place: &Path) -> Check {
    let name = place.join(format!(".windlass-doctor-{}", std::process::id()));
    let tried = std::fs::File::create_new(&name).and_then(|mut file| {
        file.write_all(b"windlass")?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&name);
    match tried {
        Ok(()) => Check::new("disk", Health::Good, "a file was written and synced"),
        Err(error) => {
            let text = format!("{} cannot be written: {error}", place.display());
            Check::new("disk", Health::Bad, text)
        }
    }
}

#[allow(
    clippy::useless_conversion,
    reason = "on macOS blocks are counted in 32 bits"
)]
fn room(place: &Path) -> Check {
    match statvfs(place) {
        Ok(found) => {
            let blocks = u64::from(found.blocks_available());
            let free = blocks.saturating_mul(found.fragment_size());
            let health = match free {
                0..NO_DISK_BYTES => Health::Bad,
                NO_DISK_BYTES..LOW_DISK_BYTES => Health::Warning,
                _ => Health::Good,
            };
            Check::new("room", health, format!("{} MiB are free", free >> 20))
        }
        Err(error) => Check::new("room", Health::Warning, format!("not known: {error}")),
    }
}

fn socket(state: &Path) -> Check {
    let length = state.as_os_str().len() + "/control.new/s".len();
    if length <= SOCKET_PATH {
        return Check::new("socket", Health::Good, "its path is short enough");
    }
    if Path::new("/proc/self/fd").is_dir() {
        let text = "its path is long; it is reached through /proc";
        return Check::new("socket", Health::Good, text);
    }
    let text = format!("its path has {length} bytes, and {SOCKET_PATH} fit: use a shorter --state");
    Check::new("socket", Health::Bad, text)
}

fn files() -> Check {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((limit, _)) => {
            let health = if limit < FEW_FILES {
                Health::Warning
            } else {
                Health::Good
            };
            Check::new("files", health, format!("{limit} may be open at a time"))
        }
        Err(error) => Check::new("files", Health::Warning, format!("not known: {error}")),
    }
}

fn interpreter(name: &'static str, use_: &str) -> Check {
    let tried = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            let line = stdout.lines().next().unwrap_or_default().trim().to_owned();
            Check::new(name, Health::Good, line)
        }
        _ => {
            let text = format!("not found: {use_} cannot run");
            Check::new(name, Health::Warning, text)
        }
    }
}

fn text(report: &Report, target: &str, screen: Screen) -> TerminalText {
    let (mut text, mut lines) = (TerminalText::default(), Vec::new());
    for check in &report.checks {
        let (code, word) = match check.health {
            Health::Good => ("32", "good   "),
            Health::Warning => ("33", "warning"),
            Health::Bad => ("31", "bad    "),
        };
        let word = TerminalText::tinted(screen.colour, code, word);
        text.push(&word.and(format!("  {:<8} {}\n", check.check, check.found)));
    }
    let of_store = report.store.iter().flat_map(|store| &store.unreadable);
    let of_repair = report.repair.iter().flat_map(|repair| &repair.unreadable);
    for one in of_store.chain(of_repair) {
        let run = one.run.as_deref().map(|run| format!(" of run {run}"));
        let run = run.unwrap_or_default();
        lines.push(format!("unreadable  {}{run}: {}", one.what, one.error));
    }
    if let Some(repair) = &report.repair {
        lines.push(format!(
            "repaired  {} runs are in the new store; the damaged one is {}",
            repair.retained.len(),
            repair.old
        ));
        for run in &repair.lost {
            lines.push(format!("lost      run {run}"));
        }
        if repair.stand_still && !repair.retained.is_empty() {
            lines.push(format!(
                "hint      runs may be older than they were, so none continues automatically: \
                 `windlass resume{target} RUN` repeats the lost steps"
            ));
        }
    }
    text.and(lines.join("\n"))
}
