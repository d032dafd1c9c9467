//! Parses server-sent events from the bytes of a stream (WHATWG HTML, 9.2.5 and 9.2.6). It does not use connections
//! itself.

use bytes::Bytes;
use std::mem;
use std::time::Duration;

/// Maximum size in bytes of an event, and of a line.
pub(super) const MAX_EVENT: usize = 16 << 20;

/// Minimum wait before the next connection, if a server requests a shorter one.
const MIN_RETRY: Duration = Duration::from_millis(100);
/// Maximum wait before the next connection, if a server requests a longer one.
const MAX_RETRY: Duration = Duration::from_secs(3600);

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event as it was sent.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    /// The event's type.
    pub name: String,
    pub data: String,
}

/// An event or a line has more than [`MAX_EVENT`] bytes.
#[derive(Debug, PartialEq)]
pub(super) struct TooLarge;

/// Parses the bytes that one connection of a stream receives.
#[derive(Default)]
pub(super) struct EventParser {
    /// The bytes of the current line that have arrived so far.
    line: Vec<u8>,
    /// Whether the last byte was CR. An LF directly after it belongs to the same line end.
    after_cr: bool,
    has_first_line: bool,
    name: String,
    data: String,
    /// The id of the event that is being parsed.
    id: String,
    /// The id at the end of the last complete block (the lines up to an empty line).
    last_id: String,
    retry: Option<Duration>,
}

