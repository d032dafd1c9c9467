//! `key`, `format` and `columns` of `appendFile` and `paginate`: no row is written twice, and other programs can read
//! the file.

use super::first_use::Folder;
use super::paginate::serve;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Pages of ten rows whose ids overlap by two, as in a list that grows while it is read.
const PAGES: usize = 12;
const IDS: usize = 8 * PAGES + 2;

/// A server of such pages. It holds the answers to the `held` requests until the test sends a signal.
fn overlapping(held: &'static [usize]) -> (String, Receiver<()>, Sender<()>) {
    let (reached, is_reached) = channel();
    let (go, may_go) = channel();
    let mut requests = 0;
    let (base, _) = serve(move |path| {
        requests += 1;
        if held.contains(&requests) {
            reached.send(()).unwrap();
            may_go.recv().unwrap();
        }
        let page: usize = path
            .split_once("page=")
            .map_or(1, |(_, page)| page.parse().unwrap());
        let first = 8 * (page - 1);
        let ids = first..first + 10;
        let rows: Vec<Value> = ids
            .map(|id| json!({ "id": id, "name": format!("row, {id}"), "tags": [id] }))
            .collect();
        match page {
            1..=PAGES => (200, vec![], json!({ "items": rows })),
            _ => (200, vec![], json!({ "items": [] })),
        }
    });
    (base, is_reached, go)
}

/// Runs the command, killed at each held request; returns its standard output.
fn paginate(folder: &Folder, more: &[&str], held: &'static [usize]) -> String {
    let (base, reached, go) = overlapping(held);
    let mut line = vec!["paginate", &base, "--next", "page", "--items", "body.items"];
    line.extend(more);
    for _ in held {
        let mut child = folder.start(&line);
        reached.recv().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        go.send(()).unwrap();
    }
    folder.run(&line).left(0, &[]).out
}

fn ids(rows: impl Iterator<Item = Value>) -> Vec<u64> {
    rows.map(|row| row["id"].as_u64().unwrap()).collect()
}

fn all_ids() -> Vec<u64> {
    (0..IDS as u64).collect()
}

const KILLS: &[usize] = &[2, 5, 6, 11];

#[test]
fn rows_with_a_key_are_stored_once_in_each_format_through_kills() {
    let folder = Folder::new();
    let lines = paginate(&folder, &["--key", "id", "--to", "rows"], KILLS);
    let result: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(result["rows"], IDS, "{result}");
    let text = folder.read("rows");
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(ids(rows), all_ids());

    let key = "item.name ~ item.id";
    paginate(
        &folder,
        &["--key", key, "--format", "json", "--to", "all.json"],
        KILLS,
    );
    let rows: Vec<Value> = serde_json::from_str(&folder.read("all.json")).unwrap();
    assert_eq!(ids(rows.into_iter()), all_ids());

    paginate(&folder, &["--key", "id", "--to", "rows.csv"], KILLS);
    let csv = folder.read("rows.csv");
    let (header, rows) = csv.split_once('\n').unwrap();
    assert_eq!(header, "id,name,tags");
    let expected: String = (0..IDS)
        .map(|id| format!("{id},\"row, {id}\",[{id}]\n"))
        .collect();
    assert_eq!(rows, expected);

    let printed = paginate(&folder, &["--key", "id", "--to", "-"], KILLS);
    let rows = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(ids(rows), all_ids());
    // The run's own files are removed at its end.
    folder.wait_for(|names| {
        let left = names.iter().filter(|name| !name.starts_with('.'));
        let left: HashSet<&str> = left.map(String::as_str).collect();
        left.is_subset(&HashSet::from([
            "rows",
            "all.json",
            "rows.csv",
            "windlass-state",
            "state",
        ]))
    });
}

#[test]
fn without_a_key_every_row_is_stored() {
    let folder = Folder::new();
    let csv = ["--to", "rows.csv", "--columns", "name,id"];
    paginate(&folder, &csv, &[]);
    let text = folder.read("rows.csv");
    assert!(text.starts_with("name,id\n\"row, 0\",0\n"), "{text}");
    assert_eq!(text.lines().count(), 1 + 10 * PAGES);
    let wrong = [
        "paginate",
        "http://localhost/",
        "--to",
        "rows",
        "--columns",
        "a",
    ];
    folder
        .run(&wrong)
        .left(2, &["`--columns` needs `--format csv`"]);
}

/// Runs a file with one append, with these inputs in addition to the path.
fn append(folder: &Folder, file: &str, inputs: &str) -> Value {
    let name = format!("{file}.yaml");
    let text = format!(
        "actions:\n  add: {{ type: appendFile, inputs: {{ path: {file}, {inputs} }} }}\noutputs: \"@outputs('add')\"\n"
    );
    folder.file(&name, text);
    let out = folder.run(&["run", &name]).left(0, &[]).out;
    serde_json::from_str(&out).unwrap()
}

