//! The priority of threads that compute for long.

/// How much less of a processor they get than the others: about a third.
#[cfg(target_os = "linux")]
const STEPS: i32 = 5;

/// Lowers the priority of the calling thread, and of the threads and processes that it starts. Elsewhere than on
/// Linux it would be that of the whole process, and stays.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(STEPS) {
        tracing::debug!(%error, "the priority of a thread stays");
    }
}
