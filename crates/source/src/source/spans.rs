//! Where everything in a YAML text is: the shape of the document with places but without values.
//! It reads event by event, so that nesting and size are refused before anything is built on
//! them; it never expands an alias.

use super::tree::Style;
use super::{MAX_DEPTH, MAX_NODES, Mistake, Span};
use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

/// A `[` or `{` where a key may begin is one if a `:` follows its end: until then the parser
/// remembers all that it reads and returns no event. The `:` may be at most this many characters away.
const MAX_AHEAD: usize = 100_000;

pub(super) struct Spans {
    nodes: Vec<NodeSpan>,
    /// The node that an alias refers to, by the parser's anchor number.
    anchors: HashMap<usize, usize>,
}

pub(super) struct NodeSpan {
    pub span: Span,
    /// Byte of the content at which it begins.
    pub start: usize,
    /// Byte behind it: of what is in brackets, behind the closing one.
    pub end: usize,
    pub shape: NodeShape,
    /// A tag says what it is.
    tagged: bool,
}

impl NodeSpan {
    /// Whether its text alone says what it is: it has neither quotes nor a tag.
    pub fn is_bare_word(&self) -> bool {
        !self.tagged && matches!(self.shape, NodeShape::Scalar(Style::Plain))
    }
}

pub(super) enum NodeShape {
    Scalar(Style),
    Alias(usize),
    Sequence(Vec<usize>),
    Mapping(Vec<(usize, usize)>),
}

impl Spans {
    /// The node, with aliases followed.
    pub fn get(&self, id: usize) -> Option<&NodeSpan> {
        let mark = self.nodes.get(id)?;
        match mark.shape {
            NodeShape::Alias(anchor) => self.nodes.get(*self.anchors.get(&anchor)?),
            _ => Some(mark),
        }
    }

    /// The node as written: an alias is an alias.
    pub fn node_span(&self, id: usize) -> Option<&NodeSpan> {
        self.nodes.get(id)
    }
}

/// Reads the shape of the only document in a text.
pub(super) fn read(content: &str, file: u16) -> Result<Spans, Mistake> {
    let mut builder = Builder {
        content,
        file,
        char_index: 0,
        byte_index: 0,
        spans: Spans {
            nodes: Vec::new(),
            anchors: HashMap::new(),
        },
        open: Vec::new(),
        documents: 0,
    };
    let ahead = Lookahead {
        content,
        count: Cell::new(0),
        from: Cell::new(0),
        stopped: Cell::new(false),
    };
    if content.chars().filter(|char| is_sign(*char)).count() <= MAX_AHEAD {
        builder.read(Parser::new_from_str(content), &ahead)?;
    } else {
        let chars = content
            .chars()
            .take_while(|char| ahead.continues_scalar(*char));
        builder.read(Parser::new_from_iter(chars), &ahead)?;
    }
    Ok(builder.spans)
}

/// How far the parser is ahead of its last event.
struct Lookahead<'a> {
    content: &'a str,
    /// The signs since then.
    count: Cell<usize>,
    /// The byte at which that event ends.
    from: Cell<usize>,
    stopped: Cell<bool>,
}

const fn is_sign(char: char) -> bool {
    matches!(
        char,
        ',' | '[' | ']' | '{' | '}' | ':' | '?' | '&' | '*' | '!' | '\'' | '"'
    )
}

impl Lookahead<'_> {
    fn continues_scalar(&self, next: char) -> bool {
        self.count
            .set(self.count.get() + usize::from(is_sign(next)));
        // A long text may hold as many, and is one event.
        if self.count.get() == MAX_AHEAD && self.is_flow() {
            self.stopped.set(true);
        }
        !self.stopped.get()
    }

    fn is_flow(&self) -> bool {
        let mut rest = self.content.get(self.from.get()..).unwrap_or_default();
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '-', '?', ':', ',']);
            match rest.strip_prefix('#') {
                Some(comment) => rest = comment.trim_start_matches(|char| char != '\n'),
                None => return rest.starts_with(['[', '{', '&', '!', '*']),
            }
        }
    }

    fn event(&self, ends: usize) {
        self.count.set(0);
        self.from.set(ends);
    }
}

/// A collection whose end has not come yet.
struct Open {
    id: usize,
    /// The key that waits for its value.
    key: Option<usize>,
}

struct Builder<'a> {
    content: &'a str,
    file: u16,
    char_index: usize,
    byte_index: usize,
    spans: Spans,
    open: Vec<Open>,
    documents: usize,
}

