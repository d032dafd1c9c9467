//! `file.read` and `file.write`: whole files, and faults as values.

use super::{attempt, gist, soon};
use serde_json::{Value as Json, json};

async fn give(executor: &str, inputs: Json) -> Json {
    soon(attempt(executor, inputs)).await.unwrap()
}

#[tokio::test]
async fn files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/deep/note.txt");
    let path = path.to_str().unwrap();
    for content in ["longer than the next", "h\u{e9}"] {
        let given = give("file.write", json!({ "path": path, "content": content })).await;
        assert_eq!(given, json!({ "path": path, "success": true }));
        let url = format!("file://{path}");
        let given = give("file.read", json!({ "path": url })).await;
        assert_eq!(given, json!({ "content": content, "success": true }));
    }
    let absent = folder.path().join("absent");
    let given = give("file.read", json!({ "path": absent })).await;
    let error = format!("File not found: {}", absent.display());
    assert_eq!(
        given,
        json!({ "success": false, "error": error, "error_type": "not_found" })
    );
    let given = give("file.read", json!({ "path": folder.path() })).await;
    let error = format!("[Errno 21] Is a directory: '{}'", folder.path().display());
    assert_eq!(
        (&given["error"], &given["error_type"]),
        (&json!(error), &json!("read_error"))
    );
    let given = give("file.write", json!({ "path": path, "content": { "a": 1 } })).await;
    assert_eq!(given["error"], "write() argument must be str, not dict");
    let remote = json!({ "path": "s3://bucket/key" });
    let fault = soon(attempt("file.read", remote)).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["input", null, false, null]));
}
