//! The data operations of Logic Apps (select, query, join, table, parseJson) as templates (Logic Apps reference,
//! "Perform operations on data").
//! While a template is evaluated for an element, `item()` returns the element. The operations are pure and limited
//! like every other template.

use super::Value;
use super::error::wrong;
use super::over_memory_json;
use super::schema::Schema;
use super::template::{Kind, Template};
use super::wdl::ast::{AstSpan, Expr, Node};
use super::wdl::eval::MAX_BYTES;
use super::wdl::functions;
use super::wdl::text::{push_text, text_size};
use super::{Budget, BudgetExceeded, Condition, Env, EvalError, Object, ParseError, Reference};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use windlass_value::{did_you_mean, escape_markup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// RFC 4180.
    Csv,
    /// `<table>…</table>`.
    Html,
}

/// A data operation of Logic Apps, whose parts are templates.
#[derive(Debug, PartialEq)]
pub(super) enum Data {
    Select {
        from: Template,
        select: Template,
    },
    Query {
        from: Template,
        when: Condition,
    },
    Join {
        from: Template,
        with: Template,
    },
    Table {
        from: Template,
        format: TableFormat,
        /// The header and the value of each column. `None` means that the keys of the first element are the columns.
        columns: Option<Vec<(Template, Template)>>,
    },
    ParseJson {
        content: Template,
        schema: Option<Box<Schema>>,
    },
}

impl Template {
    /// Makes the list of the values of `select` for each element of `from`.
    #[must_use]
    pub fn select(from: Self, select: Self) -> Self {
        Self::data(Data::Select { from, select })
    }

    /// Makes the list of those elements of `from` for which `when` holds.
    #[must_use]
    pub fn query(from: Self, when: Condition) -> Self {
        Self::data(Data::Query { from, when })
    }

    /// Joins the elements of `from` as text, with `with` between them.
    #[must_use]
    pub fn join(from: Self, with: Self) -> Self {
        Self::data(Data::Join { from, with })
    }

    /// Makes a table whose rows are the elements of `from`.
    /// Each column has a header and a value. Without columns, the keys of the first element are used.
    #[must_use]
    pub fn table(from: Self, format: TableFormat, columns: Option<Vec<(Self, Self)>>) -> Self {
        Self::data(Data::Table {
            from,
            format,
            columns,
        })
    }

    /// Parses JSON text. Content that is not text is returned unchanged.
    /// In both cases the result is checked against the JSON Schema, if there is one.
    ///
    /// # Errors
    /// The reason why the schema is not valid.
    pub fn parse_json(content: Self, schema: Option<&Value>) -> Result<Self, String> {
        let schema = schema.map(Schema::read).transpose()?.map(Box::new);
        Ok(Self::data(Data::ParseJson { content, schema }))
    }

    /// Makes a call of a WDL function with templates as arguments.
    pub fn call(name: &str, arguments: Vec<Self>) -> Result<Self, ParseError> {
        let wrong = |message: String, hint| ParseError {
            message,
            offset: 0,
            length: 1,
            hint,
        };
        let Some(function) = functions::find(name) else {
            let hint = did_you_mean(name, functions::names());
            return Err(wrong(format!("unknown function `{name}`"), hint));
        };
        if let Some(message) = function.arity_error(arguments.len()) {
            return Err(wrong(message, None));
        }
        let node = |node| Expr {
            node,
            place: AstSpan::default(),
        };
        let arguments = arguments.into_iter().map(|argument| {
            node(match argument.as_constant() {
                Some(value) => Node::Literal(value.clone()),
                None => Node::Template(argument),
            })
        });
        let call = node(Node::Call(function, arguments.collect()));
        Ok(Self(Arc::new(Kind::Whole(Arc::from(name), call))))
    }

    /// Returns the text of a member if this template is a map and the member is a constant text.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&str> {
        match &*self.0 {
            Kind::Constant(value) => value.get(key)?.as_str(),
            Kind::Object(_) => self.part_of(key)?.as_constant()?.as_str(),
            Kind::Binding(binding) => binding.body()?.member(key),
            _ => None,
        }
    }

    /// Returns the template of a member if this template is a map and has the member.
    #[must_use]
    pub fn part_of(&self, key: &str) -> Option<&Self> {
        let Kind::Object(members) = &*self.0 else {
            return None;
        };
        let named = |name: &Self| name.as_constant().and_then(Value::as_str) == Some(key);
        let (_, value) = members.iter().find(|(name, _)| named(name))?;
        Some(value)
    }

    fn data(data: Data) -> Self {
        Self(Arc::new(Kind::Data(Box::new(data))))
    }
}

