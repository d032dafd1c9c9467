//! XML: converted to JSON like Newtonsoft's converter (`@` for attributes, `#text`, `?xml`), and queried by XPath 1.0.
//! Depth, entities and visited nodes are limited.

use super::content;
use super::eval::{Ctx, Fail, Outcome};
use super::xml_text::{Doctype, canonical};
use super::xpath;
use crate::{Object, Value};
use std::borrow::Cow;
use std::sync::Arc;
use uppsala::xpath::XPathValue;
use uppsala::{Document, NodeId, NodeKind, Parser, QName, XPathEvaluator};
use windlass_value::escape_markup;

/// Maximum nesting of elements.
pub(super) const MAX_XML_DEPTH: u32 = 100;
/// Maximum number of nodes that one XPath may visit.
const MAX_VISITS: usize = 500_000;
/// Maximum length in bytes of an XPath.
const MAX_PATH: usize = 4096;

fn parse<'t>(ctx: &mut Ctx<'_>, text: &'t str) -> Outcome<Document<'t>> {
    // A node of the tree needs about this many times the bytes of its text.
    ctx.charge_output(text.len().saturating_mul(8))?;
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let parser = Parser::new().with_max_depth(MAX_XML_DEPTH);
    parser
        .parse(trimmed)
        .map_err(|error| Fail::new(format!("this is not well-formed XML: {error}")))
}

fn qualified<'n>(name: &'n QName<'_>) -> Cow<'n, str> {
    name.prefixed_name()
}

/// Converts XML to JSON.
pub(crate) fn to_json(ctx: &mut Ctx<'_>, text: &str) -> Outcome {
    let doc = parse(ctx, text)?;
    let mut map = Object::new();
    if let Some(declaration) = &doc.xml_declaration {
        let mut attributes = Object::new();
        attributes.insert("@version".into(), Value::text(&*declaration.version));
        if let Some(encoding) = &declaration.encoding {
            if !is_readable(encoding) {
                let message = format!("`{encoding}` is not a supported encoding of XML");
                return Err(Fail::new(message));
            }
            attributes.insert("@encoding".into(), Value::text(&**encoding));
        }
        if let Some(standalone) = declaration.standalone {
            let word = if standalone { "yes" } else { "no" };
            attributes.insert("@standalone".into(), Value::text(word));
        }
        map.insert("?xml".into(), Value::object(attributes));
    }
    if let Some(raw) = &doc.doctype {
        let doctype = Doctype::read(raw);
        let members = [
            ("@name", Some(doctype.name)),
            ("@public", doctype.public),
            ("@system", doctype.system),
            ("@internalSubset", Some(doctype.subset)),
        ];
        let members = members.into_iter().filter_map(|(name, text)| {
            let text = text.filter(|text| !text.is_empty())?;
            Some((name, Value::text(text)))
        });
        map.insert("!DOCTYPE".into(), Value::from_pairs(members));
    }
    children_to_json(ctx, &doc, doc.root(), &mut map)?;
    drop_comments(&mut map);
    Ok(Value::object(map))
}

/// Returns true if the service reads documents of this encoding. Here, the text is UTF-8 already.
fn is_readable(encoding: &str) -> bool {
    let encoding = encoding.to_ascii_lowercase();
    let families = [
        "utf-8",
        "utf8",
        "ascii",
        "us-ascii",
        "iso-8859-",
        "windows-125",
        "latin1",
    ];
    families.iter().any(|family| encoding.starts_with(family))
}

/// Converts an element: null for `<a/>`, empty text for `<a></a>`, and text for an element that contains only text.
fn element_to_json(ctx: &mut Ctx<'_>, doc: &Document<'_>, id: NodeId) -> Outcome {
    let mut map = Object::new();
    if let Some(element) = doc.element(id) {
        for (prefix, uri) in &element.namespace_declarations {
            let name = if prefix.is_empty() {
                "@xmlns".to_owned()
            } else {
                format!("@xmlns:{prefix}")
            };
            map.insert(name.into(), Value::text(&**uri));
        }
        for attribute in &element.attributes {
            let name = format!("@{}", qualified(&attribute.name));
            map.insert(name.into(), Value::text(&*attribute.value));
        }
    }
    children_to_json(ctx, doc, id, &mut map)?;
    match (map.len(), map.get("#text")) {
        (0, _) => {
            let closed = doc.node_source(id).is_some_and(|text| text.ends_with("/>"));
            Ok(if closed { Value::Null } else { Value::text("") })
        }
        (1, Some(text)) => Ok(text.clone()),
        _ => {
            drop_comments(&mut map);
            Ok(Value::object(map))
        }
    }
}

