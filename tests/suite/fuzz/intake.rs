//! Every input is accepted or refused soon and without much memory: nothing panics, overflows or hangs. Inputs are
//! generated from a seed and the files of the tests and examples; `WINDLASS_FUZZ` makes more. Expressions and
//! templates: `mod.rs`.

use crate::fuzz::checks;
use crate::store::damage::{Dice, from_env};
use crate::support::sized;
use crate::support::this_test_binary;
use serde_json::json;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use windlass_machine::program::{ProgramHash, StateId};
use windlass_machine::{Change, Cursor, CursorId, Records, Wait};
use windlass_model::model::Dialect;
use windlass_source::source::Bundle;

/// Every YAML and JSON file of the examples and the tests, up to a maximum size.
pub fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = vec![root.join("examples"), root.join("tests")];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if path.is_dir() {
                // Packages that a test has installed are not files of the project.
                open.extend(Some(path).filter(|path| !path.ends_with("node_modules")));
            } else if matches!(ending, Some("yaml" | "yml" | "json")) {
                files.push(path);
            }
        }
    }
    files.sort();
    let texts = files
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    texts.filter(|text| text.len() < 20_000).collect()
}

/// A text in which parts are changed, doubled, removed, or replaced by a part of another text.
pub fn mutated(dice: &mut Dice, corpus: &[String]) -> String {
    const PIECES: [&str; 24] = [
        "@",
        "@{",
        "}",
        "{{ ",
        "{% for x in y %}",
        "'",
        "\"",
        ":",
        "- ",
        "\n  ",
        "\t",
        "&a",
        "*a",
        "!!binary x",
        "null",
        "1e999",
        "-9223372036854775809",
        "[",
        "]",
        "{",
        "\u{0}",
        "\u{feff}",
        "é😀",
        "<<: *a",
    ];
    let pick = |dice: &mut Dice| &corpus[dice.roll(corpus.len() as u64) as usize];
    let mut bytes = pick(dice).clone().into_bytes();
    for _ in 0..1 + dice.roll(4) {
        let at = dice.roll(bytes.len() as u64 + 1) as usize;
        let end = (at + dice.roll(40) as usize).min(bytes.len());
        match dice.roll(6) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = PIECES[dice.roll(PIECES.len() as u64) as usize];
                bytes.splice(at..at, piece.bytes());
            }
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let other = pick(dice).as_bytes();
                let from = dice.roll(other.len() as u64 + 1) as usize;
                let to = (from + dice.roll(200) as usize).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            4 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
            _ => bytes.truncate(at),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn any_text_is_a_workflow_or_is_refused() {
    let corpus = corpus();
    assert!(corpus.len() > 50);
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7));
    let dialects = [
        None,
        Some(Dialect::Loom),
        Some(Dialect::Azure),
        Some(Dialect::Tea),
        Some(Dialect::Canvas),
    ];
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..from_env("WINDLASS_FUZZ", sized(1_500, 400)) {
        let text = mutated(&mut dice, &corpus);
        let dialect = dialects[dice.roll(5) as usize];
        let bundle = Bundle::single("fuzz.yaml", text.as_str());
        match catch_unwind(|| checks::workflow::taken(&bundle, dialect)) {
            Ok(true) => taken += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("this workflow:\n{text}"),
        }
    }
    println!("{taken} were taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}

/// What a store has of a run, as bytes, each with the letter of its kind in `fuzz/`.
fn records() -> Vec<(char, Vec<u8>)> {
    let played = crate::machine::play::Case::yaml(
        "
variables: { seen: [] }
actions:
  all:
    type: foreach
    foreach: [1, 2, 3]
    actions:
      poll:
        type: until
        condition: \"@greater(variables('loopIndex'), 1)\"
        actions: { ask: { type: shell, run: x }, keep: { type: appendToArrayVariable, inputs: { name: seen, value: 1 } } }
",
    )
    .play();
    let config = bincode::config::standard();
    let mut samples = Vec::new();
    for step in &played.steps {
        samples.push(('c', bincode::encode_to_vec(&step.changes, config).unwrap()));
    }
    samples.push(('r', bincode::encode_to_vec(&played.state, config).unwrap()));
    samples.push((
        'h',
        bincode::encode_to_vec(&played.history, config).unwrap(),
    ));
    samples.push((
        'i',
        bincode::encode_to_vec(&played.iterations, config).unwrap(),
    ));
    samples
}

/// The rows of a store after a run has made some steps, as bytes, each with its family.
fn rows() -> Vec<(u8, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    crate::store::damage::sample(dir.path(), false);
    let database = crate::store::damage::database(dir.path());
    let rows = database.iter().map(Result::unwrap);
    // A row begins with its version and two bytes for further pieces, and ends with a checksum.
    let whole = rows.filter(|(_, value)| value.len() > 7 && value[1..3] == [0, 0]);
    whole
        .map(|(key, value)| (key[0], value[3..value.len() - 4].to_vec()))
        .collect()
}

/// The files of a format, each with the letter of the format in `fuzz/`.
fn workflows() -> Vec<(char, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for (kind, folder) in [
        ('l', "examples"),
        ('l', "tests/kills"),
        ('a', "tests/azure/samples"),
        ('a', "tests/seed"),
        ('t', "examples/tea"),
        ('t', "tests/tea"),
        ('c', "examples/canvas"),
        ('c', "tests/canvas"),
        ('\n', "tests/diagnostics"),
    ] {
        let mut files: Vec<PathBuf> = fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                if path.is_dir() {
                    path.join("workflow.yaml")
                } else {
                    path
                }
            })
            .filter(|path| {
                path.extension()
                    .is_some_and(|ending| ending != "sh" && ending != "txt")
            })
            .filter(|path| path.is_file() && !path.to_str().unwrap().contains(".cases."))
            .filter(|path| fs::metadata(path).unwrap().len() < 2_500)
            .collect();
        files.sort();
        for file in files {
            // The folders in `tests/kills` are named by the kinds.
            let kind = match (folder, file.file_name().unwrap().as_encoded_bytes()) {
                ("tests/kills", name) => char::from(name[0]),
                _ => kind,
            };
            all.push((kind, file));
        }
    }
    all
}

