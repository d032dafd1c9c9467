//! Whatever parses evaluates to a value that can be stored, or to an error; soon, and the same
//! twice.
#![no_main]

use chrono::DateTime;
use libfuzzer_sys::fuzz_target;
use windlass::expression::{Context, Subject, Value};

const WORLD: &str = r#"{
    "vars": {"n": 3, "list": [1, "a", null, {"k": [true]}], "text": "it's ü 😀"},
    "state": {"n": 2, "items": ["a", "b"], "user": {"city": "Oslo"}, "text": "x"},
    "actions": {"get": {"outputs": {"statusCode": 200, "body": {"id": 7, "xml": "<a b='1'><c/></a>"}}}, "later": null},
    "inputs": {"job": "j1"}, "params": {"p": 1}, "item": {"a": 1}, "loops": {"each": {"item": 1, "index": 2}},
    "results": {"scope": [{"name": "a"}]}, "trigger": {"outputs": {"body": "a=1&a=2"}}
}"#;

fuzz_target!(|text: &str| {
    let world = Value::from_json(WORLD).expect("the world is JSON");
    let run = || {
        let context = Context::new(&world, DateTime::UNIX_EPOCH, 7).expect("the world is a context");
        [Subject::Expression, Subject::Template, Subject::Condition]
            .map(|subject| context.evaluate(subject, &Value::text(text)))
    };
    let first = run();
    for outcome in &first {
        match outcome {
            Ok(value) => assert!(value.to_json().len() < 256 << 20),
            Err(error) => {
                let _ = error.report();
            }
        }
    }
    assert_eq!(format!("{first:?}"), format!("{:?}", run()));
});