fn children_to_json(
    ctx: &mut Ctx<'_>,
    doc: &Document<'_>,
    id: NodeId,
    map: &mut Object,
) -> Outcome<()> {
    for child in doc.children_iter(id) {
        let (name, value): (Arc<str>, Value) = match doc.node_kind(child) {
            Some(NodeKind::Element(element)) => {
                let name = Arc::from(qualified(&element.name).as_ref());
                (name, element_to_json(ctx, doc, child)?)
            }
            Some(NodeKind::Text(text)) if !text.trim().is_empty() => {
                ("#text".into(), Value::text(&**text))
            }
            Some(NodeKind::CData(text)) => ("#cdata-section".into(), Value::text(&**text)),
            Some(NodeKind::Comment(_)) => (COMMENT.into(), Value::Null),
            _ => continue,
        };
        ctx.charge_elements(1)?;
        gather(map, name, value);
    }
    Ok(())
}

const COMMENT: &str = "#comment";

/// Removes comments as the service does: a single comment is removed, and several become an empty list.
fn drop_comments(map: &mut Object) {
    match map.get_mut(COMMENT) {
        Some(Value::Null) => {
            map.shift_remove(COMMENT);
        }
        Some(several) => *several = Value::array(Vec::new()),
        None => {}
    }
}

/// Adds a child. Children of the same name become an array.
fn gather(map: &mut Object, name: Arc<str>, value: Value) {
    let repeated = map.contains_key(&name);
    let slot = map.entry(name).or_default();
    if !repeated {
        *slot = value;
        return;
    }
    // The value of one element is never an array, so an array in the slot has repeated children.
    if let Value::Array(items) = slot {
        Arc::make_mut(items).push(value);
    } else {
        let first = std::mem::take(slot);
        *slot = Value::array(vec![first, value]);
    }
}

/// Evaluates an XPath. Nodes are returned as an array (elements as XML, text and attributes as text); any other result
/// is a single value.
pub(crate) fn select(ctx: &mut Ctx<'_>, text: &str, path: &str) -> Outcome {
    if path.len() > MAX_PATH {
        let message = format!("the XPath has {} bytes; {MAX_PATH} are allowed", path.len());
        return Err(Fail::argument(1, message));
    }
    let mut doc = parse(ctx, text).map_err(|fail| fail.blame(0))?;
    doc.prepare_xpath();
    let evaluator = XPathEvaluator::new().with_max_node_visits(MAX_VISITS);
    let evaluate = |node: NodeId, path: &str| {
        let written = xpath::with_comparisons(path);
        let found = evaluator.evaluate(&doc, node, written.as_deref().unwrap_or(path));
        found.map_err(|error| Fail::argument(1, format!("`xpath`: {error}")))
    };
    let found = match xpath::rewrite_path(path) {
        Some(placed) => {
            let nodes = evaluate(doc.root(), placed.nodes)?;
            let nodes = nodes.as_node_set();
            let node = match placed.place {
                Some(place) => nodes.get(place - 1),
                None => nodes.last(),
            };
            // The root has no parent, so this path selects no node.
            let here = if node.is_some() { "." } else { "/.." };
            let path = format!("{}{here}{}", placed.around.0, placed.around.1);
            evaluate(node.copied().unwrap_or(doc.root()), &path)?
        }
        None => evaluate(doc.root(), path)?,
    };
    match found {
        XPathValue::Boolean(flag) => Ok(Value::Bool(flag)),
        XPathValue::Number(number) => Ok(Value::Float(number)),
        XPathValue::String(text) => ctx.text(text),
        XPathValue::NodeSet(nodes) => {
            ctx.charge_elements(nodes.len())?;
            let mut values = Vec::new();
            for node in nodes {
                values.push(node_value(ctx, &doc, node)?);
            }
            Ok(Value::array(values))
        }
    }
}

