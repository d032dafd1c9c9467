//! Actions of Logic Apps that Windlass does not implement itself.
//! A handler executes each of them. The handler is registered under `connector/operation`, the connector, the
//! operation or the action's type. Only the engine knows which handlers exist.

use super::LogicApps;
use crate::actions::ActionReader;
use crate::actions::{ActionFields, Body};
use crate::actions::{ConnectionKind, last_path_segment};
use crate::builder::{call, object, text};
use windlass_expression::{Template, Value};
use windlass_model::hir::StepKind;
use windlass_model::model::{CONNECTOR_HOST, HANDLER_NAMES};
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind, Node, Span};
use windlass_value::words;

/// Well-known types of actions that a handler executes. An unknown type is read in the same way.
pub(super) const TYPES: [&str; 28] = words! {
    Agent AgentPrompt ApiConnection ApiConnectionNotification ApiConnectionWebhook ApiManagement
    AppService Batch CSharpScriptCode FlatFileDecoding FlatFileEncoding Function
    IntegrationAccountArtifactLookup JavaScriptCode Liquid OpenApiConnection
    OpenApiConnectionNotification OpenApiConnectionWebhook PowerShellCode SendToBatch
    ServiceProvider SwiftEncode SwiftMTDecode Workflow XmlCompose XmlParse XmlValidation Xslt
};

/// The names under which the handler of an action may be registered: first `exact`, then `others`.
struct Names {
    connector: String,
    operation: String,
    others: Vec<String>,
}

impl Names {
    fn exact(&self) -> String {
        join(&self.connector, &self.operation)
    }
}

