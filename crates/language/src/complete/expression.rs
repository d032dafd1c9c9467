//! Completions in an expression: names that it can read, functions, members and filters.

use super::{CompletionItem, CompletionKind, CompletionRequest, Is};
use crate::MARK;
use crate::cursor::{Language, Region, TypedToken, UnescapedText};
use crate::names::{Action, NamedValue, Names};
use crate::sketch::{Scalar, Style};
use std::ops::Range;
use windlass_engine::Dialect;
use windlass_expression::{
    Function, JinjaKind, LOOP_MEMBERS, SCHEDULE_MEMBERS, jinja_functions, wdl_functions,
};

impl CompletionRequest<'_> {
    /// Returns the completions at a character of an expression.
    pub(super) fn in_expression(
        &self,
        scalar: &Scalar,
        meant: &UnescapedText,
        region: &Region,
        index: usize,
    ) -> (Range<usize>, Vec<CompletionItem>) {
        let names = self.names();
        let typed = meant.typed(region, index);
        let around = names.enclosing_actions(self.at);
        let (start, mut items) = match &typed {
            TypedToken::Argument {
                function,
                number,
                start,
            } => (*start, self.arguments(&names, &around, function, *number)),
            TypedToken::Name { start } => {
                let items = match region.language {
                    Language::Wdl => self.wdl(&names, &around),
                    Language::Jinja => self.jinja(&names, &around),
                };
                (*start, items)
            }
            TypedToken::Member { of, start } => (*start, self.members(&names, &around, of)),
            TypedToken::Filter { start } => (*start, of_jinja(JinjaKind::Filter)),
            TypedToken::Test { start } => (*start, of_jinja(JinjaKind::Test)),
            TypedToken::Other => (index, Vec::new()),
        };
        let end = match typed {
            TypedToken::Argument { start, .. } => {
                let mut end = start;
                let inside = |letter: char| letter != '\'' && !matches!(letter, '\n' | ')' | ',');
                while end < region.inner.end && meant.char(end).is_some_and(inside) {
                    end += 1;
                }
                end
            }
            _ => meant.word(region, index).end.max(start),
        };
        // If a call is written already, its brackets remain.
        let called = meant.char(end) == Some('(');
        for item in &mut items {
            if called && item.snippet {
                item.insert = item.insert.split('(').next().unwrap_or_default().to_owned();
                item.snippet = false;
            }
            if scalar.style == Style::Single {
                item.insert = item.insert.replace('\'', "''");
            }
        }
        let limit = scalar.inner.end;
        (meant.byte(start, limit)..meant.byte(end, limit), items)
    }

    /// Returns the completions for a quoted argument of a function.
    fn arguments(
        &self,
        names: &Names,
        around: &[&Action],
        function: &str,
        number: usize,
    ) -> Vec<CompletionItem> {
        if number > 0 {
            return Vec::new();
        }
        let others = || {
            let own = around.first().map(|own| &own.selection);
            let others = names.actions.iter();
            others
                .filter(move |action| Some(&action.selection) != own && !action.name.contains(MARK))
        };
        match &*function.to_lowercase() {
            "variables" => {
                let mut items = variables(names);
                if around.iter().any(|action| action.is_loop()) {
                    items.extend(
                        LOOP_VARIABLES.map(|(name, about)| {
                            CompletionItem::new(name, Is::Variable).about(about)
                        }),
                    );
                }
                items
            }
            "body" | "outputs" | "actions" | "actionbody" | "actionoutputs" => {
                others().map(action_item).collect()
            }
            "result" => {
                let scopes = [
                    "scope", "foreach", "until", "if", "switch", "while", "dountil",
                ];
                let scopes =
                    others().filter(|action| scopes.contains(&&*action.kind.to_lowercase()));
                scopes.map(action_item).collect()
            }
            "items" => {
                let each = names.actions.iter().filter(|action| action.is_foreach());
                each.map(action_item).collect()
            }
            "iterationindexes" => {
                let loops = names.actions.iter();
                let loops = loops.filter(|action| action.is_loop() || action.is_foreach());
                loops.map(action_item).collect()
            }
            "state" => named_items(&names.state, Is::Variable),
            "inputs" => named_items(&names.inputs, Is::Input),
            "parameters" => named_items(&names.parameters, Is::Input),
            _ => Vec::new(),
        }
    }

    /// Returns the completions at the beginning of a WDL expression: names that it can read, then functions.
    fn wdl(&self, names: &Names, around: &[&Action]) -> Vec<CompletionItem> {
        let own = around.first().map(|own| own.selection.clone());
        let call = |function: &str, item: CompletionItem| {
            let text = format!("{function}('{}')", item.label);
            CompletionItem {
                label: text.clone(),
                insert: text,
                ..item
            }
        };
        let mut items: Vec<_> = variables(names)
            .into_iter()
            .map(|item| call("variables", item))
            .collect();
        let actions = names.actions.iter();
        let actions = actions.filter(|action| {
            Some(&action.selection) != own.as_ref() && !action.name.contains(MARK)
        });
        items.extend(actions.map(|action| call("body", action_item(action))));
        let state = named_items(&names.state, Is::Variable).into_iter();
        items.extend(state.map(|item| call("state", item)));
        let inputs = named_items(&names.inputs, Is::Input).into_iter();
        items.extend(inputs.map(|item| call("inputs", item)));
        let parameters = named_items(&names.parameters, Is::Input).into_iter();
        items.extend(parameters.map(|item| call("parameters", item)));
        items.extend(wdl_functions().iter().map(|function| {
            let none = function.signature.ends_with("()");
            let insert = match none {
                true => format!("{}()", function.name),
                false => format!("{}($0)", function.name),
            };
            function_item(function).inserts(insert, !none)
        }));
        items
    }

    /// Returns the top-level names that a Jinja expression can read.
    fn jinja(&self, names: &Names, around: &[&Action]) -> Vec<CompletionItem> {
        let root = |name: &str, about: &str| CompletionItem::new(name, Is::Variable).about(about);
        let mut items = match self.dialect {
            Dialect::Loom | Dialect::Azure => {
                let mut items = vec![
                    root("inputs", "the run's inputs"),
                    root("variables", "the variables"),
                    root("state", "the values between runs"),
                    root("lastRun", "the last run that succeeded"),
                    root("actions", "what has run: status, inputs, outputs, error"),
                    root("workflow", "the workflow and the run"),
                    root("schedule", "the scheduled time of the run"),
                    root("trigger", "what started the run"),
                ];
                if around.iter().any(|action| has_items(action)) {
                    items.push(root("item", "the current item of the list"));
                }
                if around.iter().any(|action| is_any_loop(action)) {
                    items.push(root("loop", "the innermost loop: index, count, result"));
                    items.push(root("loops", "the enclosing loops, by name"));
                }
                items
            }
            Dialect::Tea => {
                let mut items = vec![
                    root("state", "the state"),
                    root("variables", "constants of the file"),
                    root("settings", "settings of the file"),
                    root("data", "constants of the file"),
                    root("secrets", "secrets, by name"),
                    root("env", "variables of the environment"),
                ];
                if around.iter().any(|node| node.is_loop()) {
                    items.push(root("loop", "the loop: iteration, index"));
                }
                items
            }
            Dialect::Canvas => {
                let mut items = vec![
                    root("inputs", "the node's own inputs"),
                    root("nodes", "the nodes before it, by id"),
                    root("secrets", "secrets, by name"),
                ];
                if around.iter().skip(1).any(|node| node.is_loop()) {
                    items.push(root(
                        "iteration_count",
                        "the number of the iteration, from 1",
                    ));
                }
                let own = around.first();
                let inputs = own.map(|node| node.inputs.iter()).into_iter().flatten();
                items.extend(inputs.map(|port| CompletionItem::new(port, Is::Port)));
                let siblings = names.actions.iter().filter(|node| {
                    own.is_some_and(|own| own.parent == node.parent && own.name != node.name)
                });
                items.extend(siblings.map(action_item));
                items
            }
        };
        items.extend(of_jinja(JinjaKind::Function));
        items
    }

    /// Returns the members of a name or of a function's result.
    fn members(&self, names: &Names, around: &[&Action], of: &[String]) -> Vec<CompletionItem> {
        let of: Vec<&str> = of.iter().map(|name| &**name).collect();
        let fields = |fields: &[&str]| {
            let items = fields
                .iter()
                .map(|field| CompletionItem::new(*field, Is::Value));
            items.collect::<Vec<_>>()
        };
        const RECORD: [&str; 10] = [
            "status",
            "outputs",
            "inputs",
            "error",
            "code",
            "name",
            "startTime",
            "endTime",
            "trackingId",
            "clientTrackingId",
        ];
        match (self.dialect, of.as_slice()) {
            (Dialect::Loom, ["variables"]) => variables(names),
            (Dialect::Loom, ["state"]) => named_items(&names.state, Is::Variable),
            (_, ["lastRun" | "lastRun()"]) => {
                fields(&["id", "outputs", "startTime", "endTime", "scheduledTime"])
            }
            (Dialect::Loom, ["inputs"]) => named_items(&names.inputs, Is::Input),
            (Dialect::Loom, ["loop"] | ["loops", _]) => fields(&LOOP_MEMBERS),
            (Dialect::Loom, ["loops"]) => {
                let loops = around.iter().filter(|action| is_any_loop(action));
                loops.map(|action| action_item(action)).collect()
            }
            (Dialect::Loom, ["actions"]) => names.actions.iter().map(action_item).collect(),
            (_, ["actions()" | "action()"]) | (Dialect::Loom, ["actions", _]) => fields(&RECORD),
            (Dialect::Loom, ["actions", name, "outputs"]) => {
                let kind = names.action(name).map(|action| action.kind.to_lowercase());
                fields(outputs_of(&kind.unwrap_or_default()))
            }
            (_, ["outputs()"]) => fields(&["body", "statusCode", "headers"]),
            (_, ["workflow" | "workflow()"]) => fields(&["name", "run"]),
            (Dialect::Loom, ["schedule"]) => fields(&SCHEDULE_MEMBERS),
            (Dialect::Tea, ["state"]) => {
                let mut items = named_items(&names.inputs, Is::Variable);
                items.extend(variables(names));
                items
            }
            (Dialect::Tea, ["variables" | "settings" | "data"]) => {
                named_items(&names.parameters, Is::Input)
            }
            (Dialect::Canvas, ["inputs"]) => {
                let own = around
                    .first()
                    .map(|node| node.inputs.iter())
                    .into_iter()
                    .flatten();
                own.map(|port| CompletionItem::new(port, Is::Port))
                    .collect()
            }
            (Dialect::Canvas, ["nodes"]) => names.actions.iter().map(action_item).collect(),
            (Dialect::Canvas, ["nodes", node] | [node]) => {
                let outputs = names.action(node).map(|node| node.outputs.iter());
                let outputs = outputs.into_iter().flatten();
                outputs
                    .map(|port| CompletionItem::new(port, Is::Port))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the members of the outputs of an action of this type.
fn outputs_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "http" | "operation" => &["body", "statusCode", "headers", "url"],
        "shell" => &["exitCode", "stdout", "stderr", "body"],
        "until" | "while" | "dountil" => &["iterations", "status", "reason", "result"],
        _ => &[],
    }
}

fn is_any_loop(action: &Action) -> bool {
    action.is_loop() || action.is_foreach()
}

/// Returns true if the expressions of an action can read the current item of a list.
fn has_items(action: &Action) -> bool {
    let lists = ["select", "query", "table"];
    action.is_foreach() || lists.contains(&&*action.kind.to_lowercase())
}

const LOOP_VARIABLES: [(&str, &str); 5] = [
    ("loopIndex", "the iteration, from 0"),
    ("loopCount", "the iteration, from 1"),
    ("loopResult", "what the iteration before gave"),
    ("loopStartTime", "when the loop began"),
    (
        "loopFeedback",
        "what the condition read, and what the check printed",
    ),
];

pub(super) fn variables(names: &Names) -> Vec<CompletionItem> {
    named_items(&names.variables, Is::Variable)
}

pub(super) fn named_items(named: &[NamedValue], kind: CompletionKind) -> Vec<CompletionItem> {
    let items = named.iter().map(|one| {
        CompletionItem::new(&one.name, kind)
            .detail(one.kind.as_deref().unwrap_or_default())
            .about(one.description.as_deref().unwrap_or_default())
    });
    items.collect()
}

pub(super) fn action_item(action: &Action) -> CompletionItem {
    CompletionItem::new(&action.name, Is::Action)
        .detail(&*action.kind)
        .about(action.title.as_deref().unwrap_or_default())
}

fn of_jinja(kind: JinjaKind) -> Vec<CompletionItem> {
    let found = jinja_functions().filter(|(of, _)| *of == kind);
    let items = found.map(|(_, function)| {
        let item = function_item(&function);
        match function.signature.contains('(') {
            true => item.inserts(format!("{}($0)", function.name), true),
            false => item,
        }
    });
    items.collect()
}

fn function_item(function: &Function) -> CompletionItem {
    CompletionItem::new(function.name, Is::Function)
        .detail(function.signature)
        .about(describe_function(function))
}

/// Returns the description of a function, in plain text.
pub(crate) fn describe_function(function: &Function) -> String {
    let example = match function.gives {
        "" => function.example.to_owned(),
        gives => format!("{} returns {gives}", function.example),
    };
    match function.about {
        "" => format!("for example {example}"),
        about => format!("{about}\nfor example {example}"),
    }
}