/// Writes the seeds of the targets in `fuzz/`, next to the inputs that caused faults before. Needed when the format of
/// records has changed. A few seeds of each kind are enough, because a fuzzer finds other parts itself.
/// `WINDLASS_SEEDS_TO` names a folder for all seeds.
#[test]
#[ignore = "writes files: run it when the format of the store changes"]
fn seeds_of_the_fuzzers() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let to = std::env::var_os("WINDLASS_SEEDS_TO").map(PathBuf::from);
    let all = to.is_some();
    let seeds = to.unwrap_or_else(|| fuzz.join("seeds"));
    let one_of = |few: usize, n: usize| all || n.is_multiple_of(few);
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = seeds.join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    };
    let mut run = windlass_machine::RunState::new("run".into(), ProgramHash::default());
    for (n, (kind, bytes)) in records().into_iter().enumerate() {
        let whole = [vec![kind as u8], bytes].concat();
        if n < 6 && kind == 'c' {
            let changes: Vec<Change> =
                bincode::decode_from_slice(&whole[1..], checks::records::CONFIG)
                    .unwrap()
                    .0;
            changes.iter().for_each(|change| run.apply(change).unwrap());
        }
        // The first few of a kind are enough.
        if n < 6 || kind != 'c' {
            write("records", &format!("{kind}{n}"), &whole);
        }
    }
    let itself = Cursor {
        at: StateId(0),
        parent: Some(CursorId(99)),
        wait: Wait::Branches,
        frames: Vec::new(),
        records: Records::new(),
        owns_records: false,
    };
    let changes = vec![Change::CursorSpawned(CursorId(99), itself)];
    let changes = bincode::encode_to_vec(&changes, checks::records::CONFIG).unwrap();
    write(
        "records",
        "forked-by-itself",
        &[b"c", &changes[..]].concat(),
    );
    let run = bincode::encode_to_vec(&run, checks::records::CONFIG).unwrap();
    fs::write(fuzz.join("run.bin"), run).unwrap();
    let mut of_family = std::collections::BTreeMap::new();
    for (family, bytes) in rows() {
        let n: &mut usize = of_family.entry(family).or_default();
        *n += 1;
        if *n <= 3 {
            let name = format!("row-{}{n}", char::from(family));
            write("records", &name, &[b"j", &[family][..], &bytes].concat());
        }
    }
    let (api, local) = (
        crate::serve::fuzz::requests(),
        crate::serve::fuzz::local_requests(),
    );
    let of_http = api.iter().map(|request| ("http", request));
    let of_socket = local.iter().chain(&api).map(|request| ("socket", request));
    for (n, (target, (method, path, body))) in of_http.chain(of_socket).enumerate() {
        let body = body
            .as_ref()
            .map(|body| format!("\n\n{body}"))
            .unwrap_or_default();
        write(
            target,
            &format!("{n}.txt"),
            format!("{method} {path}{body}").as_bytes(),
        );
        if one_of(4, n) {
            let length = body.len().saturating_sub(2);
            let body = body.trim_start();
            let raw = format!(
                "!{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            write(target, &format!("raw-{n}.txt"), raw.as_bytes());
        }
    }
    for (n, (kind, file)) in workflows().into_iter().enumerate() {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
        let name = name
            .to_str()
            .unwrap()
            .replace("/workflow.yaml", ".yaml")
            .replace('/', "-");
        let kills = name.contains("kills");
        if kills || one_of(5, n) {
            write("workflow", &name, format!("{kind}{text}").as_bytes());
        }
        if one_of(5, n + 1) {
            let kind = if name.ends_with("json") { 'j' } else { 'y' };
            write("source", &name, format!("{kind}{text}").as_bytes());
        }
    }
    let reference = include_str!("../../expressions/jinja.txt").lines();
    let templates = reference.filter_map(|line| Some(line.split_once(" => ")?.0.to_owned()));
    let expressions = crate::fuzz::seeds().into_iter();
    for (n, text) in expressions.chain(templates).enumerate() {
        if one_of(13, n) {
            write("evaluate", &format!("{n}.txt"), text.as_bytes());
            write("parse", &format!("{n}.txt"), text.as_bytes());
        }
    }
}

