//! Rewrites a template before minijinja compiles it.
//! The rewritten text means the same as the author's text. But operations that minijinja implements without limits, or
//! not as Python does, become calls of functions of this crate. Positions in the rewritten text are mapped to positions
//! in the author's text.

mod operations;
mod statements;
mod texts;

use operations::Brackets;

use super::complexity::{TOO_COMPLEX, check};
use super::names::{self, UnknownName, literal_text};
use super::object;
use minijinja::machinery::ast::{self, CallArg, Expr};
use minijinja::machinery::{parse, parse_expr};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind};
use std::fmt::Write;
use std::ops::Range;

/// Maximum length of the rewritten text, as a multiple of the length of the author's text.
const GROWTH: usize = 64;

/// The rewritten text, and what the author's text reads.
#[derive(Debug)]
pub(super) struct RewrittenTemplate {
    pub text: String,
    /// For each expression and statement: its range in the rewritten text, and its range in the author's text.
    position_map: Vec<(Range<usize>, Range<usize>)>,
    /// The text with `.__kN` for each subscript that is a literal but not a name, such as `['a b']`. The engine lists
    /// only members behind a dot. `None` if there is no such subscript.
    pub dotted: Option<String>,
    /// The literals of `dotted`, by their number.
    pub literals: Vec<String>,
    /// The methods that are called on top-level names: the name and the method.
    pub methods: Vec<(String, String)>,
    /// The environment variables that are read. `None` if any variable may be read, because a name is computed.
    pub environment: Option<Vec<String>>,
    /// The environment variables that are read at least once without a default.
    pub without_default: Vec<String>,
}

impl RewrittenTemplate {
    /// Maps a range of the rewritten text to the author's text.
    /// The result is the range of the smallest piece that encloses it.
    pub(super) fn original_range(&self, range: &Range<usize>) -> Option<Range<usize>> {
        self.position_map
            .iter()
            .filter(|(new, old)| {
                new.start <= range.start && new.end >= range.end && old.start < old.end
            })
            .min_by_key(|(new, _)| new.len())
            .map(|(_, old)| old.clone())
    }
}

#[derive(Debug)]
pub(super) enum RewriteError {
    Engine(Error),
    Name(UnknownName),
}

impl From<Error> for RewriteError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

pub(super) fn expression(source: &str) -> Result<RewrittenTemplate, RewriteError> {
    check(source, true, SyntaxConfig::default())?;
    let expr = parse_expr(source)?;
    let mut writer = Writer::new(source);
    writer.expr(&expr);
    writer.finish()
}

pub(super) fn template(
    source: &str,
    syntax: SyntaxConfig,
) -> Result<RewrittenTemplate, RewriteError> {
    check(source, false, syntax.clone())?;
    let stmt = parse(source, super::engine::SOURCE_NAME, syntax)?;
    let mut writer = Writer::new(source);
    names::assigned(&stmt, &mut writer.assigned);
    writer.stmt(&stmt);
    writer.finish()
}

/// How a template reads environment variables.
#[derive(Default)]
struct Environment {
    named: Vec<String>,
    /// The environment variables that are read without a default.
    without_default: Vec<String>,
    /// Number of occurrences of the name `env`.
    seen: usize,
}

impl Environment {
    /// Records the variable that an expression reads, without the reads of its parts. Called before the parts are
    /// visited.
    fn see(&mut self, expr: &Expr<'_>) {
        if matches!(expr, Expr::Var(var) if var.id == names::ENVIRONMENT) {
            self.seen += 1;
        }
        // A method of `env` other than `get`, or `get` with a computed name, may read any variable. Count one more
        // occurrence without a name, so that [`Self::names`] returns `None`.
        if names::is_environment_call(expr) && names::environment(expr).is_none() {
            self.seen += 1;
        }
        // In `env.get('X')`, the part `env.get` is also visited. It is not a read of a variable `get`.
        if let Some(name) = names::environment(expr).filter(|name| *name != "get") {
            self.named.push(name.to_owned());
            if !matches!(expr, Expr::Call(call) if call.args.len() > 1) {
                self.without_default.push(name.to_owned());
            }
        }
    }

    /// Records the read of an environment variable with a default. The parts of this read are not visited.
    fn see_defaulted(&mut self, name: &str) {
        self.seen += 1;
        self.named.push(name.to_owned());
    }

    /// Returns the variables that are read. Returns `None` if an occurrence of `env` does not name a variable: then any
    /// variable may be read.
    fn names(self) -> Option<Vec<String>> {
        (self.named.len() == self.seen).then_some(self.named)
    }
}

/// Returns the name of the member that replaces the literal with this number in [`RewrittenTemplate::dotted`].
pub(super) fn literal_member(number: usize) -> String {
    format!("__k{number}")
}

