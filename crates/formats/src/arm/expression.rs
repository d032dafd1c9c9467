//! Parses deployment expressions of ARM templates, such as `[concat(parameters('a'), 'b')]`, to a tree.
//! [`super::functions`] implements the functions in them.

use windlass_expression::Value;
use windlass_value::first_chars;

/// Maximum depth of an expression.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Literal(Value),
    Call(String, Vec<Expr>),
    /// `base.name` and `base[index]`. With `?` (`safe`), a missing member evaluates to null.
    Member {
        base: Box<Expr>,
        key: Box<Expr>,
        safe: bool,
    },
}

/// Returns the expression in a text of a template. Returns `None` if the text is not an expression.
pub(super) fn inside(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_escaped = text.starts_with("[[");
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    (!is_escaped).then_some(inner)
}

/// Parses an expression without its enclosing `[` and `]`.
/// The error quotes the text at which parsing stopped.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let mut parser = Parser { rest: text };
    let expr = parser.expr(0)?;
    parser.space();
    match parser.rest {
        "" => Ok(expr),
        rest => Err(format!("`{}` was not expected", first_chars(rest, 20))),
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn while_(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn expr(&mut self, depth: usize) -> Result<Expr, String> {
        if depth > MAX_DEPTH {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
        }
        let mut base = self.primary(depth)?;
        loop {
            let (key, safe) = if self.take("[") {
                let safe = self.take("?");
                let key = self.expr(depth + 1)?;
                if !self.take("]") {
                    return Err(format!(
                        "`]` was expected before `{}`",
                        first_chars(self.rest, 20)
                    ));
                }
                (key, safe)
            } else if self.take(".") {
                let safe = self.take("?");
                self.space();
                let name = self.while_(is_word);
                (Expr::Literal(Value::text(name)), safe)
            } else {
                return Ok(base);
            };
            base = Expr::Member {
                base: Box::new(base),
                key: Box::new(key),
                safe,
            };
        }
    }

    fn primary(&mut self, depth: usize) -> Result<Expr, String> {
        self.space();
        match self.rest.chars().next() {
            Some('\'') => self.text().map(Expr::Literal),
            Some(c) if c.is_ascii_digit() || c == '-' => {
                let number = self.while_(|c| c.is_ascii_digit() || matches!(c, '-' | '.'));
                let value =
                    Value::from_json(number).map_err(|_| format!("`{number}` is not a number"))?;
                Ok(Expr::Literal(value))
            }
            Some(c) if is_word(c) => self.call(depth),
            _ => Err(format!(
                "a value was expected before `{}`",
                first_chars(self.rest, 20)
            )),
        }
    }

    /// Parses a text in single quotes. Two single quotes inside the text are one quote.
    fn text(&mut self) -> Result<Value, String> {
        let mut text = String::new();
        let mut rest = self.rest.strip_prefix('\'').unwrap_or_default();
        loop {
            let Some((before, after)) = rest.split_once('\'') else {
                return Err(String::from("unterminated text"));
            };
            text.push_str(before);
            match after.strip_prefix('\'') {
                Some(more) => {
                    text.push('\'');
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Ok(Value::text(text));
                }
            }
        }
    }

    fn call(&mut self, depth: usize) -> Result<Expr, String> {
        let mut name = self.while_(is_word).to_owned();
        // A function that the template declares itself is called as `namespace.name(…)`.
        if let Some(rest) = self.rest.strip_prefix('.')
            && rest
                .trim_start_matches(is_word)
                .trim_start()
                .starts_with('(')
        {
            self.rest = rest;
            name = format!("{name}.{}", self.while_(is_word));
        }
        if !self.take("(") {
            return match name.as_str() {
                "true" => Ok(Expr::Literal(Value::Bool(true))),
                "false" => Ok(Expr::Literal(Value::Bool(false))),
                "null" => Ok(Expr::Literal(Value::Null)),
                _ => Err(format!("`{name}` is called without brackets")),
            };
        }
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(Expr::Call(name, arguments));
        }
        loop {
            arguments.push(self.expr(depth + 1)?);
            if self.take(")") {
                return Ok(Expr::Call(name, arguments));
            }
            if !self.take(",") {
                let rest = first_chars(self.rest, 20);
                return Err(format!("`,` or `)` was expected before `{rest}`"));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::{Expr, inside, parse};

    #[test]
    fn an_expression_is_a_text_in_single_brackets() {
        assert_eq!(inside("[a()]"), Some("a()"));
        assert_eq!(inside("[[a()]"), None);
        assert_eq!(inside("a()"), None);
    }

    #[test]
    fn mistakes_say_where_reading_stopped() {
        for (text, said) in [
            ("concat('a'", "`,` or `)`"),
            ("concat('a", "unterminated text"),
            ("a() b", "`b` was not expected"),
            ("a()[0", "`]` was expected"),
            ("name", "without brackets"),
            ("", "a value was expected"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(parse(&"a(".repeat(5000)).unwrap_err().contains("levels"));
    }

    #[test]
    fn members_and_functions_of_a_template_are_read() {
        for text in [
            "a().b[0].c",
            "ns.f('it''s', -1, true)",
            "a()[?'x'].?y",
            " a ( 1 ,\n 2 ) ",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
        assert!(matches!(parse("ns.f(1)").unwrap(), Expr::Call(name, _) if name == "ns.f"));
    }
}
