//! Commands about loom files and expressions, as a user gives them to the real binary.

use std::process::{Command, Output};

fn windlass(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_schema_of_a_format_is_printed_or_said_to_be_missing() {
    let loom = windlass(&["schema", "loom"]);
    assert!(loom.status.success());
    let schema: serde_json::Value = serde_json::from_slice(&loom.stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).is_ok());
    assert_eq!(
        out(&windlass(&["schema"])),
        out(&loom),
        "loom is the house format"
    );
    let azure = windlass(&["schema", "azure"]);
    assert_eq!(azure.status.code(), Some(2));
    assert!(
        err(&azure).contains("Microsoft.Logic/schemas/2016-06-01"),
        "{}",
        err(&azure)
    );
    let unknown = windlass(&["schema", "lom"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("loom, azure, tea and canvas"),
        "{}",
        err(&unknown)
    );
}
