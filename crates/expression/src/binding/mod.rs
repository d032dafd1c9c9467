//! Bindings: templates that read a value by a path. They have no text in an expression language. They are used for the
//! ports of a graph (docs/reference/canvas.md). A binding is a template like any other: pure, and parsed once.

mod answer;
mod compare;
mod extract;
mod pages;
mod port;
mod scoped;

pub use compare::Comparison;
pub use extract::Extract;
pub use port::{Port, PortKind, excerpt};

use super::error::wrong;
use super::template::{Kind, Template};
use super::wdl::text::text_size;
use super::{Env, EvalError, Lookup, Object, Reference, Value};
use scoped::ScopedEnv;
use std::sync::Arc;

type Name = Arc<str>;

/// Where a value is read from, and how it is converted.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A top-level name of a template.
    Root(Name),
    /// An input of the run; null if it has no value.
    Input(Name),
    /// The outputs of an action; null if it did not run.
    Outputs(Name),
    /// The status and the error of an action; null if it did not run.
    Record(Name),
    /// The outputs of an action in the previous iteration of the named loop.
    /// Without a name, the loop is the innermost one that has a previous iteration. The value is null if the action
    /// did not run in that iteration.
    Previous(Name, Option<Name>),
    /// The current item of the named foreach; null outside of it.
    Item(Name),
    /// The number of the iteration of the named enclosing loop, from 1; null outside of it.
    Iteration(Name),
    /// The number of the attempt of the enclosing retry, from 1.
    Attempt,
    /// The number of attempts of an action; 0 if it did not run.
    Attempts(Name),
    /// The first template in the first iteration of the named loop, the second template in all later iterations.
    First(Name, Template, Template),
    /// A member of a value; null if the member is missing.
    Member(Template, Name),
    /// For every element of an array, a member of a member. The first name is the outer member, the second name the
    /// inner one.
    Each(Template, [Name; 2]),
    /// The values of several pages, joined to one answer. Its body omits the named members, which lead to a next
    /// page.
    Paged(Template, [Name; 2]),
    /// The value of the second template. The first templates are evaluated before it; an error of one of them is the
    /// error of the binding.
    Checked(Vec<Template>, Template),
    /// A template that can read further top-level names.
    Scoped(Arc<[(Name, Template)]>, Template),
    /// A value after the conversion by a port.
    Port(Template, Port),
    /// The members of a map after the conversion by the ports. A value that is not a map is for the only port.
    Ports(Template, Arc<[Port]>),
    /// What a command printed, for its only output: text if it is not a map, so that `1.10` stays as it is.
    Printed(Template),
    /// The value that a function returned. A member with the misspelt name of a port is an error.
    Returned(Template, Arc<[Port]>),
    /// The answer of a program, converted to outputs by the ports.
    /// The last field is a template for the session that the program continued. With it, there is also an output
    /// `session_id`: the session in the answer, or else the value of this template.
    Answer(Template, Arc<[Port]>, Option<Template>),
    /// A part that is extracted from a value. Null if it is not found.
    Extract(Template, Extract),
    /// The result of a comparison with another value. The name describes the first value in messages.
    Compare(Template, Comparison, Value, Name),
    /// Whether a comparison with another value holds for an element of an array. For an element that cannot be compared,
    /// it does not hold.
    AnyHolds(Template, Comparison, Value),
}

impl Template {
    /// Makes a template of a binding.
    #[must_use]
    pub fn binding(binding: Binding) -> Self {
        Self(Arc::new(Kind::Binding(Box::new(binding))))
    }

    /// Returns a template for a member of this template's value. It is null if there is no such member.
    #[must_use]
    pub fn part(self, name: &str) -> Self {
        Self::binding(Binding::Member(self, Name::from(name)))
    }
}

