//! Reads what the user passes to a command: inputs, labels, handlers, and the options for loading a workflow.

use super::args::{Global, HandlerArgs, InputArgs, LoadArgs};
use super::exit::Failure;
use super::policy::GuestArgs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_engine::{
    Dialect, Engine, EngineBuilder, HandlerTarget, LoadError, LoadOptions, Object, Origin,
    OtlpTarget, SecretSources, StateKey, StoreKind, Stubs, Value, Workflow, check_labels,
    check_run_id, new_id, read_file,
};
use windlass_engine::{MAX_MEMORY, memory_of_json, memory_of_yaml, over_memory};
use windlass_value::check_unique;

/// Returns the options for loading a workflow.
pub fn options(
    global: &Global,
    load: &LoadArgs,
    handlers: &HandlerArgs,
) -> Result<LoadOptions, Failure> {
    let dialect = load.dialect.as_deref().map(dialect).transpose()?;
    Ok(LoadOptions {
        origin: Origin::Operator,
        dialect,
        max_count: load.max_count,
        max_timeout: load.max_timeout.map(|time| time.0),
        handlers: self::handlers(handlers)?,
        secrets: secrets(handlers)?,
        secret_command: handlers.secret_command.clone(),
        rates: handlers.rate.clone(),
        state_key: state_key(global)?,
        parameters: load.parameters.as_deref().map(read_file).transpose()?,
        workflow: load.workflow.clone(),
        app_settings: load.app_settings.as_deref().map(read_file).transpose()?,
        auto_continue: false,
        siblings: stubs(handlers)?.values,
        folder: folder(),
        allow_env: load.env.allow_env.clone(),
    })
}

/// Returns the builder of an engine with the handlers, secrets, rates, state key and readable environment variables of
/// these options.
pub fn engine(options: &LoadOptions, guest: &GuestArgs) -> EngineBuilder {
    let mut builder = guest
        .apply(Engine::builder())
        .allow_env(&options.allow_env)
        .rates(options.rates.clone());
    for (name, target) in &options.handlers {
        builder = builder.register_handler(name, target.clone());
    }
    let mut sources = SecretSources::default();
    if let Some(directory) = &options.secrets {
        sources = sources.with_directory(directory);
    }
    if let Some(line) = &options.secret_command {
        sources = sources.with_command(line);
    }
    builder = builder.secrets(sources);
    if let Some(target) = OtlpTarget::from_variables(|name| std::env::var(name).ok()) {
        builder = builder.otlp(target);
    }
    if let Some(key) = &options.state_key {
        builder = builder.state_key(key.clone());
    }
    builder
}

/// Sets the database that `--store` names, if it names one.
pub fn with_store_kind(builder: EngineBuilder, kind: Option<StoreKind>) -> EngineBuilder {
    match kind {
        Some(kind) => builder.store(kind),
        None => builder,
    }
}

/// The name of the systemd credential with the key that encrypts secure values in the store.
const STATE_KEY: &str = "windlass.state-key";

/// Returns the key that encrypts secure values in the store.
/// It is in the file of `--state-key`, or in a systemd credential.
pub fn state_key(global: &Global) -> Result<Option<StateKey>, Failure> {
    let credential = || {
        let directory = std::env::var_os("CREDENTIALS_DIRECTORY")?;
        let path = PathBuf::from(directory).join(STATE_KEY);
        path.exists().then_some(path)
    };
    let Some(path) = global.state_key.clone().or_else(credential) else {
        return Ok(None);
    };
    let key = StateKey::from_file(&path);
    key.map(Some)
        .map_err(|error| Failure::Usage(format!("--state-key: {error}")))
}

/// Returns the directory of `--secrets`. It is an error if the directory does not exist.
fn secrets(args: &HandlerArgs) -> Result<Option<PathBuf>, Failure> {
    match &args.secrets {
        Some(path) if !path.is_dir() => {
            let message = format!("--secrets: {} is not a directory", path.display());
            Err(Failure::Usage(message))
        }
        given => Ok(given.clone()),
    }
}

/// Returns the working directory of the command.
/// The relative paths in a run's actions refer to it, even if the run continues in another process.
fn folder() -> Option<String> {
    std::env::current_dir().ok()?.to_str().map(str::to_owned)
}

/// Parses the name of a dialect.
pub fn dialect(word: &str) -> Result<Dialect, Failure> {
    Dialect::parse(word).ok_or_else(|| {
        let message = format!("unknown format `{word}` (expected loom, azure, tea or canvas)");
        Failure::Usage(message)
    })
}

pub fn handlers(args: &HandlerArgs) -> Result<Vec<(String, HandlerTarget)>, Failure> {
    let mut found = match &args.handlers {
        Some(path) => read_handlers(path)?,
        None => Vec::new(),
    };
    found.extend(stubs(args)?.handlers);
    Ok(found)
}

