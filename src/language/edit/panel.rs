//! The panel of a node: its fields, made of its format, for a form that knows none.

use super::fields::{Choice, Column, Field, FieldKind, Parts};
use super::nodes::{Found, escaped, word};
use super::ports::{Port, PortOf, beside, inputs, nodes_of, outputs, table_of, wired};
use super::{Document, remove, set, value_of};
use crate::engine::{Bundle, Dialect, json_schema};
use crate::source;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The panel of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Panel {
    /// The node's path.
    pub node: String,
    /// Its type, as it is written.
    pub kind: String,
    /// What people call it.
    pub title: String,
    /// The format.
    pub format: String,
    /// Where it is in the text: a JSON pointer.
    pub pointer: String,
    /// Its fields.
    pub sections: Vec<Section>,
    /// What can be done with it: `rename`, `delete`, `add_before`, `add_after`, `add_inside`, `connect`,
    /// `move`, `drill`.
    pub actions: Vec<String>,
    /// Of a canvas: the ports of all nodes of the graph that it stands in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortOf>,
}

/// Fields that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Section {
    /// What they are called.
    pub title: String,
    /// The fields.
    pub fields: Vec<Field>,
}

/// Keys of a node's `data` that have no meaning for a run.
const DRAWN: [&str; 9] = [
    "nodeType",
    "description",
    "icon",
    "color",
    "notes",
    "collapsed",
    "expanded",
    "metadata",
    "status",
];

const OPERATORS: [&str; 6] = ["==", "!=", "<", ">", "<=", ">="];

/// The panel of a node; `cap` is the most iterations that the operator allows.
///
/// # Errors
/// There is no such node, in words.
pub fn panel(
    bundle: &Bundle,
    said: Option<Dialect>,
    node: &str,
    cap: Option<u64>,
) -> Result<Panel, String> {
    let document = Document::read(bundle.clone(), said)?;
    of(&document, node, cap)
}

fn of(document: &Document, node: &str, cap: Option<u64>) -> Result<Panel, String> {
    let found = document.find(node)?;
    let view = View {
        document,
        found: &found,
        own: document.at(&found.pointer).unwrap_or(&Value::Null),
        cap,
    };
    let kind = found.kind.to_lowercase();
    let (sections, inside) = match (document.dialect, kind.as_str()) {
        (Dialect::Canvas, "loop" | "map") => (view.canvas_loop(&kind), true),
        (Dialect::Canvas, kind) => (view.canvas_node(), kind == "component"),
        (Dialect::Tea, "while_loop") => (view.while_loop(), true),
        (Dialect::Tea, "retry.loop") => (view.retry_loop(), false),
        (Dialect::Tea, "reflection.loop") => (view.reflection_loop(), false),
        (Dialect::Tea, kind) => (view.tea_node(), kind == "dynamic_parallel"),
        (_, "until" | "while" | "dountil") => (view.loom_loop(&kind), true),
        (_, kind) => {
            let blocks = ["scope", "if", "switch", "parallel", "foreach"];
            (view.loom_action(), blocks.contains(&kind))
        }
    };
    let own = view.own;
    let title = [
        own.pointer("/data/label"),
        own.get("title"),
        own.get("description"),
    ];
    let title = title.into_iter().flatten().find_map(Value::as_str);
    let mut actions = vec!["rename", "delete", "add_before", "add_after"];
    if inside {
        actions.extend(["add_inside", "drill"]);
    }
    if document.dialect == Dialect::Canvas {
        actions.extend(["connect", "move"]);
    }
    Ok(Panel {
        node: found.path.clone(),
        title: title.unwrap_or(&found.name).to_owned(),
        format: document.dialect.as_str().to_owned(),
        pointer: found.pointer.clone(),
        sections: sections
            .into_iter()
            .filter(|section| !section.fields.is_empty())
            .collect(),
        actions: actions.into_iter().map(str::to_owned).collect(),
        ports: match document.dialect {
            Dialect::Canvas => beside(view.around(), &found.path),
            _ => Vec::new(),
        },
        kind: found.kind.clone(),
    })
}

