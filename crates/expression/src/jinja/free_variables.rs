//! The top-level names of a template.
//! They are found when the template is parsed, and their values are read when it is evaluated.

use super::object::to_jinja;
use super::rewrite::literal_member;
use super::{Flavor, operators};
use crate::error::Missing;
use crate::{Env, Lookup, Reference, Value};
use minijinja::value::{Enumerator, Object, Value as Jinja, ValueKind};
use std::collections::HashSet;
use std::sync::Arc;
use windlass_value::{did_you_mean, members};

/// The functions that minijinja defines.
pub(super) const GLOBALS: [&str; 5] = ["range", "dict", "namespace", "cycler", "joiner"];

/// The top-level name whose members are the environment variables.
pub(super) const ENVIRONMENT: &str = "env";

/// A top-level name, and the names of its members that are read.
#[derive(Debug)]
pub(super) struct FreeVariable {
    name: Arc<str>,
    members: Vec<String>,
    /// Whether the name of a member is computed, or a method such as `get` is called. Then any member may be read.
    is_computed: bool,
    /// For `loops` only: the names that are read of its members, such as `index` of `loops.x.index`.
    inner: Vec<String>,
}

/// Returns the names that a template reads, from the paths that minijinja found.
/// `literals` has the names that a [`literal_member`] replaces in a path. `methods` has the methods that are called on
/// top-level names.
pub(super) fn collect(
    paths: &HashSet<String>,
    literals: &[String],
    methods: &[(String, String)],
) -> Vec<FreeVariable> {
    let named = |part: &str| {
        let mut literals = literals.iter().enumerate();
        let literal = literals.find(|(number, _)| literal_member(*number) == part);
        literal.map_or_else(|| part.to_owned(), |(_, literal)| literal.clone())
    };
    let is_method = |root: &str, member: &str| {
        let mut methods = methods.iter();
        methods.any(|(of, method)| of == root && method == member)
    };
    let mut sorted: Vec<&String> = paths.iter().collect();
    sorted.sort();
    let mut free: Vec<FreeVariable> = Vec::new();
    for path in sorted {
        let mut parts = path.split('.');
        let name = parts.next().unwrap_or_default();
        let (member, inner) = (parts.next(), parts.next());
        if GLOBALS.contains(&name) {
            continue;
        }
        let root = match free.iter_mut().find(|root| &*root.name == name) {
            Some(root) => root,
            None => {
                free.push(FreeVariable {
                    name: name.into(),
                    members: Vec::new(),
                    is_computed: false,
                    inner: Vec::new(),
                });
                let Some(root) = free.last_mut() else {
                    continue;
                };
                root
            }
        };
        if matches!(name, "actions" | "loops") {
            root.inner.extend(inner.map(&named));
        }
        match member.map(&named) {
            Some(member) if !is_method(name, &member) => {
                if !root.members.contains(&member) {
                    root.members.push(member);
                }
            }
            Some(_) | None => root.is_computed = true,
        }
    }
    free
}

/// Sets which environment variables a template reads. Does nothing if it does not read `env`.
pub(super) fn environment(free: &mut [FreeVariable], members: Option<Vec<String>>) {
    if let Some(root) = free.iter_mut().find(|root| &*root.name == ENVIRONMENT) {
        root.is_computed = members.is_none();
        root.members = members.unwrap_or_default();
    }
}

/// Returns the names of a top-level name's members that are read.
pub(super) fn members_of_root<'r>(free: &'r [FreeVariable], name: &str) -> &'r [String] {
    let root = free.iter().find(|root| *root.name == *name);
    let root = root.filter(|root| !root.is_computed);
    root.map(|root| &*root.members).unwrap_or_default()
}

