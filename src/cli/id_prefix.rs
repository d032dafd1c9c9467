//! Prefixes of run ids.
//! For an id that Windlass made, its beginning is sufficient if no other run has an id with the same beginning. For
//! an id that a user chose, the whole id is necessary: a command for `backfill-1` must not find `backfill-12`.

use super::args::{Command, Global};
use super::exit::Failure;
use super::list::runs;
use windlass_engine::report::ListFilter;
use windlass_engine::{ErrorCode, made_name};

/// Maximum number of run ids that a message lists if several begin with the given prefix.
const NAMED: usize = 10;

impl Command {
    /// Returns the argument of a command that names a run, if the command has one.
    pub fn run(&mut self) -> Option<&mut String> {
        match self {
            Self::Status(args) => args.run.as_mut(),
            Self::History(args) => Some(&mut args.run),
            Self::Export(args) => Some(&mut args.run),
            Self::Logs(args) => Some(&mut args.run),
            Self::Pause(args) | Self::Cancel(args) => args.run.as_mut(),
            Self::Signal(args) => Some(&mut args.run),
            Self::Retry(args) => args.run.as_mut(),
            Self::Resume(args) => args.run.as_mut(),
            Self::Dump(args) => args.run.as_mut(),
            _ => None,
        }
    }
}

/// Returns whether a command failed because no run has this id.
pub fn is_unknown(failure: &Failure) -> bool {
    failure.code() == Some(ErrorCode::UnknownRun)
}

/// Returns the id that begins with `short`, or `None` if no run has such an id.
///
/// # Errors
/// [`Failure::Usage`] if several runs have such ids, and errors of reading the list.
pub async fn expand(global: &Global, short: &str) -> Result<Option<String>, Failure> {
    let filter = ListFilter {
        prefix: Some(short.to_owned()),
        ..ListFilter::default()
    };
    let ids = runs(global, &filter)
        .await?
        .runs
        .into_iter()
        .map(|row| row.summary.run);
    let mut ids: Vec<String> = ids.filter(|id| is_cut(id, short)).collect();
    if ids.len() < 2 {
        return Ok(ids.pop());
    }
    let (count, more) = (ids.len(), ids.len().saturating_sub(NAMED));
    ids.truncate(NAMED);
    let mut shown = ids.join("\n  ");
    if more > 0 {
        shown.push_str(&format!("\n  and {more} more"));
    }
    Err(Failure::Usage(format!(
        "the ids of {count} runs begin with `{short}`:\n  {shown}"
    )))
}

/// Returns whether `short` abbreviates an id that Windlass made, `NAME-ULID`. It must be longer than `NAME`.
fn is_cut(id: &str, short: &str) -> bool {
    made_name(id).is_some_and(|name| id.starts_with(short) && short.len() > name.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::is_cut;

    #[test]
    fn only_what_windlass_made_is_cut_short() {
        let made = "sync-all-01M8010FVBET1JS2B51FZWNM56";
        assert!(is_cut(made, "sync-all-0"));
        assert!(is_cut(made, "sync-all-01M8010FVBET1JS2B51FZWNM5"));
        for short in ["sync-all-", "sync-all", "sync", "", "sync-all-01M9"] {
            assert!(!is_cut(made, short), "{short}");
        }
        assert!(!is_cut("backfill-12", "backfill-1"));
        assert!(!is_cut("nightly-at-20261121T023000Z", "nightly-at-2026"));
    }
}
