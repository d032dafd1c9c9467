//! The exit code of `poll` if its checks fail as often as `--times` allows, and if they fail for another reason.

use super::first_use::Folder;
use super::paginate::serve;
use serde_json::json;

const NOTE: &str = "the maximum (--times)";

#[test]
fn only_a_failure_that_is_retried_counts_as_a_used_attempt() {
    let folder = Folder::new();
    let (base, _) = serve(|path| {
        let status = path.trim_start_matches('/').parse().unwrap();
        (status, vec![], json!({ "state": "text" }))
    });
    let [unauthorized, unavailable, ok] = [401, 503, 200].map(|status| format!("{base}/{status}"));
    let until = ["--until", "body.done"];
    for (line, code) in [
        (vec!["--url", &unauthorized, until[0], until[1]], 1),
        (vec!["--url", &ok, "--until", "body.state > 3"], 1),
        (
            vec![
                "--url",
                &ok,
                "-H",
                "a: ${secret:NOPE}",
                "--until",
                "body.state",
            ],
            1,
        ),
        (vec!["--url", &ok, "-H", "a: ${secret:NOPE}"], 1),
        (vec!["--", "./nosuch"], 1),
        (vec!["--url", &unavailable, until[0], until[1]], 4),
        (vec!["--url", &unauthorized], 4),
    ] {
        let times = if code == 4 { "2" } else { "1" };
        let mut poll = vec!["poll", "--times", times, "--every", "1ms"];
        poll.extend(line);
        let ran = folder.run(&poll).left(code, &[]);
        assert_eq!(ran.err.contains(NOTE), code == 4, "{ran:?}");
    }
}

#[test]
fn resume_and_retry_exit_as_the_line_does() {
    let folder = Folder::new();
    let (base, _) = serve(|_| (404, vec![], json!({})));
    for (number, more) in [vec![], vec!["--until", "body.done"]]
        .into_iter()
        .enumerate()
    {
        let id = format!("p{number}");
        let mut line = vec![
            "poll", "--url", &base, "--times", "2", "--every", "1ms", "--id", &id,
        ];
        line.extend(more);
        folder.run(&line).left(4, &[NOTE]);
        for verb in ["resume", "retry"] {
            folder.run(&[verb, &id]).left(4, &[NOTE]);
        }
    }
}
