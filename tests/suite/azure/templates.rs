//! What a deployment would refuse in an ARM template, and what its functions return.

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

/// The exit code and standard error of `validate` for a file.
async fn exit_and_stderr(path: &str, flags: &[&str]) -> (Option<i32>, String) {
    let mut args = vec!["validate", path];
    args.extend(flags);
    let ran = windlass(strings(&args)).await;
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code(), stderr)
}

/// The template must be refused with a message that has these words.
async fn refused(folder: &Path, template: &Value, message: &str) {
    let path = file(folder, "refused.json", template);
    let (code, stderr) = exit_and_stderr(&path, &[]).await;
    assert_eq!(
        (code, stderr.contains(message)),
        (Some(3), true),
        "{message}: {stderr}\n{template}"
    );
    assert_eq!(
        stderr.matches(message).count(),
        1,
        "reported once: {stderr}"
    );
}

/// Each expression of `values` must have the value given with it, and each of `wrong` must be refused with the words
/// given with it.
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
    for (text, message) in wrong {
        let resources = json!([workflow("w", &json!(text))]);
        refused(dir.path(), &template(&json!({}), &resources), message).await;
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
            ("[dateTimeAdd('soon', 'P1D')]", "`soon` is not a valid time"),
            ("[dateTimeAdd('2020-01-30', 'P9999Y')]", "1 to 9999"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_value_that_a_template_does_not_allow_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = |declared: &Value| {
        let resources = json!([workflow("w", &json!("[parameters('p')]"))]);
        template(&json!({ "p": declared }), &resources)
    };
    for (declared, value, message) in [
        (
            json!({ "type": "int", "minValue": 3 }),
            json!(2),
            "`p` may not be 2",
        ),
        (
            json!({ "type": "int", "maxValue": 3 }),
            json!(4),
            "`p` may not be 4",
        ),
        (
            json!({ "type": "string", "minLength": 2 }),
            json!("a"),
            "may not have the length 1",
        ),
        (
            json!({ "type": "array", "maxLength": 1 }),
            json!([1, 2]),
            "may not have the length 2",
        ),
        (
            json!({ "type": "bool" }),
            json!("true"),
            "the parameter `p` needs bool",
        ),
        (
            json!({ "type": "string", "allowedValues": ["a"] }),
            json!("b"),
            "may not be \"b\"",
        ),
        (
            json!({ "type": "array", "allowedValues": ["a", "b"] }),
            json!(["a", "c"]),
            "may not be [\"a\",\"c\"]",
        ),
    ] {
        // The parameters have their values from a file, from a default, from a computed default, and in a nested
        // deployment.
        let path = file(dir.path(), "given.json", &whole(&declared));
        let given = json!({ "p": { "value": value } });
        let given = file(dir.path(), "values.json", &given);
        let (code, stderr) = exit_and_stderr(&path, &["--parameters", &given]).await;
        assert!(code == Some(3) && stderr.contains(message), "{stderr}");

        let mut defaulted = declared.clone();
        defaulted["defaultValue"] = value.clone();
        refused(dir.path(), &whole(&defaulted), message).await;

        defaulted["defaultValue"] = json!("[variables('v')]");
        let mut computed = whole(&defaulted);
        computed["variables"] = json!({ "v": value });
        refused(dir.path(), &computed, message).await;

        let inner = nested(&json!({ "p": { "value": value } }), &whole(&declared));
        refused(dir.path(), &template(&json!({}), &json!([inner])), message).await;
    }
    for (declared, message) in [
        (
            json!({ "defaultValue": 1 }),
            "the parameter `p` has no type",
        ),
        (
            json!({ "type": "text", "defaultValue": 1 }),
            "unknown type `text` of the parameter",
        ),
        (
            json!({ "type": "int", "defaultValue": 1, "minValue": "0" }),
            "`minValue` of the parameter `p` must be a whole number",
        ),
    ] {
        refused(dir.path(), &whole(&declared), message).await;
    }
    for declared in [
        json!({ "type": "array", "defaultValue": ["a"], "allowedValues": ["a", "b"] }),
        json!({ "type": "String", "defaultValue": "äö", "maxLength": 2, "minLength": 2 }),
        // A value that only Azure knows may be one of the allowed values.
        json!({ "type": "string", "defaultValue": "[resourceGroup().location]", "allowedValues": ["x"] }),
    ] {
        let path = file(dir.path(), "good.json", &whole(&declared));
        let (code, stderr) = exit_and_stderr(&path, &[]).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{declared}");
    }
}

/// A deployment inside a template, with values for its parameters.
fn nested(given: &Value, template: &Value) -> Value {
    json!({
        "type": "Microsoft.Resources/deployments",
        "name": "inner",
        "properties": {
            "expressionEvaluationOptions": { "scope": "inner" },
            "parameters": given,
            "template": template
        }
    })
}

#[tokio::test]
async fn a_nested_deployment_is_given_values_or_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let parameters =
        json!({ "c": { "type": "string" }, "known": { "type": "string", "defaultValue": "k" } });
    let inner = template(
        &json!({ "p": { "type": "int" }, "unused": { "type": "string", "defaultValue": "" } }),
        &json!([workflow("w", &json!("[parameters('p')]"))]),
    );
    let whole = |given: &Value| template(&parameters, &json!([nested(given, &inner)]));
    for (given, message) in [
        (
            json!({ "p": { "value": "[parameters('c')]" } }),
            "the parameter `c` has no value",
        ),
        (
            json!({ "p": { "value": "[nope()]" } }),
            "unknown deployment function `nope`",
        ),
        (
            json!({ "p": { "value": "[parameters('known')]" } }),
            "needs int",
        ),
        (
            json!({ "p": { "value": 1 }, "q": { "value": 1 } }),
            "no parameter `q`",
        ),
        (json!({}), "no value for its parameter `p`"),
    ] {
        refused(dir.path(), &whole(&given), message).await;
    }
    // A resource without a value is not requested, and a value that only Azure knows may be a number.
    for given in [
        json!({ "p": { "value": 1 }, "unused": { "value": "[parameters('c')]" } }),
        json!({ "p": { "value": "[reference('x').outputs.count.value]" } }),
        json!({ "p": "[if(true(), createObject('value', 2), createObject('value', 3))]" }),
    ] {
        let path = file(dir.path(), "good.json", &whole(&given));
        let (code, stderr) = exit_and_stderr(&path, &[]).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{given}");
    }
}

