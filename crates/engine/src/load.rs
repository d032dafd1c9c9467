//! Reads workflow files, compiles them to programs, and hashes them. Also compiles the stored sources of runs again.

use super::LoadError;
use super::files::{WorkflowContext, app_workflow, gather};
use super::workflow::Workflow;
use crate::calendar::next_after;
use crate::scheduler::{CallingRun, Loaded, Loader, Start, now};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windlass_actions::Registry;
use windlass_formats::Caps;
use windlass_machine::compile::compile;
use windlass_machine::program::{self, Op, Program, ProgramHash};
use windlass_model::hir;
use windlass_model::model::{
    Dialect, Fault, HandlerTarget, HostRate, Name, Origin, Request, sha256_of_parts,
};
use windlass_source::diagnostic::{Diagnostic, Diagnostics};
use windlass_source::source::{Bundle, SourceFile, Span};
use windlass_store::{ProgramSource, StateKey};

/// Maximum size of a workflow file in bytes. A larger file is not read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Options for reading a workflow, in addition to its own text.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The format, instead of the one that the file states or that is recognised.
    pub dialect: Option<Dialect>,
    /// The maximum number of iterations of a loop, instead of the engine's.
    pub max_count: Option<u64>,
    /// The maximum timeout of a loop, instead of the engine's.
    pub max_timeout: Option<Duration>,
    /// Handlers in addition to the engine's. The workflow's own handlers have precedence over these.
    pub handlers: Vec<(String, HandlerTarget)>,
    pub origin: Origin,
    /// Environment variables that expressions may read, in addition to the engine's; a `*` matches any text.
    pub allow_env: Vec<String>,
    /// A directory of secrets. Its secrets have precedence over the engine's.
    pub secrets: Option<PathBuf>,
    /// A line for `sh` that prints a secret. The name of the secret is in `$1`. If the line has no `$1`, the name is
    /// appended as its last word.
    pub secret_command: Option<String>,
    /// How often hosts may be called, over all runs of the caller's store.
    pub rates: Vec<HostRate>,
    /// The key that encrypts secure values, if the workflow runs in the caller's store.
    pub state_key: Option<StateKey>,
    /// The file with the values of a Logic Apps definition's parameters.
    pub parameters: Option<SourceFile>,
    /// The chosen workflow of an app or a template with several.
    pub workflow: Option<String>,
    /// The file with the app settings of a Logic Apps definition: `{Values: {…}}`, or only the map.
    pub app_settings: Option<SourceFile>,
    /// Whether a run of an agent (The Edge Agent) continues at interrupts without waiting.
    pub auto_continue: bool,
    /// Files with further values for a Logic Apps definition, which are read after `parameters`. Each has values of
    /// parameters (`{name: {value}}`) or of app settings (`{Values: {…}}`).
    pub siblings: Vec<SourceFile>,
    /// The folder for relative paths in the workflow's actions, wherever a run continues. By default the working folder
    /// of the process.
    pub folder: Option<String>,
}

/// Reads a workflow's file without an engine, to check it or to show its compiled form. The path `-` is standard input.
///
/// # Errors
/// Returns [`LoadError::Unreadable`], or [`LoadError::Refused`] with all mistakes of the workflow.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Workflow, LoadError> {
    Workflows::without_engine()
        .with(options)
        .load_file(path, options.dialect)
}

/// Reads a workflow from texts without an engine. The workflow may name files that are not among the texts: they are
/// read from the folder.
///
/// # Errors
/// Returns [`LoadError::Refused`] with all of its mistakes.
pub fn load_bundle(
    bundle: Bundle,
    folder: Option<&Path>,
    options: &LoadOptions,
) -> Result<Workflow, LoadError> {
    Workflows::without_engine()
        .with(options)
        .load_bundle(bundle, folder, options.dialect)
}

/// Reads a workflow that is one file. `path` is the name of the file.
///
/// # Errors
/// Returns [`LoadError::Refused`] with all of its mistakes.
pub fn load_text(path: &str, text: String, options: &LoadOptions) -> Result<Workflow, LoadError> {
    let path = path.to_owned();
    let files = vec![SourceFile { path, text }];
    load_bundle(Bundle { files }, None, options)
}

