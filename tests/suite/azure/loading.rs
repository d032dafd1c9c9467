//! The files around a published definition: templates, apps, and missing files.

use super::samples::{document, strings, windlass, write};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn file(folder: &Path, name: &str, content: &Value) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn definition(actions: &Value) -> Value {
    json!({
        "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
        "contentVersion": "1.0.0.0",
        "triggers": { "manual": { "type": "Request", "kind": "Http" } },
        "actions": actions
    })
}

/// Runs a file; returns the outputs of its action `out`.
pub(super) async fn out(folder: &Path, file: &str, flags: &[&str]) -> Value {
    let state = folder.join("state").to_str().unwrap().to_owned();
    let mut args = vec!["run", file, "--state", &state, "-o", "json"];
    args.extend(flags);
    let ran = windlass(strings(&args)).await;
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{stderr}");
    document(&ran)
}

fn template(resources: &Value) -> Value {
    json!({
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "parameters": {
            "name": { "type": "string", "defaultValue": "night" },
            "count": { "type": "int", "defaultValue": 2 },
            "mail": { "type": "string" }
        },
        "variables": {
            "base": "[concat('https://', parameters('name'), '.example.org')]",
            "full": "[format('{0}/{1}', variables('base'), toUpper('x'))]",
            "map": { "a": { "b": "[parameters('count')]" } },
            "copy": [{ "name": "list", "count": 2, "input": "[concat('n', copyIndex('list'))]" }]
        },
        "resources": resources
    })
}

pub(super) fn workflow(name: &str, outputs: &Value) -> Value {
    let mut inner =
        definition(&json!({ "Wait": { "type": "Compose", "inputs": 1, "runAfter": {} } }));
    inner["outputs"] = json!({ "all": { "type": "Object", "value": outputs } });
    json!({
        "type": "Microsoft.Logic/workflows",
        "name": name,
        "properties": { "definition": inner }
    })
}

#[tokio::test]
async fn a_template_is_computed_as_a_deployment_would() {
    let dir = tempfile::tempdir().unwrap();
    let values = json!({
        "full": "[variables('full')]",
        "member": "[variables('map').a['b']]",
        "list": "[variables('list')]",
        "sum": "[add(parameters('count'), 3)]",
        "chosen": "[if(equals(parameters('name'), 'night'), 'yes', parameters('mail'))]",
        "id": "[resourceId('Microsoft.Web/connections', 'mail')]",
        "group": "[toLower(resourceGroup().name)]",
        "unique": "[length(uniqueString(resourceGroup().id))]",
        "key": "[listKeys('x', '2020').keys[0].value]",
        "escaped": "[[text]",
        "wdl": "@{concat('[', 'x')}"
    });
    let resources = json!([
        { "type": "Microsoft.Web/connections", "name": "mail" },
        { "type": "Microsoft.Logic/workflows", "condition": "[equals(1, 2)]", "name": "off", "properties": {} },
        workflow("[parameters('name')]", &values)
    ]);
    let path = file(dir.path(), "template.json", &template(&resources));
    let outputs = out(dir.path(), &path, &[]).await;
    let zeros = "00000000-0000-0000-0000-000000000000";
    assert_eq!(
        outputs["all"],
        json!({
            "full": "https://night.example.org/X",
            "member": 2,
            "list": ["n0", "n1"],
            "sum": 5,
            "chosen": "yes",
            "id": format!("/subscriptions/{zeros}/resourceGroups/group/providers/Microsoft.Web/connections/mail"),
            "group": "group",
            "unique": 13,
            "key": "listKeys",
            "escaped": "[text]",
            "wdl": "[x"
        })
    );
}

