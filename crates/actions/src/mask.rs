//! Finds secrets in results, both plain and in common encodings, and masks them.

use super::encodings::{base64, unescaped};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use regex::Regex;
use std::ops::Range;
use std::sync::Arc;
use windlass_expression::{Object, Secure, Value};
use windlass_model::model::{Fault, Name};

/// The text that replaces a secret in everything that is stored or shown.
pub const MASK: &str = "***";

/// Minimum size in bytes of a secret that is also found inside of Base64. In the Base64 of a shorter secret, too few
/// letters are independent of the bytes around the secret.
const MIN_ENCODED: usize = 6;

/// Maximum number of nested encodings that are searched, such as Base64 in Base64 in JSON.
const LAYERS: u32 = 4;

/// Minimum size in bytes of a secret that is not a usual word. A shorter one, such as `rows`, may be the name of a member
/// that later steps read.
pub(super) const MIN_UNUSUAL: usize = 8;

/// Finds and masks a set of secrets.
#[derive(Debug)]
pub struct Mask {
    long: Patterns,
    /// The patterns of secrets shorter than [`MIN_UNUSUAL`]. They are not found in names of members.
    short: Patterns,
}

#[derive(Debug, Default)]
struct Patterns {
    found: Option<Regex>,
    /// A pattern of the secrets that are long enough to be found in Base64.
    encoded: Option<Regex>,
}

impl Patterns {
    fn of(secrets: &[&str]) -> Self {
        let long = secrets.iter().filter(|secret| secret.len() >= MIN_ENCODED);
        Self {
            encoded: any_of(long.flat_map(|secret| plain_forms(secret)).collect()),
            found: any_of(secrets.iter().flat_map(|secret| forms(secret)).collect()),
        }
    }
}

impl Mask {
    pub fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let secrets = secrets.filter(|secret| !secret.is_empty());
        let (long, short): (Vec<&str>, Vec<&str>) =
            secrets.partition(|one| one.len() >= MIN_UNUSUAL);
        Self {
            long: Patterns::of(&long),
            short: Patterns::of(&short),
        }
    }

    pub fn everything() -> Self {
        Self {
            long: Patterns {
                found: Some(everything()),
                encoded: None,
            },
            short: Patterns::default(),
        }
    }

    pub fn has_secrets(&self) -> bool {
        self.long.found.is_some() || self.short.found.is_some()
    }

    /// Returns true if the value contains a secret.
    pub fn changes(&self, value: &Value) -> bool {
        self.has_secrets() && self.value(value) != *value
    }

    pub fn outcome(&self, outcome: Result<Value, Fault>) -> Result<Value, Fault> {
        match outcome {
            Ok(value) => Ok(self.value(&value)),
            Err(fault) => Err(Fault {
                code: fault
                    .code
                    .map(|code| self.text(&code).map_or(code, Name::from)),
                message: self.text(&fault.message).unwrap_or(fault.message),
                output: fault.output.map(|output| self.value(&output)),
                ..fault
            }),
        }
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).map_or_else(|| value.clone(), Value::text),
            // A number is masked if its digits are a secret.
            Value::Int(_) | Value::Float(_) | Value::Decimal(_) => {
                match self.text(&value.to_json()) {
                    Some(text) if text == MASK => Value::text(MASK),
                    _ => value.clone(),
                }
            }
            Value::Array(items) => {
                Value::array(items.iter().map(|item| self.value(item)).collect())
            }
            Value::Object(members) => {
                let mut masked = Object::with_capacity(members.len());
                for (key, member) in members.iter() {
                    let name = with_mask(key, found_places(key, &[&self.long]));
                    let name = name.map_or_else(|| key.clone(), Into::into);
                    masked.insert(name, self.value(member));
                }
                Value::object(masked)
            }
            Value::Secure(secure) => match &**secure {
                Secure::Open(value) => Value::Secure(Arc::new(Secure::Open(self.value(value)))),
                Secure::Sealed(_) => value.clone(),
            },
            _ => value.clone(),
        }
    }

    pub fn contains_secret(&self, text: &str) -> bool {
        !self.places(text).is_empty()
    }

    fn text(&self, text: &str) -> Option<String> {
        with_mask(text, self.places(text))
    }

    fn places(&self, text: &str) -> Vec<Range<usize>> {
        found_places(text, &[&self.long, &self.short])
    }
}

/// Returns the text with a mask at these positions, and `None` if there are no positions.
fn with_mask(text: &str, places: Vec<Range<usize>>) -> Option<String> {
    if places.is_empty() {
        return None;
    }
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for place in places {
        masked.push_str(text.get(at..place.start).unwrap_or_default());
        masked.push_str(MASK);
        at = place.end;
    }
    masked.push_str(text.get(at..).unwrap_or_default());
    Some(masked)
}

