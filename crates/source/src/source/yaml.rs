//! Reads YAML text into a tree, in one pass over the parser's events: values, positions and notation.
//! Nesting and size are checked at each event, before a value is built from it. Only one value of a duplicate key is
//! stored, and the expansion of aliases is limited.

use super::anchors::Anchors;
use super::explain::explain;
use super::lookahead::Lookahead;
use super::mistakes::{too_much, unquoted_template};
use super::notation::{self, Properties};
use super::tree::{Style, Text};
use super::written::{Form, Key, ListParts, MapParts, ReadValue, WrittenText};
use super::{Kind, MAX_DEPTH, MAX_NODES, Mistake, Node, Schema, Span, words};
use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::ops::Range;

/// Returns the value with its notation (`None` if the text has no value), and all mistakes.
pub(super) fn parse(content: &str, file: u16, schema: Schema) -> (Option<ReadValue>, Vec<Mistake>) {
    let Attempt {
        value,
        mut mistakes,
        error,
        open,
    } = attempt(content, file, schema);
    let Some(error) = error else {
        return (value, mistakes);
    };
    let innermost = open.last().copied();
    mistakes.push(explain(without_last_blanks(content), error, innermost));
    (None, mistakes)
}

/// The result of reading a text up to its end, or up to the first error.
pub(super) struct Attempt {
    /// The value with its notation; `None` if the text has an error.
    pub value: Option<ReadValue>,
    /// The mistakes that are no reason to stop reading.
    pub mistakes: Vec<Mistake>,
    /// The error at which the reader stopped.
    pub error: Option<Mistake>,
    /// The positions and signs of the brackets that were open at the error, the innermost last.
    pub open: Vec<(Span, char)>,
}

/// Reads a text until its end, or until its first error.
pub(super) fn attempt(content: &str, file: u16, schema: Schema) -> Attempt {
    if let Some(mistake) = refused_character(content, file) {
        return Attempt {
            value: None,
            mistakes: Vec::new(),
            error: Some(mistake),
            open: Vec::new(),
        };
    }
    let content = without_last_blanks(content);
    let mut reader = Reader {
        content,
        file,
        schema,
        char_index: 0,
        byte_index: 0,
        last_end: 0,
        root: None,
        open: Vec::new(),
        anchors: Anchors::default(),
        documents: 0,
        nodes: 0,
        mistakes: Vec::new(),
    };
    let lookahead = Lookahead::new(content);
    let result = match lookahead.is_bounded() {
        true => reader.read(Parser::new_from_str(content), &lookahead),
        false => reader.read(Parser::new_from_iter(lookahead.chars()), &lookahead),
    };
    let open = reader.open_brackets();
    let value = result.is_ok().then(|| {
        let start = Span {
            file,
            ..Span::START
        };
        let end = content.len();
        let nothing = || ReadValue::scalar(start, Kind::Null, end..end, Style::Plain);
        reader.root.unwrap_or_else(nothing)
    });
    Attempt {
        value,
        mistakes: reader.mistakes,
        error: result.err(),
        open,
    }
}

/// Removes blanks after the last line break, because the parser would read them as a line of a block.
fn without_last_blanks(content: &str) -> &str {
    let trimmed = content.trim_end_matches([' ', '\t']);
    if trimmed.ends_with('\n') {
        trimmed
    } else {
        content
    }
}

/// Finds the first character that YAML allows only as an escape (YAML 1.2, 5.1).
fn refused_character(content: &str, file: u16) -> Option<Mistake> {
    let is_refused = |char: char| {
        matches!(char, '\u{fffe}' | '\u{ffff}')
            || (char.is_control() && !matches!(char, '\t' | '\n' | '\r' | '\u{85}'))
    };
    let at = content.find(is_refused)?;
    let (before, rest) = content.split_at_checked(at)?;
    let start = Span {
        file,
        ..Span::START
    };
    let span = start.after(before);
    let code = u32::from(rest.chars().next()?);
    let what = format!("the character U+{code:04X} is not allowed in YAML");
    let hint = format!("in double quotes, write `\\u{code:04x}`");
    Some(Mistake::new("syntax", span, what).hint(hint))
}

struct Reader<'a> {
    content: &'a str,
    file: u16,
    schema: Schema,
    /// Position of the parser's last mark (a position in an event), in characters.
    char_index: usize,
    /// The same position in bytes.
    byte_index: usize,
    /// Byte at which the last value or key ends. After the start of a list or map, the byte at which its inside begins.
    last_end: usize,
    root: Option<ReadValue>,
    open: Vec<Open>,
    anchors: Anchors,
    documents: usize,
    /// Number of values and keys. Every alias counts as the values that it repeats.
    nodes: usize,
    mistakes: Vec<Mistake>,
}

