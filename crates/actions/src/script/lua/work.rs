//! The worker process that runs Lua scripts. It reads one job per line from standard input and writes one answer per
//! line to standard output. What a script prints goes to standard error. The process ends at the end of its input. The
//! engine kills it if a script exceeds its timeout.

use super::convert::{ConversionError, from_lua, to_lua};
use crate::script::log::MAX_LOG;
use crate::script::pool::{Failed, Failure};
use mlua::chunk::ChunkMode;
use mlua::prelude::{Lua as State, LuaError, LuaOptions, LuaResult, LuaValue};
use mlua::{MultiValue, StdLib, Table};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass_expression::{Object, Value};
use windlass_value::first_chars;

/// If a worker uses more memory than this, in KiB, it is not used again.
const MAX_RESIDENT: i64 = 256 << 10;

/// Removes functions that read files, make bytecode, or show the address of a value in memory.
const PRELUDE: &str = r#"
dofile, loadfile, string.dump = nil, nil, nil
local exact, kind, pack, unpack = tostring, type, table.pack, table.unpack
local format, gsub, find = string.format, string.gsub, string.find
local references = { table = true, ["function"] = true, thread = true, userdata = true }
local function text(value)
  local shown = exact(value)
  if references[kind(value)] then shown = gsub(shown, ": 0x%x+$", "") end
  return shown
end
tostring = text
string.format = function(pattern, ...)
  if kind(pattern) == "string" and find((gsub(pattern, "%%%%", "")), "%%[-+ #0-9.]*p") then
    error("string.format has no %p here", 2)
  end
  local values = pack(...)
  for at = 1, values.n do
    if references[kind(values[at])] then values[at] = text(values[at]) end
  end
  return format(pattern, unpack(values, 1, values.n))
end
"#;

/// A job as the worker reads it, with the members that Lua needs.
#[derive(Deserialize)]
struct Job {
    id: u64,
    code: String,
    globals: Object,
    memory: usize,
}

#[derive(Serialize)]
struct LuaReply<'a> {
    id: u64,
    spent: bool,
    #[serde(flatten)]
    given: &'a LuaInput,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum LuaInput {
    Fault(Failure),
    #[serde(untagged)]
    Outcome {
        result: Value,
        returned: bool,
        locals: Value,
    },
}

/// Runs jobs until the end of the input.
pub(super) fn work() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> std::io::Result<()> {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let job: Job = serde_json::from_str(&line?)?;
        let given = run(&job).unwrap_or_else(LuaInput::Fault);
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let answer = LuaReply {
            id: job.id,
            spent: usage.max_rss() > MAX_RESIDENT,
            given: &given,
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        answers.write_all(&line)?;
        answers.flush()?;
    }
    Ok(())
}

fn run(job: &Job) -> Result<LuaInput, Failure> {
    let lua = prepare(job).map_err(|error| fault(&error))?;
    let globals = lua.globals();
    let known = members(&globals).map_err(|error| fault(&error))?;
    let given: MultiValue = lua
        .load(job.code.as_str())
        .set_name("=script")
        .set_mode(ChunkMode::Text)
        .call(())
        .map_err(|error| fault(&error))?;
    let given = given.into_iter().next().unwrap_or(LuaValue::Nil);
    let result = from_lua(&given, "result").map_err(refused)?;
    let mut locals = Object::new();
    for (name, value) in members(&globals).map_err(|error| fault(&error))? {
        let is_old = known.get(&name).is_some_and(|old| *old == value);
        if is_old || name.starts_with('_') {
            continue;
        }
        match from_lua(&value, &name) {
            Ok(value) => {
                locals.insert(name.into(), value);
            }
            Err(refusal) if refusal.is_no_data() => {}
            Err(refusal) => return Err(refused(refusal)),
        }
    }
    locals.sort_unstable_keys();
    let returned = !given.is_nil();
    let result = match locals.get("result") {
        Some(named) if !returned => named.clone(),
        _ => result,
    };
    Ok(LuaInput::Outcome {
        result,
        returned,
        locals: Value::object(locals),
    })
}

/// Makes a Lua state with the allowed functions and the script's globals.
fn prepare(job: &Job) -> LuaResult<State> {
    let libraries =
        StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE;
    let lua = State::new_with(libraries, LuaOptions::new())?;
    lua.set_memory_limit(job.memory)?;
    lua.load(PRELUDE).exec()?;
    let globals = lua.globals();
    globals.set("load", lua.create_function(load)?)?;
    globals.set("print", printer(&lua)?)?;
    for (name, value) in &job.globals {
        globals.set(&**name, to_lua(&lua, value)?)?;
    }
    Ok(lua)
}

