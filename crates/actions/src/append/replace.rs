//! Files that a run rewrites. The rows are written to a sibling of the file. When the run succeeds, the sibling
//! replaces the file. Until then the file is unchanged, and if the run does not succeed, it remains unchanged. A step
//! that is repeated after a crash has the same result.

use super::keys;
use crate::inputs::invalid;
use crate::sink;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use windlass_expression::{Object, Value};
use windlass_model::model::Fault;

/// Returns the path of the sibling, which has the rows of a run until the run succeeds.
pub(super) fn sibling(target: &str, run: &str) -> String {
    format!("{target}.{run}.new")
}

/// Builds the entry of a sibling in the map of files that the run stores.
pub(super) fn known(target: &str, length: &Value) -> Value {
    Value::from_pairs([
        ("replaces", Value::text(target)),
        ("length", length.clone()),
    ])
}

/// Returns the length, in bytes, that an entry of the run's map of files has.
pub(super) fn length(known: Option<&Value>) -> Option<u64> {
    let length = known?.get("length").or(known)?.as_int()?;
    u64::try_from(length).ok()
}

/// Copies the first `length` bytes of an earlier run's sibling, with their keys, to this run's sibling. The earlier
/// run's sibling is unchanged, because the earlier run may be retried again.
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

/// Replaces each file with its sibling, durably. `may_be_repeated`: an earlier attempt may already have replaced some
/// files.
pub(super) fn replace_targets(files: &Object, may_be_repeated: bool) -> Result<Value, Fault> {
    for (sibling, target, length) in replaced(files) {
        replace_target(
            Path::new(sibling),
            Path::new(target),
            length,
            may_be_repeated,
        )
        .map_err(|error| {
            invalid(format!(
                "cannot put {sibling} in the place of {target}: {error}"
            ))
        })?;
    }
    Ok(replaced_output(files))
}

/// Builds the output of the action that replaces files.
pub(super) fn replaced_output(files: &Object) -> Value {
    let targets = replaced(files).map(|(_, target, _)| Value::text(target));
    Value::from_pairs([("files", Value::array(targets.collect()))])
}

/// Returns the siblings that a run wrote, the files that they replace, and their lengths in bytes.
fn replaced(files: &Object) -> impl Iterator<Item = (&str, &str, u64)> {
    files.iter().filter_map(|(sibling, remembered)| {
        let target = remembered.get("replaces").and_then(Value::as_str)?;
        // The map may also have the sibling of an earlier run, from which this run copied rows. Do not move that
        // sibling.
        let current = files.get(target).and_then(Value::as_str) == Some(sibling);
        let length = length(Some(remembered))?;
        current.then_some((&**sibling, target, length))
    })
}

fn replace_target(
    sibling: &Path,
    target: &Path,
    length: u64,
    may_be_repeated: bool,
) -> io::Result<()> {
    let file = match OpenOptions::new().write(true).open(sibling) {
        Err(error) if error.kind() == ErrorKind::NotFound && may_be_repeated => {
            // If the file exists and is long enough, an earlier attempt renamed the sibling before a crash.
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
    // Cut off the bytes after `length`: an aborted append wrote them, and the run never committed it.
    file.set_len(length)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()?;
    // The keys of the old file do not belong to the new one.
    keys::remove(target)?;
    keys::remove(sibling)?;
    fs::rename(sibling, target)?;
    sink::sync_name(target)
}
