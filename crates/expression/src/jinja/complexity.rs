//! Limits the nesting and the chains of operators in a template, before it is parsed.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};

/// Maximum number of operators that may be chained or nested in one expression.
const MAX_CHAIN: usize = 300;
/// Maximum number of `elif`s of a template.
const MAX_BRANCHES: usize = 100;
pub(super) const TOO_COMPLEX: &str = "the template is too complex";

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
        if total > MAX_CHAIN || branches > MAX_BRANCHES {
            return Err(Error::new(ErrorKind::SyntaxError, TOO_COMPLEX));
        }
    }
    Ok(())
}
