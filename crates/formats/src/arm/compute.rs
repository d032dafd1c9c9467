//! Evaluates the expressions of an ARM template. Nothing is deployed.

use super::expression::{Expr, inside, parse};
use super::functions::{
    Body, Function, function_name, member, resolve_stand_in, suggest_function, wdl,
};
use super::lambda::exactly;
use super::names::{Frame, Slot, ValueOrigins, null};
use super::resources::typed_stand_in;
use super::values::declared;
use crate::missing::MissingInputs;
use crate::reader::Reader;
use std::collections::BTreeMap;
use windlass_expression::{Budget, MAX_WORK, Object, Value};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, MAX_NODES, Node, Span};

/// Maximum depth of references from one template, variable or function to another.
pub(super) const MAX_STEPS: usize = 48;
/// Maximum number of copies of a resource that are read.
const MAX_COPIES: i64 = 800;
/// Maximum size in bytes of the text that all expressions of a template make together.
const MAX_TEXT: usize = 16 << 20;

/// Why an expression has no value.
pub(super) enum NoValue {
    /// A parameter has no value. This is reported separately.
    Parameter,
    /// The text is not a valid expression.
    Text(String),
    Reason(String),
    /// A name is unknown. The second text is the hint about the name that was probably meant.
    Unknown(String, Option<String>),
}

impl From<String> for NoValue {
    fn from(why: String) -> Self {
        Self::Reason(why)
    }
}

pub(super) type Outcome<T> = Result<T, NoValue>;

/// A deployment template whose expressions are being evaluated.
pub(super) struct Deployment<'d, 'a> {
    pub(super) reader: &'d mut Reader<'a>,
    missing: &'d mut MissingInputs,
    /// The names of the templates that are being evaluated, the innermost last.
    pub(super) frames: Vec<Frame>,
    nodes: usize,
    text: usize,
    /// The work that the expressions may still do.
    budget: Budget,
    pub(super) depth: usize,
    /// While this is above zero, an expression without a value is not reported and stays unchanged.
    pub(super) lenient_depth: usize,
    /// Whether the name of a workflow is being evaluated. In a name, a parameter may have a made-up value.
    pub(super) is_naming: bool,
    /// Whether the name that was evaluated last contains a made-up value of a parameter.
    pub(super) has_stand_in_name: bool,
    pub(super) seen: ValueOrigins,
    /// The expressions that were already reported.
    reported: Vec<String>,
    /// The condition of the last workflow that is not deployed, because the condition is false.
    pub(super) undeployed: Option<Span>,
}

impl<'d, 'a> Deployment<'d, 'a> {
    pub(super) fn of(reader: &'d mut Reader<'a>, missing: &'d mut MissingInputs) -> Self {
        Self {
            reader,
            missing,
            frames: Vec::new(),
            nodes: 0,
            text: 0,
            budget: Budget::to_give_up(MAX_WORK),
            depth: 0,
            lenient_depth: 0,
            is_naming: false,
            has_stand_in_name: false,
            seen: ValueOrigins::default(),
            reported: Vec::new(),
            undeployed: None,
        }
    }
}

impl Deployment<'_, '_> {
    /// Counts a node. If the template is larger than its limit, reports this and returns false.
    pub(super) fn is_within(&mut self, span: Span) -> bool {
        self.nodes += 1;
        let fits = self.nodes <= 4 * MAX_NODES;
        if !fits {
            self.seen.misses += 1;
            self.report_once(span, "the template", "it grows too large".into(), None);
        }
        fits
    }

    pub(super) fn begin_copy(&mut self, copy: &Node, index: i64) {
        let name = copy.get_any_case("name").and_then(Node::as_str);
        if let Some(frame) = self.frames.last_mut() {
            let name = name.unwrap_or_default().to_owned();
            frame.copies.push((name, index));
        }
    }