/// The document with a field of a node's panel set.
pub(super) fn with_field(
    document: &Document,
    node: &str,
    field: &str,
    value: &Value,
) -> Result<Value, String> {
    let panel = of(document, node, None)?;
    let fields = panel.sections.iter().flat_map(|section| &section.fields);
    let mut fields = fields.filter(|one| one.id == field);
    let Some(found) = fields.next() else {
        return Err(format!("the panel of `{node}` has no field `{field}`"));
    };
    let mut new = document.value.clone();
    if value.is_null() {
        remove(&mut new, &found.pointer);
        return Ok(new);
    }
    let old = document.at(&found.pointer);
    let value = match found.id.as_str() {
        "input_mappings" => mappings(old, value, input_row, input_mapping)?,
        "output_mappings" => mappings(old, value, output_row, output_mapping)?,
        _ => value.clone(),
    };
    set(&mut new, &found.pointer, value)?;
    Ok(new)
}

fn section(title: &str, fields: Vec<Field>) -> Section {
    Section {
        title: title.to_owned(),
        fields,
    }
}

struct View<'d> {
    document: &'d Document,
    found: &'d Found,
    own: &'d Value,
    cap: Option<u64>,
}

impl View<'_> {
    /// A field below the node.
    fn at(&self, field: Field, below: &str) -> Field {
        let pointer = format!("{}{below}", self.found.pointer);
        field.at(&self.document.value, pointer)
    }

    fn field(&self, id: &str, label: &str, kind: FieldKind, below: &str) -> Field {
        self.at(Field::new(id, label, kind), below)
    }

    fn count(&self, field: Field) -> Field {
        let over = field
            .value
            .as_u64()
            .zip(self.cap)
            .filter(|(value, cap)| value > cap);
        Field {
            cap: self.cap,
            error: over.map(|(_, cap)| format!("the operator allows {cap}")),
            ..field
        }
    }

    // ── canvas ──────────────────────────────────────────────────────────────────────────────────

    /// The graph that the node stands in.
    fn around(&self) -> &Value {
        let graph = self.found.among.trim_end_matches("/nodes");
        self.document.at(graph).unwrap_or(&Value::Null)
    }

    /// The graph inside: in the text, or in a file that it names.
    fn inner(&self) -> Value {
        if let Some(inner) = self.own.pointer("/data/inlineWorkflow") {
            return inner.clone();
        }
        let data = self.own.get("data").unwrap_or(&Value::Null);
        let named = ["workflowRef", "workflowPath"].map(|key| word(data, key));
        let named = named.into_iter().find(|path| !path.is_empty());
        let bundle = &self.document.bundle;
        let file = named.and_then(|path| bundle.named_by(0, path));
        if let Some(node) = file.and_then(|file| source::parse(bundle, file).0) {
            return value_of(&node);
        }
        // A drawn loop has its inside beside it.
        let nodes =
            nodes_of(self.around()).filter(|node| word(node, "parentId") == self.found.name);
        json!({ "nodes": nodes.cloned().collect::<Vec<_>>() })
    }

    fn canvas_loop(&self, kind: &str) -> Vec<Section> {
        let inner = self.inner();
        let given: Vec<Port> = nodes_of(&inner).flat_map(outputs).collect();
        let taken: Vec<Port> = nodes_of(&inner).flat_map(inputs).collect();
        let mut outer = inputs(self.own);
        for port in wired(self.around(), &self.found.name) {
            if !outer.iter().any(|known| known.name == port.name) {
                outer.push(port);
            }
        }
        let label = self.field("label", "Title", FieldKind::Text, "/data/label");
        let mut inside = vec![label];
        inside.push(
            self.field("workflow_ref", "File", FieldKind::File, "/data/workflowRef")
                .help("A file beside this one, instead of the graph that is drawn here"),
        );
        if kind == "map" {
            let over = self.field("over", "Over", FieldKind::Choice, "/data/over");
            let choices = outer
                .iter()
                .map(|port| Choice::of(port.name.clone()))
                .collect();
            inside.push(Field { choices, ..over });
        }
        let condition = |id: &str, label: &str, below: &str| {
            let field = self.field(id, label, FieldKind::Condition, below);
            let asked = word(&field.value, "output").to_owned();
            let known = given
                .iter()
                .any(|port| format!("{}.{}", port.node, port.name) == asked);
            let error = format!("the inner workflow has no output `{asked}`");
            Field {
                error: (!asked.is_empty() && !known && !given.is_empty()).then_some(error),
                parts: Some(Parts {
                    output: given.iter().map(Port::choice).collect(),
                    operator: OPERATORS.map(Choice::of).into(),
                    value: ["true", "false"]
                        .map(|word| Choice {
                            kind: Some(String::from("boolean")),
                            ..Choice::of(word)
                        })
                        .into(),
                }),
                ..field
            }
        };
        let mut ends = Vec::new();
        if kind == "loop" {
            ends.push(condition(
                "continue_while",
                "Continue while",
                "/data/continueWhile",
            ));
            ends.push(
                condition("break_when", "Break when", "/data/breakWhen")
                    .help("Ends the loop right after that node"),
            );
        }
        let most = Field::new("max_iterations", "Max iterations", FieldKind::Number);
        ends.push(self.count(self.at(most.usual(10), "/data/maxIterations")));
        match kind {
            "map" => ends.push(self.at(
                Field::new("concurrency", "At a time", FieldKind::Number).usual(10),
                "/data/concurrency",
            )),
            _ => ends.push(
                self.field("delay", "Delay", FieldKind::Duration, "/data/delay")
                    .help("Between two iterations"),
            ),
        }
        ends.push(
            self.field("timeout", "Timeout", FieldKind::Duration, "/data/timeout")
                .help("Of the complete loop"),
        );
        let mappings = vec![
            self.table(
                "input_mappings",
                "Input mappings",
                "/data/inputMappings",
                input_row,
            )
            .columns([
                ("source", "From", sources(&outer, &given, kind == "loop")),
                ("target", "To", taken.iter().map(Port::choice).collect()),
                (
                    "iterations",
                    "When",
                    ["all", "first", "subsequent"].map(Choice::of).into(),
                ),
            ]),
            self.table(
                "output_mappings",
                "Output mappings",
                "/data/outputMappings",
                output_row,
            )
            .columns([
                ("source", "From", {
                    let ports = given.iter().map(Port::choice);
                    ports
                        .chain(builtins(&["iteration_count", "status"]))
                        .collect()
                }),
                ("target", "To", Vec::new()),
                (
                    "take",
                    "Which",
                    ["last", "first", "all"].map(Choice::of).into(),
                ),
            ]),
        ];
        vec![
            section("Inner workflow", inside),
            section("When it ends", ends),
            self.ports(),
            section("Mappings", mappings),
        ]
    }

    fn table(&self, id: &str, label: &str, below: &str, row: fn(&Value) -> Value) -> Field {
        let field = self.field(id, label, FieldKind::Table, below);
        let rows = field.value.as_array();
        let rows: Vec<Value> = rows.into_iter().flatten().map(row).collect();
        Field {
            value: Value::Array(rows),
            ..field
        }
    }

    fn canvas_node(&self) -> Vec<Section> {
        let schema = schema(Dialect::Canvas);
        let rule = schema.pointer(&format!("/$defs/{}/properties", escaped(&self.found.kind)));
        let data = self.own.get("data").and_then(Value::as_object);
        let skipped = ["inlineWorkflow", "inputMappings", "inputs", "outputs"];
        let fields = self.by_schema(&schema, rule, data, "/data", &skipped);
        // What only drawing tools know is shown where it is written.
        let drawn = |field: &Field| DRAWN.contains(&field.label.as_str()) && field.value.is_null();
        let fields = fields.into_iter().filter(|field| !drawn(field)).collect();
        vec![section("Settings", fields), self.ports()]
    }

    /// The ports that a node declares.
    fn ports(&self) -> Section {
        let tables = [("inputs", "Inputs"), ("outputs", "Outputs")];
        let tables = tables.map(|(id, label)| self.at(table_of(id, label), &format!("/data/{id}")));
        section("Ports", tables.into())
    }

    // ── TEA ─────────────────────────────────────────────────────────────────────────────────────

    fn while_loop(&self) -> Vec<Section> {
        let most = self.field(
            "max_iterations",
            "Max iterations",
            FieldKind::Number,
            "/max_iterations",
        );
        vec![section(
            "Loop",
            vec![
                self.field(
                    "condition",
                    "Continue while",
                    FieldKind::Expression,
                    "/condition",
                ),
                self.count(most),
            ],
        )]
    }

    fn retry_loop(&self) -> Vec<Section> {
        let correct = self.field(
            "correct",
            "Correct with",
            FieldKind::Choice,
            "/with/correct",
        );
        let nodes = self.document.nodes();
        let others = nodes.iter().filter(|node| node.name != self.found.name);
        let choices = others.map(|node| Choice::of(node.name.clone())).collect();
        let retries = Field::new("max_retries", "Max corrections", FieldKind::Number).usual(1);
        vec![section(
            "Retry loop",
            vec![
                self.field(
                    "validate",
                    "Validate with",
                    FieldKind::Text,
                    "/with/validate",
                ),
                self.field(
                    "validate_args",
                    "Arguments",
                    FieldKind::Code,
                    "/with/validate_args",
                ),
                Field { choices, ..correct },
                self.count(self.at(retries, "/with/max_retries")),
                self.field(
                    "retry_delay",
                    "Delay in seconds",
                    FieldKind::Number,
                    "/with/retry_delay",
                ),
                self.field("output", "Output key", FieldKind::Text, "/output"),
            ],
        )]
    }

    fn reflection_loop(&self) -> Vec<Section> {
        let rounds = Field::new("max_iterations", "Max rounds", FieldKind::Number).usual(3);
        let failed = Field::new("on_failure", "When none is valid", FieldKind::Choice)
            .choices(["return_best", "return_last", "raise"])
            .usual("return_best");
        let judge = Field::new("evaluator_type", "Evaluator", FieldKind::Choice)
            .choices(["schema", "llm", "custom"]);
        vec![
            section(
                "Reflection loop",
                vec![
                    self.count(self.at(rounds, "/with/max_iterations")),
                    self.at(failed, "/with/on_failure"),
                ],
            ),
            section(
                "Parts",
                vec![
                    self.field("generator", "Generator", FieldKind::Code, "/with/generator"),
                    self.at(judge, "/with/evaluator/type"),
                    self.field(
                        "evaluator",
                        "Evaluator's settings",
                        FieldKind::Code,
                        "/with/evaluator",
                    ),
                    self.field("corrector", "Corrector", FieldKind::Code, "/with/corrector"),
                ],
            ),
        ]
    }

    fn tea_node(&self) -> Vec<Section> {
        let schema = schema(Dialect::Tea);
        let rule = schema.pointer("/$defs/node/properties");
        let own = self.own.as_object();
        let own_fields = self.by_schema(&schema, rule, own, "", &["name", "with", "body", "steps"]);
        let with = self.own.get("with").and_then(Value::as_object);
        let with = self.by_schema(&schema, None, with, "/with", &[]);
        vec![section("Node", own_fields), section("With", with)]
    }

    // ── Loom and Logic Apps ─────────────────────────────────────────────────────────────────────

    /// Where the keys of a type are: beside it, or under `inputs`.
    fn under(&self) -> &'static str {
        let inputs = self.own.get("inputs").and_then(Value::as_object);
        let known = ["condition", "limit", "actions", "expression"];
        match inputs.is_some_and(|inputs| known.iter().any(|key| inputs.contains_key(*key))) {
            true => "/inputs",
            false => "",
        }
    }

    fn loom_loop(&self, kind: &str) -> Vec<Section> {
        let under = self.under();
        let loom = self.document.dialect == Dialect::Loom;
        let own = self.own.pointer(under).unwrap_or(self.own);
        let test = if own.get("expression").is_some() || !loom {
            "expression"
        } else {
            "condition"
        };
        let label = match kind {
            "while" => "Continue while",
            _ => "Until",
        };
        let condition = self.field(
            "condition",
            label,
            FieldKind::Condition,
            &format!("{under}/{test}"),
        );
        let mut first = vec![condition];
        if loom {
            let kind = Field::new("type", "Type", FieldKind::Choice)
                .choices(["until", "while", "doUntil"]);
            first.insert(0, self.at(kind, "/type"));
        }
        let count = Field::new("count", "Max iterations", FieldKind::Number).usual(60);
        let timeout = Field::new("timeout", "Timeout", FieldKind::Duration).usual("PT1H");
        let mut limits = vec![
            self.count(self.at(count, &format!("{under}/limit/count"))),
            self.at(timeout, &format!("{under}/limit/timeout")),
        ];
        let mut further = Vec::new();
        if loom {
            let limit = Field::new("on_limit", "When a limit is reached", FieldKind::Choice)
                .choices(["fail", "continue", "pause"])
                .usual("fail");
            limits.push(self.at(limit, &format!("{under}/on_limit")));
            let delay = format!("{under}/delay");
            let is_map = self.own.pointer(&delay).is_some_and(Value::is_object);
            match is_map {
                false => limits.push(
                    self.field("delay", "Delay", FieldKind::Duration, &delay)
                        .help("Between two iterations"),
                ),
                true => {
                    let kind = Field::new("delay_type", "Delay", FieldKind::Choice)
                        .choices(["fixed", "exponential"]);
                    limits.push(self.at(kind, &format!("{delay}/type")));
                    for (id, label, key) in [
                        ("delay_interval", "First delay", "interval"),
                        ("delay_max", "Longest delay", "maxInterval"),
                    ] {
                        limits.push(self.field(
                            id,
                            label,
                            FieldKind::Duration,
                            &format!("{delay}/{key}"),
                        ));
                    }
                }
            }
            further.push(
                self.field(
                    "page",
                    "Page",
                    FieldKind::Expression,
                    &format!("{under}/page"),
                )
                .help("The next page: the loop reads none twice"),
            );
            let repeat = Field::new("on_repeat", "When a page comes again", FieldKind::Choice)
                .choices(["fail", "stop"])
                .usual("fail");
            further.push(self.at(repeat, &format!("{under}/on_repeat")));
        }
        vec![
            section("Loop", first),
            section("Limits", limits),
            section("Pages", further),
            section("Retry", self.retry()),
        ]
    }

    fn retry(&self) -> Vec<Field> {
        let under = match self.document.dialect {
            Dialect::Loom => "/retry",
            _ => return Vec::new(),
        };
        let kind = Field::new("retry_type", "Retry", FieldKind::Choice)
            .choices(["none", "fixed", "exponential"])
            .usual("none");
        let count = Field::new("retry_count", "Retries", FieldKind::Number).usual(3);
        let interval = Field::new("retry_interval", "First wait", FieldKind::Duration).usual("5s");
        let most = Field::new("retry_max", "Longest wait", FieldKind::Duration).usual("1m");
        vec![
            self.at(kind, &format!("{under}/type")),
            self.at(count, &format!("{under}/count")),
            self.at(interval, &format!("{under}/interval")),
            self.at(most, &format!("{under}/maxInterval")),
            self.field("retry_on", "On", FieldKind::Code, &format!("{under}/on"))
                .help("Faults: timeout, connection, 5xx, 429, …"),
        ]
    }

    fn loom_action(&self) -> Vec<Section> {
        let schema = schema(Dialect::Loom);
        let rules = schema
            .pointer("/$defs/action/allOf")
            .and_then(Value::as_array);
        let mut rules = rules
            .into_iter()
            .flatten()
            .filter(|_| self.document.dialect == Dialect::Loom);
        let rule = rules.find(|rule| {
            let pattern = rule
                .pointer("/if/properties/type/pattern")
                .and_then(Value::as_str);
            pattern
                .and_then(|pattern| Regex::new(pattern).ok())
                .is_some_and(|pattern| pattern.is_match(&self.found.kind))
        });
        let rule = rule.and_then(|rule| rule.pointer("/then/properties"));
        let skipped = [
            "inputs",
            "name",
            "metadata",
            "trackedProperties",
            "operationOptions",
            "runtimeConfiguration",
            "retry",
            "runAfter",
            "actions",
            "else",
            "cases",
            "default",
            "branches",
        ];
        let own = self.own.as_object();
        let fields = self.by_schema(&schema, rule, own, "", &skipped);
        let under = rule.and_then(|rule| rule.get("inputs"));
        let under = under
            .map(|under| object_of(&schema, under))
            .and_then(|under| under.get("properties"));
        let inputs = match self.own.get("inputs") {
            Some(Value::Object(inputs)) => {
                self.by_schema(&schema, under, Some(inputs), "/inputs", &[])
            }
            None if under.is_some() => self.by_schema(&schema, under, None, "/inputs", &[]),
            _ => vec![self.field("inputs", "Inputs", FieldKind::Code, "/inputs")],
        };
        vec![
            section("Inputs", inputs),
            section("Action", fields),
            section("Retry", self.retry()),
        ]
    }

    // ── any ─────────────────────────────────────────────────────────────────────────────────────

    /// Fields of a map: those that the schema knows, then what else stands there.
    fn by_schema(
        &self,
        schema: &Value,
        rule: Option<&Value>,
        own: Option<&Map<String, Value>>,
        below: &str,
        skipped: &[&str],
    ) -> Vec<Field> {
        let rules = rule.and_then(Value::as_object);
        let known = rules.into_iter().flat_map(|rules| rules.keys());
        let mut keys: Vec<&String> = known.collect();
        for key in own.into_iter().flat_map(|own| own.keys()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let fields = keys
            .into_iter()
            .filter(|key| !skipped.contains(&key.as_str()));
        let fields = fields.map(|key| {
            let rule = rules
                .and_then(|rules| rules.get(key))
                .unwrap_or(&Value::Null);
            let value = own.and_then(|own| own.get(key));
            let (kind, choices) = kind_of(schema, rule, key, value);
            let id = match below {
                "" => key.clone(),
                below => format!("{}.{key}", below.trim_start_matches('/')),
            };
            let label = key.clone();
            let field = Field {
                help: rule
                    .get("description")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                choices: choices.into_iter().map(Choice::of).collect(),
                default: rule.get("default").cloned(),
                ..Field::new(&id, &label, kind)
            };
            self.at(field, &format!("{below}/{}", escaped(key)))
        });
        fields.collect()
    }
}

