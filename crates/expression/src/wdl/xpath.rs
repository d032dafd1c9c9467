//! Rewrites XPath expressions that the XPath library evaluates wrongly or does not support, so that the results are
//! those of XPath 1.0.
//!
//! By section 3.4, `nodes < 5` is true if one of the nodes is less. The library compares only the first node, and
//! treats `!=` as the opposite of `=`. It compares a single node correctly. So a comparison with a value that is not a
//! node becomes a test of each node: `nodes[. < 5]`. The library does not support a position in a group, `(nodes)[2]`.

/// Maximum nesting; a deeper expression is not rewritten.
const MAX_DEPTH: usize = 32;

/// Operators, from the lowest precedence to the highest.
const LEVELS: [&[&str]; 6] = [
    &["or"],
    &["and"],
    &["!=", "="],
    &["<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "div", "mod"],
];

const NODE_TYPES: [&str; 4] = ["text", "node", "comment", "processing-instruction"];

/// Rewrites the comparisons of an expression. Returns `None` if the expression cannot be parsed; then the library
/// reports the error.
pub(super) fn with_comparisons(path: &str) -> Option<String> {
    let mut reader = Reader {
        rest: path,
        depth: 0,
    };
    let part = reader.expression()?;
    reader.rest.trim_start().is_empty().then_some(part.text)
}

/// The parts of an expression with a position in a group, `(NODES)[2]`, which the library does not support.
#[derive(Debug, PartialEq)]
pub(super) struct RewrittenPath<'t> {
    /// The expression that selects the nodes.
    pub nodes: &'t str,
    /// The position of the node, from 1; `None` is the last one.
    pub place: Option<usize>,
    /// The text before and after the group, in which `.` is the node.
    pub around: (&'t str, &'t str),
}

/// Finds the first group with a position.
pub(super) fn rewrite_path(path: &str) -> Option<RewrittenPath<'_>> {
    let (mut quote, mut inside, mut open) = (None, 0_u32, Vec::new());
    let mut before = ' ';
    for (at, next) in path.char_indices() {
        match (quote, next) {
            (Some(opened), _) if opened == next => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(next),
            // A predicate is evaluated for each node, so a group inside it is skipped.
            (None, '[') => inside += 1,
            (None, ']') => inside = inside.saturating_sub(1),
            (None, '(') => open.push((at, is_of_name(before))),
            (None, ')') => {
                let (from, called) = open.pop()?;
                let behind = path.get(at + 1..)?.trim_start();
                let predicate = behind
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'));
                if let (Some((place, after)), false, 0) = (predicate, called, inside)
                    && let Some(place) = place_of(place.trim())
                {
                    return Some(RewrittenPath {
                        nodes: path.get(from + 1..at)?,
                        place,
                        around: (path.get(..from)?, after),
                    });
                }
            }
            (None, _) => {}
        }
        if !next.is_whitespace() {
            before = next;
        }
    }
    None
}

fn place_of(text: &str) -> Option<Option<usize>> {
    match text {
        "last()" => Some(None),
        number => number.parse().ok().filter(|number| *number > 0).map(Some),
    }
}

/// The kind of an expression's value, as needed for comparisons.
enum Kind {
    /// Nodes, selected by these paths.
    Nodes(Vec<String>),
    /// A text or a number that is equal in every context.
    Constant,
    Other,
}

struct PathPart {
    text: String,
    kind: Kind,
}

