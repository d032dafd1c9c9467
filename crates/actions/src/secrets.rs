//! Secrets, as far as the world knows them: where they come from, how they get into a request just
//! before it is carried out, and how they are taken out of what comes back. What is given to the
//! machine never holds one.
//!
//! A secret is read each time, so that a new one needs no restart.

use super::callback::Callbacks;
use super::encodings::{base64, unescaped};
use super::secret_command::SecretCommand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_expression::{
    Value, WithMarks, is_secret_name, map_texts, of_callback, of_environment, replace_secret_marks,
};
use windlass_model::model::{CallbackClaim, Fault, Name, Request, fault_kind};

/// What replaces a secret in everything that is stored or shown.
pub const MASK: &str = "***";

/// What an environment variable with a secret begins with.
const VARIABLE: &str = "WINDLASS_SECRET_";

/// The variable with the token of the server's API.
const TOKEN: &str = "WINDLASS_TOKEN";

/// Fewer bytes are no key worth hiding.
const MIN_KEY: usize = 8;

const MAX_SECRET: u64 = 64 * 1024;

/// Minimum bytes of a secret that is also found inside of Base64: less leaves too few letters that
/// do not depend on what is around it.
const MIN_ENCODED: usize = 6;

/// So often a text is read in another way, one after the other: Base64 of Base64, with escapes, in JSON.
const LAYERS: u32 = 4;

/// Where secrets come from: files named like them in directories, then the environment
/// (`WINDLASS_SECRET_NAME`), then a command.
#[derive(Clone, Debug)]
pub struct SecretSources {
    directories: Vec<PathBuf>,
    environment: bool,
    command: Option<SecretCommand>,
}

impl Default for SecretSources {
    /// The credentials that systemd hands over (`$CREDENTIALS_DIRECTORY`), and the environment.
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
    /// No source at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            directories: Vec::new(),
            environment: false,
            command: None,
        }
    }

    /// These with the files of a directory, which come first.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directories.insert(0, directory.into());
        self
    }

    /// These with a line for `sh` that prints the secret named by its `$1`, or by its last word when it
    /// has no `$1`. It is asked for what is nowhere else.
    #[must_use]
    pub fn with_command(mut self, line: &str) -> Self {
        self.command = Some(SecretCommand::new(line));
        self
    }

    /// Whether there is a secret of this name now. What a command would give is not asked for.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        let asked = self.command.is_some() && is_secret_name(name);
        asked || matches!(self.get(name), Ok(Some(_)))
    }

    /// Asks the command for a secret that is nowhere else.
    pub(super) async fn ask(&self, name: &str) -> Result<(), String> {
        match &self.command {
            Some(command) if is_secret_name(name) && self.get(name)?.is_none() => {
                command.ask(name).await
            }
            _ => Ok(()),
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
        for directory in &self.directories {
            if let Some(found) = read(&directory.join(name))? {
                return Ok(Some(found));
            }
        }
        let variable = || std::env::var(format!("{VARIABLE}{name}")).ok();
        let found = self.environment.then(variable).flatten();
        let command = || self.command.as_ref()?.cached(name);
        Ok(found.or_else(command))
    }

    fn places(&self, name: &str) -> String {
        if let Some(variable) = of_environment(name) {
            return format!("the environment has no {variable}");
        }
        let files = self.directories.iter();
        let files = files.map(|directory| directory.join(name).display().to_string());
        let variable = self.environment.then(|| format!("${VARIABLE}{name}"));
        let places: Vec<String> = files.chain(variable).collect();
        if places.is_empty() {
            return String::from("no source of secrets is given");
        }
        format!("looked for {}", places.join(", "))
    }
}

/// Whether a key is hidden in what comes back. Servers on one's own machine take any key, and one
/// such as `test` would be found in every answer.
pub(super) fn is_hidden_key(key: &str) -> bool {
    key.len() >= MIN_KEY
}

/// Whether a name fits a pattern, in which a `*` matches any text.
#[must_use]
pub fn fits_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    true
}

