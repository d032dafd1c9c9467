//! Secure values and a key: the values are sealed in Temporal's history, and a worker without the key reports that.

use super::server::{Place, Server, printed_by, until};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use std::io::Read;

const TOKEN: &str = "tOk3n-5f1c77e0";

/// A workflow that fetches a token, holds it during a wait, and passes it on.
const WORKFLOW: &str = r#"
name: sealed
actions:
  login: { type: shell, inputs: { run: 'echo tOk3n-5f1c"77e0"' }, secure: [outputs] }
  wait: { type: waitForSignal, signal: go, runAfter: { login: [Succeeded] } }
  use:
    type: shell
    runAfter: { wait: [Succeeded] }
    inputs: { run: 'echo "$T" >> "$PLACE/traces"', env: { T: "@body('login')" } }
"#;

/// The content of the history, decompressed: every reader of the namespace can read this.
fn history(server: &Server, id: &str) -> Vec<u8> {
    let shown = server.tool(&["workflow", "show", "--workflow-id", id, "-o", "json"]);
    let mut found = shown.clone().into_bytes();
    unpack(&serde_json::from_str(&shown).unwrap(), &mut found);
    found
}

fn unpack(value: &Value, found: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            if let Some(data) = map.get("data").and_then(Value::as_str) {
                let data = STANDARD.decode(data).unwrap();
                found.extend_from_slice(&data);
                // Data that is sealed or not deflated yields nothing.
                let _ = DeflateDecoder::new(&data[3.min(data.len())..]).read_to_end(found);
            }
            map.values().for_each(|value| unpack(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| unpack(value, found)),
        _ => {}
    }
}

fn holds_the_token(bytes: &[u8]) -> bool {
    bytes
        .windows(TOKEN.len())
        .any(|part| part == TOKEN.as_bytes())
}

fn with_key(place: &mut Place, digits: &str) {
    let file = place.file(&format!("{digits}.key"), &digits.repeat(32));
    place.settings = vec![("WINDLASS_STATE_KEY_FILE", file)];
}

#[test]
fn a_secure_value_is_sealed_in_the_history() {
    let server = Server::shared();
    for keyed in [false, true] {
        let mut place = server.place("sealed");
        if keyed {
            with_key(&mut place, "7a");
        }
        let _worker = place.worker(&[]);
        place.start(WORKFLOW, &[]);
        place.await_status("Waiting");
        let dump = place.report(&["dump", &place.id]).to_string();
        assert!(!holds_the_token(dump.as_bytes()), "{dump}");
        assert_eq!(place.report(&["signal", &place.id, "go"])["run"], *place.id);
        place.await_status("Succeeded");
        // The effects received the real token.
        assert_eq!(place.traces(), [TOKEN]);
        let history = history(server, &place.id);
        assert_ne!(holds_the_token(&history), keyed);
    }
}

#[test]
fn who_lacks_the_key_says_so_and_loses_nothing() {
    let server = Server::shared();
    let mut place = server.place("keyless");
    with_key(&mut place, "7a");
    let worker = place.worker(&[]);
    place.start(WORKFLOW, &[]);
    place.await_status("Waiting");
    drop(worker);
    // The run may continue, but workers without the key cannot resume it.
    let signal = [
        "workflow",
        "signal",
        "--workflow-id",
        &place.id,
        "--name",
        "go",
    ];
    server.tool(&signal);
    let keyed = place.settings.clone();
    // Without a key, and with another key.
    for digits in [None, Some("5b")] {
        place.settings.clear();
        if let Some(digits) = digits {
            with_key(&mut place, digits);
        }
        for args in [
            &["status", &place.id][..],
            &["history", &place.id],
            &["dump", &place.id],
            &["signal", &place.id, "go"],
        ] {
            let refused = place.ask(args);
            assert_ne!(refused.status.code(), Some(0), "{}", printed_by(&refused));
            assert!(
                printed_by(&refused).contains("--state-key"),
                "{}",
                printed_by(&refused)
            );
        }
        let _worker = place.worker(&[]);
        until("the worker says what it lacks", || {
            place.log().contains("--state-key")
        });
        assert!(place.traces().is_empty());
    }
    // A command with the key learns what the only worker lacks.
    place.settings.clear();
    let worker = place.worker(&[]);
    place.settings = keyed;
    let file = place.file("workflow.yaml", WORKFLOW);
    let unloadable = format!("{}-unloadable", place.id);
    for args in [
        &["run", &file, "--id", &unloadable][..],
        &["pause", &unloadable],
    ] {
        let stuck = place.ask(args);
        let printed = printed_by(&stuck);
        assert_eq!(stuck.status.code(), Some(3), "{printed}");
        assert!(printed.contains("--state-key"), "{printed}");
    }
    assert_eq!(
        place.report(&["cancel", &unloadable])["status"],
        "Cancelled"
    );
    let report = place.report(&["status", &unloadable]);
    assert_eq!(report["status"], "Cancelled", "{report}");
    drop(worker);
    let _worker = place.worker(&[]);
    place.await_status("Succeeded");
    assert_eq!(place.traces(), [TOKEN]);
}
