//! The one-line commands (`poll`, `try`, `paginate`, `operation`) as tools for agents.
//! The flags of a command are the arguments of its tool.

use super::tools::{object_schema, unknown_argument};
use crate::cli::args::{OperationArgs, PaginateArgs, PollArgs, QuickArgs, TryArgs};
use crate::cli::oneliner::{self, LineFile};
use crate::cli::yaml;
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};
use std::cmp::Reverse;
use windlass_engine::{Caps, Dialect};

/// The workflow that is run for a tool call.
pub struct ToolWorkflow {
    /// The workflow's name. The ids of its runs begin with this name.
    pub name: String,
    pub text: String,
    /// The run id that the agent chose.
    pub id: Option<String>,
}

/// A one-line command as a tool.
pub struct LineTool {
    name: &'static str,
    about: &'static str,
    flags: fn(Command) -> Command,
    make: fn(&ArgMatches) -> Result<LineFile, String>,
}

const TOOLS: [LineTool; 4] = [
    LineTool {
        name: "poll",
        about: "Repeats a request or a command until a condition holds, and returns the last answer. Survives the end \
                of this conversation.",
        flags: PollArgs::augment_args,
        make: |matches| {
            let args: PollArgs = parsed(matches)?;
            oneliner::poll_file(&args, args.times.unwrap_or_else(max_checks))
        },
    },
    LineTool {
        name: "paginate",
        about: "Reads all pages of a URL and writes the rows to a file. No page is read twice after a crash.",
        flags: PaginateArgs::augment_args,
        make: |matches| {
            let args: PaginateArgs = parsed(matches)?;
            let Some(to) = args.to.to_str().filter(|_| args.to.is_absolute()) else {
                return Err(String::from("`to` has to be an absolute path of a file"));
            };
            let to = oneliner::literal(to);
            oneliner::paginate_file(&args, &to, args.times.unwrap_or_else(max_checks))
        },
    },
    LineTool {
        name: "operation",
        about: "Starts a long operation of a server with one request, polls it until it has ended, and returns its \
                result. Nothing is started twice.",
        flags: OperationArgs::augment_args,
        make: |matches| oneliner::operation_file(&parsed(matches)?, max_checks()),
    },
    LineTool {
        name: "try",
        about: "Runs a command until it succeeds, with a pause between attempts.",
        flags: TryArgs::augment_args,
        make: |matches| Ok(oneliner::try_file(&parsed(matches)?)),
    },
];

/// Returns the maximum number of iterations that an agent's loop may have.
fn max_checks() -> u64 {
    let caps = Caps {
        guest: true,
        ..Caps::default()
    };
    caps.count(Dialect::Loom)
}

fn parsed<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, String> {
    T::from_arg_matches(matches).map_err(|error| shown(&error))
}

pub fn find(name: &str) -> Option<&'static LineTool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the descriptions of these tools for an agent.
pub fn described() -> impl Iterator<Item = Tool> {
    TOOLS.iter().map(|tool| {
        let hints = ToolAnnotations::new().read_only(false);
        Tool::new(tool.name, tool.about, tool.schema()).with_annotations(hints)
    })
}

impl LineTool {
    fn command(&self) -> Command {
        (self.flags)(Command::new(self.name).no_binary_name(true))
    }

    /// Returns the JSON Schema of the tool's arguments.
    pub fn schema(&self) -> JsonObject {
        let command = self.command();
        let arguments: Vec<&Arg> = arguments(&command).collect();
        let required = arguments.iter().filter(|arg| arg.is_required_set());
        let required: Vec<String> = required.map(|arg| property(arg)).collect();
        let properties: JsonObject = arguments
            .iter()
            .map(|arg| (property(arg), described_argument(arg, &command)))
            .collect();
        object_schema(properties, &required)
    }

