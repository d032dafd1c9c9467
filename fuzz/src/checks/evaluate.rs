//! Each text that parses evaluates to a value that can be stored, or to an error, and a second evaluation has the same
//! result. Checked in two modes: Loom, which has WDL and Jinja, and Azure.

use chrono::DateTime;
use std::sync::LazyLock;
use windlass_expression::{Context, Subject, Value};

const CONTEXT_TEXT: &str = r#"{
    "vars": {"n": 3, "list": [1, "a", null, {"k": [true]}], "text": "it's ü 😀"},
    "state": {"n": 2, "items": ["a", "b"], "user": {"city": "Oslo"}, "text": "x"},
    "actions": {"get": {"outputs": {"statusCode": 200, "body": {"id": 7, "xml": "<a b='1'><c/></a>"}}}, "later": null},
    "inputs": {"job": "j1"}, "params": {"p": 1}, "item": {"a": 1}, "loops": {"each": {"item": 1, "index": 2}},
    "results": {"scope": [{"name": "a"}]}, "trigger": {"outputs": {"body": "a=1&a=2"}}, "mode": "MODE"
}"#;

/// The context of each mode.
static CONTEXTS: LazyLock<[Value; 2]> = LazyLock::new(|| {
    ["loom", "azure"]
        .map(|mode| Value::from_json(&CONTEXT_TEXT.replace("MODE", mode)).expect("JSON"))
});

/// The maximum nesting depth of a value.
const DEEPEST: usize = 128;

pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let text = Value::text(text);
    let mut taken = false;
    for world in CONTEXTS.iter() {
        let run = || {
            let context = Context::new(world, DateTime::UNIX_EPOCH, 7).expect("a context");
            [Subject::Expression, Subject::Template, Subject::Condition]
                .map(|subject| context.evaluate(subject, &text))
        };
        let first = run();
        for outcome in &first {
            match outcome {
                Ok(value) => {
                    assert!(value.depth_within(DEEPEST), "it nests too deep");
                    taken = true;
                }
                Err(error) => assert!(!error.report().is_empty(), "an error without a word"),
            }
        }
        // Compared as text, because NaN is not equal to itself.
        assert_eq!(format!("{first:?}"), format!("{:?}", run()));
    }
    taken
}
