//! Inputs of `http` for which an action in a loop reads its own output of the previous iteration: `ifChanged` and
//! `events`.

use super::action_fields::ActionFields;
use super::inputs::Inputs;
use super::{ActionReader, Format};
use crate::builder::{expression, object, text};
use windlass_expression::{Binding, Template, Value};
use windlass_model::model::{BODY_FILE, EVENTS, IF_CHANGED, Name, SAVE_TO};
use windlass_source::source::Entry;

/// The inputs that cannot be combined with `events`, and the reasons.
const NOT_WITH_EVENTS: [(&str, &str); 5] = [
    (SAVE_TO, "an event is an output, and no file"),
    (BODY_FILE, "the body of the request must be in the workflow"),
    ("page", "a stream has no pages"),
    (IF_CHANGED, "each event is news"),
    ("parse", "the data of an event is parsed if it is JSON"),
];

/// Makes the template of the output of an action in the previous iteration. It is null in the first iteration.
fn last_output(act: &ActionFields<'_>) -> Template {
    Template::binding(Binding::Previous(act.name.clone(), None))
}

impl<F: Format> ActionReader<'_, F> {
    /// Reads `ifChanged: true`, with which the request contains the version of the previous iteration's answer.
    /// Returns the action's output. If the server has no newer version, this output has the body of the previous
    /// answer.
    pub(super) fn if_changed(
        &mut self,
        act: &ActionFields<'_>,
        inputs: &mut Inputs<'_>,
        entry: &Entry,
    ) -> Option<Template> {
        let hint = "ifChanged: true sends If-None-Match with the ETag of the last answer";
        if !self.flag(entry, hint).unwrap_or_default() {
            return None;
        }
        if inputs.has(SAVE_TO) {
            let what = "`ifChanged` is for answers with a body, and `saveTo` has none";
            self.error("conflict", entry.key_span, what, "remove one of the two");
        }
        let last = last_output(act);
        let validator = last.clone().part("validator");
        inputs.members.push((text(IF_CHANGED), validator));
        let answer = Template::binding(Binding::Root(Name::from("result")));
        let body = object([("body", last.clone().part("body"))]);
        let merged = Template::call("union", vec![last, answer.clone(), body]).ok()?;
        let is_same = "result.statusCode == 304 and result.get('validator') is mapping";
        Template::call("if", vec![expression(self, is_same), merged, answer]).ok()
    }

    /// Reads `events: true`, with which the answer is a stream. Each call reads the event after that of the previous
    /// iteration.
    /// The other inputs must be read before this, because some of them cannot be combined with `events`.
    pub(super) fn events(
        &mut self,
        act: &ActionFields<'_>,
        inputs: &mut Inputs<'_>,
        entry: &Entry,
    ) {
        let hint = "events: true reads one event of a stream, in a loop the next one";
        if !self.flag(entry, hint).unwrap_or_default() {
            return;
        }
        for (key, why) in NOT_WITH_EVENTS {
            if inputs.has(key) {
                let key = match key == "parse" && act.wants_json {
                    true => "expect: json",
                    false => key,
                };
                let what = format!("`{EVENTS}` does not go together with `{key}`: {why}");
                self.error("conflict", entry.key_span, what, "remove one of the two");
            }
        }
        let position = last_output(act).part("position");
        inputs.members.push((text(EVENTS), position));
    }
}

impl Inputs<'_> {
    /// Returns true if an input was passed to the executor.
    fn has(&self, key: &str) -> bool {
        let key = Value::text(key);
        let mut members = self.members.iter();
        members.any(|(known, _)| known.as_constant() == Some(&key))
    }
}
