//! The formats of workflows: Loom, Logic Apps definitions, The Edge Agent, canvas.
//!
//! Each format has its own types and lowers them to [`windlass_model::hir`]. No format uses another. Loom and Logic
//! Apps share `actions`. This module detects the format of a file and calls the format's reader.
//!
//! This crate never opens a file, and uses neither the compiled program nor the machine.
//!
//! The most important types: [`Caps`], [`MissingInputs`]. [`read`] reads a [`Bundle`] and returns a [`Workflow`] or
//! [`Diagnostics`].
//!
//! A format in another crate uses [`vocabulary`] for its keys, [`reader`] to read a tree, and [`builder`] for the parts
//! of `hir`: docs/internals/add-a-format.md.
//!
//! Test it alone with `cargo test -p windlass-formats`.

// Not a stable API, so an item whose name explains it has no doc comment.
#![allow(missing_docs)]
// In a build without some formats, the items that only these formats use are unused.
#![cfg_attr(
    not(all(feature = "canvas", feature = "tea")),
    allow(dead_code, unused_imports)
)]

mod actions;
mod append;
mod arm;
pub mod builder;
#[cfg(feature = "canvas")]
mod canvas;
mod checks;
mod cycle;
mod duration;
mod environment;
pub mod fields;
mod handlers;
mod json_hint;
mod logic_apps;
mod loom;
mod missing;
mod plain_text;
pub mod reader;
mod rules;
mod secrets;
mod synonyms;
#[cfg(feature = "tea")]
mod tea;
pub mod vocabulary;

pub use append::replacements;
pub use missing::MissingInputs;
pub use rules::rules;
#[cfg(feature = "tea")]
pub use tea::AUTO_CONTINUE;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;
use windlass_expression::TableFormat;
use windlass_model::hir::{Script, Workflow};
use windlass_model::model::{Dialect, Status};
use windlass_source::diagnostic::{Diagnostic, Diagnostics, Severity, did_you_mean, nearest};
use windlass_source::source::{self, Bundle, Mistake, Node, SourceFile, Span};

/// The operator's limits on loops, which the author of a workflow cannot raise (docs/reference/loom.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Caps {
    /// Maximum number of iterations of a loop. `None` means the maximum of the format, see [`Caps::count()`].
    pub count: Option<u64>,
    /// Maximum duration of a loop. `None` means 30 days, or one day for a guest.
    pub timeout: Option<Duration>,
    /// Whether the workflow is a guest: it did not come from the operator (but over HTTP, for example).
    pub guest: bool,
}

impl Caps {
    /// Returns caps without limits. They are used to read a workflow again that was already accepted, when its run
    /// resumes.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            count: Some(u64::MAX),
            timeout: Some(Duration::MAX),
            guest: false,
        }
    }

    #[must_use]
    pub fn count(self, dialect: Dialect) -> u64 {
        self.count.unwrap_or(match (dialect, self.guest) {
            // These two formats define their own maximums.
            (Dialect::Azure, _) => 5_000,
            (Dialect::Tea, _) => 1_000,
            (Dialect::Loom | Dialect::Canvas, false) => 1_000_000,
            (Dialect::Loom | Dialect::Canvas, true) => 10_000,
        })
    }

    #[must_use]
    pub fn timeout(self) -> Duration {
        const DAY: u64 = 24 * 3600;
        let days = if self.guest { 1 } else { 30 };
        self.timeout.unwrap_or(Duration::from_secs(days * DAY))
    }
}

/// Returns the keys that an action of The Edge Agent accepts in `with`, for editors. Returns none for an action whose
/// keys are in the schema, and for an unknown action.
#[must_use]
pub fn argument_keys(action: &str) -> Vec<&'static str> {
    #[cfg(feature = "tea")]
    return tea::argument_keys(action);
    #[cfg(not(feature = "tea"))]
    {
        let _ = action;
        Vec::new()
    }
}