#[tokio::test]
async fn deployment_functions_give_what_the_reference_says() {
    let dir = tempfile::tempdir().unwrap();
    let values = json!({
        "format": "[format('{0:N2}|{1,4}|{2,-3}|{{}}', 1234.5, 'ab', 7)]",
        "later": "[dateTimeAdd('2020-01-30T00:00:00Z', 'P3DT1H')]",
        "earlier": "[dateTimeAdd('2020-01-30T00:00:00Z', '-PT1H', 'yyyy-MM-dd HH')]",
        "epoch": "[dateTimeFromEpoch(86400)]",
        "now": "[utcNow('yyyy')]",
        "union": "[union(createObject('a', createObject('b', 1)), createObject('a', createObject('c', 2)))]",
        "items": "[items(createObject('z', 1, 'a', 2))]",
        "contains": "[contains(createObject('Key', 1), 'key')]",
        "flatten": "[flatten(createArray(createArray(1, 2), createArray(), createArray(3)))]",
        "map": "[map(createArray('a', 'b'), lambda('x', 'i', format('{0}{1}', lambdaVariables('x'), lambdaVariables('i'))))]",
        "nested": "[map(createArray(1, 2), lambda('x', map(createArray(3, 4), lambda('y', mul(lambdaVariables('X'), lambdaVariables('y'))))))]",
        "filter": "[filter(createArray(3, 1, 2), lambda('x', less(lambdaVariables('x'), add(parameters('count'), 1))))]",
        "sort": "[sort(createArray(3, 1, 2, 1), lambda('a', 'b', less(lambdaVariables('a'), lambdaVariables('b'))))]",
        "reduce": "[reduce(createArray(1, 2, 3), 10, lambda('sum', 'x', add(lambdaVariables('sum'), lambdaVariables('x'))))]",
        "object": "[toObject(createArray('a', 'b'), lambda('x', lambdaVariables('x')), lambda('x', toUpper(lambdaVariables('x'))))]",
        "keyed": "[toObject(createArray(createObject('k', 'v')), lambda('x', lambdaVariables('x').k))]"
    });
    let path = file(
        dir.path(),
        "t.json",
        &template(&json!([workflow("w", &values)])),
    );
    assert_eq!(
        out(dir.path(), &path, &[]).await["all"],
        json!({
            "format": "1,234.50|  ab|7  |{}",
            "later": "2020-02-02T01:00:00Z",
            "earlier": "2020-01-29 23",
            "epoch": "1970-01-02T00:00:00Z",
            "now": "2000",
            "union": { "a": { "b": 1, "c": 2 } },
            "items": [{ "key": "a", "value": 2 }, { "key": "z", "value": 1 }],
            "contains": true,
            "flatten": [1, 2, 3],
            "map": ["a0", "b1"],
            "nested": [[3, 4], [6, 8]],
            "filter": [1, 2],
            "sort": [1, 1, 2, 3],
            "reduce": 16,
            "object": { "a": "A", "b": "B" },
            "keyed": { "v": { "k": "v" } }
        })
    );
    let copied = |count: &Value| {
        let mut copied = workflow("[concat('w', string(copyIndex()))]", &json!({}));
        copied["copy"] = json!({ "name": "w", "count": count });
        json!([copied])
    };
    for count in [json!(-1), json!("3"), json!(801), json!(1.5)] {
        let path = file(dir.path(), "copy.json", &template(&copied(&count)));
        let refused = windlass(strings(&["validate", &path])).await;
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            stderr.contains("must be a whole number from 0 to 800"),
            "{count}: {stderr}"
        );
    }
    let whole = template(&json!([workflow("w", &json!({}))]));
    let path = file(dir.path(), "whole.json", &whole);
    for (given, message) in [
        (json!({ "nam": { "value": "x" } }), "did you mean `name`?"),
        (
            json!({ "count": { "value": "2" } }),
            "the parameter `count` needs int",
        ),
        (json!({ "name": "bare" }), "has no `value`"),
        (json!({ "name": { "valeu": "bare" } }), "has no `value`"),
    ] {
        let given = file(dir.path(), "given.json", &json!({ "parameters": given }));
        let refused = windlass(strings(&["validate", &path, "--parameters", &given])).await;
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains(message), "{stderr}");
    }
    for (wrong, message) in [
        ("[format('{1}', 'a')]", "`format` has no argument for `{1}`"),
        ("[createObject('a')]", "needs keys and values in turn"),
        ("[flatten(createArray(1))]", "needs an array of arrays"),
        (
            "[map('a', lambda('x', 1))]",
            "`map` needs an array, and has string",
        ),
        (
            "[map(createArray(1), 2)]",
            "`map` needs a lambda with 2 variables at most",
        ),
        (
            "[filter(createArray(1), lambda('x', 'y'))]",
            "the lambda of `filter` must return true or false",
        ),
        (
            "[sort(createArray(1, 2), lambda('a', 'b', lambdaVariables('c')))]",
            "no lambda around it has the variable `c`",
        ),
    ] {
        let resources = json!([workflow("w", &json!({ "x": wrong }))]);
        let path = file(dir.path(), "wrong.json", &template(&resources));
        let refused = windlass(strings(&["validate", &path])).await;
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(
            (refused.status.code(), stderr.contains(message)),
            (Some(3), true),
            "{stderr}"
        );
    }
}

