//! Keeps the arrows between the rooms of `src/` (docs/architecture.md): who may use whom, which
//! crates belong to which room, and what only one room does. It reads the sources as text. Between the crates of
//! `crates/` Cargo keeps them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A room, and the rooms it may use beside itself. What is not here has no room yet: give it one.
const ROOMS: [(&str, &[&str]); 17] = [
    ("inode", &[]),
    (
        "dialect",
        &["diagnostic", "expression", "hir", "model", "source", "time"],
    ),
    ("program", &["expression", "model", "source", "time"]),
    (
        "compile",
        &[
            "diagnostic",
            "expression",
            "hir",
            "model",
            "program",
            "source",
        ],
    ),
    ("machine", &["expression", "model", "program", "time"]),
    ("hosted", &["machine", "model", "program", "time"]),
    (
        "store",
        &[
            "expression",
            "inode",
            "machine",
            "model",
            "program",
            "source",
            "time",
        ],
    ),
    ("action", &["diagnostic", "expression", "inode", "model"]),
    (
        "scheduler",
        &[
            "action",
            "expression",
            "hosted",
            "machine",
            "model",
            "program",
            "store",
            "time",
        ],
    ),
    (
        "engine",
        &[
            "action",
            "compile",
            "diagnostic",
            "dialect",
            "expression",
            "hir",
            "hosted",
            "machine",
            "model",
            "program",
            "scheduler",
            "source",
            "store",
            "time",
        ],
    ),
    ("api", &["engine"]),
    ("client", &["api", "engine"]),
    (
        "language",
        &[
            "diagnostic",
            "dialect",
            "engine",
            "expression",
            "model",
            "program",
            "source",
        ],
    ),
    ("server", &["api", "engine", "language"]),
    (
        "temporal",
        &[
            "engine",
            "expression",
            "hosted",
            "machine",
            "model",
            "program",
            "scheduler",
            "store",
            "time",
        ],
    ),
    (
        "cli",
        &["api", "client", "engine", "language", "server", "temporal"],
    ),
    ("main", &["cli"]),
];

/// Crates and modules of the standard library, and the only rooms that may use them.
const TOOLS: [(&str, &[&str]); 11] = [
    (
        "tokio::",
        &[
            "action",
            "scheduler",
            "engine",
            "client",
            "server",
            "temporal",
            "cli",
            "main",
        ],
    ),
    ("temporalio_", &["temporal"]),
    ("sled::", &["store"]),
    ("fjall::", &["store"]),
    ("reqwest::", &["action", "client", "engine"]),
    ("axum::", &["server"]),
    ("prometheus_client::", &["scheduler", "server"]),
    ("clap::", &["cli", "main"]),
    (
        "std::fs",
        &[
            "inode", "store", "action", "api", "engine", "server", "temporal", "cli",
        ],
    ),
    ("std::net", &["action", "server", "cli"]),
    (
        "std::process",
        &["store", "action", "server", "temporal", "cli", "main"],
    ),
];

struct File {
    room: String,
    path: String,
    /// How many modules deep below its room.
    depth: usize,
    /// Its lines without comments.
    code: String,
}

fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(file(&root, path));
            }
        }
    }
    assert!(
        found.len() > 100,
        "only {} files: is this the right folder?",
        found.len()
    );
    found
}

fn file(root: &Path, path: PathBuf) -> File {
    let inside = path.strip_prefix(root).unwrap();
    let mut parts: Vec<&str> = inside.iter().map(|part| part.to_str().unwrap()).collect();
    let last = parts.pop().unwrap().trim_end_matches(".rs");
    if last != "mod" {
        parts.push(last);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    File {
        room: parts[0].to_owned(),
        path: inside.display().to_string(),
        depth: parts.len() - 1,
        code,
    }
}

/// The rooms that a file names by `crate::…`.
fn uses(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        // `use crate::{a::X, b::Y}`: every name after the brace or a comma at its level.
        if let Some(group) = rest.strip_prefix('{') {
            found.extend(group_members(group));
            continue;
        }
        found.extend(identifier(rest));
    }
    found
}

fn group_members(group: &str) -> Vec<String> {
    let mut members = Vec::new();
    let (mut depth, mut begin) = (0, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begin = true,
            letter if begin && (letter.is_alphanumeric() || letter == '_') => {
                members.extend(identifier(&group[at..]));
                begin = false;
            }
            _ => {}
        }
    }
    members
}

