//! The functions of WDL in one table, sorted into files by subject. A function reads only its arguments and an `Env`.

mod collection;
mod convert;
mod date;
mod encode;
mod form;
mod logic;
mod manipulate;
mod math;
mod string;
mod uri;
mod workflow;

use super::ast::Expr;
use super::eval::{Ctx, Fail, Outcome, describe};
use super::number::Number;
use super::text::push_text;
use crate::{Object, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// A function: its name as in the reference, its number of arguments, and its implementation.
pub(crate) struct Function {
    pub name: &'static str,
    min: usize,
    max: usize,
    pub run: Run,
    /// Whether the texts in the arguments are charged, because the function reads them completely.
    pub charges_text_arguments: bool,
}

/// How a function is called.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// With evaluated arguments.
    Eager(fn(&mut Ctx<'_>, &Args) -> Outcome),
    /// With unevaluated arguments: the function evaluates only those that it needs.
    Lazy(fn(&mut Ctx<'_>, &[Expr]) -> Outcome),
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn eager(
    name: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Ctx<'_>, &Args) -> Outcome,
) -> Function {
    let run = Run::Eager(run);
    Function {
        name,
        min,
        max,
        run,
        charges_text_arguments: true,
    }
}

/// Defines a function that passes on the texts in its arguments, or reads only their beginning or end.
const fn passing(
    name: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Ctx<'_>, &Args) -> Outcome,
) -> Function {
    Function {
        charges_text_arguments: false,
        ..eager(name, min, max, run)
    }
}

const fn lazy(
    name: &'static str,
    min: usize,
    max: usize,
    run: fn(&mut Ctx<'_>, &[Expr]) -> Outcome,
) -> Function {
    let run = Run::Lazy(run);
    Function {
        name,
        min,
        max,
        run,
        charges_text_arguments: false,
    }
}

impl Function {
    /// Returns the error message for a wrong number of arguments.
    pub(crate) fn arity_error(&self, given: usize) -> Option<String> {
        if (self.min..=self.max).contains(&given) {
            return None;
        }
        let takes = match (self.min, self.max) {
            (0, 0) => "no argument".to_owned(),
            (1, 1) => "1 argument".to_owned(),
            (min, max) if min == max => format!("{min} arguments"),
            (min, ANY) => format!("at least {min} argument{}", if min == 1 { "" } else { "s" }),
            (min, max) => format!("{min} to {max} arguments"),
        };
        Some(format!("`{}` needs {takes}, not {given}", self.name))
    }
}

/// Returns the function that corresponds to a word of another language.
pub(crate) fn other_word(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "concatenate" | "strcat" => "concat",
        "len" | "size" | "count" => "length",
        "upper" | "uppercase" | "toupper" => "toUpper",
        "lower" | "lowercase" | "tolower" => "toLower",
        "now" | "today" | "getdate" | "date" => "utcNow",
        "str" | "tostring" | "text" | "tojson" | "stringify" => "string",
        "number" | "parseint" | "tonumber" | "toint" => "int",
        "parse" | "parsejson" | "fromjson" => "json",
        "eq" | "equal" | "is" => "equals",
        "gt" | "greaterthan" => "greater",
        "gte" | "ge" | "greaterthanorequals" | "greaterorequal" => "greaterOrEquals",
        "lt" | "lessthan" => "less",
        "lte" | "le" | "lessthanorequals" | "lessorequal" => "lessOrEquals",
        "ne" | "neq" | "notequals" | "notequal" => "not",
        "iif" | "iff" | "case" => "if",
        "ifnull" | "default" | "nvl" => "coalesce",
        "isempty" | "isnull" => "empty",
        "includes" | "has" | "in" => "contains",
        "substr" | "mid" => "substring",
        "random" => "rand",
        "uuid" | "newguid" => "guid",
        "var" | "variable" | "vars" => "variables",
        "param" | "parameter" => "parameters",
        "input" => "inputs",
        "output" => "outputs",
        "response" => "body",
        "multiply" | "times" => "mul",
        "divide" => "div",
        "subtract" | "minus" => "sub",
        "plus" | "sum" => "add",
        "modulo" => "mod",
        "append" | "push" | "merge" => "union",
        "head" => "first",
        "tail" => "skip",
        "list" => "createArray",
        "format" => "concat",
        _ => return None,
    })
}

static TABLES: &[&[Function]] = &[
    collection::TABLE,
    convert::TABLE,
    date::TABLE,
    encode::TABLE,
    form::TABLE,
    logic::TABLE,
    manipulate::TABLE,
    math::TABLE,
    string::TABLE,
    uri::TABLE,
    workflow::TABLE,
];

static BY_NAME: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
    TABLES
        .iter()
        .copied()
        .flatten()
        .map(|function| (function.name.to_lowercase(), function))
        .collect()
});

/// Finds a function by its name without regard to case.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    BY_NAME.get(&name.to_lowercase()).copied()
}

/// Returns all names, as the reference writes them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES
        .iter()
        .copied()
        .flatten()
        .map(|function| function.name)
}

