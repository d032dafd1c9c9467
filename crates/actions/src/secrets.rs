//! Secrets outside of the machine: where they are read, how a request gets them just before it is executed, and how
//! they are removed from its result.

use super::callback::Callbacks;
use super::mask::{MIN_UNUSUAL, Mask};
use super::secret_command::SecretCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_expression::{
    SecretMark, is_secret_name, of_callback, of_environment, replace_secret_marks,
};
use windlass_model::model::{CallbackClaim, Fault, Name, Request, fault_kind};

/// The prefix of environment variables that contain a secret.
const VARIABLE: &str = "WINDLASS_SECRET_";

/// The variable with the token for the server's API.
const TOKEN: &str = "WINDLASS_TOKEN";

const MAX_SECRET: u64 = 64 * 1024;

/// Where secrets are read from: files with the secret's name in directories, then the environment
/// (`WINDLASS_SECRET_NAME`), then a command.
#[derive(Clone, Debug)]
pub struct SecretSources {
    directories: Vec<PathBuf>,
    environment: bool,
    command: Option<SecretCommand>,
}

impl Default for SecretSources {
    /// Returns the default sources: the credentials that systemd passes (`$CREDENTIALS_DIRECTORY`), and the
    /// environment.
    fn default() -> Self {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Self {
            directories: credentials.into_iter().collect(),
            environment: true,
            command: None,
        }
    }
}

impl SecretSources {
    /// Makes an empty list of sources.
    #[must_use]
    pub fn none() -> Self {
        Self {
            directories: Vec::new(),
            environment: false,
            command: None,
        }
    }

    /// Adds the files of a directory, which has priority over the earlier ones.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directories.insert(0, directory.into());
        self
    }

    /// Adds a line for `sh` that prints the secret named by its `$1`. If the line has no `$1`, the name is its last
    /// argument. The line is run only for secrets that no other source has.
    #[must_use]
    pub fn with_command(mut self, line: &str) -> Self {
        self.command = Some(SecretCommand::new(line));
        self
    }

    /// Returns true if a secret of this name exists now. If there is a command, this is true for every valid name,
    /// because the command is not run for this check.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        let has_command = self.command.is_some() && is_secret_name(name);
        has_command || matches!(self.get(name), Ok(Some(_)))
    }

    /// Runs the command for a secret that no other source has.
    pub(super) async fn run_command(&self, name: &str) -> Result<(), String> {
        match self.command_for(name)? {
            Some(command) => command.run(name).await,
            None => Ok(()),
        }
    }

    /// Runs the command as [`Self::run_command`] does, but limited for unauthenticated callers:
    /// [`SecretCommand::run_limited`].
    pub(super) async fn run_command_limited(&self, name: &str) -> Result<(), String> {
        match self.command_for(name)? {
            Some(command) => command.run_limited(name).await,
            None => Ok(()),
        }
    }

    /// Returns the command, if no other source has the secret.
    fn command_for(&self, name: &str) -> Result<Option<&SecretCommand>, String> {
        let command = self.command.as_ref().filter(|_| is_secret_name(name));
        match command {
            Some(command) if self.get(name)?.is_none() => Ok(Some(command)),
            _ => Ok(None),
        }
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<String>, String> {
        if let Some(variable) = of_environment(name) {
            let read = || std::env::var(variable).ok();
            return Ok(self.environment.then(read).flatten());
        }
        if !is_secret_name(name) {
            return Ok(None);
        }
        // An empty secret would be sent, so it counts as missing, and the next source is read.
        for directory in &self.directories {
            let found = read(&directory.join(name))?;
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                return Ok(Some(found));
            }
        }
        let variable = || std::env::var(format!("{VARIABLE}{name}")).ok();
        let found = self.environment.then(variable).flatten();
        let found = found.filter(|found| !found.is_empty());
        let command = || self.command.as_ref()?.cached(name);
        Ok(found.or_else(command))
    }

    fn places(&self, name: &str) -> String {
        if let Some(variable) = of_environment(name) {
            return format!("the environment has no {variable}");
        }
        let files = self.directories.iter();
        let shown = |place: String, is_empty: bool| match is_empty {
            true => format!("{place} (which is empty)"),
            false => place,
        };
        let files = files.map(|directory| {
            let file = directory.join(name);
            shown(file.display().to_string(), file.is_file())
        });
        let variable = self.environment.then(|| {
            let variable = format!("{VARIABLE}{name}");
            let is_set = std::env::var_os(&variable).is_some_and(|value| value.is_empty());
            shown(format!("${variable}"), is_set)
        });
        let places: Vec<String> = files.chain(variable).collect();
        if places.is_empty() {
            return String::from("no source of secrets is given");
        }
        format!("looked for {}", places.join(", "))
    }
}

