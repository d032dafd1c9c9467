//! Rate limits of calls, over all runs of a store, and the detection of hosts that are down. A limit is configured for
//! a host or a name, or learned from the answers of a host. A call that may not begin yet waits in a queue; the calls
//! of a queue begin in the order in which they arrived. No limit is part of a run. The times of calls are in files of
//! the state directory, so that a process that continues after a crash does not exceed the quota.

use super::breaker::{Breaker, BreakerTurn};
use super::clock::now;
use super::rate_window::{FORGOTTEN_AFTER, QuotaAnswer, RateWindow, millis};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use utoipa::ToSchema;
use windlass_actions::Registry;
use windlass_expression::Value;
use windlass_model::model::{Fault, HostRate, Name, Origin, Rate, Request, is_host, short_digest};
use windlass_value::time::Timestamp;
use windlass_value::{first_chars, has_spent_quota, requested_wait, stated_rate};

/// Maximum number of queues in memory. If there are more, queues without a call are dropped. What they learned is in
/// their files.
const REMEMBERED: usize = 1_024;

/// Maximum length of a rate's name that is used unchanged in a file name, in bytes.
const LONGEST_NAME: usize = 100;

/// A file is removed if its limits ended, and it was last changed, at least this long ago.
const QUIET: Duration = Duration::from_secs(3_600);

/// The folder of the files, in the state directory.
const FOLDER: &str = "rates";

/// The rate limits of an engine.
#[derive(Clone, Default)]
pub struct Rates(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The rates that the operator configured on the command line.
    configured: Vec<HostRate>,
    folder: Option<PathBuf>,
    queues: Mutex<HashMap<Name, Arc<RateQueue>>>,
}

/// The queue of calls that share a quota. These are the calls to one host, or with one named rate. If no rate is
/// configured for a host, the calls with each account of the host share a quota.
struct RateQueue {
    /// The host, or the name of the rate.
    host: Name,
    /// Locked by the call that is the next to begin.
    next: tokio::sync::Mutex<()>,
    state: Mutex<RateQueueState>,
    /// Notified when a try of a host that was down has ended.
    tried: Notify,
}

#[derive(Default)]
struct RateQueueState {
    window: RateWindow,
    breaker: Breaker,
    file: Option<ArrivalsFile>,
    /// The file with the times of calls (the window). It is written when a rate is configured or learned.
    path: Option<PathBuf>,
    /// The numbers of the waiting calls, in the order in which they arrived.
    waiting: BTreeSet<u64>,
    last_number: u64,
}

/// A call that may have to wait in a queue.
#[derive(Clone)]
pub struct RateLimitedCall {
    queue: Arc<RateQueue>,
    /// Whether the call is sent to a host. If true, its result shows whether the host is down.
    has_host: bool,
    is_named: bool,
    at: Arc<Mutex<CallState>>,
}

impl fmt::Debug for RateLimitedCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("RateLimitedCall")
            .field(&self.queue.host)
            .finish()
    }
}

#[derive(Default)]
struct CallState {
    /// The number of the call in the queue, while it waits there.
    number: Option<u64>,
    /// When the call began, in milliseconds. `None` if it is not counted.
    began: Option<i64>,
}

/// Position of a call in the queue of its host. Calls queue for its rate limit, or because the host is down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RateLimitWait {
    /// Host with its port, or the name that the action has as `rate`.
    pub host: String,
    /// Position in the queue, from 1.
    pub position: usize,
    /// Expected time when the call starts.
    pub begins_at: Timestamp,
    /// Number of consecutive failed calls to the host, if it counts as down; then one call at a time tries it.
    /// Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
}

impl Rates {
    /// Makes the rate limits from the rates of the command line. `state` is the state directory, which contains the
    /// files with the times of calls. Files that no longer limit any call are removed.
    #[must_use]
    pub fn new(configured: Vec<HostRate>, state: Option<&Path>) -> Self {
        if let Some(state) = state {
            remove_old_rates(state, now());
        }
        Self(Arc::new(Inner {
            configured,
            folder: state.map(|state| state.join(FOLDER)),
            queues: Mutex::default(),
        }))
    }