/// A changed text of a file is read as a tree, or is refused.
#[test]
fn any_text_is_a_tree_or_is_refused() {
    let corpus = corpus();
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7) + 9);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..from_env("WINDLASS_FUZZ", sized(1_500, 400)) {
        let kind = ["j", "y", "v"][dice.roll(3) as usize];
        let text = kind.to_owned() + &mutated(&mut dice, &corpus);
        match catch_unwind(|| checks::source::check(text.as_bytes())) {
            Ok(true) => taken += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("this text:\n{text}"),
        }
    }
    println!("{taken} were taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}

#[test]
fn any_bytes_are_a_record_or_are_refused() {
    let mut dice = Dice(from_env("WINDLASS_FUZZ_SEED", 7) + 2);
    let samples: Vec<Vec<u8>> = records().into_iter().map(|(_, bytes)| bytes).collect();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..from_env("WINDLASS_FUZZ", sized(1_500, 400)) * 10 {
        let mut bytes = samples[dice.roll(samples.len() as u64) as usize].clone();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(bytes.len() as u64) as usize;
            match dice.roll(4) {
                0 => bytes[at] = [0xFB, 0xFC, 0xFD, 0xFF][dice.roll(4) as usize],
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, dice.roll(256) as u8),
                _ => bytes[at] ^= 1 << dice.roll(8),
            }
        }
        let kind = b"crhiv"[dice.roll(5) as usize];
        bytes.insert(0, kind);
        match checks::records::check(&bytes) {
            true => read += 1,
            false => refused += 1,
        }
    }
    println!("{read} decoded, {refused} refused");
    assert!(read > 0 && refused > 0);
}

// ── bombs, through the binary ───────────────────────────────────────────────────────────────

const ARGS: &str = "WINDLASS_TEST_BOMB";