/// Returns the text of a subscript that is a literal and a name, so that it is also valid behind a dot.
fn literal_name<'e>(subscript: &'e Expr<'_>) -> Option<&'e str> {
    let name = literal_text(subscript)?;
    let mut letters = name.chars();
    let starts_name = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let continues_name = |letter: char| starts_name(letter) || letter.is_ascii_digit();
    (letters.next().is_some_and(starts_name) && letters.all(continues_name)).then_some(name)
}

struct Writer<'s> {
    source: &'s str,
    out: String,
    position_map: Vec<(Range<usize>, Range<usize>)>,
    limit: usize,
    /// Number of enclosing loops and macros.
    depth: usize,
    /// Why the template cannot be rewritten, if it cannot.
    trouble: Option<&'static str>,
    /// Names that the template itself defines.
    assigned: Vec<String>,
    /// The first unknown name.
    unknown: Option<UnknownName>,
    /// The subscripts that are literals but not names: their ranges in `out`, and the literals.
    literals: Vec<(Range<usize>, String)>,
    methods: Vec<(String, String)>,
    environment: Environment,
}

impl<'s> Writer<'s> {
    fn new(source: &'s str) -> Self {
        Self {
            source,
            out: String::with_capacity(source.len() * 2),
            position_map: Vec::new(),
            limit: source.len().saturating_mul(GROWTH).saturating_add(1024),
            depth: 0,
            trouble: None,
            assigned: Vec::new(),
            unknown: None,
            literals: Vec::new(),
            methods: Vec::new(),
            environment: Environment::default(),
        }
    }

    fn finish(self) -> Result<RewrittenTemplate, RewriteError> {
        let long = self.out.len() > self.limit;
        if let Some(message) = self.trouble.or(long.then_some(TOO_COMPLEX)) {
            return Err(Error::new(ErrorKind::SyntaxError, message).into());
        }
        if let Some(unknown) = self.unknown {
            return Err(RewriteError::Name(unknown));
        }
        let dotted = (!self.literals.is_empty()).then(|| self.dotted());
        Ok(RewrittenTemplate {
            dotted,
            literals: self.literals.into_iter().map(|(_, name)| name).collect(),
            methods: self.methods,
            text: self.out,
            position_map: self.position_map,
            without_default: self.environment.without_default.clone(),
            // If a template assigns a value to `env`, `env` may mean that value or the environment. So any variable
            // may be read.
            environment: match self.assigned.iter().any(|name| name == names::ENVIRONMENT) {
                true => None,
                false => self.environment.names(),
            },
        })
    }

