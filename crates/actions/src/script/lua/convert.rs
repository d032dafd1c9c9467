//! Converts values to Lua and back. A table with the keys 1 to n becomes an array. Any other table becomes an object,
//! so `{}` becomes an object. A table that was made from an array has a metatable, so that it becomes an array again, also
//! if it is empty or contains nil. A whole number is returned as an integer (docs/reference/tea.md).

use crate::script::MAX_OUTPUT;
use mlua::Table;
use mlua::prelude::{Lua as State, LuaResult, LuaValue};
use windlass_expression::{MAX_RESULT_DEPTH, Object, SECURE_MASK, Value};
use windlass_value::first_chars;

/// Up to this number, a double represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The member of a table's metatable that says that the table was made from an array.
const IS_ARRAY: &str = "is_array";

/// A value that JSON cannot represent.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {what}", first_chars(path, 200))]
pub(super) struct ConversionError {
    path: String,
    what: ConversionErrorKind,
}

#[derive(Debug, thiserror::Error)]
enum ConversionErrorKind {
    #[error("is a {0}, which is not a valid JSON value")]
    Kind(&'static str),
    #[error("is {0}, which is not a valid JSON number")]
    Number(f64),
    #[error("is text that is not valid UTF-8")]
    Bytes,
    #[error("has a key of type {0}")]
    Key(&'static str),
    #[error("nests deeper than {MAX_RESULT_DEPTH} levels")]
    Deep,
    #[error("is larger than {} MiB", MAX_OUTPUT >> 20)]
    Large,
    #[error("cannot be read: {0}")]
    Unreadable(mlua::Error),
}

impl ConversionError {
    /// Returns true if the value has a type that JSON does not have.
    pub(super) fn is_no_data(&self) -> bool {
        matches!(
            self.what,
            ConversionErrorKind::Kind(_) | ConversionErrorKind::Key(_)
        )
    }

    pub(super) fn is_too_large(&self) -> bool {
        matches!(
            self.what,
            ConversionErrorKind::Large | ConversionErrorKind::Deep
        )
    }
}

/// Converts a value to Lua. Null becomes nil, so a member that is null does not exist in the table.
pub(super) fn to_lua(lua: &State, value: &Value) -> LuaResult<LuaValue> {
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Int(value) => LuaValue::Integer(*value),
        Value::Float(value) => LuaValue::Number(*value),
        Value::Decimal(decimal) => {
            LuaValue::Number(decimal.to_string().parse().unwrap_or(f64::NAN))
        }
        Value::String(text) => LuaValue::String(lua.create_string(text.as_bytes())?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in (1_i64..).zip(items.iter()) {
                table.raw_set(index, to_lua(lua, item)?)?;
            }
            table.set_metatable(Some(array_metatable(lua)?))?;
            LuaValue::Table(table)
        }
        Value::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map.iter() {
                table.raw_set(&**key, to_lua(lua, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Secure(_) => LuaValue::String(lua.create_string(SECURE_MASK)?),
    })
}

/// Returns the metatable of the tables that are made from arrays. It is made once.
fn array_metatable(lua: &State) -> LuaResult<Table> {
    if let Some(known) = lua.named_registry_value(IS_ARRAY)? {
        return Ok(known);
    }
    let metatable = lua.create_table()?;
    metatable.raw_set(IS_ARRAY, true)?;
    lua.set_named_registry_value(IS_ARRAY, &metatable)?;
    Ok(metatable)
}

/// Converts a value from Lua. `name` is its name in error messages.
pub(super) fn from_lua(value: &LuaValue, name: &str) -> Result<Value, ConversionError> {
    let mut reader = Reader {
        left: MAX_OUTPUT,
        path: vec![name.to_owned()],
    };
    reader.value(value).map_err(|what| ConversionError {
        path: reader.path.concat(),
        what,
    })
}

struct Reader {
    /// Approximate number of bytes that the rest of the value may have. A table that occurs several times counts each
    /// time.
    left: usize,
    /// The path of the current value. After an error, it is the path of the refused value.
    path: Vec<String>,
}

impl Reader {
    fn value(&mut self, value: &LuaValue) -> Result<Value, ConversionErrorKind> {
        self.spend(8)?;
        match value {
            LuaValue::Nil => Ok(Value::Null),
            LuaValue::Boolean(value) => Ok(Value::Bool(*value)),
            LuaValue::Integer(value) => Ok(Value::Int(*value)),
            LuaValue::Number(number) => float(*number),
            LuaValue::String(text) => {
                self.spend(text.as_bytes().len())?;
                let text = text.to_str().map_err(|_| ConversionErrorKind::Bytes)?;
                Ok(Value::text(&*text))
            }
            LuaValue::Table(table) => self.table(table),
            other => Err(ConversionErrorKind::Kind(other.type_name())),
        }
    }

    fn table(&mut self, table: &Table) -> Result<Value, ConversionErrorKind> {
        self.spend(128)?;
        if self.path.len() > MAX_RESULT_DEPTH {
            return Err(ConversionErrorKind::Deep);
        }
        if let Some(items) = self.marked_array(table)? {
            return self.array(&items);
        }
        let length = table.raw_len();
        let mut items = Vec::new();
        for index in 1..=length {
            let item: LuaValue = table
                .raw_get(index)
                .map_err(ConversionErrorKind::Unreadable)?;
            items.push(item);
        }
        let mut others = Vec::new();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, item) = pair.map_err(ConversionErrorKind::Unreadable)?;
            let is_item =
                |index: i64| usize::try_from(index).is_ok_and(|i| (1..=length).contains(&i));
            match key {
                LuaValue::Integer(index) if is_item(index) => {}
                key => others.push((key, item)),
            }
        }
        let has_holes = items.iter().any(LuaValue::is_nil);
        if others.is_empty() && !items.is_empty() && !has_holes {
            return self.array(&items);
        }
        let numbered = (1_i64..)
            .zip(items)
            .map(|(index, item)| (LuaValue::Integer(index), item));
        self.object(numbered.chain(others).filter(|(_, item)| !item.is_nil()))
    }

    /// Returns the items of a table that was made from an array, up to the last one that is not nil: a script may have
    /// removed items, so nulls at the end are lost. Returns `None` for any other table, and if the table has another key
    /// than the numbers from 1.
    fn marked_array(
        &mut self,
        table: &Table,
    ) -> Result<Option<Vec<LuaValue>>, ConversionErrorKind> {
        let is_array = |own: Table| own.raw_get(IS_ARRAY).unwrap_or(false);
        if !table.metatable().is_some_and(is_array) {
            return Ok(None);
        }
        let mut length = 0;
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, _) = pair.map_err(ConversionErrorKind::Unreadable)?;
            match key.as_integer().map(usize::try_from) {
                Some(Ok(index)) if index > 0 => length = length.max(index),
                _ => return Ok(None),
            }
        }
        self.spend(length.saturating_mul(8))?;
        let items = (1..=length).map(|index| table.raw_get(index));
        let items = items.collect::<Result<_, _>>();
        items.map(Some).map_err(ConversionErrorKind::Unreadable)
    }

    fn array(&mut self, items: &[LuaValue]) -> Result<Value, ConversionErrorKind> {
        let mut array = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.path.push(format!("[{}]", index + 1));
            array.push(self.value(item)?);
            self.path.pop();
        }
        Ok(Value::array(array))
    }

    /// Makes an object. The caller sorts the members by key, because a Lua table has no order.
    fn object(
        &mut self,
        members: impl Iterator<Item = (LuaValue, LuaValue)>,
    ) -> Result<Value, ConversionErrorKind> {
        let mut map = Object::new();
        for (key, item) in members {
            let key = match key {
                LuaValue::String(key) => key
                    .to_str()
                    .map_err(|_| ConversionErrorKind::Bytes)?
                    .to_owned(),
                LuaValue::Integer(key) => key.to_string(),
                LuaValue::Number(key) => key.to_string(),
                LuaValue::Boolean(key) => key.to_string(),
                other => return Err(ConversionErrorKind::Key(other.type_name())),
            };
            self.spend(key.len())?;
            self.path.push(format!(".{key}"));
            map.insert(key.into(), self.value(&item)?);
            self.path.pop();
        }
        map.sort_unstable_keys();
        Ok(Value::object(map))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ConversionErrorKind> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(ConversionErrorKind::Large)?;
        Ok(())
    }
}

fn float(number: f64) -> Result<Value, ConversionErrorKind> {
    if !number.is_finite() {
        return Err(ConversionErrorKind::Number(number));
    }
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation)]
        return Ok(Value::Int(number as i64));
    }
    Ok(Value::Float(number))
}