impl Builder<'_> {
    fn read<T: Input>(
        &mut self,
        mut parser: Parser<'_, T>,
        ahead: &Lookahead<'_>,
    ) -> Result<(), Mistake> {
        while let Some(next) = parser.next_event() {
            match next {
                _ if ahead.stopped.get() => break,
                Ok((Event::StreamEnd, _)) => return Ok(()),
                Ok((event, at)) => {
                    self.event(event, at)?;
                    ahead.event(self.byte(at.end));
                }
                Err(error) => {
                    let span = self.span(*error.marker(), *error.marker());
                    return Err(if error.info().contains("recursion limit") {
                        super::mistakes::too_much(span, true)
                    } else {
                        Mistake::new("syntax", span, error.info())
                    });
                }
            }
        }
        if !ahead.stopped.get() {
            return Ok(());
        }
        let before = self.content.get(..ahead.from.get()).unwrap_or_default();
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let span = Span {
            file: self.file,
            line: small(before.split('\n').count()),
            column: small(
                before
                    .chars()
                    .rev()
                    .take_while(|char| *char != '\n')
                    .count()
                    + 1,
            ),
            length: 1,
        };
        let told = "too much text in one pair of brackets where a key may begin";
        Err(Mistake::new("too-many-values", span, told)
            .hint("write it in lines that begin with `- `, or as JSON"))
    }

    fn event(&mut self, event: Event<'_>, at: saphyr_parser::Span) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let span = self.span(at.start, at.end);
                    return Err(Mistake::new(
                        "multiple-documents",
                        span,
                        "the file has a second document",
                    )
                    .hint(
                        "a workflow file holds one document: remove the `---` and what follows",
                    ));
                }
            }
            Event::Scalar(_, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                self.add(NodeShape::Scalar(style), anchor, tag.as_ref(), at)?;
            }
            Event::Alias(anchor) => {
                self.add(NodeShape::Alias(anchor), 0, None, at)?;
            }
            Event::SequenceStart(anchor, tag) => {
                let id = self.add(NodeShape::Sequence(Vec::new()), anchor, tag.as_ref(), at)?;
                self.open(id)?;
            }
            Event::MappingStart(anchor, tag) => {
                let id = self.add(NodeShape::Mapping(Vec::new()), anchor, tag.as_ref(), at)?;
                self.open(id)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let start = self.byte(at.start);
                let closing = self.content.get(start..).unwrap_or_default();
                let end = match closing.starts_with(['}', ']']) {
                    true => start + 1,
                    false => self.byte(at.end),
                };
                let ended = self.open.pop();
                let ended = ended.and_then(|open| self.spans.nodes.get_mut(open.id));
                ended.into_iter().for_each(|node| node.end = end);
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn open(&mut self, id: usize) -> Result<(), Mistake> {
        self.open.push(Open { id, key: None });
        match self.spans.nodes.get(id) {
            Some(mark) if self.open.len() > MAX_DEPTH => {
                Err(super::mistakes::too_much(mark.span, true))
            }
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        shape: NodeShape,
        anchor: usize,
        tag: Option<&Cow<'_, Tag>>,
        at: saphyr_parser::Span,
    ) -> Result<usize, Mistake> {
        let span = self.span(at.start, at.end);
        let start = self.byte(at.start);
        let id = self.spans.nodes.len();
        if id >= MAX_NODES {
            return Err(super::mistakes::too_much(span, false));
        }
        if let Some(tag) = tag {
            let known = ["str", "int", "float", "bool", "null", "map", "seq"];
            if !tag.is_yaml_core_schema() || !known.contains(&tag.suffix.as_str()) {
                return Err(Mistake::new(
                    "tag",
                    span,
                    format!("the tag `{tag}` has no meaning here"),
                )
                .hint("remove the tag, or quote the text if it is one"));
            }
        }
        let tagged = tag.is_some();
        let end = self.byte(at.end);
        self.spans.nodes.push(NodeSpan {
            span,
            start,
            end,
            shape,
            tagged,
        });
        if anchor != 0 {
            self.spans.anchors.insert(anchor, id);
        }
        self.attach(id, span)?;
        Ok(id)
    }

    /// Puts a node where it belongs in the innermost open collection.
    fn attach(&mut self, id: usize, span: Span) -> Result<(), Mistake> {
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        let is_scalar = matches!(
            self.spans.get(id).map(|mark| &mark.shape),
            Some(NodeShape::Scalar(_))
        );
        let Some(parent) = self.spans.nodes.get_mut(open.id) else {
            return Ok(());
        };
        match &mut parent.shape {
            NodeShape::Sequence(items) => items.push(id),
            NodeShape::Mapping(pairs) => match open.key.take() {
                Some(key) => pairs.push((key, id)),
                None if is_scalar => open.key = Some(id),
                None => return Err(bad_key(self.content, parent, span)),
            },
            NodeShape::Scalar(_) | NodeShape::Alias(_) => {}
        }
        Ok(())
    }

    /// Moves to the byte of a place.
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

    /// From the parser's spans to a span.
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

/// A map or a list where a key should be; `{{ x }}` without quotes is the usual reason.
fn bad_key(content: &str, parent: &NodeSpan, key: Span) -> Mistake {
    let rest = content.get(parent.start..).unwrap_or_default();
    if rest.starts_with("{{") {
        let line = rest.lines().next().unwrap_or_default().trim_end();
        let end = line.find("}}").map(|end| end + 2);
        // Text after it belongs to it, unless it closes something around it.
        let template = end.and_then(|end| match line.get(end..) {
            Some(after) if !after.contains([',', ']', '}', '#']) => Some(line),
            _ => line.get(..end),
        });
        super::mistakes::unquoted_template(parent.span, template)
    } else {
        Mistake::new("key", key, "a key must be text").hint("quote the key")
    }
}
