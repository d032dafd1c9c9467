//! Runs and iterations that succeeded although one of their actions failed: in strips, lists, filters and counts.

use super::{COUNT, Server, windlass};
use serde_json::{Value, json};

/// Each 100th of 700 iterations has an action that fails, and the loop continues. Most of them are archived.
const HANDLED: &str = r#"
name: handled
variables: { n: 0 }
actions:
  poll:
    type: until
    condition: "@greaterOrEquals(variables('n'), 700)"
    limit: { count: 1000, timeout: PT1H }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      tried: { type: compose, inputs: "@div(1, mod(variables('n'), 100))", continue_on_error: true }
"#;

/// The action fails in the first attempt of its block.
const RETRIED: &str = r#"
name: retried
variables: { n: 0 }
actions:
  block:
    type: scope
    retry: { type: fixed, count: 2, interval: PT0.01S }
    actions:
      more: { type: incrementVariable, inputs: { name: n, value: 1 } }
      tried: { type: compose, inputs: "@div(1, sub(variables('n'), 1))" }
"#;

async fn get(server: &Server, path: &str) -> Value {
    let (status, value) = server.get(path).await;
    assert_eq!(status, 200, "{path}: {value}");
    value
}

fn runs(list: &Value) -> Vec<&str> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["workflow"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn success_with_handled_failures_has_a_word_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for text in [COUNT, RETRIED, HANDLED] {
        let run = server.begin(text, json!(null)).await;
        let end = server.end(&run).await;
        assert_eq!(end["status"], "Succeeded", "{end}");
    }
    let list = get(&server, "/v1/runs?facets=true&detail=true").await;
    assert_eq!(runs(&list), ["handled", "retried", "count"]);
    assert_eq!(
        list["facets"]["status"],
        json!({ "Succeeded": 3, "SucceededWithFailures": 1 })
    );
    let run = &list["runs"][0];
    assert_eq!(
        (&run["status"], &run["failed_actions"]),
        (&json!("Succeeded"), &json!(7))
    );
    let recent = run["loop"]["recent"].as_str().unwrap();
    assert_eq!(recent, format!("{}w", "s".repeat(23)));
    assert!(list["runs"][1].get("failed_actions").is_none(), "{list}");
    let list = get(&server, "/v1/runs?status=succeededwithfailures").await;
    assert_eq!(runs(&list), ["handled"]);
    let list = get(&server, "/v1/runs?status=Succeeded").await;
    assert_eq!(runs(&list).len(), 3);

    let run = list["runs"][0]["run"].as_str().unwrap();
    let strip = get(
        &server,
        &format!("/v1/runs/{run}/strip?loop=poll&buckets=1000"),
    )
    .await;
    let totals = &strip["totals"];
    assert_eq!(
        (&totals["succeeded"], &totals["succeeded_with_failures"]),
        (&json!(700), &json!(7)),
        "{totals}"
    );
    assert_eq!(strip["cells"][99]["succeeded_with_failures"], 1);
    assert_eq!(strip["cells"][100]["succeeded_with_failures"], 0);
    assert_eq!(strip["messages"][0]["count"], 7);
    let path = format!("/v1/runs/{run}/iterations?loop=poll&status=SucceededWithFailures");
    let page = get(&server, &path).await;
    let numbers = page["iterations"].as_array().unwrap().iter();
    let numbers: Vec<u64> = numbers
        .map(|one| one["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [99, 199, 299, 399, 499, 599, 699]);
    assert!(
        page["iterations"][0]["error"]
            .as_str()
            .unwrap()
            .contains("zero")
    );
    assert_eq!(page["iterations"][0]["status"], "Succeeded");

    let printed = |args: &[&str]| {
        let output = windlass(dir.path(), args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let status = printed(&["status", run]);
    assert!(status.contains("succeeded with failures"), "{status}");
    assert!(status.contains("failures  7 actions failed"), "{status}");
    let listed = printed(&["list", "--status", "SucceededWithFailures"]);
    let words = ["SucceededWithFailures", "handled"];
    assert!(words.iter().all(|word| listed.contains(word)), "{listed}");
    assert_eq!(listed.lines().count(), 2, "{listed}");
    server.stop();
    printed(&["prune", "--status", "SucceededWithFailures"]);
    let listed = printed(&["list"]);
    assert!(
        listed.contains("retried") && !listed.contains("handled"),
        "{listed}"
    );
}

/// Items that each wait in a loop.
const ITEMS: &str = r#"
name: items
actions:
  each:
    type: foreach
    foreach: "@range(1, 300)"
    on_error: continue
    concurrency: 50
    actions:
      check: { type: compose, inputs: "@div(1, mod(item(), 2))" }
      poll:
        type: until
        condition: "@false"
        limit: { count: 100, timeout: PT1H }
        actions:
          nap: { type: wait, interval: PT1H }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_hundreds_of_items_fits_on_a_screen() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(ITEMS, json!(null)).await;
    // Half of the items fail before the next waiting item begins.
    for waiting in ["each#0/poll", "each#98/poll"] {
        let path = format!("/v1/runs/{run}");
        while !get(&server, &path).await["loops"]
            .to_string()
            .contains(waiting)
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    let output = windlass(dir.path(), &["status", &run]);
    let status = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = status.lines().collect();
    assert!(lines.len() <= 12, "{status}");
    assert!(
        status.contains("loop      each#…/poll  in 49 more iterations or items"),
        "{status}"
    );
    assert!(
        status.contains("of 300 ended (49 failed), 50 running"),
        "{status}"
    );
}
