//! `windlass man`: the manual pages, made from the flags and from the sections below.

use super::args::{self, ManArgs};
use super::exit::{Exit, Failure};
use super::output;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;
use std::path::Path;

/// Examples of a command, each with a comment: of `windlass` itself, and of commands by name.
const EXAMPLES: [(&str, &[(&str, &str)]); 37] = [
    (
        "windlass",
        &[
            (
                "Poll a URL until its job is done",
                "windlass poll --url https://api.example.com/jobs/7 --until 'body.status == \"done\"'",
            ),
            (
                "Run a workflow, and resume it after a crash",
                "windlass run nightly.yaml --id nightly\nwindlass resume nightly",
            ),
            ("Explain why a run waits", "windlass status nightly"),
        ],
    ),
    (
        "run",
        &[
            (
                "Run a workflow with two inputs",
                "windlass run sync.yaml -i day=2026-11-25 -i limit:=500",
            ),
            (
                "Hand the run to a server",
                "windlass run sync.yaml --detach --server http://127.0.0.1:7465",
            ),
        ],
    ),
    (
        "poll",
        &[
            (
                "Run a command every 5 seconds until its exit code is 0",
                "windlass poll --every 5s --timeout 30m -- ./check.sh",
            ),
            (
                "Poll a URL with a growing interval",
                "windlass poll --url https://api.example.com/jobs/7 --until 'body.status == \"done\"' --every 5s..1m",
            ),
        ],
    ),
    (
        "try",
        &[(
            "Retry a command at most 10 times",
            "windlass try --every 1s..1m --times 10 -- psql -c 'select 1'",
        )],
    ),
    (
        "paginate",
        &[(
            "Fetch all pages into one file",
            "windlass paginate https://api.example.com/items --next body.next --items body.items --to rows.ndjson",
        )],
    ),
    (
        "operation",
        &[(
            "Start an export and wait for its result",
            "windlass operation https://api.example.com/v1/exports -d '{\"table\": \"orders\"}' --timeout 6h",
        )],
    ),
    (
        "serve",
        &[(
            "Serve the API to other machines",
            "windlass serve --listen 0.0.0.0:7465 --token-file token --tls-cert cert.pem --tls-key key.pem",
        )],
    ),
    (
        "worker",
        &[(
            "Execute runs on Temporal",
            "windlass worker --engine 'temporal://localhost:7233/default?queue=loops'",
        )],
    ),
    (
        "ui",
        &[(
            "Open the console of a server",
            "windlass ui --server http://127.0.0.1:7465",
        )],
    ),
    (
        "mcp",
        &[(
            "Serve agents on a store",
            "windlass mcp --state /var/lib/loops",
        )],
    ),
    (
        "resume",
        &[
            ("Resume one run", "windlass resume nightly"),
            (
                "Resume all unfinished runs, including paused ones",
                "windlass resume --paused",
            ),
        ],
    ),
    (
        "list",
        &[
            (
                "List the failed runs of the last day",
                "windlass list --status Failed --since 1d",
            ),
            (
                "List stuck runs as JSON",
                "windlass list --stuck 10m -o json",
            ),
        ],
    ),
    (
        "status",
        &[("Watch a run", "windlass status nightly --watch")],
    ),
    (
        "history",
        &[(
            "Show the last 100 iterations of a loop",
            "windlass history nightly --loop poll --iterations 100",
        )],
    ),
    (
        "export",
        &[(
            "Write a page to attach to a mail",
            "windlass export nightly > nightly.html",
        )],
    ),
    ("logs", &[("Follow a run", "windlass logs -f nightly")]),
    (
        "dump",
        &[(
            "Print a run's checkpoint as JSON",
            "windlass dump nightly -o json",
        )],
    ),
    (
        "doctor",
        &[(
            "Check the store, and repair a damaged one",
            "windlass doctor\nwindlass doctor --repair",
        )],
    ),
    (
        "pause",
        &[(
            "Pause one run, or all runs with a label",
            "windlass pause nightly\nwindlass pause --label team=data",
        )],
    ),
    (
        "cancel",
        &[(
            "Cancel all stuck runs of a workflow",
            "windlass cancel --workflow nightly --stuck 1h",
        )],
    ),
    (
        "signal",
        &[(
            "Approve a run that waits for the signal `decision`",
            "windlass signal release decision --payload '{\"approved\": true}'",
        )],
    ),
    (
        "retry",
        &[
            (
                "Retry from the action that failed",
                "windlass retry nightly --from failed",
            ),
            (
                "Retry the failed items of a foreach",
                "windlass retry nightly --failed-items",
            ),
        ],
    ),
    (
        "prune",
        &[(
            "Delete runs that ended more than 30 days ago",
            "windlass prune --older-than 30d",
        )],
    ),
    (
        "backup",
        &[("Back up the store", "windlass backup /backup/loops")],
    ),
    (
        "restore",
        &[(
            "Replace the store with a backup",
            "windlass restore /backup/loops --replace",
        )],
    ),
    (
        "migrate",
        &[("Migrate the store to fjall", "windlass migrate --to fjall")],
    ),
    (
        "workflow",
        &[(
            "Save a workflow and start a run of it",
            "windlass workflow put nightly nightly.yaml\nwindlass workflow start nightly -i day=2026-11-25",
        )],
    ),
    (
        "schedule",
        &[(
            "Print the next five start times of a file",
            "windlass schedule next nightly.yaml",
        )],
    ),
    (
        "validate",
        &[(
            "Validate all workflows of a folder",
            "windlass validate --strict workflows/*.yaml",
        )],
    ),
    (
        "test",
        &[
            (
                "Simulate a workflow up to iteration 14",
                "windlass test poll.yaml --stub answers.yaml --at poll#14",
            ),
            (
                "Run the cases in poll.test.yaml",
                "windlass test poll.yaml --junit results.xml",
            ),
        ],
    ),
    (
        "compile",
        &[(
            "Draw a workflow",
            "windlass compile nightly.yaml -o svg > nightly.svg",
        )],
    ),
    (
        "eval",
        &[("Evaluate an expression", "windlass eval 'add(1, 2)'")],
    ),
    (
        "schema",
        &[(
            "Print the JSON Schema of Loom files",
            "windlass schema loom",
        )],
    ),
    ("lsp", &[("Start the language server", "windlass lsp")]),
    (
        "bench",
        &[(
            "Measure the time between two steps",
            "windlass bench gaps --dir /var/lib/loops",
        )],
    ),
    (
        "completions",
        &[(
            "Complete commands, options and run ids in bash",
            "source <(windlass completions bash)",
        )],
    ),
    (
        "man",
        &[(
            "Install the manual pages",
            "windlass man --dir /usr/local/share/man/man1",
        )],
    ),
];