/// Returns the JSON Schema of a format, for editors. Returns `None` for a format that this build does not have.
#[must_use]
pub fn json_schema(dialect: Dialect) -> Option<&'static str> {
    static LOOM: LazyLock<String> =
        LazyLock::new(|| vocabulary::schema::text(&vocabulary::loom::schema()));
    static AZURE: LazyLock<String> =
        LazyLock::new(|| vocabulary::schema::text(&vocabulary::azure::schema()));
    #[cfg(feature = "tea")]
    static TEA: LazyLock<String> = LazyLock::new(|| {
        let actions: Vec<&str> = tea::all_names().collect();
        vocabulary::schema::text(&vocabulary::tea::schema(&actions))
    });
    #[cfg(feature = "canvas")]
    static CANVAS: LazyLock<String> =
        LazyLock::new(|| vocabulary::schema::text(&vocabulary::canvas::schema()));
    match dialect {
        Dialect::Loom => Some(&LOOM),
        #[cfg(feature = "tea")]
        Dialect::Tea => Some(&TEA),
        #[cfg(feature = "canvas")]
        Dialect::Canvas => Some(&CANVAS),
        #[cfg(not(feature = "tea"))]
        Dialect::Tea => None,
        #[cfg(not(feature = "canvas"))]
        Dialect::Canvas => None,
        Dialect::Azure => Some(&AZURE),
    }
}

/// Returns `dialect` if it is set, and otherwise the format that the first file of a bundle appears to have.
/// Returns `None` if no format is recognised.
#[must_use]
pub fn detect_dialect(bundle: &Bundle, dialect: Option<Dialect>) -> Option<Dialect> {
    dialect.or_else(|| {
        let (node, _) = source::parse(bundle, 0);
        detect(&node?, &mut Diagnostics::default())
    })
}

/// The code of the diagnostic about a file that another file names and that is not in the bundle.
pub const MISSING_FILE: &str = "missing-file";

/// A further file that a file of a bundle names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The path as the file has it: see [`Bundle::resolve_sibling`].
    pub path: String,
    /// Where the path is written. `span.file` is the file that names the path.
    pub span: Span,
}

/// Lists the further files that the files of a bundle name, as far as the files can be parsed.
/// A caller that loads a workflow adds the listed files under their path from the workflow's folder. It calls this
/// again until no new file is listed.
#[must_use]
pub fn references(bundle: &Bundle, dialect: Option<Dialect>) -> Vec<Reference> {
    let (Some(node), _) = source::parse(bundle, 0) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    match dialect {
        Some(dialect) => collect_of(dialect, &node, &mut found),
        None => collect_from_workflow(&node, &mut found),
    }
    references_in(bundle, found)
}

/// A reference, and the function that finds the references in the file that it names.
struct Found {
    reference: Reference,
    collect: Collect,
}

type Collect = fn(&Node, &mut Vec<Found>);

impl Found {
    fn new(path: &str, span: Span, collect: Collect) -> Self {
        let path = path.to_owned();
        let reference = Reference { path, span };
        Self { reference, collect }
    }
}

/// Collects the references of a workflow of any format.
fn collect_from_workflow(workflow: &Node, found: &mut Vec<Found>) {
    if let Some(dialect) = detect(workflow, &mut Diagnostics::default()) {
        collect_of(dialect, workflow, found);
    }
}

fn collect_of(dialect: Dialect, workflow: &Node, found: &mut Vec<Found>) {
    match dialect {
        Dialect::Loom => actions::collect_workflows(workflow, found),
        #[cfg(feature = "tea")]
        Dialect::Tea => tea::collect_files(workflow, found),
        #[cfg(feature = "canvas")]
        Dialect::Canvas => canvas::collect_workflows(workflow, found),
        #[allow(unreachable_patterns, reason = "a feature is off")]
        Dialect::Azure | Dialect::Tea | Dialect::Canvas => {}
    }
}

/// Returns the references `found` in the workflow, and recursively the references in the files that these name.
fn references_in(bundle: &Bundle, mut found: Vec<Found>) -> Vec<Reference> {
    let mut read = BTreeSet::from([0]);
    let mut next = 0;
    while let Some(Found { reference, collect }) = found.get(next) {
        let collect = *collect;
        if let Some(file) = bundle.named_by(reference.span.file, &reference.path)
            && read.insert(file)
            && let (Some(document), _) = source::parse(bundle, file)
        {
            collect(&document, &mut found);
        }
        next += 1;
    }
    found.into_iter().map(|found| found.reference).collect()
}