/// Reads a workflow's file. The path `-` is standard input.
///
/// # Errors
/// Returns [`LoadError::Unreadable`], for example if the file is too large.
pub fn read_file(path: &Path) -> Result<SourceFile, LoadError> {
    let shown = path.display().to_string();
    let text = if shown == "-" {
        read_text(std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(read_text)
    };
    match text {
        Ok(text) => Ok(SourceFile { path: shown, text }),
        Err(error) => Err(LoadError::Unreadable { path: shown, error }),
    }
}

pub(super) fn read_text(from: impl std::io::Read) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        let message = format!("it is larger than {MAX_FILE} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            message,
        ));
    }
    if let Some(text) = utf16(&bytes) {
        return text.ok_or_else(|| {
            let message = "it begins as UTF-16 text and is none: save it as UTF-8";
            std::io::Error::new(std::io::ErrorKind::InvalidData, message)
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to() + 1;
        let message = format!("it is not valid UTF-8 text, from byte {place} on: save it as UTF-8");
        std::io::Error::new(std::io::ErrorKind::InvalidData, message)
    })
}

/// Decodes a file that begins with a byte order mark of UTF-16. The outer `None`: it has no such mark. The inner
/// `None`: the rest is not valid UTF-16.
fn utf16(bytes: &[u8]) -> Option<Option<String>> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok();
    Some(text.filter(|_| rest.is_empty()))
}

/// Reads workflows. All of them have the same caps (maximum values that a file may state) and executors.
pub(super) struct Workflows {
    pub registry: Registry,
    pub caps: Caps,
    /// The context for definitions.
    pub definition: WorkflowContext,
    /// Whether the workflows are the operator's or guests' (from HTTP or MCP).
    pub origin: Origin,
    /// The folder for relative paths in their actions.
    pub folder: Option<String>,
    /// Whether this process starts no action. Then it does not matter if a handler or an interpreter is missing.
    pub commands_only: bool,
    /// Whether secure values are encrypted in the store.
    pub sealed: bool,
}

impl Workflows {
    /// Makes a reader without an engine.
    pub fn without_engine() -> Self {
        Self {
            registry: Registry::new(),
            caps: Caps::default(),
            definition: WorkflowContext::default(),
            folder: None,
            origin: Origin::Operator,
            commands_only: true,
            sealed: false,
        }
    }

    /// Returns a copy with the options applied.
    pub fn with(&self, options: &LoadOptions) -> Self {
        let mut registry = self.registry.clone();
        for (name, target) in &options.handlers {
            registry.register_handler(name, target.clone());
        }
        registry.allow_env(&options.allow_env);
        let mut sources = registry.secret_sources().clone();
        if let Some(directory) = &options.secrets {
            sources = sources.with_directory(directory);
        }
        if let Some(line) = &options.secret_command {
            sources = sources.with_command(line);
        }
        registry.set_secrets(sources);
        Self {
            registry,
            caps: Caps {
                count: options.max_count.or(self.caps.count),
                timeout: options.max_timeout.or(self.caps.timeout),
                guest: options.origin == Origin::Guest,
            },
            definition: WorkflowContext {
                parameters: options.parameters.clone(),
                workflow: options.workflow.clone(),
                app_settings: options.app_settings.clone(),
                further: options.siblings.clone(),
                auto_continue: options.auto_continue,
            },
            origin: options.origin,
            folder: options.folder.clone(),
            commands_only: self.commands_only,
            sealed: self.sealed || options.state_key.is_some(),
        }
    }

    pub fn load_file(&self, path: &Path, dialect: Option<Dialect>) -> Result<Workflow, LoadError> {
        let (bundle, missing) = self.collect_from_file(path, dialect)?;
        self.load_collected(bundle, missing, dialect)
    }

    /// Reads a workflow's file and all files that belong to it. A path of a folder is a Standard app of Logic Apps.
    pub(super) fn collect_from_file(
        &self,
        path: &Path,
        dialect: Option<Dialect>,
    ) -> Result<(Bundle, Vec<Diagnostic>), LoadError> {
        let inside = match path.is_dir() {
            true => Some(app_workflow(path, self.definition.workflow.as_deref())?),
            false => None,
        };
        let path = inside.as_deref().unwrap_or(path);
        let file = read_file(path)?;
        let folder = match path.parent() {
            _ if file.path == "-" => None,
            Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
            parent => parent,
        };
        Ok(self.collect_files(Bundle { files: vec![file] }, folder, dialect))
    }

