//! The part of JSON Schema that Logic Apps designers write: types, properties, items, required,
//! enum, const, bounds and the combinations. It follows no `$ref` and fetches nothing.

use super::Value;
use std::sync::Arc;

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 64;

/// A schema, read once.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Schema {
    types: Vec<Type>,
    properties: Vec<(Arc<str>, Schema)>,
    required: Vec<String>,
    /// `additionalProperties: false` or its schema.
    additional: Option<Option<Box<Schema>>>,
    items: Option<Box<Schema>>,
    one_of_values: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    lengths: (Option<i64>, Option<i64>),
    all: Vec<Schema>,
    any: Vec<Schema>,
    one: Vec<Schema>,
    not: Option<Box<Schema>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [(&'static str, Self); 7] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("string", Self::String),
        ("array", Self::Array),
        ("object", Self::Object),
    ];

    fn parse(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, found)| found)
            .ok_or_else(|| format!("`{text}` is no type of JSON Schema"))
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => matches!(value, Value::Bool(_)),
            Self::Integer => value.as_int().is_some(),
            Self::Number => matches!(value, Value::Int(_) | Value::Float(_) | Value::Decimal(_)),
            Self::String => value.as_str().is_some(),
            Self::Array => value.as_array().is_some(),
            Self::Object => value.as_object().is_some(),
        }
    }

    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Value) -> Result<Self, String> {
        Self::read_at(value, 0)
    }

    fn read_at(value: &Value, depth: usize) -> Result<Self, String> {
        if depth > MAX_DEPTH {
            return Err(format!("a schema nests {MAX_DEPTH} levels at most"));
        }
        let map = match value {
            Value::Object(map) => map,
            // `true` allows everything, as does an empty schema.
            Value::Bool(true) | Value::Null => return Ok(Self::default()),
            other => return Err(format!("a schema is an object, not {}", other.kind())),
        };
        let inner = |value: &Value| Self::read_at(value, depth + 1);
        let list = |key: &str| -> Result<Vec<Self>, String> {
            let items = map.get(key).and_then(Value::as_array);
            items.map_or(Ok(Vec::new()), |items| items.iter().map(inner).collect())
        };
        let number = |key: &str| map.get(key).and_then(number_of);
        let whole = |key: &str| map.get(key).and_then(Value::as_int);
        let types = match map.get("type") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => vec![Type::parse(text)?],
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| Type::parse(item.as_str().unwrap_or_default()))
                .collect::<Result<_, _>>()?,
            Some(other) => return Err(format!("`type` is text or a list, not {}", other.kind())),
        };
        let mut properties = Vec::new();
        for (key, value) in map
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            properties.push((Arc::clone(key), inner(value)?));
        }
        let required = map.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let additional = match map.get("additionalProperties") {
            Some(Value::Bool(false)) => Some(None),
            Some(schema @ Value::Object(_)) => Some(Some(Box::new(inner(schema)?))),
            _ => None,
        };
        let values = map.get("enum").and_then(Value::as_array).cloned();
        let constant = map.get("const").map(|value| vec![value.clone()]);
        let boxed = |key: &str| -> Result<Option<Box<Self>>, String> {
            map.get(key)
                .filter(|value| value.as_object().is_some())
                .map(|value| inner(value).map(Box::new))
                .transpose()
        };
        Ok(Self {
            types,
            properties,
            required: required.map(str::to_owned).collect(),
            additional,
            items: boxed("items")?,
            one_of_values: values.or(constant),
            minimum: number("minimum"),
            maximum: number("maximum"),
            lengths: (
                whole("minLength").or_else(|| whole("minItems")),
                whole("maxLength").or_else(|| whole("maxItems")),
            ),
            all: list("allOf")?,
            any: list("anyOf")?,
            one: list("oneOf")?,
            not: boxed("not")?,
        })
    }

    /// Whether a value is as the schema says.
    ///
    /// # Errors
    /// The first thing that is not, with its path.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.check_at(value, "the value")
    }

    fn check_at(&self, value: &Value, path: &str) -> Result<(), String> {
        if !self.types.is_empty() && !self.types.iter().any(|kind| kind.fits(value)) {
            let names: Vec<&str> = self.types.iter().map(|kind| kind.name()).collect();
            let (wanted, found) = (names.join(" or "), value.kind());
            return Err(format!("{path} must be {wanted}, not {found}"));
        }
        if let Some(values) = &self.one_of_values
            && !values.contains(value)
        {
            return Err(format!("{path} is none of the allowed values"));
        }
        self.check_bounds(value, path)?;
        match value {
            Value::Object(map) => {
                for name in &self.required {
                    if !map.contains_key(name.as_str()) {
                        return Err(format!("{path} has no `{name}`"));
                    }
                }
                for (key, member) in map.iter() {
                    let inner = format!("{path}.{key}");
                    let known = self.properties.iter().find(|(name, _)| name == key);
                    match (known, &self.additional) {
                        (Some((_, schema)), _) => schema.check_at(member, &inner)?,
                        (None, Some(None)) => return Err(format!("{inner} is not allowed")),
                        (None, Some(Some(schema))) => schema.check_at(member, &inner)?,
                        (None, None) => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        schema.check_at(item, &format!("{path}[{index}]"))?;
                    }
                }
            }
            _ => {}
        }
        self.check_combinations(value, path)
    }

    fn check_bounds(&self, value: &Value, path: &str) -> Result<(), String> {
        if let Some(number) = number_of(value)
            && (self.minimum.is_some_and(|minimum| number < minimum)
                || self.maximum.is_some_and(|maximum| number > maximum))
        {
            return Err(format!("{path} is out of its bounds"));
        }
        let length = match value {
            Value::String(text) => text.chars().count(),
            Value::Array(items) => items.len(),
            _ => return Ok(()),
        };
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let (least, most) = self.lengths;
        if least.is_some_and(|least| length < least) || most.is_some_and(|most| length > most) {
            return Err(format!("{path} has a length of {length}"));
        }
        Ok(())
    }

    fn check_combinations(&self, value: &Value, path: &str) -> Result<(), String> {
        let fits = |schema: &Schema| schema.check_at(value, path).is_ok();
        for schema in &self.all {
            schema.check_at(value, path)?;
        }
        if !self.any.is_empty() && !self.any.iter().any(fits) {
            return Err(format!("{path} fits none of `anyOf`"));
        }
        if !self.one.is_empty() && self.one.iter().filter(|schema| fits(schema)).count() != 1 {
            return Err(format!("{path} does not fit exactly one of `oneOf`"));
        }
        if self.not.as_deref().is_some_and(fits) {
            return Err(format!("{path} fits what it must not"));
        }
        Ok(())
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        #[allow(clippy::cast_precision_loss)]
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}
