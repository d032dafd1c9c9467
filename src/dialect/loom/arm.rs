//! ARM templates around a definition: the workflows among their resources, as the deployment would
//! make them. Its expressions are computed here ([`super::arm_functions`]); nothing is deployed.

use super::Loom;
use super::arm_expression::{Expr, inside, parse};
use super::arm_functions::{call, member, placeholder, settled};
use super::arm_names::{Frame, Slot, null};
use crate::diagnostic::did_you_mean;
use crate::dialect::reader::constant;
use crate::expression::{Object, Value};
use crate::source::{Entry, Kind, MAX_NODES, Node, Span};
use std::collections::BTreeMap;

/// How deep templates, variables and functions may refer to each other.
const MAX_STEPS: usize = 48;
/// How many copies of a resource are looked at.
const MAX_COPIES: i64 = 800;
/// How much text the expressions of a template may make, in bytes.
const MAX_TEXT: usize = 16 << 20;

const WORKFLOW: &str = "Microsoft.Logic/workflows";
const DEPLOYMENT: &str = "Microsoft.Resources/deployments";

/// A workflow of a template: its name, and the resource as it would be deployed.
struct Candidate {
    name: Option<String>,
    resource: Node,
    span: Span,
}

impl Loom<'_> {
    /// The chosen workflow among the resources of a template, as a tree of its own.
    pub(super) fn arm_resource(
        &mut self,
        node: &Node,
        given: &[&Node],
        chosen: Option<&str>,
    ) -> Option<Node> {
        self.check_given(node, given);
        let mut template = Deployment {
            loom: self,
            frames: Vec::new(),
            copies: Vec::new(),
            nodes: 0,
            text: 0,
            depth: 0,
            lenient: 0,
            naming: false,
            guessed: false,
            reported: Vec::new(),
        };
        template.frames.push(Frame::of(node, given));
        let mut found = Vec::new();
        template.collect(node, &mut found);
        let mut names: Vec<String> = Vec::new();
        for name in found.iter().filter_map(|one| one.name.clone()) {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                names.push(name);
            }
        }
        self.wanted.workflows.clone_from(&names);
        if let Some(wanted) = chosen {
            let is = |one: &Candidate| {
                one.name
                    .as_deref()
                    .is_some_and(|name| name.eq_ignore_ascii_case(wanted))
            };
            // A deployment inside of the template may deploy it again, with more in it.
            let at = found.iter().rposition(is);
            if at.is_none() {
                let what = format!("this template has no workflow `{wanted}`");
                let hint = did_you_mean(wanted, &names)
                    .unwrap_or_else(|| format!("its workflows are: {}", names.join(", ")));
                self.error("no-workflow", node.span, what, hint);
            }
            return at.map(|at| found.swap_remove(at).resource);
        }
        match (found.len(), names.len()) {
            (0, _) => {
                let what = "this ARM template holds no workflow";
                let hint = "it must hold a resource of type Microsoft.Logic/workflows";
                self.error("no-workflow", node.span, what, hint);
                None
            }
            (1, _) | (_, 1) => found.pop().map(|only| only.resource),
            _ => {
                let span = found.get(1).map_or(node.span, |second| second.span);
                let what = "this ARM template holds several workflows";
                let hint = format!("choose one with --workflow NAME: {}", names.join(", "));
                self.error("several-workflows", span, what, hint);
                None
            }
        }
    }
}

fn is_type(resource: &Node, wanted: &str) -> bool {
    let kind = resource.get_any_case("type").and_then(Node::as_str);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(wanted))
}

/// What a template's `resources` hold: a list, or a map by symbolic names.
fn resources(template: &Node) -> Vec<&Node> {
    match template.get_any_case("resources").map(|node| &node.kind) {
        Some(Kind::Array(items)) => items.iter().collect(),
        Some(Kind::Object(entries)) => entries.iter().map(|entry| &entry.value).collect(),
        _ => Vec::new(),
    }
}

/// Why an expression has no value.
enum Miss {
    /// A parameter that is reported by itself.
    Parameter,
    /// It cannot be read as one.
    Text(String),
    Because(String),
}