const EXIT_STATUS: [(&str, &str); 9] = [
    ("0", "Success."),
    (
        "1",
        "The run failed, or the output cannot be written, or the address is in use.",
    ),
    (
        "2",
        "Usage: an invalid option, input or file, or an unknown run or store.",
    ),
    ("3", "The workflow or the expression is invalid."),
    (
        "4",
        "A loop reached the limit of its iterations, or requests more than the maximum.",
    ),
    ("5", "A timeout."),
    ("6", "The run was cancelled."),
    (
        "7",
        "The run is not finished: it is paused, or a signal stopped the process.",
    ),
    (
        "8",
        "The store is locked, damaged or full, or the server cannot be reached.",
    ),
];

const ENVIRONMENT: [(&str, &str); 6] = [
    (
        "WINDLASS_OPTION",
        "Value of the option OPTION, unless it is given; the options above name their variables.",
    ),
    (
        "WINDLASS_TOKEN",
        "Token of the server, instead of --token-file.",
    ),
    (
        "WINDLASS_SECRET_NAME",
        "Value of the secret NAME, if --secrets and --secret-command do not provide it.",
    ),
    ("WINDLASS_LOG", "Filter of the log, e.g. warn,script=info."),
    ("NO_COLOR", "Disables colour, if it is not empty."),
    ("SSL_CERT_FILE", "File with trusted certificates (PEM)."),
];