/// Reads the file of stubs, if there is one. Its input is used for a run that has no other inputs, and `windlass test`
/// sends its signals.
pub fn stubs(args: &HandlerArgs) -> Result<Stubs, Failure> {
    let Some(path) = &args.stub else {
        return Ok(Stubs::default());
    };
    let name = path.display().to_string();
    let stubs = Stubs::read(&parse(path, &read(path)?)?, &name);
    stubs.map_err(|message| Failure::Usage(format!("{name}: {message}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandlerEntry {
    command: Option<Vec<String>>,
    url: Option<String>,
}

/// A file whose handlers are inside of `handlers:`. They can also be at the top of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandlerFile {
    handlers: BTreeMap<String, HandlerEntry>,
}

fn read_handlers(path: &Path) -> Result<Vec<(String, HandlerTarget)>, Failure> {
    let file = read(path)?;
    let bad = |message: String| Failure::Usage(format!("{}: {message}", path.display()));
    let wrapped: Result<HandlerFile, _> = serde_yaml::from_str(&file);
    let entries = match wrapped {
        Ok(wrapped) => wrapped.handlers,
        Err(_) => serde_yaml::from_str(&file).map_err(|error| bad(error.to_string()))?,
    };
    let target = |(name, entry): (String, HandlerEntry)| match (entry.command, entry.url) {
        (Some(argv), None) if !argv.is_empty() => Ok((name, HandlerTarget::Command(argv))),
        (None, Some(url)) => Ok((name, HandlerTarget::Url(url))),
        _ => Err(bad(format!(
            "handler `{name}` has either `command`, a list of at least one word, or `url`"
        ))),
    };
    entries.into_iter().map(target).collect()
}

/// Returns the inputs in a file, together with the inputs of the flags. A flag replaces an input of the same name.
/// Text in a flag is converted to the type that the workflow declares.
pub fn inputs(
    file: Option<&Path>,
    flags: &[String],
    workflow: Option<&Workflow>,
) -> Result<Value, Failure> {
    let from_text = |name: &str, text: &str| match workflow {
        Some(workflow) => Ok(workflow.input_from_text(name, text)?),
        None => Ok(Value::text(text)),
    };
    let mut map = match file {
        None if flags.is_empty() => return Ok(Value::Null),
        None => Object::new(),
        Some(path) => match parse(path, &read(path)?)? {
            Value::Object(map) => Arc::unwrap_or_clone(map),
            other if flags.is_empty() => return Ok(other),
            other => {
                return Err(Failure::Usage(format!(
                    "{} holds {}, and -i only adds to an object",
                    path.display(),
                    other.kind()
                )));
            }
        },
    };
    let mut given = Object::new();
    for flag in flags {
        pairs(flag, "-i", &mut given, from_text)?;
    }
    map.extend(given);
    Ok(Value::object(map))
}

/// Returns the id and the labels of a new run of a workflow.
pub fn id_and_labels(
    given: &InputArgs,
    workflow: &str,
) -> Result<(String, BTreeMap<String, String>), Failure> {
    let labels = labels(&given.label)?;
    check_labels(&labels)?;
    let id = match &given.id {
        Some(id) => run_id(id)?,
        None => new_id(workflow),
    };
    Ok((id, labels))
}

/// Parses labels. A value that is not text is converted to its JSON.
pub fn labels(flags: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut map = Object::new();
    for flag in flags {
        pairs(flag, "--label", &mut map, |_, text| Ok(Value::text(text)))?;
    }
    let text = |value: Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_json(),
    };
    Ok(map
        .into_iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect())
}

/// Parses a flag: `NAME=TEXT`, `NAME:=JSON`, or a JSON object with several values.
fn pairs(
    flag: &str,
    which: &str,
    into: &mut Object,
    from_text: impl Fn(&str, &str) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    if flag.trim_start().starts_with('{') {
        let value = Value::from_json(flag)
            .map_err(|error| Failure::Usage(format!("{which}: {error} in `{flag}`")))?;
        if let Value::Object(map) = value {
            into.extend(Arc::unwrap_or_clone(map));
        }
        return Ok(());
    }
    let Some((name, text)) = flag.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(Failure::Usage(format!(
            "{which} accepts NAME=TEXT, NAME:=JSON or a JSON object, not `{flag}`"
        )));
    };
    let (name, value) = match name.strip_suffix(':') {
        None => (name, from_text(name, text)?),
        Some(name) => {
            let value = Value::from_json(text)
                .map_err(|error| Failure::Usage(no_json(which, name, text, &error)))?;
            (name, value)
        }
    };
    match into.insert(Arc::from(name), value) {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!("{which}: `{name}` has two values"))),
    }
}

