//! Actions of Logic Apps connectors: each runs through a handler that is registered under
//! `connector/operation` or under the connector alone. Which handlers there are, the engine knows.

use super::Loom;
use super::action::{Act, Body};
use crate::dialect::builder::{call, object, text};
use crate::expression::Template;
use crate::hir::StepKind;
use crate::source::{Entry, Node};

/// The types whose work is done by something outside the definition.
pub(super) const TYPES: [&str; 17] = [
    "ApiConnection",
    "ApiConnectionWebhook",
    "ApiManagement",
    "AppService",
    "Batch",
    "CSharpScriptCode",
    "FlatFileDecoding",
    "FlatFileEncoding",
    "Function",
    "HttpWebhook",
    "JavaScriptCode",
    "Liquid",
    "PowerShellCode",
    "SendToBatch",
    "ServiceProvider",
    "Workflow",
    "Xslt",
];

impl Loom<'_> {
    pub(super) fn connector(&mut self, act: &mut Act<'_>, label: &str) -> Body {
        let inputs = act.fields.get("inputs");
        act.fields.allow(&["kind"]);
        let node = inputs.map(|entry| &entry.value);
        let (connector, operation) = names(label, node);
        let exact = match operation.as_str() {
            "" => connector.clone(),
            operation => format!("{connector}/{operation}"),
        };
        let given = node.and_then(Node::entries).unwrap_or_default();
        let mut members = vec![
            (text("connector"), text(&connector)),
            (text("operation"), text(&operation)),
        ];
        for Entry { key, value, .. } in given {
            // Where the connection is does not matter to a handler, and is often not known here.
            if !matches!(key.as_str(), "host" | "retryPolicy") {
                members.push((text(key), self.template(value)));
            }
        }
        let retry = given
            .iter()
            .find(|entry| entry.key == "retryPolicy")
            .and_then(|entry| self.retry_policy(entry));
        let timeout = self.azure_limit(act);
        let inputs = object([
            ("connectorType", text(&exact)),
            ("input", Template::object(members)),
        ]);
        Body {
            retry,
            timeout,
            ..StepKind::Call(call("connector", inputs)).into()
        }
    }
}

fn names(label: &str, inputs: Option<&Node>) -> (String, String) {
    let get = |path: &[&str]| {
        let node = path
            .iter()
            .try_fold(inputs?, |node, key| node.get_any_case(key))?;
        node.as_str()
    };
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    match label {
        "ApiConnection" | "ApiConnectionWebhook" => {
            let connector = get(&["host", "connection", "referenceName"])
                .map(str::to_owned)
                .or_else(|| connection(get(&["host", "connection", "name"])?))
                .or_else(|| Some(last(get(&["host", "api", "id"])?)));
            let method = get(&["method"]).unwrap_or_default().to_ascii_lowercase();
            let path = get(&["path"]).unwrap_or_default();
            let operation = format!("{method} {path}").trim().to_owned();
            (connector.unwrap_or_else(|| label.to_owned()), operation)
        }
        "ServiceProvider" => {
            let provider = get(&["serviceProviderConfiguration", "serviceProviderId"]);
            let operation = get(&["serviceProviderConfiguration", "operationId"]);
            let connector = provider.map_or_else(|| label.to_owned(), last);
            (connector, operation.unwrap_or_default().to_owned())
        }
        "Function" => {
            let name = get(&["function", "id"]).map(last);
            let name = name.or_else(|| get(&["function", "connectionName"]).map(str::to_owned));
            (String::from("function"), name.unwrap_or_default())
        }
        "Workflow" => {
            let name = get(&["host", "workflow", "id"]).map(last);
            (String::from("workflow"), name.unwrap_or_default())
        }
        other => (other.to_owned(), String::new()),
    }
}

/// `office365` of `@parameters('$connections')['office365']['connectionId']`.
fn connection(text: &str) -> Option<String> {
    let rest = text.split_once("$connections')")?.1;
    let name = rest.split('\'').nth(1)?;
    Some(name.to_owned())
}
