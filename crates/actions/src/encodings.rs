//! Views of a text: the text without its escapes, or decoded from Base64. A search for a secret also searches these
//! views, and reports positions in the original text. This module has no secrets itself.

use std::ops::Range;

/// Minimum number of consecutive Base64 letters that are decoded.
const MIN_LETTERS: usize = 8;

/// A text after decoding, with the positions that its bytes have in the original.
pub(super) struct View {
    pub bytes: Vec<u8>,
    /// Pairs of a position in `bytes` and the corresponding position in the text. The bytes up to the next pair are
    /// contiguous in the text, too.
    from: Vec<(usize, usize)>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    /// Decoded from Base64, without the first `skipped` letters.
    Base64 {
        skipped: usize,
    },
}

impl View {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            from: Vec::new(),
            kind: Kind::Plain,
        }
    }

    /// Returns the range in the text from which a part of this view was decoded.
    pub fn origin(&self, part: &Range<usize>) -> Range<usize> {
        match self.kind {
            Kind::Plain => self.at(part.start)..self.at(part.end),
            Kind::Base64 { skipped } => {
                let first = skipped + part.start * 4 / 3;
                let last = skipped + (part.end * 4).div_ceil(3).saturating_sub(1);
                self.at(first)..self.at(last) + 1
            }
        }
    }

    fn at(&self, place: usize) -> usize {
        let behind = self.from.partition_point(|(own, _)| *own <= place);
        let entry = behind.checked_sub(1).and_then(|entry| self.from.get(entry));
        entry.map_or(place, |(own, origin)| origin + (place - own))
    }

    /// Sets the position in the text of the bytes that are pushed after this call.
    fn continues_at(&mut self, origin: usize) {
        self.from.push((self.bytes.len(), origin));
    }
}

/// Decodes one layer of escapes: of URLs, JSON, program texts, HTML and mail. Returns `None` if the text has no escape.
pub(super) fn unescaped(text: &[u8]) -> Option<View> {
    let mut view = View::new();
    let mut at = 0;
    let mut found = false;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        match escape(rest) {
            Some((meant, length)) => {
                found = true;
                view.continues_at(at);
                view.bytes.extend_from_slice(&meant);
                at += length;
                view.continues_at(at);
            }
            None => {
                view.bytes.extend(rest.first());
                at += 1;
            }
        }
    }
    found.then_some(view)
}

/// Decodes the escape at the beginning of a text. `None` if the text begins with no escape. Returns the decoded bytes
/// and the length of the escape.
fn escape(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (first, rest) = text.split_first()?;
    match first {
        b'%' => Some((vec![byte(rest)?], 3)),
        // Quoted-printable, as in mail. A soft line break is also an escape.
        b'=' => match rest {
            [b'\n', ..] => Some((Vec::new(), 2)),
            [b'\r', b'\n', ..] => Some((Vec::new(), 3)),
            _ => Some((vec![byte(rest)?], 3)),
        },
        b'&' => html(rest),
        b'\\' => Some(backslash(rest)),
        _ => None,
    }
}

fn byte(digits: &[u8]) -> Option<u8> {
    u8::try_from(hex(digits, 2)?).ok()
}

/// Returns the number that the first `count` hexadecimal digits represent.
fn hex(digits: &[u8], count: usize) -> Option<u32> {
    let digits = std::str::from_utf8(digits.get(..count)?).ok()?;
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| all)
}

fn letter(code: u32) -> Option<Vec<u8>> {
    Some(char::from_u32(code)?.to_string().into_bytes())
}