#[tokio::test]
async fn one_of_several_workflows_is_chosen_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let nested = json!({
        "type": "Microsoft.Resources/deployments",
        "name": "inner",
        "properties": {
            "expressionEvaluationOptions": { "scope": "inner" },
            "parameters": { "word": { "value": "[parameters('name')]" } },
            "template": {
                "parameters": { "word": { "type": "string" } },
                "resources": [workflow("second", &json!("[parameters('word')]"))]
            }
        }
    });
    let resources = json!([workflow("first", &json!("one")), nested]);
    let path = file(dir.path(), "template.json", &template(&resources));
    let refused = windlass(strings(&["run", &path])).await;
    assert_eq!(refused.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        stderr.contains("--workflow NAME: first, second"),
        "{stderr}"
    );
    let outputs = out(dir.path(), &path, &["--workflow", "second"]).await;
    assert_eq!(outputs["all"], "night");
    let both = windlass(strings(&["validate", &path, "-o", "json"])).await;
    assert!(both.status.success(), "{both:?}");
    let names: Vec<Value> = document(&both)
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["workflow"].clone())
        .collect();
    assert_eq!(names, ["first", "second"]);
}

#[tokio::test]
async fn missing_parts_of_a_template_are_reported_once_and_written_as_stubs() {
    let dir = tempfile::tempdir().unwrap();
    let mut inner = workflow("w", &json!("@parameters('to')"));
    let definition = &mut inner["properties"]["definition"];
    definition["outputs"]["read"] = json!({ "value": [
        "@triggerBody()['who']",
        "@body('Call')['items'][0]['id']",
        "@length(take(body('Send')['value'], 5))"
    ] });
    definition["parameters"] =
        json!({ "$connections": { "type": "Object" }, "to": { "type": "string" } });
    definition["actions"] = json!({
        "Send": {
            "type": "ApiConnection",
            "inputs": {
                "host": { "connection": { "name": "@parameters('$connections')['office-1']['connectionId']" } },
                "method": "post",
                "path": "/v2/Mail",
                "body": { "To": "@parameters('to')" }
            },
            "runAfter": {}
        },
        "Again": { "type": "OpenApiConnection", "inputs": { "host": { "apiId": "/apis/shared_x", "operationId": "Do" } }, "runAfter": {} },
        "Think": { "type": "SomeNewType", "inputs": 5, "runAfter": {} },
        "Call": { "type": "Http", "inputs": { "method": "GET", "uri": "https://127.0.0.1:1/" }, "runAfter": {} }
    });
    inner["properties"]["parameters"] = json!({
        "to": { "value": "[parameters('mail')]" },
        "$connections": { "value": { "office-1": { "id": "[concat(subscription().id, '/managedApis/office365')]" } } }
    });
    let path = file(dir.path(), "template.json", &template(&json!([inner])));
    let refused = windlass(strings(&["validate", &path])).await;
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(
        stderr.matches("error[missing-parameter]").count(),
        1,
        "{stderr}"
    );

    let stubs = dir.path().join("stubs.json").to_str().unwrap().to_owned();
    let written = windlass(strings(&["validate", &path, "--write-stubs", &stubs])).await;
    assert!(written.status.success(), "{written:?}");
    // Neither a workflow nor answers that a user has filled in are overwritten.
    for there in [&path, &stubs] {
        let before = std::fs::read(there).unwrap();
        let refused = windlass(strings(&["validate", &path, "--write-stubs", there])).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert_eq!(std::fs::read(there).unwrap(), before);
    }
    let made: Value = serde_json::from_str(&std::fs::read_to_string(&stubs).unwrap()).unwrap();
    assert_eq!(made["$parameters"], json!({ "mail": "mail" }));
    for action in ["Send", "Again", "Think", "Call"] {
        assert_eq!(made[action]["statusCode"], 200, "{made}");
    }
    let outputs = out(dir.path(), &path, &["--stub", &stubs]).await;
    assert_eq!(outputs["all"], "mail");
    assert_eq!(made["$input"], json!({ "who": "text" }));
    assert_eq!(outputs["read"], json!(["text", "text", 0]));

    // An answer of 400 and above fails the action, as a connector's does.
    let down = file(
        dir.path(),
        "down.json",
        &json!({
            "$parameters": { "mail": "ada" }, "$input": { "who": "me" }, "Do": 2, "SomeNewType": 3,
            "office365": { "statusCode": 503, "body": "down" }, "http": { "body": { "items": [] } },
        }),
    );
    let failed = windlass(strings(&["run", &path, "--stub", &down])).await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let stderr = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(stderr.contains("answered 503"), "{stderr}");

    // One name is enough to match: that of the connector, of the operation or of the type.
    let by = json!({
        "$parameters": { "mail": "ada" },
        "office365": { "body": { "value": [1] } }, "Do": 2, "SomeNewType": 3,
        "http": { "statusCode": 201, "body": { "items": [{ "id": 7 }] } }
    });
    let by = file(dir.path(), "by.json", &by);
    let outputs = out(dir.path(), &path, &["--stub", &by, "-i", "who=me"]).await;
    assert_eq!(outputs, json!({ "all": "ada", "read": ["me", 7, 1] }));
    let failing = json!({
        "$parameters": { "mail": "ada" },
        "office365": 1, "shared_x": 2, "Think": 3, "Call": { "statusCode": 404 }
    });
    let failing = file(dir.path(), "failing.json", &failing);
    let state = dir.path().join("failed").to_str().unwrap().to_owned();
    let args = ["run", &path, "--stub", &failing, "--state", &state];
    let failed = windlass(strings(&args)).await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
}