impl FreeVariable {
    pub(super) fn references(&self) -> Vec<Reference> {
        // A computed name is reported as an empty one.
        let any = || self.is_computed.then(String::new).into_iter();
        let members = || self.members.iter().cloned();
        let make: fn(String) -> Reference = match &*self.name {
            "variables" => Reference::Variable,
            "state" => Reference::State,
            "actions" => Reference::Action,
            "inputs" => Reference::Input,
            "loops" => Reference::Loop,
            "parameters" => Reference::Parameter,
            "secrets" => return members().chain(any()).map(Reference::Secret).collect(),
            ENVIRONMENT => return members().chain(any()).map(Reference::Environment).collect(),
            "loop" => {
                let root = Reference::Root(self.name.to_string());
                return [root]
                    .into_iter()
                    .chain(members().map(Reference::LoopMember))
                    .collect();
            }
            name => return vec![Reference::Root(name.to_owned())],
        };
        let inner: fn(String) -> Reference = match &*self.name {
            "actions" => Reference::ActionMember,
            _ => Reference::LoopMember,
        };
        let inner = self.inner.iter().cloned().map(inner);
        let any = any().map(|_| Reference::Anything);
        members().map(make).chain(any).chain(inner).collect()
    }

    /// Returns true if a missing member of this name evaluates to None.
    pub(super) fn lenient(&self, flavor: Flavor) -> bool {
        match &*self.name {
            "state" => true,
            "variables" | "secrets" | "settings" | "data" | "env" | "checkpoint" | "result" => {
                flavor != Flavor::Strict
            }
            _ => false,
        }
    }

    fn value(&self, env: &dyn Env, flavor: Flavor) -> Option<Jinja> {
        let lenient = self.lenient(flavor) || env.absent_is_none(&self.name);
        if let Some(value) = env.root(&self.name) {
            let value = match &*self.name {
                "variables" => self.with_loop_variables(value, env),
                _ => value,
            };
            return Some(to_jinja(&value, lenient));
        }
        let value = match &*self.name {
            "variables" => self.object(&env.variable_names(), |name| env.variable(name)),
            "inputs" => env.inputs(),
            "actions" => {
                let known = match self.is_computed {
                    false => self.members.clone(),
                    true => action_names(env),
                };
                self.object(&known, |name| match env.action(name) {
                    Lookup::Found(view) => Some(view.to_value()),
                    Lookup::NotRun if env.missing_as_null() => Some(Value::Null),
                    Lookup::NotRun | Lookup::Unknown(_) => None,
                })
            }
            "parameters" => self.object(&[], |name| env.parameter(name)),
            "env" => self.object(&[], |name| env.env_var(name).map(Value::from)),
            "secrets" => self.object(&[], |name| env.secret(name)),
            "item" => env.item(None)?,
            "trigger" => env.trigger(),
            "workflow" => env.workflow(),
            "schedule" => env.schedule(),
            _ => return None,
        };
        Some(to_jinja(&value, lenient))
    }

    /// Adds the variables of loops that the template reads, such as `loopIndex`, to the variables of the run.
    fn with_loop_variables(&self, variables: Value, env: &dyn Env) -> Value {
        let missing = |name: &&String| variables.get(name).is_none();
        let found = self.members.iter().filter(missing);
        let found: Vec<_> = found
            .filter_map(|name| Some((name.clone(), env.variable(name)?)))
            .collect();
        match variables.as_object() {
            Some(own) if !found.is_empty() => {
                let own = own
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.clone()));
                Value::from_pairs(own.chain(found))
            }
            _ => variables,
        }
    }

    /// Makes an object with the members that the template reads.
    /// If the name of a member is computed, the object has all known members.
    fn object(&self, known: &[String], look_up: impl Fn(&str) -> Option<Value>) -> Value {
        let names = match self.is_computed {
            true => known,
            false => &*self.members,
        };
        let pairs = names
            .iter()
            .filter_map(|name| Some((name.as_str(), look_up(name)?)));
        Value::from_pairs(pairs)
    }
}

fn action_names(env: &dyn Env) -> Vec<String> {
    match env.action("") {
        Lookup::Unknown(names) => names,
        Lookup::Found(_) | Lookup::NotRun => Vec::new(),
    }
}