fn schema(dialect: Dialect) -> Value {
    let text = json_schema(dialect).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// What a reference leads to.
fn resolved<'s>(schema: &'s Value, rule: &'s Value) -> &'s Value {
    let reference = word(rule, "$ref").strip_prefix('#');
    let found = reference.and_then(|pointer| schema.pointer(pointer));
    found.unwrap_or(rule)
}

/// Of several alternatives, the one that is a map.
fn object_of<'s>(schema: &'s Value, rule: &'s Value) -> &'s Value {
    let rule = resolved(schema, rule);
    let any = rule
        .get("anyOf")
        .or_else(|| rule.get("oneOf"))
        .and_then(Value::as_array);
    let mut any = any.into_iter().flatten().map(|rule| resolved(schema, rule));
    any.find(|rule| rule.get("properties").is_some())
        .unwrap_or(rule)
}

fn kind_of(
    schema: &Value,
    rule: &Value,
    key: &str,
    value: Option<&Value>,
) -> (FieldKind, Vec<String>) {
    let reference = word(rule, "$ref")
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let rule = resolved(schema, rule);
    let any = rule
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut words = [rule]
        .into_iter()
        .chain(any)
        .filter_map(|rule| rule.get("enum")?.as_array());
    let words = words.next().into_iter().flatten();
    let words: Vec<String> = words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    if !words.is_empty() {
        return (FieldKind::Choice, words);
    }
    let codes = [
        "run", "code", "script", "prompt", "body", "commands", "system",
    ];
    let kind = match (reference.as_str(), word(rule, "type"), value) {
        (_, _, Some(Value::Object(_) | Value::Array(_))) | (_, "object" | "array", _) => {
            FieldKind::Code
        }
        ("condition", ..) => FieldKind::Condition,
        ("duration" | "delay", ..) => FieldKind::Duration,
        (_, "integer" | "number", _) | (_, _, Some(Value::Number(_))) => FieldKind::Number,
        (_, "boolean", _) | (_, _, Some(Value::Bool(_))) => FieldKind::Bool,
        _ if codes.contains(&key) => FieldKind::Code,
        (_, _, Some(Value::String(text))) if text.contains('\n') => FieldKind::Code,
        (_, _, Some(Value::String(text))) if text.starts_with('@') || text.contains("{{") => {
            FieldKind::Expression
        }
        _ if ["timeout", "interval", "delay"].contains(&key) => FieldKind::Duration,
        _ if key == "workflowRef" => FieldKind::File,
        _ => FieldKind::Text,
    };
    (kind, Vec::new())
}

impl Field {
    fn columns(self, columns: [(&str, &str, Vec<Choice>); 3]) -> Self {
        let columns = columns.map(|(id, label, choices)| Column {
            id: id.to_owned(),
            label: label.to_owned(),
            kind: if choices.is_empty() {
                FieldKind::Text
            } else {
                FieldKind::Choice
            },
            choices,
        });
        Self {
            columns: columns.into(),
            ..self
        }
    }
}

// ── mappings ────────────────────────────────────────────────────────────────────────────────────

const BUILTIN: &str = "builtin:";
const OUTER: &str = "outer:";
const PREVIOUS: &str = "previous:";

fn builtins<'b>(names: &'b [&'b str]) -> impl Iterator<Item = Choice> + 'b {
    let one = |name: &&str| Choice::called(format!("{BUILTIN}{name}"), *name);
    names.iter().map(one)
}

/// Where an input may come from.
fn sources(outer: &[Port], given: &[Port], previous: bool) -> Vec<Choice> {
    let outer = outer.iter().map(|port| Choice {
        kind: Some(port.kind.clone()),
        ..Choice::called(
            format!("{OUTER}{}", port.name),
            format!("{} (outer)", port.name),
        )
    });
    let before = given.iter().filter(|_| previous).map(|port| {
        let name = format!("{}.{}", port.node, port.name);
        Choice {
            kind: Some(port.kind.clone()),
            ..Choice::called(format!("{PREVIOUS}{name}"), format!("{name} (previous)"))
        }
    });
    outer
        .chain(before)
        .chain(builtins(&["iteration_count"]))
        .collect()
}

fn input_row(mapping: &Value) -> Value {
    let nothing = Value::Null;
    let source = mapping.get("source").unwrap_or(&nothing);
    let target = mapping.get("target").unwrap_or(&nothing);
    let text = match word(source, "type") {
        "outer" => format!("{OUTER}{}", word(source, "name")),
        "previous" => format!(
            "{PREVIOUS}{}.{}",
            word(source, "node"),
            word(source, "output")
        ),
        _ => format!("{BUILTIN}{}", word(source, "name")),
    };
    let iterations = match word(mapping, "iterations") {
        "" => "all",
        word => word,
    };
    json!({
        "source": text,
        "target": format!("{}.{}", word(target, "node"), word(target, "input")),
        "iterations": iterations,
    })
}

fn output_row(mapping: &Value) -> Value {
    let source = mapping.get("source").unwrap_or(&Value::Null);
    let text = match word(source, "type") {
        "builtin" => format!("{BUILTIN}{}", word(source, "name")),
        _ => format!("{}.{}", word(source, "node"), word(source, "output")),
    };
    let take = match word(mapping, "take") {
        "" => "last",
        word => word,
    };
    json!({ "source": text, "target": word(mapping, "target"), "take": take })
}

fn port(text: &str) -> Result<(&str, &str), String> {
    text.split_once('.')
        .ok_or_else(|| format!("`{text}` is no port: write `node.port`"))
}

fn input_mapping(row: &Value) -> Result<Value, String> {
    let source = word(row, "source");
    let source = if let Some(name) = source.strip_prefix(OUTER) {
        json!({ "type": "outer", "name": name })
    } else if let Some(name) = source.strip_prefix(BUILTIN) {
        json!({ "type": "builtin", "name": name })
    } else {
        let (node, output) = port(source.strip_prefix(PREVIOUS).unwrap_or(source))?;
        json!({ "type": "previous", "node": node, "output": output })
    };
    let (node, input) = port(word(row, "target"))?;
    let mut mapping = json!({ "source": source, "target": { "node": node, "input": input } });
    let iterations = word(row, "iterations");
    if !iterations.is_empty()
        && let Some(members) = mapping.as_object_mut()
    {
        members.insert(String::from("iterations"), Value::from(iterations));
    }
    Ok(mapping)
}

fn output_mapping(row: &Value) -> Result<Value, String> {
    let source = word(row, "source");
    let source = match source.strip_prefix(BUILTIN) {
        Some(name) => json!({ "type": "builtin", "name": name }),
        None => {
            let (node, output) = port(source)?;
            json!({ "node": node, "output": output })
        }
    };
    let take = match word(row, "take") {
        "" => "last",
        word => word,
    };
    Ok(json!({ "source": source, "target": word(row, "target"), "take": take }))
}

/// Rows as mappings; one that is the same as before keeps how it was written.
fn mappings(
    old: Option<&Value>,
    rows: &Value,
    row_of: fn(&Value) -> Value,
    mapping_of: fn(&Value) -> Result<Value, String>,
) -> Result<Value, String> {
    let old = old.and_then(Value::as_array);
    let mut old: Vec<(Value, &Value)> = old
        .into_iter()
        .flatten()
        .map(|one| (row_of(one), one))
        .collect();
    let rows = rows.as_array().ok_or("a table is a list of rows")?;
    let mapping = |row: &Value| match old.iter().position(|(known, _)| known == row) {
        Some(place) => Ok(old.remove(place).1.clone()),
        None => mapping_of(row),
    };
    let mapped: Result<Vec<Value>, String> = rows.iter().map(mapping).collect();
    Ok(Value::Array(mapped?))
}
