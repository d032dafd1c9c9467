//! The help of `windlass` itself, with its commands under headings.
//! It is written here, because clap supports headings only for options.

use clap::Command;
use std::fmt::Write as _;

/// The headings, each with its commands in the order of the list.
const GROUPS: [(&str, &str); 6] = [
    (
        "Run loops",
        "run poll try paginate operation events serve worker",
    ),
    ("Inspect runs", "list status history logs export dump ui"),
    ("Control runs", "resume pause cancel signal retry"),
    (
        "Workflows and schedules",
        "workflow schedule state validate test compile eval",
    ),
    ("Store", "prune backup restore migrate doctor audit"),
    ("Tools", "mcp schema lsp bench completions man help"),
];

/// The command `help` and its description. clap adds this command only later, when it parses the arguments.
const HELP: (&str, &str) = ("help", "Print this message or the help of a command");

/// Sets the template of the help.
pub(super) fn grouped(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let about = |name: &str| match command.find_subcommand(name) {
        // In a build without a feature, the command of the feature is missing or hidden.
        Some(found) if found.is_hide_set() => None,
        Some(found) => found.get_about().map(ToString::to_string),
        None => (name == HELP.0).then(|| HELP.1.to_owned()),
    };
    let names = GROUPS.iter().flat_map(|(_, names)| names.split(' '));
    let width = names.map(str::len).max().unwrap_or_default();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for (name, about) in names
            .split(' ')
            .filter_map(|name| Some((name, about(name)?)))
        {
            let _ = writeln!(list, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::GROUPS;
    use crate::cli::args::command;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut built = command();
        built.build();
        for one in built.get_subcommands().filter(|one| !one.is_hide_set()) {
            let names = GROUPS.iter().flat_map(|(_, names)| names.split(' '));
            let count = names.filter(|name| *name == one.get_name()).count();
            assert_eq!(count, 1, "{}", one.get_name());
        }
    }

    #[test]
    fn help_has_the_same_groups_however_it_is_requested() {
        for flag in ["help", "-h", "--help"] {
            let shown = command().try_get_matches_from(["windlass", flag]);
            let shown = shown.unwrap_err().to_string();
            for (heading, names) in GROUPS {
                assert!(shown.contains(&format!("\n{heading}:\n")), "{shown}");
                for name in names.split(' ').filter(|name| {
                    let shown = command();
                    let found = shown.find_subcommand(name);
                    found.is_some_and(|one| !one.is_hide_set())
                }) {
                    let lines = shown
                        .lines()
                        .filter(|line| line.starts_with(&format!("  {name} ")));
                    assert_eq!(lines.count(), 1, "{name}: {shown}");
                }
            }
            assert!(shown.contains("--state <DIR>"), "{shown}");
        }
    }
}