/// The variables of one evaluation: only the names that the template reads.
#[derive(Debug)]
struct Context {
    values: Vec<(Arc<str>, Jinja)>,
}

impl Object for Context {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        let found = self.values.iter().find(|(name, _)| &**name == key);
        found.map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.values.iter().map(|(name, _)| Jinja::from(&**name));
        Enumerator::Values(names.collect())
    }
}

pub(super) fn context(free: &[FreeVariable], env: &dyn Env, flavor: Flavor) -> Jinja {
    let values = free
        .iter()
        .filter_map(|root| Some((Arc::clone(&root.name), root.value(env, flavor)?)))
        .collect();
    Jinja::from_object(Context { values })
}

/// Returns the first name that is unknown, and names that the author may have meant.
pub(super) fn unknown(free: &[FreeVariable], env: &dyn Env) -> Option<(String, Vec<String>)> {
    for root in free {
        let Some(value) = root.value(env, Flavor::Strict) else {
            let mut names = env.root_names();
            let ours = [
                "variables",
                "inputs",
                "actions",
                "parameters",
                "env",
                "secrets",
            ];
            names.extend(ours.into_iter().map(String::from));
            names.extend(
                ["item", "trigger", "workflow", "schedule"]
                    .into_iter()
                    .map(String::from),
            );
            return Some((root.name.to_string(), names));
        };
        for member in root.members.iter().filter(|_| !root.is_computed) {
            let missing = value
                .get_attr(member)
                .is_ok_and(|found| found.is_undefined());
            if missing && value.kind() == ValueKind::Map {
                let names = members_of(&root.name, &value, env);
                return Some((format!("{}.{member}", root.name), names));
            }
        }
    }
    None
}

/// Returns the first missing member of a path of names with dots between them, and a message about it.
pub(super) fn missing_member(
    path: &str,
    free: &[FreeVariable],
    env: &dyn Env,
) -> Option<(Missing, String)> {
    let (first, rest) = path.split_once('.')?;
    let root = free.iter().find(|root| *root.name == *first)?;
    let mut value = root.value(env, Flavor::Strict)?;
    let mut at = first.to_owned();
    let is_name = |name: &str| {
        name.chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    for name in rest.split('.') {
        if !is_name(name) {
            return None;
        }
        let member = value.get_attr(name).ok()?;
        if !member.is_undefined() {
            value = member;
            at = format!("{at}.{name}");
            continue;
        }
        let missing = |object| Missing {
            path: format!("{at}.{name}"),
            object,
        };
        if value.kind() != ValueKind::Map {
            let kind = operators::kind_of(&value);
            let message = format!("`{at}` is {kind}, which has no member `{name}`");
            return Some((missing(None), message));
        }
        let there: Vec<String> = value.try_iter().ok()?.map(|key| key.to_string()).collect();
        let hint = match there.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            // Only a response whose bytes are no text is such an object.
            ["$content-type", "$content"] => String::from(
                "it is bytes that are not UTF-8, and its header names no other charset",
            ),
            _ => did_you_mean(name, &there).unwrap_or_else(|| {
                let there = members(there.iter().map(String::as_str));
                format!("write `| default('')` behind it if it may be missing; {there}")
            }),
        };
        let message = format!("`{at}` has no member `{name}`; {hint}");
        return Some((missing(Some((at.clone(), there))), message));
    }
    None
}

fn members_of(root: &str, value: &Jinja, env: &dyn Env) -> Vec<String> {
    let names: Vec<String> = match root {
        "variables" => env.variable_names(),
        "actions" => action_names(env),
        _ => value
            .try_iter()
            .map(|keys| keys.map(|key| key.to_string()).collect())
            .unwrap_or_default(),
    };
    names
        .into_iter()
        .map(|name| format!("{root}.{name}"))
        .collect()
}