    fn dotted(&self) -> String {
        let (mut text, mut end) = (String::with_capacity(self.out.len()), 0);
        for (number, (range, _)) in self.literals.iter().enumerate() {
            text.push_str(self.out.get(end..range.start).unwrap_or_default());
            let _ = write!(text, ".{}", literal_member(number));
            end = range.end;
        }
        text.push_str(self.out.get(end..).unwrap_or_default());
        text
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn exprs(&mut self, exprs: &[Expr<'_>]) {
        for (index, expr) in exprs.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        self.write(expr, Brackets::Own);
    }

    /// Writes an expression. Brackets are left out where possible, because the parser of minijinja limits their
    /// nesting, but not the length of a chain.
    fn write(&mut self, expr: &Expr<'_>, brackets: Brackets) {
        // A chained comparison writes operands twice. So the text could grow without a limit.
        if self.out.len() > self.limit {
            self.trouble = Some(TOO_COMPLEX);
            return;
        }
        if self.unknown.is_none() {
            self.unknown = names::check(expr, &self.assigned);
        }
        self.environment.see(expr);
        let start = self.out.len();
        match expr {
            Expr::Var(var) => self.push(var.id),
            Expr::Const(constant) => match self.python_text(expr) {
                Some(text) => self.string(&text),
                None => self.constant(&constant.value),
            },
            Expr::Slice(slice) => {
                self.open(brackets);
                self.filtered(&slice.expr);
                self.push("|__slice");
                for (part, before) in [&slice.start, &slice.stop, &slice.step]
                    .into_iter()
                    .zip(["(", ", ", ", "])
                {
                    self.push(before);
                    match part {
                        Some(part) => self.expr(part),
                        None => self.push("none"),
                    }
                }
                self.push(")");
                self.close(brackets);
            }
            Expr::UnaryOp(unary) => {
                self.push(match unary.op {
                    ast::UnaryOpKind::Not => "(not ",
                    ast::UnaryOpKind::Neg => "(-",
                });
                self.wrapped(&unary.expr);
                self.push(")");
            }
            Expr::BinOp(binary) => {
                self.operation(binary.op, &binary.left, &binary.right, brackets);
            }
            Expr::Compare(compare) => self.compare(compare),
            Expr::IfExpr(choice) => {
                self.open(brackets);
                self.wrapped(&choice.true_expr);
                self.push(" if ");
                self.wrapped(&choice.test_expr);
                if let Some(otherwise) = &choice.false_expr {
                    self.push(" else ");
                    match otherwise {
                        Expr::IfExpr(_) => self.write(otherwise, Brackets::None),
                        _ => self.wrapped(otherwise),
                    }
                }
                self.close(brackets);
            }
            Expr::Filter(filter) => {
                if !self.defaulted(filter) {
                    if let Some(inner) = &filter.expr {
                        self.filtered(inner);
                        self.push("|__count|");
                    }
                    self.push(filter.name);
                    self.arguments(&filter.args);
                }
            }
            Expr::Test(test) => {
                self.push("(");
                self.wrapped(&test.expr);
                self.push(" is ");
                self.push(test.name);
                if !test.args.is_empty() {
                    self.arguments(&test.args);
                }
                self.push(")");
            }
            Expr::GetAttr(attribute) => {
                self.wrapped(&attribute.expr);
                self.push(".");
                self.push(attribute.name);
            }
            Expr::GetItem(item) => {
                self.wrapped(&item.expr);
                match literal_name(&item.subscript_expr) {
                    // minijinja reports only members behind a dot as names that a template reads.
                    Some(name) => {
                        self.push(".");
                        self.push(name);
                    }
                    None => {
                        let start = self.out.len();
                        self.push("[");
                        self.expr(&item.subscript_expr);
                        self.push("]");
                        if let Some(literal) = literal_text(&item.subscript_expr) {
                            let literal = literal.to_owned();
                            self.literals.push((start..self.out.len(), literal));
                        }
                    }
                }
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                self.push("[");
                self.exprs(&list.items);
                self.push("]");
            }
            Expr::Tuple(tuple) => {
                self.push("(");
                self.exprs(&tuple.items);
                self.push(if tuple.items.len() == 1 { ",)" } else { ")" });
            }
            Expr::Map(map) => {
                self.push("{");
                for (index, (key, value)) in map.keys.iter().zip(&map.values).enumerate() {
                    if index > 0 {
                        self.push(", ");
                    }
                    self.expr(key);
                    self.push(": ");
                    self.expr(value);
                }
                self.push("}");
            }
        }
        let span = expr.span();
        let old = span.start_offset as usize..span.end_offset as usize;
        self.position_map.push((start..self.out.len(), old));
    }

    /// Writes an expression, in brackets if the text around it could change how it is parsed.
    fn wrapped(&mut self, expr: &Expr<'_>) {
        let whole = match expr {
            Expr::Var(_)
            | Expr::GetAttr(_)
            | Expr::GetItem(_)
            | Expr::Call(_)
            | Expr::List(_)
            // These write brackets themselves.
            | Expr::UnaryOp(_)
            | Expr::BinOp(_)
            | Expr::Compare(_)
            | Expr::IfExpr(_)
            | Expr::Test(_)
            | Expr::Slice(_)
            | Expr::Tuple(_) => true,
            Expr::Const(constant) => constant.value.kind() != ValueKind::Number,
            Expr::Filter(_) | Expr::Map(_) => false,
        };
        if !whole {
            self.push("(");
        }
        self.expr(expr);
        if !whole {
            self.push(")");
        }
    }

    /// Writes `env.X | default(…)` as a call of a method. Returns false for any other filter.
    /// The filter itself replaces only undefined values, but a variable that is not set is None here. And a variable
    /// that is set is only a mark (placeholder): its value is known when an action runs, so the mark must have the
    /// default.
    fn defaulted(&mut self, filter: &ast::Filter<'_>) -> bool {
        let own = !self.assigned.iter().any(|name| name == names::ENVIRONMENT);
        let Some((name, arguments)) = names::defaulted(filter).filter(|_| own) else {
            return false;
        };
        self.environment.see_defaulted(name);
        self.push(names::ENVIRONMENT);
        self.push(".");
        self.push(object::DEFAULT_METHOD);
        self.push("(");
        self.string(name);
        for argument in arguments {
            if let CallArg::Pos(value) | CallArg::Kwarg(_, value) = argument {
                self.push(", ");
                self.expr(value);
            }
        }
        self.push(")");
        true
    }

    fn call(&mut self, call: &ast::Call<'_>) {
        let method = match &call.expr {
            Expr::GetAttr(attribute) => Some((&attribute.expr, attribute.name)),
            Expr::GetItem(item) => {
                literal_text(&item.subscript_expr).map(|name| (&item.expr, name))
            }
            _ => None,
        };
        if let Some((Expr::Var(root), name)) = method {
            self.methods.push((root.id.to_owned(), name.to_owned()));
        }
        self.wrapped(&call.expr);
        self.arguments(&call.args);
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        self.push("(");
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            match argument {
                CallArg::Pos(value) => self.expr(value),
                CallArg::Kwarg(name, value) => {
                    self.push(name);
                    self.push("=");
                    self.expr(value);
                }
                CallArg::PosSplat(value) => {
                    self.push("*");
                    self.wrapped(value);
                }
                CallArg::KwargSplat(value) => {
                    self.push("**");
                    self.wrapped(value);
                }
            }
        }
        self.push(")");
    }
}