    /// Returns the call of a request, in the queue of the rate that the request names, or in the queue of its host.
    ///
    /// A guest is a workflow from HTTP or MCP. Rates in a guest's file apply only to guests, and only if the operator
    /// has configured no rate. The rate name in a guest's request is used only if two things hold. It is not a host,
    /// and the operator has configured no rate for this name or for the request's host.
    pub(super) fn rate_limited_call(
        &self,
        host: Option<&Name>,
        registry: &Registry,
        request: &Request,
    ) -> Option<RateLimitedCall> {
        let lowest = |rates: &[HostRate], of: &str| {
            let rates = rates.iter().filter(|rate| rate.applies_to(of));
            rates.map(|rate| rate.rate).reduce(Rate::slower)
        };
        let is_guest = registry.origin() == Origin::Guest;
        let is_bound =
            is_guest && host.is_some_and(|host| lowest(&self.0.configured, host).is_some());
        // A guest has its own queue. In a shared queue, the answers of a guest's server could make calls of the
        // operator wait.
        let is_own =
            |name: &Name| !is_guest || !is_host(name) && lowest(&self.0.configured, name).is_none();
        let named = registry.rate_name(request);
        let named = named.filter(|name| !is_bound && is_own(name));
        let (of, is_name) = match (named, host) {
            (Some(name), _) => rate_key(&name),
            (None, host) => (host?.clone(), false),
        };
        let configured = lowest(&self.0.configured, &of);
        let declared = lowest(registry.rates(), &of);
        let (key, rate) = match (registry.origin(), configured, declared) {
            (Origin::Operator, None, None) if is_name => (of.clone(), None),
            (_, None, None) if !is_name => (account(&of, request), None),
            (Origin::Guest, None, declared) => (Name::from(format!("{of}-guests")), declared),
            (Origin::Guest, configured, _) => (of.clone(), configured),
            (Origin::Operator, configured, declared) => {
                let both = configured.into_iter().chain(declared);
                (of.clone(), both.reduce(Rate::slower))
            }
        };
        let file = file_name(&key, is_name);
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= REMEMBERED {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1 || queue.state().is_only_here());
        }
        let made = || Arc::new(self.queue(&file, &of));
        let queue = Arc::clone(queues.entry(file.clone()).or_insert_with(made));
        drop(queues);
        if let Some(rate) = rate {
            queue.state().window.declare(rate);
        }
        Some(RateLimitedCall {
            queue,
            has_host: host.is_some(),
            is_named: is_name,
            at: Arc::default(),
        })
    }

    fn queue(&self, file: &Name, host: &Name) -> RateQueue {
        let path = self.0.folder.as_ref().map(|folder| folder.join(&**file));
        let stored = path.as_deref().and_then(|path| fs::read(path).ok());
        let window = stored.map(|bytes| restored(&bytes));
        RateQueue {
            host: host.clone(),
            next: tokio::sync::Mutex::default(),
            tried: Notify::new(),
            state: Mutex::new(RateQueueState {
                window: window.unwrap_or_default(),
                path,
                ..RateQueueState::default()
            }),
        }
    }
}

/// Returns the key of a rate, and whether its name is not a host. The key of a host has a port, by default 443.
fn rate_key(name: &str) -> (Name, bool) {
    match (is_host(name), name.contains(':')) {
        (false, _) => (Name::from(name.to_lowercase()), true),
        (true, true) => (Name::from(name.to_ascii_lowercase()), false),
        (true, false) => (
            Name::from(format!("{}:443", name.to_ascii_lowercase())),
            false,
        ),
    }
}

/// Returns the file name of a queue. Different queues have different file names, so the name also identifies the queue.
fn file_name(key: &str, is_name: bool) -> Name {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
    let plain = key.replace(|letter| !is_plain(letter), "_");
    Name::from(match is_name {
        false => plain,
        true if plain == key && key.len() <= LONGEST_NAME => format!("={key}"),
        true => format!(
            "={}={}",
            first_chars(&plain, LONGEST_NAME),
            short_digest(key)
        ),
    })
}