/// Whether a variable of the environment is for the engine alone, and for none of the processes
/// that actions start.
pub(super) fn is_engine_only(variable: &OsStr) -> bool {
    let name = variable.as_encoded_bytes();
    name.starts_with(VARIABLE.as_bytes()) || name == TOKEN.as_bytes()
}

/// A file's text without the end of its last line; none when there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error)),
    };
    let mut text = String::new();
    let mut limited = file.take(MAX_SECRET + 1);
    limited.read_to_string(&mut text).map_err(told)?;
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

/// The secrets of one program: which action names which.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    sources: SecretSources,
    uses: Arc<BTreeMap<Name, Vec<Name>>>,
    for_guests: Arc<Vec<String>>,
    of_guest: bool,
    readable: Arc<Vec<String>>,
    free: bool,
    callbacks: Callbacks,
}

impl Secrets {
    pub fn set_sources(&mut self, sources: SecretSources) {
        self.sources = sources;
    }

    pub fn set_callbacks(&mut self, callbacks: Callbacks) {
        self.callbacks = callbacks;
    }

    pub fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    /// The names that guests may name; a `*` in one matches any text.
    pub fn allow_guest_secrets(&mut self, patterns: Vec<String>) {
        self.for_guests = Arc::new(patterns);
    }

    /// The same for a program that may name only what guests may.
    #[must_use]
    pub fn of_guest(&self, of_guest: bool) -> Self {
        Self {
            of_guest,
            ..self.clone()
        }
    }

    /// The same for a program that may read all of the environment, or only what it is let.
    #[must_use]
    pub fn reading(self, free: bool) -> Self {
        Self { free, ..self }
    }

    /// Variables of the environment that may be read; a `*` in a name matches any text.
    pub fn allow_env(&mut self, patterns: &[String]) {
        Arc::make_mut(&mut self.readable).extend_from_slice(patterns);
    }

    /// Whether a variable of the environment may be read.
    #[must_use]
    pub fn can_read_env(&self, variable: &str) -> bool {
        self.free
            || self
                .readable
                .iter()
                .any(|pattern| fits_pattern(pattern, variable))
    }

    /// Whether guests may name this secret. A separate check covers what they may read of the environment.
    #[must_use]
    pub fn allows_guest_secret(&self, name: &str) -> bool {
        of_environment(name).is_some()
            || of_callback(name).is_some()
            || self
                .for_guests
                .iter()
                .any(|pattern| fits_pattern(pattern, name))
    }

