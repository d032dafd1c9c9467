//! Rules of the structure (docs/architecture.md) that neither Cargo nor visibility enforces. The tests read the sources
//! as text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

struct File {
    /// The crate, and the path in its `src`.
    path: String,
    /// Its lines without comments.
    code: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The sources of all crates.
fn files() -> Vec<File> {
    let crates = root().join("crates");
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![crates.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(file(&crates, &path));
            }
        }
    }
    assert!(
        found.len() > 100,
        "only {} files: is this the right folder?",
        found.len()
    );
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn file(crates: &Path, path: &Path) -> File {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let inside = path.strip_prefix(crates).unwrap().display().to_string();
    File {
        path: inside.replacen("/src/", "/", 1),
        code,
    }
}

/// The files whose code has a text.
fn files_with(text: &str) -> Vec<String> {
    let found = files().into_iter().filter(|file| file.code.contains(text));
    found.map(|file| file.path).collect()
}

#[test]
fn formats_do_not_know_each_other() {
    let formats = ["loom", "logic_apps", "tea", "canvas"];
    for file in files() {
        let mut parts = file.path.split('/');
        let (Some("formats"), Some(own), Some(_)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        for other in formats.iter().filter(|other| **other != own) {
            let path = format!("crate::{other}");
            assert!(
                !file.code.contains(&path),
                "crates/{} uses {path}",
                file.path
            );
        }
    }
}

/// A `Durable` proves by its type that a step is stored, so only a store may create one. Temporal creates one for what
/// it read from a history, because that is recorded there.
#[test]
fn only_a_store_or_temporal_says_that_a_step_is_durable() {
    assert_eq!(
        files_with("Sealed for"),
        ["store/lib.rs", "temporal/run_execution.rs"]
    );
}

#[test]
fn the_machine_knows_no_format() {
    let known = files_with("Dialect");
    let machine: Vec<&String> = known
        .iter()
        .filter(|path| path.starts_with("machine/"))
        .collect();
    assert!(machine.is_empty(), "{machine:?}");
}

#[test]
fn only_apply_changes_a_run() {
    // `advance` borrows the run, and `transition` adds changes to it. `rewind` creates the run of a retry, so it
    // borrows none. Nothing else borrows a run mutably.
    assert_eq!(files_with("'a mut RunState"), ["machine/transition/mod.rs"]);
    assert_eq!(
        files_with("&mut RunState"),
        [
            "machine/advance.rs",
            "machine/apply.rs",
            "machine/rewind.rs",
        ]
    );
    for file in files() {
        let assigns = file.path.starts_with("machine/")
            && file.code.lines().any(|line| {
                let left = line.split_once(" = ").map(|(left, _)| left.trim_start());
                left.is_some_and(|left| {
                    left.starts_with("self.run.") || left.starts_with("self.0.run.")
                })
            });
        assert!(!assigns, "crates/{} changes a run past apply", file.path);
    }
}

/// A folder counts as one file.
#[test]
fn no_file_of_the_machine_imports_one_above_it() {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files() {
        let Some(path) = file.path.strip_prefix("machine/") else {
            continue;
        };
        let name = |text: &str| {
            text.split(|sign: char| !sign.is_alphanumeric() && sign != '_')
                .next()
                .unwrap()
                .to_owned()
        };
        let used = ["crate::", "super::"]
            .into_iter()
            .flat_map(|up| file.code.split(up).skip(1));
        imports
            .entry(name(path))
            .or_default()
            .extend(used.map(name));
    }
    imports.remove("lib");
    loop {
        let names: BTreeSet<String> = imports.keys().cloned().collect();
        imports.retain(|own, used| used.iter().any(|one| one != own && names.contains(one)));
        if imports.len() == names.len() {
            break;
        }
    }
    assert!(
        imports.is_empty(),
        "import each other: {:?}",
        imports.keys()
    );
}

#[test]
fn a_handler_of_the_machine_lends_only_those_above_it_in_the_table() {
    let text =
        std::fs::read_to_string(root().join("crates/machine/src/transition/mod.rs")).unwrap();
    let (_, table) = text.split_once("\nhandlers! {").unwrap();
    let (table, _) = table.split_once("\n}\n").unwrap();
    let mut above = BTreeSet::new();
    for handler in table.split("\n    /// ").skip(1) {
        let (_, handler) = handler.split_once('\n').unwrap();
        let (name, parts) = handler.trim_start().split_once(" {").unwrap();
        let lends = parts.split_once("lends {").map_or("", |(_, lends)| lends);
        for lent in lends.split(": ").skip(1) {
            let lent = lent.split([',', ' ', '\n', '}']).next().unwrap();
            assert!(above.contains(lent), "{name} lends {lent}");
        }
        above.insert(name);
    }
    assert!(above.len() > 10, "{above:?}");
}

/// The names that the library promises: changing one affects everyone who uses it.
#[test]
fn the_public_names_are_those_of_the_list() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let mut names: Vec<&str> = lib
        .split("\npub use ")
        .skip(1)
        .map(|rest| rest.split_once(';').unwrap().0)
        .flat_map(|used| {
            let (_, names) = used.rsplit_once("::").unwrap();
            names.trim_matches(['{', '}']).split(',')
        })
        .map(|name| name.rsplit(" as ").next().unwrap().trim())
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    let listed = std::fs::read_to_string(root().join("tests/public-api.txt")).unwrap();
    assert_eq!(names, listed.lines().collect::<Vec<_>>());
}
