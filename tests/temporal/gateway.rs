//! The gateway: `windlass serve` with runs on Temporal, used like any server.

use super::server::{Place, Server, counting, printed_by, program, windlass};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// A gateway; it is killed when it is dropped.
struct Gateway {
    process: Child,
    url: String,
}

impl Gateway {
    fn start(place: &Place) -> Self {
        let mut process = Command::new(program())
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-shell"])
            .args(["--max-count", "1000000"])
            .args(["--engine", &place.url, "--state"])
            .arg(place.path("gateway"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("ready at ").map(str::to_owned)
        });
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.unwrap();
        Self { process, url }
    }

    fn ask(&self, args: &[&str]) -> Output {
        let mut args = args.to_vec();
        args.extend(["--server", &self.url]);
        windlass(&args)
    }

    fn report(&self, args: &[&str]) -> Value {
        let mut args = args.to_vec();
        args.extend(["-o", "json"]);
        let done = self.ask(&args);
        assert!(done.status.success(), "{args:?}: {}", printed_by(&done));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_gateway_starts_runs_and_shows_the_same_as_the_engine() {
    let place = Server::shared().place("gateway");
    let _worker = place.worker(&["--allow-shell"]);
    let gateway = Gateway::start(&place);
    let file = place.file("workflow.yaml", &counting(3, "0.01", "PT0S"));
    let done = gateway.ask(&["run", &file, "--id", &place.id]);
    assert!(done.status.success(), "{}", printed_by(&done));
    assert_eq!(place.traces().len(), 3);
    // The reports are equal except for the time of the request.
    let without_time = |mut report: Value| {
        report.as_object_mut().unwrap().remove("at");
        report
    };
    for report in [
        &["status", &place.id][..],
        &["history", &place.id, "--events"],
        &["history", &place.id, "--iterations", "all"],
    ] {
        let (here, there) = (gateway.report(report), place.report(report));
        assert_eq!(without_time(here), without_time(there), "{report:?}");
    }
    // Other tests have runs in the same namespace.
    let list = gateway.report(&["list", "--limit", "all"]);
    assert!(list.to_string().contains(&place.id), "{list}");
}

#[test]
fn a_gateway_steers_runs() {
    let place = Server::shared().place("steer");
    let _worker = place.worker(&["--allow-shell"]);
    let gateway = Gateway::start(&place);
    let file = place.file("workflow.yaml", &counting(1_000, "0.05", "PT0.1S"));
    let done = gateway.ask(&["run", &file, "--detach", "--id", &place.id]);
    assert!(done.status.success(), "{}", printed_by(&done));
    place.await_traces(2);
    let paused = gateway.report(&["pause", &place.id]);
    assert_eq!(paused["status"], "Paused");
    assert_eq!(place.status(), "Paused");
    let cancelled = gateway.report(&["cancel", &place.id]);
    assert_eq!(cancelled["status"], "Cancelled");
    let late = gateway.ask(&["pause", &place.id]);
    assert!(
        printed_by(&late).contains("has ended"),
        "{}",
        printed_by(&late)
    );
    let unknown = gateway.ask(&["status", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", printed_by(&unknown));
}

/// A run carries the saved workflows that it calls, because workers do not have the gateway's store.
#[test]
fn saved_workflows_are_called_by_name() {
    let place = Server::shared().place("saved");
    let _worker = place.worker(&["--allow-shell"]);
    let gateway = Gateway::start(&place);
    let inner =
        "outputs: { n: \"@outputs('a')\" }\nactions: { a: { type: compose, inputs: 42 } }\n";
    let outer =
        "outputs: \"@outputs('call')\"\nactions: { call: { type: workflow, workflow: inner } }\n";
    for (name, text) in [("inner", inner), ("outer", outer)] {
        let file = place.file(&format!("{name}.yaml"), text);
        let put = gateway.ask(&["workflow", "put", name, &file]);
        assert!(put.status.success(), "{}", printed_by(&put));
    }
    let file = place.file(
        "w.yaml",
        &outer.replace("workflow: inner", "workflow: outer"),
    );
    let done = gateway.ask(&["run", &file, "--id", &place.id]);
    assert!(done.status.success(), "{}", printed_by(&done));
    let report = place.report(&["status", &place.id]);
    assert_eq!(report["outcome"]["output"]["n"], 42, "{report}");

    let file = place.file(
        "w.yaml",
        &outer.replace("workflow: inner", "workflow: other"),
    );
    let done = gateway.ask(&["run", &file]);
    assert!(
        printed_by(&done).contains("no saved workflow"),
        "{}",
        printed_by(&done)
    );
}

#[test]
fn a_gateway_that_is_killed_costs_no_run_anything() {
    let place = Server::shared().place("through");
    let _worker = place.worker(&["--allow-shell"]);
    let gateway = Gateway::start(&place);
    let file = place.file("workflow.yaml", &counting(10, "0.05", "PT0.05S"));
    let done = gateway.ask(&["run", &file, "--detach", "--id", &place.id]);
    assert!(done.status.success(), "{}", printed_by(&done));
    place.await_traces(3);
    drop(gateway);
    place.await_traces(6);
    let gateway = Gateway::start(&place);
    place.await_status("Succeeded");
    let report = gateway.report(&["status", &place.id]);
    assert_eq!(report["status"], "Succeeded", "{report}");
    assert_eq!(place.begun().len(), 10);
    assert_eq!(place.traces().len(), 10);
}
