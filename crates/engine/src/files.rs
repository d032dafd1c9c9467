//! When a workflow is loaded, reads the files that it names from its folder. The texts are stored with a run, so the
//! run does not need the files again. Files outside of the folder are never read. The only exception: files that a
//! Standard app of Logic Apps shares between its workflows.

use super::LoadError;
use super::load::read_text;
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use windlass_expression::Value;
use windlass_formats::{MISSING_FILE, Reference};
use windlass_model::model::Dialect;
use windlass_source::diagnostic::Diagnostic;
use windlass_source::source::{Bundle, MAX_BYTES, SourceFile, Span};

/// Maximum number of files that a workflow names, directly or through other files.
const MAX_FILES: usize = 64;

/// Adds every file that the workflow names to the bundle (the texts of all its files), and the files that these files
/// name. Returns the mistakes.
///
/// Without a folder nothing is read: the bundle must contain all files already.
pub(super) fn gather(
    bundle: &mut Bundle,
    folder: Option<&Path>,
    dialect: Option<Dialect>,
) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    let mut requested = BTreeSet::new();
    loop {
        let before = bundle.files.len();
        for reference in windlass_formats::references(bundle, dialect) {
            if requested.insert((reference.span, reference.path.clone()))
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

/// Files and options that belong to a workflow, in addition to its own file.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkflowContext {
    /// The file with the values of a Logic Apps definition's parameters.
    pub parameters: Option<SourceFile>,
    /// The name of the chosen workflow, if a file has several.
    pub workflow: Option<String>,
    pub app_settings: Option<SourceFile>,
    /// Files with further values of parameters or app settings.
    pub further: Vec<SourceFile>,
    /// Whether a run of an agent (The Edge Agent) continues at interrupts without waiting.
    pub auto_continue: bool,
}

/// The file name of every workflow in a Standard app. Each workflow has a folder of its own.
const WORKFLOW: &str = "workflow.json";

impl WorkflowContext {
    /// Adds this context to the bundle of a Logic Apps definition. Returns the mistakes.
    ///
    /// Also adds the files that a Standard app has next to the workflow's folder. Of the app settings, adds only those
    /// that the files use.
    pub(super) fn add_to(
        &self,
        bundle: &mut Bundle,
        folder: Option<&Path>,
        may_read: impl Fn(&str) -> bool,
    ) -> Vec<Diagnostic> {
        let mut mistakes = Vec::new();
        let in_app = bundle.named(WORKFLOW) == Some(0);
        let app = folder.filter(|_| in_app).map(app_folder_of);
        let mut of_app = |name: &str| {
            let file = read_sibling(app.as_deref()?, name);
            file.unwrap_or_else(|mistake| {
                mistakes.push(mistake);
                None
            })
        };
        let parameters = of_app("parameters.json");
        let connections = of_app("connections.json");
        let local = of_app("local.settings.json").map(|file| shown_in(app.as_deref(), file));
        let mut read = |file: &SourceFile| {
            let node = windlass_formats::read_sibling_object(file);
            node.map_err(|mistake| mistakes.push(mistake)).ok()
        };
        if let Some(name) = &self.workflow {
            let text = Value::from_pairs([("workflow", Value::text(name))]).to_json();
            let path = String::from("--workflow");
            bundle.files.push(SourceFile { path, text });
        }
        bundle.files.extend(self.parameters.clone());
        bundle.files.extend(self.further.iter().cloned());
        bundle.files.extend(parameters);
        let wanted = windlass_formats::settings_read(bundle);
        bundle.files.extend(connections.and_then(|file| {
            let text = windlass_formats::connections_only(&read(&file)?);
            Some(SourceFile { text, ..file })
        }));
        let files = [self.app_settings.as_ref(), local.as_ref()];
        let files: Vec<_> = files.into_iter().flatten().filter_map(&mut read).collect();
        let mut values: Vec<(String, String)> = Vec::new();
        for file in files {
            let mut found = windlass_formats::settings_of(&file, &wanted);
            found.retain(|(name, _)| !values.iter().any(|(known, _)| known == name));
            if let (true, Some((name, _))) = (windlass_formats::is_encrypted(&file), found.first())
            {
                mistakes.push(encrypted(name));
            }
            values.extend(found);
        }
        let allowed = wanted.iter().filter(|name| may_read(name));
        values.extend(allowed.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))));
        let mut first = BTreeSet::new();
        values.retain(|(name, _)| first.insert(name.clone()));
        if !values.is_empty() {
            let values = values
                .iter()
                .map(|(name, value)| (name.as_str(), Value::text(value)));
            let text = Value::from_pairs([("Values", Value::from_pairs(values))]).to_json();
            let path = String::from("(app settings)");
            bundle.files.push(SourceFile { path, text });
        }
        mistakes
    }
}