impl RateLimitedCall {
    /// Returns whether the rate limit belongs to a name, and not to a host.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    fn at(&self) -> MutexGuard<'_, CallState> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a place in the queue if the call has to wait. Calls that wait begin in the order of their places.
    pub(super) fn enqueue(&self) -> Option<PlaceInQueue<'_>> {
        let mut state = self.queue.state();
        if state.is_open(now().0) {
            return None;
        }
        state.last_number += 1;
        let number = state.last_number;
        state.waiting.insert(number);
        drop(state);
        self.at().number = Some(number);
        Some(PlaceInQueue { call: self, number })
    }

    /// Waits until the call may begin, and counts it. If the call tries a host that was down, returns a guard, which
    /// the caller holds until the call has ended.
    pub(super) async fn begin(&self) -> Option<HostTry> {
        if self.queue.state().is_open(now().0) {
            return None;
        }
        let _next = self.queue.next.lock().await;
        loop {
            let tried = self.queue.tried.notified();
            // This is a separate statement, so that the lock is not held during the wait below.
            let begun = self.queue.state().begin(now().0);
            match begun {
                Begun::Yes(at) => {
                    self.at().began = Some(at);
                    return None;
                }
                Begun::Try(number) => {
                    let queue = Arc::clone(&self.queue);
                    return Some(HostTry { queue, number });
                }
                Begun::NotBefore(wait) => {
                    let _ = tokio::time::timeout(wait, tried).await;
                }
            }
        }
    }

    /// Updates the limits, and whether the host is down, from the answer of the call.
    pub(super) fn learn(&self, run: &Name, result: &Result<Value, Fault>) {
        let now = now();
        let (answer, policy) = quota(result, now);
        let began = self.at().began;
        let mut state = self.queue.state();
        if let Some(began) = began {
            state.window.arrived(began, now.0);
        }
        state.learn(now.0, answer, policy);
        let was_closed = state.breaker.is_closed();
        // The result of a command does not show whether a host is down.
        if self.has_host {
            state.breaker.learn(now.0, run, result.as_ref().err());
        }
        if !was_closed && state.breaker.is_closed() {
            drop(state);
            self.queue.tried.notify_one();
        }
    }

    /// Returns what the call waits for, if it waits in the queue.
    pub(super) fn wait(&self) -> Option<RateLimitWait> {
        let number = self.at().number;
        let state = self.queue.state();
        let number = number.filter(|number| state.waiting.contains(number))?;
        let ahead = state.waiting.range(..number).count();
        Some(RateLimitWait {
            host: self.queue.host.to_string(),
            position: ahead + 1,
            begins_at: Timestamp(state.begins_at(now().0, ahead)),
            failures: state.breaker.failures(),
        })
    }
}

/// A call that tries whether a host is up again. On drop, another call may try.
pub(super) struct HostTry {
    queue: Arc<RateQueue>,
    number: u64,
}

impl Drop for HostTry {
    fn drop(&mut self) {
        self.queue.state().breaker.give_back(self.number);
        self.queue.tried.notify_one();
    }
}

/// Whether a call begins now.
enum Begun {
    /// The call begins, and is counted with this time in milliseconds.
    Yes(i64),
    /// The call begins, and tries a host that was down. This is the number of the try.
    Try(u64),
    NotBefore(Duration),
}

/// A place in the queue. On drop, the call leaves the queue.
pub(super) struct PlaceInQueue<'a> {
    call: &'a RateLimitedCall,
    number: u64,
}

impl Drop for PlaceInQueue<'_> {
    fn drop(&mut self) {
        self.call.queue.state().waiting.remove(&self.number);
    }
}

impl RateQueue {
    fn state(&self) -> MutexGuard<'_, RateQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RateQueueState {
    /// Returns whether a call begins without waiting in the queue.
    fn is_open(&self, now: i64) -> bool {
        self.breaker.is_closed() && self.window.is_open(now)
    }

