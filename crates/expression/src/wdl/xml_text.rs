//! Writes XML as the service does: `<a />` for an empty element, no white space between elements, references as
//! characters. Also converts JSON to XML by the rules of Newtonsoft's converter.

use super::eval::{Ctx, Fail, Outcome};
use super::text::push_text;
use super::xml::{MAX_XML_DEPTH, encode_name};
use crate::{MAX_DEPTH, Object, Value};
use uppsala::{PullEvent, PullParser};
use windlass_value::escape_markup;

/// Returns the text of an XML document in the service's form.
pub(super) fn canonical(ctx: &mut Ctx<'_>, text: &str) -> Outcome<String> {
    // The events and the new text together need about this many times the bytes of the source.
    ctx.charge_output(text.len().saturating_mul(8))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut parser = PullParser::new(text).with_max_depth(MAX_XML_DEPTH);
    let mut writer = Writer {
        source: text,
        out: String::with_capacity(text.len()),
        preserves: vec![false],
        closed: None,
    };
    let wrong = |error| Fail::new(format!("this is not well-formed XML: {error}"));
    let mut roots = 0;
    while let Some(event) = parser.next_event().map_err(wrong)? {
        ctx.charge_work(1)?;
        roots += usize::from(matches!(event, PullEvent::StartElement { depth: 0, .. }));
        let before = writer.out.len();
        writer.event(event)?;
        // Entities may expand to more text than the source has.
        ctx.charge_output(writer.out.len().saturating_sub(before))?;
    }
    if roots == 0 {
        return Err(Fail::new("this is not XML: the root element is missing"));
    }
    Ok(writer.out)
}

struct Writer<'t> {
    source: &'t str,
    out: String,
    /// For each open element: whether `xml:space` preserves white space in it.
    preserves: Vec<bool>,
    /// The position of the last `/>`: the end of that element has no tag of its own.
    closed: Option<usize>,
}

impl Writer<'_> {
    fn event(&mut self, event: PullEvent<'_>) -> Outcome<()> {
        match event {
            PullEvent::XmlDeclaration(declaration) => {
                if &*declaration.version != "1.0" {
                    let version = &declaration.version;
                    let message = format!("XML of version {version} is not supported, only 1.0");
                    return Err(Fail::new(message));
                }
                let standalone = declaration.standalone;
                let standalone = standalone.map(|yes| if yes { "yes" } else { "no" });
                let encoding = declaration.encoding.as_deref();
                push_declaration(&mut self.out, &declaration.version, encoding, standalone);
            }
            PullEvent::Doctype(raw) => Doctype::read(&raw).push(&mut self.out),
            PullEvent::StartElement {
                attributes,
                namespace_declarations,
                byte_start,
                byte_end,
                ..
            } => {
                let tag = self.source.get(byte_start..byte_end).unwrap_or_default();
                let (name, written) = names(tag);
                self.out.push('<');
                self.out.push_str(name);
                let mut preserve = self.preserves.last().copied().unwrap_or_default();
                for name in written {
                    let namespace = namespace_declarations.iter().find(|(prefix, _)| {
                        match name.strip_prefix("xmlns") {
                            Some("") => prefix.is_empty(),
                            Some(rest) => rest.strip_prefix(':') == Some(prefix),
                            None => false,
                        }
                    });
                    let attribute = attributes
                        .iter()
                        .find(|attribute| attribute.name.prefixed_name() == name);
                    let value = match (namespace, attribute) {
                        (Some((_, uri)), _) => uri,
                        (None, Some(attribute)) => &attribute.value,
                        (None, None) => continue,
                    };
                    if name == "xml:space" {
                        preserve = value == "preserve";
                    }
                    push_attribute(&mut self.out, name, value);
                }
                if tag.ends_with("/>") {
                    self.out.push_str(" />");
                    self.closed = Some(byte_start);
                } else {
                    self.out.push('>');
                    self.preserves.push(preserve);
                }
            }
            PullEvent::EndElement { byte_start, .. } if self.closed == Some(byte_start) => {
                self.closed = None;
            }
            PullEvent::EndElement { name, .. } => {
                self.preserves.pop();
                self.out.push_str("</");
                self.out.push_str(&name.prefixed_name());
                self.out.push('>');
            }
            PullEvent::Text { content, .. } => {
                let blank = content.trim_matches(['\t', '\n', '\r', ' ']).is_empty();
                if !blank || self.preserves.last() == Some(&true) {
                    push_escaped(&mut self.out, &content);
                }
            }
            PullEvent::CData { content, .. } => push_cdata(&mut self.out, &content),
            PullEvent::Comment { content, .. } => {
                self.out.push_str("<!--");
                self.out.push_str(&content);
                self.out.push_str("-->");
            }
            PullEvent::ProcessingInstruction { pi, .. } => {
                self.out.push_str("<?");
                self.out.push_str(&pi.target);
                if let Some(data) = &pi.data {
                    self.out.push(' ');
                    self.out.push_str(data);
                }
                self.out.push_str("?>");
            }
            PullEvent::StartNamespace { .. } | PullEvent::EndNamespace => {}
        }
        Ok(())
    }
}

