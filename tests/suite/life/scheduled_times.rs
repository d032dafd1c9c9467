//! The scheduled time inside a run, missed times that are started later, pauses of schedules, and backfills.

use super::process::Place;
use super::schedules::{EVERY_SECOND, after_a_tick, an_hour_later, at_least, of, put, runs};
use crate::serve::{PATIENCE, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_engine::now;
use windlass_value::time::Timestamp;

const NIGHTLY: &str = "
name: nightly
schedule: { cron: '30 2 * * *', timezone: Europe/Berlin }
actions:
  wdl: { type: compose, inputs: \"@schedule('time')\" }
  jinja: { type: compose, inputs: '{{ schedule.previousTime }} {{ schedule.nextTime }}' }
outputs: { time: \"@outputs('wdl')\", beside: \"@outputs('jinja')\" }
";

#[test]
fn a_run_knows_its_scheduled_time() {
    let place = Place::new();
    let file = place.file("nightly.yaml", NIGHTLY);
    let at = "2026-11-28T01:30:00Z";
    let times = json!({ "time": at, "beside": "2026-11-27T01:30:00Z 2026-11-29T01:30:00Z" });
    let given = ["run", &file, "--scheduled-time", at, "-o", "json"];
    assert_eq!(place.json(&given), times);
    let given = ["test", &file, "--scheduled-time", at, "-o", "json"];
    assert_eq!(place.json(&given)["output"], times);
    let without = place.json(&["run", &file, "-o", "json"]);
    assert_eq!(without["time"], Value::Null, "{without}");
    let wrong = NIGHTLY.replace("schedule('time')", "schedule('times')");
    let file = place.file("wrong.yaml", &wrong);
    let output = place.run(&["run", &file]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("unknown member of the schedule `times`"),
        "{stderr}"
    );
}

#[test]
fn a_retry_keeps_the_scheduled_time() {
    let place = Place::new();
    let flag = place.dir.path().join("there");
    let text = format!(
        "actions:\n  first: {{ type: compose, inputs: 1 }}\n  \
         look: {{ type: shell, run: \"test -f {}\", retry: none }}\n  \
         at: {{ type: compose, inputs: \"@schedule('time')\" }}\n\
         outputs: \"@outputs('at')\"\n",
        flag.display()
    );
    let file = place.file("looks.yaml", &text);
    let at = "2026-11-28T01:30:00Z";
    let given = ["run", &file, "--id", "first", "--scheduled-time", at];
    assert!(!place.run(&given).status.success());
    std::fs::write(&flag, "").unwrap();
    assert_eq!(place.json(&["retry", "first", "-o", "json"]), json!(at));
    let from = ["retry", "first", "--from", "look", "-o", "json"];
    assert_eq!(place.json(&from), json!(at));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_missed_time_gets_one_run_also_when_the_server_dies_meanwhile() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let text = "
name: each
schedule: { cron: '*/5 * * * *', missed: run_all }
actions: { a: { type: compose, inputs: \"@schedule('time')\" } }
outputs: \"@outputs('a')\"
";
    put(&server, "each", text).await;
    put(&server, "tick", EVERY_SECOND).await;
    after_a_tick(&server).await;
    server.kill();
    an_hour_later(&place.state(), "each");
    let before = now();
    let mut server = Server::start(&place.state());
    let mut found = Vec::new();
    for _ in 0..600 {
        let known = of(&found, "each").len();
        found = runs(&server).await;
        let count = of(&found, "each").len();
        if count >= 12 {
            break;
        }
        if count > known && count % 4 == 2 {
            server.kill();
            server = Server::start(&place.state());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let times: BTreeSet<i64> = of(&found, "each")
        .iter()
        .map(|run| {
            let time = run["labels"]["windlass.scheduled_time"].as_str().unwrap();
            let time: Timestamp = time.parse().unwrap();
            let compact = time.to_utc().format("%Y%m%dT%H%M%SZ");
            assert_eq!(run["run"], json!(format!("each-at-{compact}")));
            time.0 / 1_000
        })
        .collect();
    assert_eq!(times.len(), of(&found, "each").len(), "{found:?}");
    assert!(times.len() >= 12, "{times:?}");
    let (first, last) = (*times.first().unwrap(), *times.last().unwrap());
    assert_eq!((last - first) / 300 + 1, times.len() as i64, "{times:?}");
    assert!(last * 1_000 <= now().0 && last * 1_000 > before.0 - 300_000);
    for run in of(&found, "each") {
        let run = run["run"].as_str().unwrap();
        let ended = server.end(run).await;
        let time = ended["output"].as_str().unwrap().replace(['-', ':'], "");
        assert!(run.ends_with(&time), "{run} {ended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_with_the_same_schedule_keeps_the_times_that_wait() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let text = "
schedule: { cron: '*/5 * * * *', missed: run_all }
actions: { a: { type: compose, inputs: 1 } }
";
    put(&server, "each", text).await;
    put(&server, "tick", EVERY_SECOND).await;
    after_a_tick(&server).await;
    server.kill();
    an_hour_later(&place.state(), "each");
    let file = place.file("each.yaml", &text.replace("inputs: 1", "inputs: 2"));
    let stored = place.run(&["workflow", "put", "each", &file]);
    assert!(stored.status.success(), "{stored:?}");
    let server = Server::start(&place.state());
    let started = async {
        while of(&runs(&server).await, "each").len() < 12 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, started).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_run_replaces_the_one_before() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let text = "
name: long
schedule: { cron: '* * * * * *', overlap: replace }
actions: { a: { type: waitForSignal, signal: go } }
";
    put(&server, "long", text).await;
    let found = at_least(&server, 4).await;
    let mut newest: Vec<&str> = found
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    newest.sort_unstable();
    newest.pop();
    for run in newest {
        assert_eq!(server.end(run).await["status"], "Cancelled", "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_schedule_starts_nothing_until_it_is_resumed() {
    let place = Place::new();
    let server = Server::start(&place.state());
    put(&server, "tick", EVERY_SECOND).await;
    put(&server, "other", &EVERY_SECOND.replace("tick", "other")).await;
    at_least(&server, 2).await;
    let paused = place.json(&["schedule", "pause", "other", "-o", "json"]);
    assert!(paused["paused_since"].is_string(), "{paused}");
    assert_eq!(paused["next"], json!([]));
    let count = of(&after_a_tick(&server).await, "other").len();
    server.kill();
    let server = Server::start(&place.state());
    assert_eq!(of(&after_a_tick(&server).await, "other").len(), count);
    // A schedule stays paused when its workflow is replaced.
    put(
        &server,
        "other",
        &EVERY_SECOND.replace("tick", "other").replace("1 }", "2 }"),
    )
    .await;
    assert_eq!(of(&after_a_tick(&server).await, "other").len(), count);
    let listed = String::from_utf8(place.run(&["schedule", "list"]).stdout).unwrap();
    let line = listed
        .lines()
        .find(|line| line.starts_with("other"))
        .unwrap();
    assert!(line.contains("paused since"), "{listed}");
    let resumed = place.json(&["schedule", "resume", "other", "-o", "json"]);
    assert_eq!(resumed["paused_since"], Value::Null, "{resumed}");
    let missed = resumed["missed_times"].clone();
    for _ in 0..600 {
        if of(&runs(&server).await, "other").len() > count + 1 {
            let (_, now) = server.get("/v1/workflows/other/schedule").await;
            // The times during the pause do not count as missed.
            assert!(now["missed_times"].as_u64() <= missed.as_u64().map(|missed| missed + 1));
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it stays paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_times_are_reported() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let at = Timestamp(now().0 - 1_800_000).to_utc();
    let text = format!(
        "name: daily\nschedule: '{} * * *'\nactions: {{ a: {{ type: compose, inputs: 1 }} }}\n",
        at.format("%M %H")
    );
    put(&server, "daily", &text).await;
    server.kill();
    an_hour_later(&place.state(), "daily");
    let server = Server::start(&place.state());
    put(&server, "tick", EVERY_SECOND).await;
    after_a_tick(&server).await;
    let listed = place.json(&["schedule", "list", "-o", "json"]);
    let daily = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "daily");
    let daily = daily.unwrap();
    assert_eq!(daily["missed_times"], 1, "{listed}");
    let last = daily["last_missed"].as_str().unwrap();
    assert!(
        last.starts_with(&at.format("%Y-%m-%dT%H:%M:00").to_string()),
        "{daily}"
    );
    let table = String::from_utf8(place.run(&["schedule", "list"]).stdout).unwrap();
    assert!(table.contains("missed 1, last"), "{table}");
    let metrics = reqwest::get(format!("{}/metrics", server.url))
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    let line = "windlass_missed_scheduled_times_total{workflow=\"daily\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    let (_, log) = server.stop();
    assert!(log.contains("scheduled times have no run"), "{log}");
}

#[test]
fn a_backfill_runs_each_time_once() {
    let place = Place::new();
    let file = place.file("nightly.yaml", NIGHTLY);
    assert!(
        place
            .run(&["workflow", "put", "nightly", &file])
            .status
            .success()
    );
    let range = [
        "schedule",
        "backfill",
        "nightly",
        "--from",
        "2026-10-24",
        "--to",
        "2026-10-27",
    ];
    let with = |more: &[&'static str]| [&range[..], more].concat();
    let times = place.json(&with(&["--dry-run", "-o", "json"]));
    let ids: Vec<&str> = { times.as_array().unwrap().iter() }
        .map(|time| time["run"].as_str().unwrap())
        .collect();
    // On the 25th the clock changes back from summer time.
    let expected = ["20261024T003000Z", "20261025T003000Z", "20261026T013000Z"];
    assert_eq!(ids, expected.map(|at| format!("nightly-at-{at}")));
    assert_eq!(
        place.json(&["list", "-o", "json"]).as_array().map(Vec::len),
        Some(0)
    );
    // One of them was started before the backfill.
    let one = ["workflow", "start", "nightly", "--id", ids[1]];
    assert!(place.run(&one).status.success());
    let output = place.run(&range);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("1 time skipped"), "{stderr}");
    let output = String::from_utf8(output.stdout).unwrap();
    for at in ["2026-10-24T00:30:00Z", "2026-10-26T01:30:00Z"] {
        assert!(output.contains(at), "{output}");
    }
    let again = place.run(&with(&["--concurrency", "3"]));
    let stderr = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(stderr.contains("3 times skipped"), "{stderr}");
    let label = ["list", "--label", "windlass.schedule=nightly", "-o", "json"];
    assert_eq!(place.json(&label).as_array().map(Vec::len), Some(2));
}

#[test]
fn a_killed_backfill_continues_its_unfinished_runs() {
    let place = Place::new();
    let go = place.dir.path().join("go");
    let text = format!(
        "schedule: '30 2 * * *'\nactions:\n  \
         a: {{ type: shell, run: \"until test -e {}; do sleep 0.05; done\" }}\n  \
         b: {{ type: compose, inputs: \"@schedule('time')\" }}\noutputs: \"@outputs('b')\"\n",
        go.display()
    );
    let file = place.file("n.yaml", &text);
    assert!(place.run(&["workflow", "put", "n", &file]).status.success());
    let range = [
        "schedule",
        "backfill",
        "n",
        "--from",
        "2026-11-01",
        "--to",
        "2026-11-05",
        "--concurrency",
        "2",
    ];
    let statuses = || -> Vec<String> {
        let output = place.run(&["list", "-o", "json"]);
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let runs = listed.as_array().into_iter().flatten();
        runs.map(|run| run["status"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut child = place.command(&range).spawn().unwrap();
    let has_started = (0..1_200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        statuses().len() == 2
    });
    assert!(has_started, "{:?}", statuses());
    child.kill().unwrap();
    child.wait().unwrap();

    // A paused run stays paused, and the command says how it is resumed.
    let paused = "n-at-20261101T023000Z";
    assert!(place.run(&["pause", paused]).status.success());
    std::fs::write(&go, "").unwrap();
    let output = place.run(&range);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("resume: windlass resume"), "{stderr}");
    assert!(!stderr.contains("skipped"), "{stderr}");
    assert!(place.run(&["resume", paused]).status.success());

    let output = place.run(&range);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("2 times skipped"), "{stderr}");
    assert_eq!(statuses(), ["Succeeded"; 4]);
}

#[test]
fn what_cannot_be_backfilled_is_reported() {
    let place = Place::new();
    let file = place.file("nightly.yaml", NIGHTLY);
    assert!(
        place
            .run(&["workflow", "put", "nightly", &file])
            .status
            .success()
    );
    let plain = place.file("plain.yaml", "actions: { a: { type: compose, inputs: 1 } }");
    assert!(
        place
            .run(&["workflow", "put", "plain", &plain])
            .status
            .success()
    );
    let wrong = [
        (
            vec![
                "backfill",
                "nightly",
                "--from",
                "2026-11-02",
                "--to",
                "2026-11-01",
            ],
            "the range is empty",
        ),
        (
            vec![
                "backfill",
                "nightly",
                "--from",
                "2026-11-02",
                "--to",
                "2999-11-01",
            ],
            "only past times",
        ),
        (
            vec!["backfill", "nightly", "--from", "1990-11-02"],
            "more than 1000 times",
        ),
        (
            vec!["backfill", "nightly", "--from", "yesterday"],
            "`yesterday` is not a valid time",
        ),
        (
            vec!["backfill", "nigtly", "--from", "2026-11-02"],
            "did you mean `nightly`",
        ),
        (
            vec!["backfill", "plain", "--from", "2026-11-02"],
            "`plain` has no schedule",
        ),
        (vec!["pause", "plain"], "`plain` has no schedule"),
        (vec!["resume", "nigtly"], "unknown workflow `nigtly`"),
    ];
    for (args, expected) in wrong {
        let output = place.run(&[&["schedule"], &args[..]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_continues_when_the_server_dies() {
    let place = Place::new();
    let server = Server::start(&place.state());
    let text = NIGHTLY.replace(
        "  wdl:",
        "  go: { type: waitForSignal, signal: go }\n  wdl:",
    );
    put(&server, "nightly", &text).await;
    let range = [
        "schedule",
        "backfill",
        "nightly",
        "--from",
        "2026-11-01",
        "--to",
        "2026-11-04",
    ];
    let child = place.command(&range).spawn().unwrap();
    at_least(&server, 1).await;
    server.kill();
    // Either the command or this server owns the store now.
    let mut ended = BTreeSet::new();
    for _ in 0..600 {
        let listed = place.run(&["list", "-o", "json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        for run in listed.as_array().into_iter().flatten() {
            let id = run["run"].as_str().unwrap().to_owned();
            if run["status"] == "Succeeded" {
                ended.insert(id);
            } else {
                place.run(&["signal", &id, "go"]);
            }
        }
        if ended.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(ended.len(), 3, "{ended:?}");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        ended.iter().all(|id| id.starts_with("nightly-at-202611")),
        "{ended:?}"
    );
}