/// Returns true if an API key is masked in results. A short key is not: local servers accept any key, and a key such as
/// `test` would occur in every answer.
pub(super) fn is_hidden_key(key: &str) -> bool {
    key.len() >= MIN_UNUSUAL
}

/// Returns true if a name matches a pattern, in which a `*` matches any text.
#[must_use]
pub fn fits_pattern(pattern: &str, name: &str) -> bool {
    fits_parts(pattern.split('*'), name)
}

/// Returns true if a text consists of these parts in this order, with any text between two parts.
pub(super) fn fits_parts<'p>(mut parts: impl Iterator<Item = &'p str>, text: &str) -> bool {
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Returns true if only the engine may read this environment variable, and not the processes that actions start.
pub(super) fn is_engine_only(variable: &OsStr) -> bool {
    let name = variable.as_encoded_bytes();
    name.starts_with(VARIABLE.as_bytes()) || name == TOKEN.as_bytes()
}

/// Reads a file without its last line end. Returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, String> {
    let message = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(message(error)),
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_SECRET + 1);
    limited.read_to_string(&mut text).map_err(message)?;
    if text.len() as u64 > MAX_SECRET {
        return Err(format!(
            "{} is larger than {MAX_SECRET} bytes",
            path.display()
        ));
    }
    let end = text.trim_end_matches(['\n', '\r']).len();
    text.truncate(end);
    Ok(Some(text))
}

/// The secrets of one program, and which action names which secret.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    pub(super) sources: SecretSources,
    /// The names of the secrets that each action uses.
    pub(super) uses: Arc<BTreeMap<Name, Vec<Name>>>,
    /// The patterns of the secrets that guests (workflows from HTTP or MCP) may name. A `*` matches any text.
    pub(super) for_guests: Arc<Vec<String>>,
    /// Whether the program may name only the secrets that guests may name.
    pub(super) of_guest: bool,
    /// The patterns of the environment variables that programs may read.
    pub(super) readable: Arc<Vec<String>>,
    /// Whether the program may read every environment variable, and not only those of `readable`.
    pub(super) has_full_env: bool,
    pub(super) callbacks: Callbacks,
}

impl Secrets {
    /// Returns true if the program may read an environment variable.
    #[must_use]
    pub fn can_read_env(&self, variable: &str) -> bool {
        self.has_full_env
            || self
                .readable
                .iter()
                .any(|pattern| fits_pattern(pattern, variable))
    }

    /// Returns true if guests may name this secret. Also true for callback addresses, and for environment variables,
    /// which another check covers.
    #[must_use]
    pub fn allows_guest_secret(&self, name: &str) -> bool {
        of_environment(name).is_some()
            || of_callback(name).is_some()
            || self
                .for_guests
                .iter()
                .any(|pattern| fits_pattern(pattern, name))
    }

    /// Returns the command-line flag with which the program could name this secret. `None` if the program may name it
    /// already.
    fn denied(&self, name: &str) -> Option<String> {
        // A callback address is always allowed, because it sends signals only to the run itself.
        if of_callback(name).is_some() {
            return None;
        }
        match of_environment(name) {
            Some(variable) => {
                (!self.can_read_env(variable)).then(|| format!("--allow-env {variable}"))
            }
            None => {
                let may = !self.of_guest || self.allows_guest_secret(name);
                (!may).then(|| format!("--allow-secret {name}"))
            }
        }
    }

    /// Makes the fault of an action that names an unknown secret.
    fn missing(&self, name: &str) -> Fault {
        let places = self.sources.places(name);
        let shown = of_environment(name).unwrap_or(name);
        let message = format!("unknown secret `{shown}`: {places}");
        Fault::new(fault_kind::SECRET, message)
    }

    /// Returns the callback address for a signal of the action's own run. The run is not part of the placeholder in the
    /// request, because an expression could build a placeholder for another run.
    fn callback(&self, run: &str, signal: &str, claim: Option<&str>) -> Result<String, String> {
        let claim = claim.and_then(CallbackClaim::parse);
        let claim =
            claim.ok_or_else(|| format!("the mark of `callbackUrl('{signal}')` is damaged"))?;
        self.callbacks.address(run, signal, claim)
    }

    /// Returns the names of the secrets that an action uses.
    pub fn named_by(&self, action: &Name) -> &[Name] {
        self.uses.get(action).map_or(&[], Vec::as_slice)
    }

