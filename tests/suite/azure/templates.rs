//! What a deployment would refuse of an ARM template, and what its functions give.

use super::loading::{file, out, workflow};
use super::samples::{strings, windlass};
use serde_json::{Value, json};
use std::path::Path;

/// A template with these parameters and resources.
fn template(parameters: &Value, resources: &Value) -> Value {
    json!({
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "parameters": parameters,
        "resources": resources
    })
}

/// What `validate` says about a file.
async fn said(path: &str, flags: &[&str]) -> (Option<i32>, String) {
    let mut args = vec!["validate", path];
    args.extend(flags);
    let ran = windlass(strings(&args)).await;
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code(), said)
}

/// The template must be refused, with these words.
async fn refused(folder: &Path, template: &Value, told: &str) {
    let path = file(folder, "refused.json", template);
    let (code, said) = said(&path, &[]).await;
    assert_eq!(
        (code, said.contains(told)),
        (Some(3), true),
        "{told}: {said}\n{template}"
    );
    assert_eq!(said.matches(told).count(), 1, "told once: {said}");
}

/// Every expression must have the value beside it, and every other must be refused with the words
/// beside it.
async fn gives(values: &[(&str, Value)], wrong: &[(&str, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let (texts, expected): (Vec<Value>, Vec<Value>) = values
        .iter()
        .map(|(text, value)| (json!(text), value.clone()))
        .unzip();
    let resources = json!([workflow("w", &json!(texts))]);
    let path = file(dir.path(), "t.json", &template(&json!({}), &resources));
    let outputs = out(dir.path(), &path, &[]).await;
    assert_eq!(outputs["all"], json!(expected));
    for (text, told) in wrong {
        let resources = json!([workflow("w", &json!(text))]);
        refused(dir.path(), &template(&json!({}), &resources), told).await;
    }
}

#[tokio::test]
async fn durations_are_added_as_a_deployment_does() {
    gives(
        &[
            (
                "[dateTimeAdd('2023-02-01 00:00:00Z', 'P1M')]",
                json!("2023-03-03T00:00:00Z"),
            ),
            (
                "[dateTimeAdd('2024-01-01 00:00:00Z', 'P1Y')]",
                json!("2024-12-31T00:00:00Z"),
            ),
            (
                "[dateTimeAdd('2020-04-07 14:53:14Z', '-P3Y')]",
                json!("2017-04-08T14:53:14Z"),
            ),
            (
                "[dateTimeAdd('2020-01-30T00:00:00Z', 'PT0.5S', 'o')]",
                json!("2020-01-30T00:00:00.5000000Z"),
            ),
            (
                "[dateTimeAdd('2020-01-30T00:00:00.25', '-PT0.5S', 'o')]",
                json!("2020-01-29T23:59:59.7500000"),
            ),
            (
                "[dateTimeAdd(utcNow(), 'PT1H')]",
                json!("2000-01-01T01:00:00Z"),
            ),
        ],
        &[
            ("[dateTimeAdd('2020-01-30', 'junk')]", "and has `junk`"),
            ("[dateTimeAdd('2020-01-30', '1h')]", "and has `1h`"),
            ("[dateTimeAdd('soon', 'P1D')]", "`soon` is no moment"),
            ("[dateTimeAdd('2020-01-30', 'P9999Y')]", "1 to 9999"),
        ],
    )
    .await;
}