fn refused(folder: &Folder, file: &str, inputs: &str, parts: &[&str]) {
    let name = format!("{file}.yaml");
    // A new file is created when its length is measured.
    let content = || std::fs::read(folder.path().join(file)).unwrap_or_default();
    let before = content();
    let text =
        format!("actions:\n  add: {{ type: appendFile, inputs: {{ path: {file}, {inputs} }} }}\n");
    folder.file(&name, text);
    folder.run(&["run", &name]).left(1, parts);
    assert_eq!(content(), before);
}

#[test]
fn later_runs_know_the_keys_of_earlier_ones() {
    let folder = Folder::new();
    let rows = "rows: [{ id: 1 }, { id: '1' }, { id: 2 }, { id: 1, again: true }]";
    let first = append(&folder, "rows.jsonl", &format!("{rows}, key: id"));
    assert_eq!(
        (&first["rows"], &first["duplicates"]),
        (&json!(3), &json!(1))
    );
    let second = append(
        &folder,
        "rows.jsonl",
        "rows: [{ id: 2 }, { id: 3 }], key: id",
    );
    assert_eq!(
        (&second["rows"], &second["duplicates"]),
        (&json!(1), &json!(1))
    );
    let one = append(&folder, "rows.jsonl", "row: { id: 3 }, key: id");
    assert_eq!(one["rows"], 0, "{one}");
    assert_eq!(folder.lines("rows.jsonl"), 4);
    // The index is built again from the list of keys.
    std::fs::remove_file(folder.path().join("rows.jsonl.keys.index")).unwrap();
    let again = append(
        &folder,
        "rows.jsonl",
        "rows: [{ id: 3 }, { id: 4 }], key: id",
    );
    assert_eq!((&again["rows"], folder.lines("rows.jsonl")), (&json!(1), 5));
    // Rows of another program, and keys of another expression.
    let other = "rows: [{ id: 5, name: x }], key: name";
    refused(&folder, "rows.jsonl", other, &["has keys of another `key`"]);
    append(&folder, "rows.jsonl", "row: { id: 6 }");
    let message = "rows that were written without `key`";
    refused(
        &folder,
        "rows.jsonl",
        "rows: [{ id: 7 }], key: id",
        &[message],
    );
    // Without the list the keys are unknown.
    std::fs::remove_file(folder.path().join("rows.jsonl.keys")).unwrap();
    let message = "rows.jsonl.keys, which has their keys, does not exist";
    refused(
        &folder,
        "rows.jsonl",
        "rows: [{ id: 5 }], key: id",
        &[message],
    );
    folder.file("rows.jsonl.keys", "something else entirely");
    refused(
        &folder,
        "rows.jsonl",
        "rows: [{ id: 5 }], key: id",
        &["is not a list of keys"],
    );
    let message = "row 2 of 2 has no key";
    refused(
        &folder,
        "new",
        "rows: [{ id: 5 }, { name: x }], key: id",
        &[message],
    );
}

#[test]
fn a_replaced_file_has_no_keys_of_the_old_one() {
    let folder = Folder::new();
    append(&folder, "rows", "rows: [{ id: 1 }, { id: 2 }], key: id");
    append(&folder, "rows", "rows: [{ id: 7 }], key: id, replace: true");
    assert_eq!(folder.read("rows"), "{\"id\":7}\n");
    let message = "rows.keys, which has their keys, does not exist";
    refused(&folder, "rows", "rows: [{ id: 1 }], key: id", &[message]);
}

#[test]
fn files_continue_in_their_format() {
    let folder = Folder::new();
    for rows in ["[]", "[1, 2]", "[]", "[{ a: 3 }]"] {
        append(&folder, "all.json", &format!("rows: {rows}, format: json"));
    }
    let all: Value = serde_json::from_str(&folder.read("all.json")).unwrap();
    assert_eq!(all, json!([1, 2, { "a": 3 }]));
    folder.file("other.json", "{\"rows\": [1]}");
    refused(
        &folder,
        "other.json",
        "row: 2, format: json",
        &["is not an array"],
    );

    append(
        &folder,
        "a.csv",
        "row: { id: 1, name: 'x, y' }, format: csv",
    );
    append(&folder, "a.csv", "row: { name: z }, format: csv");
    assert_eq!(folder.read("a.csv"), "id,name\n1,\"x, y\"\n,z\n");
    refused(
        &folder,
        "a.csv",
        "row: { id: 3, more: 1 }, format: csv",
        &["`more`", "`columns`"],
    );
    append(
        &folder,
        "a.csv",
        "row: { id: 3, more: 1 }, format: csv, columns: [id, name]",
    );
    assert_eq!(folder.lines("a.csv"), 4);
    refused(
        &folder,
        "a.csv",
        "row: 3, format: csv",
        &["CSV needs an object"],
    );
    refused(
        &folder,
        "a.csv",
        "row: { id: 3 }, format: csv, columns: [id]",
        &["has the columns id, name"],
    );
    folder.file(
        "w.yaml",
        "actions: { a: { type: appendFile, path: x, row: 1, format: xml } }",
    );
    folder
        .run(&["validate", "w.yaml"])
        .left(3, &["`format: xml` is not known", "ndjson, json, csv"]);
}