fn no_json(which: &str, name: &str, text: &str, error: &impl std::fmt::Display) -> String {
    let shown = super::output::cut(text, 60);
    format!(
        "{which} {name}: `:=` expects JSON, and `{shown}` is not valid JSON ({error}); for text \
         use `=`: {which} {name}={shown}"
    )
}

/// Checks a run id that a user chose, and returns it.
pub fn run_id(id: &str) -> Result<String, Failure> {
    check_run_id(id).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(id.to_owned())
}

/// The environment variable that holds the token itself.
const TOKEN: &str = "WINDLASS_TOKEN";

/// Reads the token in a file, or in the environment variable.
/// An empty token is an error, so that the user notices that the token is missing.
pub fn token(file: Option<&Path>) -> Result<Option<String>, Failure> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| Failure::Unreadable {
            path: path.display().to_string(),
            error,
        })?,
        None => match std::env::var_os(TOKEN) {
            None => return Ok(None),
            Some(given) => given.to_string_lossy().into_owned(),
        },
    };
    let token = text.trim();
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    match (token.is_empty(), file) {
        (true, None) => Err(Failure::Usage(format!(
            "{TOKEN} is empty: put the token into it, or unset it"
        ))),
        (true, Some(path)) => Err(Failure::Usage(format!("{} holds no token", path.display()))),
        (false, Some(path)) if !visible => Err(Failure::Usage(format!(
            "{}: a client needs a file with one token and nothing else",
            path.display()
        ))),
        (false, None) if !visible => Err(Failure::Usage(String::from(
            "a token must be ASCII without spaces",
        ))),
        (false, _) => Ok(Some(token.to_owned())),
    }
}

/// Reads the text of a file. `-` means standard input.
pub fn read(path: &Path) -> Result<String, Failure> {
    // A pipe, such as a shell makes for `<(command)`, can be read only once. Stubs are read several times, so the
    // text is stored.
    static PIPES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = pipes.get(path) {
        return Ok(text.clone());
    }
    let is_pipe = path == Path::new("-")
        || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    match read_file(path) {
        Ok(file) => {
            if is_pipe {
                pipes.insert(path.to_owned(), file.text.clone());
            }
            Ok(file.text)
        }
        Err(LoadError::Unreadable { path, error }) => Err(Failure::Unreadable { path, error }),
        Err(other) => Err(other.into()),
    }
}

/// Parses JSON or YAML.
/// The file is YAML if its name says so, or if it is a pipe whose text does not begin like JSON. Values that would
/// need too much memory are refused.
pub fn parse(path: &Path, text: &str) -> Result<Value, Failure> {
    let bad = |error: String| Failure::Usage(format!("{}: {error}", path.display()));
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = path.extension();
    let is_yaml = ending.is_some_and(|ending| ending == "yaml" || ending == "yml");
    // The name of a pipe does not contain the format, so its text decides.
    let is_pipe = path.starts_with("/dev/fd");
    let yaml = is_yaml || (is_pipe && !text.trim_start().starts_with(['{', '[']));
    let weight = match yaml {
        true => memory_of_yaml(text.as_bytes()),
        false => memory_of_json(text.as_bytes()),
    };
    if let Some(reason) = over_memory(weight, MAX_MEMORY) {
        return Err(bad(format!("its values would {reason}")));
    }
    if yaml {
        let unique = check_unique(serde_yaml::Deserializer::from_str(text));
        let parsed = unique.and_then(|()| serde_yaml::from_str(text));
        parsed.map_err(|error| bad(error.to_string()))
    } else {
        let value = Value::from_json(text).map_err(|error| bad(error.to_string()))?;
        let unique = check_unique(&mut serde_json::Deserializer::from_str(text));
        unique.map_err(|error| bad(error.to_string()))?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_text_json_or_objects() {
        let flags = ["a=1", "b:=[1, 2]", "{\"c\": {\"d\": true}}", "e=x=y"];
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let value = inputs(None, &flags, None).unwrap();
        assert_eq!(
            value.to_json(),
            r#"{"a":"1","b":[1,2],"c":{"d":true},"e":"x=y"}"#
        );
        assert_eq!(inputs(None, &[], None).unwrap(), Value::Null);
        for bad in ["a", "=1", "a:=nope", "{\"a\":"] {
            let flags = [bad.to_owned()];
            assert!(
                matches!(inputs(None, &flags, None), Err(Failure::Usage(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn labels_are_text() {
        let flags = ["team=core".to_owned(), "{\"n\": 3}".to_owned()];
        let labels = labels(&flags).unwrap();
        assert_eq!(labels["team"], "core");
        assert_eq!(labels["n"], "3");
    }
}