impl Data {
    pub(super) fn collect(&self, found: &mut Vec<Reference>) {
        match self {
            Self::Select { from, select } => {
                from.collect(found);
                select.collect(found);
            }
            Self::Query { from, when } => {
                from.collect(found);
                found.extend(when.references());
            }
            Self::Join { from, with } => {
                from.collect(found);
                with.collect(found);
            }
            Self::Table { from, columns, .. } => {
                from.collect(found);
                for (header, value) in columns.iter().flatten() {
                    header.collect(found);
                    value.collect(found);
                }
            }
            Self::ParseJson { content, .. } => content.collect(found),
        }
    }

    /// Returns the operation as its author wrote it, without columns and schema.
    pub(super) fn source(&self) -> Value {
        let pairs = match self {
            Self::Select { from, select } => {
                vec![("from", from.source()), ("select", select.source())]
            }
            Self::Query { from, when } => {
                vec![("from", from.source()), ("where", Value::text(when.text()))]
            }
            Self::Join { from, with } => {
                vec![("from", from.source()), ("joinWith", with.source())]
            }
            Self::Table { from, .. } => vec![("from", from.source())],
            Self::ParseJson { content, .. } => vec![("content", content.source())],
        };
        Value::from_pairs(pairs)
    }

    pub(super) fn eval(&self, env: &dyn Env) -> Result<Value, EvalError> {
        match self {
            Self::Select { from, select } => {
                let mut out = CollectedRows::default();
                for item in elements("select", from, env)?.iter() {
                    env.budget().charge(1)?;
                    let value = select.eval(&WithItem { env, item })?;
                    out.push(value, env.budget())?;
                }
                Ok(Value::array(out.items))
            }
            Self::Query { from, when } => {
                let mut out = Vec::new();
                for item in elements("query", from, env)?.iter() {
                    env.budget().charge(1)?;
                    if when.holds(&WithItem { env, item })? {
                        out.push(item.clone());
                    }
                }
                Ok(Value::array(out))
            }
            Self::Join { from, with } => {
                let with = with.eval(env)?;
                let mut out = String::new();
                for (index, item) in elements("join", from, env)?.iter().enumerate() {
                    let before = out.len();
                    if index > 0 {
                        push_text(&mut out, &with);
                    }
                    push_text(&mut out, item);
                    env.budget().charge(1 + (out.len() - before) / 16)?;
                    bounded(out.len())?;
                }
                Ok(Value::text(out))
            }
            Self::Table {
                from,
                format,
                columns,
            } => {
                let items = elements("table", from, env)?;
                let rows = rows(&items, columns.as_deref(), env)?;
                let cells = rows.iter().flatten().map(|cell| 1 + cell.len() / 8);
                env.budget().charge(cells.fold(0, usize::saturating_add))?;
                let text = match format {
                    TableFormat::Csv => csv(&rows)?,
                    TableFormat::Html => html(&rows)?,
                };
                Ok(Value::text(text))
            }
            Self::ParseJson { content, schema } => {
                parse(&content.eval(env)?, schema.as_deref(), env.budget())
            }
        }
    }
}

impl From<BudgetExceeded> for EvalError {
    fn from(exceeded: BudgetExceeded) -> Self {
        wrong(exceeded.to_string())
    }
}

fn bounded(bytes: usize) -> Result<(), EvalError> {
    if bytes > MAX_BYTES {
        return Err(wrong(format!("the result has more than {MAX_BYTES} bytes")));
    }
    Ok(())
}

/// Returns the elements of the value of `from`. It is an error if the value is not an array.
fn elements(what: &str, from: &Template, env: &dyn Env) -> Result<Arc<Vec<Value>>, EvalError> {
    match from.eval(env)? {
        Value::Array(items) => Ok(items),
        other => Err(wrong(format!(
            "`from` of {what} must be an array, not {}",
            other.kind()
        ))),
    }
}

/// Rows and the total size in bytes of their text.
#[derive(Default)]
struct CollectedRows {
    items: Vec<Value>,
    bytes: usize,
}

impl CollectedRows {
    fn push(&mut self, value: Value, budget: &Budget) -> Result<(), EvalError> {
        let bytes = text_size(&value);
        budget.charge(bytes / 64)?;
        self.bytes = self.bytes.saturating_add(bytes);
        bounded(self.bytes)?;
        self.items.push(value);
        Ok(())
    }
}