    /// Runs the command for secrets that no other source has, so that [`Self::open`] finds them in the cache.
    pub async fn fetch(&self, request: &Request) -> Result<(), Fault> {
        let own = self.named_by(&request.action);
        for name in own.iter().filter(|name| self.denied(name).is_none()) {
            let fetched = self.sources.run_command(name).await;
            fetched.map_err(|message| Fault::new(fault_kind::SECRET, message))?;
        }
        Ok(())
    }

    /// Replaces the placeholders in a request with the secrets. Also returns a mask for all secrets of the program.
    /// Returns `None` if the program names no secret.
    pub fn open(&self, request: &Request) -> Result<Option<ResolvedSecrets>, Fault> {
        if self.uses.is_empty() {
            return Ok(None);
        }
        let fault = |message: String| Fault::new(fault_kind::SECRET, message);
        let own = self.named_by(&request.action);
        let mut values = BTreeMap::new();
        let all: BTreeSet<&Name> = self.uses.values().flatten().collect();
        for name in all.into_iter().filter(|name| of_callback(name).is_none()) {
            if let Some(flag) = self.denied(name) {
                if own.contains(name) {
                    let shown = of_environment(name).unwrap_or(name);
                    let message = format!("the secret `{shown}` may not be named here: {flag}");
                    return Err(Fault::new(fault_kind::DENIED, message));
                }
                continue;
            }
            let found = self.sources.get(name);
            match found {
                Ok(Some(value)) => {
                    values.insert(name.clone(), value);
                }
                // Ignore it if a secret is missing that only other actions name.
                _ if !own.contains(name) => {}
                // An environment variable may be missing: its placeholder says whether it is required.
                Ok(None) if of_environment(name).is_some() => {}
                Ok(None) => return Err(self.missing(name)),
                Err(error) => {
                    return Err(fault(format!(
                        "the secret `{name}` cannot be read: {error}"
                    )));
                }
            }
        }
        let mut unset = None;
        let mut addresses = Vec::new();
        let mut no_address = None;
        let mut put = |inside: &str| {
            let marked = SecretMark::of(inside);
            if !own.iter().any(|own| **own == *marked.name) {
                return None;
            }
            if let Some(signal) = of_callback(marked.name) {
                return match self.callback(&request.run(), signal, marked.fallback) {
                    Ok(address) => {
                        // Mask the signature separately, because the result may contain it without the rest of the
                        // address.
                        let signature = address.rsplit_once('=').map(|(_, signature)| signature);
                        addresses.extend(signature.map(str::to_owned));
                        addresses.push(address.clone());
                        Some(address)
                    }
                    Err(why) => {
                        no_address = Some(why);
                        None
                    }
                };
            }
            let value = values.get(marked.name).map(String::as_str);
            let value = value.filter(|value| !(marked.or_empty && value.is_empty()));
            let put = value.or(marked.fallback);
            if put.is_none() {
                unset = Some(marked.name.to_owned());
            }
            put.map(str::to_owned)
        };
        let inputs = match own {
            [] => request.inputs.clone(),
            _ => replace_secret_marks(&request.inputs, &mut put),
        };
        if let Some(name) = unset {
            return Err(self.missing(&name));
        }
        if let Some(why) = no_address {
            return Err(fault(why));
        }
        let hidden = values.iter().filter_map(|(name, value)| {
            let short = of_environment(name).is_some() && !is_hidden_key(value);
            (!short).then_some(value.as_str())
        });
        let hidden = hidden.chain(addresses.iter().map(String::as_str));
        Ok(Some(ResolvedSecrets {
            request: Request {
                inputs,
                ..request.clone()
            },
            mask: Arc::new(Mask::of(hidden)),
        }))
    }
}

/// A request that contains secrets, with a mask that finds them. It is never stored.
pub struct ResolvedSecrets {
    pub request: Request,
    pub mask: Arc<Mask>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_secrets() {
        for (pattern, fitting) in [
            ("API", &["API"][..]),
            ("API_*", &["API_", "API_X", "API_X_KEY"]),
            ("*_KEY", &["_KEY", "X_KEY", "API_X_KEY"]),
            ("API*KEY", &["API_X_KEY"]),
            (
                "*",
                &["API", "API_", "API_X", "_KEY", "X_KEY", "API_X_KEY", "api"],
            ),
            ("*X*", &["API_X", "X_KEY", "API_X_KEY"]),
            ("", &[]),
        ] {
            let all = ["API", "API_", "API_X", "_KEY", "X_KEY", "API_X_KEY", "api"];
            let found: Vec<&str> = all
                .into_iter()
                .filter(|name| fits_pattern(pattern, name))
                .collect();
            assert_eq!(found, fitting, "{pattern}");
        }
    }
}
