//! What this process has used: CPU time, memory, bytes written.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// CPU time of all threads so far, in microseconds.
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

/// Bytes that this process has written: as given to `write` (`wchar`), or as whole pages on the disk, with the file
/// system's own data (`write_bytes`).
pub fn written(counter: &str) -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines()
        .find_map(|line| line.strip_prefix(counter)?.strip_prefix(": "))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The space that a directory occupies on the disk, in bytes.
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
