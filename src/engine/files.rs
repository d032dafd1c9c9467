//! The files that a workflow names: read from its folder when it is loaded, so that a run is
//! pinned to them and never needs them again. What lies outside of the folder is never read.

use crate::diagnostic::Diagnostic;
use crate::dialect::{self, MISSING_FILE, Reference};
use crate::model::Dialect;
use crate::source::{Bundle, MAX_BYTES, SourceFile};
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// How many files a workflow names at most, also through others.
const MAX_FILES: usize = 64;

/// Adds every file that the workflow names, and those that these name, to the bundle. Without a
/// folder nothing is read: everything must be in the bundle already. Gives what is wrong.
pub(super) fn gather(
    bundle: &mut Bundle,
    folder: Option<&Path>,
    dialect: Option<Dialect>,
) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    let mut asked = BTreeSet::new();
    loop {
        let before = bundle.files.len();
        for reference in dialect::references(bundle, dialect) {
            if asked.insert((reference.span, reference.path.clone()))
                && let Err(mistake) = add(bundle, folder, &reference)
            {
                mistakes.push(mistake);
            }
        }
        if bundle.files.len() == before {
            return mistakes;
        }
    }
}

fn add(
    bundle: &mut Bundle,
    folder: Option<&Path>,
    reference: &Reference,
) -> Result<(), Diagnostic> {
    let refused = |message: String, hint: &str| {
        Diagnostic::error(MISSING_FILE, reference.span, message).hint(hint)
    };
    let shown = &reference.path;
    let Some(path) = bundle.beside(reference.span.file, shown) else {
        let message = format!("`{shown}` is not below the folder of the file that names it");
        let hint = "a path from that folder, without `..`: inner.yaml, parts/inner.yaml";
        return Err(refused(message, hint));
    };
    if bundle.named(&path).is_some() {
        return Ok(());
    }
    let Some(folder) = folder else {
        let message =
            format!("`{shown}` cannot be read: this workflow came as text, without a folder");
        return Err(refused(message, "load the workflow from its file"));
    };
    if bundle.files.len() > MAX_FILES {
        let message = format!("`{shown}` is one file too many");
        let hint = format!("a workflow names {MAX_FILES} files at most, all of them counted");
        return Err(refused(message, &hint));
    }
    let read: usize = bundle.files.iter().map(|file| file.text.len()).sum();
    match read_below(folder, &path, MAX_BYTES.saturating_sub(read)) {
        Ok(text) => {
            bundle.files.push(SourceFile { path, text });
            Ok(())
        }
        Err(error) => {
            let message = format!("`{shown}` cannot be read: {error}");
            let hint = format!("it is looked for in {}", folder.display());
            Err(refused(message, &hint))
        }
    }
}

/// The text of a file that lies in a folder or below it, also when links are followed.
fn read_below(folder: &Path, path: &str, limit: usize) -> std::io::Result<String> {
    let folder = folder.canonicalize()?;
    let file = folder.join(path).canonicalize()?;
    if !file.starts_with(&folder) {
        let message = "it is a link that leads out of the workflow's folder";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    // A pipe or a device would be waited for.
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    let more = limit as u64 + 1;
    std::fs::File::open(file)?
        .take(more)
        .read_to_string(&mut text)?;
    if text.len() > limit {
        let message = format!("the workflow and its files have more than {MAX_BYTES} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