fn identifier(text: &str) -> Option<String> {
    let end = text
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

#[test]
fn rooms_use_only_the_rooms_they_may() {
    let rooms: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    let mut wrong = Vec::new();
    for file in files().iter().filter(|file| file.room != "lib") {
        let Some(may) = rooms.get(&*file.room) else {
            wrong.push(format!("src/{} is in no room", file.path));
            continue;
        };
        for used in uses(&file.code) {
            if used != file.room && !may.contains(&&*used) {
                wrong.push(format!("src/{} uses crate::{used}", file.path));
            }
        }
        // `super` must not lead out of the room; a module of tests in the file is one deeper.
        let way_out = "super::".repeat(file.depth + 2);
        if file.code.contains(&way_out) {
            wrong.push(format!("src/{} leaves its room by super", file.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    // Tests of a module may read files.
    let tested = |file: &File| !file.path.ends_with("/tests.rs");
    for file in files().into_iter().filter(tested) {
        for (tool, rooms) in TOOLS {
            if file.code.contains(tool) && !rooms.contains(&&*file.room) {
                wrong.push(format!("src/{} uses {tool}", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn dialects_do_not_know_each_other() {
    let dialects = ["loom", "azure", "tea", "canvas"];
    for file in files()
        .iter()
        .filter(|file| file.room == "dialect" && file.depth > 0)
    {
        let own = file.path.split('/').nth(1).unwrap().trim_end_matches(".rs");
        for other in dialects.iter().filter(|other| **other != own) {
            let path = format!("dialect::{other}");
            assert!(!file.code.contains(&path), "src/{} uses {path}", file.path);
        }
    }
}

/// Who can say it is by type: nobody else has a value of a type that is `Durable`. For Temporal, what was
/// read from its history is recorded there.
#[test]
fn only_a_store_or_temporal_says_that_a_step_is_durable() {
    let sealed = files().into_iter();
    let sealed = sealed.filter(|file| file.code.contains("Sealed for"));
    let mut sealed: Vec<String> = sealed.map(|file| file.path).collect();
    sealed.sort();
    assert_eq!(sealed, ["store/mod.rs", "temporal/turn.rs"]);
}

#[test]
fn the_machine_knows_no_format() {
    for file in files() {
        let formats = file.code.contains("Dialect");
        let machine = ["machine", "program"].contains(&&*file.room);
        assert!(!(machine && formats), "src/{} knows formats", file.path);
    }
}

#[test]
fn only_apply_changes_a_run() {
    let changers: Vec<String> = files()
        .into_iter()
        .filter(|file| file.code.contains("&mut RunState"))
        .map(|file| file.path)
        .collect();
    let mut changers = changers;
    changers.sort();
    // `advance` holds the run that it emits changes to; `rewind` makes the run of a retry, which is
    // none yet. Nobody else takes one to change it.
    let known = [
        "machine/advance.rs",
        "machine/apply.rs",
        "machine/rewind.rs",
    ];
    assert_eq!(changers, known);
    for file in files().iter().filter(|file| file.room == "machine") {
        let assigns = file.code.contains("self.run.") && {
            let mut lines = file.code.lines();
            lines.any(|line| {
                line.contains("self.run.") && line.contains(" = ") && {
                    let (left, _) = line.split_once(" = ").unwrap();
                    left.trim_start().starts_with("self.run.")
                }
            })
        };
        assert!(!assigns, "src/{} changes a run past apply", file.path);
    }
}

/// The names that the library promises: changing one is a change for all who use it.
#[test]
fn the_public_names_are_those_of_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lib = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let mut names: Vec<&str> = lib
        .split("\npub use ")
        .skip(1)
        .map(|rest| rest.split_once(';').unwrap().0)
        .flat_map(|used| {
            let (_, names) = used.split_once("::").unwrap();
            names.trim_matches(['{', '}']).split(',')
        })
        .map(|name| name.rsplit(" as ").next().unwrap().trim())
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    let listed = std::fs::read_to_string(root.join("tests/public-api.txt")).unwrap();
    assert_eq!(names, listed.lines().collect::<Vec<_>>());
}

#[test]
fn the_reader_of_uses_reads_groups() {
    let code = "use crate::{a::X, b::{Y, c}, d};\nfn f() { crate::e::g(); }";
    assert_eq!(uses(code), ["a", "b", "d", "e"]);
}
