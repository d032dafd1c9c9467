//! Logic Apps definitions in the forms in which they are published.

mod cases;
mod keys;
mod loading;
mod samples;
mod templates;

use crate::support;
use serde_json::json;
use windlass_actions::Registry;
use windlass_engine::{Engine, LoadError};
use windlass_expression::Value;
use windlass_formats::Caps;
use windlass_model::hir::{Block, StepKind, Workflow};
use windlass_model::model::{Dialect, OnLimit, Request, Test};
use windlass_source::source::{Bundle, SourceFile};

fn bundle(name: &str) -> Bundle {
    let path = format!("{}/tests/azure/{name}.json", env!("CARGO_MANIFEST_DIR"));
    Bundle::single(
        format!("{name}.json"),
        std::fs::read_to_string(path).unwrap(),
    )
}

fn read(bundle: &Bundle) -> Workflow {
    let (workflow, diagnostics) = windlass_formats::read(bundle, None, &Caps::default());
    let workflow = workflow.unwrap_or_else(|| panic!("{}", diagnostics.render(bundle, false)));
    assert_eq!(workflow.dialect, Dialect::Azure);
    workflow
}

#[test]
fn every_shape_of_a_definition_is_read() {
    for name in [
        "request-response",
        "until-poll",
        "conditions-and-scopes",
        "arm-template",
    ] {
        let bundle = bundle(name);
        let (workflow, diagnostics) = windlass_formats::read(&bundle, None, &Caps::default());
        let text = diagnostics.render(&bundle, false);
        assert!(workflow.is_some() && diagnostics.is_empty(), "{text}");
    }
}

#[test]
fn until_has_the_semantics_of_azure() {
    let workflow = read(&bundle("until-poll"));
    let Block::Dag(steps) = &workflow.body else {
        panic!("a definition is a graph");
    };
    let StepKind::Loop(until) = &steps[1].step.kind else {
        panic!("the second action is the loop");
    };
    assert_eq!(until.test, Test::After);
    assert_eq!(until.on_limit, OnLimit::Continue);
    assert!(until.survives_failure && !until.negated);
    assert!(workflow.schedule.is_some());
    assert_eq!(&*workflow.trigger.unwrap().name, "Recurrence");
}

#[test]
fn parameters_come_from_the_file_the_wrapper_or_the_default() {
    let mut bundle = bundle("arm-template");
    let value = |workflow: &Workflow| workflow.parameters[0].1.to_json();
    let from_template = read(&bundle);
    assert_eq!(value(&from_template), "\"http://127.0.0.1:8080/echo\"");
    assert_eq!(&*from_template.name, "arm-template");
    bundle.files.push(SourceFile {
        path: "parameters.json".into(),
        text: r#"{"parameters": {"logicAppName": {"value": "mine"}, "testUri": {"value": "http://x/"}}}"#
            .into(),
    });
    let from_file = read(&bundle);
    assert_eq!(value(&from_file), "\"http://x/\"");
    assert_eq!(&*from_file.name, "mine");
}

#[test]
fn connectors_are_handlers_by_name() {
    let workflow = read(&bundle("connectors"));
    let names: Vec<&str> = workflow
        .handler_uses()
        .iter()
        .map(|used| used.name)
        .collect();
    assert_eq!(
        names,
        [
            "office365/post /v2/Mail",
            "AzureBlob/readBlob",
            "function/resize",
            "workflow/child-workflow"
        ]
    );
}

fn request(executor: &str, inputs: serde_json::Value) -> Request {
    Request {
        executor: executor.into(),
        action: "Call".into(),
        inputs: Value::from_json(&inputs.to_string()).unwrap(),
        key: "key".into(),
        attempt: 1,
        timeout_ms: None,
    }
}

