//! The environment variables of the options.
//! For all commands, a variable has the name `WINDLASS_` and the long name of the option.

use clap::builder::FalseyValueParser;
use clap::{Arg, ArgAction, Command};

/// The commands and their options that have no environment variable.
/// Such options select runs, or are useful for a single command only.
const WITHOUT: [(&[&str], &[&str]); 5] = [
    (
        &["pause", "cancel", "resume", "retry"],
        &["label", "status", "workflow", "stuck", "dry-run"],
    ),
    (&["list"], &["text", "since", "until", "stuck"]),
    (&["prune"], &["label", "status"]),
    (&["run", "start", "test"], &["scheduled-time"]),
    (
        &["test", "bench"],
        &[
            "at", "attempt", "set", "input", "now", "loops", "seconds", "long",
        ],
    ),
];

/// Sets the environment variable of every option, unless the option has another one or is in [`WITHOUT`].
/// A flag is off if its variable is empty, `0`, `false` or `no`.
pub(super) fn named(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let without = move |long: &str| {
        WITHOUT
            .iter()
            .any(|(commands, longs)| commands.contains(&&*name) && longs.contains(&long))
    };
    command
        .mut_args(|arg| variable(arg, &without))
        .mut_subcommands(named)
}

fn variable(arg: Arg, without: &dyn Fn(&str) -> bool) -> Arg {
    let arg = match arg.get_action() {
        ArgAction::SetTrue => arg.value_parser(FalseyValueParser::new()),
        _ => arg,
    };
    match arg.get_long() {
        Some(long) if arg.get_env().is_none() && !without(long) => {
            let name = format!("WINDLASS_{}", long.to_uppercase().replace('-', "_"));
            arg.env(name)
        }
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::WITHOUT;
    use crate::cli::args::command;
    use clap::Command;

    fn variables(command: &Command) -> Vec<(String, String)> {
        let named = command.get_arguments().filter_map(|arg| {
            let env = arg.get_env()?.to_str()?.to_owned();
            Some((arg.get_long().unwrap_or_default().to_owned(), env))
        });
        named.collect()
    }

    #[test]
    fn options_without_a_variable_exist_and_have_none() {
        for (commands, longs) in WITHOUT {
            for long in longs {
                let all = command();
                let mut have = all.get_subcommands().filter(|one| {
                    let mut longs = one.get_arguments().filter_map(|arg| arg.get_long());
                    commands.contains(&one.get_name()) && longs.any(|other| other == *long)
                });
                assert!(have.next().is_some(), "{long}");
            }
        }
    }

    #[test]
    fn options_have_the_variable_of_their_name_or_their_own() {
        let all = command();
        let of = |name: &str| variables(all.find_subcommand(name).unwrap());
        let has = |name: &str, long: &str, env: &str| {
            let pair = (long.to_owned(), env.to_owned());
            assert!(of(name).contains(&pair), "{name}: {:?}", of(name));
        };
        has(
            "serve",
            "max-effects-per-host",
            "WINDLASS_MAX_EFFECTS_PER_HOST",
        );
        has("history", "events", "WINDLASS_WITH_EVENTS");
        has("run", "secret-command", "WINDLASS_SECRETS_COMMAND");
        has("prune", "dry-run", "WINDLASS_DRY_RUN");
        assert!(!of("cancel").iter().any(|(long, _)| long == "dry-run"));
        let global = ("state".to_owned(), "WINDLASS_STATE".to_owned());
        assert!(variables(&all).contains(&global));
    }
}