/// A list or map whose end has not been read yet.
struct Open {
    parts: Parts,
    span: Span,
    /// Byte at which the anchor, the tag or, without these, the content begins.
    start: usize,
    /// Byte at which the content begins.
    inside: usize,
    /// Whether the list or map is in brackets.
    flow: bool,
    anchor: usize,
}

enum Parts {
    List(ListParts),
    Map {
        parts: MapParts,
        /// The key that waits for its value, and whether the key is `<<`.
        key: Option<(Key, bool)>,
    },
}

/// A scalar as the parser returns it.
struct Scalar<'e> {
    text: Cow<'e, str>,
    style: Style,
    anchor: usize,
    tag: Option<Cow<'e, Tag>>,
}

/// Position of a scalar in the text.
struct ScalarPlace {
    /// Byte at which its content begins.
    start: usize,
    /// Bytes of the scalar. They include its anchor and tag, unless it is a block.
    range: Range<usize>,
}

impl Reader<'_> {
    fn read<T: Input>(
        &mut self,
        mut parser: Parser<'_, T>,
        lookahead: &Lookahead<'_>,
    ) -> Result<(), Mistake> {
        while let Some(next) = parser.next_event() {
            match next {
                _ if lookahead.is_limit_reached() => break,
                Ok((Event::StreamEnd, _)) => return Ok(()),
                Ok((event, at)) => {
                    self.event(event, at)?;
                    lookahead.restart_at(self.byte(at.end));
                }
                Err(error) => {
                    let span = self.span(*error.marker(), *error.marker());
                    return Err(match error.info() {
                        info if info.contains("recursion limit") => too_much(span, true),
                        info => Mistake::new("syntax", span, info),
                    });
                }
            }
        }
        match lookahead.is_limit_reached() {
            true => Err(lookahead.mistake(self.file)),
            false => Ok(()),
        }
    }

    /// Returns the positions and the signs of the open brackets, the innermost last.
    fn open_brackets(&self) -> Vec<(Span, char)> {
        let open = self.open.iter().filter(|open| open.flow);
        let signs = open.filter_map(|open| {
            let bracket = self.content.get(open.inside..)?.chars().next()?;
            Some((open.span, bracket))
        });
        signs.collect()
    }

    fn event(&mut self, event: Event<'_>, at: saphyr_parser::Span) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(_) => self.start_document(at),
            Event::Scalar(text, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                let scalar = Scalar {
                    text,
                    style,
                    anchor,
                    tag,
                };
                self.scalar(scalar, at)
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::SequenceStart(anchor, tag) => {
                let list = Parts::List(ListParts::default());
                self.open(list, anchor, tag.as_deref(), at)
            }
            Event::MappingStart(anchor, tag) => {
                let parts = MapParts::default();
                let map = Parts::Map { parts, key: None };
                self.open(map, anchor, tag.as_deref(), at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn start_document(&mut self, at: saphyr_parser::Span) -> Result<(), Mistake> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let span = self.span(at.start, at.end);
        let what = "the file has a second document";
        Err(Mistake::new("multiple-documents", span, what)
            .hint("a workflow file holds one document: remove the `---` and what follows"))
    }

    fn scalar(&mut self, scalar: Scalar<'_>, at: saphyr_parser::Span) -> Result<(), Mistake> {
        let whole = self.span(at.start, at.end);
        let (begin, end) = (self.byte(at.start), self.byte(at.end));
        let ScalarPlace { start, range } = self.place(&scalar, begin, end);
        let span = whole.after(self.content.get(begin..start).unwrap_or_default());
        self.last_end = range.end;
        let Scalar {
            text,
            style,
            anchor,
            tag,
        } = scalar;
        let mut text = text.into_owned();
        // The parser adds a line break at the end of a file that does not end with one. This line break is removed from
        // a block.
        let is_last = end == self.content.len();
        if style == Style::Block && is_last && !self.content.ends_with(['\n', '\r']) {
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
        }
        let tag = known_tag(tag.as_deref(), whole)?;
        if style == Style::Plain && tag.is_none() {
            self.refuse_indicator(&text, anchor, span)?;
        }
        let kind = match tag {
            Some(tag) => words::tagged(tag, &text, whole),
            None if style == Style::Plain => words::value(&text, self.schema, span),
            None => Ok(None),
        };
        let node = |text, kind: Option<Kind>| {
            let string = || Kind::String(Text { text, style, start });
            Node {
                span,
                kind: kind.unwrap_or_else(string),
            }
        };
        if self.awaits_key() {
            if anchor != 0 {
                let kind = kind.unwrap_or_default();
                let node = node(text.clone(), kind);
                self.anchors.add(anchor, &node, Some(text.clone()))?;
            }
            let is_merge = style == Style::Plain && text == "<<";
            return self.attach_key(Key { text, span, range }, is_merge);
        }
        let kind = match (kind, self.schema) {
            (Err(mistake), Schema::Yaml11) => {
                self.mistakes.push(mistake);
                None
            }
            (kind, _) => kind?,
        };
        let text_as_key = (anchor != 0).then(|| text.clone());
        let node = node(text, kind);
        self.anchors.add(anchor, &node, text_as_key)?;
        let form = Form::Scalar(style);
        let written = WrittenText { range, form };
        self.attach(ReadValue { node, written })
    }

    /// Finds the position of a scalar.
    fn place(&self, scalar: &Scalar<'_>, begin: usize, end: usize) -> ScalarPlace {
        let text = self.content;
        let properties = Properties::read(text, begin, scalar.anchor, scalar.tag.is_some());
        let has_properties = properties.end > begin;
        let content = properties.content_start.min(end);
        let (start, range) = match scalar.style {
            Style::Plain if !scalar.text.is_empty() => (content, begin..end),
            Style::Plain if has_properties => (properties.end, begin..properties.end),
            Style::Plain => {
                let at = match self.innermost() {
                    None => end,
                    Some(Parts::List(_)) => notation::position_after_sign(text, self.last_end, '-'),
                    Some(Parts::Map { .. }) => {
                        notation::position_after_sign(text, self.last_end, ':')
                    }
                };
                (begin, at..at)
            }
            Style::Single | Style::Double => {
                let quoted = notation::quoted_end(text, content, scalar.style);
                (content, begin..quoted.unwrap_or(end))
            }
            // Without an anchor or a tag, the parser's range begins at the content. With one, the content must be
            // found.
            Style::Block if has_properties => {
                let start = notation::block_content(text, content);
                (start, notation::trimmed(text, content..end))
            }
            Style::Block => {
                let header = notation::block_header(text, self.last_end).unwrap_or(begin);
                (begin, notation::trimmed(text, header..end))
            }
        };
        ScalarPlace { start, range }
    }

    /// Refuses a missing key. Also refuses text that YAML forbids inside of brackets, but that the parser accepts.
    fn refuse_indicator(&self, word: &str, anchor: usize, span: Span) -> Result<(), Mistake> {
        if word.starts_with(['|', '>']) {
            let what = "no text without quotes begins like this inside of brackets";
            return Err(Mistake::new("syntax", span, what).hint("quote it"));
        }
        match word.is_empty() && anchor == 0 && self.awaits_key() {
            true => Err(Mistake::new("key", span, "a key is missing")
                .hint("write it before the `:`; an empty key is `\"\"`")),
            false => Ok(()),
        }
    }

    fn alias(&mut self, anchor: usize, at: saphyr_parser::Span) -> Result<(), Mistake> {
        let span = self.span(at.start, at.end);
        let range = self.byte(at.start)..self.byte(at.end);
        self.last_end = range.end;
        if self.awaits_key() {
            let text = self.anchors.key(anchor, span)?;
            let text = text.ok_or_else(|| bad_key(span))?;
            return self.attach_key(Key { text, span, range }, false);
        }
        let (node, size) = self.anchors.value(anchor, span)?;
        if self.open.len() + size.depth > MAX_DEPTH {
            return Err(too_much(span, true));
        }
        // `attach` counts one value for each alias, so only the further values are added here.
        self.nodes += size.nodes - 1;
        let form = Form::Alias;
        let written = WrittenText { range, form };
        self.attach(ReadValue { node, written })
    }

    fn open(
        &mut self,
        parts: Parts,
        anchor: usize,
        tag: Option<&Tag>,
        at: saphyr_parser::Span,
    ) -> Result<(), Mistake> {
        let span = self.span(at.start, at.end);
        let start = self.byte(at.start);
        known_tag(tag, span)?;
        if self.awaits_key() {
            let around = self.open.last();
            let template = around.and_then(|map| self.unquoted_template(map));
            return Err(template.unwrap_or_else(|| bad_key(span)));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_much(span, true));
        }
        let inside = Properties::read(self.content, start, anchor, tag.is_some()).content_start;
        let content = self.content.get(inside..).unwrap_or_default();
        self.last_end = inside;
        self.open.push(Open {
            parts,
            span,
            start,
            inside,
            flow: content.starts_with(['{', '[']),
            anchor,
        });
        Ok(())
    }

    fn close(&mut self, at: saphyr_parser::Span) -> Result<(), Mistake> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let is_empty = match &open.parts {
            Parts::List(list) => list.is_empty(),
            Parts::Map { parts, .. } => parts.is_empty(),
        };
        if open.flow || is_empty {
            let start = self.byte(at.start);
            let closing = self.content.get(start..).unwrap_or_default();
            self.last_end = match closing.starts_with(['}', ']']) {
                true => start + 1,
                false => self.byte(at.end),
            };
        }
        let range = open.inside..self.last_end.max(open.inside);
        let value = match open.parts {
            Parts::List(list) => list.finish(open.span, range, open.flow),
            Parts::Map { parts, .. } => {
                parts.finish(open.span, range, open.flow, &mut self.mistakes)
            }
        };
        self.anchors.add(open.anchor, &value.node, None)?;
        self.attach(value)
    }

    fn innermost(&self) -> Option<&Parts> {
        self.open.last().map(|open| &open.parts)
    }

    /// Returns true if the next node is a key.
    fn awaits_key(&self) -> bool {
        matches!(self.innermost(), Some(Parts::Map { key: None, .. }))
    }

    fn attach_key(&mut self, new: Key, is_merge: bool) -> Result<(), Mistake> {
        self.count(new.span)?;
        if let Some(Parts::Map { key, .. }) = self.open.last_mut().map(|open| &mut open.parts) {
            *key = Some((new, is_merge));
        }
        Ok(())
    }

    fn count(&mut self, span: Span) -> Result<(), Mistake> {
        self.nodes += 1;
        match self.nodes > MAX_NODES {
            true => Err(too_much(span, false)),
            false => Ok(()),
        }
    }

    /// Adds a value to the innermost open list or map.
    fn attach(&mut self, value: ReadValue) -> Result<(), Mistake> {
        self.count(value.node.span)?;
        match self.open.last_mut().map(|open| &mut open.parts) {
            None => self.root = Some(value),
            Some(Parts::List(list)) => list.add(value),
            Some(Parts::Map { parts, key }) => match key.take() {
                Some((key, true)) => parts.add_merge(&key, value),
                Some((key, false)) => parts.add(key, value, &mut self.mistakes),
                None => return Err(bad_key(value.node.span)),
            },
        }
        Ok(())
    }

    /// Returns the mistake of a template without quotes: the parser reads `{{ x }}` as a map whose key is a map.
    fn unquoted_template(&self, around: &Open) -> Option<Mistake> {
        let rest = self.content.get(around.start..)?;
        if !rest.starts_with("{{") {
            return None;
        }
        let line = rest.lines().next().unwrap_or_default().trim_end();
        let end = line.find("}}").map(|end| end + 2);
        // Text after the `}}` is a part of the template, unless it continues or closes an enclosing list or map, or
        // begins a comment.
        let template = end.and_then(|end| match line.get(end..) {
            Some(after) if !after.contains([',', ']', '}', '#']) => Some(line),
            _ => line.get(..end),
        });
        Some(unquoted_template(around.span, template))
    }

    /// Moves to a mark of the parser and returns its position in bytes.
    fn byte(&mut self, at: Marker) -> usize {
        while self.char_index < at.index() {
            let rest = self.content.get(self.byte_index..).unwrap_or_default();
            let Some(char) = rest.chars().next() else {
                break;
            };
            self.byte_index += char.len_utf8();
            self.char_index += 1;
        }
        while self.char_index > at.index() {
            let before = self.content.get(..self.byte_index).unwrap_or_default();
            let Some(char) = before.chars().next_back() else {
                break;
            };
            self.byte_index -= char.len_utf8();
            self.char_index -= 1;
        }
        self.byte_index
    }

    /// Converts the parser's marks to a span.
    fn span(&self, start: Marker, end: Marker) -> Span {
        let length = if start.line() == end.line() {
            end.col().saturating_sub(start.col()).max(1)
        } else {
            1
        };
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Span {
            file: self.file,
            line: small(start.line()).max(1),
            column: small(start.col()).saturating_add(1),
            length: small(length),
        }
    }
}

fn bad_key(span: Span) -> Mistake {
    Mistake::new("key", span, "a key must be text").hint("quote the key")
}

/// Returns the name of a tag of the core schema.
fn known_tag(tag: Option<&Tag>, span: Span) -> Result<Option<&str>, Mistake> {
    const KNOWN: [&str; 7] = ["str", "int", "float", "bool", "null", "map", "seq"];
    const CORE: &str = "tag:yaml.org,2002:";
    let Some(tag) = tag else { return Ok(None) };
    let core = match tag.is_yaml_core_schema() {
        true => Some(&*tag.suffix),
        // A tag with its full name: `!<tag:yaml.org,2002:str>`.
        false => tag.suffix.strip_prefix(CORE),
    };
    if let Some(name) = core.filter(|name| KNOWN.contains(name)) {
        return Ok(Some(name));
    }
    let shown = match core {
        Some(name) => format!("!!{name}"),
        None if tag.suffix.starts_with('!') => tag.suffix.clone(),
        None => format!("!{}", tag.suffix),
    };
    let what = format!("the tag `{shown}` has no meaning here");
    Err(Mistake::new("tag", span, what).hint("remove the tag, or quote the text if it is one"))
}
