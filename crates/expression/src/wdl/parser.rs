//! Parses one expression and returns where it ends, so that `@{…}` inside text needs no second scan. Nothing is
//! evaluated.

use super::ast::{AstSpan, Expr, Node, RefusedCall, Step};
use super::functions;
use crate::{ParseError, Value};
use windlass_value::did_you_mean;

/// Maximum length in characters, as in Logic Apps.
pub(crate) const MAX_CHARS: usize = 8192;
/// Maximum nesting of calls and members; the parser and the evaluator recurse as deep.
pub(crate) const MAX_NESTING: usize = 100;

pub(crate) fn starts_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_' || letter == '$'
}

pub(crate) fn in_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

/// Parses the expression that begins at byte `start` of `text`; returns it and its end. With `is_loom`, an `@` is
/// allowed inside, and a call that the function does not accept is an error. In a Logic Apps definition such a call
/// fails only when it is evaluated.
pub(crate) fn parse_at(
    text: &str,
    start: usize,
    is_loom: bool,
) -> Result<(Expr, usize), ParseError> {
    let mut parser = Parser {
        text,
        at: start,
        is_loom,
        depth: 0,
    };
    let expr = parser.expression()?;
    parser.spaces();
    let length = text.get(start..parser.at).map_or(0, |t| t.chars().count());
    if length > MAX_CHARS {
        return Err(ParseError {
            message: format!("the expression has {length} characters; {MAX_CHARS} are allowed"),
            offset: start,
            length: parser.at - start,
            hint: Some("split it over several actions or variables".into()),
        });
    }
    Ok((expr, parser.at))
}

/// The function that reads an app setting. Its calls are replaced before a text is parsed, except calls with a computed
/// name.
const APP_SETTING: &str = "appsetting";

fn unknown(name: &str) -> String {
    format!("unknown function `{name}`")
}

/// Returns a hint for an unknown function.
fn instead_of(name: &str) -> String {
    functions::other_word(name)
        .map(|name| format!("did you mean `{name}`?"))
        .or_else(|| did_you_mean(name, functions::names()))
        .unwrap_or_else(|| "docs/reference/expressions.md lists the functions".into())
}