/// Returns the names of the element and of its attributes, in the order of a well-formed start tag.
fn names(tag: &str) -> (&str, Vec<&str>) {
    let inner = tag.strip_prefix('<').unwrap_or(tag);
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let end = inner.find(char::is_whitespace).unwrap_or(inner.len());
    let (name, mut rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
    let mut found = Vec::new();
    while let Some((attribute, after)) = rest.split_once('=') {
        found.push(attribute.trim());
        let after = after.trim_start();
        let quote = after.chars().next().unwrap_or('"');
        let value = after.get(quote.len_utf8()..).unwrap_or_default();
        rest = value.split_once(quote).map_or("", |(_, rest)| rest);
    }
    (name, found)
}

/// The parts of a DOCTYPE.
#[derive(Default)]
pub(super) struct Doctype<'t> {
    pub name: &'t str,
    pub public: Option<&'t str>,
    pub system: Option<&'t str>,
    pub subset: &'t str,
}

impl<'t> Doctype<'t> {
    /// Reads a well-formed `<!DOCTYPE …>`.
    pub(super) fn read(raw: &'t str) -> Self {
        let inner = raw.strip_prefix("<!DOCTYPE").unwrap_or(raw).trim_start();
        let inner = inner.strip_suffix('>').unwrap_or(inner);
        let end = inner
            .find(|letter: char| letter.is_whitespace() || letter == '[')
            .unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(end).unwrap_or((inner, ""));
        let rest = rest.trim_start();
        let (public, system, rest) = if let Some(rest) = rest.strip_prefix("PUBLIC") {
            let (public, rest) = quoted(rest);
            let (system, rest) = quoted(rest);
            (Some(public), Some(system), rest)
        } else if let Some(rest) = rest.strip_prefix("SYSTEM") {
            let (system, rest) = quoted(rest);
            (None, Some(system), rest)
        } else {
            (None, None, rest)
        };
        let subset = rest.trim().strip_prefix('[');
        let subset = subset.and_then(|subset| subset.strip_suffix(']'));
        Self {
            name,
            public,
            system,
            subset: subset.unwrap_or_default(),
        }
    }

    fn push(&self, out: &mut String) {
        out.push_str("<!DOCTYPE ");
        out.push_str(self.name);
        match (self.public, self.system.unwrap_or_default()) {
            (Some(public), system) => {
                out.push_str(&format!(" PUBLIC \"{public}\" \"{system}\""));
            }
            (None, system) if self.system.is_some() => {
                out.push_str(&format!(" SYSTEM \"{system}\""));
            }
            (None, _) => {}
        }
        // The service writes the brackets even if the subset is empty.
        out.push_str(&format!("[{}]>", self.subset));
    }
}

/// Returns the next quoted text, and the text after it.
fn quoted(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let quote = text.chars().next().unwrap_or('"');
    let inner = text.get(quote.len_utf8()..).unwrap_or_default();
    inner.split_once(quote).unwrap_or((inner, ""))
}

fn push_declaration(
    out: &mut String,
    version: &str,
    encoding: Option<&str>,
    standalone: Option<&str>,
) {
    out.push_str("<?xml version=\"");
    out.push_str(version);
    for (name, value) in [("encoding", encoding), ("standalone", standalone)] {
        if let Some(value) = value {
            out.push_str(&format!("\" {name}=\"{value}"));
        }
    }
    out.push_str("\"?>");
}

fn push_escaped(out: &mut String, text: &str) {
    out.push_str(&escape_markup(text, String::push));
}

fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    out.push_str(&escape_markup(value, |out, letter| match letter {
        '"' => out.push_str("&quot;"),
        '\n' => out.push_str("&#xA;"),
        '\r' => out.push_str("&#xD;"),
        other => out.push(other),
    }));
    out.push('"');
}

fn push_cdata(out: &mut String, text: &str) {
    out.push_str("<![CDATA[");
    out.push_str(text);
    out.push_str("]]>");
}

