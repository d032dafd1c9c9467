//! `file.read` and `file.write`: they read and write whole files of this machine, as text. As in The Edge Agent, an
//! error with a file is not a fault but a value with `success: false`. Nothing is written into the engine's store.

use super::execution_context::{resolved, state};
use super::inputs::{Inputs, invalid};
use super::sink;
use super::{Attempt, Executor};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use windlass_expression::{Object, Value};
use windlass_model::model::{Fault, Request, fault_kind};

/// Maximum size in bytes of a file that is read.
const MAX_BYTES: u64 = 16 << 20;

pub(super) struct FileRead;
pub(super) struct FileWrite;

impl Executor for FileRead {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let (shown, path) = place(Inputs::of(request)?)?;
            let read = tokio::task::spawn_blocking(move || read(&path)).await;
            let read = read.map_err(|error| invalid(format!("reading {shown}: {error}")))?;
            Ok(match read {
                Ok(content) => success_value("content", Value::text(content)),
                Err(error) => failed(&shown, &error, "read_error"),
            })
        })
    }
}

impl Executor for FileWrite {
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a> {
        Box::pin(async {
            let inputs = Inputs::of(request)?;
            let (shown, path) = place(inputs)?;
            let content = inputs.get("content").unwrap_or(&Value::Null);
            let Some(content) = content.as_str().map(str::to_owned) else {
                let kind = match content {
                    Value::Null => "NoneType",
                    Value::Bool(_) => "bool",
                    Value::Int(_) => "int",
                    Value::Float(_) => "float",
                    Value::Array(_) => "list",
                    _ => "dict",
                };
                let message = format!("write() argument must be str, not {kind}");
                return Ok(failure(&message, "write_error"));
            };
            let state = state();
            let write = move || write(&path, state.as_deref(), content.as_bytes());
            let written = tokio::task::spawn_blocking(write).await;
            let written = written.map_err(|error| invalid(format!("writing {shown}: {error}")))?;
            match written {
                Ok(true) => Ok(success_value("path", Value::text(shown))),
                Ok(false) => {
                    let message =
                        format!("{shown} is in the engine's own store: nothing was written");
                    Err(Fault::new(fault_kind::DENIED, message))
                }
                Err(error) => Ok(failed(&shown, &error, "write_error")),
            }
        })
    }
}

/// Returns the path as the action names it, for outputs, and the resolved path.
fn place(inputs: Inputs<'_>) -> Result<(String, PathBuf), Fault> {
    let path = inputs.required_text("path")?;
    let path = path.strip_prefix("file://").unwrap_or(path);
    if path.contains("://") {
        return Err(invalid(format!(
            "only files of this machine are read and written, not {path}"
        )));
    }
    Ok((path.to_owned(), resolved(path)))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    let length = file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_BYTES {
        let message = format!("the file has more than {} MiB", MAX_BYTES >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// Writes a file. Returns false, without writing, if the file is in the engine's store.
fn write(path: &Path, state: Option<&Path>, content: &[u8]) -> io::Result<bool> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let Some(mut file) = sink::open(path, state, true)? else {
        return Ok(false);
    };
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()?;
    sink::sync_name(&std::fs::canonicalize(path)?)?;
    Ok(true)
}

fn success_value(key: &str, value: Value) -> Value {
    Value::from_pairs([(key, value), ("success", Value::Bool(true))])
}

fn failed(shown: &str, error: &io::Error, kind: &str) -> Value {
    match error.kind() {
        ErrorKind::NotFound if kind == "read_error" => {
            failure(&format!("File not found: {shown}"), "not_found")
        }
        ErrorKind::NotFound => failure(&format!("Path not found: {shown}"), "not_found"),
        ErrorKind::PermissionDenied => {
            failure(&format!("Permission denied: {shown}"), "permission_denied")
        }
        _ => match error.raw_os_error() {
            Some(number) => {
                let text = error.to_string();
                let words = text.split(" (os error").next().unwrap_or_default();
                failure(&format!("[Errno {number}] {words}: '{shown}'"), kind)
            }
            None => failure(&error.to_string(), kind),
        },
    }
}

fn failure(error: &str, kind: &str) -> Value {
    let mut failed = Object::new();
    failed.insert("success".into(), Value::Bool(false));
    failed.insert("error".into(), Value::text(error));
    failed.insert("error_type".into(), Value::text(kind));
    Value::object(failed)
}