fn node_value(ctx: &mut Ctx<'_>, doc: &Document<'_>, node: NodeId) -> Outcome {
    match doc.node_kind(node) {
        Some(NodeKind::Element(_)) => {
            // As the root of its own document, the element declares the namespaces that it needs.
            let mut alone = Document::new();
            let Some(copy) = alone.import_subtree(doc, node) else {
                return Ok(Value::Null);
            };
            alone.append_child(alone.root(), copy);
            let text = canonical(ctx, &alone.node_to_xml(copy))?;
            ctx.charge_output(text.len().saturating_mul(2))?;
            content::envelope(ctx, content::XML, text.as_bytes())
        }
        Some(NodeKind::Document) => {
            let text = canonical(ctx, &doc.to_xml())?;
            ctx.charge_output(text.len().saturating_mul(2))?;
            content::envelope(ctx, content::XML, text.as_bytes())
        }
        Some(NodeKind::Text(text) | NodeKind::CData(text) | NodeKind::Comment(text)) => {
            ctx.text(&**text)
        }
        Some(NodeKind::Attribute(_, value)) => ctx.text(&**value),
        Some(NodeKind::ProcessingInstruction(instruction)) => {
            ctx.text(instruction.data.as_deref().unwrap_or_default())
        }
        None => Ok(Value::Null),
    }
}

/// Replaces `& < > " '` with entities.
pub(crate) fn encode_value(text: &str) -> String {
    escape_markup(text, |out, letter| match letter {
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&apos;"),
        other => out.push(other),
    })
}

/// Replaces named and numeric entities with characters. Text that is not an entity is unchanged.
pub(crate) fn decode_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        // A name is short, so a text of many `&` is not searched to its end for each `&`.
        let end = after.bytes().take(9).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((after.get(..end)?, after.get(end + 1..)?)));
        let letter = entity.and_then(|(name, _)| match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)
            }
        });
        match (letter, entity) {
            (Some(letter), Some((_, after))) => {
                out.push(letter);
                rest = after;
            }
            _ => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn starts_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_' || letter == ':'
}

/// Returns a valid XML name. Other characters become `_xHHHH_`, as does the `_` of a text that already looks like such
/// an escape.
pub(crate) fn encode_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut units = [0_u16; 2];
    for (at, letter) in name.char_indices() {
        let fits = if at == 0 {
            starts_name(letter)
        } else {
            starts_name(letter) || letter.is_numeric() || matches!(letter, '-' | '.' | '\u{b7}')
        };
        let rest = name.get(at..).unwrap_or_default();
        let escape_like = letter == '_' && escape(rest).is_some();
        if fits && !escape_like {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut units) {
                out.push_str(&format!("_x{unit:04X}_"));
            }
        }
    }
    out
}

/// Returns the UTF-16 unit of an `_xHHHH_` at the beginning of a text.
fn escape(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("_x")?.get(..4)?;
    let closed = text.get(6..)?.starts_with('_');
    let plain = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    (closed && plain).then(|| u16::from_str_radix(hex, 16).ok())?
}

/// Reverses [`encode_name`].
pub(crate) fn decode_name(name: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(name.len());
    let mut buffer = [0_u16; 2];
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        if let Some(unit) = escape(rest) {
            units.push(unit);
            rest = rest.get(7..).unwrap_or_default();
        } else {
            units.extend_from_slice(letter.encode_utf16(&mut buffer));
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, encoded) in [
            ("Order Detail", "Order_x0020_Detail"),
            ("1st", "_x0031_st"),
            ("a_x0020_b", "a_x005F_x0020_b"),
            ("ns:tag-1.x", "ns:tag-1.x"),
            ("😀", "_xD83D__xDE00_"),
            ("plain", "plain"),
        ] {
            assert_eq!(encode_name(name), encoded);
            assert_eq!(decode_name(encoded), name);
        }
    }

    #[test]
    fn values() {
        assert_eq!(
            encode_value("<a b='c' d=\"&\">"),
            "&lt;a b=&apos;c&apos; d=&quot;&amp;&quot;&gt;"
        );
        assert_eq!(
            decode_value("&lt;&#65;&#x42;&apos;&gt; &nbsp; & &unknown"),
            "<AB'> &nbsp; & &unknown"
        );
    }
}