#[tokio::test]
async fn the_files_of_a_standard_app_are_named_by_their_path_and_its_workflow_by_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let reads =
        json!({ "Read": { "type": "Compose", "inputs": "@appsetting('KEY')", "runAfter": {} } });
    let content = json!({ "definition": definition(&reads), "kind": "Stateful" });
    file(dir.path(), "app/W/workflow.json", &content);
    let app = dir.path().join("app");
    for name in ["parameters.json", "local.settings.json"] {
        std::fs::write(app.join(name), "{ \"a\": {} \"b\" }").unwrap();
        let ran = windlass(strings(&["validate", app.to_str().unwrap()])).await;
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        let path = app.join(name).display().to_string();
        assert!(
            stderr.contains(&path) && !stderr.contains("../"),
            "{stderr}"
        );
        std::fs::write(app.join(name), "{ \"Values\": { \"KEY\": \"v\" } }").unwrap();
    }
    std::fs::remove_file(app.join("parameters.json")).unwrap();
    let ran = windlass(strings(&["validate", app.join("W").to_str().unwrap()])).await;
    assert!(ran.status.success(), "{ran:?}");
}

#[tokio::test]
async fn a_standard_app_brings_parameters_connections_and_settings() {
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("app");
    let mut order = definition(&json!({
        "Read": {
            "type": "ServiceProvider",
            "inputs": { "serviceProviderConfiguration": { "connectionName": "blob", "operationId": "read", "serviceProviderId": "/serviceProviders/AzureBlob" } },
            "runAfter": {}
        },
        "Call": { "type": "Function", "inputs": { "function": { "connectionName": "sizes" } }, "runAfter": {} }
    }));
    order["outputs"] = json!({ "all": { "type": "Array", "value": [
        "@parameters('place')", "@parameters('Plain')", "@appsetting('Region')"
    ] } });
    file(
        &app,
        "Order/workflow.json",
        &json!({ "definition": order, "kind": "Stateful" }),
    );
    file(
        &app,
        "Other/workflow.json",
        &json!({ "definition": definition(&json!({})), "kind": "Stateful" }),
    );
    file(
        &app,
        "parameters.json",
        &json!({
            "place": { "type": "String", "value": "@{appsetting('Region')}-1" },
            "plain": { "type": "String", "value": "p" }
        }),
    );
    file(
        &app,
        "connections.json",
        &json!({
            "functionConnections": { "sizes": { "function": { "id": "/sites/x/functions/resize" } } },
            "serviceProviderConnections": { "blob": { "parameterValues": { "key": "hidden-in-file" } } }
        }),
    );
    let stub = write(
        dir.path(),
        "stub.json",
        r#"{ "AzureBlob/read": 1, "function/resize": 2 }"#,
    );
    let path = app.to_str().unwrap();
    let several = windlass(strings(&["run", path])).await;
    let stderr = String::from_utf8_lossy(&several.stderr).into_owned();
    assert!(stderr.contains("--workflow NAME: Order, Other"), "{stderr}");

    let flags = ["--workflow", "order", "--stub", &stub];
    let mut args = vec!["validate", path];
    args.extend(flags);
    let missing = windlass(strings(&args)).await;
    let stderr = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(
        stderr
            .matches("the app setting `Region` has no value")
            .count(),
        1,
        "{stderr}"
    );

    let settings = write(dir.path(), "settings.json", r#"{ "Region": "north" }"#);
    let mut given = flags.to_vec();
    given.extend(["--app-settings", &settings]);
    let outputs = out(dir.path(), path, &given).await;
    assert_eq!(outputs["all"], json!(["north-1", "p", "north"]));
    file(
        &app,
        "local.settings.json",
        &json!({ "Values": { "Region": "west", "Unused": "hidden-too" } }),
    );
    let outputs = out(dir.path(), path, &flags).await;
    assert_eq!(outputs["all"], json!(["west-1", "p", "west"]));
    // Only what the workflow reads is stored with its runs.
    let state = dir.path().join("state").to_str().unwrap().to_owned();
    let dump = windlass(strings(&["list", "--state", &state, "-o", "json"])).await;
    let shown = String::from_utf8_lossy(&dump.stdout).into_owned();
    assert!(shown.contains("Order"), "{shown}");
}

#[tokio::test]
async fn app_settings_are_read_only_by_expressions() {
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("app");
    let cases = [
        ("v-@appsetting('KEY')", "v-@appsetting('KEY')"),
        (
            "call appsetting('KEY') please",
            "call appsetting('KEY') please",
        ),
        ("@@appsetting('KEY')", "@@appsetting('KEY')"),
        ("me@appsetting('KEY').com", "me@appsetting('KEY').com"),
        ("@{appsetting('KEY')}/x", "kk/x"),
        ("@appsetting('KEY')", "kk"),
        (
            "@{'}'}appsetting('KEY')@{AppSetting('KEY')}",
            "}appsetting('KEY')kk",
        ),
        (
            "@concat('appsetting(''KEY'')', appsetting('KEY'))",
            "appsetting('KEY')kk",
        ),
    ];
    let names: Vec<_> = (0..cases.len()).map(|index| format!("p{index}")).collect();
    let parameters = names.iter().zip(&cases).map(|(name, (text, _))| {
        let value = json!({ "type": "String", "value": text });
        (name.clone(), value)
    });
    let parameters = Value::Object(parameters.collect());
    let values: Vec<_> = names
        .iter()
        .map(|name| format!("@parameters('{name}')"))
        .collect();
    let mut reads = definition(&json!({}));
    reads["outputs"] = json!({
        "all": { "type": "Array", "value": values },
        "plain": { "type": "String", "value": "call appsetting('KEY') please" }
    });
    let content = json!({ "definition": reads, "kind": "Stateful" });
    file(&app, "W/workflow.json", &content);
    file(&app, "parameters.json", &parameters);
    let settings = json!({ "Values": { "KEY": "kk" } });
    file(&app, "local.settings.json", &settings);
    let outputs = out(dir.path(), app.to_str().unwrap(), &[]).await;
    let wanted: Vec<_> = cases.iter().map(|(_, value)| *value).collect();
    assert_eq!(outputs["all"], json!(wanted));
    assert_eq!(outputs["plain"], "call appsetting('KEY') please");
}

#[tokio::test]
async fn a_bad_file_of_an_app_is_reported_and_none_is_read_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let app = dir.path().join("app");
    std::fs::create_dir_all(app.join("Only")).unwrap();
    file(
        &app,
        "Only/workflow.json",
        &json!({ "definition": definition(&json!({})), "kind": "Stateful" }),
    );
    let path = app.to_str().unwrap();
    let validate_app = async || {
        let validated = windlass(strings(&["validate", path])).await;
        let stderr = String::from_utf8_lossy(&validated.stderr).into_owned();
        (validated.status.success(), stderr)
    };
    assert!(validate_app().await.0);
    for name in ["connections.json", "local.settings.json", "parameters.json"] {
        let place = app.join(name);
        for text in ["{\n  \"a\": 1,\n  bad\n}", "[1]"] {
            write(&app, name, text);
            let (fine, stderr) = validate_app().await;
            assert!(!fine && stderr.contains(name), "{stderr}");
            assert!(text == "[1]" || stderr.contains('3'), "no line: {stderr}");
            let secret = name != "parameters.json";
            assert!(
                !secret || !stderr.contains("bad\n"),
                "its text is printed: {stderr}"
            );
        }
        std::fs::remove_file(&place).unwrap();
        nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (fine, stderr) = validate_app().await;
        assert!(
            !fine && stderr.contains("it is not a regular file"),
            "{stderr}"
        );
        std::fs::remove_file(&place).unwrap();
        write(dir.path(), name, "{}");
        std::os::unix::fs::symlink(dir.path().join(name), &place).unwrap();
        let (fine, stderr) = validate_app().await;
        assert!(
            !fine && stderr.contains("leads out of the folder"),
            "{stderr}"
        );
        std::fs::remove_file(&place).unwrap();
    }
}