impl From<String> for Miss {
    fn from(why: String) -> Self {
        Self::Because(why)
    }
}

type Outcome<T> = Result<T, Miss>;

/// A template being computed.
struct Deployment<'d, 'a> {
    loom: &'d mut Loom<'a>,
    /// The innermost template last.
    frames: Vec<Frame>,
    /// The copy loops around: name and index.
    copies: Vec<(String, i64)>,
    nodes: usize,
    text: usize,
    depth: usize,
    /// Within what may stay unknown, if above zero.
    lenient: usize,
    /// Within the name of a workflow, which needs no value to be known by.
    naming: bool,
    /// The last name was made up of a parameter without a value.
    guessed: bool,
    /// What is reported already.
    reported: Vec<String>,
}

impl Deployment<'_, '_> {
    fn collect(&mut self, template: &Node, found: &mut Vec<Candidate>) {
        self.depth += 1;
        if self.depth <= MAX_STEPS {
            for resource in resources(template) {
                self.collect_resource(resource, found);
            }
        }
        self.depth -= 1;
    }

    fn collect_resource(&mut self, resource: &Node, found: &mut Vec<Candidate>) {
        if self.is_left_out(resource) {
            return;
        }
        if is_type(resource, WORKFLOW) {
            match resource.get_any_case("copy") {
                Some(copy) => self.copies_of(resource, copy, found),
                None => {
                    let candidate = self.candidate(resource);
                    found.push(candidate);
                }
            }
        }
        self.collect(resource, found);
        let Some(properties) = resource.get_any_case("properties") else {
            return;
        };
        if let Some(template) = properties.get_any_case("mainTemplate") {
            // Its own expressions are escaped: this template only carries it.
            let template = self.deployed(template);
            self.nested(&template, &[], found);
        }
        let Some(template) = properties.get_any_case("template") else {
            return;
        };
        let scope = properties.get_any_case("expressionEvaluationOptions");
        let scope = scope.and_then(|options| options.get_any_case("scope")?.as_str());
        let inner = scope.is_some_and(|scope| scope.eq_ignore_ascii_case("inner"));
        match is_type(resource, DEPLOYMENT) && !inner && !has_parameters(template) {
            true => self.collect(template, found),
            false => {
                self.lenient += 1;
                let given = properties.get_any_case("parameters");
                let given = given.map(|given| self.deployed(given));
                self.lenient -= 1;
                self.nested(template, given.as_slice(), found);
            }
        }
    }

    fn nested(&mut self, template: &Node, given: &[Node], found: &mut Vec<Candidate>) {
        let given: Vec<&Node> = given.iter().collect();
        self.frames.push(Frame::of(template, &given));
        self.collect(template, found);
        self.frames.pop();
    }

    fn copies_of(&mut self, resource: &Node, copy: &Node, found: &mut Vec<Candidate>) {
        let count = self.count_of(copy);
        let name = copy.get_any_case("name").and_then(Node::as_str);
        for index in 0..count {
            self.copies
                .push((name.unwrap_or_default().to_owned(), index));
            let candidate = self.candidate(resource);
            found.push(candidate);
            self.copies.pop();
        }
    }

    /// How often a copy loop is done. A deployment takes no other count either.
    fn count_of(&mut self, copy: &Node) -> i64 {
        let count = copy.get_any_case("count").map(|count| self.deployed(count));
        match count.as_ref().map(|count| &count.kind) {
            Some(Kind::Int(count)) if (0..=MAX_COPIES).contains(count) => *count,
            // Why a parameter has no value is reported.
            Some(Kind::Null) => 0,
            _ => {
                let what = "the `count` of a copy loop is no whole number from 0 to 800";
                let span = count.map_or(copy.span, |count| count.span);
                let hint = "a deployment would refuse it, too";
                self.loom.error("arm-copy", span, what, hint);
                0
            }
        }
    }

