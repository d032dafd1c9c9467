//! Actions that contain other actions: if, switch, scope, parallel, foreach.

use super::action_fields::{ActionFields, Body, option};
use super::{ActionReader, Format};
use crate::builder::nothing;
use windlass_expression::{Template, Value};
use windlass_model::hir::{Block, ForEach, StepKind};
use windlass_model::model::{Name, OnError};
use windlass_source::source::{Entry, Kind, Node};

/// Maximum number of items of a foreach that run at the same time.
const MAX_CONCURRENCY: i64 = 10_000;

impl<F: Format> ActionReader<'_, F> {
    pub(super) fn body_actions(&mut self, act: &mut ActionFields<'_>) -> Block {
        let hint = "for example actions: { check: { type: http, inputs: { uri: \"…\" } } }";
        let entry = act.fields.get("actions");
        if entry.is_none() && F::CONVENTIONS.allows_empty_blocks {
            return nothing();
        }
        if entry.is_none() {
            act.fields.required(self, "actions", act.span, hint);
        }
        entry.map_or(nothing(), |entry| self.actions(entry))
    }

    pub(super) fn scope(&mut self, act: &mut ActionFields<'_>) -> Body {
        let kind = StepKind::Block(self.body_actions(act));
        Body {
            timeout: self.step_timeout(act),
            ..kind.into()
        }
    }

    pub(super) fn branch(&mut self, act: &mut ActionFields<'_>) -> Body {
        let condition = self.needed_condition(act);
        let then = match act.fields.get("actions") {
            // An empty branch is written as `{}`, which means no actions.
            Some(entry) if entry.value.entries().is_some_and(<[Entry]>::is_empty) => nothing(),
            _ => self.body_actions(act),
        };
        let otherwise = match act.fields.non_null(self, "else") {
            Some(entry) => self.else_actions(entry, &act.name, &format!("{}.else", act.name)),
            None => nothing(),
        };
        let timeout = self.step_timeout(act);
        let kind = condition.map_or(StepKind::Nothing, |(condition, _)| StepKind::If {
            arms: vec![(condition, then)],
            otherwise,
        });
        Body {
            timeout,
            ..kind.into()
        }
    }

    /// Reads the actions of `else` or `default`. `name` is the name of the enclosing action. `made` is the name of one
    /// action without a key.
    fn else_actions(&mut self, entry: &Entry, name: &Name, made: &str) -> Block {
        if !F::CONVENTIONS.allows_empty_blocks {
            let actions = entry.value.get("actions");
            return match actions.and_then(Node::entries) {
                Some([]) => nothing(),
                _ => self.action_or_actions(entry, made),
            };
        }
        let hint = "for example else: { actions: { … } }".replacen("else", &entry.key, 1);
        let what = format!("`{}` of `{name}`", entry.key);
        let Some(mut fields) = self.fields(&entry.value, &what, &hint) else {
            return nothing();
        };
        let actions = fields.get("actions");
        if actions.is_none() && fields.rest().next().is_some() {
            fields.required(self, "actions", entry.key_span, &hint);
        }
        fields.finish(self);
        match actions.map(|actions| (actions, actions.value.entries())) {
            None | Some((_, Some([]))) => nothing(),
            Some((actions, _)) => self.actions(actions),
        }
    }

    pub(super) fn switch(&mut self, act: &mut ActionFields<'_>) -> Body {
        let key = match act.fields.get("expression") {
            Some(_) => "expression",
            None => F::CONVENTIONS.switch_key,
        };
        let hint = "for example on: \"@body('check').status\"";
        let on = act
            .fields
            .required(self, key, act.span, hint)
            .map(|entry| self.template(&entry.value));
        let hint = match F::CONVENTIONS.cases_have_values {
            true => "for example cases: { Done: { case: done, actions: { … } } }",
            false => "for example cases: { done: { actions: { … } } }",
        };
        // In a format that allows empty blocks, a switch may have only a default.
        let cases = match F::CONVENTIONS.allows_empty_blocks {
            true => act.fields.get("cases"),
            false => act.fields.required(self, "cases", act.span, hint),
        };
        let mut found: Vec<(Value, Block)> = Vec::new();
        if let Some(cases) = cases {
            for entry in self.map(cases, hint) {
                let made = format!("{}.{}", act.name, entry.key);
                let (value, block) = self.case(entry, &made);
                if !value.is_null() && found.iter().any(|(other, _)| *other == value) {
                    let what = format!("the case {} is there twice", value.to_json());
                    let hint = "only the first could ever be taken: remove one";
                    self.error("duplicate-case", entry.key_span, what, hint);
                }
                found.push((value, block));
            }
        }
        let default = match act.fields.non_null(self, "default") {
            Some(entry) => {
                self.else_actions(entry, &act.name, &format!("{}.default.else", act.name))
            }
            None => nothing(),
        };
        let timeout = self.step_timeout(act);
        let kind = on.map_or(StepKind::Nothing, |on| StepKind::Switch {
            on,
            cases: found,
            default,
        });
        Body {
            timeout,
            ..kind.into()
        }
    }

    /// Reads a case: `VALUE: action`, `VALUE: {actions}` or `name: {case: VALUE, actions}`.
    fn case(&mut self, entry: &Entry, made: &str) -> (Value, Block) {
        let has_case = entry.value.get_any_case("case").is_some()
            && entry.value.get_any_case("type").is_none();
        if !has_case && !F::CONVENTIONS.cases_have_values {
            let value = Value::text(entry.key.as_str());
            return (value, self.action_or_actions(entry, made));
        }
        let what = format!("the case `{}`", entry.key);
        let Some(mut fields) = self.fields(&entry.value, &what, "a map") else {
            return (Value::Null, nothing());
        };
        let hint = "for example { case: done, actions: { … } }";
        let value = match fields.required(self, "case", entry.key_span, hint) {
            Some(case) => match case.value.kind {
                Kind::Array(_) | Kind::Object(_) | Kind::Null => {
                    let hint = "one value to compare with";
                    self.wrong_type(&case.value, "`case`", "text or a number", hint);
                    Value::Null
                }
                _ => {
                    if self.is_computed(&case.value) {
                        let what = "a case is one fixed value: no expression in it is evaluated";
                        let hint =
                            "compare in an if, or let `expression` return the compared value";
                        self.warning("case-is-text", case.value.span, what, hint);
                    }
                    case.value.to_value()
                }
            },
            None => Value::Null,
        };
        let actions = match fields.get("actions") {
            Some(actions) if actions.value.entries().is_some_and(<[Entry]>::is_empty) => nothing(),
            Some(actions) => self.actions(actions),
            None => nothing(),
        };
        fields.finish(self);
        (value, actions)
    }

    pub(super) fn parallel(&mut self, act: &mut ActionFields<'_>) -> Body {
        self.concurrent = true;
        let mut branches: Vec<(Name, Block)> = Vec::new();
        if let Some(entry) = act.fields.non_null(self, "branches") {
            let hint = "for example branches: { left: { actions: { … } } }";
            for entry in self.map(entry, hint) {
                let made = format!("{}.{}", act.name, entry.key);
                let block = self.action_or_actions(entry, &made);
                branches.push((Name::from(entry.key.as_str()), block));
            }
            if let Some(actions) = act.fields.get("actions") {
                let what = "`parallel` has either `branches` or `actions`";
                let hint = "move the actions into a branch";
                self.error("conflict", actions.key_span, what, hint);
            }
        } else if let Some(entry) = act.fields.get("actions") {
            for placed in self.read_ordered_steps(entry) {
                if let Some(after) = placed.after.iter().flatten().next() {
                    let what = "all actions of `parallel` start at once";
                    let hint = "use a scope for an order, or branches with several actions";
                    self.error("conflict", after.span, what, hint);
                }
                branches.push((placed.step.name.clone(), Block::Sequence(vec![placed.step])));
            }
        }
        if branches.is_empty() {
            let what = format!("`{}` has no branch", act.name);
            let hint = "add branches: { left: { actions: { … } }, … }, or actions";
            self.error("empty-body", act.span, what, hint);
        }
        let kind = StepKind::Parallel {
            branches,
            isolated: false,
        };
        Body {
            timeout: self.step_timeout(act),
            ..kind.into()
        }
    }

    pub(super) fn foreach(&mut self, act: &mut ActionFields<'_>) -> Body {
        self.loops.push(act.name.clone());
        self.foreaches.push(act.name.clone());
        let hint = "the items: for example foreach: \"@body('fetch').items\"";
        let first = self.mentions.len();
        let items = act
            .fields
            .required(self, "foreach", act.span, hint)
            .map(|entry| {
                let list = matches!(entry.value.kind, Kind::Array(_));
                if !list && !self.is_computed(&entry.value) {
                    self.wrong_type(&entry.value, "`foreach`", "a list or an expression", hint);
                }
                self.template(&entry.value)
            });
        self.loop_headers.push(first..self.mentions.len());
        let concurrency = self.concurrency(act);
        let on_error = self.on_error(act);
        self.foreach_depth += 1;
        let body = self.body_actions(act);
        self.foreach_depth -= 1;
        let timeout = self.step_timeout(act);
        let kind = items.map_or(StepKind::Nothing, |items: Template| {
            StepKind::ForEach(Box::new(ForEach {
                items,
                count: None,
                concurrency,
                on_error,
                body,
            }))
        });
        Body {
            timeout,
            ..kind.into()
        }
    }

    fn on_error(&mut self, act: &mut ActionFields<'_>) -> OnError {
        if let Some(on_error) = F::CONVENTIONS.foreach_on_error {
            return on_error;
        }
        let known = [("fail", OnError::Stop), ("continue", OnError::Continue)];
        let entry = act.fields.non_null(self, "on_error");
        let given = entry.and_then(|entry| {
            self.choice(entry, &known, |word| {
                format!("`{word}` is nothing a foreach can do when an item fails")
            })
        });
        given.unwrap_or(OnError::Stop)
    }

    /// Reads how many items run at the same time. The default of a foreach inside of another one is 1.
    fn concurrency(&mut self, act: &mut ActionFields<'_>) -> u32 {
        let sequential = option(act, "Sequential");
        let repetitions = act.fields.get("runtimeConfiguration").and_then(|entry| {
            let concurrency = entry.value.get_any_case("concurrency")?;
            concurrency.get_any_case("repetitions")
        });
        let own = act.fields.non_null(self, "concurrency");
        let given = own.map(|entry| &entry.value).or(repetitions);
        if let Some(node) = given.map(|node| self.with_parameters(node)) {
            let node = &node;
            let is_sequential =
                F::CONVENTIONS.nested_foreach_is_sequential && self.foreach_depth > 0;
            return match self.whole(node) {
                Some(2..=MAX_CONCURRENCY) if is_sequential => {
                    let what = "a foreach inside of another one runs one item at a time";
                    let hint = "Logic Apps ignores this number, too: remove it";
                    self.warning("not-supported", node.span, what, hint);
                    1
                }
                Some(count @ 1..=MAX_CONCURRENCY) => u32::try_from(count).unwrap_or(1),
                Some(_) => {
                    let what = "this many at a time is not possible";
                    let hint = format!("from 1 to {MAX_CONCURRENCY}");
                    self.error("out-of-range", node.span, what, hint);
                    1
                }
                None => {
                    let (what, hint) = match repetitions {
                        Some(_) => (
                            "`repetitions`",
                            "a number such as 5, or only `@parameters('NAME')`",
                        ),
                        None => (
                            "`concurrency`",
                            "how many items at a time: for example concurrency: 5",
                        ),
                    };
                    self.wrong_type(node, what, "a whole number", hint);
                    1
                }
            };
        }
        match (sequential, self.foreach_depth) {
            (false, 0) => self.format.foreach_concurrency(),
            _ => 1,
        }
    }
}