#[tokio::test]
async fn a_managed_identity_gets_its_token_from_a_handler() {
    let dir = tempfile::tempdir().unwrap();
    let base = crate::support::serve(crate::app::router(crate::app::Options::default())).await;
    let mut call = definition(&json!({
        "Call": {
            "type": "Http",
            "inputs": {
                "method": "POST",
                "uri": format!("{base}/echo"),
                "authentication": { "type": "ManagedServiceIdentity", "audience": "https://vault" }
            },
            "runAfter": {}
        }
    }));
    let sent = json!("@body('Call')['headers']['authorization']");
    call["outputs"] = json!({ "sent": { "type": "String", "value": sent } });
    let path = file(dir.path(), "call.json", &call);
    let validated = windlass(strings(&["validate", &path])).await;
    assert!(validated.status.success(), "{validated:?}");
    let stderr = String::from_utf8_lossy(&validated.stderr).into_owned();
    assert!(stderr.contains("warning[missing-token]"), "{stderr}");
    let stub = write(
        dir.path(),
        "stub.json",
        r#"{ "ManagedServiceIdentity": { "access_token": "t0" } }"#,
    );
    let outputs = out(dir.path(), &path, &["--stub", &stub]).await;
    assert_eq!(outputs["sent"], "Bearer t0");
    let handlers = write(
        dir.path(),
        "handlers.json",
        r#"{ "ManagedServiceIdentity": { "command": ["sh", "-c", "grep -q vault && echo t1"] } }"#,
    );
    let outputs = out(dir.path(), &path, &["--handlers", &handlers]).await;
    assert_eq!(outputs["sent"], "Bearer t1");
    let state = dir.path().join("none").to_str().unwrap().to_owned();
    let failed = windlass(strings(&["run", &path, "--state", &state])).await;
    let stderr = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        stderr.contains("register a handler `ManagedServiceIdentity`"),
        "{stderr}"
    );
}

