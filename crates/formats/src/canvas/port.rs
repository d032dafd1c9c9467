//! The ports that a node declares.
//! They are in `inputs` and `outputs`, lists of `{name, type, required, default}` (docs/reference/canvas.md).

use super::Canvas;
use super::tree::Socket;
use crate::fields::Fields;
use windlass_expression::{Extract, Port, PortKind, Value};
use windlass_model::model::Name;
use windlass_source::source::{Entry, Node, Span};

/// Parses the `pattern` or `path` of an `extract`.
type Parse = fn(&str) -> Result<Extract, String>;

const HINT: &str = "for example inputs: [{ name: task, type: string, required: true }]";

/// The names that graph editors have for some types.
const OTHERS: [(&str, PortKind); 4] = [
    ("file", PortKind::String),
    ("files", PortKind::List),
    ("object", PortKind::Json),
    ("array", PortKind::List),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PortSide {
    Input,
    Output,
}

impl PortSide {
    pub fn key(self) -> &'static str {
        match self {
            Self::Input => "inputs",
            Self::Output => "outputs",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl Canvas<'_> {
    /// Reads the declared ports of a side. Returns `None` if the node declares none; graph editors then save an empty
    /// list.
    pub(super) fn ports(
        &mut self,
        fields: &mut Fields<'_>,
        side: PortSide,
        id: &Name,
    ) -> Option<Vec<Socket>> {
        let items = self.items(fields.get(side.key()), HINT);
        let items = items.filter(|items| !items.is_empty())?;
        let mut sockets: Vec<Socket> = Vec::with_capacity(items.len());
        for item in items {
            let Some(socket) = self.socket(item, side, id) else {
                continue;
            };
            let name = &socket.port.name;
            if sockets.iter().any(|other| other.port.name == *name) {
                let what = format!("`{id}` has two {}s `{name}`", side.word());
                let hint = "rename one of them";
                self.error("duplicate-name", socket.span, what, hint);
                continue;
            }
            sockets.push(socket);
        }
        Some(sockets)
    }

    fn socket(&mut self, node: &Node, side: PortSide, id: &Name) -> Option<Socket> {
        let what = format!("an {} of `{id}`", side.word());
        let mut fields = self.fields(node, &what, HINT)?;
        fields.allow(&["label", "description", "id", "schema"]);
        let name = fields.required(self, "name", node.span, HINT);
        let kind = fields.non_null(self, "type");
        let required = fields.non_null(self, "required");
        let default = fields.get("default");
        let extract = match side {
            PortSide::Output => fields.non_null(self, "extract"),
            PortSide::Input => None,
        };
        fields.finish(self);
        let name = name?;
        let text = self.text(name, HINT)?;
        if text.is_empty() {
            let what = format!("{what} has no name");
            self.error("missing-value", name.value.span, what, HINT);
            return None;
        }
        let kind = kind.map_or(PortKind::Any, |kind| self.port_kind(kind));
        let required = required.and_then(|required| self.flag(required, HINT));
        let is_optional = required == Some(false);
        let required = required.unwrap_or_default();
        let mut port = Port {
            name: Name::from(text),
            shown: self.shown(side, text, id, name.value.span),
            kind,
            required,
            must_be_given: false,
            default: None,
        };
        if let Some(default) = default {
            port.default = self.port_default(default, &port);
        }
        let extract = extract.and_then(|entry| self.extract(entry, &port));
        Some(Socket {
            port,
            span: name.value.span,
            extract,
            is_optional,
        })
    }

    /// Makes a port that all nodes of a type have.
    pub(super) fn built_in(&self, name: &str, kind: PortKind, id: &Name, span: Span) -> Socket {
        Socket {
            port: Port {
                name: Name::from(name),
                shown: self.shown(PortSide::Output, name, id, span),
                kind,
                required: false,
                must_be_given: false,
                default: None,
            },
            span,
            extract: None,
            is_optional: false,
        }
    }

    /// Returns a description of a port for messages: ``input `task` of `coder` (line 12)``.
    pub(super) fn shown(&self, side: PortSide, name: &str, id: &str, span: Span) -> Name {
        let place = match self.bundle.file(span.file) {
            Some(file) if span.file > 0 => format!("{}:{}", file.path, span.line),
            _ => format!("line {}", span.line),
        };
        Name::from(format!("{} `{name}` of `{id}` ({place})", side.word()))
    }

    fn port_kind(&mut self, entry: &Entry) -> PortKind {
        let mut known = PortKind::ALL.map(|kind| (kind.as_str(), kind)).to_vec();
        known.extend(OTHERS);
        let found = self.choice(entry, &known, |text| {
            format!("`{text}` is not a valid type of port")
        });
        found.unwrap_or(PortKind::Any)
    }

    fn port_default(&mut self, entry: &Entry, port: &Port) -> Option<Value> {
        let value = entry.value.to_value();
        if value.is_null() {
            return None;
        }
        let converted = port.kind.convert(&value);
        if converted.is_none() {
            let what = format!("the default of {}", port.shown);
            let wanted = format!("of type {}", port.kind.as_str());
            let hint = "change the default or the type";
            self.wrong_type(&entry.value, &what, &wanted, hint);
        }
        converted
    }

    /// Reads `{type: regex, pattern}` or `{type: json, path}`.
    fn extract(&mut self, entry: &Entry, port: &Port) -> Option<Extract> {
        let hint = "extract: { type: regex, pattern: \"version (\\\\S+)\" }, or { type: json, path: $.items[0].name }";
        let what = format!("`extract` of {}", port.shown);
        let mut fields = self.fields(&entry.value, &what, hint)?;
        let kind = fields.required(self, "type", entry.key_span, hint);
        if kind.is_some_and(|kind| kind.value.as_str() == Some("full")) {
            fields.allow(&["pattern", "path"]);
            fields.finish(self);
            return Some(Extract::Full);
        }
        let known: [(&str, (&str, Parse)); 3] = [
            ("regex", ("pattern", Extract::regex)),
            ("json", ("path", Extract::path)),
            ("json_path", ("pattern", Extract::path)),
        ];
        let kind = kind.and_then(|kind| {
            self.choice(kind, &known, |text| {
                format!("`{text}` is not a valid extraction")
            })
        });
        let how = kind.and_then(|(key, parse)| {
            let how = fields.required(self, key, entry.key_span, hint)?;
            Some((how, parse))
        });
        if how.is_none() {
            fields.allow(&["pattern", "path"]);
        }
        fields.finish(self);
        let (how, parse) = how?;
        let text = self.text(how, hint)?;
        match parse(text) {
            Ok(extract) => Some(extract),
            Err(mistake) => {
                let what = format!("`{}` of {}: {mistake}", how.key, port.shown);
                self.error("bad-extract", how.value.span, what, hint);
                None
            }
        }
    }
}
