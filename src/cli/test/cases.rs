//! Files of test cases. A case has the inputs of a run, and the expected results.

use crate::cli::exit::Failure;
use crate::cli::inputs;
use crate::cli::output::short;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_engine::{
    HandlerTarget, Name, Object, SimulatedStep, SimulatedStepKind, SimulationReport,
    SimulationSpec, Stubs, Timestamp, Value, name_of_part, parse_duration,
};
use windlass_machine::program::Program;
use windlass_value::{did_you_mean, words};

pub struct Suite {
    pub workflow: PathBuf,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub name: String,
    pub answers: Vec<(String, HandlerTarget)>,
    /// What is simulated. Its time is that of `now`, if the case has a time.
    pub spec: SimulationSpec,
    pub now: Option<Timestamp>,
    pub expect: Expect,
}

/// The result of a case.
#[derive(Serialize)]
pub struct Outcome {
    pub file: String,
    pub name: String,
    /// Descriptions of the results that differ from the expected ones.
    pub failures: Vec<String>,
    pub seconds: f64,
}

/// The expected results of a case, by their keys in [`EXPECTED`].
pub struct Expect(Object);

const EXPECTED: [&str; 10] = words! {
    status output error took calls iterations waits inputs next state
};

/// Reads a file of cases.
pub fn suite(path: &Path) -> Result<Suite, Failure> {
    let shown = path.display().to_string();
    let bad = |what: String| Failure::Usage(format!("{shown}: {what}"));
    let file = inputs::parse(path, &inputs::read(path)?)?;
    let file = map(&file, "a file of cases", &["workflow", "cases"]).map_err(bad)?;
    let workflow = match file.get("workflow").and_then(Value::as_str) {
        Some(name) => path.with_file_name(name),
        None => workflow_of(path).ok_or_else(|| {
            bad(String::from(
                "no workflow next to it: name it with `workflow: FILE`",
            ))
        })?,
    };
    let cases = file.get("cases").and_then(Value::as_array);
    let cases = cases.ok_or_else(|| bad(String::from("`cases` is a list of cases")))?;
    let read = |(index, value): (usize, &Value)| {
        case(value, index, &shown).map_err(|what| bad(format!("case {}: {what}", index + 1)))
    };
    let cases: Result<Vec<Case>, Failure> = cases.iter().enumerate().map(read).collect();
    Ok(Suite {
        workflow,
        cases: cases?,
    })
}

/// Returns the path of the workflow for a file of cases: `poll.yaml` for `poll.test.yaml`.
fn workflow_of(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?.strip_suffix(".test")?;
    let ends = ["yaml", "yml", "json"].map(|end| path.with_file_name(format!("{stem}.{end}")));
    ends.into_iter().find(|path| path.is_file())
}

/// Returns the value as a map. Fails if the map has other keys than `known`.
fn map<'v>(value: &'v Value, what: &str, known: &[&str]) -> Result<&'v Object, String> {
    let map = value
        .as_object()
        .ok_or_else(|| format!("{what} is a map"))?;
    match map.keys().find(|key| !known.contains(&&***key)) {
        Some(key) => Err(format!(
            "unknown key `{key}` in {what} (expected one of: {})",
            known.join(", ")
        )),
        None => Ok(map),
    }
}

fn case(value: &Value, index: usize, file: &str) -> Result<Case, String> {
    let known = [
        "name",
        "input",
        "answers",
        "signals",
        "state",
        "last_run",
        "at",
        "attempt",
        "now",
        "scheduledTime",
        "expect",
    ];
    let given = map(value, "a case", &known)?;
    let text = |key: &str| given.get(key).and_then(Value::as_str).map(str::to_owned);
    let instant = |key: &str| {
        let text = text(key)?;
        let wrong = |_| format!("`{key}` is not a valid instant: {text}");
        Some(text.parse::<Timestamp>().map_err(wrong))
    };
    let now = instant("now").transpose()?;
    let scheduled_time = instant("scheduledTime").transpose()?;
    let attempt = given.get("attempt").and_then(Value::as_int).unwrap_or(1);
    let stubs = match given.get("answers") {
        Some(answers) => Stubs::read(answers, file).map_err(|what| format!("`answers`: {what}"))?,
        None => Stubs::default(),
    };
    let expect = given
        .get("expect")
        .cloned()
        .unwrap_or(Value::object(Object::new()));
    Ok(Case {
        name: text("name").unwrap_or_else(|| format!("case {}", index + 1)),
        answers: stubs.handlers,
        spec: SimulationSpec {
            input: given
                .get("input")
                .cloned()
                .or(stubs.input)
                .unwrap_or_default(),
            awaited: stubs.signals,
            signals: signals(given.get("signals"))?,
            state: given
                .get("state")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
            last_run: given.get("last_run").cloned().unwrap_or_default(),
            at: text("at"),
            attempt: u32::try_from(attempt).map_err(|_| String::from("`attempt` counts from 1"))?,
            scheduled_time,
            ..SimulationSpec::default()
        },
        now,
        expect: Expect(map(&expect, "`expect`", &EXPECTED)?.clone()),
    })
}