#[tokio::test]
async fn hints_use_the_terms_of_a_definition_and_secure_values_are_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut bad = definition(&json!({ "Untyped": { "inputs": 1, "runAfter": {} } }));
    bad["parameters"] = json!({
        "one": { "type": "securestring", "defaultValue": "a" },
        "two": { "type": "securestring", "defaultValue": "b" }
    });
    let path = file(dir.path(), "bad.json", &bad);
    let validated = windlass(strings(&["validate", &path])).await;
    let stderr = String::from_utf8_lossy(&validated.stderr).into_owned();
    assert!(
        stderr.contains("InitializeVariable") && !stderr.contains("doUntil"),
        "{stderr}"
    );
    assert_eq!(
        stderr.matches("warning[secure-value]").count(),
        1,
        "{stderr}"
    );
    assert!(stderr.contains("`one`, `two`"), "{stderr}");
}

#[tokio::test]
async fn a_diagram_has_no_box_for_the_order_and_closes_what_is_deep() {
    let dir = tempfile::tempdir().unwrap();
    let compose = |after: &Value| json!({ "type": "Compose", "inputs": 1, "runAfter": after });
    let inner =
        json!({ "type": "Scope", "actions": { "Deep": compose(&json!({})) }, "runAfter": {} });
    let all = definition(&json!({
        "First": compose(&json!({})),
        "Outer": {
            "type": "Scope",
            "actions": { "Inner": inner, "Beside": compose(&json!({})) },
            "runAfter": { "First": ["Succeeded"] }
        }
    }));
    let path = file(dir.path(), "all.json", &all);
    for (flags, inside, outside) in [
        (&[][..], &["First", "Outer", "Inner", "Deep"][..], &[][..]),
        (&["--depth", "1"], &["First", "Inner", "Beside"], &["Deep"]),
        (&["--depth", "0"], &["First", "Outer"], &["Inner", "Beside"]),
    ] {
        for format in ["mermaid", "dot", "svg"] {
            let mut args = vec!["compile", &path, "-o", format];
            args.extend(flags);
            let drawn = windlass(strings(&args)).await;
            let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
            assert!(!drawn.contains("predecessors"), "{drawn}");
            assert!(
                inside.iter().all(|name| drawn.contains(name)),
                "{flags:?} {drawn}"
            );
            assert!(
                !outside.iter().any(|name| drawn.contains(name)),
                "{flags:?} {drawn}"
            );
        }
    }
    let drawn = windlass(strings(&[
        "compile", &path, "-o", "mermaid", "--depth", "0",
    ]))
    .await;
    let drawn = String::from_utf8_lossy(&drawn.stdout).into_owned();
    // The edges: from the start to the first box, between the boxes, and to the end.
    assert_eq!(drawn.matches("-->").count(), 3, "{drawn}");
}

