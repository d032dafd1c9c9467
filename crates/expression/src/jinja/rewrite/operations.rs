//! Rewrites operators, and the values of filters.

use super::Writer;
use minijinja::machinery::ast::{self, BinOpKind, CompareOpKind, Expr};
use minijinja::value::ValueKind;

/// Whether an operation is written in brackets of its own.
#[derive(Clone, Copy)]
pub(super) enum Brackets {
    Own,
    None,
}

/// How an operation is written.
enum Form {
    /// As a filter of this crate.
    Filter(&'static str),
    /// With an operator of minijinja.
    Operator(&'static str),
}

/// Returns how to write an operation.
/// If one operand of an equality is a constant scalar, the comparison is cheap, and minijinja's operator is used.
fn form(op: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Form {
    let scalar = |expr: &Expr<'_>| match expr {
        Expr::Const(constant) => matches!(
            constant.value.kind(),
            ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::String
        ),
        _ => false,
    };
    match op {
        BinOpKind::Eq if scalar(left) || scalar(right) => Form::Operator(" == "),
        BinOpKind::Ne if scalar(left) || scalar(right) => Form::Operator(" != "),
        BinOpKind::Eq => Form::Filter("__eq"),
        BinOpKind::Ne => Form::Filter("__ne"),
        BinOpKind::Lt => Form::Filter("__lt"),
        BinOpKind::Lte => Form::Filter("__le"),
        BinOpKind::Gt => Form::Filter("__gt"),
        BinOpKind::Gte => Form::Filter("__ge"),
        BinOpKind::In => Form::Filter("__in"),
        BinOpKind::Add => Form::Filter("__add"),
        BinOpKind::Mul => Form::Filter("__mul"),
        BinOpKind::Rem => Form::Filter("__mod"),
        BinOpKind::Concat => Form::Filter("__cat"),
        BinOpKind::ScAnd => Form::Operator(" and "),
        BinOpKind::ScOr => Form::Operator(" or "),
        BinOpKind::Sub => Form::Operator(" - "),
        BinOpKind::Div => Form::Operator(" / "),
        BinOpKind::FloorDiv => Form::Operator(" // "),
        BinOpKind::Pow => Form::Operator(" ** "),
    }
}

/// Returns true if an operation and one more of the same operator are a chain, which is read from the left. A chain of
/// comparisons is different: in `a == b == c`, `b` is compared twice.
fn continues(operator: &str, left: &ast::BinOp<'_>) -> bool {
    match form(left.op, &left.left, &left.right) {
        Form::Operator(inner) => {
            inner == operator && !matches!(left.op, BinOpKind::Eq | BinOpKind::Ne)
        }
        Form::Filter(_) => false,
    }
}

impl Writer<'_> {
    /// Writes the value of a filter. A chain of filters needs no brackets.
    pub(super) fn filtered(&mut self, expr: &Expr<'_>) {
        match expr {
            Expr::Filter(_) => self.expr(expr),
            Expr::Slice(_) => self.write(expr, Brackets::None),
            Expr::BinOp(binary)
                if matches!(
                    form(binary.op, &binary.left, &binary.right),
                    Form::Filter(_)
                ) =>
            {
                self.write(expr, Brackets::None);
            }
            _ => self.wrapped(expr),
        }
    }

    pub(super) fn open(&mut self, brackets: Brackets) {
        self.push(match brackets {
            Brackets::Own => "(",
            Brackets::None => "",
        });
    }

    pub(super) fn close(&mut self, brackets: Brackets) {
        self.push(match brackets {
            Brackets::Own => ")",
            Brackets::None => "",
        });
    }

    /// Writes `(left|name(right, 'left', 'right'))`, or the operator of minijinja. The two quoted texts are the operands'
    /// names for errors.
    pub(super) fn operation(
        &mut self,
        op: BinOpKind,
        left: &Expr<'_>,
        right: &Expr<'_>,
        brackets: Brackets,
    ) {
        self.open(brackets);
        match form(op, left, right) {
            Form::Filter(name) => {
                self.filtered(left);
                self.push("|");
                self.push(name);
                self.push("(");
                self.expr(right);
                for side in [left, right] {
                    self.push(", ");
                    let name = path(side).unwrap_or_default();
                    self.string(&name);
                }
                self.push(")");
            }
            Form::Operator(operator) => {
                match left {
                    Expr::BinOp(inner) if continues(operator, inner) => {
                        self.write(left, Brackets::None);
                    }
                    _ => self.filtered(left),
                }
                self.push(operator);
                self.filtered(right);
            }
        }
        self.close(brackets);
    }

    /// Writes `a < b < c` as `a < b and b < c`.
    /// Both mean the same, because evaluating an operand has no effects.
    pub(super) fn compare(&mut self, compare: &ast::Compare<'_>) {
        let mut left = &compare.expr;
        self.push("(");
        for (index, step) in compare.ops.iter().enumerate() {
            if index > 0 {
                self.push(" and ");
            }
            let right = &step.expr;
            let op = match step.op {
                CompareOpKind::Eq => BinOpKind::Eq,
                CompareOpKind::Ne => BinOpKind::Ne,
                CompareOpKind::Lt => BinOpKind::Lt,
                CompareOpKind::Lte => BinOpKind::Lte,
                CompareOpKind::Gt => BinOpKind::Gt,
                CompareOpKind::Gte => BinOpKind::Gte,
                CompareOpKind::In | CompareOpKind::NotIn => BinOpKind::In,
            };
            let negated = matches!(step.op, CompareOpKind::NotIn);
            self.push(if negated { "(not " } else { "" });
            self.operation(op, left, right, Brackets::Own);
            self.push(if negated { ")" } else { "" });
            left = right;
        }
        self.push(")");
    }
}

/// Returns the path `a.b[0]` as the author wrote it, for errors.
fn path(expr: &Expr<'_>) -> Option<String> {
    match expr {
        Expr::Var(var) => Some(var.id.to_owned()),
        Expr::GetAttr(attribute) => Some(format!("{}.{}", path(&attribute.expr)?, attribute.name)),
        Expr::GetItem(item) => match &item.subscript_expr {
            Expr::Const(key) => Some(format!("{}[{:?}]", path(&item.expr)?, key.value)),
            _ => None,
        },
        _ => None,
    }
}