/// Returns the positions of secrets in a text, in order and without overlap.
fn found_places(text: &str, patterns: &[&Patterns]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    for one in patterns {
        if let Some(found) = &one.found {
            one.search(text.as_bytes(), found, LAYERS, &mut |place| all.push(place));
        }
    }
    all.sort_by_key(|place| (place.start, place.end));
    let mut places: Vec<Range<usize>> = Vec::with_capacity(all.len());
    for place in all {
        match places.last_mut() {
            // The ranges overlap: the secret was found in the text and also in a decoded view of it.
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => places.push(place),
        }
    }
    places
}

impl Patterns {
    /// Reports the positions of secrets, including those that are found only in a decoded view of the bytes.
    fn search(
        &self,
        bytes: &[u8],
        secrets: &Regex,
        layers: u32,
        report: &mut dyn FnMut(Range<usize>),
    ) {
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            let matches = secrets.find_iter(chunk.valid());
            matches.for_each(|one| report(at + one.start()..at + one.end()));
            at += chunk.valid().len() + chunk.invalid().len();
        }
        let Some(layers) = layers.checked_sub(1) else {
            return;
        };
        if let Some(view) = unescaped(bytes) {
            let mut report = |place: Range<usize>| report(view.origin(&place));
            self.search(&view.bytes, secrets, layers, &mut report);
        }
        if let Some(secrets) = &self.encoded {
            base64(bytes, &mut |view| {
                let mut report = |place: Range<usize>| report(view.origin(&place));
                self.search(&view.bytes, secrets, layers, &mut report);
            });
        }
    }
}

/// Builds a pattern that finds any of these forms.
fn any_of(mut forms: Vec<String>) -> Option<Regex> {
    // The longest text is first, because a shorter one may be part of it.
    forms.sort_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
    forms.dedup();
    let pattern: Vec<String> = forms.iter().map(|form| pattern(form)).collect();
    let built = (!pattern.is_empty()).then(|| {
        regex::RegexBuilder::new(&pattern.join("|"))
            .size_limit(64 << 20)
            .build()
    });
    // The texts are escaped, so building fails only if the pattern is too large. Then everything is masked.
    built.map(|built| built.unwrap_or_else(|_| everything()))
}

/// A pattern that matches any text as a whole.
#[allow(
    clippy::expect_used,
    reason = "the pattern is fixed and known to compile"
)]
fn everything() -> Regex {
    Regex::new("(?s).+").expect("a fixed pattern")
}

/// Returns a secret as it is, and in lower case as in a host name.
fn plain_forms(secret: &str) -> Vec<String> {
    let lower = (secret.len() >= MIN_ENCODED).then(|| secret.to_lowercase());
    let forms = [Some(secret.to_owned()), lower];
    forms.into_iter().flatten().collect()
}

/// Returns the forms in which a secret may occur: the plain ones, and inside of Base64.
fn forms(secret: &str) -> Vec<String> {
    let mut all = plain_forms(secret);
    if secret.len() >= MIN_ENCODED {
        // If the secret is a part of longer bytes, such as `user:password`, it begins at one of three positions in a
        // group of three bytes, which Base64 encodes together. The letters at both ends depend on the bytes around the
        // secret, so they are not part of the form.
        for shift in 0..3 {
            let mut bytes = vec![0_u8; shift];
            bytes.extend_from_slice(secret.as_bytes());
            for alphabet in [&STANDARD, &URL_SAFE] {
                let encoded = alphabet.encode(&bytes);
                let from = (shift * 8).div_ceil(6);
                let to = bytes.len() * 8 / 6;
                all.extend(encoded.get(from..to).map(str::to_owned));
            }
        }
    }
    all
}

/// Builds a pattern that finds a form of a secret with any of its characters escaped. A fixed list of encodings would
/// not suffice, because different parts of a URL escape different characters.
fn pattern(form: &str) -> String {
    // URL parsers remove line ends, so these are optional in the pattern. They are not optional if a form has only such
    // characters: the pattern would then match every empty text.
    let losable = form.chars().any(|c| !is_lost(c));
    form.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_string()
            } else if losable && is_lost(c) {
                format!("{}?", pattern_of_char(c))
            } else {
                pattern_of_char(c)
            }
        })
        .collect()
}

/// Returns true if URL parsers remove the character.
fn is_lost(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r')
}

