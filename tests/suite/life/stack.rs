//! Functions need the most stack without optimisation. A user who runs `examples/main-job.sh` builds without it, and a
//! thread once overflowed its stack there.

use super::process::Place;
use crate::app::{Options, router};
use crate::support::serve;
use std::process::Command;

/// Half of the usual stacks: 8 MB of the main thread, 2 MB of the others.
const MAIN_KILOBYTES: &str = "4096";
const OTHERS_BYTES: &str = "1048576";

#[tokio::test(flavor = "multi_thread")]
async fn half_of_the_usual_stack_is_enough_for_the_main_job() {
    let base = serve(router(Options::default())).await;
    let place = Place::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/main-job.yaml");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -s \"$0\" && exec \"$@\"", MAIN_KILOBYTES])
        .args([env!("CARGO_BIN_EXE_windlass"), "run", file, "-o", "json"])
        .args(["-i", &format!("base={base}"), "--state"])
        .arg(place.state())
        .env("RUST_MIN_STACK", OTHERS_BYTES);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = output.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["pages"], 4, "{result}");
}
