//! Limits the nesting and the chains of operators in a template, before it is parsed.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};

/// Maximum number of operators that may be chained or nested in one expression.
const MAX_CHAIN: usize = 300;
/// Maximum number of `elif`s of a template.
const MAX_BRANCHES: usize = 100;
pub(super) const TOO_COMPLEX: &str = "the template is too complex";

/// What the parser of minijinja reports if brackets or blocks nest too deep. Each level counts twice for its limit of
/// 150.
const PARSER_LIMIT: &str = "template exceeds maximum recursion limits";

/// Returns the message for an error of the parser about a limit.
pub(super) fn parser_limit(error: &Error) -> Option<String> {
    (error.detail()? == PARSER_LIMIT)
        .then(|| String::from("brackets, lists and blocks nest deeper than about 70 levels"))
}

/// Returns how to split an expression that exceeds a limit.
pub(super) fn hint(error: &Error) -> Option<String> {
    let detail = error.detail()?;
    let is_limit =
        detail == PARSER_LIMIT || detail == TOO_COMPLEX || detail.contains(" has more than ");
    is_limit.then(|| {
        String::from("join a list (`[a, b, c] | join(',')`), or name parts with `{% set x = … %}`")
    })
}

/// Checks the complexity of a template, before the parser runs.
/// The parser, the compiler and the destruction of a tree recurse as deep as operators are chained, and the parser
/// does not limit all of these. So this function counts the operators since the last comma in every open bracket.
pub(super) fn check(source: &str, in_expression: bool, syntax: SyntaxConfig) -> Result<(), Error> {
    let mut open: Vec<usize> = vec![0];
    let mut total = 0;
    let mut branches = 0;
    for token in tokenize(source, in_expression, syntax) {
        let operators = match token?.0 {
            Token::TemplateData(_)
            | Token::VariableStart
            | Token::VariableEnd
            | Token::BlockStart
            | Token::BlockEnd => {
                open = vec![0];
                total = 0;
                continue;
            }
            Token::Comma => {
                if let Some(top) = open.last_mut() {
                    total -= std::mem::take(top);
                }
                continue;
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                if open.len() > 1 {
                    total -= open.pop().unwrap_or(0);
                }
                continue;
            }
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                open.push(0);
                1
            }
            Token::Ident("and" | "or" | "not" | "is" | "in" | "if" | "else") => 1,
            Token::Ident("elif") => {
                branches += 1;
                0
            }
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_) => 0,
            _ => 1,
        };
        if let Some(top) = open.last_mut() {
            *top += operators;
            total += operators;
        }
        let message = if total > MAX_CHAIN {
            format!("an expression has more than {MAX_CHAIN} operators, dots and brackets")
        } else if branches > MAX_BRANCHES {
            format!("a template has more than {MAX_BRANCHES} branches `elif`")
        } else {
            continue;
        };
        return Err(Error::new(ErrorKind::SyntaxError, message));
    }
    Ok(())
}