/// Returns a hint for an unknown function in a Logic Apps definition.
fn instead_in_definition(name: &str) -> String {
    match did_you_mean(name, [APP_SETTING]) {
        Some(_) if name.eq_ignore_ascii_case(APP_SETTING) => "write @appsetting('NAME')".into(),
        Some(hint) => hint,
        None => instead_of(name),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    is_loom: bool,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn error(&self, offset: usize, length: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            message: message.into(),
            offset: offset.min(self.text.len()),
            length: length.max(1),
            hint: None,
        }
    }

    /// Returns the next character, for a message.
    fn found(&self) -> String {
        match self.peek() {
            Some(letter) => format!("`{letter}`"),
            None => "the end".into(),
        }
    }

    fn expected(&self, what: &str) -> ParseError {
        let length = self.peek().map_or(1, char::len_utf8);
        let message = format!("expected {what}, found {}", self.found());
        self.error(self.at, length, message)
    }

    fn place(&self, from: usize) -> AstSpan {
        let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        AstSpan {
            offset: narrow(from),
            length: narrow(self.at.saturating_sub(from).max(1)),
        }
    }

    fn expression(&mut self) -> Result<Expr, ParseError> {
        self.spaces();
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("the expression nests deeper than {MAX_NESTING} levels");
            return Err(self.error(self.at, 1, message));
        }
        let start = self.at;
        let expr = match self.peek() {
            Some('\'') => self.string()?,
            Some('"') => {
                let mut error = self.error(self.at, 1, "text needs single quotes");
                error.hint = Some("write 'text', and '' for a quote inside".into());
                return Err(error);
            }
            Some(letter) if letter.is_ascii_digit() || matches!(letter, '-' | '+' | '.') => {
                self.number()?
            }
            Some('@') if self.is_loom => {
                self.at += 1;
                self.named()?
            }
            Some('@') => {
                let mut error = self.error(self.at, 1, "`@` is only allowed before the expression");
                error.hint = Some("leave it out here".into());
                return Err(error);
            }
            Some(letter) if starts_name(letter) => self.named()?,
            _ => return Err(self.expected("a function, text, a number, true, false or null")),
        };
        let expr = self.members(expr, start)?;
        self.depth -= 1;
        Ok(expr)
    }

    fn string(&mut self) -> Result<Expr, ParseError> {
        let start = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            let Some(end) = self.rest().find('\'') else {
                let mut error = self.error(start, 1, "this text has no closing `'`");
                error.hint = Some("a quote inside text is written ''".into());
                return Err(error);
            };
            value.push_str(self.rest().get(..end).unwrap_or_default());
            self.at += end + 1;
            if !self.accept('\'') {
                break;
            }
            value.push('\'');
        }
        Ok(self.literal(start, Value::text(value)))
    }

    fn literal(&self, start: usize, value: Value) -> Expr {
        Expr {
            node: Node::Literal(value),
            place: self.place(start),
        }
    }

    fn number(&mut self) -> Result<Expr, ParseError> {
        let start = self.at;
        let rest = self.rest();
        let mut end = 0;
        let mut previous = ' ';
        for letter in rest.chars() {
            let sign = matches!(letter, '-' | '+') && (end == 0 || matches!(previous, 'e' | 'E'));
            if !(sign || letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E')) {
                break;
            }
            previous = letter;
            end += letter.len_utf8();
        }
        self.at += end;
        let digits = rest.get(..end).unwrap_or_default();
        let bad = |parser: &Self, why: &str| {
            Err(parser.error(start, end, format!("`{digits}` is not a number: {why}")))
        };
        let ended = |last: char| last.is_ascii_digit() || last == '.';
        if self.peek().is_some_and(in_name) || !digits.ends_with(ended) {
            return bad(self, "digits, a point and an exponent are allowed");
        }
        if !digits.contains(['.', 'e', 'E']) {
            return match digits.parse::<i64>() {
                Ok(int) => Ok(self.literal(start, Value::Int(int))),
                Err(_) => bad(self, "it does not fit 64 bits"),
            };
        }
        match digits.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(self.literal(start, Value::Float(float))),
            Ok(_) => bad(self, "it is too large"),
            Err(_) => bad(self, "digits, a point and an exponent are allowed"),
        }
    }

    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter| !in_name(letter)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Parses a call, or one of the three literal words.
    fn named(&mut self) -> Result<Expr, ParseError> {
        let start = self.at;
        let name = self.name();
        if name.is_empty() {
            return Err(self.expected("the name of a function"));
        }
        let after_name = self.at;
        self.spaces();
        if self.accept('(') {
            return self.call(start, name);
        }
        self.at = after_name;
        let word = |word: &str| name.eq_ignore_ascii_case(word);
        if word("true") || word("false") {
            return Ok(self.literal(start, Value::Bool(word("true"))));
        }
        if word("null") {
            return Ok(self.literal(start, Value::Null));
        }
        let mut error = self.error(
            start,
            name.len(),
            format!("`{name}` is neither a call nor true, false or null"),
        );
        error.hint = Some(match functions::find(name) {
            Some(function) => format!("a call has parentheses: `{}(…)`", function.name),
            None => {
                format!("a variable is variables('{name}'), text needs single quotes: '{name}'")
            }
        });
        Err(error)
    }

    fn call(&mut self, start: usize, name: &str) -> Result<Expr, ParseError> {
        let function = functions::find(name);
        if function.is_none() && self.is_loom {
            let mut error = self.error(start, name.len(), unknown(name));
            error.hint = Some(instead_of(name));
            return Err(error);
        }
        let mut arguments = Vec::new();
        self.spaces();
        if !self.accept(')') {
            loop {
                arguments.push(self.expression()?);
                self.spaces();
                if self.accept(')') {
                    break;
                }
                if !self.accept(',') {
                    return Err(self.expected("`,` or `)`"));
                }
            }
        }
        let place = self.place(start);
        let why = match function {
            Some(function) => function.arity_error(arguments.len()),
            None if name.eq_ignore_ascii_case(APP_SETTING) => Some(format!(
                "`{APP_SETTING}` needs the name of an app setting as one constant text"
            )),
            None => Some(unknown(name)),
        };
        let node = match (function, why) {
            (Some(function), None) => Node::Call(function, arguments),
            (_, Some(why)) if self.is_loom => {
                return Err(self.error(start, place.length as usize, why));
            }
            // The service reports such a call only when it is evaluated.
            (_, why) => Node::Refused(Box::new(RefusedCall {
                name: name.to_owned(),
                arguments,
                why: why.unwrap_or_default(),
                hint: function.is_none().then(|| instead_in_definition(name)),
            })),
        };
        Ok(Expr { node, place })
    }

    /// Parses any number of `.x`, `?.x`, `[key]` and `?[key]` after a call.
    fn members(&mut self, base: Expr, start: usize) -> Result<Expr, ParseError> {
        let mut steps = Vec::new();
        loop {
            let before = self.at;
            self.spaces();
            let safe = self.accept('?');
            let dot = self.accept('.');
            if !dot && !self.accept('[') {
                if safe {
                    return Err(self.expected("`.` or `[` after `?`"));
                }
                self.at = before;
                break;
            }
            if !matches!(base.node, Node::Call(..) | Node::Refused(_)) {
                let message = "only a function's value has members";
                return Err(self.error(before, self.at - before, message));
            }
            let key = if dot {
                self.dot_key()?
            } else {
                let key = self.expression()?;
                self.spaces();
                if !self.accept(']') {
                    return Err(self.expected("`]`"));
                }
                key
            };
            let place = self.place(start);
            steps.push(Step { key, safe, place });
        }
        if steps.is_empty() {
            return Ok(base);
        }
        Ok(Expr {
            node: Node::Path(Box::new(base), steps),
            place: self.place(start),
        })
    }

    fn dot_key(&mut self) -> Result<Expr, ParseError> {
        self.spaces();
        let start = self.at;
        if !self.peek().is_some_and(starts_name) {
            let mut error = self.expected("the name of a member");
            error.hint = Some("write ['name'] or [0]".into());
            return Err(error);
        }
        let name = self.name();
        Ok(self.literal(start, Value::text(name)))
    }
}