#[tokio::test]
async fn the_text_of_an_input_has_the_type_that_the_trigger_declares() {
    let dir = tempfile::tempdir().unwrap();
    let mut inner = definition(&json!({
        "out": { "type": "Compose", "inputs": "@triggerBody()", "runAfter": {} }
    }));
    inner["triggers"]["manual"]["inputs"] = json!({ "schema": { "type": "object", "properties": {
        "n": { "type": "integer" },
        "x": { "type": "number" },
        "on": { "type": "boolean" },
        "id": { "type": "string" }
    } } });
    let file = file(dir.path(), "typed.json", &inner);
    let flags = [
        "-i", "n=4", "-i", "x=1.5", "-i", "on=true", "-i", "id=7", "-i", "more=8",
    ];
    let output = out(dir.path(), &file, &flags).await;
    assert_eq!(
        output["out"],
        json!({ "n": 4, "x": 1.5, "on": true, "id": "7", "more": "8" })
    );
    // A value in JSON has its own type.
    let output = out(dir.path(), &file, &["-i", "n:=\"4\""]).await;
    assert_eq!(output["out"], json!({ "n": "4" }));
    for command in ["run", "test"] {
        let refused = windlass(strings(&[command, &file, "-i", "n=four"])).await;
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        let expected = "input `n` must be an integer, not \"four\"";
        assert!(stderr.contains(expected), "{stderr}");
    }
    // A stored definition has the same types.
    let state = dir.path().join("state").display().to_string();
    let put = windlass(strings(&[
        "workflow", "put", "typed", &file, "--state", &state,
    ]))
    .await;
    assert!(put.status.success(), "{put:?}");
    let start = [
        "workflow", "start", "typed", "-o", "json", "--state", &state, "-i",
    ];
    let started = windlass(strings(&[&start[..], &["n=4"]].concat())).await;
    let output: Value = serde_json::from_slice(&started.stdout).unwrap();
    assert_eq!(output["out"], json!({ "n": 4 }));
    let refused = windlass(strings(&[&start[..], &["n=four"]].concat())).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