    /// Returns whether the queue has a rate but no file. Then its times exist only in memory.
    fn is_only_here(&self) -> bool {
        self.path.is_none() && self.window.rate().is_some()
    }

    fn begins_at(&self, now: i64, ahead: usize) -> i64 {
        let window = self.window.begins_at(now, ahead);
        window.max(self.breaker.begins_at(now))
    }

    /// Counts a call that begins now, or returns how long it has to wait.
    fn begin(&mut self, now: i64) -> Begun {
        let after = |at: i64| {
            let wait = u64::try_from(at.saturating_sub(now)).unwrap_or_default();
            Begun::NotBefore(Duration::from_millis(wait))
        };
        let at = self.window.begins_at(now, 0);
        if at > now {
            self.window.record_wait(now);
            return after(at);
        }
        let tries = match self.breaker.turn(now) {
            BreakerTurn::Begin => None,
            BreakerTurn::Try(number) => Some(number),
            BreakerTurn::WaitUntil(at) => return after(at),
        };
        let arrival = self.window.begin(now);
        let stored = match (&mut self.file, self.window.rate()) {
            (_, None) => Ok(()),
            (Some(file), rate) if file.rate == rate && file.is_linked() => file.add(arrival),
            (_, Some(_)) => self.create_file(),
        };
        log(stored);
        tries.map_or(Begun::Yes(now), Begun::Try)
    }

    fn learn(&mut self, now: i64, answer: QuotaAnswer, policy: Option<Rate>) {
        let before = self.window.limits();
        self.window.learn(now, answer, policy);
        if self.window.limits() == before {
            return;
        }
        log(match &self.file {
            Some(file) if file.is_linked() => file.write_limits(&self.window),
            _ => self.create_file(),
        });
    }

    fn create_file(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.file = Some(ArrivalsFile::create(path, &self.window)?);
        }
        Ok(())
    }
}

/// Logs a failed write. It is not an error: a limit without a file works until the process ends.
fn log(stored: io::Result<()>) {
    if let Err(error) = stored {
        tracing::debug!("a rate limit is not stored: {error}");
    }
}

/// The file of a queue: its limits, then a ring buffer with the arrival times of its last calls. The ring has one slot
/// for each call that the rate allows. All times are in milliseconds.
struct ArrivalsFile {
    file: File,
    rate: Option<Rate>,
    next: u64,
}

/// Number of values before the arrival times: until when all calls wait, the count and the period of the learned rate,
/// and the period of the rate that applies.
const LIMITS: usize = 4;

impl ArrivalsFile {
    fn create(path: &Path, window: &RateWindow) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let mut options = OpenOptions::new();
        let options = options.mode(0o600).create(true).truncate(true).write(true);
        let file = options.open(&new)?;
        let times: Vec<u8> = window
            .latest_arrivals()
            .flat_map(i64::to_be_bytes)
            .collect();
        file.write_all_at(&times, 8 * LIMITS as u64)?;
        let rate = window.rate();
        let made = Self {
            file,
            rate,
            next: (times.len() / 8) as u64 % slots(rate),
        };
        made.write_limits(window)?;
        fs::rename(&new, path)?;
        Ok(made)
    }

    fn write_limits(&self, window: &RateWindow) -> io::Result<()> {
        let (blocked_until, learned) = window.limits();
        let count = learned.map_or(0, |rate| i64::from(rate.count()));
        let per = |rate: Option<Rate>| rate.map_or(0, |rate| millis(rate.per()));
        let numbers = [blocked_until, count, per(learned), per(window.rate())];
        let numbers = numbers.map(i64::to_be_bytes);
        self.file.write_all_at(numbers.as_flattened(), 0)
    }

    /// Returns whether the file still exists. Another process may have removed it: [`remove_old_rates`] removes unused
    /// files.
    fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }

    /// Adds an arrival without a sync. If the process ends, nothing is lost. After a power cut the time may be lost,
    /// but by then most quotas are available again.
    fn add(&mut self, arrival: i64) -> io::Result<()> {
        let at = 8 * (LIMITS as u64 + self.next);
        self.next = (self.next + 1) % slots(self.rate);
        self.file.write_all_at(&arrival.to_be_bytes(), at)
    }
}

