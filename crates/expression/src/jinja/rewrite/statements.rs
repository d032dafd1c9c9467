//! Rewrites the statements of a template: the tags and the text between them.

use super::Writer;
use minijinja::machinery::ast::{self, CallArg, Expr, Stmt};

/// Returns about the work, in units, of the statements in a range of the text.
fn work_of(start: u32, end: u32) -> u32 {
    1 + end.saturating_sub(start) / 16
}

/// Length in bytes above which the work of writing a text between tags is counted, if the text is in a loop.
const LONG_RAW: usize = 32;

impl Writer<'_> {
    fn tag(&mut self, name: &str) {
        self.push("{% ");
        self.push(name);
        self.push(" ");
    }

    fn end(&mut self, name: &str) {
        self.push("{% ");
        self.push(name);
        self.push(" %}");
    }

    fn body(&mut self, statements: &[Stmt<'_>]) {
        statements.iter().for_each(|statement| self.stmt(statement));
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt<'_>) {
        match stmt {
            Stmt::Template(template) => self.body(&template.children),
            Stmt::EmitExpr(emit) => {
                self.push("{{ ");
                self.expr(&emit.expr);
                self.push(" }}");
            }
            Stmt::EmitRaw(raw) => self.raw(raw.raw),
            Stmt::ForLoop(each) => {
                let span = each.span();
                self.for_loop(each, work_of(span.start_offset, span.end_offset));
            }
            Stmt::IfCond(choice) => {
                self.tag("if");
                self.expr(&choice.expr);
                self.push(" %}");
                self.body(&choice.true_body);
                if !choice.false_body.is_empty() {
                    self.end("else");
                    self.body(&choice.false_body);
                }
                self.end("endif");
            }
            Stmt::WithBlock(with) => {
                self.tag("with");
                for (index, (target, value)) in with.assignments.iter().enumerate() {
                    if index > 0 {
                        self.push(", ");
                    }
                    self.target(target);
                    self.push(" = ");
                    self.expr(value);
                }
                self.push(" %}");
                self.body(&with.body);
                self.end("endwith");
            }
            Stmt::Set(set) => {
                self.tag("set");
                self.target(&set.target);
                self.push(" = ");
                self.wrapped(&set.expr);
                self.push("|__keep %}");
            }
            Stmt::SetBlock(set) => {
                if let Some(filter) = &set.filter {
                    self.arguments_of_filters(filter);
                }
                self.tag("set");
                self.target(&set.target);
                if let Some(filter) = &set.filter {
                    self.push(" | ");
                    self.expr(filter);
                }
                self.push(" %}");
                self.body(&set.body);
                self.end("endset");
            }
            Stmt::AutoEscape(escape) => {
                if !matches!(&escape.enabled, Expr::Const(enabled) if !enabled.value.is_true()) {
                    self.trouble = Some(
                        "`{% autoescape %}` is not supported: write `{{ text | escape }}` for each text",
                    );
                }
                self.tag("autoescape");
                self.expr(&escape.enabled);
                self.push(" %}");
                self.body(&escape.body);
                self.end("endautoescape");
            }
            Stmt::FilterBlock(filter) => {
                self.arguments_of_filters(&filter.filter);
                self.tag("filter");
                self.expr(&filter.filter);
                self.push(" %}");
                self.body(&filter.body);
                self.end("endfilter");
            }
            Stmt::Macro(defined) => {
                let span = defined.span();
                self.macro_body(defined, work_of(span.start_offset, span.end_offset));
            }
            Stmt::CallBlock(_) => self.trouble = Some("`{% call %}` is not supported"),
            Stmt::Block(_)
            | Stmt::Extends(_)
            | Stmt::Import(_)
            | Stmt::FromImport(_)
            | Stmt::Include(_) => self.trouble = Some("a template cannot use other templates"),
            Stmt::Continue(_) => self.end("continue"),
            Stmt::Break(_) => self.end("break"),
            Stmt::Do(action) => {
                self.tag("do");
                self.call(&action.call);
                self.push(" %}");
            }
        }
    }

    /// Writes the arguments of the filters of a block without evaluating them, because minijinja finds the names that a
    /// macro reads only in expressions.
    fn arguments_of_filters(&mut self, filters: &Expr<'_>) {
        let Expr::Filter(filter) = filters else {
            return;
        };
        if let Some(inner) = &filter.expr {
            self.arguments_of_filters(inner);
        }
        for argument in &filter.args {
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            self.push("{{ '' if true else ");
            self.wrapped(value);
            self.push(" }}");
        }
    }

    /// Writes the target of an assignment. It consists of names, which are never rewritten.
    fn target(&mut self, target: &Expr<'_>) {
        match target {
            Expr::List(list) => self.targets(&list.items),
            Expr::Tuple(tuple) => self.targets(&tuple.items),
            other => self.expr(other),
        }
    }

    fn targets(&mut self, targets: &[Expr<'_>]) {
        self.push("(");
        for target in targets {
            self.target(target);
            self.push(", ");
        }
        self.push(")");
    }

    /// Writes a loop. `work` is the number of units of one iteration.
    fn for_loop(&mut self, each: &ast::ForLoop<'_>, work: u32) {
        self.tag("for");
        self.target(&each.target);
        self.push(" in ");
        let start = self.out.len();
        self.push("(");
        self.wrapped(&each.iter);
        self.push(&format!("|__loop({work}))"));
        let span = each.iter.span();
        let old = span.start_offset as usize..span.end_offset as usize;
        self.position_map.push((start..self.out.len(), old));
        if let Some(filter) = &each.filter_expr {
            self.push(" if ");
            self.wrapped(filter);
        }
        self.push(if each.recursive {
            " recursive %}"
        } else {
            " %}"
        });
        if each.recursive {
            self.tick(work);
        }
        self.depth += 1;
        self.body(&each.body);
        self.depth -= 1;
        if !each.else_body.is_empty() {
            self.end("else");
            self.body(&each.else_body);
        }
        self.end("endfor");
    }

    /// Writes a macro. `work` is the number of units of one call.
    fn macro_body(&mut self, defined: &ast::Macro<'_>, work: u32) {
        self.tag("macro");
        self.push(defined.name);
        self.push("(");
        let without = defined.args.len().saturating_sub(defined.defaults.len());
        for (index, argument) in defined.args.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.target(argument);
            if let Some(default) = index
                .checked_sub(without)
                .and_then(|at| defined.defaults.get(at))
            {
                self.push("=");
                self.expr(default);
            }
        }
        self.push(") %}");
        self.tick(work);
        self.depth += 1;
        self.body(&defined.body);
        self.depth -= 1;
        self.end("endmacro");
    }

    /// Writes a call that only counts work and outputs nothing.
    fn tick(&mut self, work: u32) {
        self.push(&format!("{{{{ ''|__tick({work}) }}}}"));
    }

    /// Writes the text between tags.
    /// In a loop, a long text is written as an expression, so that the formatter counts its bytes.
    fn raw(&mut self, text: &str) {
        if self.depth > 0 && text.len() > LONG_RAW {
            self.push("{{ ");
            self.string(text);
            self.push("|__raw }}");
        } else if text.contains(['{', '}', '#', '%']) {
            self.push("{{ ");
            self.string(text);
            self.push(" }}");
        } else {
            self.push(text);
        }
    }
}