/// Reads the signals of a case, in the order in which they arrive: a map of payloads by name, or a list of such maps.
///
/// # Errors
/// The value has another form.
pub fn signals(given: Option<&Value>) -> Result<Vec<(Name, Value)>, String> {
    let maps = match given {
        None | Some(Value::Null) => &[],
        Some(Value::Array(maps)) => maps.as_slice(),
        Some(map) => std::slice::from_ref(map),
    };
    let mut signals = Vec::new();
    for map in maps {
        let wanted = "`signals` must be a map of payloads by name, or a list of such maps";
        let map = map.as_object().ok_or(wanted)?;
        signals.extend(
            map.iter()
                .map(|(name, payload)| (name.clone(), payload.clone())),
        );
    }
    Ok(signals)
}

impl Expect {
    /// Returns a message for each action or loop that the case names and the workflow does not have.
    pub fn unknown_names(&self, program: &Program) -> Vec<String> {
        let actions = program.actions.iter();
        let actions = actions.flat_map(|action| [Some(&*action.name), action.title.as_deref()]);
        let scopes = program.scopes.iter().map(|scope| Some(&*scope.name));
        let known: BTreeSet<&str> = actions.chain(scopes).flatten().collect();
        let mut unknown = Vec::new();
        for key in ["calls", "inputs", "iterations"] {
            let expected = self.0.get(key).and_then(Value::as_object);
            for (place, _) in expected.into_iter().flatten() {
                if known.contains(&**place) {
                    continue;
                }
                let parts = place.split('/').map(|part| part.split('#').next());
                let mut names = parts.map(|name| name_of_part(name.unwrap_or_default()));
                if let Some(name) = names.find(|name| !known.contains(&**name)) {
                    let hint = did_you_mean(&name, known.iter().copied());
                    let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
                    unknown.push(format!("`{key}`: nothing is called `{name}`{hint}"));
                    continue;
                }
                // A place in a loop has the number of the iteration.
                let outer = place.rsplit_once('/').map(|(outer, _)| outer);
                if outer.is_some_and(|outer| outer.split('/').any(|part| !part.contains('#'))) {
                    unknown.push(format!(
                        "`{key}`: `{place}` has no number of an iteration, such as poll#3/check"
                    ));
                }
            }
        }
        unknown
    }

    /// Returns descriptions of the results that differ from the expected ones.
    pub fn differs(&self, report: &SimulationReport) -> Vec<String> {
        let mut found = Vec::new();
        // If a case expects neither a status nor an error nor a next step, its run must succeed.
        let silent = ["status", "error", "next"]
            .iter()
            .all(|key| self.0.get(*key).is_none());
        let badly = report.stopped.is_some() || !matches!(&*report.status, "Succeeded" | "Stopped");
        if silent && badly {
            found.push(format!("it is {}{}", report.status, because(report)));
        }
        for (key, wanted) in &self.0 {
            let differs = one(key, wanted, report);
            found.extend(differs);
        }
        found
    }
}

fn because(report: &SimulationReport) -> String {
    reason(report)
        .map(|why| format!(" ({why})"))
        .unwrap_or_default()
}

/// Returns why a run did not succeed.
fn reason(report: &SimulationReport) -> Option<String> {
    let error = report.error.as_ref();
    let error = error.map(|error| format!("{}: {}", error.kind, error.message));
    error.or_else(|| report.stopped.clone())
}

