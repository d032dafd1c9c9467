//! Logic Apps definitions in the shapes they come in.

use windlass::dialect::{self, Caps};
use windlass::hir::{Block, StepKind, Workflow};
use windlass::model::{Dialect, OnLimit, Test};
use windlass::source::{Bundle, SourceFile};

fn bundle(name: &str) -> Bundle {
    let path = format!("{}/tests/azure/{name}.json", env!("CARGO_MANIFEST_DIR"));
    Bundle::single(
        format!("{name}.json"),
        std::fs::read_to_string(path).unwrap(),
    )
}

fn read(bundle: &Bundle) -> Workflow {
    let (workflow, diagnostics) = dialect::read(bundle, None, &Caps::default());
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
        let (workflow, diagnostics) = dialect::read(&bundle, None, &Caps::default());
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
    let trigger = workflow.trigger.unwrap();
    assert!(trigger.recurrence.is_some());
    assert_eq!(&*trigger.name, "Recurrence");
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