    /// The flag that would let the program name this secret; none when it may.
    fn denied(&self, name: &str) -> Option<String> {
        // It answers a signal of the run itself.
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

    pub fn sources(&self) -> &SecretSources {
        &self.sources
    }

    /// The same sources for the actions of a program.
    #[must_use]
    pub fn used_by(&self, uses: BTreeMap<Name, Vec<Name>>) -> Self {
        Self {
            uses: Arc::new(uses),
            ..self.clone()
        }
    }

    /// Why an action that names an unknown secret cannot begin.
    fn missing(&self, name: &str) -> Fault {
        let places = self.sources.places(name);
        let shown = of_environment(name).unwrap_or(name);
        let message = format!("unknown secret `{shown}`: {places}");
        Fault::new(fault_kind::SECRET, message)
    }

    /// The address that answers a signal, from what its mark claims.
    fn callback(&self, signal: &str, claim: Option<&str>) -> Result<String, String> {
        let claim = claim.and_then(CallbackClaim::parse);
        let claim =
            claim.ok_or_else(|| format!("the mark of `callbackUrl('{signal}')` is damaged"))?;
        self.callbacks.address(signal, &claim)
    }

    /// Fetches what only a command knows, for [`Self::open`].
    pub async fn fetch(&self, request: &Request) -> Result<(), Fault> {
        let own = self.uses.get(&request.action);
        let own: &[Name] = own.map_or(&[], Vec::as_slice);
        for name in own.iter().filter(|name| self.denied(name).is_none()) {
            let asked = self.sources.ask(name).await;
            asked.map_err(|message| Fault::new(fault_kind::SECRET, message))?;
        }
        Ok(())
    }

    /// The request with the secrets that its action names, and what masks all of the program's;
    /// none when the program has none.
    pub fn open(&self, request: &Request) -> Result<Option<ResolvedSecrets>, Fault> {
        if self.uses.is_empty() {
            return Ok(None);
        }
        let fault = |message: String| Fault::new(fault_kind::SECRET, message);
        let own = self.uses.get(&request.action);
        let own: &[Name] = own.map_or(&[], Vec::as_slice);
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
                // A secret that only other actions need may be missing.
                _ if !own.contains(name) => {}
                // The mark says whether the variable is required.
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
            let marked = WithMarks::of(inside);
            if !own.iter().any(|own| **own == *marked.name) {
                return None;
            }
            if let Some(signal) = of_callback(marked.name) {
                return match self.callback(signal, marked.fallback) {
                    Ok(address) => {
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

/// A request that holds secrets. It is never stored.
pub struct ResolvedSecrets {
    pub request: Request,
    pub mask: Arc<Mask>,
}

/// Finds secrets in what comes back.
#[derive(Debug)]
pub struct Mask {
    found: Option<Regex>,
    /// The secrets that are long enough to be looked for in Base64.
    encoded: Option<Regex>,
}

impl Mask {
    pub fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let secrets: Vec<&str> = secrets.filter(|secret| !secret.is_empty()).collect();
        let long = secrets.iter().filter(|secret| secret.len() >= MIN_ENCODED);
        let long = long.map(|secret| (*secret).to_owned());
        Self {
            encoded: any_of(long.collect()),
            found: any_of(secrets.into_iter().flat_map(forms).collect()),
        }
    }

    pub fn everything() -> Self {
        Self {
            found: Some(everything()),
            encoded: None,
        }
    }

    /// Whether any of the secrets is in a value.
    pub fn changes(&self, value: &Value) -> bool {
        self.found.is_some() && self.value(value) != *value
    }

    pub fn outcome(&self, outcome: Result<Value, Fault>) -> Result<Value, Fault> {
        match outcome {
            Ok(value) => Ok(self.value(&value)),
            Err(fault) => Err(Fault {
                code: fault
                    .code
                    .map(|code| self.text(&code).map_or(code, Name::from)),
                message: self.text(&fault.message).unwrap_or(fault.message),
                output: fault.output.map(|output| self.value(&output)),
                ..fault
            }),
        }
    }

    fn value(&self, value: &Value) -> Value {
        let masked = map_texts(value, &mut |text| self.text(text));
        self.numbers(masked)
    }

    /// A number that spells a secret.
    fn numbers(&self, value: Value) -> Value {
        match value {
            Value::Int(_) | Value::Float(_) | Value::Decimal(_) => {
                match self.text(&value.to_json()) {
                    Some(text) if text == MASK => Value::text(MASK),
                    _ => value,
                }
            }
            Value::Array(items) => Value::array(
                items
                    .iter()
                    .map(|item| self.numbers(item.clone()))
                    .collect(),
            ),
            Value::Object(members) => Value::object(
                members
                    .iter()
                    .map(|(key, member)| (key.clone(), self.numbers(member.clone())))
                    .collect(),
            ),
            other => other,
        }
    }

    pub fn finds(&self, text: &str) -> bool {
        !self.places(text).is_empty()
    }

    fn text(&self, text: &str) -> Option<String> {
        let places = self.places(text);
        if places.is_empty() {
            return None;
        }
        let mut masked = String::with_capacity(text.len());
        let mut at = 0;
        for place in places {
            masked.push_str(text.get(at..place.start).unwrap_or_default());
            masked.push_str(MASK);
            at = place.end;
        }
        masked.push_str(text.get(at..).unwrap_or_default());
        Some(masked)
    }

    /// Where secrets are in a text, in order.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let Some(found) = &self.found else {
            return Vec::new();
        };
        let mut all = Vec::new();
        self.search(text.as_bytes(), found, LAYERS, &mut |place| all.push(place));
        all.sort_by_key(|place| (place.start, place.end));
        let mut places: Vec<Range<usize>> = Vec::with_capacity(all.len());
        for place in all {
            match places.last_mut() {
                // Found in two views.
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => places.push(place),
            }
        }
        places
    }

    /// Reports where secrets are, also where only another view of the bytes shows them.
    fn search(
        &self,
        bytes: &[u8],
        secrets: &Regex,
        layers: u32,
        tell: &mut dyn FnMut(Range<usize>),
    ) {
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            let matches = secrets.find_iter(chunk.valid());
            matches.for_each(|one| tell(at + one.start()..at + one.end()));
            at += chunk.valid().len() + chunk.invalid().len();
        }
        let Some(layers) = layers.checked_sub(1) else {
            return;
        };
        if let Some(view) = unescaped(bytes) {
            let mut tell = |place: Range<usize>| tell(view.origin(&place));
            self.search(&view.bytes, secrets, layers, &mut tell);
        }
        if let Some(secrets) = &self.encoded {
            base64(bytes, &mut |view| {
                let mut tell = |place: Range<usize>| tell(view.origin(&place));
                self.search(&view.bytes, secrets, layers, &mut tell);
            });
        }
    }
}

/// What finds any of these texts.
fn any_of(mut forms: Vec<String>) -> Option<Regex> {
    // The longest first: one may be part of another.
    forms.sort_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
    forms.dedup();
    let pattern: Vec<String> = forms.iter().map(|form| pattern(form)).collect();
    let built = (!pattern.is_empty()).then(|| {
        regex::RegexBuilder::new(&pattern.join("|"))
            .size_limit(64 << 20)
            .build()
    });
    // Text that is escaped is a pattern; one beyond all bounds hides everything.
    built.map(|built| built.unwrap_or_else(|_| everything()))
}

/// A pattern that every text matches as a whole.
#[allow(
    clippy::expect_used,
    reason = "the pattern is fixed and known to compile"
)]
fn everything() -> Regex {
    Regex::new("(?s).+").expect("a fixed pattern")
}