fn one(key: &str, wanted: &Value, report: &SimulationReport) -> Option<String> {
    let (same, is) = match key {
        "status" => {
            let word = wanted.as_str();
            let same = word.is_some_and(|word| word.eq_ignore_ascii_case(&report.status));
            (same, Value::text(&*report.status))
        }
        "output" => {
            let is = report.output.clone().unwrap_or_default();
            (is == *wanted, is)
        }
        "error" => {
            let is = reason(report).unwrap_or_default();
            let part = wanted.as_str().unwrap_or_default();
            (!part.is_empty() && is.contains(part), Value::text(is))
        }
        "took" => {
            let time = wanted.as_str().and_then(|text| parse_duration(text).ok());
            let same = time.is_some_and(|time| time.as_millis() == u128::from(report.took_ms));
            (same, Value::text(format!("{} ms", report.took_ms)))
        }
        "calls" => return counts(wanted, "called", &|name| calls(report, name).count()),
        "iterations" => {
            return counts(wanted, "iterated", &|name| {
                let count = report.iterations.get(name).copied().unwrap_or(0);
                usize::try_from(count).unwrap_or(usize::MAX)
            });
        }
        "waits" => {
            let waits = report.steps.iter().filter_map(|step| match step.what {
                SimulatedStepKind::Wait { ms, .. } => Some(ms),
                _ => None,
            });
            let waits: Vec<u64> = waits.collect();
            let millis = |value: &Value| {
                let time = value.as_str().and_then(|text| parse_duration(text).ok())?;
                u64::try_from(time.as_millis()).ok()
            };
            let list = wanted.as_array().into_iter().flatten();
            let same = list.map(millis).eq(waits.iter().copied().map(Some));
            let is = waits.iter().map(|ms| Value::text(format!("{ms}ms")));
            (same, Value::array(is.collect()))
        }
        "state" => {
            let is = Value::object(report.state.clone());
            (within(wanted, &is), is)
        }
        "inputs" => {
            let map = wanted.as_object()?;
            return map.iter().find_map(|(name, wanted)| {
                let last = calls(report, name).last();
                match last {
                    None => Some(format!("`{name}` was not called")),
                    Some(SimulatedStepKind::Call { inputs, .. }) if within(wanted, inputs) => None,
                    Some(SimulatedStepKind::Call { inputs, .. }) => Some(format!(
                        "the inputs of `{name}` are {}, not {}",
                        short(inputs, 300),
                        short(wanted, 300)
                    )),
                    Some(_) => None,
                }
            });
        }
        _ => {
            let words = report.next.iter().map(|step| Value::text(word(step)));
            let is = Value::array(words.collect());
            (is == *wanted, is)
        }
    };
    if same {
        return None;
    }
    let because = match key {
        "status" => because(report),
        _ => String::new(),
    };
    let (is, wanted) = (short(&is, 300), short(wanted, 300));
    Some(format!("`{key}` is {is}, not {wanted}{because}"))
}

/// Returns a word for a step: its place (`poll#1/check`), or for a wait its time (`wait 10s`).
fn word(step: &SimulatedStep) -> String {
    match step.what {
        SimulatedStepKind::Wait { ms, .. } => {
            let time = std::time::Duration::from_millis(ms);
            format!("wait {}", crate::cli::format::duration(time))
        }
        _ => step.place.clone(),
    }
}

/// Returns the calls of an action, or at a place. They include the calls that would be made next.
fn calls<'t>(
    report: &'t SimulationReport,
    name: &str,
) -> impl Iterator<Item = &'t SimulatedStepKind> {
    let steps = report.steps.iter().chain(&report.next);
    steps.filter_map(move |step| {
        let SimulatedStepKind::Call { title, .. } = &step.what else {
            return None;
        };
        let last = name_of_part(step.place.rsplit('/').next().unwrap_or_default());
        let meant = step.place == name || last == name || title.as_deref() == Some(name);
        meant.then_some(&step.what)
    })
}

fn counts(wanted: &Value, did: &str, count: &dyn Fn(&str) -> usize) -> Option<String> {
    let map = wanted.as_object()?;
    map.iter().find_map(|(name, wanted)| {
        let is = count(name);
        let same = wanted
            .as_int()
            .and_then(|wanted| usize::try_from(wanted).ok())
            == Some(is);
        (!same).then(|| format!("`{name}` was {did} {is} times, not {}", wanted.to_json()))
    })
}

/// Returns whether a value contains all of another value.
/// Of a map, only the members of the wanted map are compared.
fn within(wanted: &Value, is: &Value) -> bool {
    match (wanted, is) {
        (Value::Object(wanted), Value::Object(is)) => wanted
            .iter()
            .all(|(key, wanted)| is.get(key).is_some_and(|is| within(wanted, is))),
        _ => wanted == is,
    }
}