impl ActionReader<'_, LogicApps> {
    /// Reads an action of any type that Windlass does not implement itself.
    pub(super) fn connector(&mut self, act: &mut ActionFields<'_>, label: &str) -> Body {
        let inputs = act.fields.get("inputs");
        act.fields.allow(&["kind", "channels", "limit"]);
        if let Some(tools) = act.fields.get("tools") {
            let what = format!("the tools of `{}` are not run here", act.name);
            let hint = "its handler answers for the agent and for all that the agent would call";
            self.warning("not-supported", tools.key_span, what, hint);
        }
        let node = inputs.map(|entry| &entry.value);
        let names = self.names(label, node);
        self.connection_exists(act, label, node);
        let given = node.and_then(Node::entries).unwrap_or_default();
        let mut members = vec![
            (text("connector"), text(&names.connector)),
            (text("operation"), text(&names.operation)),
        ];
        for Entry { key, value, .. } in given {
            // A handler does not need the connection's address and credentials, and they are often unknown here.
            let aside = key == "authentication" && label.contains("ApiConnection");
            if !aside && !matches!(key.as_str(), "host" | "retryPolicy") {
                members.push((text(key), self.template(value)));
            }
        }
        if given.is_empty()
            && let Some(entry) = inputs
            && node.is_some_and(|node| !matches!(node.kind, Kind::Object(_) | Kind::Null))
        {
            members.push((text("inputs"), self.template(&entry.value)));
        }
        let retry = given
            .iter()
            .find(|entry| entry.key == "retryPolicy")
            .and_then(|entry| self.retry_policy(entry));
        let timeout = self.limit_timeout_of(act);
        let exact = names.exact();
        let others = names.others.iter().map(|name| text(name)).collect();
        // Expressions that read the inputs see `host` unevaluated, because its expressions name connections that are
        // not known here.
        let host = node.and_then(|node| node.get_any_case("host"));
        let host = host.map_or(Value::Null, Node::to_value);
        let inputs = object([
            ("connectorType", text(&exact)),
            (HANDLER_NAMES, Template::array(others)),
            (CONNECTOR_HOST, Template::constant(host)),
            ("input", Template::object(members)),
        ]);
        Body {
            retry,
            timeout,
            ..StepKind::Call(call("connector", inputs)).into()
        }
    }

    /// Reports an action whose connection is not one of the known connections of its kind.
    fn connection_exists(&mut self, act: &ActionFields<'_>, label: &str, inputs: Option<&Node>) {
        let get = |path: &[&str]| text_at(inputs?, path);
        let (kind, found) = match label {
            "ServiceProvider" => (
                ConnectionKind::ServiceProvider,
                get(&["serviceProviderConfiguration", "connectionName"]),
            ),
            "Function" => (
                ConnectionKind::Function,
                get(&["function", "connectionName"]),
            ),
            "ApiManagement" => (
                ConnectionKind::ApiManagement,
                get(&["apiManagement", "connection"]),
            ),
            _ => (
                ConnectionKind::Managed,
                get(&["host", "connection", "referenceName"])
                    .or_else(|| get(&["host", "connectionReferenceName"])),
            ),
        };
        let found = found.map(|(name, span)| (name.to_owned(), span));
        let found = found.or_else(|| {
            let (text, span) = get(&["host", "connection", "name"])?;
            Some((written_connection(text)?, span))
        });
        let (Some((name, span)), Some(known)) = (found, self.format.connections.get(&kind)) else {
            return;
        };
        // A name that contains an expression or a placeholder is not checked.
        if name.contains(['@', '[', '#', '{']) || known.contains(&name.to_lowercase()) {
            return;
        }
        let what = format!(
            "`{}` names the connection `{name}`, which is not there",
            act.name
        );
        let near = did_you_mean(&name, known.iter().map(String::as_str));
        let hint = near.unwrap_or_else(|| match known.is_empty() {
            true => String::from("no connection of its kind is there: add it, or remove the file"),
            false => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                format!("known are: {}", known.join(", "))
            }
        });
        self.error("unknown-connection", span, what, hint);
    }

    fn names(&self, label: &str, inputs: Option<&Node>) -> Names {
        let get = |path: &[&str]| Some(text_at(inputs?, path)?.0);
        let method = get(&["method"]).unwrap_or_default().to_ascii_lowercase();
        let path = get(&["path"]).unwrap_or_default();
        let by_path = format!("{method} {path}").trim().to_owned();
        let or_label = |name: Option<String>| name.unwrap_or_else(|| label.to_owned());
        let host = get(&["host", "connection", "referenceName"])
            .or_else(|| get(&["host", "connectionReferenceName"]))
            .or_else(|| get(&["host", "connectionName"]))
            .map(str::to_owned)
            .or_else(|| connection(get(&["host", "connection", "name"])?));
        let api = get(&["host", "api", "id"])
            .or_else(|| get(&["host", "apiId"]))
            .map(last_path_segment)
            .or_else(|| connection(get(&["host", "api", "runtimeUrl"])?));
        let led = |name: &str| {
            self.format
                .connection_targets
                .get(&name.to_lowercase())
                .cloned()
        };
        let api = host.as_deref().and_then(led).or(api);
        let operation = get(&["host", "operationId"])
            .or_else(|| get(&["operationId"]))
            .map(str::to_owned);
        let provider = |key| get(&["serviceProviderConfiguration", key]);
        let (connector, operation, also) = match label {
            "ServiceProvider" => (
                or_label(provider("serviceProviderId").map(last_path_segment)),
                provider("operationId").unwrap_or_default().to_owned(),
                provider("connectionName").map(str::to_owned),
            ),
            "Function" => {
                let name = get(&["function", "id"]).map(last_path_segment);
                let connection = get(&["function", "connectionName"]).map(str::to_owned);
                let name = name.or_else(|| led(connection.as_deref()?));
                let name = name.or_else(|| connection.clone()).unwrap_or_default();
                (String::from("function"), name, connection)
            }
            "Workflow" => {
                let name = get(&["host", "workflow", "id"]).map(last_path_segment);
                let name =
                    name.or_else(|| get(&["host", "workflowReferenceName"]).map(str::to_owned));
                (String::from("workflow"), name.unwrap_or_default(), None)
            }
            _ if host.is_some() || api.is_some() => {
                let operation = operation.unwrap_or(by_path);
                let connector = host.or_else(|| api.clone());
                (or_label(connector), operation, api)
            }
            other => (other.to_owned(), String::new(), None),
        };
        let mut others = Vec::new();
        for also in also.into_iter().filter(|also| *also != connector) {
            others.extend([join(&also, &operation), also]);
        }
        // In Power Automate, the names of all connectors begin with `shared_`.
        if let Some(short) = connector.strip_prefix("shared_") {
            others.extend([join(short, &operation), short.to_owned()]);
        }
        if !operation.is_empty() {
            others.push(operation.clone());
        }
        others.push(label.to_owned());
        let exact = join(&connector, &operation);
        others.retain(|other| *other != exact && *other != connector);
        others.dedup();
        Names {
            connector,
            operation,
            others,
        }
    }
}

fn join(connector: &str, operation: &str) -> String {
    match operation {
        "" => connector.to_owned(),
        operation => format!("{connector}/{operation}"),
    }
}

/// Returns the text at a path, and its span.
fn text_at<'n>(node: &'n Node, path: &[&str]) -> Option<(&'n str, Span)> {
    let mut path = path.iter();
    let node = path.try_fold(node, |node, key| node.get_any_case(key))?;
    Some((node.as_str()?, node.span))
}

/// Like [`connection`], but returns `None` if the name is computed by an expression.
fn written_connection(text: &str) -> Option<String> {
    let rest = text.split_once("$connections')")?.1;
    let rest = rest.trim_start_matches('?').strip_prefix("['")?;
    let (name, rest) = rest.split_once('\'')?;
    rest.starts_with(']').then(|| name.to_owned())
}

/// Returns the name of a connection: `office365` of `@parameters('$connections')['office365']['connectionId']`.
fn connection(text: &str) -> Option<String> {
    let rest = text.split_once("$connections')")?.1;
    let name = rest.split('\'').nth(1)?;
    Some(name.to_owned())
}
