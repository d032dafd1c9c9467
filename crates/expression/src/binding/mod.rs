//! Wires: values that are taken from a place instead of computed by a text, as the ports of a graph
//! need them (docs/reference/canvas.md). A binding is a template like any other: pure, and parsed once.

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

/// A name, as the rest of the crate has them; this module knows no other.
type Name = Arc<str>;

/// Where a value comes from, and what becomes of it on the way.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A name at the top of a template.
    Root(Name),
    /// An input of the run; null when it was not given.
    Input(Name),
    /// What an action gave; null when it did not run.
    Outputs(Name),
    /// The status and the error of an action; null when it did not run.
    Record(Name),
    /// What an action gave in the iteration before; of the named loop, or of the innermost one
    /// that has such an iteration. Null when it did not run there.
    Previous(Name, Option<Name>),
    /// The current item of the named foreach; null outside of it.
    Item(Name),
    /// Which iteration of the named loop around this place runs, from 1; null outside of it.
    Iteration(Name),
    /// Which attempt of the retry around this place runs, from 1.
    Attempt,
    /// How many attempts an action took; 0 when it did not run.
    Attempts(Name),
    /// One template in the first iteration of the named loop, another in all later ones.
    First(Name, Template, Template),
    /// A member of a value; null when it has none.
    Member(Template, Name),
    /// A member of a member of every element of an array.
    Each(Template, [Name; 2]),
    /// The collected values of several pages as one answer, without the members of its body that lead to a next page.
    Paged(Template, [Name; 2]),
    /// Evaluated for their mistakes only, before the value itself.
    Checked(Vec<Template>, Template),
    /// With further names at the top.
    Scoped(Arc<[(Name, Template)]>, Template),
    /// Only what a port takes.
    Port(Template, Port),
    /// The members of a map that ports take; anything else is the one port there is.
    Ports(Template, Arc<[Port]>),
    /// The same of what a function returned, in which a misspelt name is a mistake.
    Returned(Template, Arc<[Port]>),
    /// The answer of a program, as the outputs that ports accept. With a template for the session
    /// that it continued: `session_id` is the one in the answer, else that one.
    Answer(Template, Arc<[Port]>, Option<Template>),
    /// A part of a text, or of any other value; null when it is not there.
    Extract(Template, Extract),
    /// Whether a value compares so with another; with its name in messages.
    Compare(Template, Comparison, Value, Name),
}

impl Template {
    /// A value taken from a place.
    #[must_use]
    pub fn binding(binding: Binding) -> Self {
        Self(Arc::new(Kind::Binding(Box::new(binding))))
    }

    /// A part of this value; null when it has none of that name.
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
            Self::Ports(from, ports) | Self::Returned(from, ports) => {
                let from = seen(from.eval(env)?)?;
                if matches!(self, Self::Returned(..)) {
                    answer::misspelt(&from, ports).map_err(wrong)?;
                }
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
        }
    }

    /// The template whose value this is, when it only adds names or checks to it.
    pub(super) fn body(&self) -> Option<&Template> {
        match self {
            Self::Scoped(_, body) | Self::Checked(_, body) => Some(body),
            _ => None,
        }
    }

    /// What a comparison reads, as its author wrote it, with its value.
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
            | Self::Compare(of, ..) => of.collect(found),
            Self::Port(of, _) | Self::Ports(of, _) | Self::Returned(of, _) => of.collect(found),
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

    /// Where it comes from, in words for people.
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
            Self::Port(from, _)
            | Self::Ports(from, _)
            | Self::Returned(from, _)
            | Self::Answer(from, ..)
            | Self::Checked(_, from)
            | Self::Scoped(_, from) => return from.source(),
        })
    }
}
