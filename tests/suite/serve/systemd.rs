//! The published unit, `docs/windlass.service`: systemd accepts every line of it, its sandbox is as strict as before,
//! and its command starts a server. How it behaves under a running systemd is described in
//! docs/reference/operations.md.

use super::{Server, Start, client};
use crate::support::lacking;
use std::path::Path;
use std::process::{Command, Output};

fn unit() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/windlass.service");
    std::fs::read_to_string(path).unwrap()
}

/// systemd-analyze for the unit with the binary of this build; `None` without systemd.
fn analysed(arguments: &[&str]) -> Option<Output> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("windlass.service");
    let binary = env!("CARGO_BIN_EXE_windlass");
    std::fs::write(&path, unit().replace("/usr/local/bin/windlass", binary)).unwrap();
    let mut command = Command::new("systemd-analyze");
    match command.args(arguments).arg(&path).output() {
        Ok(output) => Some(output),
        Err(error) => {
            lacking(&format!("systemd-analyze cannot be run here: {error}"));
            None
        }
    }
}

#[test]
fn systemd_reads_every_line_of_the_unit() {
    let Some(output) = analysed(&["verify", "--man=no"]) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    // Messages about other units of this machine are ignored.
    let own = stderr.lines().filter(|line| line.contains("windlass"));
    assert_eq!(own.collect::<Vec<_>>(), [""; 0], "{stderr}");
}

#[test]
fn the_sandbox_of_the_unit_stays_tight() {
    // 0 means that nothing is exposed, and 100 that everything is; without the sandbox it is 92.
    let Some(output) = analysed(&["security", "--offline=true", "--threshold=20", "--no-pager"])
    else {
        return;
    };
    let (printed, output_text) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if output_text.contains("unrecognized option") {
        lacking(&format!("this systemd-analyze is too old: {output_text}"));
        return;
    }
    assert!(output.status.success(), "{printed}{output_text}");
    assert!(
        printed.contains("Overall exposure level"),
        "{printed}{output_text}"
    );
}

/// The unit's command, with its directories in `place`.
fn arguments(place: &Path) -> Vec<String> {
    let unit = unit();
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let mut words = line.unwrap().split_whitespace();
    assert_eq!(words.next(), Some("/usr/local/bin/windlass"));
    assert_eq!(words.next(), Some("serve"));
    let place = place.to_str().unwrap();
    let filled = |word: &str| {
        let word = word.replace("%S", place).replace("%d", place);
        word.replace("127.0.0.1:7465", "127.0.0.1:0")
    };
    words.map(filled).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_the_unit_starts_a_server_that_wants_its_token() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "from-a-credential\n").unwrap();
    let all = arguments(dir.path());
    let at = all.iter().position(|word| word == "--state").unwrap();
    let state = dir.path().join("windlass");
    assert_eq!(all[at + 1], state.to_str().unwrap());
    let others = [&all[..at], &all[at + 2..]].concat();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let server: Server = Start::new(&state).args(&others).spawn();
    assert_eq!(server.get("/v1/runs").await.0, 401);
    let request = client().get(format!("{}/v1/runs", server.url));
    let answer = request.bearer_auth("from-a-credential").send().await;
    assert_eq!(answer.unwrap().status().as_u16(), 200);
    assert!(server.stop().0.success());
}