const FILES: [(&str, &str); 4] = [
    (
        "state/",
        "The store, unless --state names another directory.",
    ),
    (
        "state/control.sock",
        "Socket of the process that owns the store.",
    ),
    ("NAME.test.yaml", "Test cases of NAME.yaml."),
    (
        "local.settings.json",
        "App settings of a Logic Apps project.",
    ),
];

/// The command: one page on standard output, or one for each command in a directory.
pub fn man(given: &ManArgs) -> Result<Exit, Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    match &given.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .and_then(|()| write_all(&command, dir))
                .map_err(|error| {
                    let place = dir.display();
                    Failure::Usage(format!("{place} cannot be written: {error}"))
                })?;
        }
        None => {
            let page = page(&command).map_err(Failure::Output)?;
            output::print_exact(String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_all(inner, dir)?;
    }
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(dir.join(name), page(command)?)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    // A command in another one has the examples of that.
    let words = command.get_display_name().unwrap_or("windlass").split('-');
    let name = words.take(2).last().unwrap_or_default();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == name) {
        roff.control("SH", ["EXAMPLES"]);
        for (comment, lines) in *examples {
            roff.control("PP", []).text([roman(format!("{comment}:"))]);
            roff.control("PP", [])
                .control("nf", [])
                .control("RS", ["4"]);
            for line in lines.lines() {
                roff.text([bold(line)]);
            }
            roff.control("RE", []).control("fi", []);
        }
    }
    for (heading, entries) in [
        ("EXIT STATUS", &EXIT_STATUS[..]),
        ("ENVIRONMENT", &ENVIRONMENT),
        ("FILES", &FILES),
    ] {
        roff.control("SH", [heading]);
        for (term, text) in entries {
            let term: Inline = bold(*term);
            roff.control("TP", []).text([term]).text([roman(*text)]);
        }
    }
    if name == "windlass" {
        roff.control("SH", ["SEE ALSO"]);
        let text = "windlass-COMMAND(1), and windlass COMMAND --help.";
        roff.text([roman(text)]);
    }
    roff.to_writer(&mut page)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::{EXAMPLES, args, page};

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut command = args::command().disable_help_subcommand(true);
        command.build();
        let names = command.get_subcommands().map(|one| one.get_name());
        for name in names.chain(["windlass"]) {
            let examples = EXAMPLES.iter().find(|(of, _)| *of == name);
            let (_, examples) = examples.unwrap_or_else(|| panic!("{name} has no example"));
            for line in examples.iter().flat_map(|(_, lines)| lines.lines()) {
                if line.starts_with("source") {
                    continue;
                }
                let (line, _) = line.split_once(" > ").unwrap_or((line, ""));
                // Words as a shell splits them: blanks within quotes belong to a word.
                let mut words = vec![String::new()];
                let mut quoted = false;
                for char in line.chars() {
                    match char {
                        '\'' => quoted = !quoted,
                        ' ' if !quoted => words.push(String::new()),
                        char => words.last_mut().unwrap().push(char),
                    }
                }
                let parsed = args::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn pages_have_the_usual_sections() {
        let mut command = args::command();
        command.build();
        let inner = command.find_subcommand("run").unwrap();
        for one in [&command, inner] {
            let page = String::from_utf8(page(one).unwrap()).unwrap();
            for heading in ["EXAMPLES", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"] {
                assert!(page.contains(&format!(".SH {heading}\n")), "{page}");
            }
        }
    }
}