    /// Reads the workflow of a bundle. Files that it names and that are not in the bundle are read from its folder.
    pub fn load_bundle(
        &self,
        bundle: Bundle,
        folder: Option<&Path>,
        dialect: Option<Dialect>,
    ) -> Result<Workflow, LoadError> {
        let (bundle, missing) = self.collect_files(bundle, folder, dialect);
        self.load_collected(bundle, missing, dialect)
    }

    /// Reads the workflow of a bundle, with the permissions of `origin` and with a folder for its relative paths.
    pub fn load_as(
        &self,
        source: &ProgramSource,
        bundle: Bundle,
        dialect: Option<Dialect>,
    ) -> Result<Workflow, LoadError> {
        let options = LoadOptions {
            origin: source.origin,
            folder: source.folder.clone(),
            ..LoadOptions::default()
        };
        self.with(&options).load_bundle(bundle, None, dialect)
    }

    fn collect_files(
        &self,
        mut bundle: Bundle,
        folder: Option<&Path>,
        dialect: Option<Dialect>,
    ) -> (Bundle, Vec<Diagnostic>) {
        let mut missing = gather(&mut bundle, folder, dialect);
        match windlass_formats::detect_dialect(&bundle, dialect) {
            Some(Dialect::Azure) | None => {
                let may_read = |name: &str| self.registry.can_read_env(name);
                let mistakes = self.definition.add_to(&mut bundle, folder, may_read);
                missing.extend(mistakes);
            }
            Some(other) if self.definition.parameters.is_some() => {
                missing.push(no_parameters(other));
            }
            #[cfg(feature = "tea")]
            Some(Dialect::Tea) if self.definition.auto_continue => {
                let path = windlass_formats::AUTO_CONTINUE.to_owned();
                let text = String::new();
                bundle.files.push(SourceFile { path, text });
            }
            Some(_) => {}
        }
        (bundle, missing)
    }

    fn load_collected(
        &self,
        bundle: Bundle,
        missing: Vec<Diagnostic>,
        dialect: Option<Dialect>,
    ) -> Result<Workflow, LoadError> {
        let (workflow, mut diagnostics) = self.read_checked(&bundle, dialect);
        missing
            .into_iter()
            .for_each(|mistake| diagnostics.supersede(mistake));
        let Some(workflow) = workflow else {
            return Err(LoadError::Refused {
                diagnostics,
                bundle,
            });
        };
        self.unused_stubs(&workflow, &mut diagnostics);
        self.check_called(&workflow, &bundle, &mut diagnostics);
        if diagnostics.has_errors() {
            return Err(LoadError::Refused {
                diagnostics,
                bundle,
            });
        }
        let source = ProgramSource {
            bundle,
            dialect: workflow.dialect,
            max_count: self.caps.count(workflow.dialect),
            max_timeout_ms: u64::try_from(self.caps.timeout().as_millis()).unwrap_or(u64::MAX),
            origin: self.origin,
            folder: self.folder.clone(),
        };
        match compile(&workflow, hash(&source), caps(&source)) {
            Ok(program) => {
                let loaded = self.loaded(program, &source);
                Ok(Workflow {
                    loaded,
                    source,
                    scripts: workflow.scripts,
                    warnings: diagnostics,
                })
            }
            Err(mistakes) => {
                diagnostics.extend(mistakes);
                Err(LoadError::Refused {
                    diagnostics,
                    bundle: source.bundle,
                })
            }
        }
    }

    /// Reads a bundle, and checks what its workflow needs from this engine.
    pub(super) fn read_checked(
        &self,
        bundle: &Bundle,
        dialect: Option<Dialect>,
    ) -> (Option<hir::Workflow>, Diagnostics) {
        let (workflow, mut diagnostics) = windlass_formats::read(bundle, dialect, &self.caps);
        if let Some(workflow) = &workflow {
            let registry = self.registry_of(workflow);
            Self::missing_handlers(&registry, workflow, &mut diagnostics);
            self.missing_secrets(&registry, workflow, self.origin, &mut diagnostics);
            Self::missing_server(&registry, workflow, &mut diagnostics);
            self.warn_unencrypted_values(workflow, &mut diagnostics);
            warn_past_schedule(workflow, &mut diagnostics);
            self.check_permissions(workflow, &mut diagnostics);
            Self::missing_interpreters(&registry, workflow, &mut diagnostics);
        }
        (workflow, diagnostics)
    }

