//! The format of The Edge Agent (docs/reference/tea.md): nodes and edges over one state, lowered to `hir`.
//!
//! The state is the variables of the run: `state.x` in a template is the variable `x`. The assignments of a node's call
//! merge its result into the state. Loops of all types become loops of `hir`. So this format needs no code of its own
//! during a run.

mod action;
mod builder;
mod constants;
mod correct;
mod dynamic_parallel;
mod evaluate;
mod fan_out;
mod graph;
mod interrupt;
mod node;
mod on_error;
mod pure_actions;
mod reflection;
mod retry_loop;
mod schemas;
mod script;
mod unsupported;
mod while_loop;
mod worker;
mod workflow;

pub(super) use action::{all_names, argument_keys};
pub(super) use schemas::collect_files;

pub use self::interrupt::AUTO_CONTINUE;
use self::interrupt::Interrupts;
use self::on_error::ErrorHandling;
use super::plain_text::between;
use super::reader::{Reader, list_known};
use super::{Caps, workflow_name};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use windlass_expression::{Condition, Syntax, Template, Value, without_braces};
use windlass_model::hir::{Script, Workflow};
use windlass_model::model::{Dialect, Name};
use windlass_source::diagnostic::{Diagnostics, did_you_mean};
use windlass_source::source::{Bundle, Entry, Kind, Node, SourceFile, Span};

/// Reads a file of TEA. The workflow is valid only if no error was reported.
pub(super) fn read(
    bundle: &Bundle,
    file: &SourceFile,
    node: &Node,
    caps: &Caps,
    diagnostics: &mut Diagnostics,
) -> Workflow {
    let schemas = schemas::documents(bundle, node, diagnostics);
    let node = &constants::replaced(node, diagnostics);
    let mut tea = Tea {
        reader: Reader::new(file, Syntax::Jinja, diagnostics),
        max_count: caps.count(Dialect::Tea),
        interrupts: Interrupts::of(bundle),
        nodes: Vec::new(),
        used: BTreeSet::new(),
        next_name_numbers: BTreeMap::new(),
        llm: Vec::new(),
        on_error: ErrorHandling::DEFAULT,
        extraction: Vec::new(),
        correcting: Vec::new(),
        correctors: BTreeSet::new(),
        corrector_copies: 0,
        schemas,
        joins: BTreeMap::new(),
        current_join: None,
        scripts: Vec::new(),
        replaces: false,
        ignores_actions: false,
    };
    tea.workflow(node, &workflow_name(&file.path))
}

/// Maximum number of steps of a file, including those that its author does not see.
const MAX_STEPS: usize = 10_000;

struct Tea<'d, 'n> {
    reader: Reader<'d>,
    max_count: u64,
    /// The nodes before and after which a run waits.
    interrupts: Interrupts,
    /// The nodes at the top level, by name.
    nodes: Vec<(&'n str, &'n Node)>,
    /// The names of all steps so far, in lower case.
    used: BTreeSet<String>,
    /// The next number to append to a name that is in use.
    next_name_numbers: BTreeMap<String, usize>,
    /// `settings.llm`, the defaults for the inputs of calls of a model.
    llm: Vec<(Name, Template)>,
    /// `settings.error_handling`, the defaults for `on_error` of nodes.
    on_error: ErrorHandling,
    /// Keys at the top of the file. They are defaults for the arguments of `validate.extraction`.
    extraction: Vec<(&'static str, Value)>,
    /// The correctors that are being read, innermost last.
    correcting: Vec<&'n str>,
    /// The nodes that are used as the corrector of a loop. They need no edge.
    correctors: BTreeSet<&'n str>,
    corrector_copies: usize,
    /// The documents that schemas refer to, by path.
    schemas: Value,
    /// The nodes that join branches, each with the step whose output is the list of the branches' states.
    joins: BTreeMap<String, Name>,
    /// The step in `joins` for the node that is being read, if it joins branches.
    current_join: Option<Name>,
    /// The scripts that are not templates.
    scripts: Vec<Script>,
    replaces: bool,
    /// Whether the key `action` of a node has no effect.
    ignores_actions: bool,
}

impl<'d> Deref for Tea<'d, '_> {
    type Target = Reader<'d>;