/// Returns all names, each with its least and greatest number of arguments.
pub(crate) fn arities() -> impl Iterator<Item = (&'static str, usize, usize)> {
    let functions = TABLES.iter().copied().flatten();
    functions.map(|function| (function.name, function.min, function.max))
}

/// The evaluated arguments of one call, with functions that check them.
pub(crate) struct Args {
    pub function: &'static Function,
    pub values: Vec<Value>,
}

impl Args {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns an argument, or null if it is missing.
    pub(crate) fn value(&self, index: usize) -> &Value {
        static NULL: Value = Value::Null;
        self.values.get(index).unwrap_or(&NULL)
    }

    /// Makes the failure for an invalid argument. `wanted` describes what is expected.
    pub(crate) fn wrong(&self, index: usize, wanted: &str) -> Box<Fail> {
        let place = match (index, self.len()) {
            (0, 1) => String::new(),
            (0, _) => " as its first argument".into(),
            (1, _) => " as its second argument".into(),
            (2, _) => " as its third argument".into(),
            (index, _) => format!(" as argument {}", index + 1),
        };
        let message = format!(
            "`{}` needs {wanted}{place}, not {}",
            self.function.name,
            describe(self.value(index))
        );
        Fail::argument(index, message)
    }

    pub(crate) fn text(&self, index: usize) -> Outcome<&str> {
        self.value(index)
            .as_str()
            .ok_or_else(|| self.wrong(index, "text"))
    }

    /// Returns a text, or the text of a number or a boolean.
    pub(crate) fn scalar(&self, index: usize) -> Outcome<Cow<'_, str>> {
        match self.value(index) {
            Value::String(text) => Ok(Cow::Borrowed(text)),
            value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Decimal(_)) => {
                let mut text = String::new();
                push_text(&mut text, value);
                Ok(Cow::Owned(text))
            }
            _ => Err(self.wrong(index, "text, a number or a boolean")),
        }
    }

    /// Returns a text, or `None` if the argument is missing or null.
    pub(crate) fn optional_text(&self, index: usize) -> Outcome<Option<&str>> {
        match self.value(index) {
            Value::Null => Ok(None),
            _ => self.text(index).map(Some),
        }
    }

    pub(crate) fn int(&self, index: usize) -> Outcome<i64> {
        self.value(index)
            .as_int()
            .ok_or_else(|| self.wrong(index, "a whole number"))
    }

    /// Returns a whole number from 0.
    pub(crate) fn count(&self, index: usize) -> Outcome<usize> {
        usize::try_from(self.int(index)?).map_err(|_| self.wrong(index, "a whole number from 0"))
    }

    pub(crate) fn number(&self, index: usize) -> Outcome<Number> {
        Number::of(self.value(index)).ok_or_else(|| self.wrong(index, "a number"))
    }

    pub(crate) fn boolean(&self, index: usize) -> Outcome<bool> {
        match self.value(index) {
            Value::Bool(value) => Ok(*value),
            _ => Err(self.wrong(index, "a boolean")),
        }
    }

    pub(crate) fn array(&self, index: usize) -> Outcome<&Arc<Vec<Value>>> {
        match self.value(index) {
            Value::Array(items) => Ok(items),
            _ => Err(self.wrong(index, "an array")),
        }
    }

    pub(crate) fn object(&self, index: usize) -> Outcome<&Arc<Object>> {
        match self.value(index) {
            Value::Object(map) => Ok(map),
            _ => Err(self.wrong(index, "an object")),
        }
    }
}
