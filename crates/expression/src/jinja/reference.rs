//! Every filter, test and function of Jinja, with an example. Hints and editors take names from here.

use crate::JinjaKind;
use JinjaKind::{Filter, Function, Test};

/// A name that is the engine's.
pub(crate) struct JinjaName {
    pub kind: JinjaKind,
    /// How it is called; of a filter behind the `|`, of a test behind `is`.
    pub signature: &'static str,
    pub example: &'static str,
}

const fn name(kind: JinjaKind, signature: &'static str, example: &'static str) -> JinjaName {
    JinjaName {
        kind,
        signature,
        example,
    }
}

pub(crate) const JINJA_NAMES: &[JinjaName] = &[
    name(Filter, "abs", "{{ -2 | abs }}"),
    name(Filter, "attr(name)", "{{ {'a': 1} | attr('a') }}"),
    name(
        Filter,
        "batch(count, fill?)",
        "{{ [1, 2, 3] | batch(2) | list }}",
    ),
    name(Filter, "bool", "{{ 1 | bool }}"),
    name(Filter, "capitalize", "{{ 'one' | capitalize }}"),
    name(Filter, "center(width)", "{{ 'a' | center(5) }}"),
    name(Filter, "chain(lists…)", "{{ [1] | chain([2]) | list }}"),
    name(Filter, "count", "{{ [1, 2] | count }}"),
    name(Filter, "d(value, boolean?)", "{{ '' | d('none', true) }}"),
    name(
        Filter,
        "default(value, boolean?)",
        "{{ '' | default('none', true) }}",
    ),
    name(
        Filter,
        "dictsort(case_sensitive?, by?, reverse?)",
        "{{ {'b': 1, 'a': 2} | dictsort }}",
    ),
    name(Filter, "e", "{{ '<a>' | e }}"),
    name(Filter, "escape", "{{ '<a>' | escape }}"),
    name(
        Filter,
        "filesizeformat(binary?)",
        "{{ 12000 | filesizeformat }}",
    ),
    name(Filter, "first", "{{ [1, 2] | first }}"),
    name(Filter, "float(default?)", "{{ '1.5' | float }}"),
    name(Filter, "format(values…)", "{{ '%s-%s' | format(1, 2) }}"),
    name(Filter, "fromjson", "{{ '[1]' | fromjson }}"),
    name(
        Filter,
        "groupby(attribute)",
        "{{ [{'a': 1}] | groupby('a') | length }}",
    ),
    name(
        Filter,
        "indent(width?, first?)",
        "{{ 'a' | indent(2, true) }}",
    ),
    name(Filter, "int(default?)", "{{ '7' | int }}"),
    name(Filter, "items", "{{ {'a': 1} | items | list }}"),
    name(Filter, "join(separator?)", "{{ ['a', 'b'] | join(', ') }}"),
    name(Filter, "json", "{{ {'a': [1]} | json }}"),
    name(Filter, "last", "{{ [1, 2] | last }}"),
    name(Filter, "length", "{{ 'abc' | length }}"),
    name(Filter, "lines", "{{ 'a' | lines }}"),
    name(Filter, "list", "{{ 'ab' | list }}"),
    name(Filter, "lower", "{{ 'AB' | lower }}"),
    name(Filter, "map(filter)", "{{ ['a'] | map('upper') | list }}"),
    name(Filter, "max", "{{ [1, 3] | max }}"),
    name(Filter, "min", "{{ [1, 3] | min }}"),
    name(
        Filter,
        "pluralize(singular?, plural?)",
        "{{ 2 | pluralize }}",
    ),
    name(Filter, "pprint", "{{ [1] | pprint }}"),
    name(
        Filter,
        "reject(test)",
        "{{ [1, 2] | reject('odd') | list }}",
    ),
    name(
        Filter,
        "rejectattr(attribute, test?)",
        "{{ [{'a': 0}] | rejectattr('a') | list }}",
    ),
    name(
        Filter,
        "replace(old, new)",
        "{{ 'a.b' | replace('.', '/') }}",
    ),
    name(Filter, "reverse", "{{ [1, 2] | reverse | list }}"),
    name(Filter, "round(precision?)", "{{ 1.26 | round(1) }}"),
    name(Filter, "safe", "{{ 'a' | safe }}"),
    name(
        Filter,
        "select(test)",
        "{{ [1, 2] | select('odd') | list }}",
    ),
    name(
        Filter,
        "selectattr(attribute, test?)",
        "{{ [{'a': 1}] | selectattr('a') | list }}",
    ),
    name(Filter, "sha256", "{{ 'a' | sha256 }}"),
    name(
        Filter,
        "slice(count, fill?)",
        "{{ [1, 2, 3] | slice(2) | list }}",
    ),
    name(Filter, "sort(reverse?, attribute?)", "{{ [2, 1] | sort }}"),
    name(
        Filter,
        "split(separator?)",
        "{{ 'a,b' | split(',') | list }}",
    ),
    name(Filter, "string", "{{ 1 | string }}"),
    name(Filter, "striptags", "{{ '<b>a</b>' | striptags }}"),
    name(Filter, "sum", "{{ [1, 2] | sum }}"),
    name(Filter, "title", "{{ 'one two' | title }}"),
    name(Filter, "tojson(indent?)", "{{ {'a': 1} | tojson }}"),
    name(Filter, "trim(characters?)", "{{ ' a ' | trim }}"),
    name(
        Filter,
        "truncate(length?, killwords?, end?)",
        "{{ 'a long text' | truncate(8) }}",
    ),
    name(Filter, "unique", "{{ [1, 1] | unique | list }}"),
    name(Filter, "upper", "{{ 'ab' | upper }}"),
    name(Filter, "urlencode", "{{ 'a b' | urlencode }}"),
    name(Filter, "wordcount", "{{ 'one two' | wordcount }}"),
    name(Filter, "zip(lists…)", "{{ [1] | zip([2]) | list }}"),
    name(Test, "boolean", "{{ true is boolean }}"),
    name(Test, "defined", "{{ 1 is defined }}"),
    name(Test, "divisibleby(number)", "{{ 4 is divisibleby(2) }}"),
    name(Test, "endingwith(text)", "{{ 'ab' is endingwith('b') }}"),
    name(Test, "eq(value)", "{{ 1 is eq(1) }}"),
    name(Test, "equalto(value)", "{{ 1 is equalto(1) }}"),
    name(Test, "escaped", "{{ 'a' is escaped }}"),
    name(Test, "even", "{{ 2 is even }}"),
    name(Test, "false", "{{ false is false }}"),
    name(Test, "filter", "{{ 'upper' is filter }}"),
    name(Test, "float", "{{ 1.5 is float }}"),
    name(Test, "ge(value)", "{{ 2 is ge(1) }}"),
    name(Test, "gt(value)", "{{ 2 is gt(1) }}"),
    name(Test, "in(values)", "{{ 1 is in([1]) }}"),
    name(Test, "integer", "{{ 1 is integer }}"),
    name(Test, "iterable", "{{ [] is iterable }}"),
    name(Test, "le(value)", "{{ 1 is le(1) }}"),
    name(Test, "lower", "{{ 'a' is lower }}"),
    name(Test, "lt(value)", "{{ 1 is lt(2) }}"),
    name(Test, "mapping", "{{ {} is mapping }}"),
    name(Test, "ne(value)", "{{ 1 is ne(2) }}"),
    name(Test, "none", "{{ none is none }}"),
    name(Test, "number", "{{ 1 is number }}"),
    name(Test, "odd", "{{ 1 is odd }}"),
    name(Test, "safe", "{{ 'a' is safe }}"),
    name(Test, "sameas(value)", "{{ 1 is sameas(1) }}"),
    name(Test, "sequence", "{{ [] is sequence }}"),
    name(
        Test,
        "startingwith(text)",
        "{{ 'ab' is startingwith('a') }}",
    ),
    name(Test, "string", "{{ 'a' is string }}"),
    name(Test, "true", "{{ true is true }}"),
    name(Test, "undefined", "{{ 1 is undefined }}"),
    name(Test, "upper", "{{ 'A' is upper }}"),
    name(
        Function,
        "range(start?, end, step?)",
        "{{ range(3) | list }}",
    ),
    name(Function, "dict(members…)", "{{ dict(a=1) }}"),
    name(
        Function,
        "namespace(members…)",
        "{% set ns = namespace(n=1) %}{{ ns.n }}",
    ),
    name(
        Function,
        "cycler(values)",
        "{{ cycler(['a', 'b']).next() }}",
    ),
    name(
        Function,
        "joiner(separator?)",
        "{% set comma = joiner(', ') %}{{ comma() }}a{{ comma() }}b",
    ),
];

pub(super) fn names_of(kind: JinjaKind) -> impl Iterator<Item = &'static str> {
    let of_kind = JINJA_NAMES.iter().filter(move |name| name.kind == kind);
    of_kind.map(|name| name.signature.split('(').next().unwrap_or_default())
}