    /// Makes the workflow for the arguments of a call.
    ///
    /// # Errors
    /// A message for the agent about the argument that is wrong.
    pub fn make(&self, given: &JsonObject) -> Result<ToolWorkflow, String> {
        let mut command = self.command();
        let mut words = Vec::new();
        let mut last = Vec::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let arg = arguments(&command).find(|arg| property(arg) == *name);
            let arg = arg.ok_or_else(|| {
                let known: Vec<String> = arguments(&command).map(property).collect();
                unknown_argument(name, &known)
            })?;
            if let ArgAction::SetTrue = arg.get_action()
                && !value.is_boolean()
            {
                return Err(format!("`{name}` has to be true or false"));
            }
            let values = match value {
                Json::Array(items) => items.iter().map(text).collect::<Result<_, _>>(),
                Json::Bool(false) => continue,
                other => Ok(vec![text(other)?]),
            };
            let values: Vec<String> =
                values.map_err(|why: String| format!("`{name}` has to be {why}"))?;
            match (arg.get_long(), arg.get_action()) {
                (None, _) => last.extend(values),
                (Some(long), ArgAction::SetTrue) => words.push(format!("--{long}")),
                (Some(long), _) => {
                    words.extend(values.iter().map(|value| format!("--{long}={value}")));
                }
            }
        }
        if !last.is_empty() {
            words.push(String::from("--"));
            words.extend(last);
        }
        let matches = command.try_get_matches_from_mut(words);
        let matches = matches.map_err(|error| with_arguments(&shown(&error), &command))?;
        let LineFile { name, made } = (self.make)(&matches)?;
        let mut members = serde_json::Map::from_iter([(String::from("name"), json!(name))]);
        members.extend(made.as_object().cloned().unwrap_or_default());
        Ok(ToolWorkflow {
            text: yaml::to_text(&Json::Object(members)),
            name,
            id: given.get("id").map(text).transpose()?,
        })
    }
}

/// Returns the arguments of a command.
/// Of [`QuickArgs`], only `id` is included, because the other flags only have a meaning for a process with a
/// terminal.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let own = QuickArgs::augment_args(Command::new(""));
    let own: Vec<String> = own
        .get_arguments()
        .map(|arg| arg.get_id().to_string())
        .collect();
    command.get_arguments().filter(move |arg| {
        let id = arg.get_id().as_str();
        id == "id" || !own.iter().any(|own| own == id)
    })
}

/// Replaces the flags in a text by the names of the tool's arguments, because an agent knows only these.
fn with_arguments(text: &str, command: &Command) -> String {
    let named = |arg: &Arg| Some((format!("--{}", arg.get_long()?), property(arg)));
    let mut flags: Vec<_> = command.get_arguments().filter_map(named).collect();
    // Longer flags are replaced first, because a flag may be the beginning of another one.
    flags.sort_by_key(|(flag, _)| Reverse(flag.len()));
    let replace = |text: String, (flag, name): &(String, String)| text.replace(flag, name);
    flags.iter().fold(text.to_owned(), replace)
}

/// Returns the name of the argument for a flag: `status_url` for `--status-url`.
fn property(arg: &Arg) -> String {
    arg.get_id().as_str().replace('-', "_")
}

fn described_argument(arg: &Arg, command: &Command) -> Json {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = with_arguments(&help, command);
    // The standard output of this process belongs to the protocol.
    let help = help.replace("; `-` is standard output", ". An absolute path");
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|one| one.to_string_lossy())
        .collect();
    let about = match defaults.is_empty() {
        true => help,
        false => format!("{help}; default: {}", defaults.join(" ")),
    };
    let is_list = matches!(arg.get_action(), ArgAction::Append)
        || arg.get_long().is_none() && arg.is_last_set();
    match arg.get_action() {
        ArgAction::SetTrue => json!({ "type": "boolean", "description": about }),
        _ if is_list => {
            json!({ "type": "array", "items": { "type": "string" }, "description": about })
        }
        _ => json!({ "type": ["string", "integer"], "description": about }),
    }
}

fn text(value: &Json) -> Result<String, String> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(flag) => Ok(flag.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            Err(String::from("text or a list of texts"))
        }
    }
}

/// Returns the message of an error of clap for an agent, without the usage of the command.
fn shown(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(missing) = error.get(ContextKind::InvalidArg)
    {
        return format!("missing: {missing}");
    }
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.trim_start_matches("error: ").trim().to_owned()
}