    /// Warns if the workflow has secure values and there is no key to encrypt them in the store.
    fn warn_unencrypted_values(&self, workflow: &hir::Workflow, diagnostics: &mut Diagnostics) {
        let Some(first) = workflow.secure.first().filter(|_| !self.sealed) else {
            return;
        };
        let message = "secure values are hidden from every view, but lie readable in the store";
        let hint = "pass a key with --state-key FILE to encrypt them in the store";
        diagnostics.push(Diagnostic::warning("readable", first.span, message).hint(hint));
    }

    /// Returns whether runs may name a secret. The check does not depend on whether the secret exists, so a caller
    /// without permission cannot learn that.
    pub(super) fn may_name(&self, secret: &str, origin: Origin) -> bool {
        origin == Origin::Operator || self.registry.allows_guest_secret(secret)
    }

    /// Refuses what the operator does not allow, as far as that is known before a run. A process that starts no action
    /// cannot know what the operator allows, so it only warns.
    fn check_permissions(&self, workflow: &hir::Workflow, diagnostics: &mut Diagnostics) {
        let found = |span, what: String| match self.commands_only {
            true => Diagnostic::warning("denied", span, what),
            false => Diagnostic::error("denied", span, what),
        };
        let registry = self.registry.of(self.origin, workflow.dialect);
        for read in &workflow.environment {
            if registry.can_read_env(&read.name) {
                continue;
            }
            let what = format!(
                "the variable `{}` of the environment may not be read",
                read.name
            );
            let or = match workflow.dialect {
                Dialect::Tea => ", and so does --allow-shell",
                Dialect::Loom | Dialect::Azure | Dialect::Canvas => "",
            };
            let hint = format!("--allow-env {} allows it{or}", read.name);
            diagnostics.push(found(read.span, what).hint(hint));
        }
        let mut refuse = |span, what: String, flag: &str| {
            let hint = format!("the operator of the server allows it with {flag}");
            diagnostics.push(found(span, what).hint(hint));
        };
        let policy = self.registry.policy_of(self.origin);
        for (step, call) in workflow.calls() {
            if let Some(flag) = policy.denies(&call.executor) {
                let what = format!("`{}` may not use `{}` here", step.name, call.executor);
                refuse(step.span, what, flag);
            }
            if let Some(flag) = policy.denies_inputs(&call.executor, &call.inputs.source()) {
                let what = format!("`{}` may not use files of this machine", step.name);
                refuse(step.span, what, flag);
            }
            for name in workflow.secrets_of(call) {
                if !self.may_name(&name, self.origin) {
                    let what = format!("`{}` may not name the secret `{name}` here", step.name);
                    refuse(step.span, what, &format!("--allow-secret {name}"));
                }
            }
        }
        let triggers = &workflow.event_triggers;
        if let Some(folder) = triggers.folder.as_ref().filter(|_| !policy.files) {
            let what = format!("the folder `{}` may not be watched here", folder.path);
            refuse(workflow.span, what, "--allow-files");
        }
        if let Some(webhook) = &triggers.webhook
            && !self.may_name(&webhook.secret, self.origin)
        {
            let name = &webhook.secret;
            let what = format!("the webhook may not name the secret `{name}` here");
            refuse(workflow.span, what, &format!("--allow-secret {name}"));
        }
        for handler in &workflow.handlers {
            if !policy.shell && matches!(handler.target, HandlerTarget::Command(_)) {
                let what = format!("the handler `{}` may not run a command here", handler.name);
                refuse(handler.span, what, "--allow-shell");
            }
        }
    }

    fn loaded(&self, program: Program, source: &ProgramSource) -> Loaded {
        let mut secrets: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        for state in &program.states {
            if let Op::Call(_, held) = &state.op
                && !held.is_empty()
            {
                let named = secrets.entry(state.name.clone()).or_default();
                named.extend(held.iter().cloned());
            }
        }
        let registry = self.registry.of(source.origin, source.dialect);
        let registry = registry.in_folder(source.folder.as_deref().map(Path::new));
        let registry = registry.with_handlers(&program.handlers);
        let titled = program.actions.iter();
        let titled = titled.filter_map(|action| Some((&action.name, action.title.as_deref()?)));
        let registry = registry.with_titles(titled);
        let registry = match program.rates.is_empty() {
            true => registry,
            false => registry.with_rates(&program.rates),
        };
        let registry = registry.with_secrets(secrets);
        let actions = program.actions.iter();
        let secure = actions.filter(|action| action.secure.inputs || action.secure.outputs);
        let registry = registry.with_secure(secure.map(|action| action.name.clone()).collect());
        Loaded {
            program: Arc::new(program),
            registry: Arc::new(registry),
        }
    }
}