/// The binary of this build or the one to test, and its limits: milliseconds and mebibytes.
fn binary() -> (std::ffi::OsString, i64, i64) {
    match std::env::var_os("WINDLASS_BIN") {
        Some(binary) => (binary, 1_000, 100),
        // A test build takes several times as long, on a slow and busy machine up to seven seconds. Its code, which
        // includes Temporal, needs thirty mebibytes more.
        None => (env!("CARGO_BIN_EXE_windlass").into(), 10_000, 130),
    }
}

/// Not a test of its own: runs a command and prints the resources that it used.
#[test]
#[ignore = "the process whose children are measured"]
fn measured() {
    let Ok(args) = std::env::var(ARGS) else {
        return;
    };
    let args: Vec<String> = serde_json::from_str(&args).unwrap();
    let output = Command::new(binary().0)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let used =
        nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = used.user_time() + used.system_time();
    let millis = time.tv_sec() * 1_000 + time.tv_usec() / 1_000;
    let code = output.status.code().unwrap_or(-1);
    println!("USED {code} {millis} {}", used.max_rss());
}

/// The exit code, the CPU time in milliseconds and the maximum memory in KiB.
fn used_by(args: &[&str]) -> (i64, i64, i64) {
    let output = this_test_binary("fuzz::intake::measured")
        .env(ARGS, serde_json::to_string(args).unwrap())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = stdout
        .split_once("USED ")
        .unwrap_or_else(|| panic!("{output:?}"))
        .1;
    let mut numbers = line.split_whitespace().map(|n| n.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    (next(), next(), next())
}

/// A limit for a machine of usual speed, adjusted to the current speed of this one: a shared machine may be several
/// times slower for minutes.
fn on_this_machine(limit: i64) -> i64 {
    /// About the time in milliseconds that a test build at 3 GHz needs for the work below.
    const USUAL: i64 = 75;
    let used = || {
        let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD);
        let time = used.unwrap().user_time();
        time.tv_sec() * 1_000 + time.tv_usec() / 1_000
    };
    let before = used();
    let mut number = 1_u64;
    for step in 0..12_000_000_u64 {
        number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005) ^ step);
    }
    let took = used() - before;
    println!("{number}: {took} ms where {USUAL} are usual");
    limit * took.max(USUAL) / USUAL
}

/// A command must take less than a second and 100 MB; returns its exit code.
fn soon(what: &str, args: &[&str]) -> i64 {
    let (code, millis, kib) = used_by(args);
    println!("{what:24}: exit {code}, {millis} ms, {} MB", kib >> 10);
    let (_, limit, memory) = binary();
    assert!(
        millis < limit || millis < on_this_machine(limit),
        "{what}: {millis} ms"
    );
    assert!(kib < memory << 10, "{what}: {kib} KiB");
    code
}

const DEEP: usize = 10_000;

fn nested(open: &str, within: &str, close: &str) -> String {
    open.repeat(DEEP) + within + &close.repeat(DEEP)
}

/// Lists of lists of nine aliases each: 9^29 values.
fn aliases() -> String {
    let lists = (1..30).map(|n| {
        let nine = vec![format!("*a{}", n - 1); 9].join(", ");
        format!("a{n}: &a{n} [{nine}]\n")
    });
    format!("a0: &a0 [x]\n{}", lists.collect::<String>())
}

#[test]
fn bombs_are_refused_within_a_second_and_a_hundred_megabytes() {
    let place = tempfile::tempdir().unwrap();
    let bombs = [
        ("aliases.yaml", aliases()),
        ("deep.json", nested("[", "", "]")),
        (
            "deep.yaml",
            format!("actions: {}", nested("{a: ", "1", "}")),
        ),
        (
            "blocks.yaml",
            (0..DEEP)
                .map(|n| format!("{}a:\n", " ".repeat(n)))
                .collect(),
        ),
        ("many.yaml", "- a\n".repeat(25 << 20)),
        // The item is short enough, and is a key if a `:` follows.
        ("key.yaml", format!("- [{}1]", "1,".repeat(8_000_000))),
        ("quotes.yaml", "'".repeat(4 << 20)),
        ("braces.yaml", "{".repeat(4 << 20)),
        ("anchors.yaml", "&a ".repeat(1 << 20)),
        (
            "keys.json",
            format!("{{{}\"z\": 1}}", "\"a\": 1,".repeat(1 << 20)),
        ),
    ];
    for (name, text) in bombs {
        let file = place.path().join(name);
        fs::write(&file, &text).unwrap();
        let code = soon(name, &["validate", file.to_str().unwrap()]);
        assert!(matches!(code, 2 | 3), "{name}: exit code {code}");
    }
}

