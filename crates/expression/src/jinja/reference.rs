//! Every filter, test and function of Jinja, with an example. Hints and editors use these names.

use crate::JinjaKind;

/// A name that minijinja defines, in contrast to a name of data.
pub(crate) struct JinjaName {
    pub kind: JinjaKind,
    /// The call with its parameters. For a filter, the part after `|`. For a test, the part after `is`.
    pub signature: &'static str,
    pub example: &'static str,
}

macro_rules! names {
    ($($kind:ident $signature:literal $example:literal)*) => {
        &[$(JinjaName { kind: JinjaKind::$kind, signature: $signature, example: $example }),*]
    };
}

pub(crate) const JINJA_NAMES: &[JinjaName] = names! {
    Filter "abs" "{{ -2 | abs }}"
    Filter "attr(name)" "{{ {'a': 1} | attr('a') }}"
    Filter "batch(count, fill?)" "{{ [1, 2, 3] | batch(2) | list }}"
    Filter "bool" "{{ 1 | bool }}"
    Filter "capitalize" "{{ 'one' | capitalize }}"
    Filter "center(width)" "{{ 'a' | center(5) }}"
    Filter "chain(lists…)" "{{ [1] | chain([2]) | list }}"
    Filter "count" "{{ [1, 2] | count }}"
    Filter "d(value, boolean?)" "{{ '' | d('none', true) }}"
    Filter "default(value, boolean?)" "{{ '' | default('none', true) }}"
    Filter "dictsort(case_sensitive?, by?, reverse?)" "{{ {'b': 1, 'a': 2} | dictsort }}"
    Filter "e" "{{ '<a>' | e }}"
    Filter "escape" "{{ '<a>' | escape }}"
    Filter "filesizeformat(binary?)" "{{ 12000 | filesizeformat }}"
    Filter "first" "{{ [1, 2] | first }}"
    Filter "float(default?)" "{{ '1.5' | float }}"
    Filter "forceescape" "{{ '<a>' | forceescape }}"
    Filter "format(values…)" "{{ '%s-%s' | format(1, 2) }}"
    Filter "fromjson" "{{ '[1]' | fromjson }}"
    Filter "groupby(attribute)" "{{ [{'a': 1}] | groupby('a') | length }}"
    Filter "indent(width?, first?, blank?)" "{{ 'a' | indent(2, true) }}"
    Filter "int(default?)" "{{ '7' | int }}"
    Filter "items" "{{ {'a': 1} | items | list }}"
    Filter "join(separator?)" "{{ ['a', 'b'] | join(', ') }}"
    Filter "json" "{{ {'a': [1]} | json }}"
    Filter "last" "{{ [1, 2] | last }}"
    Filter "length" "{{ 'abc' | length }}"
    Filter "lines" "{{ 'a' | lines }}"
    Filter "list" "{{ 'ab' | list }}"
    Filter "lower" "{{ 'AB' | lower }}"
    Filter "map(filter)" "{{ ['a'] | map('upper') | list }}"
    Filter "max" "{{ [1, 3] | max }}"
    Filter "min" "{{ [1, 3] | min }}"
    Filter "pluralize(singular?, plural?)" "{{ 2 | pluralize }}"
    Filter "pprint" "{{ [1] | pprint }}"
    Filter "reject(test)" "{{ [1, 2] | reject('odd') | list }}"
    Filter "rejectattr(attribute, test?)" "{{ [{'a': 0}] | rejectattr('a') | list }}"
    Filter "replace(old, new)" "{{ 'a.b' | replace('.', '/') }}"
    Filter "reverse" "{{ [1, 2] | reverse | list }}"
    Filter "round(precision?)" "{{ 1.26 | round(1) }}"
    Filter "safe" "{{ 'a' | safe }}"
    Filter "select(test)" "{{ [1, 2] | select('odd') | list }}"
    Filter "selectattr(attribute, test?)" "{{ [{'a': 1}] | selectattr('a') | list }}"
    Filter "sha256" "{{ 'a' | sha256 }}"
    Filter "slice(count, fill?)" "{{ [1, 2, 3] | slice(2) | list }}"
    Filter "sort(reverse?, attribute?)" "{{ [2, 1] | sort }}"
    Filter "split(separator?)" "{{ 'a,b' | split(',') | list }}"
    Filter "string" "{{ 1 | string }}"
    Filter "striptags" "{{ '<b>a</b>' | striptags }}"
    Filter "sum" "{{ [1, 2] | sum }}"
    Filter "title" "{{ 'one two' | title }}"
    Filter "tojson(indent?)" "{{ {'a': 1} | tojson }}"
    Filter "trim(characters?)" "{{ ' a ' | trim }}"
    Filter "truncate(length?, killwords?, end?)" "{{ 'a long text' | truncate(8) }}"
    Filter "unique" "{{ [1, 1] | unique | list }}"
    Filter "upper" "{{ 'ab' | upper }}"
    Filter "urlencode" "{{ 'a b' | urlencode }}"
    Filter "wordcount" "{{ 'one two' | wordcount }}"
    Filter "zip(lists…)" "{{ [1] | zip([2]) | list }}"
    Test "boolean" "{{ true is boolean }}"
    Test "defined" "{{ 1 is defined }}"
    Test "divisibleby(number)" "{{ 4 is divisibleby(2) }}"
    Test "endingwith(text)" "{{ 'ab' is endingwith('b') }}"
    Test "eq(value)" "{{ 1 is eq(1) }}"
    Test "equalto(value)" "{{ 1 is equalto(1) }}"
    Test "escaped" "{{ 'a' is escaped }}"
    Test "even" "{{ 2 is even }}"
    Test "false" "{{ false is false }}"
    Test "filter" "{{ 'upper' is filter }}"
    Test "float" "{{ 1.5 is float }}"
    Test "ge(value)" "{{ 2 is ge(1) }}"
    Test "gt(value)" "{{ 2 is gt(1) }}"
    Test "in(values)" "{{ 1 is in([1]) }}"
    Test "integer" "{{ 1 is integer }}"
    Test "iterable" "{{ [] is iterable }}"
    Test "le(value)" "{{ 1 is le(1) }}"
    Test "lower" "{{ 'a' is lower }}"
    Test "lt(value)" "{{ 1 is lt(2) }}"
    Test "mapping" "{{ {} is mapping }}"
    Test "ne(value)" "{{ 1 is ne(2) }}"
    Test "none" "{{ none is none }}"
    Test "number" "{{ 1 is number }}"
    Test "odd" "{{ 1 is odd }}"
    Test "safe" "{{ 'a' is safe }}"
    Test "sameas(value)" "{{ 1 is sameas(1) }}"
    Test "sequence" "{{ [] is sequence }}"
    Test "startingwith(text)" "{{ 'ab' is startingwith('a') }}"
    Test "string" "{{ 'a' is string }}"
    Test "true" "{{ true is true }}"
    Test "undefined" "{{ 1 is undefined }}"
    Test "upper" "{{ 'A' is upper }}"
    Function "range(start?, end, step?)" "{{ range(3) | list }}"
    Function "dict(members…)" "{{ dict(a=1) }}"
    Function "namespace(members…)" "{% set ns = namespace(n=1) %}{{ ns.n }}"
    Function "cycler(values…)" "{{ cycler('a', 'b').next() }}"
    Function "joiner(separator?)" "{% set comma = joiner(', ') %}{{ comma() }}a{{ comma() }}b"
};

pub(super) fn names_of(kind: JinjaKind) -> impl Iterator<Item = &'static str> {
    let of_kind = JINJA_NAMES.iter().filter(move |name| name.kind == kind);
    of_kind.map(|name| name.signature.split('(').next().unwrap_or_default())
}