#[tokio::test]
async fn a_connector_without_a_handler_for_its_operation_has_one_for_all() {
    let mut registry = Registry::new();
    registry.register("office365", |context, _: Value| async move {
        Ok(Value::text(format!("all: {}", context.input.to_json())))
    });
    registry.register("office365/get /v2/Mail", |_, _: Value| async {
        Ok(Value::from(7_i64))
    });
    let ask = |name: &str| request("connector", json!({ "connectorType": name, "input": 1 }));
    let own = registry
        .execute(&ask("office365/get /v2/Mail"))
        .await
        .unwrap();
    assert_eq!(own.to_json(), r#"{"body":7}"#);
    let all = registry
        .execute(&ask("office365/post /v2/Mail"))
        .await
        .unwrap();
    assert_eq!(all.to_json(), r#"{"body":"all: 1"}"#);
    assert!(registry.execute(&ask("sql/query")).await.is_err());
    assert!(registry.answers("office365/anything") && !registry.answers("sql"));
}

/// Runs a definition against the server of the examples; returns the run's output.
async fn run(name: &str, input: serde_json::Value) -> serde_json::Value {
    let base = support::serve(crate::app::router(crate::app::Options::default())).await;
    let text = bundle(name).files[0].text.clone();
    let text = text.replace("http://127.0.0.1:8080", &base);
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine.load_text(&format!("{name}.json"), &text).unwrap();
    let input = Value::from_json(&input.to_string()).unwrap();
    let run = engine.start(&workflow, input).await.unwrap();
    serde_json::from_str(&run.result::<Value>().await.unwrap().to_json()).unwrap()
}

#[tokio::test]
async fn a_request_gets_its_response() {
    let response = run(
        "request-response",
        json!({ "FirstName": "Ada", "LastName": "Lovelace" }),
    )
    .await;
    assert_eq!(response["statusCode"], 200);
    assert_eq!(
        response["body"],
        json!({ "FirstName": "Ada", "FullName": "Ada Lovelace", "LastName": "Lovelace" })
    );
}

#[tokio::test]
async fn until_polls_until_the_variable_says_so() {
    let outputs = run("until-poll", json!(null)).await;
    assert_eq!(outputs, json!({ "status": "complete", "polls": 4 }));
}

#[tokio::test]
async fn conditions_scopes_and_data_operations() {
    let response = run("conditions-and-scopes", json!({ "n": 5, "kind": "a" })).await;
    assert_eq!(response["statusCode"], 201);
    assert_eq!(
        response["body"],
        json!({
            "log": "big,a",
            "caught": "Failed",
            "ids": [{ "id": 1, "text": "1" }, { "id": 2, "text": "2" }],
            "csv": "ID\r\n1\r\n2\r\n",
        })
    );
    let response = run("conditions-and-scopes", json!({ "n": 1, "kind": "skip" })).await;
    assert_eq!(response["body"]["log"], "small");
}

#[tokio::test]
async fn a_definition_without_its_connectors_is_refused() {
    let engine = Engine::builder().in_memory().unwrap();
    let text = bundle("connectors").files[0].text.clone();
    let refused = engine.load_text("connectors.json", &text).err().unwrap();
    let LoadError::Refused {
        diagnostics,
        bundle: refused,
    } = refused
    else {
        panic!("{refused}");
    };
    let text = diagnostics.render(&refused, false);
    assert_eq!(text.matches("error[missing-handler]").count(), 1, "{text}");
    assert!(text.contains("4 actions have no handler"), "{text}");
    assert!(
        text.contains("`office365/post /v2/Mail` or `office365`"),
        "{text}"
    );
}

#[tokio::test]
async fn a_run_ends_before_it_acts_unless_its_trigger_would_have_fired() {
    let definition = json!({ "definition": {
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "triggers": { "manual": { "type": "Request", "conditions": [
            { "expression": "@equals(triggerBody()?['state'], 'new')" },
            { "expression": "@greater(triggerBody()['n'], 3)" },
        ] } },
        "actions": {
            "one": { "type": "Compose", "inputs": "@triggerBody()['n']" },
            "two": { "type": "Compose", "inputs": "@outputs('one')", "runAfter": { "one": ["Succeeded"] } },
        },
        "outputs": { "n": { "type": "integer", "value": "@outputs('two')" } },
    } });
    let engine = Engine::builder().in_memory().unwrap();
    let workflow = engine.load_text("d.json", &definition.to_string()).unwrap();
    for (state, n, fails) in [
        ("new", 4, None),
        ("old", 4, Some("'new'")),
        ("new", 3, Some("3)")),
    ] {
        let input = Value::from_json(&json!({ "state": state, "n": n }).to_string()).unwrap();
        let run = engine.start(&workflow, input).await.unwrap();
        let outcome = run.outcome().await.unwrap();
        let Some(condition) = fails else {
            assert_eq!(outcome.output.to_json(), r#"{"n":4}"#);
            continue;
        };
        let error = outcome.error.unwrap().fault;
        assert_eq!(outcome.status.as_str(), "Cancelled");
        assert_eq!(error.code.as_deref(), Some("TriggerConditionNotMet"));
        assert!(error.message.contains(condition), "{}", error.message);
    }
}
