//! `data.validate`, `validate.schema`, `validate.extraction`, `reflection.evaluate` by a schema,
//! `data.merge`, `json.parse`.

use super::ai::Model;
use super::{attempt, gist, soon};
use serde_json::{Value as Json, json};

async fn give(executor: &str, inputs: Json) -> Json {
    soon(attempt(executor, inputs)).await.unwrap()
}

#[tokio::test]
async fn data_is_validated_with_paths() {
    let schema = json!({
        "type": "object",
        "required": ["name", "email"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1 },
            "email": { "type": "string", "format": "email" },
            "age": { "type": "integer", "minimum": 0 },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 2 },
            "kind": { "type": ["null", "string"] },
        },
    });
    let errors = |data: Json| {
        let inputs = json!({ "data": data, "schema": schema });
        async move {
            let given = give("data.validate", inputs).await;
            assert_eq!(given["success"], true);
            assert_eq!(given["valid"], given["errors"] == json!([]));
            given["errors"].clone()
        }
    };
    assert_eq!(
        errors(json!({ "name": "A", "email": "no address" })).await,
        json!([])
    );
    for (data, path, message) in [
        (json!({ "email": "e" }), "", "'name' is a required property"),
        (
            json!({ "name": 5, "email": "e" }),
            "name",
            "5 is not of type 'string'",
        ),
        (
            json!({ "name": "", "email": "e" }),
            "name",
            "'' should be non-empty",
        ),
        (
            json!({ "name": "A", "email": "e", "age": -1 }),
            "age",
            "-1 is less than the minimum of 0",
        ),
        (
            json!({ "name": "A", "email": "e", "age": "x'y" }),
            "age",
            "\"x'y\" is not of type 'integer'",
        ),
        (
            json!({ "name": "A", "email": "e", "tags": ["a", "c"] }),
            "tags.1",
            "'c' is not one of ['a', 'b']",
        ),
        (
            json!({ "name": "A", "email": "e", "tags": ["a", "b", "a"] }),
            "tags",
            "['a', 'b', 'a'] is too long",
        ),
        (
            json!({ "name": "A", "email": "e", "kind": true }),
            "kind",
            "True is not of type 'null', 'string'",
        ),
        (
            json!({ "name": "A", "email": "e", "x": null }),
            "",
            "Additional properties are not allowed ('x' was unexpected)",
        ),
        (json!(null), "", "Data is None"),
    ] {
        let expected = json!([{ "path": path, "message": message }]);
        assert_eq!(errors(data.clone()).await, expected, "{data}");
    }
    let two = errors(json!({ "age": 1.5 })).await;
    assert_eq!(two.as_array().unwrap().len(), 3, "all of them: {two}");
}

#[tokio::test]
async fn a_schema_may_reference_only_sibling_documents() {
    let person = json!({
        "type": "object",
        "properties": { "age": { "$ref": "parts/number.json#/definitions/age" } },
    });
    let number = json!({ "definitions": { "age": { "$ref": "small.json" } } });
    let small = json!({ "type": "integer", "maximum": 9 });
    let inputs = |schema: Json, data: Json| {
        json!({
            "schema": schema, "data": data,
            "schemas": {
                "schemas/my person.json": person,
                "schemas/parts/number.json": number,
                "schemas/parts/small.json": small,
            },
        })
    };
    let whole = json!({ "$ref": "schemas/my%20person.json" });
    let given = give("data.validate", inputs(whole.clone(), json!({ "age": 10 }))).await;
    assert_eq!(given["errors"][0]["path"], "age");
    let within = json!({ "properties": { "it": { "$ref": "./schemas/parts/number.json#/definitions/age" } } });
    let given = give("data.validate", inputs(within, json!({ "it": "x" }))).await;
    assert_eq!(
        given["errors"][0]["message"],
        "'x' is not of type 'integer'"
    );
    // A text that is a number is validated as a number, in all referenced documents.
    let schema = json!({ "$ref": "schemas/parts/number.json#/definitions/age" });
    let mut coerced = inputs(schema, json!("5"));
    assert_eq!(
        give("reflection.evaluate", coerced.clone()).await["valid"],
        true
    );
    coerced["coerce"] = json!(false);
    assert_eq!(give("reflection.evaluate", coerced).await["valid"], false);

    for (to, shown) in [
        ("other.json", "other.json"),
        (
            "https://example.org/schema.json",
            "https://example.org/schema.json",
        ),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("../../etc/passwd", "etc/passwd"),
    ] {
        let fault = soon(attempt(
            "data.validate",
            inputs(json!({ "$ref": to }), json!(1)),
        ))
        .await;
        let fault = fault.unwrap_err();
        assert_eq!(gist(&fault), json!(["input", null, false, null]));
        let message = format!("the schema refers to `{shown}`, which is not there");
        assert!(fault.message.starts_with(&message), "{}", fault.message);
    }
    let bad = soon(attempt(
        "data.validate",
        json!({ "schema": { "type": 5 }, "data": 1 }),
    ))
    .await;
    let bad = bad.unwrap_err();
    assert_eq!(&*bad.kind, "input");
    assert!(
        bad.message
            .starts_with("`schema` is not a valid JSON Schema"),
        "{}",
        bad.message
    );
}

