//! The panel of a node.
//! Its fields are made from the format, for a form that does not know the format.

mod canvas;
mod loom;
mod mapping;
mod schema;
mod tea;

use super::fields::{Field, FieldKind};
use super::nodes::AuthoredNode;
use super::ports::{PortOf, ports_of_graph};
use super::{Document, remove, set};
use mapping::{input_mapping, input_row, mappings, output_mapping, output_row};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect};

/// The panel of a node: its fields, for a form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Panel {
    /// Path of the node.
    pub node: String,
    /// Type of the node, as the text has it.
    pub kind: String,
    /// Display name of the node.
    pub title: String,
    /// Format of the text: `loom`, `azure`, `tea` or `canvas`.
    pub format: String,
    /// JSON pointer to the node in the text.
    pub pointer: String,
    /// Fields of the node, in groups.
    pub sections: Vec<Section>,
    /// Possible commands: `rename`, `delete`, `add_before`, `add_after`, `add_inside`, `connect`, `move`, `drill`.
    pub actions: Vec<String>,
    /// Ports of all nodes in the same graph of a canvas. Absent for other formats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortOf>,
}

/// A group of fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Section {
    /// Title of the group.
    pub title: String,
    /// Fields of the group.
    pub fields: Vec<Field>,
}

/// Returns the panel of a node.
/// `cap` is the maximum number of iterations that the operator allows for a loop.
///
/// # Errors
/// A message if the node does not exist.
pub fn panel(
    bundle: &Bundle,
    dialect: Option<Dialect>,
    node: &str,
    cap: Option<u64>,
) -> Result<Panel, String> {
    let document = Document::read(bundle.clone(), dialect)?;
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
            Dialect::Canvas => ports_of_graph(view.enclosing_graph(), &found.path),
            _ => Vec::new(),
        },
        kind: found.kind.clone(),
    })
}

/// Returns the value of the document after a field of a node's panel is set.
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
    found: &'d AuthoredNode,
    own: &'d Value,
    cap: Option<u64>,
}

impl View<'_> {
    /// Sets the pointer of a field, relative to the node's pointer, and the field's value.
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
}