    /// Whether the condition of a resource says that it is not deployed.
    fn is_left_out(&mut self, resource: &Node) -> bool {
        let Some(condition) = resource.get_any_case("condition") else {
            return false;
        };
        self.lenient += 1;
        let condition = self.deployed(condition);
        self.lenient -= 1;
        match &condition.kind {
            Kind::Bool(deployed) => !deployed,
            // What only a deployment knows may be true.
            Kind::String(text) if inside(&text.text).is_some() => false,
            Kind::Null => false,
            _ => {
                let what = "the `condition` of a resource is neither true nor false";
                let hint = "a deployment would refuse it, too";
                self.loom.error("arm-condition", condition.span, what, hint);
                false
            }
        }
    }

    /// The resource with its expressions replaced. Its name may stay unknown.
    fn candidate(&mut self, resource: &Node) -> Candidate {
        self.lenient += 1;
        self.naming = true;
        self.guessed = false;
        let name = resource
            .get_any_case("name")
            .map(|name| self.deployed(name));
        self.naming = false;
        self.lenient -= 1;
        let known = name.as_ref().and_then(Node::as_str);
        let known = known
            .filter(|name| inside(name).is_none())
            .map(str::to_owned);
        let entries = resource.entries().unwrap_or_default().iter();
        let entries = entries.filter_map(|entry| {
            let value = match entry.key.to_ascii_lowercase().as_str() {
                "properties" => self.deployed(&entry.value),
                "name" => name.clone().filter(|_| known.is_some() && !self.guessed)?,
                "kind" => entry.value.clone(),
                _ => return None,
            };
            Some(Entry {
                value,
                key: entry.key.to_ascii_lowercase(),
                key_span: entry.key_span,
            })
        });
        Candidate {
            resource: Node {
                span: resource.span,
                kind: Kind::Object(entries.collect()),
            },
            name: known,
            span: resource.span,
        }
    }

    /// A copy in which the deployment's expressions are replaced by what they stand for.
    fn deployed(&mut self, node: &Node) -> Node {
        self.nodes += 1;
        if self.nodes > 4 * MAX_NODES {
            self.report_once(node.span, "the template", "it grows too large".into());
            return null(node.span);
        }
        let kind = match &node.kind {
            Kind::String(text) => match inside(&text.text) {
                Some(expression) => return self.replaced(node, expression),
                None => match text.text.strip_prefix("[[") {
                    Some(rest) => return Node::made(Value::text(format!("[{rest}")), node.span),
                    None => node.kind.clone(),
                },
            },
            Kind::Array(items) => {
                Kind::Array(items.iter().map(|item| self.deployed(item)).collect())
            }
            Kind::Object(entries) => return self.deployed_map(node, entries),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => node.kind.clone(),
        };
        Node {
            span: node.span,
            kind,
        }
    }