/// A text in which many parts begin and none ends is read once, not once for each beginning.
#[test]
fn a_text_of_many_beginnings_is_read_in_a_second() {
    let place = tempfile::tempdir().unwrap();
    for part in ["${", "${secret:a", "{{ a", "{% if a", "@{a"] {
        for (action, end) in [("compose", ""), ("compose", "} }} @{1}"), ("shell", "}}")] {
            let text = part.repeat(1 << 18) + end;
            let inputs = json!({ "run": text, "x": text });
            let file = json!({ "actions": { "a": { "type": action, "inputs": inputs } } });
            let path = place.path().join("text.json");
            fs::write(&path, file.to_string()).unwrap();
            let what = format!("{action}, {part} … {end}");
            let code = soon(&what, &["validate", path.to_str().unwrap()]);
            assert!(matches!(code, 0 | 3), "{what}: exit code {code}");
        }
    }
}

/// For each format, a workflow with a value and an expression in it, and one of nested steps.
const FORMATS: [(&str, &str, &str, [&str; 3]); 4] = [
    (
        "loom",
        "yaml",
        "actions:\n  a: { type: compose, inputs: VALUE }\n",
        ["actions: ", "{a: {type: scope, actions: ", "}}"],
    ),
    (
        "azure",
        "json",
        r#"{"actions":{"a":{"type":"Compose","inputs":VALUE,"runAfter":{}}}}"#,
        [
            r#"{"z":0,"actions":"#,
            r#"{"a":{"type":"Scope","runAfter":{},"actions":"#,
            "}}",
        ],
    ),
    (
        "tea",
        "yaml",
        "name: a\ninitial_state: { x: VALUE }\nnodes:\n  - { name: a, uses: http.get, with: { url: VALUE } }\n",
        [
            "name: a\nnodes: ",
            "[{name: a, type: while_loop, condition: 'true', max_iterations: 2, body: ",
            "}]",
        ],
    ),
    (
        "canvas",
        "yaml",
        "name: a\nnodes:\n  - { id: a, type: http, data: { method: POST, url: 'http://x/', body: VALUE } }\n",
        [
            "name: a\nnodes: ",
            "[{id: a, type: loop, data: {maxIterations: 2, inlineWorkflow: {nodes: ",
            "}}}]",
        ],
    ),
];

#[test]
fn bombs_in_each_format_are_refused_within_a_second_and_a_hundred_megabytes() {
    let place = tempfile::tempdir().unwrap();
    for (format, ending, workflow, [head, open, close]) in FORMATS {
        let with = |value: &str| workflow.replace("VALUE", value);
        let expression = match format {
            "loom" | "azure" => format!("\"@{}\"", nested("not(", "1", ")")),
            _ => format!("\"{{{{ {} }}}}\"", nested("(", "1", ")")),
        };
        let numbers = |count: usize| format!("[{}1]", "1,".repeat(count));
        let bombs = [
            ("long", with(&format!("\"{}\"", "x".repeat(100 << 20)))),
            ("many", with(&numbers(50 << 20))),
            ("many in 1 MB", with(&numbers(1 << 19))),
            ("deep lists", with(&nested("[", "", "]"))),
            ("deep maps", with(&nested("{\"a\":", "1", "}"))),
            ("deep steps", head.to_owned() + &nested(open, "{}", close)),
            ("deep expression", with(&expression)),
        ];
        let alias = "actions: { a: { type: Compose, inputs: *a29, runAfter: {} } }\n";
        let aliased = match format {
            // JSON has no aliases, but a file of this format may be YAML.
            "azure" => alias.to_owned(),
            _ => with("*a29"),
        };
        let aliased = ("aliases.yaml".to_owned(), aliases() + &aliased);
        let bombs = bombs.map(|(name, text)| (format!("{name}.{ending}"), text));
        for (name, text) in bombs.into_iter().chain([aliased]) {
            let file = place.path().join(&name);
            fs::write(&file, text).unwrap();
            let args = ["validate", "--dialect", format, file.to_str().unwrap()];
            let code = soon(&format!("{format}, {name}"), &args);
            assert!(matches!(code, 2 | 3), "{format}, {name}: exit code {code}");
            fs::remove_file(&file).unwrap();
        }
    }
}