/// Decodes the text after an ampersand, as in HTML: `amp;`, `#65;`, `#x41;`.
fn html(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let end = rest.iter().take(12).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(rest.get(..end)?).ok()?;
    let meant = match name {
        "amp" => b"&".to_vec(),
        "lt" => b"<".to_vec(),
        "gt" => b">".to_vec(),
        "quot" => b"\"".to_vec(),
        "apos" => b"'".to_vec(),
        _ => {
            let number = name.strip_prefix('#')?;
            let hex = number.strip_prefix(['x', 'X']);
            let code = match hex {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            letter(code.ok()?)?
        }
    };
    Some((meant, end + 2))
}

/// Decodes the text after a backslash. Skips further backslashes first, because each layer of JSON doubles them.
fn backslash(rest: &[u8]) -> (Vec<u8>, usize) {
    let more = rest.iter().take_while(|byte| **byte == b'\\').count();
    let before = 1 + more;
    let rest = rest.get(more..).unwrap_or_default();
    let digits = rest.get(1..).unwrap_or_default();
    let coded = match rest.first() {
        Some(b'u') => unicode(digits),
        Some(b'U') => hex(digits, 8).and_then(letter).map(|meant| (meant, 9)),
        Some(b'x') => byte(digits).map(|byte| (vec![byte], 3)),
        Some(b'n') => Some((b"\n".to_vec(), 1)),
        Some(b'r') => Some((b"\r".to_vec(), 1)),
        Some(b't') => Some((b"\t".to_vec(), 1)),
        _ => None,
    };
    match coded {
        Some((meant, length)) => (meant, before + length),
        None => (Vec::new(), before),
    }
}

/// Decodes the text after the `u` of an escape with a backslash: `u0041`, `ud83d\ude00`, `u{41}`.
fn unicode(digits: &[u8]) -> Option<(Vec<u8>, usize)> {
    if let Some(inside) = digits.strip_prefix(b"{") {
        let end = inside.iter().take(7).position(|byte| *byte == b'}')?;
        return Some((letter(hex(inside, end)?)?, end + 3));
    }
    let first = hex(digits, 4)?;
    if let Some(meant) = letter(first) {
        return Some((meant, 5));
    }
    let rest = digits.get(4..)?;
    let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let second = hex(rest.get(slashes..)?.strip_prefix(b"u")?, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let meant = String::from_utf16(&units).ok()?;
    Some((meant.into_bytes(), 5 + slashes + 5))
}

/// Calls `see` with each decoded sequence of Base64 letters, in either alphabet.
///
/// A sequence is decoded several times, from each position in a group of four letters, because it is not known where a
/// group begins. Line ends in a sequence, and white space after them, are skipped.
pub(super) fn base64(text: &[u8], see: &mut dyn FnMut(&View)) {
    let mut at = 0;
    while at < text.len() {
        let mut run = View::new();
        let mut broken = true;
        while let Some(byte) = text.get(at) {
            if let Some(letter) = sextet(*byte) {
                if broken {
                    run.continues_at(at);
                    broken = false;
                }
                run.bytes.push(letter);
                at += 1;
            } else if let (false, Some(length)) = (run.bytes.is_empty(), line_end(text.get(at..))) {
                at += length;
                broken = true;
            } else {
                at += 1;
                break;
            }
        }
        if run.bytes.len() < MIN_LETTERS {
            continue;
        }
        for skipped in 0..4 {
            let letters = run.bytes.get(skipped..).unwrap_or_default();
            see(&View {
                bytes: decoded(letters),
                from: run.from.clone(),
                kind: Kind::Base64 { skipped },
            });
        }
    }
}

fn line_end(text: Option<&[u8]>) -> Option<usize> {
    let text = text?;
    let end = match text {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => return None,
    };
    let blank = text.get(end..)?.iter();
    let blank = blank.take_while(|byte| matches!(byte, b' ' | b'\t'));
    Some(end + blank.count())
}

fn sextet(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn decoded(letters: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for letter in letters {
        bits = bits << 6 | u32::from(*letter);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.extend(u8::try_from(bits >> held & 0xff));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_lead_back() {
        let text = br#"a%62\u0063\\u0064&#101;&#x66;\x67=68 \ud83d\ude00&amp;z"#;
        let view = unescaped(text).unwrap();
        assert_eq!(
            String::from_utf8(view.bytes.clone()).unwrap(),
            "abcdefgh 😀&z"
        );
        assert_eq!(view.origin(&(0..2)), 0..4);
        assert_eq!(view.origin(&(2..4)), 4..17);
        let end = view.bytes.len();
        assert_eq!(view.origin(&(end - 1..end)), text.len() - 1..text.len());
        assert!(unescaped(b"nothing of it").is_none());
    }

    #[test]
    fn base64_leads_back_over_line_ends() {
        // The Base64 of "(a secret)", split over lines.
        let text = b"x: KGEgc\r\n  2Vjc\nmV0KQ==";
        let mut found = Vec::new();
        base64(text, &mut |view| {
            let at = view.bytes.windows(6).position(|part| part == b"secret");
            found.extend(at.map(|at| view.origin(&(at..at + 6))));
        });
        assert_eq!(found.len(), 1);
        assert_eq!(&text[found[0].clone()], b"c\r\n  2Vjc\nmV0");
    }
}