/// Returns the maximum number of arrival times in the file of a rate.
fn slots(rate: Option<Rate>) -> u64 {
    rate.map_or(1, |rate| u64::from(rate.count()))
}

/// Restores the window from the bytes of a file. An invalid time is ignored.
fn restored(bytes: &[u8]) -> RateWindow {
    let numbers = bytes.as_chunks().0.iter();
    let mut numbers = numbers.map(|number| i64::from_be_bytes(*number));
    let [blocked_until, count, per, _] = [(); LIMITS].map(|()| numbers.next().unwrap_or_default());
    let per = Duration::from_millis(u64::try_from(per).unwrap_or_default());
    let learned = u32::try_from(count).ok();
    let learned = learned.and_then(|count| Rate::new(count, per));
    RateWindow::restored(numbers.filter(|time| *time > 0), (blocked_until, learned))
}

/// Removes files of a state directory whose limits ended more than an hour ago, and unfinished files that a crash left.
/// Files that changed in the last hour are not read.
pub fn remove_old_rates(state: &Path, now: Timestamp) {
    let files = fs::read_dir(state.join(FOLDER)).into_iter();
    for entry in files.flatten().flatten() {
        let path = entry.path();
        let changed = entry.metadata().and_then(|data| data.modified());
        let quiet = changed.ok().and_then(|at| at.elapsed().ok());
        if quiet.is_none_or(|quiet| quiet < QUIET) {
            continue;
        }
        let is_part = path.extension().is_some_and(|end| end == "new");
        let ends_at = || fs::read(&path).map(|bytes| ends_at(&bytes));
        let is_over = |end: i64| end.saturating_add(millis(QUIET)) < now.0;
        if is_part || ends_at().is_ok_and(is_over) {
            log(fs::remove_file(&path));
        }
    }
}

/// Returns when nothing in a file limits a call any more, in milliseconds.
fn ends_at(bytes: &[u8]) -> i64 {
    let numbers: Vec<i64> = bytes
        .as_chunks()
        .0
        .iter()
        .copied()
        .map(i64::from_be_bytes)
        .collect();
    let [blocked_until, count, _, per, times @ ..] = numbers.as_slice() else {
        return 0;
    };
    let learned = match count {
        0 => *blocked_until,
        _ => blocked_until.saturating_add(FORGOTTEN_AFTER),
    };
    let last = times.iter().max().copied().unwrap_or_default();
    learned.max(last.saturating_add(*per))
}

/// Returns the host with a digest of the credentials in the request. Each account of a host has its own quota.
fn account(host: &Name, request: &Request) -> Name {
    const HEADERS: [&str; 5] = [
        "authorization",
        "x-api-key",
        "api-key",
        "cookie",
        "x-goog-api-key",
    ];
    let inputs = &request.inputs;
    let authentication = inputs
        .get("authentication")
        .filter(|value| !value.is_null());
    let headers = inputs.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flat_map(|headers| headers.iter());
    let is_account = |name: &str| HEADERS.iter().any(|known| known.eq_ignore_ascii_case(name));
    let headers = headers.filter(|(name, _)| is_account(name));
    let parts = authentication
        .into_iter()
        .chain(headers.map(|(_, value)| value));
    let text: String = parts.map(Value::to_json).collect();
    match text.is_empty() {
        true => host.clone(),
        false => Name::from(format!("{host}-{}", short_digest(&text))),
    }
}

