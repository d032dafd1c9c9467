//! Finds what a condition reads, and the values. `status` uses this to show why a loop continues.
//! This evaluates parts of an expression, and never decides anything.

use super::wdl::ast::{Expr, Node};
use super::wdl::eval::Ctx;
use super::{Env, Lookup, Reference, Value};
use windlass_value::words;

/// The functions that read a value of the run.
const READERS: [&str; 18] = words! {
    action actionBody actionOutputs actions body inputs item items iterationIndexes outputs
    parameters result schedule trigger triggerBody triggerOutputs variables workflow
};

/// Adds everything that a WDL expression reads, with its value and without duplicates.
/// A read that fails is omitted.
pub(super) fn of_wdl(expr: &Expr, env: &dyn Env, found: &mut Vec<(String, Value)>) {
    match &expr.node {
        Node::Template(template) => template.reads(env, found),
        Node::Path(base, _) if is_reader(base) => read(expr, env, found),
        Node::Call(..) if is_reader(expr) => read(expr, env, found),
        _ => expr.children().for_each(|child| of_wdl(child, env, found)),
    }
}

fn is_reader(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Call(function, _) if READERS.contains(&function.name))
}

fn read(expr: &Expr, env: &dyn Env, found: &mut Vec<(String, Value)>) {
    let name = name(expr);
    if found.iter().any(|(known, _)| *known == name) {
        return;
    }
    if let Ok(value) = Ctx::new(env).eval(expr) {
        found.push((name, value));
    }
}

/// Returns the name under which a read is shown.
/// For `variables('remaining')` this is `remaining`, with the path after it. For other reads it is the printed
/// expression.
fn name(expr: &Expr) -> String {
    match &expr.node {
        Node::Path(base, steps) => {
            let mut name = name(base);
            for step in steps {
                name.push_str(&step.to_string());
            }
            name
        }
        Node::Call(function, arguments) if function.name == "variables" => {
            let literal = arguments.first().and_then(Expr::literal_text);
            literal.map_or_else(|| expr.to_string(), str::to_owned)
        }
        _ => expr.to_string(),
    }
}

/// Adds the values that a Jinja expression reads by names in its text.
pub(super) fn of_references(
    references: &[Reference],
    env: &dyn Env,
    found: &mut Vec<(String, Value)>,
) {
    for reference in references {
        let read = match reference {
            Reference::Variable(name) => env.variable(name).map(|value| (name.clone(), value)),
            Reference::State(name) => env.state(name).map(|value| (name.clone(), value)),
            Reference::Root(name) => env.root(name).map(|value| (name.clone(), value)),
            Reference::Input(name) => env
                .inputs()
                .get(name)
                .map(|value| (format!("inputs.{name}"), value.clone())),
            Reference::Parameter(name) => env.parameter(name).map(|value| (name.clone(), value)),
            Reference::Action(name) => match env.action_outputs(name) {
                Lookup::Found(value) => Some((format!("actions.{name}"), value)),
                Lookup::NotRun | Lookup::Unknown(_) => None,
            },
            Reference::Scope(_)
            | Reference::Loop(_)
            | Reference::LoopMember(_)
            | Reference::ActionMember(_)
            | Reference::Items(_)
            | Reference::Secret(_)
            | Reference::Environment(_)
            | Reference::Item
            | Reference::Anything => None,
        };
        if let Some((name, value)) = read
            && !found.iter().any(|(known, _)| *known == name)
        {
            found.push((name, value));
        }
    }
}