impl EventParser {
    /// Makes the parser for a connection that continues the stream after the event with this id.
    pub fn after(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            last_id: id.to_owned(),
            ..Self::default()
        }
    }

    /// Makes the parser for the next connection of the same stream. An incomplete block is dropped.
    pub fn reconnected(&self) -> Self {
        Self {
            retry: self.retry,
            ..Self::after(&self.last_id)
        }
    }

    /// Returns the id that the next connection sends. Empty if no event had an id.
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Returns the wait before the next connection that the server requested.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns true if only a part of an event has arrived.
    pub fn is_within_event(&self) -> bool {
        let is_comment = self.line.first() == Some(&b':');
        !self.line.is_empty() && !is_comment
            || !self.data.is_empty()
            || !self.name.is_empty()
            || self.id != self.last_id
    }

    /// Consumes bytes up to the end of an event. If no event ends in these bytes, consumes all of them.
    pub fn next_event(&mut self, bytes: &mut Bytes) -> Result<Option<Event>, TooLarge> {
        while let Some(first) = bytes.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                let _ = bytes.split_to(1);
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let part = bytes.split_to(end.unwrap_or(bytes.len()));
            if self.line.len() + self.data.len() + part.len() > MAX_EVENT {
                return Err(TooLarge);
            }
            self.line.extend_from_slice(&part);
            if end.is_none() {
                break;
            }
            self.after_cr = *bytes.split_to(1) == *b"\r";
            if let Some(event) = self.end_line() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = mem::take(&mut self.line);
        let line = match mem::replace(&mut self.has_first_line, true) {
            true => &*line,
            false => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line),
        };
        if line.is_empty() {
            return self.end_block();
        }
        let line = String::from_utf8_lossy(line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                let wait = value.parse().ok().map(Duration::from_millis);
                let wait = wait.or_else(|| (!value.is_empty()).then_some(MAX_RETRY));
                self.retry = wait.map_or(self.retry, |wait| Some(wait.clamp(MIN_RETRY, MAX_RETRY)));
            }
            // A comment or an unknown field is ignored.
            _ => {}
        }
        None
    }

    /// Ends a block at an empty line. A block without data makes no event, but its id is used.
    fn end_block(&mut self) -> Option<Event> {
        self.last_id.clone_from(&self.id);
        let (name, mut data) = (mem::take(&mut self.name), mem::take(&mut self.data));
        data.pop()?;
        let name = match name.is_empty() {
            true => String::from("message"),
            false => name,
        };
        Some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a stream that arrives in parts of `size` bytes. Returns the events, each with the last id.
    fn events(stream: &[u8], size: usize) -> (Vec<(String, String, String)>, EventParser) {
        let mut parser = EventParser::default();
        let mut found = Vec::new();
        for part in stream.chunks(size) {
            let mut bytes = Bytes::copy_from_slice(part);
            while let Some(event) = parser.next_event(&mut bytes).unwrap() {
                found.push((parser.last_id().to_owned(), event.name, event.data));
            }
        }
        (found, parser)
    }

    #[test]
    fn a_stream_is_read_as_the_standard_says() {
        for (stream, expected) in [
            // The examples of the standard.
            (
                "data: YHOO\ndata: +2\ndata: 10\n\n",
                vec![("", "message", "YHOO\n+2\n10")],
            ),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
                vec![
                    ("1", "message", "first event"),
                    ("", "message", "second event"),
                ],
            ),
            (
                "data\n\ndata\ndata\n\ndata:",
                vec![("", "message", ""), ("", "message", "\n")],
            ),
            (
                "data:test\n\ndata: test\n\n",
                vec![("", "message", "test"), ("", "message", "test")],
            ),
            // All kinds of line ends, and a byte order mark.
            (
                "\u{FEFF}event: add\rdata: 1\r\rdata: 2\r\n\r\ndata: 3\n\r\n",
                vec![("", "add", "1"), ("", "message", "2"), ("", "message", "3")],
            ),
            // Behind the beginning, a byte order mark is part of the text.
            ("\n\u{FEFF}data: 1\n\n", vec![]),
            // An id remains valid for later events, also changes in a block without data, and contains no NUL.
            (
                "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\nid: 3\0\ndata: c\n\n",
                vec![
                    ("1", "message", "a"),
                    ("1", "message", "b"),
                    ("2", "message", "c"),
                ],
            ),
            // The event name in a block without data is not used for the next event.
            ("event: x\n\ndata: 1\n\n", vec![("", "message", "1")]),
            ("unknown: 1\nDATA: 2\nda ta: 3\n\n", vec![]),
        ] {
            for size in [1, 2, 3, 1_000] {
                let (found, _) = events(stream.as_bytes(), size);
                let found: Vec<_> = found
                    .iter()
                    .map(|(id, name, data)| (&**id, &**name, &**data))
                    .collect();
                assert_eq!(found, expected, "{stream:?} in parts of {size}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let (found, _) = events(b"data: \xFF\n\n", 1);
        assert_eq!(found.first().unwrap().2, "\u{FFFD}");
    }

    #[test]
    fn a_wait_is_within_its_bounds() {
        let milliseconds = |number| Some(Duration::from_millis(number));
        for (stream, expected) in [
            ("", None),
            ("retry: 2500\n", milliseconds(2500)),
            ("retry: 2500\nretry: 1s\nretry\n", milliseconds(2500)),
            ("retry: 0\n", Some(MIN_RETRY)),
            ("retry: 99999999999999999999999\n", Some(MAX_RETRY)),
        ] {
            assert_eq!(events(stream.as_bytes(), 2).1.retry(), expected, "{stream}");
        }
    }

    #[test]
    fn half_an_event_is_dropped() {
        for (stream, is_within) in [
            ("", false),
            ("id: 1\ndata: a\n\n", false),
            (": comm", false),
            (": comment\n", false),
            ("retry: 5\n", false),
            ("id: 1\n", true),
            ("data", true),
            ("event: x\n", true),
            ("data: a\n", true),
        ] {
            let (_, parser) = events(stream.as_bytes(), 100);
            assert_eq!(parser.is_within_event(), is_within, "{stream}");
            assert!(!parser.reconnected().is_within_event());
        }
        let (_, parser) = events(b"id: 1\ndata: a\n\nid: 2\ndata: b\n", 100);
        assert_eq!(parser.reconnected().last_id(), "1");
    }

    #[test]
    fn an_event_has_a_maximum_size() {
        let mut parser = EventParser::default();
        let half = vec![b'x'; MAX_EVENT / 2];
        let mut bytes = Bytes::from([b"data:", &*half, b"\ndata:", &*half].concat());
        assert_eq!(parser.next_event(&mut bytes), Err(TooLarge));
    }
}
