//! YAML text to the tree. What a value is, serde_yaml says (schema, escapes, aliases); where it
//! is, [`super::spans`] says. It never keeps a duplicate key and never expands aliases without
//! bound.
//!
//! serde_yaml 0.9 keeps no places, and builds all events of a text before it checks their depth. So
//! the marked parser runs first, event by event, and stops at the limits; then serde_yaml
//! deserialises through seeds that carry the matching mark. Both must accept a text.

use super::mistakes::{duplicate, out_of_range, too_much, unquoted_template};
use super::spans::{NodeShape, NodeSpan, Spans};
use super::tree::Style;
use super::{Entry, Kind, MAX_NODES, Mistake, Node, Parsed, Schema, Span, Text, spans, yaml_1_1};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

pub(super) fn parse(content: &str, file: u16, schema: Schema) -> Parsed {
    let spans = match spans::read(content, file) {
        Ok(spans) => spans,
        Err(mistake) => return (None, vec![explain(content, mistake)]),
    };
    let state = State {
        content,
        schema,
        spans: &spans,
        nodes: RefCell::new(0),
        mistakes: RefCell::new(Vec::new()),
        fatal: RefCell::new(None),
    };
    let root = Seed {
        state: &state,
        mark: 0,
        around: Span {
            file,
            line: 1,
            column: 1,
            length: 1,
        },
    };
    let around = root.around;
    let result = root.deserialize(serde_yaml::Deserializer::from_str(content));
    let fatal = state.fatal.into_inner();
    let mut mistakes = state.mistakes.into_inner();
    match result {
        Ok(node) => (Some(node), mistakes),
        Err(error) => {
            mistakes.push(fatal.unwrap_or_else(|| explain(content, from_serde(&error, around))));
            (None, mistakes)
        }
    }
}

fn from_serde(error: &serde_yaml::Error, around: Span) -> Mistake {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let span = error.location().map_or(around, |location| Span {
        line: small(location.line()).max(1),
        column: small(location.column()).max(1),
        ..around
    });
    match message {
        "repetition limit exceeded" => too_much(span, false),
        "recursion limit exceeded" => too_much(span, true),
        _ => Mistake::new("syntax", span, message),
    }
}

/// The usual reasons for text that is not YAML, recognised by the lines around the error.
fn explain(content: &str, mistake: Mistake) -> Mistake {
    if mistake.code != "syntax" {
        return mistake;
    }
    let last = usize::try_from(mistake.span.line).unwrap_or(usize::MAX);
    let near = content
        .lines()
        .enumerate()
        .take(last)
        .skip(last.saturating_sub(3));
    let lines: Vec<(usize, &str)> = near.collect();
    for (index, line) in lines.iter().rev() {
        let at = |byte: usize, length: usize| Span {
            line: u32::try_from(index + 1).unwrap_or(u32::MAX),
            column: u32::try_from(line.get(..byte).unwrap_or_default().chars().count() + 1)
                .unwrap_or(u32::MAX),
            length: u32::try_from(length).unwrap_or(1),
            ..mistake.span
        };
        let indentation = line.len() - line.trim_start().len();
        let tab = line.get(..indentation).and_then(|blank| blank.find('\t'));
        if let Some(tab) = tab {
            return Mistake::new("tab-indentation", at(tab, 1), "a tab in the indentation")
                .hint("YAML is indented with spaces only");
        }
        if let Some(start) = value_start(line, "{{") {
            return unquoted_template(at(start, 2), Some(plain_value(line, start)));
        }
        if let Some(start) = value_start(line, "@") {
            let rest = plain_value(line, start);
            let quoted = if rest.contains('"') {
                format!("'{}'", rest.replace('\'', "''"))
            } else {
                format!("\"{rest}\"")
            };
            return Mistake::new(
                "unquoted-expression",
                at(start, rest.chars().count()),
                "YAML allows no text without quotes to begin with `@`",
            )
            .hint(format!("quote it: {quoted}"));
        }
        if let Some(start) = value_start(line, "`").or_else(|| value_start(line, "%")) {
            return Mistake::new(
                "syntax",
                at(start, 1),
                "no text without quotes begins like this",
            )
            .hint("quote it");
        }
    }
    let hint = match mistake.message.as_str() {
        message if message.contains("mapping values are not allowed") => {
            "a `: ` inside a text needs quotes around the text; else check the indentation"
        }
        message if message.contains("simple key") || message.contains("expected ':'") => {
            "a key needs a `:` and a space after it"
        }
        message if message.contains("quoted scalar") || message.contains("quote") => {
            "a quote is opened and not closed"
        }
        message if message.contains("anchor") => "define the anchor with & before it is used",
        _ => "check the indentation and the quotes above this place",
    };
    mistake.hint(hint)
}

