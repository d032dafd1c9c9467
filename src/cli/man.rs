//! `windlass man`: the manual pages, generated from the flags and from the sections below.

use super::args::{self, ManArgs};
use super::exit::{Exit, Failure};
use super::output;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io;
use std::path::Path;

/// The examples of `windlass` itself and of its commands.
/// The name of a command is on a line without indentation. Its examples follow with indentation: a comment, and below
/// it, further indented, the lines to type.
const EXAMPLES: &str = include_str!("examples.txt");

/// Returns the examples of a command: comments and lines, as [`EXAMPLES`] has them.
fn examples(of: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = EXAMPLES.lines().skip_while(move |line| *line != of);
    lines.next();
    lines.take_while(|line| line.starts_with(' '))
}

/// Makes a table. Its rows may be long.
macro_rules! rows {
    ($($key:literal => $value:literal,)+) => {
        [$(($key, $value)),+]
    };
}

const EXIT_STATUS: [(&str, &str); 9] = rows! {
    "0" => "Success.",
    "1" => "The run failed, or the output cannot be written, or the address is in use.",
    "2" => "Usage: an invalid option, input or file, or an unknown run or store.",
    "3" => "The workflow or the expression is invalid.",
    "4" => "A loop reached the limit of its iterations, or requests more than the maximum.",
    "5" => "A timeout.",
    "6" => "The run was cancelled.",
    "7" => "The run is not finished: it is paused, or a signal stopped the process.",
    "8" => "The store is locked, damaged or full, or the server cannot be reached.",
};

const ENVIRONMENT: [(&str, &str); 6] = rows! {
    "WINDLASS_OPTION" => "Value of the option OPTION, unless it is given; the options above name their variables.",
    "WINDLASS_TOKEN" => "Token of the server, instead of --token-file.",
    "WINDLASS_SECRET_NAME" => "Value of the secret NAME, if --secrets does not provide it. Read before --secret-command.",
    "WINDLASS_LOG" => "Filter of the log, e.g. warn,script=info.",
    "NO_COLOR" => "Disables colour, if it is not empty.",
    "SSL_CERT_FILE" => "File with trusted certificates (PEM).",
};

const FILES: [(&str, &str); 4] = rows! {
    "state/" => "The store, unless --state names another directory.",
    "state/control.sock" => "Socket of the process that owns the store.",
    "NAME.test.yaml" => "Test cases of NAME.yaml.",
    "local.settings.json" => "App settings of a Logic Apps project.",
};

/// Prints one page, or writes one page for each command into a directory.
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
    // A subcommand has the examples of the command to which it belongs.
    let words = command.get_display_name().unwrap_or("windlass").split('-');
    let name = words.take(2).last().unwrap_or_default();
    let mut examples = examples(name).peekable();
    if examples.peek().is_some() {
        roff.control("SH", ["EXAMPLES"]);
    }
    while let Some(comment) = examples.next() {
        let comment = format!("{}:", comment.trim_start());
        roff.control("PP", []).text([roman(comment)]);
        roff.control("PP", [])
            .control("nf", [])
            .control("RS", ["4"]);
        while let Some(line) = examples.next_if(|line| line.starts_with("    ")) {
            roff.text([bold(line.trim_start())]);
        }
        roff.control("RE", []).control("fi", []);
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
    use super::{args, examples, page};

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut command = args::command().disable_help_subcommand(true);
        command.build();
        let names = command.get_subcommands().map(|one| one.get_name());
        for name in names.chain(["windlass"]) {
            assert!(examples(name).count() > 1, "{name} has no example");
            for line in examples(name).filter_map(|line| line.strip_prefix("    ")) {
                if line.starts_with("source") {
                    continue;
                }
                let (line, _) = line.split_once(" > ").unwrap_or((line, ""));
                // The words are split as a shell does it: blanks within quotes belong to a word.
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
