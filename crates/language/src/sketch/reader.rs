//! Reads YAML in block style by its indentation.

use super::{Kind, Member, Scalar, SketchNode, Style};
use std::ops::Range;

/// Maximum depth of the tree. Deeper parts are read as text.
pub(super) const MAX_DEPTH: usize = 128;
/// Maximum number of lines in which the end of a quoted text is searched.
const MAX_QUOTED: usize = 200;

pub(crate) fn read(text: &str) -> SketchNode {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let json = text.trim_start().starts_with(['{', '[']) && !text.trim_start().starts_with("{{");
    let mut root = SketchNode::nothing(0);
    while let Some(at) = reader.next() {
        let more = match json && matches!(root.kind, Kind::Nothing) {
            true => reader.flow(None),
            false => reader.block(0),
        };
        root = match (root.kind, more.kind) {
            (Kind::Map(mut members), Kind::Map(others)) => {
                members.extend(others);
                SketchNode {
                    range: root.range.start..more.range.end,
                    kind: Kind::Map(members),
                }
            }
            (Kind::Nothing, kind) => SketchNode {
                range: more.range,
                kind,
            },
            (kind, _) => SketchNode {
                range: root.range,
                kind,
            },
        };
        if reader.at <= at {
            reader.at = reader.line_end(at);
        }
    }
    root
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// Offset of the next byte to read.
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl Reader<'_> {
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    pub(super) fn rest(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rfind('\n').map_or(0, |at| at + 1)
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        self.rest(at)
            .find('\n')
            .map_or(self.text.len(), |end| at + end)
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.byte(self.at), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Moves to the next character that is not a blank, a line break or part of a comment.
    pub(super) fn next(&mut self) -> Option<usize> {
        loop {
            self.skip_blanks();
            let new_line = self.at == 0 || matches!(self.byte(self.at - 1), Some(b'\n'));
            let spaced = new_line || matches!(self.byte(self.at - 1), Some(b' ' | b'\t'));
            match self.byte(self.at)? {
                b'\n' => self.at += 1,
                b'#' if spaced => self.at = self.line_end(self.at),
                b'-' | b'.' | b'%' if new_line && self.is_marker() => {
                    self.at = self.line_end(self.at);
                }
                _ => return Some(self.at),
            }
        }
    }

    /// Returns true at `---`, `...` or a directive.
    fn is_marker(&self) -> bool {
        let rest = self.rest(self.at);
        let line = rest.lines().next().unwrap_or_default().trim_end();
        matches!(line, "---" | "...") || line.starts_with('%')
    }

    fn is_dash(&self, at: usize) -> bool {
        self.byte(at) == Some(b'-')
            && matches!(self.byte(at + 1), None | Some(b' ' | b'\n' | b'\r' | b'\t'))
    }

    /// Returns the key before a colon on this line, whether it is quoted, and the offset after the colon.
    fn key(&self, at: usize) -> Option<(Range<usize>, bool, usize)> {
        let end = self.line_end(at);
        let line = self.text.get(at..end)?;
        let ends = |colon: usize| {
            matches!(
                line.as_bytes().get(colon + 1),
                None | Some(b' ' | b'\t' | b'\r')
            )
        };
        if line.starts_with(['"', '\'']) {
            let inner = self.closed(at, end)?;
            let after = line.get(inner.end + 1 - at..)?;
            let colon = inner.end + 1 - at + (after.len() - after.trim_start().len());
            let is_key = line.as_bytes().get(colon) == Some(&b':') && ends(colon);
            return is_key.then_some((inner, true, at + colon + 1));
        }
        if line.starts_with(['{', '[', '|', '>', '&', '*', '!']) {
            return None;
        }
        let comment = line.find(" #").unwrap_or(line.len());
        let mut colons = line.match_indices(':').map(|(colon, _)| colon);
        let colon = colons
            .find(|colon| ends(*colon))
            .filter(|colon| *colon < comment)?;
        let name = line.get(..colon)?.trim_end();
        Some((at..at + name.len(), false, at + colon + 1))
    }

    /// Returns the range between the quote at `at` and its closing quote before `end`.
    fn closed(&self, at: usize, end: usize) -> Option<Range<usize>> {
        let quote = self.byte(at)?;
        let mut next = at + 1;
        while next < end {
            match self.byte(next)? {
                b'\\' if quote == b'"' => next += 2,
                byte if byte == quote => {
                    let doubled = quote == b'\'' && self.byte(next + 1) == Some(b'\'');
                    if !doubled {
                        return Some(at + 1..next);
                    }
                    next += 2;
                }
                _ => next += 1,
            }
        }
        None
    }

    /// Reads the part that begins here or on a later line, if it is indented by at least `least`.
    fn block(&mut self, least: usize) -> SketchNode {
        let Some(at) = self.next() else {
            return SketchNode::nothing(self.at);
        };
        let column = self.column(at);
        if column < least {
            return SketchNode::nothing(self.at);
        }
        self.depth += 1;
        let part = if self.depth > MAX_DEPTH {
            self.plain(column)
        } else if self.is_dash(at) {
            self.list(column)
        } else if self.key(at).is_some() || self.key_follows(at) {
            self.map(column)
        } else {
            self.value(least.saturating_sub(1), column)
        };
        self.depth -= 1;
        part
    }

    /// Returns true if the next line has a key of a map.
    /// Then the word at `at` is a key of this map, too, whose colon is not typed yet.
    fn key_follows(&mut self, at: usize) -> bool {
        let word = self.text.get(at..self.line_end(at)).unwrap_or_default();
        if word.starts_with(['"', '\'', '{', '[', '|', '>', '*', '&', '!', '@']) {
            return false;
        }
        let column = self.column(at);
        self.at = self.line_end(at);
        let next = self.next();
        self.at = at;
        next.is_some_and(|next| {
            self.column(next) == column && !self.is_dash(next) && self.key(next).is_some()
        })
    }

    fn map(&mut self, indent: usize) -> SketchNode {
        let start = self.at;
        let mut end = start;
        let mut members: Vec<Member> = Vec::new();
        while let Some(at) = self.next() {
            let column = self.column(at);
            if column < indent {
                break;
            }
            if column > indent || self.is_dash(at) {
                // The line has an indentation that no line before had. So it is the value of the last key, or it has
                // more keys.
                let part = match self.is_dash(at) {
                    true => self.list(column),
                    false => self.block(column),
                };
                end = end.max(part.range.end);
                match (members.last_mut(), part.kind) {
                    (Some(last), kind) if matches!(last.value.kind, Kind::Nothing) => {
                        last.value = SketchNode {
                            range: part.range,
                            kind,
                        };
                    }
                    (_, Kind::Map(more)) => members.extend(more),
                    _ => {}
                }
                if self.at <= at {
                    self.at = self.line_end(at);
                }
                continue;
            }
            let (key, quoted, value) = match self.key(at) {
                Some((key, quoted, after)) => {
                    self.at = after;
                    let value = self.member_value(indent);
                    (key, quoted, Some(value))
                }
                None => {
                    let line_end = self.line_end(at);
                    let word = self.text.get(at..line_end).unwrap_or_default().trim_end();
                    self.at = line_end;
                    let quoted = word.starts_with(['"', '\'']);
                    let inner = word.trim_matches(['"', '\'']);
                    let from = at + usize::from(quoted);
                    (from..from + inner.len(), quoted, None)
                }
            };
            let complete = value.is_some();
            let value = value.unwrap_or_else(|| SketchNode::nothing(key.end));
            end = end.max(value.range.end).max(key.end);
            members.push(Member {
                name: self.text.get(key.clone()).unwrap_or_default().to_owned(),
                key,
                quoted,
                complete,
                value,
            });
        }
        SketchNode {
            range: start..end,
            kind: Kind::Map(members),
        }
    }

    /// Reads the value after the colon of a key. `indent` is the column of the key.
    fn member_value(&mut self, indent: usize) -> SketchNode {
        let after = self.at;
        self.skip_blanks();
        self.skip_properties();
        match self.byte(self.at) {
            None | Some(b'\n' | b'#') => {
                let Some(next) = self.next() else {
                    return SketchNode::nothing(after);
                };
                let column = self.column(next);
                if column > indent {
                    return self.block(indent + 1);
                }
                if column == indent && self.is_dash(next) {
                    return self.list(column);
                }
                self.at = self.line_start(next);
                SketchNode::nothing(after)
            }
            Some(_) => {
                let column = indent + 1;
                self.value(indent, column)
            }
        }
    }

    /// Skips the properties `&name` and `!tag` before a value.
    fn skip_properties(&mut self) {
        while matches!(self.byte(self.at), Some(b'&' | b'!')) {
            while !matches!(self.byte(self.at), None | Some(b' ' | b'\n')) {
                self.at += 1;
            }
            self.skip_blanks();
        }
    }

    fn list(&mut self, indent: usize) -> SketchNode {
        let start = self.at;
        let mut end = start;
        let mut items: Vec<SketchNode> = Vec::new();
        while let Some(at) = self.next() {
            let column = self.column(at);
            if column < indent || (column == indent && !self.is_dash(at)) {
                break;
            }
            if column > indent {
                let part = self.block(column);
                end = end.max(part.range.end);
                if let Some(last) = items.last_mut()
                    && matches!(last.kind, Kind::Nothing)
                {
                    *last = part;
                }
                if self.at <= at {
                    self.at = self.line_end(at);
                }
                continue;
            }
            self.at = at + 1;
            self.skip_blanks();
            self.skip_properties();
            let item = match self.byte(self.at) {
                None | Some(b'\n' | b'#') => {
                    let next = self.next().filter(|next| self.column(*next) > indent);
                    match next {
                        Some(_) => self.block(indent + 1),
                        None => SketchNode::nothing(at + 1),
                    }
                }
                Some(_) => {
                    let here = self.at;
                    let column = self.column(here);
                    if self.is_dash(here) || self.key(here).is_some() || self.key_follows(here) {
                        self.block(column)
                    } else {
                        self.value(indent, column)
                    }
                }
            };
            end = end.max(item.range.end).max(at + 1);
            items.push(item);
        }
        SketchNode {
            range: start..end,
            kind: Kind::List(items),
        }
    }

    /// Reads a value that begins here. Its other lines are indented by more than `indent`.
    fn value(&mut self, indent: usize, column: usize) -> SketchNode {
        match self.byte(self.at) {
            Some(b'{' | b'[') if !self.rest(self.at).starts_with("{{") => self.flow(Some(indent)),
            Some(b'"' | b'\'') => self.quoted(Some(indent)),
            Some(b'|' | b'>') => self.literal(indent),
            _ => {
                let start = self.at;
                let part = self.plain(indent);
                // Keys are below a plain text. So the text is a key that is still being typed.
                let below = self.next().filter(|next| {
                    let below = self.column(*next) > indent;
                    let within = self.column(start) >= column && self.column(*next) > indent;
                    below && within && (self.key(*next).is_some() || self.is_dash(*next))
                });
                match below {
                    Some(next) if self.line_start(next) != self.line_start(start) => {
                        self.block(indent + 1)
                    }
                    _ => part,
                }
            }
        }
    }

    /// Reads text without quotes, including following lines that are indented by more than `indent`.
    fn plain(&mut self, indent: usize) -> SketchNode {
        let start = self.at;
        let mut end = self.plain_end(start);
        self.at = self.line_end(start);
        while let Some(next) = self.next() {
            let deeper = self.column(next) > indent;
            if !deeper || self.key(next).is_some() || self.is_dash(next) {
                self.at = self.line_start(next).max(end);
                break;
            }
            end = self.plain_end(next);
            self.at = self.line_end(next);
        }
        SketchNode {
            range: start..end,
            kind: Kind::Text(Scalar {
                inner: start..end,
                style: Style::Plain,
            }),
        }
    }

    fn plain_end(&self, at: usize) -> usize {
        let line = self.text.get(at..self.line_end(at)).unwrap_or_default();
        let line = line
            .find(" #")
            .map_or(line, |comment| line.get(..comment).unwrap_or(line));
        at + line.trim_end().len()
    }

    /// Reads text in quotes. Without a closing quote, it ends with its line.
    pub(super) fn quoted(&mut self, indent: Option<usize>) -> SketchNode {
        let start = self.at;
        let style = match self.byte(start) {
            Some(b'\'') => Style::Single,
            _ => Style::Double,
        };
        let line_end = self.line_end(start);
        let mut far = line_end;
        if let Some(indent) = indent {
            let later = self
                .rest(line_end)
                .split_inclusive('\n')
                .skip(1)
                .take(MAX_QUOTED);
            for line in later {
                let content = line.trim_start_matches([' ', '\t']);
                if !content.trim().is_empty() && line.len() - content.len() <= indent {
                    break;
                }
                far += line.len();
            }
            far = (far + 1).min(self.text.len());
        }
        let inner = self
            .closed(start, line_end)
            .or_else(|| self.closed(start, far));
        let (inner, end) = match inner {
            Some(inner) => (inner.clone(), inner.end + 1),
            None => (start + 1..line_end.max(start + 1), line_end.max(start + 1)),
        };
        self.at = end;
        SketchNode {
            range: start..end,
            kind: Kind::Text(Scalar { inner, style }),
        }
    }

    /// Reads the lines after `|` or `>`.
    fn literal(&mut self, indent: usize) -> SketchNode {
        let start = self.at;
        let from = (self.line_end(start) + 1).min(self.text.len());
        let mut end = from;
        let mut at = from;
        for line in self.rest(from).split_inclusive('\n') {
            let content = line.trim_start_matches(' ');
            if !content.trim().is_empty() {
                if line.len() - content.len() <= indent {
                    break;
                }
                end = at + line.trim_end().len();
            }
            at += line.len();
        }
        self.at = at.max(from);
        SketchNode {
            range: start..end.max(from.min(self.text.len())),
            kind: Kind::Text(Scalar {
                inner: from.min(end)..end,
                style: Style::Block,
            }),
        }
    }
}