/// Reads the first file of a bundle as a workflow.
/// For a Logic Apps definition, the other files are those next to the definition. One of them may have the values of
/// its parameters: `{name: {value}}`.
///
/// `dialect` overrides the detected format. A workflow is returned if and only if the diagnostics contain no error.
#[must_use]
pub fn read(
    bundle: &Bundle,
    dialect: Option<Dialect>,
    caps: &Caps,
) -> (Option<Workflow>, Diagnostics) {
    let mut missing_inputs = MissingInputs::default();
    let (workflow, diagnostics) = read_bundle(bundle, dialect, caps, &mut missing_inputs);
    (workflow.filter(|_| !diagnostics.has_errors()), diagnostics)
}

/// Returns the scripts of a bundle, even if its workflow has errors.
#[must_use]
pub fn scripts(bundle: &Bundle, dialect: Option<Dialect>, caps: &Caps) -> Vec<Script> {
    let mut missing_inputs = MissingInputs::default();
    let (workflow, _) = read_bundle(bundle, dialect, caps, &mut missing_inputs);
    workflow
        .map(|workflow| workflow.scripts)
        .unwrap_or_default()
}

/// Returns the inputs that the workflow of a bundle needs and that no file of the bundle provides.
#[must_use]
pub fn missing_inputs(bundle: &Bundle, dialect: Option<Dialect>, caps: &Caps) -> MissingInputs {
    let mut missing_inputs = MissingInputs::default();
    read_bundle(bundle, dialect, caps, &mut missing_inputs);
    missing_inputs
}

/// Returns the names of the app settings that the files of a bundle read.
#[must_use]
pub fn settings_read(bundle: &Bundle) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in &bundle.files {
        actions::settings_in(&file.text, &mut found);
    }
    found
}

/// Reads a file next to a definition, which must contain one object.
/// Such a file may contain secrets. So it is not part of the bundle, and the report of its first mistake does not
/// quote its text.
///
/// # Errors
/// Returns the first mistake, with its line.
pub fn read_sibling_object(file: &SourceFile) -> Result<Node, Diagnostic> {
    let path = &file.path;
    let refuse = |code, what: String| {
        let hint = "it must hold one object, as Logic Apps writes it";
        Err(Diagnostic::error(code, Span::START, what).hint(hint))
    };
    let bundle = Bundle {
        files: vec![file.clone()],
    };
    let (node, mistakes) = source::parse(&bundle, 0);
    // In these files, a mistake that Azure accepts is ignored.
    if let Some(mistake) = mistakes.iter().find(|mistake| mistake.azure.is_none()) {
        let line = mistake.span.line;
        let what = format!("`{path}`, line {line}: {}", mistake.message);
        return refuse(mistake.code, what);
    }
    match node {
        Some(node) if node.entries().is_some() => Ok(node),
        _ => refuse("wrong-type", format!("`{path}` must hold one object")),
    }
}

/// Returns a connections file as JSON, reduced to the target of each connection. The result has no secrets.
#[must_use]
pub fn connections_only(node: &Node) -> String {
    actions::connections_only(node).to_json()
}

/// Returns those of the app settings in `names` that a file in the form of local.settings.json has, with their
/// values.
#[must_use]
pub fn settings_of(node: &Node, names: &BTreeSet<String>) -> Vec<(String, String)> {
    let values = node.get("Values").unwrap_or(node);
    let value = |name: &String| {
        let value = values.get_any_case(name)?.to_value();
        Some((name.clone(), value.to_text()))
    };
    names.iter().filter_map(value).collect()
}

/// Returns true if a file in the form of local.settings.json has encrypted values.
#[must_use]
pub fn is_encrypted(node: &Node) -> bool {
    let flag = node.get_any_case("IsEncrypted").map(Node::to_value);
    flag == Some(true.into())
}