fn no_parameters(dialect: Dialect) -> Diagnostic {
    let message = format!(
        "--parameters sets values of a Logic Apps definition, and this is a {} file",
        dialect.as_str()
    );
    let hint = "pass its inputs instead: -i NAME=VALUE, --input FILE";
    Diagnostic::error("no-parameters", Span::START, message).hint(hint)
}

impl Loader for Workflows {
    fn load(&self, hash: ProgramHash, source: &ProgramSource) -> Result<Loaded, String> {
        let workflow = read_stored(source)?;
        if !self.commands_only
            && let Some(unmet_requirements) = self.unmet_requirements(&workflow, source.origin)
        {
            return Err(unmet_requirements);
        }
        let program = compile_read(&workflow, hash, source)?;
        Ok(self.loaded(program, source))
    }

    fn load_to_end(&self, hash: ProgramHash, source: &ProgramSource) -> Result<Loaded, String> {
        Ok(self.loaded(compile_stored(hash, source)?, source))
    }

    fn missing_to_cancel(&self, source: &ProgramSource) -> Option<String> {
        let mut workflow = read_stored(source).ok()?;
        let others = [
            &mut workflow.body,
            &mut workflow.on_failure,
            &mut workflow.on_finish,
        ];
        for block in others {
            *block = hir::Block::Sequence(Vec::new());
        }
        self.unmet_requirements(&workflow, source.origin)
    }

    fn child(&self, caller: &CallingRun<'_>, call: &Request) -> Result<Start, Fault> {
        self.start_of(caller, call)
    }
}

/// Compiles a stored source.
pub(super) fn compile_stored(hash: ProgramHash, source: &ProgramSource) -> Result<Program, String> {
    compile_read(&read_stored(source)?, hash, source)
}

pub(super) fn read_stored(source: &ProgramSource) -> Result<hir::Workflow, String> {
    let (workflow, diagnostics) =
        windlass_formats::read(&source.bundle, Some(source.dialect), &stored_caps(source));
    workflow.ok_or_else(|| diagnostics.render(&source.bundle, false).to_string())
}

/// Returns the caps with which a source was accepted. They are used again because other caps could make the source
/// invalid. They could also change it: if a file states no count for a loop, the cap is the count.
pub(super) fn stored_caps(source: &ProgramSource) -> Caps {
    Caps {
        count: Some(source.max_count),
        timeout: Some(Duration::from_millis(source.max_timeout_ms)),
        guest: source.origin == Origin::Guest,
    }
}

fn compile_read(
    workflow: &hir::Workflow,
    hash: ProgramHash,
    source: &ProgramSource,
) -> Result<Program, String> {
    compile(workflow, hash, caps(source)).map_err(|mistakes| {
        let mut diagnostics = Diagnostics::default();
        diagnostics.extend(mistakes);
        diagnostics.render(&source.bundle, false).to_string()
    })
}

fn caps(source: &ProgramSource) -> program::Caps {
    program::Caps {
        count: source.max_count,
        timeout: Duration::from_millis(source.max_timeout_ms),
    }
}

/// Returns the SHA-256 of everything that the program depends on.
pub(super) fn hash(source: &ProgramSource) -> ProgramHash {
    let count = source.max_count.to_be_bytes();
    let timeout = source.max_timeout_ms.to_be_bytes();
    let origin = source.origin.bytes();
    let mut parts: Vec<&[u8]> = vec![
        source.dialect.as_str().as_bytes(),
        &count,
        &timeout,
        &origin,
        source.folder.as_deref().unwrap_or_default().as_bytes(),
    ];
    for file in &source.bundle.files {
        parts.extend([file.path.as_bytes(), file.text.as_bytes()]);
    }
    ProgramHash(sha256_of_parts(&parts))
}

/// Warns if all times of the schedule are in the past.
fn warn_past_schedule(workflow: &hir::Workflow, diagnostics: &mut Diagnostics) {
    if let Some((schedule, span)) = workflow.schedule.as_ref().zip(workflow.places.schedule)
        && next_after(schedule, now(), now()).is_none()
    {
        let message = "the schedule starts no runs: all of its times are in the past";
        diagnostics.push(Diagnostic::warning("past-schedule", span, message));
    }
}
