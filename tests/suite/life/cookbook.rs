//! The files of `docs/guides/cookbook.md`, each run against the server of the examples.

use crate::life::first_use::Folder;
use crate::{app, support};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cookbook")
}

/// Runs a recipe with the `windlass` command; returns its outputs.
async fn run(recipe: &str, place: &Folder, inputs: &[&str], more: &[&str]) -> Value {
    let base = support::serve(app::router(app::Options::default())).await;
    let file = folder().join(format!("{recipe}.yaml"));
    let mut args = vec!["run".to_owned(), file.to_str().unwrap().to_owned()];
    for input in inputs {
        args.extend(["-i".to_owned(), input.replace("BASE", &base)]);
    }
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // The server of the examples runs in this runtime.
    let ended = tokio::task::block_in_place(|| place.run(&args).left(0, &[]));
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn every_recipe_is_on_the_page_and_in_a_test() {
    let page = include_str!("../../../docs/guides/cookbook.md");
    let tests = [include_str!("cookbook.rs"), include_str!("recipes.rs")].concat();
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(files.len() > 9, "{files:?}");
    for file in files {
        assert!(page.contains(&format!("cookbook/{file}.yaml")), "{file}");
        assert!(tests.contains(&format!("\"{file}\"")), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cron_and_bash() {
    let place = Folder::new();
    // Its files say that it is ready at the third check.
    let script =
        "if [ -e two ]; then echo ready; exit 0; fi\n[ -e one ] && touch two\ntouch one\nexit 1\n";
    let script = place.file("ready.sh", script);
    let command = format!("command=sh {}", script.display());
    let outputs = run("cron-and-bash", &place, &[&command, "every=10ms"], &[]).await;
    assert_eq!(outputs, json!({ "looks": 3, "said": "ready" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn tenacity() {
    let outputs = run("tenacity", &Folder::new(), &["base=BASE"], &[]).await;
    assert_eq!(outputs, json!({ "status": 200 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn temporal() {
    let place = Folder::new();
    let base = support::serve(app::router(app::Options::default())).await;
    let file = folder().join(format!("{}.yaml", "temporal"));
    let status = tokio::task::block_in_place(|| {
        let (base, file) = (format!("base={base}"), file.to_str().unwrap());
        let mut running = place.start(&["run", file, "-i", &base, "-i", "every=10ms", "--id", "t"]);
        // A signal that arrives early is stored, but not before the run is in the store.
        let payload = r#"{"by": "ada"}"#;
        let signal = ["signal", "t", "approve", "--payload", payload];
        while place.run(&signal).code != Some(0) {
            assert!(running.try_wait().unwrap().is_none());
        }
        assert!(running.wait().unwrap().success());
        place.run(&["status", "t", "-o", "json"]).left(0, &[]).out
    });
    let status: Value = serde_json::from_str(&status).unwrap();
    let outputs = &status["outcome"]["output"];
    assert_eq!(
        (&outputs["looks"], &outputs["approved_by"]),
        (&json!(6), &json!("ada"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn airflow() {
    let inputs = ["base=BASE", "poke_interval=10ms"];
    let outputs = run("airflow", &Folder::new(), &inputs, &[]).await;
    assert_eq!(outputs, json!({ "loaded": ["eu", "us", "apac"] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn n8n() {
    let outputs = run("n8n", &Folder::new(), &["base=BASE", "pause=10ms"], &[]).await;
    assert_eq!(outputs, json!({ "batches": 3, "sent": 5 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn step_functions() {
    let inputs = ["base=BASE", "seconds:=0.01"];
    let outputs = run("step-functions", &Folder::new(), &inputs, &[]).await;
    assert_eq!(outputs, json!({ "done": { "rows": 42 } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn link_pages() {
    let place = Folder::new();
    let outputs = run("link-pages", &place, &["url=BASE/pages/1"], &[]).await;
    assert_eq!(outputs, json!({ "pages": 4 }));
    assert_eq!(place.lines("rows.jsonl"), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn backfill() {
    let base = support::serve(app::router(app::Options::default())).await;
    let place = Folder::new();
    let file = folder().join(format!("{}.yaml", "backfill"));
    let url = format!("url={base}/flaky?after=0");
    // The second day fails twice, so the first run gives up after one retry.
    let days = r#"days=["a&fails=0", "b&fails=2", "c&fails=1"]"#;
    let run = [
        "run",
        file.to_str().unwrap(),
        "--id",
        "days",
        "-i",
        &url,
        "-i",
        days,
        "-i",
        "report=http://127.0.0.1:1/",
    ];
    let again = ["retry", "days", "--failed-items"];
    let [first, second] = tokio::task::block_in_place(|| {
        [&run[..], &again].map(|args| place.run(args).left(0, &[]).out)
    });
    let outputs: Value = serde_json::from_str(&first).unwrap();
    let left = json!({ "loaded": 2, "failed": ["b&fails=2"], "reported": false });
    assert_eq!(outputs, left);
    let outputs: Value = serde_json::from_str(&second).unwrap();
    let done = json!({ "loaded": 3, "failed": [], "reported": false });
    assert_eq!(outputs, done);
}

#[tokio::test(flavor = "multi_thread")]
async fn oauth() {
    let place = Folder::new();
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(
        secrets.path().join("CLIENT_SECRET"),
        "a-secret-of-the-client",
    )
    .unwrap();
    let secrets = secrets.path().to_str().unwrap();
    let inputs = ["base=BASE", "every=10ms"];
    let outputs = run("oauth", &place, &inputs, &["--secrets", secrets]).await;
    assert_eq!(outputs, json!({ "looks": 3 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn approval() {
    let inputs = ["base=BASE", "patience=10ms"];
    let outputs = run("approval", &Folder::new(), &inputs, &[]).await;
    assert_eq!(outputs, json!({ "approved": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn business_hours() {
    let inputs = [
        "base=BASE",
        "every=10ms",
        "opens:=0",
        "closes:=24",
        "weekend:=[]",
    ];
    let outputs = run("business-hours", &Folder::new(), &inputs, &[]).await;
    assert_eq!(outputs, json!({ "looks": 6 }));
}