/// Input that is short or repeated needs no more memory and time than the same input written out.
#[test]
fn what_is_small_in_a_file_is_not_large_in_memory() {
    let place = tempfile::tempdir().unwrap();
    let compose = "actions:\n  a:\n    type: compose\n    inputs:\n";
    let steps = "name: a\nnodes:\n  - name: r\n    steps:\n";
    let many =
        |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let aliases = |count: usize| "      - *a\n".repeat(count);
    let merge = "{ uses: data.merge, with: { sources: ['{{ state.a }}', '{{ state.b }}'] } }";
    let retry = "{ uses: retry.loop, with: { validate: data.validate, correct: c } }";
    let corrector = "  - { name: c, run: 'return {}' }\n";
    let bombs = [
        (
            "one template",
            0,
            format!("{compose}      - &a '{{{{ 1 + 2 }}}}'\n{}", aliases(90_000)),
        ),
        (
            "templates",
            3,
            compose.to_owned() + &many(60_000, &|n| format!("      - '{{{{ 1 + {n} }}}}'\n")),
        ),
        (
            "expressions",
            0,
            compose.to_owned() + &many(90_000, &|n| format!("      - '@add(1, {n})'\n")),
        ),
        (
            "one step",
            3,
            format!("{steps}      - &a {merge}\n{}", aliases(13_000)),
        ),
        (
            "steps",
            3,
            steps.to_owned() + &many(16_000, &|_| String::from("      - { run: 'return 1' }\n")),
        ),
        (
            "steps of one name",
            3,
            steps.to_owned() + &"      - { name: x, run: 'return 1' }\n".repeat(20_000),
        ),
        (
            "nodes",
            3,
            String::from("name: a\nnodes:\n")
                + &many(16_000, &|n| {
                    format!("  - {{ name: a{n}, uses: http.get, with: {{ url: 'http://x/' }} }}\n")
                }),
        ),
        (
            "correctors",
            0,
            format!("{steps}      - &a {retry}\n{}{corrector}", aliases(490)),
        ),
        (
            "actions",
            0,
            String::from("actions:\n")
                + &many(16_000, &|n| {
                    format!("  a{n}: {{ type: compose, inputs: '@add(1, 2)' }}\n")
                }),
        ),
    ];
    let chain = |count: usize, data: &str| {
        let edges = many(count, &|n| {
            format!("  - {{ source: a{n}, target: a{} }}\n", n + 1)
        });
        format!(
            "name: a\nnodes:\n{}edges:\n{edges}",
            many(count + 1, &|n| format!(
                "  - {{ id: a{n}, type: http, data: {{ {data} }} }}\n"
            ))
        )
    };
    let mistakes = [
        (
            "references to nothing",
            3,
            String::from("actions:\n")
                + &many(10_000, &|n| {
                    format!("  a{n}: {{ type: compose, inputs: \"@outputs('z{n}')\" }}\n")
                }),
        ),
        (
            "variables of nothing",
            3,
            String::from("actions:\n  b: { type: x }\n")
                + &many(14_000, &|n| {
                    format!(
                        "  a{n}: {{ type: setVariable, name: b{n}, value: \"@variables('z{n}')\" }}\n"
                    )
                }),
        ),
        (
            "order of nothing",
            3,
            String::from("actions:\n")
                + &many(10_000, &|n| {
                    format!(
                        "  a{n}: {{ type: compose, inputs: 1, runAfter: {{ z{n}: [Succeeded] }} }}\n"
                    )
                }),
        ),
        (
            "edges to nothing",
            3,
            String::from("name: a\nnodes:\n")
                + &many(5_000, &|n| {
                    format!("  - {{ name: a{n}, run: 'return 1', goto: z{n} }}\n")
                }),
        ),
        (
            "a chain too long",
            3,
            chain(11_000, "method: GET, url: 'http://x/'"),
        ),
        (
            "a long chain",
            0,
            chain(5_000, "method: GET, url: 'http://x/'"),
        ),
        (
            "a chain of references",
            3,
            chain(3_000, "method: GET, url: 'http://x/{{ a0.y }}'"),
        ),
    ];
    for (name, expected, text) in bombs.into_iter().chain(mistakes) {
        let file = place.path().join("bomb.yaml");
        fs::write(&file, text).unwrap();
        let code = soon(name, &["validate", file.to_str().unwrap()]);
        assert_eq!(code, expected, "{name}");
    }
}

