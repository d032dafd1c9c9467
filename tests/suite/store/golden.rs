//! The stores in `tests/golden`, one of each format. Those of the current format, of both databases, can be opened,
//! look as before, and their runs continue to their ends. Those of other formats are refused and stay unchanged. `cargo
//! test --test suite golden::generate -- --ignored` writes those of the current format, once, when the format is fixed.

use crate::serve::windlass;
use crate::store::damage::{copy, used};
use crate::support::alone;
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_engine::report::{DumpFilter, dump};
use windlass_engine::{
    Engine, Inspector, RunStatus, Signal, StartOptions, StoreKind, Timestamp, Value, doctor,
};

const AT: Timestamp = Timestamp(0);

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

const ENDED: &str = "
name: ended
variables: { seen: [] }
actions:
  loop:
    type: until
    condition: \"@greaterOrEquals(variables('loopIndex'), 3)\"
    actions: { keep: { type: appendToArrayVariable, inputs: { name: seen, value: \"@variables('loopIndex')\" } } }
outputs: \"@variables('seen')\"
";

const SLEEPS: &str = "
name: sleeps
variables: { n: 0 }
actions:
  loop:
    type: until
    condition: \"@greaterOrEquals(variables('loopIndex'), 2)\"
    limit: { timeout: P36500D }
    delay: P18250D
    actions:
      grow: { type: incrementVariable, inputs: { name: n } }
outputs: \"@variables('n')\"
";

const WAITS: &str = "
name: waits
actions:
  go: { type: waitForSignal, signal: go }
outputs: \"@outputs('go')\"
";

const LARGE: &str = "
name: large
actions:
  all:
    type: foreach
    foreach: \"@range(0, 3)\"
    actions:
      long: { type: compose, inputs: \"@replace(string(range(0, 3000)), ',', '-')\" }
  go: { type: waitForSignal, signal: go }
outputs: \"@length(outputs('all'))\"
";

const RUNS: [(&str, &str); 4] = [
    ("ended", ENDED),
    ("sleeps", SLEEPS),
    ("waits", WAITS),
    ("large", LARGE),
];

/// The content of a store, without what differs between two reads.
fn dumped(dir: &Path) -> Json {
    let inspector = alone(|| Inspector::open(dir)).unwrap();
    let report = dump(&inspector, &DumpFilter::default(), AT).unwrap();
    serde_json::to_value(&report).unwrap()
}

fn write_dump(to: &Path, dump: &Json) {
    let text = serde_json::to_string_pretty(dump).unwrap() + "\n";
    fs::write(to.join("dump.json"), text).unwrap();
}

#[tokio::test]
#[ignore = "it writes the golden stores of this format"]
async fn generate() {
    for kind in [StoreKind::Sled, StoreKind::Fjall] {
        generate_of(kind).await;
    }
}

async fn generate_of(kind: StoreKind) {
    let place = tempfile::tempdir().unwrap();
    let century = Duration::from_secs(36_500 * 24 * 3600);
    let engine = Engine::builder()
        .max_timeout(century)
        .store(kind)
        .open(place.path())
        .unwrap();
    for (name, text) in RUNS {
        let workflow = engine.load_text(&format!("{name}.yaml"), text).unwrap();
        let options = StartOptions::default().id(name).label("made", "once");
        let run = engine
            .start_with(&workflow, Value::Null, options)
            .await
            .unwrap();
        if name == "ended" {
            run.result::<Value>().await.unwrap();
        }
    }
    engine.pause("waits").await.unwrap();
    engine.stop().await;
    drop(engine);
    let format = windlass_store::FORMAT;
    let to = golden().join(format!("store-{format}-{kind}"));
    let store = to.join("store");
    let _ = fs::remove_dir_all(&to);
    copy(&place.path().join("store"), &store);
    write_dump(&to, &dumped(place.path()));
    if kind == StoreKind::Fjall {
        let journal = store.join("fjall/0.jnl");
        let content = fs::read(&journal).unwrap();
        fs::write(journal, &content[..used(&content)]).unwrap();
        return;
    }
    // Version control does not store empty folders, and the index of the log is created again.
    for entry in fs::read_dir(&store).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false if name.starts_with("snap.") => fs::remove_file(path).unwrap(),
            false => {}
        }
    }
    // The unwritten end of the log is created again, too.
    let mut log = fs::read(store.join("db")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    log.truncate(end.next_multiple_of(512));
    fs::write(store.join("db"), log).unwrap();
}

/// `WINDLASS_BLESS=1` writes the dumps if a version prints them in another form.
#[tokio::test]
async fn every_golden_store_opens_and_continues() {
    let mut found = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let entry = entry.unwrap().path();
        if is_of_other_format(&entry) {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        copy(&entry, place.path());
        make_empty_folders(&place.path().join("store/fjall/keyspaces"));
        let report = alone(|| doctor::examine(place.path())).unwrap();
        assert_eq!(report.unreadable, [], "{}", entry.display());
        assert_eq!(report.runs, RUNS.len() as u64);
        let mut shown = dumped(place.path());
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            write_dump(&entry, &shown);
        }
        let text = fs::read_to_string(entry.join("dump.json")).unwrap();
        let mut expected: Json = serde_json::from_str(&text).unwrap();
        // Additional members of a later version are not a loss.
        keep_known(&mut shown, &expected);
        keep_known(&mut expected, &shown.clone());
        assert_eq!(shown, expected, "{}", entry.display());

        let engine = alone(|| Engine::builder().open(place.path())).unwrap();
        engine.recover(true).await.unwrap();
        for run in ["waits", "large"] {
            engine
                .signal(run, Signal::new("go".into(), Value::from(7_i64)))
                .await
                .unwrap();
        }
        let result = |run: &'static str| {
            let engine = &engine;
            async move {
                engine
                    .handle(run)
                    .await
                    .unwrap()
                    .result::<Value>()
                    .await
                    .unwrap()
            }
        };
        assert_eq!(result("waits").await.to_json(), "7");
        assert_eq!(result("large").await.to_json(), "3");
        // Its fifty years are not over.
        let sleeps = engine.inspector().header("sleeps").unwrap();
        assert_eq!(sleeps.status, RunStatus::Waiting);
        assert_eq!(
            engine.inspector().header("ended").unwrap().status,
            RunStatus::Succeeded
        );
        engine.stop().await;
        found += 1;
    }
    assert_eq!(found, 2, "one of each database");
}

fn is_of_other_format(golden: &Path) -> bool {
    let name = golden.file_name().unwrap().to_string_lossy().into_owned();
    !name.starts_with(&format!("store-{}-", windlass_store::FORMAT))
}

#[test]
fn a_store_of_another_format_is_refused_and_stays_as_it_is() {
    let entries = fs::read_dir(golden()).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let others: Vec<PathBuf> = entries.filter(|path| is_of_other_format(path)).collect();
    assert_eq!(others.len(), 1, "{others:?}");
    for golden in others {
        let place = tempfile::tempdir().unwrap();
        copy(&golden, place.path());
        let log = || fs::read(place.path().join("store/db")).unwrap();
        let before = log();
        let commands: [&[&str]; 4] = [&["list"], &["dump"], &["resume"], &["doctor", "--repair"]];
        for command in commands {
            let ended = windlass(place.path(), command);
            let stderr = String::from_utf8(ended.stderr).unwrap();
            assert!(!ended.status.success(), "{command:?}");
            assert!(stderr.contains("its format is 1"), "{command:?}: {stderr}");
        }
        // The database may write to the unwritten end of its log.
        assert_eq!(log().get(..before.len()), Some(&*before));
        assert!(!place.path().join("store.damaged").exists());
    }
}

/// fjall has a folder for the tables of each keyspace. Version control does not store empty folders.
fn make_empty_folders(keyspaces: &Path) {
    for keyspace in fs::read_dir(keyspaces).into_iter().flatten() {
        fs::create_dir_all(keyspace.unwrap().path().join("tables")).unwrap();
    }
}

/// Removes the members of `all` that `known` does not have.
fn keep_known(all: &mut Json, known: &Json) {
    match (all, known) {
        (Json::Object(all), Json::Object(known)) => {
            all.retain(|name, _| known.contains_key(name));
            for (name, value) in all.iter_mut() {
                keep_known(value, &known[name]);
            }
        }
        (Json::Array(all), Json::Array(known)) => {
            all.iter_mut()
                .zip(known)
                .for_each(|(one, known)| keep_known(one, known));
        }
        _ => {}
    }
}