    pub(super) fn end_copy(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.copies.pop();
        }
    }

    /// Returns the number of iterations of a copy loop.
    /// Reports a count that a deployment would refuse.
    pub(super) fn count_of(&mut self, copy: &Node) -> i64 {
        let before = self.seen;
        let count = copy
            .get_any_case("count")
            .map(|count| self.eval_tree(count));
        match count.as_ref().map(|count| &count.kind) {
            Some(Kind::Int(count)) if (0..=MAX_COPIES).contains(count) => *count,
            // The reason why the value is missing was already reported.
            _ if self.seen.since(before).misses > 0 => 0,
            _ => {
                let what = "the `count` of a copy loop must be a whole number from 0 to 800";
                let span = count.map_or(copy.span, |count| count.span);
                let hint = "a deployment would refuse it, too";
                self.reader.error("arm-copy", span, what, hint);
                0
            }
        }
    }

    /// Copies a tree and replaces the deployment's expressions by their values.
    pub(super) fn eval_tree(&mut self, node: &Node) -> Node {
        if !self.is_within(node.span) {
            return null(node.span);
        }
        let kind = match &node.kind {
            Kind::String(text) => match inside(&text.text) {
                Some(expression) => return self.eval_text(node, expression),
                None => match text.text.strip_prefix("[[") {
                    Some(rest) => return Node::made(Value::text(format!("[{rest}")), node.span),
                    None => node.kind.clone(),
                },
            },
            Kind::Array(items) => {
                Kind::Array(items.iter().map(|item| self.eval_tree(item)).collect())
            }
            Kind::Object(entries) => return self.eval_map(node, entries),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => node.kind.clone(),
        };
        Node {
            span: node.span,
            kind,
        }
    }

    fn eval_map(&mut self, node: &Node, entries: &[Entry]) -> Node {
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            let copies = match (&entry.value.kind, entry.key.as_str()) {
                (Kind::Array(copies), "copy") => copies.as_slice(),
                _ => &[],
            };
            if let Some(first) = copies.first()
                && copies.iter().all(is_copy)
            {
                // If the value of a variable is only a copy loop, the value is the loop's list itself.
                if let ([_], [only]) = (entries, copies)
                    && self.depth > 0
                    && only.get_any_case("name").is_some()
                    && self.is_variable(only)
                {
                    return self.eval_copy_loop(first);
                }
                for copy in copies {
                    let name = copy.get_any_case("name").and_then(Node::as_str);
                    made.push(Entry {
                        key: name.unwrap_or_default().to_owned(),
                        key_span: entry.key_span,
                        value: self.eval_copy_loop(copy),
                    });
                }
                continue;
            }
            // The targets of connections have no meaning here, so their expressions may stay without values.
            let aside = entry.key == "$connections" && entry.value.get_any_case("type").is_none();
            self.lenient_depth += usize::from(aside);
            let value = self.eval_tree(&entry.value);
            self.lenient_depth -= usize::from(aside);
            let key = match inside(&entry.key) {
                Some(expression) => match self.value_of(expression, entry.key_span) {
                    Ok(value) => value.to_value().as_str().map(str::to_owned),
                    Err(_) => None,
                },
                None => entry.key.strip_prefix("[[").map(|rest| format!("[{rest}")),
            };
            made.push(Entry {
                key: key.unwrap_or_else(|| entry.key.clone()),
                key_span: entry.key_span,
                value,
            });
        }
        Node {
            span: node.span,
            kind: Kind::Object(made),
        }
    }

    fn is_variable(&self, copy: &Node) -> bool {
        let name = copy.get_any_case("name").and_then(Node::as_str);
        let name = name.unwrap_or_default().to_lowercase();
        let slot = self
            .frames
            .last()
            .and_then(|frame| frame.variables.get(&name));
        matches!(slot, Some(Slot::InProgress))
    }

    /// Evaluates a copy loop to the list of its copies.
    fn eval_copy_loop(&mut self, copy: &Node) -> Node {
        let count = self.count_of(copy);
        let input = copy.get_any_case("input");
        let mut items = Vec::new();
        for index in 0..count {
            self.begin_copy(copy, index);
            items.extend(input.map(|input| self.eval_tree(input)));
            self.end_copy();
        }
        Node {
            span: copy.span,
            kind: Kind::Array(items),
        }
    }

    /// Returns the value of an expression.
    /// If `lenient_depth` is above zero, an expression without a value stays unchanged.
    fn eval_text(&mut self, node: &Node, expression: &str) -> Node {
        match self.value_of(expression, node.span) {
            Ok(value) => value,
            Err(_) if self.lenient_depth > 0 => {
                self.seen.misses += 1;
                node.clone()
            }
            Err(NoValue::Text(why)) => {
                let what = format!("`[{expression}]` is not a valid deployment expression: {why}");
                let hint = "it is taken as text; text in brackets begins with `[[`";
                self.reader.warning("arm-expression", node.span, what, hint);
                node.clone()
            }
            Err(NoValue::Parameter) => {
                self.seen.misses += 1;
                null(node.span)
            }
            Err(NoValue::Reason(why)) => {
                self.seen.misses += 1;
                self.report_once(node.span, &format!("[{expression}]"), why, None);
                null(node.span)
            }
            Err(NoValue::Unknown(why, hint)) => {
                self.seen.misses += 1;
                self.report_once(node.span, &format!("[{expression}]"), why, hint);
                null(node.span)
            }
        }
    }

    fn report_once(&mut self, span: Span, expression: &str, why: String, hint: Option<String>) {
        if self.reported.iter().any(|known| known == expression) {
            return;
        }
        self.reported.push(expression.to_owned());
        let what = format!("the deployment expression `{expression}` has no value here: {why}");
        let hint = hint.unwrap_or_else(|| {
            String::from(
                "deploy the template and export the definition, or write the value instead",
            )
        });
        self.reader.error("arm-expression", span, what, hint);
    }

    fn value_of(&mut self, expression: &str, span: Span) -> Outcome<Node> {
        let parsed = parse(expression).map_err(NoValue::Text)?;
        // The value of a parameter or a variable keeps its positions in the file.
        if let Expr::Call(function, arguments) = &parsed
            && let [Expr::Literal(name)] = arguments.as_slice()
            && let Some(name) = name.as_str()
        {
            match function.to_ascii_lowercase().as_str() {
                "parameters" => return self.parameter(name).map(|found| with_span(found, span)),
                "variables" => return self.variable(name).map(|found| with_span(found, span)),
                _ => {}
            }
        }
        let value = resolve_stand_in(self.eval(&parsed)?);
        self.text += value.as_str().map_or(64, str::len);
        if self.text > MAX_TEXT {
            return Err(NoValue::Reason(String::from(
                "the template makes too much text",
            )));
        }
        Ok(Node::made(value, span))
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Outcome<Value> {
        self.depth += 1;
        let outcome = match self.depth > MAX_STEPS {
            true => Err(NoValue::Reason(format!(
                "it refers to more than {MAX_STEPS} others"
            ))),
            false => self.eval_here(expr),
        };
        self.depth -= 1;
        outcome
    }

    fn eval_here(&mut self, expr: &Expr) -> Outcome<Value> {
        match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Member { base, key, safe } => {
                let base = self.eval(base)?;
                let key = self.eval(key)?;
                Ok(member(&base, &key, *safe)?)
            }
            Expr::Call(name, arguments) => self.call(name, arguments),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Expr]) -> Outcome<Value> {
        let lower = function_name(name);
        let frame = self.frames.last();
        if let Some(declared) = frame.and_then(|frame| frame.functions.get(&lower)).cloned() {
            let values = self.eval_all(arguments)?;
            return self.call_declared_function(name, &declared, values);
        }
        let Some(function) = Function::find(&lower) else {
            let why = format!("unknown deployment function `{name}`");
            return Err(NoValue::Unknown(why, suggest_function(name)));
        };
        self.seen.count(function.stand_in);
        function.check_count(arguments.len())?;
        match function.body {
            Body::Lazy(body) => {
                let value = body(self, name, arguments)?;
                self.count_value(value)
            }
            Body::Eager(body) => Ok(body(&self.eval_arguments(&function, arguments)?)?),
            Body::Wdl => Ok(wdl(
                function.name,
                self.eval_arguments(&function, arguments)?,
            )?),
        }
    }

    fn eval_arguments(&mut self, function: &Function, arguments: &[Expr]) -> Outcome<Vec<Value>> {
        let before = self.seen;
        let values = self.eval_all(arguments)?;
        // A value that only a deployment knows may be valid, and a missing value was already reported. So neither is
        // checked.
        if !self.seen.since(before).is_uncertain() {
            (function.check)(&values)?;
        }
        Ok(values.into_iter().map(resolve_stand_in).collect())
    }

    fn eval_all(&mut self, arguments: &[Expr]) -> Outcome<Vec<Value>> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.eval(argument)?;
            values.push(self.count_value(value)?);
        }
        Ok(values)
    }

    pub(super) fn read_parameter(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let [name] = exactly(arguments)?;
        let name = self.eval(name)?;
        let found = self.parameter(name.as_str().unwrap_or_default())?;
        Ok(found.to_value())
    }

    pub(super) fn read_variable(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let [name] = exactly(arguments)?;
        let name = self.eval(name)?;
        let found = self.variable(name.as_str().unwrap_or_default())?;
        Ok(found.to_value())
    }

    /// Evaluates `if(condition, yes, no)`.
    pub(super) fn choose(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let [condition, yes, no] = exactly(arguments)?;
        let before = self.seen;
        let chosen = match self.eval(condition)? {
            Value::Bool(true) => yes,
            Value::Bool(false) => no,
            // A value that only a deployment knows counts as false here. A missing value was already reported, and
            // also counts as false.
            _ if self.seen.since(before).is_uncertain() => no,
            other => {
                let kind = other.kind();
                let why = format!("`if` needs true or false first, and has {kind}");
                return Err(NoValue::Reason(why));
            }
        };
        self.eval(chosen)
    }

    /// Charges the budget for a value that is read or computed.
    fn count(&self, value: &Value) -> Outcome<()> {
        let text = value.as_str().map_or(0, str::len) / 64;
        let counted = self.budget.charge(value.nodes().saturating_add(text));
        counted.map_err(|exceeded| NoValue::Reason(exceeded.to_string()))
    }

    pub(super) fn count_value(&self, value: Value) -> Outcome<Value> {
        self.count(&value)?;
        Ok(value)
    }

    pub(super) fn copy_index(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let copies = self.frames.last().map(|frame| frame.copies.clone());
        let copies = copies.unwrap_or_default();
        let mut index = copies.last().map(|(_, index)| *index);
        let mut offset = 0;
        for argument in arguments {
            let given = self.eval(argument)?;
            if let Some(name) = given.as_str() {
                let named = copies
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(name));
                index = named.map(|(_, index)| *index);
            }
            offset = given.as_int().unwrap_or(offset);
        }
        let index = index.ok_or_else(|| String::from("no copy loop around it"))?;
        Ok(Value::Int(index.saturating_add(offset)))
    }

    /// Calls a function that the template declares.
    fn call_declared_function(
        &mut self,
        name: &str,
        function: &Node,
        values: Vec<Value>,
    ) -> Outcome<Value> {
        let declared = function.get_any_case("parameters").map(|node| &node.kind);
        let names: Vec<&str> = match declared {
            Some(Kind::Array(items)) => items
                .iter()
                .filter_map(|item| item.get_any_case("name")?.as_str())
                .collect(),
            _ => Vec::new(),
        };
        let (takes, has) = (names.len(), values.len());
        if takes != has {
            let why = format!("`{name}` needs {takes} arguments, and has {has}");
            return Err(NoValue::Reason(why));
        }
        let parameters = names.iter().zip(values).map(|(name, value)| {
            let known = Slot::Known(Node::made(value, function.span), ValueOrigins::default());
            (name.to_lowercase(), known)
        });
        self.frames.push(Frame {
            parameters: parameters.collect(),
            ..Frame::default()
        });
        let output = function.get_any_case("output");
        let output = output.and_then(|output| output.get_any_case("value"));
        let value = output.map(|output| self.eval_tree(output));
        self.frames.pop();
        Ok(value.map_or(Value::Null, |value| value.to_value()))
    }

    pub(super) fn parameter(&mut self, name: &str) -> Outcome<Node> {
        self.slot(name, "parameter", |frame| &mut frame.parameters)
    }

    fn variable(&mut self, name: &str) -> Outcome<Node> {
        self.slot(name, "variable", |frame| &mut frame.variables)
    }

    fn slot(
        &mut self,
        name: &str,
        what: &str,
        of: fn(&mut Frame) -> &mut BTreeMap<String, Slot>,
    ) -> Outcome<Node> {
        let key = name.to_lowercase();
        let slots = self.frames.last_mut().map(of);
        let Some(slot) = slots.and_then(|slots| slots.get_mut(&key)) else {
            let why = format!("unknown {what} `{name}` in the template");
            let slots = self.frames.last_mut().map(of);
            let hint = slots.and_then(|slots| did_you_mean(name, slots.keys()));
            return Err(NoValue::Unknown(why, hint));
        };
        let written = match slot {
            Slot::Known(node, seen) => {
                self.seen.add(*seen);
                return Ok(node.clone());
            }
            Slot::InProgress => {
                return Err(NoValue::Reason(format!(
                    "the {what} `{name}` refers to itself"
                )));
            }
            Slot::Missing(declared, span) => {
                let (declared, span) = (declared.clone(), *span);
                return self.without_value(name, &declared, span);
            }
            Slot::Written(_) | Slot::Outer(_) => std::mem::replace(slot, Slot::InProgress),
        };
        let before = self.seen;
        let found = self.computed(name, &written);
        let seen = self.seen.since(before);
        if let (Ok(node), 0) = (&found, seen.misses)
            && what == "parameter"
        {
            self.check_computed(&key, node, seen);
        }
        let slots = self.frames.last_mut().map(of);
        if let Some(slot) = slots.and_then(|slots| slots.get_mut(&key)) {
            *slot = match (&found, self.lenient_depth, seen.misses) {
                (Ok(node), 0, _) | (Ok(node), _, 0) => Slot::Known(node.clone(), seen),
                // A value that stayed unknown is reported only when a workflow needs it.
                _ => written,
            };
        }
        found
    }

    /// Evaluates a slot (the value of a name) in the template that contains the value.
    fn computed(&mut self, name: &str, written: &Slot) -> Outcome<Node> {
        if self.depth >= MAX_STEPS {
            return Err(NoValue::Reason(format!(
                "it refers to more than {MAX_STEPS} others"
            )));
        }
        self.depth += 1;
        let found = match written {
            Slot::Written(node) => {
                // A variable has the same value in each copy of a resource, so the copy loops are hidden while it is
                // evaluated.
                let frame = self.frames.last_mut();
                let copies = frame.map(|frame| std::mem::take(&mut frame.copies));
                let found = self.eval_tree(node);
                if let (Some(frame), Some(copies)) = (self.frames.last_mut(), copies) {
                    frame.copies = copies;
                }
                Some(found)
            }
            // The parameters of the outermost template are constants.
            Slot::Outer(node) if self.frames.len() < 2 => node.get_any_case("value").cloned(),
            Slot::Outer(node) => {
                let own = self.frames.pop();
                let found = self.eval_tree(node);
                self.frames.extend(own);
                match found.get_any_case("value") {
                    Some(value) => Some(value.clone()),
                    // The reason why the value is missing was reported or will be reported.
                    None if node.as_str().is_some() => Some(found),
                    None => None,
                }
            }
            Slot::InProgress | Slot::Known(..) | Slot::Missing(..) => None,
        };
        self.depth -= 1;
        found.ok_or_else(|| NoValue::Reason(format!("the deployment sets no value for `{name}`")))
    }

    fn without_value(&mut self, name: &str, declared: &Node, span: Span) -> Outcome<Node> {
        let value = parameter_stand_in(name, declared);
        if self.is_naming {
            self.has_stand_in_name = true;
            self.seen.misses += 1;
            return Ok(Node::made(value, span));
        }
        match (self.lenient_depth, self.frames.len()) {
            (0, ..2) => self.missing.parameter(self.reader, name, span, value),
            (0, _) => {
                let why = format!("the deployment sets no value for its parameter `{name}`");
                return Err(NoValue::Reason(why));
            }
            _ => {}
        }
        Err(NoValue::Parameter)
    }

    /// Checks the value or the default of a parameter.
    /// The value of a stand-in is unknown, so only its type is checked.
    fn check_computed(&mut self, key: &str, value: &Node, seen: ValueOrigins) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        let Some(template) = &frame.declarations else {
            return;
        };
        let mut declared = declared(template).iter();
        if let Some(own) = declared.find(|own| own.key.to_lowercase() == key)
            && seen.unknown == 0
        {
            self.reader
                .check_value(template, own, value, seen.stand_ins == 0);
        }
    }
}

/// Returns a value to suggest for a parameter that has no value.
pub(crate) fn parameter_stand_in(name: &str, declared: &Node) -> Value {
    let kind = declared.get_any_case("type").and_then(Node::as_str);
    let constant = declared.to_value();
    let empty = Object::new();
    let members = constant.as_object().unwrap_or(&empty);
    typed_stand_in(name, kind.unwrap_or_default(), members)
}

fn is_copy(node: &Node) -> bool {
    node.get_any_case("count").is_some() && node.get_any_case("input").is_some()
}

/// Sets the span of a node.
/// A text, a list or a map stays unchanged, because it has spans inside.
fn with_span(node: Node, span: Span) -> Node {
    match node.kind {
        Kind::Array(_) | Kind::Object(_) | Kind::String(_) => node,
        kind => Node { span, kind },
    }
}