/// The byte at which a value of this line begins with `mark`.
fn value_start(line: &str, mark: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = line.get(from..).and_then(|rest| rest.find(mark)) {
        let at = from + found;
        let before = line.get(..at).unwrap_or_default();
        let trimmed = before.trim_end();
        let opens = trimmed.is_empty()
            || (trimmed.len() < before.len() && trimmed.ends_with([':', '-', ',']))
            || trimmed.ends_with(['[', '{']);
        if opens {
            return Some(at);
        }
        from = at + mark.len();
    }
    None
}

/// The text without quotes that begins there: inside of a list or map on the line it ends where the
/// list or map continues or closes, else with the line.
fn plain_value(line: &str, start: usize) -> &str {
    let (before, rest) = line.split_at_checked(start).unwrap_or((line, ""));
    let count = |spans: [char; 2]| before.matches(spans).count();
    if count(['{', '[']) <= count(['}', ']']) {
        return rest.trim_end();
    }
    let (mut open, mut quoted) = (0_usize, false);
    let end = rest.char_indices().find(|(_, letter)| {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' if open > 0 => open -= 1,
            ']' | '}' | ',' => return open == 0,
            _ => {}
        }
        false
    });
    let end = end.map_or(rest.len(), |(at, _)| at);
    rest.get(..end).unwrap_or(rest).trim_end()
}

struct State<'a> {
    content: &'a str,
    schema: Schema,
    spans: &'a Spans,
    nodes: RefCell<usize>,
    mistakes: RefCell<Vec<Mistake>>,
    /// Why deserialisation was stopped from inside.
    fatal: RefCell<Option<Mistake>>,
}

impl State<'_> {
    fn stop<E: Error>(&self, mistake: Mistake) -> E {
        let error = E::custom(&mistake.message);
        self.fatal.borrow_mut().get_or_insert(mistake);
        error
    }

    fn note(&self, mistake: Mistake) {
        self.mistakes.borrow_mut().push(mistake);
    }
}

/// Builds the node that belongs to a mark.
#[derive(Clone, Copy)]
struct Seed<'a> {
    state: &'a State<'a>,
    mark: usize,
    /// The place of what is around it, should the mark be missing.
    around: Span,
}