/// Returns a pattern that matches a character as it is, escaped in a URL (also several times), in JSON (also several
/// times, or within a URL) and in HTML.
fn pattern_of_char(c: char) -> String {
    /// The backslash with which JSON escapes, as it is or escaped in a URL.
    const BACKSLASH: &str = r"(?:\\|%(?:25)*5C)";
    let mut units = [0; 2];
    let json = c.encode_utf16(&mut units).iter();
    let json: String = json
        .map(|unit| format!("{BACKSLASH}+u{unit:04x}"))
        .collect();
    let mut bytes = [0; 4];
    let bytes = c.encode_utf8(&mut bytes).bytes();
    let url: String = bytes.map(|byte| format!("%(?:25)*{byte:02x}")).collect();
    let html = format!("&#(?:0*{}|x0*{:x});", u32::from(c), u32::from(c));
    let other = match c {
        ' ' => r"\+".to_owned(),
        '"' => format!("{BACKSLASH}+(?:\"|%(?:25)*22)|&quot;"),
        '/' => format!("{BACKSLASH}+(?:/|%(?:25)*2f)"),
        // Parsers read a backslash in a URL's path as a slash.
        '\\' => format!("{BACKSLASH}+|/"),
        '\n' => format!("{BACKSLASH}+n"),
        '\r' => format!("{BACKSLASH}+r"),
        '\t' => format!("{BACKSLASH}+t"),
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '\'' => "&apos;".to_owned(),
        _ => String::new(),
    };
    let mut all = vec![json, url, html];
    all.extend((!other.is_empty()).then_some(other));
    // The character itself is the last alternative: a backslash may begin an escape, which must match first.
    let raw = regex::escape(c.encode_utf8(&mut [0; 4]));
    format!("(?:(?i:{})|{raw})", all.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    fn mask(secret: &str) -> Mask {
        Mask::of([secret].into_iter())
    }

    #[test]
    fn a_secret_is_found_however_it_comes_back() {
        let secret = "s3cr\"et /ü";
        let basic = STANDARD.encode(format!("user:{secret}"));
        let json = serde_json::to_string(secret).unwrap();
        let url = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        for text in [secret, &json, &url, &basic] {
            let masked = mask(secret).text(&format!("<{text}>")).unwrap();
            assert!(masked.contains(MASK), "{text} {masked}");
            assert!(!masked.contains("s3cr"), "{masked}");
        }
        assert_eq!(mask(secret).text("nothing of it"), None);
    }

    #[test]
    fn whatever_a_part_of_a_url_escapes_of_it() {
        let mut url = url::Url::parse("http://a:b@x.y/").unwrap();
        for secret in [
            "pa ss/word",
            "tok\"en/x",
            "a+b c&d=e",
            "p%41ss?#[]@!$'()*,;:",
            "back\\slash\u{7f}|^`{}<>",
            "ünï 😀/\"\\",
            "line\nand\tline",
            "~.-_ /",
        ] {
            let mask = mask(secret);
            url.set_path(&format!("/bot/{secret}/send"));
            url.set_fragment(Some(secret));
            url.set_username(secret).unwrap();
            url.set_password(Some(secret)).unwrap();
            url.set_query(Some(secret));
            let raw = url.to_string();
            url.query_pairs_mut().clear().append_pair("q", secret);
            let form = url.to_string();
            let json = serde_json::to_string(&format!("<{secret}>")).unwrap();
            let twice = serde_json::to_string(&json).unwrap();
            let full = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            let again = utf8_percent_encode(&full, NON_ALPHANUMERIC).to_string();
            let of_json = utf8_percent_encode(&json, NON_ALPHANUMERIC).to_string();
            let ascii = |unit: u16| match char::from_u32(u32::from(unit)) {
                Some(c) if c.is_ascii_alphanumeric() => c.to_string(),
                _ => format!("\\u{unit:04X}"),
            };
            let ascii: String = secret.encode_utf16().map(ascii).collect();
            let mut written = vec![raw, form, json, twice, of_json, again, ascii];
            written.extend([full.to_lowercase(), full]);
            for shift in 0..3 {
                for alphabet in [&STANDARD, &URL_SAFE] {
                    let text = format!("{}{secret}{}", "u".repeat(shift), "v".repeat(shift));
                    let encoded = alphabet.encode(text);
                    written.push(utf8_percent_encode(&encoded, NON_ALPHANUMERIC).to_string());
                    written.push(encoded);
                }
            }
            for text in written {
                let masked = mask.text(&text).unwrap_or_else(|| text.clone());
                let from: String = masked.replace(MASK, "").to_lowercase();
                let letters = |part: &&str| part.len() >= 3 && from.contains(&part.to_lowercase());
                let parts = secret.split(|c: char| !c.is_ascii_alphanumeric());
                let left: Vec<&str> = parts.filter(letters).collect();
                assert!(masked.contains(MASK) && left.is_empty(), "{text}: {masked}");
            }
        }
        assert_eq!(mask("\n").text("nothing of it"), None);
    }

    #[test]
    fn base64_with_line_ends_or_twice_and_escaped_letters_hide_nothing() {
        let secret = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGH";
        let mask = mask(secret);
        let lines = |text: &str, width: usize, end: &str| {
            let letters: Vec<char> = text.chars().collect();
            let lines = letters
                .chunks(width)
                .map(|line| line.iter().collect::<String>());
            lines.collect::<Vec<_>>().join(end)
        };
        let mut hidden = Vec::new();
        for before in ["", "u", "user:", "a longer text before it, and more: "] {
            let plain = format!("{before}{secret}{before}");
            for alphabet in [&STANDARD, &URL_SAFE] {
                let once = alphabet.encode(&plain);
                let twice = alphabet.encode(&once);
                // Folded into lines as by `base64`, `openssl base64` and mail, and as in YAML.
                let folded = lines(&once, 76, "\n");
                hidden.extend([
                    lines(&once, 64, "\n"),
                    lines(&once, 76, "\r\n"),
                    lines(&once, 20, "\n    "),
                    alphabet.encode(&folded),
                    alphabet.encode(&twice),
                    lines(&alphabet.encode(&folded), 64, "\r\n"),
                    serde_json::to_string(&lines(&once, 30, "\n")).unwrap(),
                    utf8_percent_encode(&lines(&twice, 30, "\r\n"), NON_ALPHANUMERIC).to_string(),
                    twice,
                ]);
            }
        }
        let each =
            |written: &dyn Fn(char) -> String| secret.chars().map(written).collect::<String>();
        hidden.extend([
            each(&|c| format!("\\u{:04x}", u32::from(c))),
            each(&|c| format!("\\\\u{:04X}", u32::from(c))),
            each(&|c| format!("\\x{:02x}", u32::from(c))),
            each(&|c| format!("\\u{{{:x}}}", u32::from(c))),
            each(&|c| format!("%{:02x}", u32::from(c))),
            each(&|c| format!("%25{:02X}", u32::from(c))),
            each(&|c| format!("&#{};", u32::from(c))),
            each(&|c| format!("&#x{:X};", u32::from(c))),
            each(&|c| format!("={:02X}", u32::from(c))),
            secret.replacen("live", "l%69v%65", 1),
            secret.replacen("0123", "\\u0030123", 1),
            lines(secret, 20, "=\r\n"),
            STANDARD.encode(each(&|c| format!("\\u{:04x}", u32::from(c)))),
        ]);
        for text in hidden {
            let masked = mask.text(&format!("<{text}>"));
            let masked = masked.unwrap_or_else(|| panic!("not found: {text}"));
            let rest = masked.replace(MASK, "");
            assert!(
                mask.text(&rest).is_none() && masked.starts_with('<'),
                "{masked}"
            );
            assert!(!rest.contains("0123") && !rest.contains("abcd"), "{masked}");
        }
        // Text that only resembles Base64 is unchanged.
        for text in [
            "SGVsbG8gd29ybGQ\nSGVsbG8gd29ybGQ=",
            "100%25 &amp; \\u0041",
            "=41=42",
        ] {
            assert_eq!(mask.text(text), None);
        }
    }

    #[test]
    fn a_large_secret_is_found_too() {
        let secret = "-----BEGIN/ \n".repeat(300);
        let masked = mask(&secret).text(&format!("{secret}{secret} left"));
        assert_eq!(masked.unwrap(), "****** left");
    }

    #[test]
    fn numbers_and_names_of_members_are_masked_too() {
        let value = Value::from_json(r#"{"12345678": [12345678, 123456789, "12345678"]}"#).unwrap();
        let masked = mask("12345678").value(&value);
        assert_eq!(masked.to_json(), r#"{"***":["***",123456789,"***"]}"#);
    }

    #[test]
    fn a_short_secret_is_masked_in_values_and_not_in_names() {
        let value = r#"{"admin": ["admin", "administrator", "k=admin&a=b", "%20admin", 1]}"#;
        let masked = mask("admin").value(&Value::from_json(value).unwrap());
        let expected = r#"{"admin":["***","***istrator","k=***&a=b","%20***",1]}"#;
        assert_eq!(masked.to_json(), expected);
        let basic = STANDARD.encode("user:admin1");
        let masked = mask("admin1").text(&format!("Basic {basic}")).unwrap();
        assert!(!masked.contains(&basic), "{masked}");
    }

    #[test]
    fn the_longer_of_two_secrets_goes_first() {
        let mask = Mask::of(["abc", "abcdef"].into_iter());
        assert_eq!(mask.text("abcdef abc").unwrap(), "*** ***");
    }
}