impl PathPart {
    fn of_paths(paths: Vec<String>) -> Self {
        Self {
            text: paths.join(" | "),
            kind: Kind::Nodes(paths),
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn expression(&mut self) -> Option<PathPart> {
        self.depth += 1;
        let part = (self.depth <= MAX_DEPTH).then(|| self.binary(&LEVELS))?;
        self.depth -= 1;
        part
    }

    fn binary(&mut self, levels: &[&[&'static str]]) -> Option<PathPart> {
        let Some((operators, tighter)) = levels.split_first() else {
            return self.unary();
        };
        let mut left = self.binary(tighter)?;
        while let Some(operator) = operators.iter().find(|word| self.take_operator(word)) {
            left = combined(left, operator, self.binary(tighter)?);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<PathPart> {
        let mut signs = String::new();
        while self.take("-") {
            signs.push('-');
        }
        let mut part = self.path()?;
        while self.take("|") {
            let next = self.path()?;
            part.text = format!("{} | {}", part.text, next.text);
            if let (Kind::Nodes(paths), Kind::Nodes(further)) = (&mut part.kind, next.kind) {
                paths.extend(further);
            }
        }
        if !signs.is_empty() {
            part.text.insert_str(0, &signs);
            if let Kind::Nodes(_) = part.kind {
                part.kind = Kind::Other;
            }
        }
        Some(part)
    }

    /// Parses a location path, or an expression that may begin one.
    fn path(&mut self) -> Option<PathPart> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next()?;
        let mut part = match first {
            '"' | '\'' => {
                let end = rest.get(1..)?.find(first)? + 2;
                return Some(self.constant(rest, end));
            }
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
                return Some(self.constant(rest, end.unwrap_or(rest.len())));
            }
            '(' => self.group()?,
            _ => match self.function() {
                Some(name) => self.call(name)?,
                None => PathPart::of_paths(vec![self.first_step()?]),
            },
        };
        while let Some(slash) = ["//", "/"].into_iter().find(|slash| self.take(slash)) {
            let step = self.step()?;
            let paths = match part.kind {
                Kind::Nodes(paths) => paths,
                Kind::Constant | Kind::Other => vec![part.text],
            };
            let paths = paths.iter().map(|path| format!("{path}{slash}{step}"));
            part = PathPart::of_paths(paths.collect());
        }
        Some(part)
    }

    fn constant(&mut self, rest: &'t str, end: usize) -> PathPart {
        let (text, rest) = rest.split_at(end);
        self.rest = rest;
        PathPart {
            text: text.to_owned(),
            kind: Kind::Constant,
        }
    }

    fn group(&mut self) -> Option<PathPart> {
        self.take("(").then_some(())?;
        let inner = self.expression()?;
        self.take(")").then_some(())?;
        Some(PathPart {
            text: format!("({})", inner.text),
            kind: inner.kind,
        })
    }

    /// Returns the name of the function that is called at this position.
    fn function(&self) -> Option<&'t str> {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|c| !is_of_name(c) && c != ':')
            .unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let called = behind.trim_start().starts_with('(');
        (called && !name.is_empty() && !name.contains("::") && !NODE_TYPES.contains(&name))
            .then_some(name)
    }

    fn call(&mut self, name: &'t str) -> Option<PathPart> {
        self.take(name).then_some(())?;
        self.take("(").then_some(())?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            (arguments.is_empty() || self.take(",")).then_some(())?;
            arguments.push(self.expression()?.text);
        }
        Some(PathPart {
            text: format!("{name}({})", arguments.join(", ")),
            kind: Kind::Other,
        })
    }

    fn first_step(&mut self) -> Option<String> {
        if self.take("//") {
            return Some(format!("//{}", self.step()?));
        }
        if !self.take("/") {
            return self.step();
        }
        let next = self.rest.trim_start().chars().next();
        match next.is_some_and(|c| is_of_name(c) || "@*".contains(c)) {
            true => Some(format!("/{}", self.step()?)),
            false => Some(String::from("/")),
        }
    }

    fn step(&mut self) -> Option<String> {
        let mut text = String::new();
        let dots = ["..", "."].into_iter().find(|dots| self.take(dots));
        match dots {
            Some(dots) => text.push_str(dots),
            None => self.node_test(&mut text)?,
        }
        self.predicates(&mut text)?;
        Some(text)
    }

    /// Parses a node test such as `@name`, `axis::name`, `prefix:*`, `text()`.
    fn node_test(&mut self, text: &mut String) -> Option<()> {
        if self.take("@") {
            text.push('@');
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c| !is_of_name(c) && c != ':');
        let (mut test, mut rest) = rest.split_at(end.unwrap_or(rest.len()));
        text.push_str(test);
        if (test.is_empty() || test.ends_with(':')) && rest.starts_with('*') {
            (test, rest) = rest.split_at(1);
            text.push_str(test);
        }
        self.rest = rest;
        if self.take("(") {
            text.push('(');
            if !self.take(")") {
                text.push_str(&self.expression()?.text);
                self.take(")").then_some(())?;
            }
            text.push(')');
        }
        (!test.is_empty()).then_some(())
    }

    fn predicates(&mut self, text: &mut String) -> Option<()> {
        while self.take("[") {
            text.push_str(&format!("[{}]", self.expression()?.text));
            self.take("]").then_some(())?;
        }
        Some(())
    }

    fn take_operator(&mut self, operator: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(operator);
        let word = operator.starts_with(char::is_alphabetic);
        rest.is_some_and(|rest| !word || !rest.starts_with(is_of_name)) && self.take(operator)
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

fn combined(left: PathPart, operator: &str, right: PathPart) -> PathPart {
    let compares = ["!=", "<", "<=", ">", ">="].contains(&operator);
    let (one, other) = (&left.text, &right.text);
    let text = match (left.kind, right.kind) {
        (Kind::Nodes(paths), Kind::Constant) if compares => {
            any(&paths, &format!(". {operator} {other}"))
        }
        (Kind::Constant, Kind::Nodes(paths)) if compares => {
            any(&paths, &format!("{one} {operator} ."))
        }
        // If one side has no node, `!=` is false.
        (Kind::Nodes(_), Kind::Nodes(_)) if operator == "!=" => {
            format!("(boolean({one}) and boolean({other}) and {one} != {other})")
        }
        _ => format!("{one} {operator} {other}"),
    };
    PathPart {
        text,
        kind: Kind::Other,
    }
}

/// Returns an expression that is true if `question` holds for any node of these paths.
fn any(paths: &[String], question: &str) -> String {
    let filtered = paths.iter().map(|path| {
        // Abbreviated steps cannot have a predicate.
        let (before, last) = match path.rsplit_once('/') {
            Some((before, last)) => (format!("{before}/"), last),
            None => (String::new(), path.as_str()),
        };
        match last {
            "." => format!("{before}self::node()[{question}]"),
            ".." => format!("{before}parent::node()[{question}]"),
            _ => format!("{path}[{question}]"),
        }
    });
    format!("boolean({})", filtered.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::{RewrittenPath, rewrite_path, with_comparisons};
    use proptest::prelude::*;
    use uppsala::xpath::XPathValue;
    use uppsala::{Parser, XPathEvaluator};

    const ORDERS: &str = "<r>\
        <o id='1'><state>open</state><p>5</p><p>50</p></o>\
        <o id='2'><p>50</p><p>5</p></o>\
        <o id='3'><state>done</state><a.b-c>7</a.b-c></o>\
        </r>";

    fn evaluated(path: &str) -> Option<XPathValue> {
        let mut doc = Parser::new().parse(ORDERS).unwrap();
        doc.prepare_xpath();
        let found = XPathEvaluator::new().evaluate(&doc, doc.root(), path);
        found.ok()
    }

    /// Returns the ids of the selected nodes, or the value.
    fn given(path: &str) -> String {
        let written = with_comparisons(path).unwrap_or_else(|| panic!("not read: {path}"));
        let mut doc = Parser::new().parse(ORDERS).unwrap();
        doc.prepare_xpath();
        let found = XPathEvaluator::new().evaluate(&doc, doc.root(), &written);
        let found = found.unwrap_or_else(|error| panic!("{path} as {written}: {error}"));
        match found {
            XPathValue::NodeSet(nodes) => {
                let texts = nodes
                    .into_iter()
                    .map(|node| XPathValue::NodeSet(vec![node]));
                let texts: Vec<String> = texts.map(|text| text.to_string_value(&doc)).collect();
                texts.join(" ")
            }
            one => one.to_string_value(&doc),
        }
    }

    #[test]
    fn one_of_several_nodes_makes_a_comparison_true() {
        for (path, value) in [
            ("//o[p > 10]/@id", "1 2"),
            ("//o[10 < p]/@id", "1 2"),
            ("//o[p<=5]/@id", "1 2"),
            ("//o[p > 50]/@id", ""),
            ("//o[p != 5]/@id", "1 2"),
            ("//o[not(p = 5)]/@id", "3"),
            ("//o[state != 'done']/@id", "1"),
            ("//o[not(state != 'done')]/@id", "2 3"),
            ("//o[@id!='1' and p>10]/@id", "2"),
            ("//o[@none != '1']/@id", ""),
            ("//o[(p | @id) < 3]/@id", "1 2"),
            ("//o[p != state]/@id", "1"),
            ("count(//o[child::p >= -5])", "2"),
            ("/r/o/p != 5", "true"),
            ("/r/none > 5", "false"),
            ("'5' != /r/o/p", "true"),
            ("//o/p[. > 10]/../@id", "1 2"),
            ("//p[.. != '']/../@id", "1 2"),
            ("//o[./p/. > 10 or @id > 2]/@id", "1 2 3"),
        ] {
            assert_eq!(given(path), value, "{path}");
        }
    }

    #[test]
    fn a_place_in_a_group_is_found() {
        for (path, nodes, place, around) in [
            ("(//o/p)[2]", "//o/p", Some(2), ("", "")),
            (
                "string( (//o)[last()]/@id )",
                "//o",
                None,
                ("string( ", "/@id )"),
            ),
            (
                "concat(')', (/r/o | /r/x) [1])",
                "/r/o | /r/x",
                Some(1),
                ("concat(')', ", ")"),
            ),
        ] {
            let found = RewrittenPath {
                nodes,
                place,
                around,
            };
            assert_eq!(rewrite_path(path), Some(found), "{path}");
        }
        for path in [
            "//o[(p)[1] = 5]",
            "(//o)",
            "(//o)[0]",
            "(//o)[p]",
            "f(1)[1]",
            ")(",
            "'('",
        ] {
            assert_eq!(rewrite_path(path), None, "{path}");
        }
        assert_eq!(given("(//o | //x)/p"), given("//o/p"));
    }

    #[test]
    fn all_else_stays_as_it_was() {
        for path in [
            "/",
            "//o[2]/@id",
            "//o[last()]/@id",
            "//o[position() != 2]/@id",
            "//o[position()<=2]/@id",
            "sum(//o/p) * 2 - 1",
            "//o/p*2 > 9",
            "count(//o) div 3",
            "//*[local-name() = 'state' and namespace-uri()=\"\"]",
            "//o/a.b-c/text()",
            "//o/child::node()[self::p or self::state]",
            "string(//o[@id = '3']/preceding-sibling::*[1]/@id)",
            "concat(//o[1]/@id, ' <> ', \"it's\")",
            "not(//o[starts-with(state, 'x')]) or false()",
            "-(//o/p)",
            "1.5 + 2",
            "//comment() | //o[1]/p[. = 5]",
            "../r | ./r",
            "//o[position() = last()]/@id",
        ] {
            let as_it_is = evaluated(path).map(|value| format!("{value:?}"));
            assert!(as_it_is.is_some(), "{path}");
            let written = with_comparisons(path).unwrap_or_else(|| panic!("not read: {path}"));
            let now = evaluated(&written).map(|value| format!("{value:?}"));
            assert_eq!(now, as_it_is, "{path} as {written}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_library() {
        for path in [
            "",
            "//[",
            "a b",
            "$x > 1",
            "a[",
            "f(",
            "'x",
            &"(".repeat(3000),
        ] {
            assert_eq!(with_comparisons(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_trusted(path in r#"([a-c@/.*\[\]()|<>=!'"0-9 :-]|or|div|text\(\)){0,40}"#) {
            let _ = (with_comparisons(&path), rewrite_path(&path));
        }
    }
}
