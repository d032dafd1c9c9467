//! Panels of the nodes of a canvas: their ports, and the mappings of a loop.

use super::mapping::{builtins, input_row, output_row, sources};
use super::{Section, View, section};
use crate::edit::fields::{Choice, Field, FieldKind, Parts};
use crate::edit::nodes::{escaped, word};
use crate::edit::ports::{PortOf, connected_inputs, inputs, nodes_of, outputs, table_of};
use crate::edit::value_of;
use crate::schema::root;
use serde_json::{Value, json};
use windlass_engine::Dialect;
use windlass_source::source;

/// Keys of a node's `data` that have no effect on a run.
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

impl View<'_> {
    /// Returns the graph that contains the node.
    pub(super) fn enclosing_graph(&self) -> &Value {
        let graph = self.found.container.trim_end_matches("/nodes");
        self.document.at(graph).unwrap_or(&Value::Null)
    }

    /// Returns the graph inside of the node. It is in the text, or in a file that the text names.
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
        // The nodes inside of a drawn loop are in the same graph as the loop.
        let nodes = nodes_of(self.enclosing_graph())
            .filter(|node| word(node, "parentId") == self.found.name);
        json!({ "nodes": nodes.cloned().collect::<Vec<_>>() })
    }

    pub(super) fn canvas_loop(&self, kind: &str) -> Vec<Section> {
        let inner = self.inner();
        let given: Vec<PortOf> = nodes_of(&inner).flat_map(outputs).collect();
        let taken: Vec<PortOf> = nodes_of(&inner).flat_map(inputs).collect();
        let mut outer = inputs(self.own);
        for port in connected_inputs(self.enclosing_graph(), &self.found.name) {
            if !outer.iter().any(|known| known.name == port.name) {
                outer.push(port);
            }
        }
        let label = self.field("label", "Title", FieldKind::Text, "/data/label");
        let mut inside = vec![label];
        inside.push(
            self.field("workflow_ref", "File", FieldKind::File, "/data/workflowRef")
                .help("A file next to this one, instead of the graph that is drawn here"),
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
            let output = word(&field.value, "output").to_owned();
            let known = given
                .iter()
                .any(|port| format!("{}.{}", port.node, port.name) == output);
            let error = format!("the inner workflow has no output `{output}`");
            Field {
                error: (!output.is_empty() && !known && !given.is_empty()).then_some(error),
                parts: Some(Parts {
                    output: given.iter().map(PortOf::choice).collect(),
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
                ("target", "To", taken.iter().map(PortOf::choice).collect()),
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
                    let ports = given.iter().map(PortOf::choice);
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

    pub(super) fn canvas_node(&self) -> Vec<Section> {
        let schema = root(Dialect::Canvas);
        let rule = schema.pointer(&format!("/$defs/{}/properties", escaped(&self.found.kind)));
        let data = self.own.get("data").and_then(Value::as_object);
        let skipped = ["inlineWorkflow", "inputMappings", "inputs", "outputs"];
        let fields = self.by_schema(schema, rule, data, "/data", &skipped);
        // Fields that only drawing tools use are shown only if they have a value.
        let drawn = |field: &Field| DRAWN.contains(&field.label.as_str()) && field.value.is_null();
        let fields = fields.into_iter().filter(|field| !drawn(field)).collect();
        vec![section("Settings", fields), self.ports()]
    }

    /// Returns the section of the panel with the ports that the node declares.
    fn ports(&self) -> Section {
        let tables = [("inputs", "Inputs"), ("outputs", "Outputs")];
        let tables = tables.map(|(id, label)| self.at(table_of(id, label), &format!("/data/{id}")));
        section("Ports", tables.into())
    }
}
