//! Which database a store uses: what its directory says, and how a store moves from one database to the other, whatever
//! happens meanwhile.

use crate::life::process::Place;
use crate::store::contract::{commit, noise};
use crate::store::damage::{everything, sample};
use crate::store::power::strace_works;
use crate::support::{alone, kind, open_store};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use windlass_expression::Value as Text;
use windlass_machine::Change;
use windlass_store::StoreKind;

const WORKFLOW: &str = "
name: counts
variables: { n: 0 }
actions:
  each:
    type: until
    condition: \"@equals(variables('n'), 20)\"
    actions:
      more: { type: incrementVariable, name: n }
outputs: \"@variables('n')\"
";

fn of(place: &Place, args: &[&str]) -> Output {
    let mut command = place.command(args);
    command.env_remove("WINDLASS_STORE").output().unwrap()
}

fn printed_by(output: &Output) -> String {
    let bytes = [&*output.stdout, &*output.stderr].concat();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_directory_says_what_keeps_its_store_and_a_flag_that_says_otherwise_is_refused() {
    let place = Place::new();
    let file = place.file("counts.yaml", WORKFLOW);
    for (stored, other) in [("sled", "fjall"), ("fjall", "sled")] {
        let _ = fs::remove_dir_all(place.state());
        let run = ["run", &file, "--id", "r", "--store", stored];
        let ran = of(&place, &run);
        assert!(ran.status.success(), "{ran:?}");
        let folder = place.state().join("store/fjall");
        assert_eq!(folder.exists(), stored == "fjall");
        for command in [
            &["status", "r"][..],
            &["list"],
            &["doctor"],
            &["dump", "r"],
            &["run", &file],
            &["backup", "copy"],
        ] {
            if command[0] != "backup" {
                let fine = of(&place, command);
                assert!(fine.status.success(), "{command:?}: {fine:?}");
            }
            let refused = of(&place, &[command, &["--store", other]].concat());
            assert_eq!(refused.status.code(), Some(8), "{command:?}: {refused:?}");
            let words = format!("uses {stored}, not {other}");
            assert!(
                printed_by(&refused).contains(&words),
                "{}",
                printed_by(&refused)
            );
        }
    }
}

fn migrate(place: &Path, to: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env_remove("WINDLASS_STORE");
    command.args(["migrate", "-o", "json", "--to", to, "--state"]);
    command.arg(place);
    command
}

fn answers(dir: &Path) -> Vec<String> {
    let store = alone(|| windlass_store::open(dir, None)).unwrap();
    let answers = everything(&*store).into_iter();
    answers.map(Result::unwrap).collect()
}

#[test]
fn a_store_moves_to_another_database_and_back() {
    let place = tempfile::tempdir().unwrap();
    let expected = sample(place.path(), false);
    let [first, second] = match kind() {
        StoreKind::Sled => ["fjall", "sled"],
        StoreKind::Fjall => ["sled", "fjall"],
    };
    for (to, from) in [(first, second), (second, first)] {
        let done = migrate(place.path(), to).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(report["records"].as_u64().unwrap() > 500, "{report}");
        assert!(place.path().join(format!("store.{from}/mark")).exists());
        let stored = StoreKind::of(place.path()).unwrap();
        assert_eq!(stored.to_string(), to);
        assert_eq!(answers(place.path()), expected);
        let again = migrate(place.path(), to).output().unwrap();
        let report: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(report["old"], Value::Null, "{again:?}");
    }
}

/// The size in megabytes of the store that is copied. fjall starts a new journal every 64 MB, and deletes those whose
/// content is in tables. 260 MB were too many once (`store/fjall/journal.rs` tests that). It takes minutes.
fn megabytes() -> u64 {
    let given = std::env::var("WINDLASS_COPIED_MB").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(12)
}

/// A store larger than several journals of a database passes through every command that copies it.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "it reports how long each command took"
)]
fn a_large_store_is_copied_restored_compacted_and_moved() {
    const EACH: usize = 4 << 20;
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    let store = open_store(&state).unwrap();
    let runs = megabytes() * (1 << 20) / EACH as u64;
    for run in 0..runs {
        let mut one = commit(&format!("run-{run}"), 0);
        let text = Text::text(noise(run, EACH));
        one.changes = vec![Change::set("text".into(), text)];
        store.commit(&[one]).unwrap()[0].as_ref().unwrap();
    }
    drop(store);
    let (copy, other) = (place.path().join("copy"), place.path().join("other"));
    let [first, second] = match kind() {
        StoreKind::Sled => ["fjall", "sled"],
        StoreKind::Fjall => ["sled", "fjall"],
    };
    let (copied, restored) = (copy.to_str().unwrap(), other.to_str().unwrap());
    let state = state.to_str().unwrap();
    for args in [
        &["backup", copied, "--state", state][..],
        &["restore", copied, "--state", restored],
        &["prune", "--compact", "--state", state],
        &["migrate", "--to", first, "--state", copied],
        &["migrate", "--to", second, "--state", copied],
        &["doctor", "--repair", "--state", restored],
    ] {
        let begun = std::time::Instant::now();
        let done = alone_of(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
            command.args(args).env_remove("WINDLASS_SERVER");
            command.output().unwrap()
        });
        assert_eq!(done.status.code(), Some(0), "{args:?}: {done:?}");
        println!("{}: {:?}", args[0], begun.elapsed());
    }
    for dir in [Path::new(state), &copy, &other] {
        let store = alone(|| windlass_store::open(dir, None)).unwrap();
        assert_eq!(store.list(None, usize::MAX).unwrap().len() as u64, runs);
    }
}

/// Killed at each system call, it leaves the old store or the new one, and can be started again.
#[test]
fn a_move_that_is_killed_leaves_a_store_and_can_be_begun_again() {
    const CALLS: &str = "fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat";
    if !strace_works() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    let expected = sample(&original, false);
    let to = match kind() {
        StoreKind::Sled => "fjall",
        StoreKind::Fjall => "sled",
    };
    let (mut at, mut killed) = (1, 0);
    loop {
        let state = place.path().join("state");
        let _ = fs::remove_dir_all(&state);
        crate::store::damage::copy(&original, &state);
        let command = migrate(&state, to);
        let ended = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e"])
            .arg(format!("trace={CALLS}"))
            .args(["-e", &format!("inject={CALLS}:signal=KILL:when={at}")])
            .arg(command.get_program())
            .args(command.get_args())
            .env_remove("WINDLASS_STORE")
            .output()
            .unwrap();
        assert_eq!(answers(&state), expected, "killed at {at}: {ended:?}");
        let done = alone_of(|| migrate(&state, to).output().unwrap());
        assert!(done.status.success(), "killed at {at}: {done:?}");
        assert_eq!(answers(&state), expected, "killed at {at}, and begun again");
        if ended.status.success() {
            break;
        }
        killed += 1;
        at += 3;
    }
    println!("killed at {killed} calls");
    assert!(killed > 5);
}

/// The threads of a database that was just closed may hold its lock for a moment.
pub fn alone_of(mut what: impl FnMut() -> Output) -> Output {
    loop {
        match what() {
            output if printed_by(&output).contains("in use by another process") => {}
            output => return output,
        }
    }
}