impl<'a> Seed<'a> {
    fn target(&self) -> Option<&'a NodeSpan> {
        self.state.spans.get(self.mark)
    }

    fn span(&self) -> Span {
        self.target().map_or(self.around, |mark| mark.span)
    }

    fn inside(&self, mark: usize) -> Self {
        Self {
            state: self.state,
            mark,
            around: self.span(),
        }
    }

    fn node(&self, kind: Kind) -> Node {
        Node {
            span: self.span(),
            kind: match self.state.schema {
                Schema::Core => kind,
                Schema::Old => self.yaml_1_1(kind),
            },
        }
    }

    /// What YAML 1.1 makes of a word without quotes that is `kind` in YAML 1.2.
    fn yaml_1_1(&self, kind: Kind) -> Kind {
        let Some(mark) = self.target().filter(|mark| mark.is_bare_word()) else {
            return kind;
        };
        let written = |mark: &NodeSpan| {
            let rest = self.state.content.get(mark.start..).unwrap_or_default();
            let length = usize::try_from(mark.span.length).unwrap_or(usize::MAX);
            rest.chars().take(length).collect()
        };
        let word: String = match &kind {
            Kind::String(text) => text.text.clone(),
            Kind::Int(_) | Kind::Float(_) => written(mark),
            // The same words in both.
            Kind::Null | Kind::Bool(_) | Kind::Array(_) | Kind::Object(_) => return kind,
        };
        let value = yaml_1_1::value(&word, mark.span).unwrap_or_else(|mistake| {
            self.state.note(mistake);
            None
        });
        value.unwrap_or(Kind::String(Text {
            text: word,
            style: Style::Plain,
            start: mark.start,
        }))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let mut nodes = self.state.nodes.borrow_mut();
        *nodes += 1;
        if *nodes > MAX_NODES {
            return Err(self.state.stop(too_much(self.span(), false)));
        }
        drop(nodes);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, a boolean, a list or a map")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(self.node(Kind::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(self.node(Kind::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(self.node(Kind::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(self.node(Kind::Int(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        match i64::try_from(value) {
            Ok(value) => Ok(self.node(Kind::Int(value))),
            Err(_) => self.visit_u128(value.into()),
        }
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Node, E> {
        let mistake = out_of_range(&value.to_string(), self.span());
        Err(self.state.stop(mistake))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Node, E> {
        let mistake = out_of_range(&value.to_string(), self.span());
        Err(self.state.stop(mistake))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        if value.is_finite() {
            return Ok(self.node(Kind::Float(value)));
        }
        let what = "infinity and not-a-number are not valid values of a workflow";
        Err(self.state.stop(
            Mistake::new("number", self.span(), what).hint("quote it if it is meant as text"),
        ))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        let (style, start) = match self.target() {
            Some(mark) => match mark.shape {
                NodeShape::Scalar(style) => (style, mark.start),
                _ => (Style::Plain, mark.start),
            },
            None => (Style::Plain, usize::MAX),
        };
        // A number that is written as such, and too large for one, would be text without a word.
        let digits = matches!(style, Style::Plain) && text.contains(|c: char| c.is_ascii_digit());
        if digits && text.parse().is_ok_and(f64::is_infinite) {
            return Err(self.state.stop(out_of_range(&text, self.span())));
        }
        Ok(self.node(Kind::String(Text { text, style, start })))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let spans: &[usize] = match self.target().map(|mark| &mark.shape) {
            Some(NodeShape::Sequence(items)) => items,
            _ => &[],
        };
        let mut spans = spans.iter();
        let mut items = Vec::new();
        loop {
            let mark = spans.next().copied().unwrap_or(usize::MAX);
            match seq.next_element_seed(self.inside(mark))? {
                Some(item) => items.push(item),
                None => return Ok(self.node(Kind::Array(items))),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let spans: &[(usize, usize)] = match self.target().map(|mark| &mark.shape) {
            Some(NodeShape::Mapping(pairs)) => pairs,
            _ => &[],
        };
        let mut spans = spans.iter();
        let mut entries: Vec<Entry> = Vec::new();
        let mut merges: Vec<Node> = Vec::new();
        let mut seen: AnchorUses = HashMap::new();
        // As text, a key is what is written: `1:` is the key "1".
        while let Some(key) = map.next_key::<String>()? {
            let (key_mark, value_mark) = spans.next().copied().unwrap_or((usize::MAX, usize::MAX));
            let written = self.state.spans.node_span(key_mark);
            let key_span = written.map_or(self.span(), |mark| mark.span);
            let value = map.next_value_seed(self.inside(value_mark))?;
            let plain =
                written.is_some_and(|mark| matches!(mark.shape, NodeShape::Scalar(Style::Plain)));
            if key == "<<" && plain {
                merges.push(value);
            } else if let Some((first, index)) = seen.get(&key) {
                self.state.note(duplicate(&key, key_span, *first));
                if let Some(entry) = entries.get_mut(*index) {
                    entry.value = value;
                }
            } else {
                seen.insert(key.clone(), (key_span, entries.len()));
                entries.push(Entry {
                    key,
                    key_span,
                    value,
                });
            }
        }
        for merge in merges {
            self.merge(merge, &mut entries, &mut seen);
        }
        Ok(self.node(Kind::Object(entries)))
    }
}

/// The first position of each key of a map, and the index of its entry.
type AnchorUses = HashMap<String, (Span, usize)>;

impl Seed<'_> {
    /// Adds what `<<` brings: what is written out counts more, earlier maps more than later ones.
    fn merge(&self, from: Node, entries: &mut Vec<Entry>, seen: &mut AnchorUses) {
        match from.kind {
            Kind::Object(merged) => {
                for entry in merged {
                    if !seen.contains_key(&entry.key) {
                        seen.insert(entry.key.clone(), (entry.key_span, entries.len()));
                        entries.push(entry);
                    }
                }
            }
            Kind::Array(items) if items.iter().all(|item| item.entries().is_some()) => {
                for item in items {
                    self.merge(item, entries, seen);
                }
            }
            _ => self.state.note(
                Mistake::new("merge", from.span, "`<<` accepts a map or a list of maps")
                    .hint("use an alias of a map, as in `<<: *defaults`"),
            ),
        }
    }
}