impl Binding {
    pub(super) fn eval(&self, env: &dyn Env) -> Result<Value, EvalError> {
        let seen = |value: Value| {
            env.budget().charge(1 + text_size(&value) / 16)?;
            Ok::<_, EvalError>(value)
        };
        match self {
            Self::Root(name) => Ok(env.root(name).unwrap_or_default()),
            Self::Input(name) => Ok(env.inputs().get(name).cloned().unwrap_or_default()),
            Self::Outputs(action) => Ok(match env.action_outputs(action) {
                Lookup::Found(outputs) => outputs,
                Lookup::NotRun | Lookup::Unknown(_) => Value::Null,
            }),
            Self::Record(action) => match env.action(action) {
                Lookup::Found(view) => seen(Value::from_pairs([
                    ("status", Value::text(view.status)),
                    ("error", view.error),
                ])),
                Lookup::NotRun | Lookup::Unknown(_) => Ok(Value::Null),
            },
            Self::Previous(action, of) => {
                Ok(env.previous(action, of.as_deref()).unwrap_or_default())
            }
            Self::Item(of) => Ok(env.item(Some(of)).unwrap_or_default()),
            Self::Iteration(of) => Ok(env
                .iteration_index(of)
                .map_or(Value::Null, |index| Value::Int(index.saturating_add(1)))),
            Self::Attempt => Ok(Value::Int(env.attempt().into())),
            Self::Attempts(action) => Ok(Value::Int(env.attempts_of(action).into())),
            Self::First(of, first, later) => match env.iteration_index(of) {
                None | Some(0) => first.eval(env),
                Some(_) => later.eval(env),
            },
            Self::Member(of, name) => Ok(of.eval(env)?.get(name).cloned().unwrap_or_default()),
            Self::Each(of, [first, second]) => {
                let of = seen(of.eval(env)?)?;
                let member = |item: &Value| item.get(first)?.get(second).cloned();
                let items = of.as_array().map(Vec::as_slice).unwrap_or_default();
                let members = items.iter().map(|item| member(item).unwrap_or_default());
                Ok(Value::array(members.collect()))
            }
            Self::Paged(collected, links) => Ok(pages::joined(&seen(collected.eval(env)?)?, links)),
            Self::Checked(checks, body) => {
                for check in checks {
                    check.eval(env)?;
                }
                body.eval(env)
            }
            Self::Scoped(names, body) => ScopedEnv::new(env, names).eval(body),
            Self::Port(from, port) => port.accept(&seen(from.eval(env)?)?).map_err(wrong),
            Self::Printed(result) => {
                let result = seen(result.eval(env)?)?;
                let body = result.get("body").cloned().unwrap_or_default();
                let text = result.get("stdout").and_then(Value::as_str);
                Ok(match (&body, text) {
                    (Value::Object(_) | Value::String(_), _) | (_, None) => body,
                    (_, Some(text)) => Value::text(text.trim_end_matches(['\n', '\r'])),
                })
            }
            Self::Returned(from, ports) => {
                let from = seen(from.eval(env)?)?;
                answer::misspelt(&from, ports).map_err(wrong)?;
                Ok(from)
            }
            Self::Ports(from, ports) => {
                let from = seen(from.eval(env)?)?;
                let outputs = match (&from, &**ports) {
                    (Value::Object(_), []) => return Ok(from),
                    (Value::Object(map), _) => answer::by_name(map, ports),
                    (_, []) => Ok(Object::from_iter([(Name::from("result"), from.clone())])),
                    (_, [only]) => only
                        .accept(&from)
                        .map(|value| Object::from_iter([(only.name.clone(), value)])),
                    (_, [first, ..]) => Err(format!(
                        "{} was not given: the result is not a map but {}",
                        first.shown,
                        from.kind()
                    )),
                };
                outputs.map(Value::object).map_err(wrong)
            }
            Self::Answer(reply, ports, before) => {
                let answer = answer::read(&seen(reply.eval(env)?)?, ports).map_err(wrong)?;
                let mut outputs = answer.outputs;
                if let Some(before) = before {
                    let session = match answer.session {
                        Some(session) => session,
                        None => before.eval(env)?,
                    };
                    outputs.insert(Name::from("session_id"), session);
                }
                Ok(Value::object(outputs))
            }
            Self::Extract(from, how) => {
                let from = seen(from.eval(env)?)?;
                env.budget().charge(how.work(&from))?;
                Ok(match from.as_str() {
                    Some(text) => how.find(text),
                    None => how.find_in(&from),
                })
            }
            Self::Compare(of, comparison, with, shown) => {
                let holds = comparison.holds(&seen(of.eval(env)?)?, with, shown);
                holds.map(Value::Bool).map_err(wrong)
            }
            Self::AnyHolds(of, comparison, with) => {
                let of = seen(of.eval(env)?)?;
                let holds = |item: &Value| comparison.holds(item, with, "").unwrap_or(false);
                let mut items = of.as_array().into_iter().flatten();
                Ok(Value::Bool(items.any(holds)))
            }
        }
    }