/// Parses the files next to a definition. The flag is true if a file is for this definition alone. It is false for a
/// file of the whole app, whose path leads out of the workflow's folder or ends with `)`.
fn sibling_files(bundle: &Bundle, diagnostics: &mut Diagnostics) -> Vec<(Node, bool)> {
    let mut siblings = Vec::new();
    for (index, file) in (1_u16..).zip(bundle.files.iter().skip(1)) {
        let (node, mistakes) = source::parse(bundle, index);
        report(diagnostics, mistakes, Some(Dialect::Azure));
        if let Some(node) = node.as_ref().filter(|node| node.entries().is_none()) {
            let what = format!(
                "`{}` must hold one object, not {}",
                file.path,
                node.kind_name()
            );
            diagnostics.push(Diagnostic::error("wrong-type", node.span, what));
        }
        let strict = !file.path.starts_with("../") && !file.path.ends_with(')');
        siblings.extend(node.map(|node| (node, strict)));
    }
    siblings
}

fn read_bundle(
    bundle: &Bundle,
    dialect: Option<Dialect>,
    caps: &Caps,
    missing_inputs: &mut MissingInputs,
) -> (Option<Workflow>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let (mut node, mut mistakes) = source::parse(bundle, 0);
    let detected = |node| detect(node, &mut diagnostics);
    let dialect = dialect.or_else(|| node.as_ref().and_then(detected));
    if dialect == Some(Dialect::Tea) {
        (node, mistakes) = source::parse_yaml_1_1(bundle, 0);
    }
    report(&mut diagnostics, mistakes, dialect);
    let (Some(node), Some(file)) = (node, bundle.file(0)) else {
        return (None, diagnostics);
    };
    let Some(dialect) = dialect else {
        return (None, diagnostics);
    };
    if let Some((files, feature)) = unsupported_dialect(dialect) {
        let message = format!("this build of Windlass does not read {files}: feature `{feature}`");
        diagnostics.push(Diagnostic::error("missing-feature", node.span, message));
        return (None, diagnostics);
    }
    let workflow = match dialect {
        Dialect::Loom | Dialect::Azure => {
            let siblings = sibling_files(bundle, &mut diagnostics);
            let read = match dialect {
                Dialect::Azure => logic_apps::read,
                _ => loom::read,
            };
            let (workflow, found) = read(file, &node, &siblings, caps, &mut diagnostics);
            *missing_inputs = found;
            Some(workflow)
        }
        #[cfg(feature = "tea")]
        Dialect::Tea => Some(tea::read(bundle, file, &node, caps, &mut diagnostics)),
        #[cfg(feature = "canvas")]
        Dialect::Canvas => Some(canvas::read(bundle, file, &node, caps, &mut diagnostics)),
        #[allow(unreachable_patterns, reason = "a feature is off")]
        _ => None,
    };
    if let Some(workflow) = &workflow {
        secrets::check(workflow, &mut diagnostics);
    }
    (workflow, diagnostics)
}

/// Reports the mistakes in a file's text.
/// In a Logic Apps definition, a mistake that Azure accepts is only a warning.
fn report(diagnostics: &mut Diagnostics, mistakes: Vec<Mistake>, dialect: Option<Dialect>) {
    for mistake in mistakes {
        let forgiven = mistake.azure.filter(|_| dialect == Some(Dialect::Azure));
        let mut diagnostic = Diagnostic::from(mistake);
        if let Some(azure) = forgiven {
            diagnostic.severity = Severity::Warning;
            diagnostic.message = format!("{}: {azure}", diagnostic.message);
        }
        diagnostics.push(diagnostic);
    }
}

/// Returns the name of a format's files and the missing feature, if this build cannot read the format.
fn unsupported_dialect(dialect: Dialect) -> Option<(&'static str, &'static str)> {
    match dialect {
        Dialect::Azure if !cfg!(feature = "azure") => Some(("Logic Apps definitions", "azure")),
        Dialect::Tea if !cfg!(feature = "tea") => Some(("TEA files", "tea")),
        Dialect::Canvas if !cfg!(feature = "canvas") => Some(("Canvas files", "canvas")),
        _ => None,
    }
}