#[test]
fn bombs_as_inputs_and_contexts_are_refused_within_a_second_and_a_hundred_megabytes() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (workflow, state) = (at("takes.yaml"), at("state"));
    let text = "inputs: { vars: { type: object } }\nactions: { a: { type: compose, inputs: 1 } }\n";
    fs::write(&workflow, text).unwrap();
    let vars = |value: &str| format!("{{\"vars\": {{\"a\": {value}}}}}");
    let list = |one: &str, count: usize| format!("[{}1]", one.repeat(count));
    let full = 16 << 20;
    let bombs = [
        ("aliases.yaml", aliases() + "vars: { a: *a29 }\n"),
        ("long.json", vars(&format!("\"{}\"", "x".repeat(100 << 20)))),
        ("long.yaml", vars(&format!("\"{}\"", "x".repeat(100 << 20)))),
        ("deep.json", vars(&nested("[", "", "]"))),
        ("deep.yaml", vars(&nested("[", "", "]"))),
        // These are short enough.
        ("numbers.json", vars(&list("1,", full / 2 - 50))),
        ("numbers.yaml", vars(&list("1,", full / 2 - 50))),
        ("texts.json", vars(&list("\"a\",", full / 4 - 50))),
        ("objects.json", vars(&list("{\"a\":1},", full / 8 - 50))),
        ("items.yaml", "- a\n".repeat(full / 4 - 50)),
    ];
    for (name, text) in bombs {
        let file = at(name);
        fs::write(&file, text).unwrap();
        let eval = ["eval", "--context", &file, "@variables('a')"];
        let run = ["run", &workflow, "--input", &file, "--state", &state];
        for (what, args) in [("context", &eval[..]), ("input", &run[..])] {
            let code = soon(&format!("{what} {name}"), args);
            assert_eq!(code, 2, "{what} {name}");
        }
        fs::remove_file(&file).unwrap();
    }
    // The most expensive inputs of the maximum size.
    let taken = [
        ("numbers.json", vars(&list("1,", 601_000))),
        ("texts.json", vars(&list("\"a\",", 188_000))),
        ("objects.json", vars(&list("{\"a\":1},", 60_000))),
        (
            "items.yaml",
            format!("vars:\n  a:\n{}", "  - a\n".repeat(136_000)),
        ),
    ];
    for (name, text) in taken {
        let file = at(name);
        fs::write(&file, text).unwrap();
        let run = ["run", &workflow, "--input", &file, "--state", &state];
        assert_eq!(soon(&format!("{name}, taken"), &run), 0, "{name}");
    }
    let deep = nested("[", "", "]");
    for args in [
        &[
            "run",
            &workflow,
            "-i",
            &format!("vars:={deep}"),
            "--state",
            &state,
        ][..],
        &["eval", &format!("@{}", nested("not(", "1", ")"))],
        &["signal", "r", "n", "--payload", &deep, "--state", &state],
    ] {
        let code = soon(args[0], args);
        assert!(matches!(code, 2 | 3), "{}: exit code {code}", args[0]);
    }
}
