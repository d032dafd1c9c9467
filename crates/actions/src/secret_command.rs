//! A command that prints secrets (`--secret-command`), for example by a query to a vault. Its results are cached in
//! memory for a minute, because every attempt reads its secrets again.

use super::process::error_lines;
use std::collections::BTreeMap;
use std::fmt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a value is cached. It expires so that a changed secret needs no restart.
const CACHE_LIFETIME: Duration = Duration::from_secs(60);

/// Timeout of the command.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between a failure and the next run of the command, if the caller is unauthenticated.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct SecretCommand {
    text: Arc<str>,
    cache: Arc<Mutex<BTreeMap<String, (Instant, String)>>>,
    /// When and why the last run of the command for an unauthenticated caller failed, by secret. Locked while the
    /// command runs for such a caller.
    failed: Arc<tokio::sync::Mutex<BTreeMap<String, (Instant, String)>>>,
}

impl fmt::Debug for SecretCommand {
    /// Omits the cached values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretCommand").field(&self.text).finish()
    }
}

impl SecretCommand {
    /// Makes a command of a line for `sh`, which finds the name of the secret in `$1`. If the line has no `$1`, the
    /// name is its last argument.
    pub(super) fn new(line: &str) -> Self {
        let named = line.contains("$1") || line.contains("${1}");
        let text = match named {
            true => line.to_owned(),
            false => format!("{line} \"$1\""),
        };
        Self {
            text: text.into(),
            cache: Arc::default(),
            failed: Arc::default(),
        }
    }

    /// Returns the value that the command printed for a secret less than a minute ago.
    pub(super) fn cached(&self, name: &str) -> Option<String> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, value) = cache.get(name)?;
        (at.elapsed() < CACHE_LIFETIME).then(|| value.clone())
    }

    /// Runs the command for a secret that is not cached.
    pub(super) async fn run(&self, name: &str) -> Result<(), String> {
        if self.cached(name).is_some() {
            return Ok(());
        }
        let mut command = tokio::process::Command::from(self.command(name));
        let message = |what: String| format!("--secret-command gave no secret `{name}`: {what}");
        let output = tokio::time::timeout(TIMEOUT, command.kill_on_drop(true).output()).await;
        let output =
            output.map_err(|_| message(format!("no end after {} s", TIMEOUT.as_secs())))?;
        let output = output.map_err(|error| message(error.to_string()))?;
        if !output.status.success() {
            let lines = error_lines(&String::from_utf8_lossy(&output.stderr));
            return Err(message(match lines.is_empty() {
                true => output.status.to_string(),
                false => format!("{}: {}", output.status, lines.join("\n  ")),
            }));
        }
        let text = String::from_utf8(output.stdout);
        let mut text = text.map_err(|_| message(String::from("its output is not valid UTF-8")))?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        if text.is_empty() {
            return Err(message(String::from("it printed nothing")));
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(name.to_owned(), (Instant::now(), text));
        Ok(())
    }

    /// Runs the command as [`Self::run`] does, for unauthenticated callers. Only one such command runs at a time, and
    /// none for [`PAUSE`] after a failure.
    pub(super) async fn run_limited(&self, name: &str) -> Result<(), String> {
        let mut failed = self.failed.lock().await;
        if let Some((at, why)) = failed.get(name)
            && at.elapsed() < PAUSE
        {
            return Err(why.clone());
        }
        let outcome = self.run(name).await;
        match &outcome {
            Ok(()) => drop(failed.remove(name)),
            Err(why) => drop(failed.insert(name.to_owned(), (Instant::now(), why.clone()))),
        }
        outcome
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &self.text, "sh", name]);
        command.stdin(Stdio::null());
        command
    }
}
