//! Reads the `Link` headers of a response (RFC 8288), which many APIs use for paging, as a map from relation to URL. It
//! never follows a link.

use super::text::header_text;
use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};
use windlass_expression::{Object, Value};

/// Returns each relation with its absolute URL. If several links have the same relation, the first one is used.
pub(super) fn parse(headers: &HeaderMap, base: &Url) -> Object {
    let mut links = Object::new();
    for value in headers.get_all(LINK) {
        for (target, relations) in parse_value(&header_text(value)) {
            let url = base.join(&target).map_or(target, String::from);
            for relation in relations {
                links
                    .entry(relation.into())
                    .or_insert_with(|| Value::text(url.as_str()));
            }
        }
    }
    links
}

/// Parses the links of one header: targets and their relations.
fn parse_value(text: &str) -> Vec<(String, Vec<String>)> {
    split(text, ',')
        .into_iter()
        .filter_map(|link| {
            let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            let relations = split(parameters, ';').into_iter().find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                let is_relation = name.trim().eq_ignore_ascii_case("rel");
                is_relation.then(|| value.trim().trim_matches(['"', '\'']))
            })?;
            // Relations are compared without regard to case (RFC 8288, 2.1.1), so convert them to lower case.
            let relations = relations.split_whitespace();
            let relations = relations.map(str::to_ascii_lowercase).collect();
            Some((target.trim().to_owned(), relations))
        })
        .collect()
}

/// Splits a header at separators that are neither within `<…>` (a URL) nor within quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut in_url, mut in_quotes, mut escaped) = (false, false, false);
    text.split(|c: char| {
        let was_escaped = std::mem::take(&mut escaped);
        match c {
            '\\' if in_quotes => escaped = !was_escaped,
            '"' if !in_url && !was_escaped => in_quotes = !in_quotes,
            '<' if !in_quotes => in_url = true,
            '>' if !in_quotes => in_url = false,
            _ => {}
        }
        c == separator && !in_url && !in_quotes
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::parse;
    use reqwest::Url;
    use reqwest::header::{HeaderMap, HeaderValue, LINK};

    fn links(values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(LINK, HeaderValue::from_str(value).unwrap());
        }
        let base = Url::parse("https://api.test/v1/items?page=2").unwrap();
        windlass_expression::Value::object(parse(&headers, &base)).to_json()
    }

    #[test]
    fn relations_get_their_urls() {
        assert_eq!(
            links(&[r#"<https://api.test/items?page=3>; rel="next", </items?a=1,2;3>; rel=last"#]),
            r#"{"next":"https://api.test/items?page=3","last":"https://api.test/items?a=1,2;3"}"#
        );
    }

    #[test]
    fn quotes_hide_separators_and_hold_several_relations() {
        assert_eq!(
            links(&[
                r#"<?page=1>; title="a, \"b\"; c"; REL="First prev"; rel=ignored"#,
                "<x>;rel=first"
            ]),
            r#"{"first":"https://api.test/v1/items?page=1","prev":"https://api.test/v1/items?page=1"}"#
        );
    }

    /// Single quotes are no quotes in RFC 8288, but some servers write them.
    #[test]
    fn a_relation_may_have_single_quotes() {
        assert_eq!(
            links(&["<?page=3>; rel='next'"]),
            r#"{"next":"https://api.test/v1/items?page=3"}"#
        );
    }

    #[test]
    fn what_is_no_link_is_left_out() {
        assert_eq!(links(&["nonsense", "<x", "<x>", "", "<x>; rel"]), "{}");
    }
}
