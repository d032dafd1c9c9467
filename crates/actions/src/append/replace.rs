//! Files that a run rewrites: the rows go to a sibling of the file, which replaces the file when the
//! run succeeds. Until then, and when the run ends otherwise, the file is as it was. A step that is
//! repeated after a crash has the same result.

use super::keys;
use crate::inputs::invalid;
use crate::sink;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use windlass_expression::{Object, Value};
use windlass_model::model::Fault;

/// Where the rows of a run are until it has succeeded.
pub(super) fn sibling(target: &str, run: &str) -> String {
    format!("{target}.{run}.new")
}

/// What a run remembers of such a sibling.
pub(super) fn known(target: &str, length: &Value) -> Value {
    Value::from_pairs([
        ("replaces", Value::text(target)),
        ("length", length.clone()),
    ])
}

/// How long a file is by what a run remembers of it.
pub(super) fn length(known: Option<&Value>) -> Option<u64> {
    let length = known?.get("length").or(known)?.as_int()?;
    u64::try_from(length).ok()
}

/// The beginning of what an earlier run wrote, as a file of this run's own: the earlier one may be
/// taken up again once more.
pub(super) fn copy(from: &str, to: &str, length: u64) -> Result<(), Fault> {
    let copied = || {
        let source = File::open(from)?;
        let permissions = source.metadata()?.permissions();
        let mut new = OpenOptions::new()
            .mode(0o600)
            .create(true)
            .write(true)
            .truncate(true)
            .open(to)?;
        let copied = io::copy(&mut source.take(length), &mut new)?;
        new.set_permissions(permissions)?;
        new.sync_all()?;
        keys::copy(Path::new(from), Path::new(to))?;
        Ok(copied)
    };
    match copied() {
        Ok(copied) if copied == length => Ok(()),
        Ok(copied) => Err(invalid(format!(
            "{from} was changed by another program: an earlier run left it with {length} bytes, \
             and it has {copied}"
        ))),
        Err(error) => {
            let error: io::Error = error;
            Err(invalid(format!("cannot copy {from} to {to}: {error}")))
        }
    }
}

/// Puts every sibling in the place of its file, durably; `repeated`: it may have been done before.
pub(super) fn put(files: &Object, repeated: bool) -> Result<Value, Fault> {
    for (sibling, target, length) in replaced(files) {
        place(Path::new(sibling), Path::new(target), length, repeated).map_err(|error| {
            invalid(format!(
                "cannot put {sibling} in the place of {target}: {error}"
            ))
        })?;
    }
    Ok(replaced_output(files))
}

/// The output of the action that replaces files.
pub(super) fn replaced_output(files: &Object) -> Value {
    let targets = replaced(files).map(|(_, target, _)| Value::text(target));
    Value::from_pairs([("files", Value::array(targets.collect()))])
}

/// The siblings that a run wrote, the files that they replace, and their lengths.
fn replaced(files: &Object) -> impl Iterator<Item = (&str, &str, u64)> {
    files.iter().filter_map(|(sibling, remembered)| {
        let target = remembered.get("replaces").and_then(Value::as_str)?;
        // The sibling of an earlier run, which this one copied, stays where it is.
        let current = files.get(target).and_then(Value::as_str) == Some(sibling);
        let length = length(Some(remembered))?;
        current.then_some((&**sibling, target, length))
    })
}

fn place(sibling: &Path, target: &Path, length: u64, repeated: bool) -> io::Result<()> {
    let file = match OpenOptions::new().write(true).open(sibling) {
        Err(error) if error.kind() == ErrorKind::NotFound && repeated => {
            // Renamed before a crash, unless it is gone altogether.
            return match fs::metadata(target) {
                Ok(found) if found.len() >= length => sink::sync_name(target),
                _ => Err(error),
            };
        }
        opened => opened?,
    };
    let now = file.metadata()?.len();
    if now < length {
        let what = format!("this run left it with {length} bytes, and it has {now}");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    // What is behind the end is of an append that was cut and never committed.
    file.set_len(length)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    // Those of the old file say nothing about the new one.
    keys::remove(target)?;
    keys::remove(sibling)?;
    fs::rename(sibling, target)?;
    sink::sync_name(target)
}
