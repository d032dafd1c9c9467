//! `lua`: Lua 5.4, embedded, without anything that reaches outside of it. Every script has a state
//! of its own. It never outlives its attempt by more than a few instructions, unless it sits in one
//! of Lua's own functions, such as the search for a pattern.

use super::{Job, Outcome, bounded, broken, failed, log, slots};
use crate::action::{Attempt, Executor};
use crate::expression::{Object, Value};
use crate::model::{Fault, Request, fault_kind};
use convert::{Refused, from_lua, to_lua};
use mlua::chunk::ChunkMode;
use mlua::prelude::{Lua as State, LuaError, LuaOptions, LuaResult, LuaValue};
use mlua::{HookTriggers, MultiValue, StdLib, Table, VmState};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

mod convert;

/// Bytes of memory of a script when the action does not say.
const DEFAULT_MEMORY: usize = 64 << 20;

/// Instructions between two looks at whether the attempt was cut.
const LOOK_EVERY: u32 = 1000;

/// What catches errors must not catch the one that ends a script, and nothing may run where no hook
/// can end it: in a finalizer, in the handler of an error that a hook raised, in what closes a
/// variable while a hook raises one.
const PRELUDE: &str = r#"
local check = ...
local pcall0, error0, ipairs0 = pcall, error, ipairs
local rawget0, setmetatable0 = rawget, setmetatable
local create0, resume0, close0 = coroutine.create, coroutine.resume, coroutine.close
local function handled(handler, ok, ...)
    if ok then return ok, ... end
    local _, value = check(pcall0(handler, ...))
    return false, value
end
local function unwrapped(thread, ok, ...)
    if ok then return ... end
    close0(thread)
    error0((...), 0)
end
function pcall(...) return check(pcall0(...)) end
function xpcall(f, handler, ...) return handled(handler, check(pcall0(f, ...))) end
function coroutine.resume(...) return check(resume0(...)) end
function coroutine.close(...)
    check()
    return check(close0(...))
end
function coroutine.wrap(f)
    local thread = create0(f)
    return function(...) return unwrapped(thread, check(resume0(thread, ...))) end
end
function setmetatable(table, meta)
    for _, name in ipairs0({"__gc", "__close"}) do
        if meta ~= nil and rawget0(meta, name) ~= nil then
            error0(name .. " is not available", 2)
        end
    end
    return setmetatable0(table, meta)
end
dofile, loadfile, string.dump = nil, nil, nil
"#;

/// The executor of `lua`.
pub(in crate::action) struct Lua {
    slots: Arc<Semaphore>,
}

impl Default for Lua {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots())),
        }
    }
}

/// Ends the script when the attempt is dropped.
struct Cut(Arc<AtomicBool>);

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Executor for Lua {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let job = Job::read(request, DEFAULT_MEMORY)?;
            let script = Script {
                code: job.code.to_owned(),
                state: job.state(),
                globals: Arc::clone(&job.globals),
                memory: job.memory,
                action: request.action.to_string(),
            };
            let slot = Arc::clone(&self.slots).acquire_owned().await;
            let is_cut = Arc::new(AtomicBool::new(false));
            let _cut = Cut(Arc::clone(&is_cut));
            let run = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                script.run(&is_cut)
            });
            match bounded(request, run).await? {
                Ok(outcome) => Ok(outcome?.into_value()),
                Err(error) => Err(broken(format!("the script broke off: {error}"))),
            }
        })
    }
}

/// A job that a thread can own.
struct Script {
    code: String,
    globals: Arc<Object>,
    state: Value,
    memory: usize,
    action: String,
}

impl Script {
    fn run(self, is_cut: &Arc<AtomicBool>) -> Result<Outcome, Fault> {
        let lua = self.prepare(is_cut).map_err(|error| fault(&error))?;
        let globals = lua.globals();
        let known = members(&globals).map_err(|error| fault(&error))?;
        let given: MultiValue = lua
            .load(self.code.as_str())
            .set_name("=script")
            .set_mode(ChunkMode::Text)
            .call(())
            .map_err(|error| fault(&error))?;
        let given = given.into_iter().next().unwrap_or(LuaValue::Nil);
        let result = from_lua(&given, "result", is_cut).map_err(refused)?;
        let mut locals = Object::new();
        for (name, value) in members(&globals).map_err(|error| fault(&error))? {
            let is_old = known.get(&name).is_some_and(|old| *old == value);
            if is_old || name.starts_with('_') {
                continue;
            }
            match from_lua(&value, &name, is_cut) {
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
        Ok(Outcome {
            result,
            returned,
            state: self.state,
            locals: Value::object(locals),
        })
    }

    /// A state with nothing in it but what a script may use, and its globals.
    fn prepare(&self, is_cut: &Arc<AtomicBool>) -> LuaResult<State> {
        let libraries =
            StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE;
        let lua = State::new_with(libraries, LuaOptions::new())?;
        lua.set_memory_limit(self.memory)?;
        let look = |is_cut: &Arc<AtomicBool>| {
            if is_cut.load(Ordering::Relaxed) {
                return Err(LuaError::runtime("the attempt was cut"));
            }
            Ok(())
        };
        let flag = Arc::clone(is_cut);
        let check = lua.create_function(move |_, values: MultiValue| {
            look(&flag)?;
            Ok(values)
        })?;
        lua.load(PRELUDE).call::<()>(check)?;
        let globals = lua.globals();
        globals.set("load", lua.create_function(load)?)?;
        let action = self.action.clone();
        globals.set("print", printer(&lua, action)?)?;
        for (name, value) in self.globals.iter() {
            globals.set(&**name, to_lua(&lua, value)?)?;
        }
        let flag = Arc::clone(is_cut);
        let often = HookTriggers::new().every_nth_instruction(LOOK_EVERY);
        lua.set_global_hook(often, move |_, _| {
            look(&flag)?;
            Ok(VmState::Continue)
        })?;
        Ok(lua)
    }
}

/// `load` without bytecode, which could break out of Lua.
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

fn printer(lua: &State, action: String) -> LuaResult<mlua::Function> {
    let left = std::sync::atomic::AtomicUsize::new(log::MAX_LOG);
    lua.create_function(move |_, values: MultiValue| {
        let words: LuaResult<Vec<String>> = values.iter().map(LuaValue::to_string).collect();
        let text = words?.join("\t");
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(text.len() + 1), Ordering::Relaxed);
        if before > 0 {
            log::line(&action, &text);
        }
        Ok(())
    })
}

/// The globals that are named by text.
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

/// What Lua says of an error, as its author may read it: with the line of the script and without
/// the trace.
fn fault(error: &LuaError) -> Fault {
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
    match located {
        Some((line, words)) => failed(class, &short(words), Some(line)),
        None => failed(class, &short(words), None),
    }
}

fn short(words: &str) -> String {
    words.chars().take(2000).collect()
}

fn refused(refusal: Refused) -> Fault {
    if refusal.is_too_large() {
        return Fault::new(fault_kind::TOO_LARGE, refusal.to_string());
    }
    failed("TypeError", &refusal.to_string(), None)
}
