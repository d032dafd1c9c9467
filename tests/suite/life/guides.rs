//! The commands on the pages for beginners. The `sh` blocks of a page run in order against the server of the examples,
//! with the `yaml` blocks that name a file. A `text` block directly after an `sh` block lists parts of its output.

use crate::life::first_use::Folder;
use crate::{app, support};
use std::path::Path;
use std::process::Command;

/// The language of a block of code, its text, and whether it directly follows the block before it.
fn blocks(page: &str) -> Vec<(&str, String, bool)> {
    let mut blocks: Vec<(&str, String, bool)> = Vec::new();
    let (mut is_open, mut is_adjacent) = (false, false);
    for line in page.lines() {
        match (line.strip_prefix("```"), is_open) {
            (Some(_), true) => (is_open, is_adjacent) = (false, true),
            (Some(language), false) => {
                blocks.push((language, String::new(), is_adjacent));
                is_open = true;
            }
            (None, true) => {
                if let Some((_, text, _)) = blocks.last_mut() {
                    *text += &format!("{line}\n");
                }
            }
            (None, false) if !line.is_empty() => is_adjacent = false,
            (None, false) => {}
        }
    }
    blocks
}

/// Runs the commands of a page; returns how many blocks ran.
async fn run_page(name: &str) -> usize {
    let base = support::serve(app::router(app::Options::default())).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs").join(name)).unwrap();
    let page = page.replace("http://127.0.0.1:8080", &base);
    let place = Folder::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.display());
    let mut output = String::new();
    let mut count = 0;
    for (language, text, is_adjacent) in blocks(&page) {
        match language {
            "yaml" => {
                let file = text.lines().next().and_then(|line| line.strip_prefix("# "));
                if let Some(file) = file.filter(|file| file.ends_with(".yaml")) {
                    place.file(file, &text);
                }
            }
            "sh" => {
                let mut command = Command::new("sh");
                command.args(["-euc", &text]).current_dir(place.path());
                command.env("PATH", &path).env_remove("WINDLASS_STATE");
                // The server of the examples runs in this runtime.
                let ended = tokio::task::block_in_place(|| command.output().unwrap());
                output = String::from_utf8(ended.stdout).unwrap();
                let errors = String::from_utf8(ended.stderr).unwrap();
                assert!(ended.status.success(), "{name}: {text}{output}{errors}");
                count += 1;
            }
            "text" if is_adjacent => {
                for line in text.lines() {
                    assert!(output.contains(line), "{name}: no `{line}` in {output}");
                }
            }
            _ => {}
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_get_started_run() {
    assert_eq!(run_page("get-started/first-poll.md").await, 4);
    assert_eq!(run_page("get-started/first-workflow.md").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_polling_guide_run() {
    assert_eq!(run_page("guides/polling.md").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_paging_guide_run() {
    assert_eq!(run_page("guides/paging.md").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_retries_guide_run() {
    assert_eq!(run_page("guides/retries.md").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_agents_guide_run() {
    assert_eq!(run_page("guides/agents.md").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_schedules_and_cron_guides_run() {
    assert_eq!(run_page("guides/schedules.md").await, 1);
    assert_eq!(run_page("guides/from-cron.md").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_approvals_guide_run() {
    assert_eq!(run_page("guides/approvals.md").await, 1);
}
