//! The names of parameters. minijinja accepts some arguments only by position and others only by name, but Jinja2 and
//! Python accept most of them in both forms.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};

/// The parameters of filters that minijinja accepts by position, and of methods of texts.
const BY_POSITION: &[(&str, &[&str])] = &[
    ("attr", &["name"]),
    ("batch", &["linecount", "fill_with"]),
    ("center", &["width"]),
    ("d", &["default_value", "boolean"]),
    ("default", &["default_value", "boolean"]),
    ("expandtabs", &["tabsize"]),
    ("filesizeformat", &["binary"]),
    ("groupby", &["attribute"]),
    ("indent", &["width", "first", "blank"]),
    ("join", &["d", "attribute"]),
    ("replace", &["old", "new", "count"]),
    ("round", &["precision", "method"]),
    ("rsplit", &["sep", "maxsplit"]),
    ("slice", &["slices", "fill_with"]),
    ("split", &["sep", "maxsplit"]),
    ("splitlines", &["keepends"]),
    ("sum", &["attribute", "start"]),
    ("trim", &["chars"]),
];

/// The parameters of filters that minijinja accepts by name.
const BY_NAME: &[(&str, &[&str])] = &[
    ("dictsort", &["case_sensitive", "by", "reverse"]),
    ("max", &["case_sensitive", "attribute"]),
    ("min", &["case_sensitive", "attribute"]),
    ("sort", &["reverse", "case_sensitive", "attribute"]),
    ("unique", &["case_sensitive", "attribute"]),
];

/// The parameters of filters that minijinja and Jinja2 accept by name, and that are not in the other tables.
const ONLY_BY_NAME: &[(&str, &[&str])] = &[("groupby", &["default", "case_sensitive"])];

/// The filters whose only difference from Jinja2 is the form of their arguments.
pub(super) const ONLY_FORM: [&str; 8] = [
    "attr",
    "d",
    "default",
    "filesizeformat",
    "groupby",
    "round",
    "sum",
    "trim",
];

fn parameters(
    table: &[(&str, &'static [&'static str])],
    name: &str,
) -> Option<&'static [&'static str]> {
    let (_, parameters) = table.iter().find(|(known, _)| *known == name)?;
    Some(parameters)
}

/// Moves arguments to the form that minijinja accepts. `args` are those of the filter without its value, or those of
/// the method.
pub(super) fn arrange(
    name: &str,
    args: &[Value],
    kwargs: &Kwargs,
) -> Result<(Vec<Value>, Kwargs), Error> {
    let mut args = args.to_vec();
    let mut named: Vec<(&str, Value)> = Vec::new();
    let by_position = parameters(BY_POSITION, name).unwrap_or_default();
    let tables = [BY_POSITION, BY_NAME, ONLY_BY_NAME];
    let known = tables.map(|table| parameters(table, name).unwrap_or_default());
    let known = known.concat();
    for key in kwargs.args() {
        if !known.is_empty() && !known.contains(&key) {
            let message = format!("`{name}` has no argument `{key}`");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        let value = kwargs.peek::<Value>(key)?;
        match by_position.iter().position(|parameter| *parameter == key) {
            None => named.push((key, value)),
            Some(place) => {
                // An undefined argument is one that is not given.
                if args.len() <= place {
                    args.resize(place + 1, Value::UNDEFINED);
                } else if !args.get(place).is_some_and(Value::is_undefined) {
                    return Err(twice(name, key));
                }
                if let Some(free) = args.get_mut(place) {
                    *free = value;
                }
            }
        }
    }
    if let Some(by_name) = parameters(BY_NAME, name) {
        if args.len() > by_name.len() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        for (parameter, value) in by_name
            .iter()
            .zip(args.drain(..by_name.len().min(args.len())))
        {
            if named.iter().any(|(key, _)| key == parameter) {
                return Err(twice(name, parameter));
            }
            named.push((parameter, value));
        }
    }
    // An attribute may be an index. minijinja accepts it only as text.
    let place = by_position.iter().position(|name| *name == "attribute");
    let attributes = named.iter_mut().filter(|(key, _)| *key == "attribute");
    let attributes = attributes.map(|(_, value)| value);
    for attribute in attributes.chain(place.and_then(|place| args.get_mut(place))) {
        if attribute.is_integer() {
            *attribute = Value::from(attribute.to_string());
        }
    }
    Ok((args, Kwargs::from_iter(named)))
}

fn twice(name: &str, argument: &str) -> Error {
    let message = format!("`{name}` has the argument `{argument}` twice");
    Error::new(ErrorKind::InvalidOperation, message)
}
