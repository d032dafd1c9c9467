//! The description of what is at a position: a key, a name or a function.
//! With an iteration that has ended, it includes the value of the expression at the position.

use super::complete::{describe_function, is_bare};
use super::cursor::{Language, Region, TypedToken, UnescapedText};
use super::iteration_context::IterationContext;
use super::names::Names;
use super::schema::{Schema, types};
use super::sketch::{Kind, LocationKind, Scalar, SketchLocation, locate, read};
use super::{Format, Lines, Position, TextRange, dialect};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::ops::Range;
use utoipa::ToSchema;
use windlass_engine::{Bundle, Dialect};
use windlass_expression::{JinjaKind, Value, jinja_functions, wdl_functions};

/// Maximum number of words that are listed if a schema allows many.
const MAX_WORDS: usize = 40;

/// Description of a position of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Hover {
    /// Range of the text that is described.
    pub range: TextRange,
    /// Description, as plain text.
    pub text: String,
    /// Value of the expression in the requested iteration. Absent without an iteration, and if the evaluation failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Message of the failed evaluation. Absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Describes what is at a position in the first file of a bundle.
/// With an iteration, the description includes the value of the expression at the position.
#[must_use]
pub fn hover(
    bundle: &Bundle,
    format: Option<Format>,
    at: Position,
    past: Option<&IterationContext>,
) -> Option<Hover> {
    let text = bundle.file(0)?.content();
    let lines = Lines::new(text);
    let at = lines.offset(at);
    let root = read(text);
    let format = format.unwrap_or_else(|| dialect(bundle, None, &root, text).into());
    let names = Names::of(&root, text, format.dialect);
    let location = locate(&root, at);
    let request = HoverRequest {
        text,
        names: &names,
        at,
        dialect: format.dialect,
    };
    let named = names.actions.iter().find(|action| {
        action.selection.start <= at && at <= action.selection.end && !action.selection.is_empty()
    });
    if let Some(action) = named {
        return Some(Hover {
            range: lines.range(action.selection.clone()),
            text: request.of_action(action),
            ..Hover::default()
        });
    }
    let (range, text, value) = match location.at {
        LocationKind::Key(member) => {
            let schema = Schema::new(format.schema?, text);
            let description = of_key(schema, &root, &location, &member.name)?;
            (member.key.clone(), description, None)
        }
        LocationKind::Value(part) => {
            let Kind::Text(scalar) = &part.kind else {
                return None;
            };
            request.of_text(&location, scalar, past)?
        }
    };
    let (value, error) = match value {
        Some(Ok(value)) => (Some(value), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    (value.is_some() || error.is_some() || !text.is_empty()).then(|| Hover {
        range: lines.range(range),
        text,
        value,
        error,
    })
}

/// Returns the schema's description of a key.
fn of_key(
    schema: Schema<'_>,
    root: &super::sketch::SketchNode,
    location: &SketchLocation<'_>,
    name: &str,
) -> Option<String> {
    let rules = schema.at(root, &location.path);
    let description = rules.iter().find_map(|rule| schema.describe(rule));
    let mut kinds: Vec<&str> = rules
        .iter()
        .filter_map(|rule| rule.get("type").map(types))
        .flatten()
        .collect();
    kinds.dedup();
    let words: Vec<String> = rules
        .iter()
        .filter_map(|rule| rule.get("enum").and_then(Json::as_array))
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .take(MAX_WORDS)
        .collect();
    if rules.is_empty() {
        return None;
    }
    let mut text = match kinds.is_empty() {
        true => name.to_owned(),
        false => format!("{name}: {}", kinds.join(" or ")),
    };
    if let Some(description) = description {
        text.push('\n');
        text.push_str(description);
    }
    if !words.is_empty() {
        text.push_str(&format!("\none of: {}", words.join(", ")));
    }
    Some(text)
}

type HoverText = (Range<usize>, String, Option<Result<Value, String>>);

struct HoverRequest<'a> {
    text: &'a str,
    names: &'a Names,
    at: usize,
    dialect: Dialect,
}

impl HoverRequest<'_> {
    fn of_action(&self, action: &super::names::Action) -> String {
        let mut text = match &*action.kind {
            "" => action.name.clone(),
            kind => format!("{}: {kind}", action.name),
        };
        if let Some(title) = &action.title {
            text.push_str(&format!("\n{title}"));
        }
        let path = self.names.path(action);
        if path != action.name {
            text.push_str(&format!("\nin a run: {path}"));
        }
        for (what, ports) in [("inputs", &action.inputs), ("outputs", &action.outputs)] {
            if !ports.is_empty() {
                text.push_str(&format!("\n{what}: {}", ports.join(", ")));
            }
        }
        text
    }

    fn of_text(
        &self,
        location: &SketchLocation<'_>,
        scalar: &Scalar,
        past: Option<&IterationContext>,
    ) -> Option<HoverText> {
        let meant = UnescapedText::of(self.text, scalar);
        let index = meant.index(self.at);
        let limit = scalar.inner.end;
        let bytes =
            |range: &Range<usize>| meant.byte(range.start, limit)..meant.byte(range.end, limit);
        let Some(region) =
            meant.region(index, self.dialect, is_bare(self.dialect, &location.keys()))
        else {
            // The value itself is the name of an action, as in `runAfter` or in an edge.
            let word = self.text.get(scalar.inner.clone())?.trim();
            let action = self.names.action(word)?;
            return Some((scalar.inner.clone(), self.of_action(action), None));
        };
        let word = meant.word(&region, index);
        let typed = meant.typed(&region, index);
        let description = self.of_word(&meant, &region, &word, &typed);
        let call = match &typed {
            // If the position is in a text, describe the call that has the text as an argument.
            TypedToken::Argument {
                function,
                start,
                number: 0,
            } => start
                .checked_sub(2 + function.chars().count())
                .and_then(|at| meant.operand(&region, at)),
            _ => None,
        };
        let operand = call.or_else(|| meant.operand(&region, index));
        let shown = operand.clone().unwrap_or_else(|| region.outer.clone());
        let value = past.map(|past| {
            let template = match operand.clone() {
                Some(operand) => match region.language {
                    Language::Wdl => format!("@{}", meant.text(operand)),
                    Language::Jinja => format!("{{{{ {} }}}}", meant.text(operand)),
                },
                None if region.inner == region.outer => {
                    format!("{{{{ {} }}}}", meant.text(region.inner.clone()))
                }
                None => meant.text(region.outer.clone()),
            };
            past.value(&template)
        });
        let range = match (&description, &value) {
            (Some(_), None) if !word.is_empty() => bytes(&word),
            _ => bytes(&shown),
        };
        Some((range, description.unwrap_or_default(), value))
    }

    /// Describes a word of an expression.
    fn of_word(
        &self,
        meant: &UnescapedText,
        region: &Region,
        word: &Range<usize>,
        typed: &TypedToken,
    ) -> Option<String> {
        let name = meant.text(word.clone());
        let of_jinja = |kinds: &[JinjaKind]| {
            let mut found = jinja_functions();
            let found =
                found.find(|(kind, function)| kinds.contains(kind) && function.name == name);
            found.map(|(_, function)| {
                format!("{}\n{}", function.signature, describe_function(&function))
            })
        };
        match (typed, region.language) {
            (TypedToken::Argument { start, .. }, _) => {
                let mut end = *start;
                while meant.char(end).is_some_and(|letter| letter != '\'') {
                    end += 1;
                }
                let name = meant.text(*start..end);
                self.of_name(&name)
            }
            (TypedToken::Name { .. }, Language::Wdl) => {
                let mut functions = wdl_functions().iter();
                let found = functions.find(|one| one.name.eq_ignore_ascii_case(&name));
                found.map(|function| {
                    format!("{}\n{}", function.signature, describe_function(function))
                })
            }
            (TypedToken::Filter { .. }, _) => of_jinja(&[JinjaKind::Filter]),
            (TypedToken::Test { .. }, _) => of_jinja(&[JinjaKind::Test]),
            (TypedToken::Name { .. } | TypedToken::Member { .. }, Language::Jinja) => {
                of_jinja(&[JinjaKind::Function]).or_else(|| self.of_name(&name))
            }
            _ => None,
        }
    }

    /// Describes something in the text by its name, such as an action or a variable.
    fn of_name(&self, name: &str) -> Option<String> {
        if let Some(action) = self.names.action(name) {
            return Some(self.of_action(action));
        }
        let lists = [
            ("variable", &self.names.variables),
            ("state", &self.names.state),
            ("input", &self.names.inputs),
            ("parameter", &self.names.parameters),
        ];
        lists.into_iter().find_map(|(what, list)| {
            let found = list
                .iter()
                .find(|one| one.name.eq_ignore_ascii_case(name))?;
            let mut text = format!("{what} {}", found.name);
            if let Some(kind) = &found.kind {
                text.push_str(&format!(": {kind}"));
            }
            if let Some(about) = &found.description {
                text.push_str(&format!("\n{about}"));
            }
            Some(text)
        })
    }
}
