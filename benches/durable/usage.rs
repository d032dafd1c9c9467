//! What this process used: CPU, memory, bytes written.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// CPU of all threads so far, in microseconds.
pub fn cpu_us() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let all = usage.user_time() + usage.system_time();
    all.num_microseconds() as f64
}

/// Resident memory, in bytes.
pub fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    resident * 4096
}

/// Bytes that this process has handed to `write` (`wchar`), or the pages it made the disk write,
/// whole, with those of the file system (`write_bytes`).
pub fn written(counter: &str) -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines()
        .find_map(|line| line.strip_prefix(counter)?.strip_prefix(": "))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Bytes that a directory takes on the disk.
pub fn size_of(directory: &Path) -> u64 {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_of(&entry.path()),
            Ok(data) => data.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// The value below which this share of the sorted values lies.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share).ceil() as usize;
    values[place.clamp(1, values.len()) - 1]
}