#[tokio::test]
async fn an_output_is_coerced_before_it_fails() {
    let schema = json!({
        "type": "object",
        "required": ["n"],
        "properties": {
            "n": { "type": "integer" }, "x": { "type": "number" }, "b": { "type": "boolean" },
            "t": { "type": "string" }, "l": { "type": "array", "items": { "type": "integer" } },
        },
    });
    let evaluate = |data: Json| {
        let inputs = json!({ "data": data, "evaluator_type": "schema", "schema": schema });
        async move { give("reflection.evaluate", inputs).await }
    };
    let fine = json!({ "valid": true, "score": 1.0, "errors": [], "suggestions": [] });
    let data = json!({ "n": " 5 ", "x": "1.5", "b": "Yes", "t": { "a": 1 }, "l": ["1", 2] });
    assert_eq!(evaluate(data).await, fine);
    assert_eq!(
        evaluate(json!({ "n": "five" })).await,
        json!({
            "valid": false, "score": 0.0,
            "errors": [{
                "path": "n", "message": "'five' is not of type 'integer'",
                "schema_path": ["properties", "n", "type"],
            }],
            "suggestions": ["Fix type at path: n"],
        })
    );
    let given = evaluate(json!({ "b": "maybe" })).await;
    assert_eq!(
        given["suggestions"][0]
            .as_str()
            .unwrap()
            .split(" at ")
            .count(),
        2
    );
    assert_eq!(given["errors"].as_array().unwrap().len(), 2, "{given}");
}

#[tokio::test]
async fn a_schema_itself() {
    let schema = json!({ "type": "object" });
    assert_eq!(
        give("validate.schema", json!({ "schema": schema })).await,
        json!({ "schema": schema, "valid": true })
    );
    let given = give("validate.schema", json!({ "schema": { "type": 5 } })).await;
    assert_eq!(
        (&given["valid"], &given["schema"]),
        (&json!(false), &Json::Null)
    );
    assert!(given["error"].is_string(), "{given}");
    let given = give("validate.schema", json!({ "schema": schema, "data": null })).await;
    let errors = json!([{ "path": "", "message": "None is not of type 'object'" }]);
    assert_eq!(given, json!({ "valid": false, "errors": errors }));
}

/// The output without its time, which must be present.
async fn extraction(inputs: Json) -> Json {
    let mut given = give("validate.extraction", inputs).await;
    let at = given["validated_at"].take();
    let at = at.as_str().unwrap();
    assert!(chrono::DateTime::parse_from_rfc3339(at).is_ok(), "{at}");
    given.as_object_mut().unwrap().remove("validated_at");
    given
}

#[tokio::test]
async fn an_extraction_has_what_its_schema_wants() {
    let schema = json!({
        "entities": { "required_fields": ["name", "type"] },
        "relationships": {
            "types": ["mother", "affair"], "required_fields": ["subject"],
            "type_requirements": { "affair": ["start_date"] },
        },
    });
    let fine = json!({ "valid": true, "errors": [] });
    assert_eq!(extraction(json!({ "entities": [{}] })).await, fine);
    let all_there = json!({
        "schema": schema,
        "entities": [{ "name": "Ann", "type": "person" }],
        "relationships": [{ "type": "mother", "subject": "Ann", "object": "Bob" }],
    });
    assert_eq!(extraction(all_there).await, fine);
    let entity = json!({ "name": "Ann", "type": null });
    let (friend, affair) = (
        json!({ "type": "friend" }),
        json!({ "type": "affair", "subject": "A" }),
    );
    let lacking = json!({
        "schema": schema, "entities": [entity], "relationships": [friend, affair],
    });
    assert_eq!(
        extraction(lacking).await,
        json!({ "valid": false, "errors": [
            {
                "type": "missing_required_field", "path": "entities[0].type", "entity": entity,
                "expected": "type", "actual": null,
                "message": "Entity missing required field 'type'",
            },
            {
                "type": "missing_required_field", "path": "relationships[0].subject",
                "relationship": friend, "expected": "subject", "actual": null,
                "message": "Relationship missing required field 'subject'",
            },
            {
                "type": "invalid_relationship_type", "path": "relationships[0].type",
                "relationship": friend, "expected": ["mother", "affair"], "actual": "friend",
                "message": "Invalid relationship type 'friend', expected one of ['mother', 'affair']",
            },
            {
                "type": "missing_type_specific_field", "path": "relationships[1].start_date",
                "relationship": affair, "expected": "start_date", "actual": null,
                "message": "Relationship type 'affair' requires field 'start_date'",
            },
        ] })
    );
    let fault = soon(attempt("validate.extraction", json!({ "entities": "x" }))).await;
    assert_eq!(
        fault.unwrap_err().message,
        "`entities` must be a list, not string"
    );
}

