//! until, while, doUntil (spec: loom.md, "Loops"). Every loop leaves here with both limits,
//! within the operator's caps.

use super::Loom;
use super::action::Act;
use super::effect::option;
use crate::dialect::reader::Fields;
use crate::expression::Template;
use crate::hir::{Loop, StepKind};
use crate::model::{OnLimit, OnRepeat, Pages, Test};
use crate::source::{Entry, Kind};
use crate::time::format_duration;

const LIMIT: &str = "for example limit: { count: 100, timeout: PT1H }";

impl Loom<'_> {
    pub(super) fn a_loop(&mut self, act: &mut Act<'_>, label: &str) -> StepKind {
        self.loops.push(act.name.clone());
        let condition = self.needed_condition(act);
        let (mut count, mut timeout) = (self.count.clone(), self.timeout.clone());
        if let Some(entry) = act.fields.some(&mut self.reader, "limit") {
            (count, timeout) = self.limit(entry, count, timeout);
        }
        let delay = act
            .fields
            .some(&mut self.reader, "delay")
            .and_then(|entry| self.duration(entry))
            .map(|delay| delay.template);
        let on_limit = self.on_limit(act);
        let pages = self.pages(act);
        let body = self.body_actions(act);
        let Some((condition, condition_text)) = condition else {
            return StepKind::Nothing;
        };
        let (test, negated) = match label {
            "while" => (Test::Before, true),
            "until" if !self.azure() => (Test::Before, false),
            _ => (Test::After, false),
        };
        StepKind::Loop(Box::new(Loop {
            name: None,
            test,
            stop_when: if negated {
                condition.negated()
            } else {
                condition
            },
            condition_text,
            negated,
            count,
            timeout: Some(timeout),
            delay,
            on_limit,
            on_timeout: on_limit,
            test_when_spent: true,
            survives_failure: self.azure(),
            keep: Vec::new(),
            pages,
            body,
        }))
    }

    /// `page`, which tells the pages of a loop apart, and `on_repeat`, which means nothing without.
    fn pages(&mut self, act: &mut Act<'_>) -> Option<Pages> {
        let on_repeat = act.fields.some(&mut self.reader, "on_repeat");
        let Some(entry) = act.fields.some(&mut self.reader, "page") else {
            if let Some(entry) = on_repeat {
                let what = "`on_repeat` needs `page`: what leads to the next page";
                let hint = "for example page: \"@variables('token')\"";
                self.reader.error("missing-key", entry.key_span, what, hint);
            }
            return None;
        };
        let token = self.reader.template(&entry.value);
        if token.as_constant().is_some() {
            let what = "`page` never changes: it holds no expression";
            let hint = "what leads to the next page, for example page: \"@variables('token')\"";
            self.reader
                .error("constant-page", entry.value.span, what, hint);
        }
        let hint = "fail or stop";
        let on_repeat =
            match on_repeat.and_then(|entry| Some((self.reader.text(entry, hint)?, entry))) {
                None => OnRepeat::Fail,
                Some((text, _)) if text.eq_ignore_ascii_case("fail") => OnRepeat::Fail,
                Some((text, _)) if text.eq_ignore_ascii_case("stop") => OnRepeat::Stop,
                Some((other, entry)) => {
                    let what = format!("`{other}` is nothing a loop can do when a page repeats");
                    self.reader
                        .error("unknown-value", entry.value.span, what, hint);
                    OnRepeat::Fail
                }
            };
        Some(Pages { token, on_repeat })
    }

    /// `{count, timeout}` over what applies without them.
    pub(super) fn limit(
        &mut self,
        entry: &Entry,
        count: Template,
        timeout: Template,
    ) -> (Template, Template) {
        let what = format!("`{}`", entry.key);
        let Some(mut fields) = self.reader.fields(&entry.value, &what, LIMIT) else {
            return (count, timeout);
        };
        let count = self.limit_count(&mut fields).unwrap_or(count);
        let timeout = self.limit_timeout(&mut fields).unwrap_or(timeout);
        fields.finish(&mut self.reader);
        (count, timeout)
    }

    fn limit_count(&mut self, fields: &mut Fields<'_>) -> Option<Template> {
        let entry = fields.some(&mut self.reader, "count")?;
        let node = &entry.value;
        let hint = "how many iterations at most: a whole number from 1, or an expression";
        match (self.reader.whole(node), &node.kind) {
            (Some(count), _) => {
                let cap = self.max_count;
                let wanted = u64::try_from(count).unwrap_or(0);
                if wanted == 0 {
                    let what = format!("a loop cannot have {count} iterations at most");
                    self.reader.error("out-of-range", node.span, what, hint);
                } else if wanted > cap {
                    let what = format!("{count} iterations are more than the cap of {cap}");
                    let hint = "lower it, or raise the cap with --max-count (WINDLASS_MAX_COUNT)";
                    self.reader.error("over-cap", node.span, what, hint);
                }
                Some(Template::constant(count.into()))
            }
            (None, Kind::String(_)) => {
                let template = self.reader.template(node);
                if template.as_constant().is_some() {
                    self.reader
                        .wrong_type(node, "`count`", "a whole number", hint);
                }
                Some(template)
            }
            _ => {
                self.reader
                    .wrong_type(node, "`count`", "a whole number", hint);
                None
            }
        }
    }

    fn limit_timeout(&mut self, fields: &mut Fields<'_>) -> Option<Template> {
        let entry = fields.some(&mut self.reader, "timeout")?;
        let timeout = self.duration(entry)?;
        let cap = self.max_timeout;
        match timeout.known {
            Some(known) if known > cap => {
                let what = format!(
                    "a timeout of {} is more than the cap of {}",
                    format_duration(known),
                    format_duration(cap)
                );
                let hint = "lower it, or raise the cap with --max-timeout (WINDLASS_MAX_TIMEOUT)";
                self.reader.error("over-cap", entry.value.span, what, hint);
            }
            Some(known) if known.is_zero() => {
                let what = "a loop with no time at all never runs";
                let hint = "give at least PT1S";
                self.reader
                    .error("out-of-range", entry.value.span, what, hint);
            }
            _ => {}
        }
        Some(timeout.template)
    }

    fn on_limit(&mut self, act: &mut Act<'_>) -> OnLimit {
        let fails = option(act, "FailWhenLimitsReached");
        let default = if self.azure() && !fails {
            OnLimit::Continue
        } else {
            OnLimit::Fail
        };
        let Some(entry) = act.fields.some(&mut self.reader, "on_limit") else {
            return default;
        };
        let hint = "fail, continue or pause";
        match self
            .reader
            .text(entry, hint)
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("fail") => OnLimit::Fail,
            Some("continue") => OnLimit::Continue,
            Some("pause") => OnLimit::Pause,
            Some(other) => {
                let what = format!("`{other}` is nothing a loop can do at its limit");
                self.reader
                    .error("unknown-value", entry.value.span, what, hint);
                default
            }
            None => default,
        }
    }
}