/// A secret as it may come back: as it is, in the lower case of a host's name, inside of Base64.
fn forms(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned()];
    if secret.len() >= MIN_ENCODED {
        all.push(secret.to_lowercase());
        // Inside of longer bytes, such as `user:password`, it begins at one of three places of a
        // group; the letters at both ends depend on what is around it.
        for shift in 0..3 {
            let mut bytes = vec![0_u8; shift];
            bytes.extend_from_slice(secret.as_bytes());
            for alphabet in [&STANDARD, &URL_SAFE] {
                let encoded = alphabet.encode(&bytes);
                let from = (shift * 8).div_ceil(6);
                let to = bytes.len() * 8 / 6;
                all.extend(encoded.get(from..to).map(str::to_owned));
            }
        }
    }
    all
}

/// What finds a form of a secret, whichever of its characters were escaped on the way: each part
/// of a URL leaves others as they are, so that no list of encodings would do.
fn pattern(form: &str) -> String {
    // Nothing but line ends would be found in every empty text.
    let losable = form.chars().any(|c| !is_lost(c));
    form.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_string()
            } else if losable && is_lost(c) {
                format!("{}?", pattern_of_char(c))
            } else {
                pattern_of_char(c)
            }
        })
        .collect()
}

/// Whether a URL is read as if the character was not there.
fn is_lost(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r')
}