/// Returns a file of a Standard app that is not stored, with a path for messages.
fn shown_in(app: Option<&Path>, file: SourceFile) -> SourceFile {
    let name = file.path.trim_start_matches("../");
    let path = app.map(|app| app.join(name).display().to_string());
    match path {
        Some(path) => SourceFile { path, ..file },
        None => file,
    }
}

/// Makes the mistake that a file has the app setting `name` in encrypted form.
fn encrypted(name: &str) -> Diagnostic {
    let what = format!("the app setting `{name}` is encrypted: its file has `IsEncrypted: true`");
    let hint = "decrypt the file with `func settings decrypt`";
    Diagnostic::error("missing-setting", Span::START, what).hint(hint)
}

/// Returns the parent of a workflow's folder. The parent is computed from the path and not from the file system,
/// because the folder may be a symbolic link.
fn app_folder_of(folder: &Path) -> PathBuf {
    match (folder.file_name(), folder.parent()) {
        (Some(_), Some(parent)) if parent.as_os_str().is_empty() => PathBuf::from("."),
        (Some(_), Some(parent)) => parent.to_owned(),
        _ => folder.join(".."),
    }
}

/// Reads a file of a Standard app that is next to the workflow folders. Returns `None` if the app does not have the
/// file.
fn read_sibling(app: &Path, name: &str) -> Result<Option<SourceFile>, Diagnostic> {
    let path = format!("../{name}");
    match read_below(app, name, MAX_BYTES) {
        Ok(text) => Ok(Some(SourceFile { path, text })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("`{path}` cannot be read: {error}");
            let hint = format!("it is looked for in {}", app.display());
            Err(Diagnostic::error(MISSING_FILE, Span::START, message).hint(hint))
        }
    }
}

/// Returns the path of a workflow in a Standard app's folder: the chosen one, or the only one. The folder may also be
/// that of one workflow.
pub(super) fn app_workflow(app: &Path, chosen: Option<&str>) -> Result<PathBuf, LoadError> {
    let refused = |message: String| LoadError::Unreadable {
        path: app.display().to_string(),
        error: Error::new(ErrorKind::IsADirectory, message),
    };
    let names = app_workflows(app);
    let path = |name: &String| app.join(name).join(WORKFLOW);
    match (chosen, names.as_slice()) {
        (None, []) if app.join(WORKFLOW).is_file() => Ok(app.join(WORKFLOW)),
        (_, []) => Err(refused(format!(
            "it is a folder without any NAME/{WORKFLOW}"
        ))),
        (Some(chosen), names) => {
            match names.iter().find(|name| name.eq_ignore_ascii_case(chosen)) {
                Some(name) => Ok(path(name)),
                None => {
                    let names = names.join(", ");
                    Err(refused(format!(
                        "it has no workflow `{chosen}`; it has: {names}"
                    )))
                }
            }
        }
        (None, [only]) => Ok(path(only)),
        (None, names) => {
            let names = names.join(", ");
            Err(refused(format!(
                "it is an app of several workflows: choose one with --workflow NAME: {names}"
            )))
        }
    }
}

/// Returns the names of the workflows in a Standard app's folder.
pub(super) fn app_workflows(app: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(app).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let is_workflow = entry.path().join(WORKFLOW).is_file();
        entry.file_name().into_string().ok().filter(|_| is_workflow)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
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
    let Some(path) = bundle.resolve_sibling(reference.span.file, shown) else {
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

/// Reads the text of a file in a folder or below it. If the path has symbolic links, their target must be below the
/// folder, too.
fn read_below(folder: &Path, path: &str, limit: usize) -> std::io::Result<String> {
    let folder = folder.canonicalize()?;
    let file = folder.join(path).canonicalize()?;
    if !file.starts_with(&folder) {
        let message = "it is a link that leads out of the folder";
        return Err(Error::new(ErrorKind::PermissionDenied, message));
    }
    // Read only regular files: reading a pipe or a device could block.
    if !file.metadata()?.is_file() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let text = read_text(std::fs::File::open(file)?)?;
    if text.len() > limit {
        let message = format!("the workflow and its files have more than {MAX_BYTES} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