#[tokio::test]
async fn a_condition_is_computed_or_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let parameters = json!({ "c": { "type": "bool" } });
    let when = |condition: &str| {
        let mut maybe = workflow("maybe", &json!(1));
        maybe["condition"] = json!(condition);
        template(&parameters, &json!([workflow("w", &json!(1)), maybe]))
    };
    for (condition, message) in [
        ("[nope()]", "unknown deployment function `nope`"),
        ("[parameters('d')]", "unknown parameter `d`"),
        ("[parameters('c')]", "the parameter `c` has no value"),
        ("[greater('a', 1)]", "has no value here"),
        ("[null()]", "neither true nor false"),
    ] {
        refused(dir.path(), &when(condition), message).await;
    }
    // A condition that only Azure knows may be true, and other resources have no effect.
    let mut unknown = when("[reference('x').enabled]");
    unknown["resources"][0] = json!({ "type": "Microsoft.Web/sites", "condition": "[nope()]" });
    let path = file(dir.path(), "good.json", &unknown);
    assert_eq!(out(dir.path(), &path, &[]).await["all"], 1);

    let mut copied = workflow("[concat('w', copyIndex())]", &json!("[copyIndex()]"));
    copied["copy"] = json!({ "name": "c", "count": 3 });
    copied["condition"] = json!("[equals(copyIndex(), 1)]");
    let path = file(
        dir.path(),
        "copy.json",
        &template(&json!({}), &json!([copied])),
    );
    assert_eq!(out(dir.path(), &path, &[]).await["all"], 1);
}

#[tokio::test]
async fn a_nested_deployment_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let inner = template(
        &json!({ "p": { "type": "int" } }),
        &json!([workflow(
            "[concat('w', parameters('p'))]",
            &json!("[parameters('p')]")
        )]),
    );
    let mut copied = nested(&json!({ "p": { "value": "[copyIndex(5)]" } }), &inner);
    copied["copy"] = json!({ "name": "all", "count": 3 });
    copied["condition"] = json!("[not(equals(copyIndex('all'), 1))]");
    let path = file(
        dir.path(),
        "copy.json",
        &template(&json!({}), &json!([copied])),
    );
    let ran = windlass(strings(&["run", &path])).await;
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(stderr.contains("--workflow NAME: w5, w7"), "{stderr}");
    let outputs = out(dir.path(), &path, &["--workflow", "w7"]).await;
    assert_eq!(outputs["all"], 7);
}