#[tokio::test]
async fn rules_in_prolog_come_after_the_schema() {
    let rules = "validation_error(missing_mother, Child) :-\n  entity(Child, child),\n  \
                 \\+ relationship(mother, _, Child).";
    let inputs = json!({
        "entities": [{ "name": "Bob", "type": "child" }, { "name": "O'Hara\n", "type": "child" }],
        "relationships": [{ "type": "mother", "subject": "Ann", "object": "Bob" }],
        "constraints": { "rules": rules },
    });
    assert_eq!(
        extraction(inputs).await,
        json!({ "valid": false, "errors": [{
            "type": "prolog_constraint_violation", "error_type": "missing_mother",
            "context": "O'Hara\n", "message": "Constraint violation: missing_mother(O'Hara\n)",
        }] })
    );
    let broken = extraction(json!({ "entities": [{}], "constraints": { "rules": "a b" } })).await;
    assert_eq!(broken["errors"][0]["type"], "prolog_error");
}

#[tokio::test]
async fn probes_ask_a_model() {
    let model = Model::default()
        .says("Yes.")
        .says("No, it does not.")
        .says("Perhaps");
    let url = model.serve().await;
    let probe = json!({
        "for_each": "relationship", "where": "type == 'mother'",
        "probe": "Is {{ subject }} the mother of {{ object }}?",
    });
    let inputs = json!({
        "relationships": [
            { "type": "mother", "subject": "Ann", "object": "Bob" },
            { "type": "father", "subject": "Tom", "object": "Bob" },
            { "type": "mother", "subject": "{{ object }}", "object": "Eve" },
            { "type": "mother", "subject": "never", "object": "asked" },
        ],
        "probes": [probe], "provider": "openai", "base_url": url, "model": "m",
    });
    let given = extraction(inputs.clone()).await;
    assert_eq!(given["valid"], false);
    assert_eq!(
        given["errors"][0]["question"],
        "Is {{ object }} the mother of Eve?"
    );
    assert_eq!(given["errors"][0]["type"], "semantic_probe_failed");
    assert_eq!(model.requests().len(), 2);
    let fault = soon(attempt("validate.extraction", inputs))
        .await
        .unwrap_err();
    assert_eq!(&*fault.kind, "ai");
}

#[tokio::test]
async fn json_is_parsed() {
    for (inputs, data) in [
        (
            json!({ "text": "{\"a\": [1, 2.5]}" }),
            json!({ "a": [1, 2.5] }),
        ),
        (json!({ "text": { "a": 1 } }), json!({ "a": 1 })),
        (
            json!({ "text": "{ // c\n \"a\": \"// no, ]\", /* c */ \"b\": [1, 2,\n], }", "strict": false }),
            json!({ "a": "// no, ]", "b": [1, 2] }),
        ),
    ] {
        let expected = json!({ "data": data, "success": true });
        assert_eq!(give("json.parse", inputs).await, expected);
    }
    let given = give("json.parse", json!({ "text": "{,}" })).await;
    assert_eq!(
        given,
        json!({
            "success": false,
            "error": "JSON parse error: key must be a string",
            "error_type": "parse",
            "position": { "line": 1, "column": 2 },
        })
    );
    let inputs = json!({ "text": "no", "strict": false, "default": 1 });
    let given = give("json.parse", inputs).await;
    assert_eq!(given, json!({ "data": 1, "success": true }));
    let given = give("json.parse", json!({ "text": null })).await;
    assert_eq!(given["error"], "Input text is None");
}

#[tokio::test]
async fn data_is_merged() {
    let sources =
        json!([{ "a": { "x": 1, "y": 1 }, "b": 1 }, { "a": { "y": 2 }, "c": [1] }, { "c": [2] }]);
    for (strategy, result) in [
        (
            json!(null),
            json!({ "a": { "x": 1, "y": 2 }, "b": 1, "c": [2] }),
        ),
        (
            json!("deep"),
            json!({ "a": { "x": 1, "y": 2 }, "b": 1, "c": [2] }),
        ),
        (
            json!("shallow"),
            json!({ "a": { "y": 2 }, "b": 1, "c": [2] }),
        ),
        (json!("replace"), json!({ "c": [2] })),
    ] {
        let inputs = json!({ "sources": sources, "strategy": strategy });
        let expected = json!({ "result": result, "source_count": 3, "success": true });
        assert_eq!(give("data.merge", inputs).await, expected);
    }
    for wrong in [
        json!({}),
        json!({ "sources": [1] }),
        json!({ "sources": [{}], "strategy": "odd" }),
    ] {
        let given = give("data.merge", wrong.clone()).await;
        assert_eq!(
            json!([given["success"], given["error_type"]]),
            json!([false, "merge"]),
            "{wrong}"
        );
    }
}
