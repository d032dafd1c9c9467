//! `windlass bench`: every section measures something, and leaves nothing behind.

use super::process::Place;
use serde_json::Value;

#[test]
fn every_section_measures_and_cleans_up() {
    let place = Place::new();
    let dir = place.dir.path().join("disk");
    std::fs::create_dir(&dir).unwrap();
    let words = ["--loops", "20,40", "--seconds", "4s", "-o", "json", "--dir"];
    let report = place.json(&[&["bench"], &words[..], &[dir.to_str().unwrap()]].concat());
    assert_eq!(
        report["store"],
        std::env::var("WINDLASS_STORE").unwrap_or("sled".to_owned())
    );
    let figures = report["figures"].as_array().unwrap();
    for section in [
        "start",
        "gaps",
        "throughput",
        "polls",
        "waiting",
        "recovery",
    ] {
        let of = |one: &&Value| one["section"] == section;
        assert!(figures.iter().any(|one| of(&one)), "{section}: {report}");
    }
    for one in figures {
        let value = one["value"].as_f64().unwrap();
        let may_be_none = one["figure"].as_str().unwrap().contains("memory a loop");
        assert!(value > 0.0 || may_be_none, "{one}");
    }
    let rate = |loops: &str| {
        let name = format!("{loops} loops, polls a second");
        let found = figures.iter().find(|one| one["figure"] == name.as_str());
        found.unwrap()["value"].as_f64().unwrap()
    };
    // Each loop polls once a second. At the start and the end of the measured period one more poll may be counted.
    for (loops, each) in [("20", 20.0), ("40", 40.0)] {
        let rate = rate(loops) / each;
        assert!((0.4..1.3).contains(&rate), "{report}");
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let place = Place::new();
    let done = place.run(&["bench", "start", "--dir", "/nowhere/at/all"]);
    assert_eq!(done.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(stderr.contains("/nowhere/at/all"), "{stderr}");
}