/// Converts JSON to XML: an object with one root property, and `?xml` and `!DOCTYPE` before it. `{}` is an empty
/// document.
pub(super) fn from_object(ctx: &mut Ctx<'_>, map: &Object) -> Outcome<String> {
    let mut out = String::new();
    if let Some(declaration) = map.get("?xml") {
        let text = |name: &str| declaration.get(name).and_then(Value::as_str);
        let version = text("@version").unwrap_or("1.0");
        push_declaration(&mut out, version, text("@encoding"), text("@standalone"));
    }
    if let Some(doctype) = map.get("!DOCTYPE") {
        let text = |name: &str| doctype.get(name).and_then(Value::as_str);
        let doctype = Doctype {
            name: text("@name").unwrap_or_default(),
            public: text("@public"),
            system: text("@system"),
            subset: text("@internalSubset").unwrap_or_default(),
        };
        doctype.push(&mut out);
    }
    let mut roots = map
        .iter()
        .filter(|(key, _)| !matches!(&***key, "?xml" | "!DOCTYPE"));
    match (roots.next(), roots.next()) {
        (None, _) => Ok(out),
        (Some((_, Value::Array(_))), None) => Err(Fail::new(
            "`xml`: the one root property must not be an array",
        )),
        (Some((name, value)), None) => {
            let mut converter = Converter {
                out,
                prefixes: Vec::new(),
            };
            converter.element(ctx, name, value, 0)?;
            Ok(converter.out)
        }
        _ => Err(Fail::new(
            "`xml`: the object must have exactly one root property",
        )),
    }
}

struct Converter<'v> {
    out: String,
    /// The prefixes that open elements declare.
    prefixes: Vec<&'v str>,
}

impl<'v> Converter<'v> {
    fn element(
        &mut self,
        ctx: &mut Ctx<'_>,
        name: &str,
        value: &'v Value,
        depth: usize,
    ) -> Outcome<()> {
        if depth > MAX_DEPTH {
            return Err(Fail::new(format!("`xml`: deeper than {MAX_DEPTH} levels")));
        }
        ctx.charge_work(1)?;
        let before = self.out.len();
        match value {
            Value::Array(items) => {
                for item in items.iter() {
                    self.element(ctx, name, item, depth + 1)?;
                }
                Ok(())
            }
            Value::Object(map) => self.object(ctx, name, map, depth),
            Value::Null => {
                let tag = self.name(name);
                self.out.push_str(&format!("<{tag} />"));
                ctx.charge_output(self.out.len() - before)
            }
            scalar => {
                let tag = self.name(name);
                self.out.push_str(&format!("<{tag}>"));
                push_escaped(&mut self.out, &plain(scalar));
                self.out.push_str(&format!("</{tag}>"));
                ctx.charge_output(self.out.len() - before)
            }
        }
    }

    fn object(
        &mut self,
        ctx: &mut Ctx<'_>,
        name: &str,
        map: &'v Object,
        depth: usize,
    ) -> Outcome<()> {
        let before = self.out.len();
        let outer = self.prefixes.len();
        let declared = map.keys().filter_map(|key| key.strip_prefix("@xmlns:"));
        self.prefixes.extend(declared);
        let tag = self.name(name);
        self.out.push('<');
        self.out.push_str(&tag);
        for (key, attribute) in map {
            if let Some(key) = key.strip_prefix('@') {
                let key = self.name(key);
                push_attribute(&mut self.out, &key, &plain(attribute));
            }
        }
        self.out.push('>');
        ctx.charge_output(self.out.len() - before)?;
        let content = self.out.len();
        let mut filled = false;
        for (key, child) in map {
            let pieces = match child {
                Value::Array(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            match &**key {
                key if key.starts_with('@') => {}
                "#text" => {
                    for piece in pieces {
                        let text = plain(piece);
                        ctx.charge_output(text.len())?;
                        push_escaped(&mut self.out, &text);
                        filled = true;
                    }
                }
                "#cdata-section" => {
                    for piece in pieces {
                        let text = plain(piece);
                        ctx.charge_output(text.len())?;
                        if text.contains("]]>") {
                            let message = "`xml`: a CDATA section cannot hold `]]>`";
                            return Err(Fail::new(message));
                        }
                        push_cdata(&mut self.out, &text);
                        filled = true;
                    }
                }
                key => self.element(ctx, key, child, depth + 1)?,
            }
        }
        self.prefixes.truncate(outer);
        if filled || self.out.len() > content {
            self.out.push_str(&format!("</{tag}>"));
        } else {
            self.out.pop();
            self.out.push_str(" />");
        }
        Ok(())
    }

    /// Returns a valid XML name. A prefix that no element declares is omitted.
    fn name(&self, name: &str) -> String {
        let known =
            |prefix: &str| matches!(prefix, "xml" | "xmlns") || self.prefixes.contains(&prefix);
        match name.split_once(':') {
            Some((prefix, local)) if !local.is_empty() && !known(prefix) => encode_name(local),
            _ => encode_name(name),
        }
    }
}

/// Returns the text as XML Schema writes it: `true`, not `True`.
fn plain(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        other => push_text(&mut text, other),
    }
    text
}