    fn deployed_map(&mut self, node: &Node, entries: &[Entry]) -> Node {
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            let copies = match (&entry.value.kind, entry.key.as_str()) {
                (Kind::Array(copies), "copy") => copies.as_slice(),
                _ => &[],
            };
            if let Some(first) = copies.first()
                && copies.iter().all(is_copy)
            {
                // A variable that is a copy loop is the list itself.
                if let ([_], [only]) = (entries, copies)
                    && self.depth > 0
                    && only.get_any_case("name").is_some()
                    && self.is_variable(only)
                {
                    return self.looped(first);
                }
                for copy in copies {
                    let name = copy.get_any_case("name").and_then(Node::as_str);
                    made.push(Entry {
                        key: name.unwrap_or_default().to_owned(),
                        key_span: entry.key_span,
                        value: self.looped(copy),
                    });
                }
                continue;
            }
            // Where connections are deployed to means nothing here.
            let aside = entry.key == "$connections" && entry.value.get_any_case("type").is_none();
            self.lenient += usize::from(aside);
            let value = self.deployed(&entry.value);
            self.lenient -= usize::from(aside);
            let key = match inside(&entry.key) {
                Some(expression) => match self.value_of(expression, entry.key_span) {
                    Ok(value) => constant(&value).as_str().map(str::to_owned),
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
        matches!(slot, Some(Slot::Open))
    }

    /// What a copy loop makes.
    fn looped(&mut self, copy: &Node) -> Node {
        let count = self.count_of(copy);
        let name = copy.get_any_case("name").and_then(Node::as_str);
        let input = copy.get_any_case("input");
        let mut items = Vec::new();
        for index in 0..count {
            self.copies
                .push((name.unwrap_or_default().to_owned(), index));
            items.extend(input.map(|input| self.deployed(input)));
            self.copies.pop();
        }
        Node {
            span: copy.span,
            kind: Kind::Array(items),
        }
    }

    /// What stands for an expression; what has no value stays as it is where that may be.
    fn replaced(&mut self, node: &Node, expression: &str) -> Node {
        match self.value_of(expression, node.span) {
            Ok(value) => value,
            Err(_) if self.lenient > 0 => node.clone(),
            Err(Miss::Text(why)) => {
                let what = format!("`[{expression}]` is no deployment expression: {why}");
                let hint = "it is taken as text; text in brackets begins with `[[`";
                self.loom.warning("arm-expression", node.span, what, hint);
                node.clone()
            }
            Err(Miss::Parameter) => null(node.span),
            Err(Miss::Because(why)) => {
                self.report_once(node.span, &format!("[{expression}]"), why);
                null(node.span)
            }
        }
    }

    fn report_once(&mut self, span: Span, expression: &str, why: String) {
        if self.reported.iter().any(|known| known == expression) {
            return;
        }
        self.reported.push(expression.to_owned());
        let what = format!("the deployment expression `{expression}` has no value here: {why}");
        let hint = "deploy the template and export the definition, or write the value instead";
        self.loom.error("arm-expression", span, what, hint);
    }

    fn value_of(&mut self, expression: &str, span: Span) -> Outcome<Node> {
        let parsed = parse(expression).map_err(Miss::Text)?;
        // What a name stands for keeps its places in the file.
        if let Expr::Call(function, arguments) = &parsed
            && let [Expr::Literal(name)] = arguments.as_slice()
            && let Some(name) = name.as_str()
        {
            match function.to_ascii_lowercase().as_str() {
                "parameters" => return self.parameter(name).map(|found| at(found, span)),
                "variables" => return self.variable(name).map(|found| at(found, span)),
                _ => {}
            }
        }
        let value = settled(self.eval(&parsed)?);
        self.text += value.as_str().map_or(64, str::len);
        if self.text > MAX_TEXT {
            return Err(Miss::Because(String::from(
                "the template makes too much text",
            )));
        }
        Ok(Node::made(value, span))
    }

    fn eval(&mut self, expr: &Expr) -> Outcome<Value> {
        self.depth += 1;
        let outcome = match self.depth > MAX_STEPS {
            true => Err(Miss::Because(format!(
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
        let lower = name.to_ascii_lowercase();
        match (lower.as_str(), arguments) {
            ("parameters", [name]) => {
                let name = self.eval(name)?;
                let found = self.parameter(name.as_str().unwrap_or_default())?;
                return Ok(constant(&found));
            }
            ("variables", [name]) => {
                let name = self.eval(name)?;
                let found = self.variable(name.as_str().unwrap_or_default())?;
                return Ok(constant(&found));
            }
            ("if", [condition, yes, no]) => {
                let holds = self.eval(condition)?;
                return self.eval(if holds == Value::Bool(true) { yes } else { no });
            }
            ("copyindex", given) => return self.copy_index(given),
            ("reference" | "listcallbackurl", _) => return Ok(call(name, Vec::new())?),
            (list, _) if list.starts_with("list") => return Ok(call(name, Vec::new())?),
            _ => {}
        }
        let values: Outcome<Vec<Value>> = arguments.iter().map(|one| self.eval(one)).collect();
        let values = values?;
        let own = self
            .frames
            .last()
            .and_then(|frame| frame.functions.get(&lower));
        if let Some(function) = own.cloned() {
            return self.own_function(&function, values);
        }
        Ok(call(name, values)?)
    }

    fn copy_index(&mut self, arguments: &[Expr]) -> Outcome<Value> {
        let mut index = self.copies.last().map(|(_, index)| *index);
        let mut offset = 0;
        for argument in arguments {
            let given = self.eval(argument)?;
            if let Some(name) = given.as_str() {
                let named = self
                    .copies
                    .iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(name));
                index = named.map(|(_, index)| *index);
            }
            offset = given.as_int().unwrap_or(offset);
        }
        let index = index.ok_or_else(|| String::from("there is no copy loop around it"))?;
        Ok(Value::Int(index.saturating_add(offset)))
    }

    /// A function that the template declares, with these arguments.
    fn own_function(&mut self, function: &Node, values: Vec<Value>) -> Outcome<Value> {
        let declared = function.get_any_case("parameters").map(|node| &node.kind);
        let names: Vec<&str> = match declared {
            Some(Kind::Array(items)) => items
                .iter()
                .filter_map(|item| item.get_any_case("name")?.as_str())
                .collect(),
            _ => Vec::new(),
        };
        let parameters = names.iter().zip(values).map(|(name, value)| {
            let known = Slot::Known(Node::made(value, function.span));
            (name.to_lowercase(), known)
        });
        self.frames.push(Frame {
            parameters: parameters.collect(),
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
        });
        let output = function.get_any_case("output");
        let output = output.and_then(|output| output.get_any_case("value"));
        let value = output.map(|output| self.deployed(output));
        self.frames.pop();
        Ok(value.map_or(Value::Null, |value| constant(&value)))
    }

    fn parameter(&mut self, name: &str) -> Outcome<Node> {
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
            let why = format!("the template has no {what} `{name}`");
            return Err(Miss::Because(why));
        };
        let written = match slot {
            Slot::Known(node) => return Ok(node.clone()),
            Slot::Open => {
                return Err(Miss::Because(format!(
                    "the {what} `{name}` refers to itself"
                )));
            }
            Slot::Missing(declared, span) => {
                let (declared, span) = (declared.clone(), *span);
                let value = first_value(name, &declared);
                if self.naming {
                    self.guessed = true;
                    return Ok(Node::made(value, span));
                }
                if self.lenient == 0 {
                    self.loom.missing_parameter(name, span, value);
                }
                return Err(Miss::Parameter);
            }
            Slot::Written(_) => std::mem::replace(slot, Slot::Open),
        };
        let Slot::Written(node) = written else {
            return Err(Miss::Parameter);
        };
        self.depth += 1;
        let found = match self.depth > MAX_STEPS {
            true => Err(Miss::Because(format!(
                "it refers to more than {MAX_STEPS} others"
            ))),
            false => Ok(self.deployed(&node)),
        };
        self.depth -= 1;
        let slots = self.frames.last_mut().map(of);
        if let Some(slot) = slots.and_then(|slots| slots.get_mut(&key)) {
            *slot = match (&found, self.lenient) {
                (Ok(node), 0) => Slot::Known(node.clone()),
                // What stayed unknown is reported where it matters.
                _ => Slot::Written(node),
            };
        }
        found
    }
}

/// A value to begin with for a parameter that has none.
pub(super) fn first_value(name: &str, declared: &Node) -> Value {
    let kind = declared.get_any_case("type").and_then(Node::as_str);
    let constant = constant(declared);
    let empty = Object::new();
    let members = constant.as_object().unwrap_or(&empty);
    placeholder(name, kind.unwrap_or_default(), members)
}

fn is_copy(node: &Node) -> bool {
    node.get_any_case("count").is_some() && node.get_any_case("input").is_some()
}

fn has_parameters(template: &Node) -> bool {
    let parameters = template.get_any_case("parameters").and_then(Node::entries);
    parameters.is_some_and(|entries| !entries.is_empty())
}

/// The same with another place, unless it has places of its own inside.
fn at(node: Node, span: Span) -> Node {
    match node.kind {
        Kind::Array(_) | Kind::Object(_) | Kind::String(_) => node,
        kind => Node { span, kind },
    }
}
