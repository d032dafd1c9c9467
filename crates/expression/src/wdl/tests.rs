//! WDL: what is printed parses to the same tree.

use super::ast::{AstSpan, Expr, Node, Step};
use super::functions::{self, Function};
use super::parser::parse_at;
use crate::Value;
use proptest::prelude::*;

fn node(node: Node) -> Expr {
    Expr {
        node,
        place: AstSpan::default(),
    }
}

fn literal() -> impl Strategy<Value = Expr> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>()
            .prop_filter("JSON has no other numbers", |float| float.is_finite())
            .prop_map(Value::Float),
        any::<String>().prop_map(Value::text),
        "[a-z'@{} ]{0,8}".prop_map(Value::text),
    ]
    .prop_map(|value| node(Node::Literal(value)))
}

fn function() -> impl Strategy<Value = &'static Function> {
    let all: Vec<&'static Function> = functions::names().filter_map(functions::find).collect();
    prop::sample::select(all)
}

fn call(inner: BoxedStrategy<Expr>) -> BoxedStrategy<Expr> {
    (function(), prop::collection::vec(inner, 0..4))
        .prop_filter_map("so many arguments", |(function, arguments)| {
            let fits = function.arity_error(arguments.len()).is_none();
            fits.then(|| node(Node::Call(function, arguments)))
        })
        .boxed()
}

fn tree() -> impl Strategy<Value = Expr> {
    literal().boxed().prop_recursive(4, 40, 4, |inner| {
        let key = prop_oneof![
            inner.clone(),
            "[a-z_$][a-z0-9_$]{0,6}".prop_map(|name| node(Node::Literal(Value::text(name)))),
        ];
        let step = (key, any::<bool>()).prop_map(|(key, safe)| Step {
            key,
            safe,
            place: AstSpan::default(),
        });
        let path = (call(inner.clone()), prop::collection::vec(step, 1..4))
            .prop_map(|(base, steps)| node(Node::Path(Box::new(base), steps)));
        prop_oneof![call(inner), path]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_is_printed_parses_to_the_same_tree(tree in tree()) {
        let text = tree.to_string();
        prop_assume!(text.chars().count() <= super::parser::MAX_CHARS);
        let (parsed, end) = parse_at(&text, 0, false)
            .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(end, text.len());
        prop_assert_eq!(parsed, tree, "{}", text);
    }

    #[test]
    fn any_text_parses_or_says_where_it_does_not(text in "[@{}()'\\[\\].?,0-9a-z\u{e9} ]{0,40}") {
        for syntax in [crate::Syntax::Loom, crate::Syntax::Azure] {
            if let Err(error) = crate::Template::parse(&text, syntax) {
                prop_assert!(error.offset <= text.len() && error.length >= 1, "{:?}", error);
                prop_assert!(text.is_char_boundary(error.offset), "{:?} in {}", error, text);
            }
        }
    }
}