    fn deref(&self) -> &Self::Target {
        &self.reader
    }
}

impl DerefMut for Tea<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.reader
    }
}

#[derive(Clone, Debug)]
struct SourcePosition {
    name: Name,
    /// The name that the author wrote for the step, if the step has another name.
    title: Option<Name>,
    span: Span,
    /// Whether the step is in the body of a loop. There, a result that is not a map is dropped.
    in_body: bool,
}

impl SourcePosition {
    /// Returns the author's name for the step.
    fn shown(&self) -> &Name {
        self.title.as_ref().unwrap_or(&self.name)
    }
}

impl<'n> Tea<'_, 'n> {
    /// Makes the position of a step, with a unique name.
    /// The name is `wanted`. If `wanted` is in use, the owner's name is put before it.
    fn place(&mut self, wanted: &str, owner: &Name, span: Span, in_body: bool) -> SourcePosition {
        let mut name = wanted.to_owned();
        if !self.used.insert(name.to_lowercase()) {
            let both = format!("{owner}.{wanted}");
            let mut number = self.next_name_numbers.get(&both).copied().unwrap_or(1);
            loop {
                name = match number {
                    1 => both.clone(),
                    _ => format!("{both}_{number}"),
                };
                number += 1;
                if self.used.insert(name.to_lowercase()) {
                    break;
                }
            }
            self.next_name_numbers.insert(both, number);
        }
        SourcePosition {
            title: (name != wanted).then(|| Name::from(wanted)),
            name: Name::from(name),
            span,
            in_body,
        }
    }

    /// Makes the position of a step that is a part of an author's step and that the author does not see.
    fn part(&mut self, of: &SourcePosition, part: &str) -> SourcePosition {
        let name = format!("{}.{part}", of.name);
        SourcePosition {
            in_body: true,
            ..self.place(&name, &of.name, of.span, true)
        }
    }

    /// Reads a condition: text, a boolean, or a number.
    fn condition(&mut self, entry: &Entry) -> Option<Condition> {
        match entry.value.kind {
            // As in TEA, a condition whose operands cannot be compared stays a text, and a text counts as true.
            Kind::String(_) | Kind::Bool(_) => {
                let condition = self.reader.condition(entry)?;
                let meant = entry.value.as_str().and_then(without_braces);
                let is_condition = |meant: &String| Condition::parse(meant, Syntax::Jinja).is_ok();
                if let Some(meant) = meant.filter(is_condition) {
                    let what = format!("`{}` is a text, and a text is true", entry.key);
                    let hint = format!("without the braces it compares: {meant}");
                    self.warning("text-condition", entry.value.span, what, hint);
                } else if entry.value.as_str().is_some_and(is_choice_of_texts) {
                    let what = format!("`{}` is a text, and a text is true", entry.key);
                    let hint = "write only the condition of the `if`, without braces";
                    self.warning("text-condition", entry.value.span, what, hint);
                }
                Some(condition.with_ill_typed(true))
            }
            Kind::Int(number) => {
                Condition::from_template(Template::constant(Value::Bool(number != 0))).ok()
            }
            Kind::Null | Kind::Float(_) | Kind::Array(_) | Kind::Object(_) => {
                let what = format!("`{}`", entry.key);
                let hint = "for example \"state.count < 3\"";
                self.wrong_type(&entry.value, &what, "a condition", hint);
                None
            }
        }
    }

    fn unknown<'k>(
        &mut self,
        code: &'static str,
        message: String,
        span: Span,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        self.error_with(code, span, message, || {
            let known: Vec<&str> = known.into_iter().collect();
            did_you_mean(name, known.iter().copied())
                .unwrap_or_else(|| format!("known are: {}", list_known(&known)))
        });
    }

    fn node_names(&self) -> Vec<&'n str> {
        self.nodes.iter().map(|(name, _)| *name).collect()
    }
}

/// Returns true for a template such as `{% if … %}true{% else %}false{% endif %}`, which is a text in each case.
fn is_choice_of_texts(condition: &str) -> bool {
    let is_block = |word: &str| {
        between(condition, "{%", "%}").any(|(_, block)| block.trim_matches('-').trim() == word)
    };
    is_block("else")
}