/// Returns the format that the key `dialect` of the file names. Without it, returns the format that the file appears
/// to have.
fn detect(node: &Node, diagnostics: &mut Diagnostics) -> Option<Dialect> {
    if let Some(named) = node.get("dialect") {
        let text = named.as_str().unwrap_or_default();
        let found = Dialect::parse(text);
        if found.is_none() {
            let all = [Dialect::Loom, Dialect::Azure, Dialect::Tea, Dialect::Canvas];
            let near = did_you_mean(text, all.map(Dialect::as_str));
            let hint = near.unwrap_or_else(|| String::from("loom, azure, tea or canvas"));
            let message = format!("`{text}` is not a valid dialect");
            diagnostics.push(Diagnostic::error("unknown-dialect", named.span, message).hint(hint));
        }
        return found;
    }
    let found = looks_like(node);
    if found.is_none() {
        let what = if node.entries().is_some() {
            "no format that is known looks like this".to_owned()
        } else {
            format!("a workflow is a map, this is {}", node.kind_name())
        };
        let mut keys = node.entries().unwrap_or_default().iter();
        let slip = keys.find_map(|entry| {
            let near = nearest(&entry.key, ["actions", "nodes", "type", "definition"])?;
            Some((entry.key_span, format!("did you mean `{near}`?")))
        });
        let (span, hint) = slip.unwrap_or_else(|| {
            let shapes = "a workflow has `actions` at the top, a bare action has `type`, \
                          a graph has `nodes`";
            (node.span, shapes.to_owned())
        });
        diagnostics.push(Diagnostic::error("unknown-format", span, what).hint(hint));
    }
    found
}

fn looks_like(node: &Node) -> Option<Dialect> {
    node.entries()?;
    let azure_schema = |node: &Node| {
        node.get("$schema")
            .and_then(Node::as_str)
            .is_some_and(|schema| schema.contains("Microsoft.Logic"))
    };
    let exported = node
        .get("properties")
        .is_some_and(|inner| inner.get("definition").is_some());
    if azure_schema(node) && loom::is_loom(node) {
        return Some(Dialect::Loom);
    }
    if azure_schema(node)
        || exported
        || node.get("definition").is_some()
        || node.get("resources").is_some()
        || (node.get("actions").is_some()
            && node
                .get("triggers")
                .is_some_and(|triggers| !loom::are_of_loom(triggers, node)))
    {
        return Some(Dialect::Azure);
    }
    if let Some(nodes) = node.get("nodes") {
        let nodes = match &nodes.kind {
            source::Kind::Array(nodes) => nodes.as_slice(),
            // Both formats with `nodes` report a value that is not a list.
            _ => &[],
        };
        // A node counts as a canvas node even if the author forgot its id.
        let is_canvas = |node: &Node| {
            let given = |key| node.get(key).is_some();
            given("type") && (given("id") || (given("data") && !given("name")))
        };
        return Some(match nodes.iter().any(is_canvas) {
            true => Dialect::Canvas,
            false => Dialect::Tea,
        });
    }
    let loom = node.get("actions").is_some() || node.get("type").is_some();
    loom.then_some(Dialect::Loom)
}

/// The statuses with which a `terminate` action can end the run.
const TERMINAL_STATUSES: [(&str, Status); 3] = [
    ("Succeeded", Status::Succeeded),
    ("Failed", Status::Failed),
    ("Cancelled", Status::Cancelled),
];

const TABLES: [(&str, TableFormat); 2] = [("CSV", TableFormat::Csv), ("HTML", TableFormat::Html)];

/// Returns a file's name without directories and extension. Returns `workflow` if the file has no name.
fn workflow_name(path: &str) -> String {
    let stem = std::path::Path::new(path)
        .file_stem()
        .and_then(|stem| stem.to_str());
    match stem {
        Some("-") | None => String::from("workflow"),
        Some(stem) => stem.to_owned(),
    }
}
