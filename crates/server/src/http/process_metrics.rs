//! The `process_*` metrics that Prometheus clients usually have, read from /proc.

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fs;

/// The unit of CPU times in /proc, in seconds. It is the same on all Linux machines.
const TICK: f64 = 0.01;

/// Returns the current metrics of this process. A metric that cannot be read is absent.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::default();
    let stat = Stat::read();
    if let Some(stat) = &stat {
        registry.register(
            "process_cpu_seconds",
            "User and system CPU time",
            ConstCounter::new(stat.cpu_ticks * TICK),
        );
    }
    let gauges = [
        (
            "process_resident_memory_bytes",
            "Resident memory",
            resident_bytes(),
        ),
        ("process_open_fds", "Open file descriptors", open_fds()),
        (
            "process_max_fds",
            "Maximum number of open file descriptors",
            max_fds(),
        ),
        (
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
            stat.and_then(|stat| Some(boot_time()? + stat.start_ticks * TICK)),
        ),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            registry.register(name, help, ConstGauge::new(value));
        }
    }
    registry
}

/// Values from /proc/self/stat.
struct Stat {
    cpu_ticks: f64,
    /// When the process started, in ticks since the machine started.
    start_ticks: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program is in parentheses, and may contain any character, so the fields after it are read.
        let (_, fields) = text.rsplit_once(')')?;
        // The first element of `fields` is the third field in the numbering of proc(5).
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<f64>().ok();
        Some(Self {
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
        })
    }
}

fn resident_bytes() -> Option<f64> {
    let kib = number_after("/proc/self/status", "VmRSS:")?;
    Some(kib * 1_024.0)
}

fn open_fds() -> Option<f64> {
    let files = fs::read_dir("/proc/self/fd").ok()?;
    // One is subtracted for the folder itself, which is open while it is read.
    let count = u32::try_from(files.count().saturating_sub(1)).ok()?;
    Some(f64::from(count))
}

fn max_fds() -> Option<f64> {
    number_after("/proc/self/limits", "Max open files")
}

/// Returns when the machine started, in seconds since 1970.
fn boot_time() -> Option<f64> {
    number_after("/proc/stat", "btime")
}

/// Returns the number after `name`, which is at the beginning of a line of the file.
fn number_after(path: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
