//! What an expression reads by names that are in its text, for checks and hints.

use super::secret::callback_secret;
use super::wdl::ast::{AstSpan, Expr, Node, RefusedCall};

/// The top-level name in Jinja templates for `lastRun()`.
pub const LAST_RUN: &str = "lastRun";

/// Something that an expression reads by a name that is in its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// `variables('x')`, Jinja `variables.x`.
    Variable(String),
    /// `state('x')`, Jinja `state.x`.
    /// It is a value that the workflow stores between runs, or a variable if the workflow declares no such values.
    State(String),
    /// `body('x')`, `outputs('x')`, `actions('x')`, Jinja `actions.x`.
    Action(String),
    /// A member of an action in Jinja: `actions.x.outputs`. It has the name of the member.
    ActionMember(String),
    /// `result('scope')`.
    Scope(String),
    /// `inputs('x')`, `inputs.x`.
    Input(String),
    /// `iterationIndexes('loop')`, Jinja `loops.x`.
    Loop(String),
    /// A member of a loop: Jinja `loop.index`, `loops.x.index`. It has the name of the member.
    LoopMember(String),
    /// `items('foreach')`.
    Items(String),
    /// `parameters('x')`.
    Parameter(String),
    /// `secret('x')`, `secrets.x`. The name is empty if it is computed.
    Secret(String),
    /// `env('X')`, `env.X`. The name is empty if it is computed.
    Environment(String),
    Item,
    /// Any other top-level name in Jinja.
    Root(String),
    /// A call or a computed name, which may read anything.
    Anything,
}

impl Reference {
    /// Returns the top-level name in Jinja. Returns `None` for a name that every run defines.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        match self {
            Self::Root(name) => Some(name),
            Self::Environment(_) => Some("env"),
            _ => None,
        }
    }
}

/// Adds what a WDL expression reads by names in its text.
pub(super) fn collect(expr: &Expr, found: &mut Vec<Reference>) {
    let mut children = expr.children();
    match &expr.node {
        Node::Template(template) => template.collect(found),
        Node::Path(base, steps) => {
            // `inputs().x` reads the same input as `inputs('x')`.
            let name = steps.first().and_then(|step| step.key.literal_text());
            if let (Node::Call(function, arguments), Some(name)) = (&base.node, name)
                && function.name == "inputs"
                && arguments.is_empty()
            {
                found.push(Reference::Input(name.to_owned()));
                children.next();
            }
        }
        Node::Call(function, arguments) => found.extend(named(function.name, arguments)),
        Node::Literal(_) | Node::Refused(_) => {}
    }
    children.for_each(|child| collect(child, found));
}

/// Adds the calls whose functions do not accept the arguments.
pub(super) fn collect_refused<'e>(expr: &'e Expr, found: &mut Vec<(&'e RefusedCall, AstSpan)>) {
    if let Node::Refused(refused) = &expr.node {
        found.push((refused, expr.place));
    }
    expr.children()
        .for_each(|child| collect_refused(child, found));
}

fn named(function: &str, arguments: &[Expr]) -> Option<Reference> {
    let make: fn(String) -> Reference = match function {
        "variables" => Reference::Variable,
        "state" => Reference::State,
        "actionBody"
        | "actionOutputs"
        | "actions"
        | "body"
        | "formDataMultiValues"
        | "formDataValue"
        | "multipartBody"
        | "outputs" => Reference::Action,
        "result" => Reference::Scope,
        "inputs" => Reference::Input,
        "items" => Reference::Items,
        "iterationIndexes" => Reference::Loop,
        "parameters" => Reference::Parameter,
        "secret" => {
            let name = arguments.first().and_then(Expr::literal_text);
            return Some(Reference::Secret(name.unwrap_or_default().to_owned()));
        }
        "callbackUrl" => {
            let name = arguments.first().and_then(Expr::literal_text);
            return Some(Reference::Secret(callback_secret(name.unwrap_or_default())));
        }
        "env" => {
            let name = arguments.first().and_then(Expr::literal_text);
            return Some(Reference::Environment(name.unwrap_or_default().to_owned()));
        }
        "item" => return Some(Reference::Item),
        "lastRun" => return Some(Reference::Root(LAST_RUN.to_owned())),
        _ => return None,
    };
    match arguments.first() {
        Some(argument) => Some(
            argument
                .literal_text()
                .map_or(Reference::Anything, |name| make(name.to_owned())),
        ),
        None => Some(Reference::Anything),
    }
}
