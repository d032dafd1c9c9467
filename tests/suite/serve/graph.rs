//! Workflows as pictures: the nodes and edges of a run, and of a text.

use super::{Server, answer};
use reqwest::Method;
use serde_json::{Value, json};

const NESTED: &str = "name: nested
actions:
  pages:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    limit: { count: 5, timeout: PT1H }
    delay: PT1S
    actions:
      items:
        type: foreach
        foreach: [a, b]
        actions:
          poll:
            type: compose
            inputs: 1
            retry: { type: fixed, count: 3, interval: PT1S }
          check:
            type: if
            condition: \"@equals(item(), 'a')\"
            actions: { yes: { type: compose, inputs: 1 } }
            else: { actions: { no: { type: compose, inputs: 2 } } }
  stop: { type: terminate, runStatus: Failed }
";

fn node<'a>(graph: &'a Value, name: &str) -> &'a Value {
    let nodes = graph["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["name"] == name);
    found.unwrap_or_else(|| panic!("no node {name} in {graph:#}"))
}

fn names(graph: &Value) -> Vec<&str> {
    let nodes = graph["nodes"].as_array().unwrap().iter();
    let names = nodes.filter(|node| node["kind"] != "choice");
    let names = names.filter_map(|node| node["name"].as_str());
    names.filter(|name| !name.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gives_the_graph_of_its_workflow() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let run = server.begin(NESTED, json!(null)).await;
    let get = async |query: &str| server.get(&format!("/v1/runs/{run}/graph{query}")).await;
    let (status, graph) = get("").await;
    assert_eq!(status, 200, "{graph}");
    let pages = node(&graph, "pages");
    assert_eq!(
        (&pages["kind"], &pages["type"], &pages["line"]),
        (&json!("loop"), &json!("until"), &json!(3))
    );
    assert_eq!(pages["condition"], "@equals(variables('loopIndex'), 2)");
    assert_eq!(
        pages["limits"],
        json!({ "count": "5", "timeout": "1h", "delay": "every 1s" })
    );
    assert_eq!(
        (&pages["frame"], &pages["foldable"]),
        (&json!(true), &json!(true))
    );
    let poll = node(&graph, "poll");
    assert_eq!(poll["path"], "pages/items/poll");
    assert_eq!(poll["parent"], node(&graph, "items")["id"]);
    let edges = graph["edges"].as_array().unwrap();
    let again = edges.iter().find(|edge| edge["kind"] == "again").unwrap();
    assert_eq!(again["back"], true);
    let no = node(&graph, "no");
    let other = edges.iter().find(|edge| edge["to"] == no["id"]).unwrap();
    assert_eq!(
        (&other["kind"], &other["label"]),
        (&json!("branch"), &json!("else"))
    );

    // A closed node has the same id. It can be opened by an id, by a path and by a path of a run.
    let (_, closed) = get("?open=none").await;
    assert_eq!(names(&closed), ["pages", "stop"]);
    assert_eq!(node(&closed, "pages")["id"], pages["id"]);
    assert_eq!(node(&closed, "pages")["frame"], false);
    let id = pages["id"].as_str().unwrap();
    for open in [id, "pages", "pages%232"] {
        let (_, open) = get(&format!("?open={open}")).await;
        assert_eq!(names(&open), ["pages", "items", "stop"]);
    }
    let (_, both) = get("?open=pages,pages/items").await;
    assert_eq!(names(&both), ["pages", "items", "poll", "check", "stop"]);
    let (_, inner) = get("?root=pages%230/items%231").await;
    assert_eq!(inner["root"]["name"], "items");
    assert_eq!(names(&inner), ["poll", "check", "yes", "no"]);

    for (query, message) in [
        ("?open=pagse", "did you mean `pages`"),
        ("?root=nix", "pages, pages/items"),
        (
            "?root=pages/items/poll",
            "nothing in the node `pages/items/poll`",
        ),
        ("?closed=a", "closed"),
    ] {
        let (status, problem) = get(query).await;
        assert_eq!(status, 400, "{query} {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(message), "{query} {problem}");
    }
    let (status, _) = server.get("/v1/runs/nobody/graph").await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_right_has_a_graph() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let check = async |query: &str, text: &str| {
        let request = server.ask(Method::POST, &format!("/v1/validate{query}"));
        answer(request.body(text.to_owned())).await
    };
    let (_, without) = check("", NESTED).await;
    assert_eq!(without.get("graph"), None);
    let (status, with) = check("?graph=true&open=none", NESTED).await;
    assert_eq!(status, 200, "{with}");
    assert_eq!(names(&with["graph"]), ["pages", "stop"]);
    let (status, problem) = check("?graph=true&root=nix", NESTED).await;
    assert_eq!(
        (status, &problem["status"]),
        (400, &json!(400)),
        "{problem}"
    );
    let (status, wrong) = check("?graph=true", "actions: { a: { type: nix } }").await;
    assert_eq!((status, wrong.get("graph")), (200, None), "{wrong}");
}