/// Replaces `load` by a version that refuses bytecode, because bytecode could escape from Lua.
fn load(
    lua: &State,
    (chunk, name, _mode, scope): (LuaValue, Option<String>, LuaValue, Option<Table>),
) -> LuaResult<MultiValue> {
    let mut source = Vec::new();
    match chunk {
        LuaValue::String(text) => source.extend_from_slice(&text.as_bytes()),
        LuaValue::Function(pieces) => loop {
            match pieces.call::<Option<mlua::LuaString>>(())? {
                Some(piece) if !piece.as_bytes().is_empty() => {
                    source.extend_from_slice(&piece.as_bytes());
                }
                _ => break,
            }
        },
        other => {
            let message = format!("load needs text, not {}", other.type_name());
            return Err(LuaError::runtime(message));
        }
    }
    let mut chunk = lua.load(source).set_mode(ChunkMode::Text);
    chunk = chunk.set_name(name.unwrap_or_else(|| "=load".to_owned()));
    if let Some(scope) = scope {
        chunk = chunk.set_environment(scope);
    }
    match chunk.into_function() {
        Ok(function) => Ok(MultiValue::from_vec(vec![LuaValue::Function(function)])),
        Err(error) => {
            let words = lua.create_string(error.to_string())?;
            Ok(MultiValue::from_vec(vec![
                LuaValue::Nil,
                LuaValue::String(words),
            ]))
        }
    }
}

fn printer(lua: &State) -> LuaResult<mlua::Function> {
    let left = AtomicUsize::new(MAX_LOG);
    lua.create_function(move |_, values: MultiValue| {
        let words: LuaResult<Vec<String>> = values.iter().map(shown).collect();
        let text = words?.join("\t");
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(text.len() + 1), Ordering::Relaxed);
        if before > 0 {
            // An error is ignored: standard error may have no reader.
            let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
        }
        Ok(())
    })
}

/// Returns a value as `print` shows it. The text of a table or a function omits its address in memory.
fn shown(value: &LuaValue) -> LuaResult<String> {
    let text = value.to_string()?;
    Ok(match value {
        LuaValue::Table(_)
        | LuaValue::Function(_)
        | LuaValue::Thread(_)
        | LuaValue::UserData(_)
        | LuaValue::LightUserData(_) => match text.rsplit_once(": 0x") {
            Some((kind, _)) => kind.to_owned(),
            None => text,
        },
        _ => text,
    })
}

/// Returns the globals whose names are text.
fn members(globals: &Table) -> LuaResult<HashMap<String, LuaValue>> {
    let mut found = HashMap::new();
    for pair in globals.pairs::<LuaValue, LuaValue>() {
        let (name, value) = pair?;
        if let LuaValue::String(name) = name
            && let Ok(name) = name.to_str()
        {
            found.insert(name.to_owned(), value);
        }
    }
    Ok(found)
}

/// Converts an error of Lua for the script's author: with the line of the script and without the stack trace.
fn fault(error: &LuaError) -> Failure {
    let (class, message) = match error {
        LuaError::SyntaxError { message, .. } => ("SyntaxError", message.clone()),
        LuaError::MemoryError(_) => ("MemoryError", "more memory than the limit".to_owned()),
        LuaError::CallbackError { cause, .. } => return fault(cause),
        LuaError::RuntimeError(message) => ("RuntimeError", message.clone()),
        other => ("RuntimeError", other.to_string()),
    };
    let words = message.split("\nstack traceback:").next();
    let words = words.unwrap_or_default().trim();
    let located = words.strip_prefix("script:").and_then(|rest| {
        let (line, words) = rest.split_once(": ")?;
        Some((line.parse().ok()?, words))
    });
    let (line, words) = match located {
        Some((line, words)) => (Some(line), words),
        None => (None, words),
    };
    Failure {
        failed: Failed::Raised,
        class: class.to_owned(),
        message: first_chars(words, 2000).to_owned(),
        line,
    }
}

fn refused(refusal: ConversionError) -> Failure {
    Failure {
        failed: match refusal.is_too_large() {
            true => Failed::TooLarge,
            false => Failed::Raised,
        },
        class: String::from("TypeError"),
        message: refusal.to_string(),
        line: None,
    }
}