    /// Returns the inner template that has the same value, if the binding only adds names or checks to it.
    pub(super) fn body(&self) -> Option<&Template> {
        match self {
            Self::Scoped(_, body) | Self::Checked(_, body) => Some(body),
            _ => None,
        }
    }

    /// Returns the value that a comparison reads, and its name as the author wrote it.
    pub(super) fn read(&self, env: &dyn Env) -> Option<(String, Value)> {
        match self {
            Self::Compare(of, ..) => {
                let name = of.source().as_str()?.to_owned();
                Some((name, of.eval(env).ok()?))
            }
            _ => None,
        }
    }

    pub(super) fn collect(&self, found: &mut Vec<Reference>) {
        match self {
            Self::Root(name) => found.push(Reference::Root(name.to_string())),
            Self::Input(name) => found.push(Reference::Input(name.to_string())),
            Self::Outputs(action) | Self::Record(action) | Self::Previous(action, _) => {
                found.push(Reference::Action(action.to_string()));
            }
            Self::Attempt | Self::Attempts(_) => {}
            Self::Item(of) => found.push(Reference::Items(of.to_string())),
            Self::Iteration(of) => found.push(Reference::Loop(of.to_string())),
            Self::First(_, first, later) => {
                first.collect(found);
                later.collect(found);
            }
            Self::Member(of, _)
            | Self::Each(of, _)
            | Self::Paged(of, _)
            | Self::Extract(of, _)
            | Self::Compare(of, ..)
            | Self::AnyHolds(of, ..) => of.collect(found),
            Self::Port(of, _) | Self::Ports(of, _) | Self::Printed(of) | Self::Returned(of, _) => {
                of.collect(found);
            }
            Self::Answer(reply, _, before) => {
                reply.collect(found);
                before.iter().for_each(|before| before.collect(found));
            }
            Self::Checked(checks, body) => {
                checks.iter().for_each(|check| check.collect(found));
                body.collect(found);
            }
            Self::Scoped(names, body) => {
                let mut inner = Vec::new();
                body.collect(&mut inner);
                inner.retain(|one| match one.root() {
                    Some(name) => !names.iter().any(|(bound, _)| **bound == *name),
                    None => true,
                });
                found.append(&mut inner);
                names.iter().for_each(|(_, value)| value.collect(found));
            }
        }
    }

    /// Describes the source of the value for people.
    pub(super) fn source(&self) -> Value {
        let of = Template::source_text;
        Value::text(match self {
            Self::Root(name) | Self::Outputs(name) => name.to_string(),
            Self::Input(name) => format!("inputs.{name}"),
            Self::Record(action) => format!("record of {action}"),
            Self::Previous(action, _) => format!("previous {action}"),
            Self::Item(name) => format!("item of {name}"),
            Self::Iteration(name) => format!("iteration of {name}"),
            Self::Attempt => String::from("attempt"),
            Self::Attempts(action) => format!("attempts of {action}"),
            Self::First(_, first, later) => {
                format!("{} first, then {}", of(first), of(later))
            }
            Self::Member(from, name) => format!("{}.{name}", of(from)),
            Self::Each(from, [first, second]) => format!("{}[].{first}.{second}", of(from)),
            Self::Paged(from, _) => format!("{} as one answer", of(from)),
            Self::Extract(from, how) => format!("{} {}", of(from), how.source()),
            Self::Compare(from, comparison, with, _) => {
                format!("{} {} {}", of(from), comparison.as_str(), with.to_json())
            }
            Self::AnyHolds(from, comparison, with) => {
                format!(
                    "any {} {} {}",
                    of(from),
                    comparison.as_str(),
                    with.to_json()
                )
            }
            Self::Port(from, _)
            | Self::Ports(from, _)
            | Self::Printed(from)
            | Self::Returned(from, _)
            | Self::Answer(from, ..)
            | Self::Checked(_, from)
            | Self::Scoped(_, from) => return from.source(),
        })
    }
}