/// A character as it is, in a URL (also one in another), in JSON (also in JSON, or in a URL) and
/// in HTML.
fn pattern_of_char(c: char) -> String {
    /// What JSON escapes with, itself escaped or not.
    const BACKSLASH: &str = r"(?:\\|%(?:25)*5C)";
    let mut units = [0; 2];
    let json = c.encode_utf16(&mut units).iter();
    let json: String = json
        .map(|unit| format!("{BACKSLASH}+u{unit:04x}"))
        .collect();
    let mut bytes = [0; 4];
    let bytes = c.encode_utf8(&mut bytes).bytes();
    let url: String = bytes.map(|byte| format!("%(?:25)*{byte:02x}")).collect();
    let html = format!("&#(?:0*{}|x0*{:x});", u32::from(c), u32::from(c));
    let other = match c {
        ' ' => r"\+".to_owned(),
        '"' => format!("{BACKSLASH}+(?:\"|%(?:25)*22)|&quot;"),
        '/' => format!("{BACKSLASH}+(?:/|%(?:25)*2f)"),
        // A URL's path takes it for a slash.
        '\\' => format!("{BACKSLASH}+|/"),
        '\n' => format!("{BACKSLASH}+n"),
        '\r' => format!("{BACKSLASH}+r"),
        '\t' => format!("{BACKSLASH}+t"),
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '\'' => "&apos;".to_owned(),
        _ => String::new(),
    };
    let mut all = vec![json, url, html];
    all.extend((!other.is_empty()).then_some(other));
    // The character itself last: a backslash is the beginning of an escape before it is one.
    let raw = regex::escape(c.encode_utf8(&mut [0; 4]));
    format!("(?:(?i:{})|{raw})", all.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

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

    fn mask(secret: &str) -> Mask {
        Mask::of([secret].into_iter())
    }

    #[test]
    fn a_secret_is_found_however_it_comes_back() {
        let secret = "s3cr\"et /ü";
        let basic = STANDARD.encode(format!("user:{secret}"));
        let json = serde_json::to_string(secret).unwrap();
        let url = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        for text in [secret, &json, &url, &basic] {
            let masked = mask(secret).text(&format!("<{text}>")).unwrap();
            assert!(masked.contains(MASK), "{text} {masked}");
            assert!(!masked.contains("s3cr"), "{masked}");
        }
        assert_eq!(mask(secret).text("nothing of it"), None);
    }

    #[test]
    fn whatever_a_part_of_a_url_escapes_of_it() {
        let mut url = url::Url::parse("http://a:b@x.y/").unwrap();
        for secret in [
            "pa ss/word",
            "tok\"en/x",
            "a+b c&d=e",
            "p%41ss?#[]@!$'()*,;:",
            "back\\slash\u{7f}|^`{}<>",
            "ünï 😀/\"\\",
            "line\nand\tline",
            "~.-_ /",
        ] {
            let mask = mask(secret);
            url.set_path(&format!("/bot/{secret}/send"));
            url.set_fragment(Some(secret));
            url.set_username(secret).unwrap();
            url.set_password(Some(secret)).unwrap();
            url.set_query(Some(secret));
            let raw = url.to_string();
            url.query_pairs_mut().clear().append_pair("q", secret);
            let form = url.to_string();
            let json = serde_json::to_string(&format!("<{secret}>")).unwrap();
            let twice = serde_json::to_string(&json).unwrap();
            let full = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            let again = utf8_percent_encode(&full, NON_ALPHANUMERIC).to_string();
            let of_json = utf8_percent_encode(&json, NON_ALPHANUMERIC).to_string();
            let ascii = |unit: u16| match char::from_u32(u32::from(unit)) {
                Some(c) if c.is_ascii_alphanumeric() => c.to_string(),
                _ => format!("\\u{unit:04X}"),
            };
            let ascii: String = secret.encode_utf16().map(ascii).collect();
            let mut written = vec![raw, form, json, twice, of_json, again, ascii];
            written.extend([full.to_lowercase(), full]);
            for shift in 0..3 {
                for alphabet in [&STANDARD, &URL_SAFE] {
                    let text = format!("{}{secret}{}", "u".repeat(shift), "v".repeat(shift));
                    let encoded = alphabet.encode(text);
                    written.push(utf8_percent_encode(&encoded, NON_ALPHANUMERIC).to_string());
                    written.push(encoded);
                }
            }
            for text in written {
                let masked = mask.text(&text).unwrap_or_else(|| text.clone());
                let from: String = masked.replace(MASK, "").to_lowercase();
                let letters = |part: &&str| part.len() >= 3 && from.contains(&part.to_lowercase());
                let parts = secret.split(|c: char| !c.is_ascii_alphanumeric());
                let left: Vec<&str> = parts.filter(letters).collect();
                assert!(masked.contains(MASK) && left.is_empty(), "{text}: {masked}");
            }
        }
        assert_eq!(mask("\n").text("nothing of it"), None);
    }

    #[test]
    fn base64_with_line_ends_or_twice_and_escaped_letters_hide_nothing() {
        let secret = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGH";
        let mask = mask(secret);
        let lines = |text: &str, width: usize, end: &str| {
            let letters: Vec<char> = text.chars().collect();
            let lines = letters
                .chunks(width)
                .map(|line| line.iter().collect::<String>());
            lines.collect::<Vec<_>>().join(end)
        };
        let mut hidden = Vec::new();
        for before in ["", "u", "user:", "a longer text before it, and more: "] {
            let plain = format!("{before}{secret}{before}");
            for alphabet in [&STANDARD, &URL_SAFE] {
                let once = alphabet.encode(&plain);
                let twice = alphabet.encode(&once);
                // As `base64`, `openssl base64` and mail write it, and in YAML.
                let folded = lines(&once, 76, "\n");
                hidden.extend([
                    lines(&once, 64, "\n"),
                    lines(&once, 76, "\r\n"),
                    lines(&once, 20, "\n    "),
                    alphabet.encode(&folded),
                    alphabet.encode(&twice),
                    lines(&alphabet.encode(&folded), 64, "\r\n"),
                    serde_json::to_string(&lines(&once, 30, "\n")).unwrap(),
                    utf8_percent_encode(&lines(&twice, 30, "\r\n"), NON_ALPHANUMERIC).to_string(),
                    twice,
                ]);
            }
        }
        let each =
            |written: &dyn Fn(char) -> String| secret.chars().map(written).collect::<String>();
        hidden.extend([
            each(&|c| format!("\\u{:04x}", u32::from(c))),
            each(&|c| format!("\\\\u{:04X}", u32::from(c))),
            each(&|c| format!("\\x{:02x}", u32::from(c))),
            each(&|c| format!("\\u{{{:x}}}", u32::from(c))),
            each(&|c| format!("%{:02x}", u32::from(c))),
            each(&|c| format!("%25{:02X}", u32::from(c))),
            each(&|c| format!("&#{};", u32::from(c))),
            each(&|c| format!("&#x{:X};", u32::from(c))),
            each(&|c| format!("={:02X}", u32::from(c))),
            secret.replacen("live", "l%69v%65", 1),
            secret.replacen("0123", "\\u0030123", 1),
            lines(secret, 20, "=\r\n"),
            STANDARD.encode(each(&|c| format!("\\u{:04x}", u32::from(c)))),
        ]);
        for text in hidden {
            let masked = mask.text(&format!("<{text}>"));
            let masked = masked.unwrap_or_else(|| panic!("not found: {text}"));
            let rest = masked.replace(MASK, "");
            assert!(
                mask.text(&rest).is_none() && masked.starts_with('<'),
                "{masked}"
            );
            assert!(!rest.contains("0123") && !rest.contains("abcd"), "{masked}");
        }
        // What only looks like it stays.
        for text in [
            "SGVsbG8gd29ybGQ\nSGVsbG8gd29ybGQ=",
            "100%25 &amp; \\u0041",
            "=41=42",
        ] {
            assert_eq!(mask.text(text), None);
        }
    }

    #[test]
    fn a_large_secret_is_found_too() {
        let secret = "-----BEGIN/ \n".repeat(300);
        let masked = mask(&secret).text(&format!("{secret}{secret} left"));
        assert_eq!(masked.unwrap(), "****** left");
    }

    #[test]
    fn numbers_and_names_of_members_are_masked_too() {
        let value = Value::from_json(r#"{"1234": [1234, 12345, "1234"]}"#).unwrap();
        let masked = mask("1234").value(&value);
        assert_eq!(masked.to_json(), r#"{"***":["***",12345,"***"]}"#);
    }

    #[test]
    fn the_longer_of_two_secrets_goes_first() {
        let mask = Mask::of(["abc", "abcdef"].into_iter());
        assert_eq!(mask.text("abcdef abc").unwrap(), "*** ***");
    }
}
