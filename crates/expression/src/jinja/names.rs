//! Checks the names of filters, tests and functions, in contrast to the names of data.
//! So a misspelt name is found when the file is loaded.

use super::engine::ENGINE;
use super::foreign::{function_hint, test_hint};
pub(super) use super::free_variables::{ENVIRONMENT, GLOBALS};
use super::reference::names_of;
use crate::JinjaKind;
use minijinja::ErrorKind;
use minijinja::machinery::ast::{CallArg, Expr, Filter, Stmt};
use std::ops::Range;
use windlass_value::did_you_mean;

/// Returns the text of an expression that is a literal.
pub(super) fn literal_text<'e>(expr: &'e Expr<'_>) -> Option<&'e str> {
    match expr {
        Expr::Const(constant) => constant.value.as_str(),
        _ => None,
    }
}

/// Returns the environment variable that an expression reads, if the text contains its name.
/// The expression is `env.X`, `env['X']` or `env.get('X')`.
pub(super) fn environment<'e>(expr: &'e Expr<'_>) -> Option<&'e str> {
    match expr {
        Expr::GetAttr(attribute) if is_environment(&attribute.expr) => Some(attribute.name),
        Expr::GetItem(item) if is_environment(&item.expr) => literal_text(&item.subscript_expr),
        Expr::Call(call) => match (&call.expr, call.args.first()) {
            (Expr::GetAttr(method), Some(CallArg::Pos(name)))
                if is_environment(&method.expr) && method.name == "get" =>
            {
                literal_text(name)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the environment variable that `env.X | default(…)` reads, and the arguments of the filter.
pub(super) fn defaulted<'e, 's>(filter: &'e Filter<'s>) -> Option<(&'e str, &'e [CallArg<'s>])> {
    let inner = filter.expr.as_ref()?;
    let plain = match inner {
        Expr::Call(call) => call.args.len() == 1,
        _ => true,
    };
    let name = environment(inner).filter(|_| plain)?;
    let known = matches!(filter.name, "default" | "d");
    let given = (1..=2).contains(&filter.args.len());
    let placed = filter.args.iter().all(|arg| match arg {
        CallArg::Pos(_) => true,
        CallArg::Kwarg(name, _) => *name == "boolean",
        CallArg::PosSplat(_) | CallArg::KwargSplat(_) => false,
    });
    let first = matches!(filter.args.first(), Some(CallArg::Pos(_)));
    (known && given && placed && first).then_some((name, &*filter.args))
}

fn is_environment(expr: &Expr<'_>) -> bool {
    matches!(expr, Expr::Var(var) if var.id == ENVIRONMENT)
}

/// Returns true if an expression calls a method of `env`.
pub(super) fn is_environment_call(expr: &Expr<'_>) -> bool {
    let Expr::Call(call) = expr else { return false };
    matches!(&call.expr, Expr::GetAttr(method) if is_environment(&method.expr))
}

#[derive(Debug)]
pub(super) struct UnknownName {
    pub message: String,
    pub hint: Option<String>,
    pub range: Range<usize>,
}

fn range(expr: &Expr<'_>) -> Range<usize> {
    let span = expr.span();
    span.start_offset as usize..span.end_offset as usize
}

/// Returns true if minijinja has this filter.
pub(super) fn is_filter(name: &str) -> bool {
    let outcome = ENGINE.empty_state().apply_filter(name, &[]);
    !outcome.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter)
}

fn of_wdl(name: &str) -> Option<String> {
    let function = crate::wdl::functions::find(name)?;
    Some(format!(
        "`{}` is a function of WDL, whose expressions begin with `@`",
        function.name
    ))
}

/// Returns an unknown name that this expression uses itself. Its parts are not checked.
pub(super) fn check(expr: &Expr<'_>, assigned: &[String]) -> Option<UnknownName> {
    let (what, name, known) = match expr {
        Expr::Filter(filter) => {
            let unknown = !is_filter(filter.name);
            (
                "filter",
                unknown.then_some(filter.name)?,
                Some(JinjaKind::Filter),
            )
        }
        Expr::Test(test) => {
            let outcome = ENGINE.empty_state().perform_test(test.name, &[]);
            let unknown = outcome.is_err_and(|error| error.kind() == ErrorKind::UnknownTest);
            ("test", unknown.then_some(test.name)?, Some(JinjaKind::Test))
        }
        Expr::Call(call) => {
            let Expr::Var(var) = &call.expr else {
                return None;
            };
            let engines = GLOBALS.contains(&var.id) || matches!(var.id, "loop" | "caller");
            if engines || assigned.iter().any(|name| name == var.id) {
                return None;
            }
            ("function", var.id, None)
        }
        _ => return None,
    };
    // The hint is only a suggestion. minijinja decides whether a filter exists.
    let hint = match known {
        Some(JinjaKind::Test) => test_hint(name),
        Some(_) => None,
        None => match (function_hint(name), of_wdl(name)) {
            (Some(filter), Some(_)) => Some(format!(
                "{filter}; a call of WDL needs `@` before the expression"
            )),
            (filter, wdl) => filter.or(wdl),
        },
    };
    let hint = hint.or_else(|| match known {
        Some(kind) => did_you_mean(name, names_of(kind)),
        None => did_you_mean(name, GLOBALS),
    });
    Some(UnknownName {
        message: format!("unknown {what} `{name}`"),
        hint,
        range: range(expr),
    })
}

/// Adds every name that a template assigns or defines.
pub(super) fn assigned(stmt: &Stmt<'_>, names: &mut Vec<String>) {
    let mut all = |body: &[Stmt<'_>]| body.iter().for_each(|stmt| assigned(stmt, names));
    match stmt {
        Stmt::Template(template) => all(&template.children),
        Stmt::IfCond(choice) => {
            all(&choice.true_body);
            all(&choice.false_body);
        }
        Stmt::ForLoop(each) => {
            all(&each.body);
            all(&each.else_body);
            target(&each.target, names);
        }
        Stmt::WithBlock(with) => {
            all(&with.body);
            with.assignments
                .iter()
                .for_each(|(name, _)| target(name, names));
        }
        Stmt::Set(set) => target(&set.target, names),
        Stmt::SetBlock(set) => {
            all(&set.body);
            target(&set.target, names);
        }
        Stmt::AutoEscape(escape) => all(&escape.body),
        Stmt::FilterBlock(filter) => all(&filter.body),
        Stmt::Macro(defined) => {
            all(&defined.body);
            names.push(defined.name.to_owned());
            defined
                .args
                .iter()
                .for_each(|argument| target(argument, names));
        }
        _ => {}
    }
}

fn target(expr: &Expr<'_>, names: &mut Vec<String>) {
    match expr {
        Expr::Var(var) => names.push(var.id.to_owned()),
        Expr::List(list) => list.items.iter().for_each(|item| target(item, names)),
        Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| target(item, names)),
        _ => {}
    }
}