/// Returns the header and the rows as text.
fn rows(
    items: &[Value],
    columns: Option<&[(Template, Template)]>,
    env: &dyn Env,
) -> Result<Vec<Vec<String>>, EvalError> {
    let text = |value: &Value| {
        let mut text = String::new();
        push_text(&mut text, value);
        text
    };
    let mut rows = Vec::with_capacity(items.len() + 1);
    let mut bytes = 0;
    match columns {
        Some(columns) => {
            let mut header = Vec::new();
            for (name, _) in columns {
                header.push(text(&name.eval(env)?));
            }
            rows.push(header);
            for item in items {
                let env = WithItem { env, item };
                let mut row = Vec::new();
                for (_, value) in columns {
                    row.push(text(&value.eval(&env)?));
                }
                let made = row.iter().map(String::len).sum::<usize>();
                env.budget().charge(row.len() + made / 16)?;
                bytes += made;
                bounded(bytes)?;
                rows.push(row);
            }
        }
        None => {
            if let Some(other) = items.iter().find(|item| item.as_object().is_none()) {
                return Err(wrong(format!(
                    "the items of a table without `columns` must be objects, not {}",
                    other.kind()
                )));
            }
            let none = Object::new();
            let first = items.first().and_then(Value::as_object).unwrap_or(&none);
            rows.push(first.keys().map(|key| key.to_string()).collect());
            for item in items {
                let cell = |key: &Arc<str>| item.get(key).map(text).unwrap_or_default();
                let row: Vec<String> = first.keys().map(cell).collect();
                let made = row.iter().map(String::len).sum::<usize>();
                env.budget().charge(row.len() + made / 16)?;
                bytes += made;
                bounded(bytes)?;
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

fn csv(rows: &[Vec<String>]) -> Result<String, EvalError> {
    let mut out = String::new();
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if cell.contains(['"', ',', '\n', '\r']) {
                out.push('"');
                out.push_str(&cell.replace('"', "\"\""));
                out.push('"');
            } else {
                out.push_str(cell);
            }
        }
        out.push_str("\r\n");
        bounded(out.len())?;
    }
    Ok(out)
}

fn html(rows: &[Vec<String>]) -> Result<String, EvalError> {
    let mut out = String::from("<table>");
    for (index, row) in rows.iter().enumerate() {
        let (before, cell, after) = match index {
            0 => ("<thead>", "th", "</thead><tbody>"),
            _ => ("", "td", ""),
        };
        out.push_str(before);
        out.push_str("<tr>");
        for text in row {
            out.push_str(&format!("<{cell}>{}</{cell}>", html_text(text)));
        }
        out.push_str("</tr>");
        out.push_str(after);
        bounded(out.len())?;
    }
    out.push_str("</tbody></table>");
    Ok(out)
}

/// Escapes text like .NET's `HtmlEncode`.
/// It also writes U+00A0 to U+00FF, and characters beyond 16 bits, as numbers.
fn html_text(text: &str) -> String {
    escape_markup(text, |out, letter| match letter {
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        '\u{a0}'..='\u{ff}' | '\u{10000}'.. => {
            out.push_str(&format!("&#{};", u32::from(letter)));
        }
        other => out.push(other),
    })
}

fn parse(content: &Value, schema: Option<&Schema>, budget: &Budget) -> Result<Value, EvalError> {
    budget.charge(content.as_str().map_or(0, str::len) / 4)?;
    let heavy = content
        .as_str()
        .map(str::as_bytes)
        .and_then(over_memory_json);
    if let Some(reason) = heavy {
        return Err(wrong(format!("the values of the content would {reason}")));
    }
    let value = match content {
        Value::String(text) => Value::from_json(text)
            .map_err(|error| wrong(format!("the content is not JSON: {error}")))?,
        Value::Null => return Err(wrong(String::from("no content to parse"))),
        other => other.clone(),
    };
    if let Some(schema) = schema {
        schema.check(&value, budget).map_err(|mistake| {
            wrong(format!("the content is not as its schema says: {mistake}"))
        })?;
    }
    Ok(value)
}

/// An environment in which `item()` returns one element.
struct WithItem<'a> {
    env: &'a dyn Env,
    item: &'a Value,
}

impl Env for WithItem<'_> {
    fn outer(&self) -> Option<&dyn Env> {
        Some(self.env)
    }
    fn item(&self, of: Option<&str>) -> Option<Value> {
        match of {
            None => Some(self.item.clone()),
            Some(_) => self.env.item(of),
        }
    }
    fn root(&self, name: &str) -> Option<Value> {
        match name {
            "item" => Some(self.item.clone()),
            _ => self.env.root(name),
        }
    }
    fn budget(&self) -> &Budget {
        self.env.budget()
    }
    fn now(&self) -> DateTime<Utc> {
        self.env.now()
    }
    fn random(&self) -> u64 {
        self.env.random()
    }
}