#[tokio::test]
async fn collections_are_read_as_a_deployment_does() {
    let object = "createObject('a', 1, 'b', createObject('c', 2))";
    let items = "createArray('x', 'y', 'z')";
    let values = [
        (format!("[length({object})]"), json!(2)),
        (String::from("[skip('hélice', 2)]"), json!("lice")),
        (String::from("[skip('ab', 5)]"), json!("")),
        (String::from("[take('hélice', 2)]"), json!("hé")),
        (String::from("[take('ab', -1)]"), json!("")),
        (format!("[take({items}, 1)]"), json!(["x"])),
        (
            String::from("[split('a;b,c', createArray(',', ';'))]"),
            json!(["a", "b", "c"]),
        ),
        (String::from("[split('a;b', ';')]"), json!(["a", "b"])),
        (format!("[indexFromEnd({items}, 1)]"), json!("z")),
        (format!("[tryIndexFromEnd({items}, 4)]"), json!(null)),
        (format!("[tryGet({object}, 'b', 'c')]"), json!(2)),
        (format!("[tryGet({object}, 'x', 'c')]"), json!(null)),
        (format!("[tryGet({items}, 1)]"), json!("y")),
        (
            format!("[shallowMerge(createArray({object}, createObject('b', createObject())))]"),
            json!({"a": 1, "b": {}}),
        ),
        (
            format!("[mapValues({object}, lambda('x', string(lambdaVariables('x'))))]"),
            json!({"a": "1", "b": "{\"c\":2}"}),
        ),
        (
            String::from(
                "[groupBy(createArray('ox', 'cow', 'yak', 'emu'), lambda('x', length(lambdaVariables('x'))))]",
            ),
            json!({"2": ["ox"], "3": ["cow", "yak", "emu"]}),
        ),
        // The members of what only a deployment knows are unknown.
        (String::from("[items(reference('x').map)]"), json!([])),
        (
            String::from("[mapValues(reference('x').map, lambda('x', 1))]"),
            json!({}),
        ),
        (
            String::from("[dateTimeToEpoch('2001-09-09T01:46:40Z')]"),
            json!(1_000_000_000),
        ),
    ];
    let values: Vec<(&str, Value)> = values
        .iter()
        .map(|(text, value)| (text.as_str(), value.clone()))
        .collect();
    gives(
        &values,
        &[
            (
                "[indexFromEnd(createArray('x', 'y', 'z'), 4)]",
                "`indexFromEnd` requests item 4 from the end, of 3",
            ),
            (
                "[indexFromEnd(createArray('x', 'y', 'z'), 0)]",
                "item 0 from the end",
            ),
            (
                "[shallowMerge(createArray(1))]",
                "`shallowMerge` needs an array of objects",
            ),
            ("[tryGet(createObject())]", "needs 2 or more arguments"),
            (
                "[tryIndexFrmEnd(createArray(1), 1)]",
                "did you mean `tryIndexFromEnd`?",
            ),
            (
                "[mapValues(createArray(1), lambda('x', 1))]",
                "`mapValues` needs an object, and has array",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn functions_refuse_arguments_that_they_do_not_take() {
    gives(
        &[
            ("[concat('a', 1, true())]", json!("a1True")),
            (
                "[concat(createArray(1), createArray('b'))]",
                json!([1, "b"]),
            ),
            ("[padLeft(7, 3, '0')]", json!("007")),
            ("[if(reference('x').on, 'a', 'b')]", json!("b")),
        ],
        &[
            ("[if('true', 'a', 'b')]", "`if` needs true or false first"),
            ("[if(1, 'a', 'b')]", "`if` needs true or false first"),
            ("[if(true(), 'a')]", "`if` needs 3 arguments, and has 2"),
            ("[concat('a', createArray(1))]", "text, or only arrays"),
            (
                "[concat(createArray(1), 'a')]",
                "only arrays after an array",
            ),
            ("[concat('a', createObject('b', 1))]", "and has object"),
            ("[items('x')]", "`items` needs an object, and has string"),
            (
                "[objectKeys(createArray(1))]",
                "`objectKeys` needs an object",
            ),
            ("[padLeft('a', 'x', 'y')]", "a whole number as the length"),
            ("[padLeft('a', 3, 'xy')]", "one character to fill with"),
        ],
    )
    .await;
    let dir = tempfile::tempdir().unwrap();
    for (call, has) in [("[ns.twice()]", 0), ("[ns.twice(1, 2)]", 2)] {
        let mut own = template(&json!({}), &json!([workflow("w", &json!(call))]));
        own["functions"] = json!([{ "namespace": "ns", "members": { "twice": {
            "parameters": [{ "name": "x", "type": "int" }],
            "output": { "type": "int", "value": "[mul(parameters('x'), 2)]" }
        } } }]);
        let message = format!("`ns.twice` needs 1 arguments, and has {has}");
        refused(dir.path(), &own, &message).await;
    }
}