/// Returns what an answer says about the quota, and the rate that the server states.
fn quota(result: &Result<Value, Fault>, now: Timestamp) -> (QuotaAnswer, Option<Rate>) {
    let output = match result {
        Ok(output) => Some(output),
        Err(fault) => fault.output.as_ref(),
    };
    let headers = output.and_then(|output| output.get("headers")?.as_object());
    let header = |name: &str| headers?.get(name)?.as_str();
    let policy = stated_rate(header).and_then(|(count, per)| Rate::new(count, per));
    let is_spent = has_spent_quota(header);
    let refused = result.as_ref().err().and_then(|fault| {
        let is_quota = match fault.code.as_deref() {
            Some("429") => true,
            Some("403") => is_spent,
            _ => false,
        };
        is_quota.then(|| fault.retry_after_ms.map(Duration::from_millis))
    });
    let answer = match refused {
        Some(wait) => QuotaAnswer::Refused(wait),
        None if is_spent => {
            let wait = requested_wait(header, now);
            wait.map_or(QuotaAnswer::Accepted, QuotaAnswer::LastOne)
        }
        None => QuotaAnswer::Accepted,
    };
    (answer, policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_model::model::{Dialect, fault_kind};

    /// Returns the host or name whose limits apply to a call, and its rate. The call is of a workflow file with rates.
    fn queue(
        origin: Origin,
        by_flag: &[&str],
        in_file: &[&str],
        name: &str,
    ) -> (String, Option<u32>) {
        let rates = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let (by_flag, in_file): (Vec<HostRate>, Vec<HostRate>) = (rates(by_flag), rates(in_file));
        let registry = Registry::new()
            .of(origin, Dialect::Loom)
            .with_rates(&in_file);
        let request = Request {
            executor: Name::from("http"),
            action: Name::from("call"),
            inputs: Value::from_pairs([("rate", Value::text(name))]),
            key: String::new(),
            attempt: 1,
            timeout_ms: None,
        };
        let host = Name::from("api.example.com:443");
        let call = Rates::new(by_flag, None).rate_limited_call(Some(&host), &registry, &request);
        let queue = call.unwrap().queue;
        let rate = queue.state().window.rate().map(Rate::count);
        (queue.host.to_string(), rate)
    }

    #[test]
    fn a_name_replaces_the_host_but_not_for_guests_of_a_limited_host() {
        let (file, flag) = (["a=1/s"], ["api.example.com=2/s"]);
        let operator = queue(Origin::Operator, &flag, &file, "A");
        assert_eq!(operator, ("a".to_owned(), Some(1)));
        let host = ("api.example.com:443".to_owned(), Some(2));
        assert_eq!(queue(Origin::Guest, &flag, &file, "a"), host);
        assert_eq!(
            queue(Origin::Guest, &[], &file, "a"),
            ("a".to_owned(), Some(1))
        );
        assert_eq!(
            queue(Origin::Operator, &flag, &file, "api.example.com"),
            host
        );
        assert_eq!(
            queue(Origin::Operator, &["b=3/s"], &[], "b"),
            ("b".to_owned(), Some(3))
        );
    }

    #[test]
    fn each_name_has_a_file_of_its_own() {
        let long = "x".repeat(300);
        let names = ["a", "../a", ".._a", "a b", "a_b", &*long, &long[1..]];
        let files: BTreeSet<Name> = names.iter().map(|name| file_name(name, true)).collect();
        assert_eq!(files.len(), names.len());
        assert!(
            files
                .iter()
                .all(|file| file.starts_with('=') && file.len() < 200)
        );
    }

    #[test]
    fn a_refusal_counts_without_a_time_to_wait() {
        let answer = |fault: Fault| quota(&Err(fault), Timestamp(0)).0;
        let fault = |code: &str| Fault::new(fault_kind::HTTP, "no").code(code);
        assert_eq!(answer(fault("429")), QuotaAnswer::Refused(None));
        assert_eq!(answer(fault("403")), QuotaAnswer::Accepted);
        assert_eq!(answer(fault("500")), QuotaAnswer::Accepted);
        let timed = Fault {
            retry_after_ms: Some(7),
            ..fault("429")
        };
        let wait = Duration::from_millis(7);
        assert_eq!(answer(timed), QuotaAnswer::Refused(Some(wait)));
    }
}
