//! Workflows as pictures: the positions of the nodes and edges of every workflow of this repository, and the pictures
//! of some.

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use windlass_engine::{
    Detail, Dialect, Graph, LoadOptions, Node, Open, View, Workflow, graph, load, svg,
};

/// The workflows in `tests/` and `examples/`.
fn workflows() -> Vec<(PathBuf, Workflow)> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::from("examples"), PathBuf::from("tests")];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => left.push(path),
                Some("yaml" | "yml" | "json") => found.extend(workflow(&path)),
                _ => {}
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

/// The format of some files is known only from the folder that they are in.
fn workflow(path: &Path) -> Option<(PathBuf, Workflow)> {
    let dialects = [None, Some(Dialect::Canvas), Some(Dialect::Tea)];
    let loaded = dialects.into_iter().find_map(|dialect| {
        let options = LoadOptions {
            dialect,
            ..LoadOptions::default()
        };
        load(path, &options).ok()
    });
    Some((path.to_owned(), loaded?))
}

fn drawn(workflow: &Workflow, open: Open) -> Graph {
    let view = View { open, root: None };
    graph(workflow.program(), &view).unwrap()
}

/// The left, upper, right and lower side.
type Rect = [i64; 4];

fn rect(node: &Node) -> Rect {
    [node.x, node.y, node.x + node.width, node.y + node.height]
}

fn within([ax, ay, bx, by]: Rect, [cx, cy, dx, dy]: Rect) -> bool {
    cx <= ax && cy <= ay && bx <= dx && by <= dy
}

/// Whether a box or a line has a part inside another box; touching its side does not count.
fn cuts([ax, ay, bx, by]: Rect, [cx, cy, dx, dy]: Rect) -> bool {
    let across = |a: i64, b: i64, c: i64, d: i64| match a == b {
        true => c < a && a < d,
        false => a < d && c < b,
    };
    across(ax, bx, cx, dx) && across(ay, by, cy, dy)
}

fn check(name: &Path, graph: &Graph) {
    let at = |what: &str| format!("{}: {what}", name.display());
    let nodes: HashMap<&str, &Node> = graph.nodes.iter().map(|node| (&*node.id, node)).collect();
    assert_eq!(nodes.len(), graph.nodes.len(), "{}", at("an id twice"));
    let mut inside: HashMap<Option<&str>, Vec<&Node>> = HashMap::new();
    for node in &graph.nodes {
        inside.entry(node.parent.as_deref()).or_default().push(node);
    }
    for (frame, children) in &inside {
        let around = match frame {
            Some(frame) if nodes.contains_key(frame) => rect(nodes[frame]),
            // The whole graph, or the root.
            _ => [0, 0, graph.width, graph.height],
        };
        for (place, node) in children.iter().enumerate() {
            let own = rect(node);
            assert!(
                within(own, around),
                "{} {node:?}",
                at("outside of its frame")
            );
            for other in &children[..place] {
                assert!(
                    !cuts(own, rect(other)),
                    "{} {node:?} {other:?}",
                    at("overlaps")
                );
            }
        }
    }
    for edge in &graph.edges {
        let (from, to) = (nodes[&*edge.from], nodes[&*edge.to]);
        assert_eq!(
            from.parent,
            to.parent,
            "{} {edge:?}",
            at("leaves its frame")
        );
        let (first, last) = (edge.points[0], *edge.points.last().unwrap());
        let ([ax, _, bx, by], [cx, cy, dx, _]) = (rect(from), rect(to));
        let leaves = first[1] == by && ax <= first[0] && first[0] <= bx;
        let meets = last[1] == cy && cx <= last[0] && last[0] <= dx;
        assert!(leaves && meets, "{} {edge:?}", at("touches not its nodes"));
        assert_eq!(edge.label.is_some(), edge.label_at.is_some(), "{edge:?}");
        for pair in edge.points.windows(2) {
            let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
            assert!(
                ax == bx || ay == by,
                "{} {edge:?}",
                at("is not right-angled")
            );
            let part = [ax.min(bx), ay.min(by), ax.max(bx), ay.max(by)];
            for node in &inside[&from.parent.as_deref()] {
                assert!(
                    !cuts(part, rect(node)),
                    "{} {edge:?} {node:?}",
                    at("crosses a box")
                );
            }
        }
        if let Some([x, y]) = edge.label_at {
            let hit = |node: &&&Node| cuts([x, y, x + 1, y + 1], rect(node));
            let hit = inside[&from.parent.as_deref()].iter().find(hit);
            assert!(hit.is_none(), "{} {edge:?} {hit:?}", at("labels a box"));
        }
    }
}

#[test]
fn no_box_or_line_of_any_workflow_lies_on_another() {
    let all = workflows();
    assert!(all.len() > 200, "{} workflows were found", all.len());
    for (name, workflow) in &all {
        let open = drawn(workflow, Open::All);
        check(name, &open);
        assert_eq!(drawn(workflow, Open::All), open, "{}", name.display());
        let closed = drawn(workflow, Open::None);
        check(name, &closed);
        // A closed node is the same node as the open one.
        for node in &closed.nodes {
            let same = open.nodes.iter().find(|other| other.id == node.id).unwrap();
            let identity = |node: &Node| (node.name.clone(), node.path.clone(), node.kind.clone());
            assert_eq!(identity(node), identity(same));
        }
        // Each frame can be drawn alone.
        for frame in open.nodes.iter().filter(|node| node.frame) {
            let view = View {
                open: Open::All,
                root: Some(frame.id.clone()),
            };
            let alone = graph(workflow.program(), &view).unwrap();
            check(name, &alone);
            assert_eq!(alone.root.unwrap().id, frame.id);
        }
    }
}

/// The graphs of some workflows, as they should look. `WINDLASS_BLESS=1` writes them.
#[test]
fn some_graphs_look_as_they_did() {
    for (name, file) in [
        ("nested-loops", "examples/nested-loops.yaml"),
        ("code-review", "examples/canvas/code-review.yaml"),
        (
            "parallel-branches",
            "tests/azure/samples/parallel-branches.json",
        ),
        ("graph-goto", "tests/tea/graph-goto/workflow.yaml"),
    ] {
        let (_, workflow) = workflow(Path::new(file)).unwrap();
        let found = serde_json::to_value(drawn(&workflow, Open::All)).unwrap();
        let path = format!("tests/graph/{name}.json");
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            let text = serde_json::to_string_pretty(&found).unwrap();
            std::fs::write(&path, text + "\n").unwrap();
        }
        let wanted: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(found, wanted, "{path} (WINDLASS_BLESS=1 writes it)");
    }
}

#[test]
fn a_picture_holds_text_only_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.yaml");
    let text = "name: '<script>alert(1)</script>'
actions:
  check:
    type: if
    condition: \"@equals('</text><image onload=x>\\u202e\\u001b[31m', 'a & b')\"
    actions: { yes: { type: compose, inputs: 1 } }
";
    std::fs::write(&path, text).unwrap();
    let workflow = load(&path, &LoadOptions::default()).unwrap();
    let picture = svg(workflow.program(), Detail::default());
    assert!(picture.starts_with("<svg xmlns="), "{picture}");
    assert!(picture.contains("prefers-color-scheme:dark"), "{picture}");
    assert!(picture.contains("&lt;script&gt;"), "{picture}");
    for never in ["<script", "<image", "\u{202e}", "\u{1b}", "href", "url("] {
        assert!(!picture.contains(never), "{never:?} in {picture}");
    }
    // Every element is closed.
    let opened = picture.matches("<g ").count();
    assert_eq!(opened, picture.matches("</g>").count());
}
