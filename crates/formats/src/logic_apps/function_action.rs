//! The actions of the type `Expression`.
//! Each calls the function that `kind` names, and becomes a `compose` step.

use super::LogicApps;
use crate::actions::ActionFields;
use crate::actions::ActionReader;
use windlass_expression::Template;
use windlass_model::hir::StepKind;

impl ActionReader<'_, LogicApps> {
    pub(super) fn function_action(&mut self, act: &mut ActionFields<'_>) -> StepKind {
        let known: Vec<(&str, &FunctionAction)> =
            FUNCTIONS.iter().map(|one| (one.kind, one)).collect();
        let words: Vec<&str> = FUNCTIONS.iter().map(|one| one.kind).collect();
        let kind = act
            .fields
            .required(self, "kind", act.span, &words.join(", "));
        let inputs = act.fields.non_null(self, "inputs");
        let kind = kind.and_then(|kind| {
            self.choice(kind, &known, |text| {
                format!("`{text}` is not a valid kind of expression action")
            })
        });
        let Some(one) = kind else {
            return StepKind::Nothing;
        };
        let what = format!("`inputs` of `{}`", act.name);
        let mut fields = inputs.and_then(|entry| self.fields(&entry.value, &what, one.function));
        let mut arguments = Vec::new();
        if let Some(fields) = &mut fields {
            let keys = one.keys.iter().flat_map(|keys| keys.split('|'));
            keys.for_each(|key| fields.allow(&[key]));
        }
        for (index, keys) in one.keys.iter().enumerate() {
            let found = keys.split('|').find_map(|key| fields.as_mut()?.get(key));
            let Some(entry) = found else {
                if index < one.needed {
                    let key = keys.split('|').next().unwrap_or_default();
                    let what = format!("`{}` needs `{key}`", act.name);
                    let hint = format!("its inputs are {}", one.inputs().join(", "));
                    self.error("missing-key", act.span, what, hint);
                }
                // Stop at the first missing argument. Otherwise, a later argument would be passed in its position.
                break;
            };
            let argument = self.template(&entry.value);
            // The designer of Logic Apps allows a number that is written as text.
            let whole = WHOLE.contains(&entry.key.to_ascii_lowercase().as_str());
            arguments.push(match whole {
                true => Template::call("int", vec![argument.clone()]).unwrap_or(argument),
                false => argument,
            });
        }
        if let Some(fields) = fields {
            fields.finish(self);
        }
        // The call cannot be made if an input is missing. This was already reported.
        Template::call(one.function, arguments).map_or(StepKind::Nothing, Self::computed)
    }
}

/// A kind of `Expression` action.
struct FunctionAction {
    kind: &'static str,
    function: &'static str,
    /// The action's inputs, in the order of the function's arguments. `a|b` is one input that has two names.
    keys: &'static [&'static str],
    /// Number of `keys`, from the first, that are required.
    needed: usize,
}

/// The inputs that must be whole numbers.
const WHOLE: [&str; 5] = ["interval", "startposition", "startindex", "length", "count"];

const FUNCTIONS: [FunctionAction; 9] = [
    one("CurrentTime", "utcNow", &["formatString|format"], 0),
    one(
        "AddToTime",
        "addToTime",
        &["baseTime", "interval", "timeUnit", "formatString"],
        3,
    ),
    one(
        "SubtractFromTime",
        "subtractFromTime",
        &["baseTime", "interval", "timeUnit", "formatString"],
        3,
    ),
    one(
        "GetFutureTime",
        "getFutureTime",
        &["interval", "timeUnit", "formatString"],
        2,
    ),
    one(
        "GetPastTime",
        "getPastTime",
        &["interval", "timeUnit", "formatString"],
        2,
    ),
    one(
        "ConvertTimeZone",
        "convertTimeZone",
        &[
            "baseTime",
            "sourceTimeZone",
            "destinationTimeZone",
            "formatString",
        ],
        3,
    ),
    one("IndexOf", "indexOf", &["text", "searchText"], 2),
    one(
        "Substring",
        "substring",
        &["text", "startPosition|startIndex", "length"],
        2,
    ),
    one(
        "FormatNumber",
        "formatNumber",
        &["number", "format", "locale"],
        2,
    ),
];

const fn one(
    kind: &'static str,
    function: &'static str,
    keys: &'static [&'static str],
    needed: usize,
) -> FunctionAction {
    FunctionAction {
        kind,
        function,
        keys,
        needed,
    }
}

impl FunctionAction {
    fn inputs(&self) -> Vec<&'static str> {
        let first = |keys: &&'static str| keys.split('|').next().unwrap_or_default();
        self.keys.iter().map(first).collect()
    }
}
