//! ARM templates around a definition: the one workflow of its resources, with the deployment's
//! own parameters and variables put in. It computes nothing: any other deployment expression is
//! refused.

use super::Loom;
use crate::source::{Entry, Kind, Node};

/// How deep deployment variables may refer to each other.
const MAX_STEPS: usize = 16;

impl Loom<'_> {
    /// The only `Microsoft.Logic/workflows` resource, as a tree of its own.
    pub(super) fn arm_resource(&mut self, node: &Node, file: Option<&Node>) -> Option<Node> {
        let Some(Kind::Array(resources)) = node.get("resources").map(|node| &node.kind) else {
            let span = node.get("resources").map_or(node.span, |node| node.span);
            let hint = "an ARM template holds a list of resources";
            self.error("wrong-type", span, "`resources` is no list", hint);
            return None;
        };
        let workflows: Vec<&Node> = resources
            .iter()
            .filter(|resource| {
                let kind = resource.get("type").and_then(Node::as_str);
                kind.is_some_and(|kind| kind.eq_ignore_ascii_case("Microsoft.Logic/workflows"))
            })
            .collect();
        let hint = "it must hold exactly one resource of type Microsoft.Logic/workflows";
        match workflows.as_slice() {
            [] => {
                let what = "this ARM template holds no workflow";
                self.error("no-workflow", node.span, what, hint);
                None
            }
            [only] => Some(self.resource(only, &Deployment::of(node, file))),
            [_, second, ..] => {
                let what = "this ARM template holds several workflows";
                self.error("no-workflow", second.span, what, hint);
                None
            }
        }
    }

    /// The resource with its deployment expressions replaced where they matter: in the definition
    /// and the values of its parameters. Its name may stay unknown.
    fn resource(&mut self, node: &Node, deployment: &Deployment<'_>) -> Node {
        let entries = node.entries().unwrap_or_default().iter();
        let entries = entries.filter_map(|entry| {
            let value = match entry.key.as_str() {
                "properties" => self.deployed(&entry.value, deployment),
                "name" => match entry.value.as_str() {
                    Some(text) if text.starts_with('[') => deployment.value(text)?.clone(),
                    _ => entry.value.clone(),
                },
                _ => return None,
            };
            Some(Entry {
                value,
                key: entry.key.clone(),
                key_span: entry.key_span,
            })
        });
        Node {
            span: node.span,
            kind: Kind::Object(entries.collect()),
        }
    }

    /// A copy in which the deployment's expressions are replaced by what they stand for.
    fn deployed(&mut self, node: &Node, deployment: &Deployment<'_>) -> Node {
        let kind = match &node.kind {
            Kind::String(text) => {
                let raw = text.text.as_str();
                if let Some(rest) = raw.strip_prefix("[[") {
                    let mut text = text.clone();
                    text.text = format!("[{rest}");
                    Kind::String(text)
                } else if raw.starts_with('[') && raw.ends_with(']') {
                    return self.deployment_value(node, raw, deployment);
                } else {
                    node.kind.clone()
                }
            }
            Kind::Array(items) => {
                let items = items.iter().map(|item| self.deployed(item, deployment));
                Kind::Array(items.collect())
            }
            Kind::Object(entries) => {
                let entries = entries.iter().map(|entry| Entry {
                    key: entry.key.clone(),
                    key_span: entry.key_span,
                    value: match entry.key.as_str() {
                        // Where connections are deployed to means nothing here.
                        "$connections" => entry.value.clone(),
                        _ => self.deployed(&entry.value, deployment),
                    },
                });
                Kind::Object(entries.collect())
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => node.kind.clone(),
        };
        Node {
            span: node.span,
            kind,
        }
    }

    fn deployment_value(&mut self, node: &Node, raw: &str, deployment: &Deployment<'_>) -> Node {
        match deployment.value(raw) {
            Some(value) => Node {
                span: node.span,
                kind: value.kind.clone(),
            },
            None => {
                let what = format!("the deployment expression `{raw}` has no value here");
                let hint = "only [parameters('x')] with a default or a value from --parameters, \
                            and [variables('x')], are supported: deploy it and export the definition";
                self.error("arm-expression", node.span, what, hint);
                Node {
                    span: node.span,
                    kind: Kind::Null,
                }
            }
        }
    }
}

struct Deployment<'n> {
    parameters: Option<&'n Node>,
    given: Option<&'n Node>,
    variables: Option<&'n Node>,
}

impl<'n> Deployment<'n> {
    fn of(template: &'n Node, file: Option<&'n Node>) -> Self {
        Self {
            parameters: template.get("parameters"),
            given: file.map(|file| file.get("parameters").unwrap_or(file)),
            variables: template.get("variables"),
        }
    }

    fn value(&self, raw: &str) -> Option<&'n Node> {
        let mut raw = raw;
        for _ in 0..MAX_STEPS {
            let value = match call(raw)? {
                ("parameters", name) => self
                    .given
                    .and_then(|given| given.get_any_case(name)?.get_any_case("value"))
                    .or_else(|| {
                        self.parameters?
                            .get_any_case(name)?
                            .get_any_case("defaultValue")
                    })?,
                ("variables", name) => self.variables?.get(name)?,
                _ => return None,
            };
            match value.as_str() {
                Some(text) if text.starts_with('[') && !text.starts_with("[[") => raw = text,
                _ => return Some(value),
            }
        }
        None
    }
}

/// The function and the argument of `[function('argument')]`.
fn call(raw: &str) -> Option<(&str, &str)> {
    let inner = raw.strip_prefix('[')?.strip_suffix(']')?.trim();
    let (function, rest) = inner.split_once('(')?;
    let argument = rest.strip_suffix(')')?.trim();
    let argument = argument.strip_prefix('\'')?.strip_suffix('\'')?;
    (!argument.contains('\'')).then_some((function.trim(), argument))
}
