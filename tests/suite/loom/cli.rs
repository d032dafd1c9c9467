//! Commands for Loom files and expressions, run with the real binary.

use std::process::{Command, Output};

fn windlass(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(args)
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_schema_of_a_format_is_printed() {
    let loom = windlass(&["schema", "loom"]);
    assert!(loom.status.success());
    let schema: serde_json::Value = serde_json::from_slice(&loom.stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).is_ok());
    assert_eq!(
        out(&windlass(&["schema"])),
        out(&loom),
        "loom is the house format"
    );
    let unknown = windlass(&["schema", "lom"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("loom, azure, tea or canvas"),
        "{}",
        err(&unknown)
    );
}

/// Evaluates in a process that may use two seconds of CPU time and a gigabyte of memory.
fn bounded(subject: &str, text: &str) -> Output {
    let script = "ulimit -t 2; ulimit -v 1500000; exec \"$@\"";
    let binary = env!("CARGO_BIN_EXE_windlass");
    let mut args = vec!["-c", script, "sh", binary, "eval"];
    args.extend((!subject.is_empty()).then_some(subject));
    Command::new("sh").args(args).arg(text).output().unwrap()
}

#[test]
fn hostile_expressions_end_in_an_error_soon() {
    let nested = format!("{}true{}", "not(".repeat(1000), ")".repeat(1000));
    let replaced = (0..8).fold(String::from("'aaaa'"), |text, _| {
        format!("replace({text}, 'a', '{}')", "a".repeat(60))
    });
    let bomb = (0..12).fold(
        String::from("<!DOCTYPE l [<!ENTITY e0 \"aaaaaaaaaa\">"),
        |xml, n| {
            format!(
                "{xml}<!ENTITY e{} \"{}\">",
                n + 1,
                format!("&e{n};").repeat(10)
            )
        },
    );
    let bomb = format!("xml('{bomb}]><l>&e12;</l>')");
    for (text, expected) in [
        (&*nested, "nests deeper than 100 levels"),
        ("range(0, 2147483648)", "at most 100000 numbers"),
        ("join(range(0, 100000), concat(range(0, 100000)))", "32 MiB"),
        (&*replaced, "32 MiB"),
        (
            "union(range(0, 100000), range(50000, 100000))",
            "2000000 steps",
        ),
        (&*bomb, "not well-formed XML"),
        (
            "xpath(xml(concat('<r>', replace(join(range(0, 20000), '<b/>'), 'x', 'y'), '</r>')), 'count(//b[//b[//b]])')",
            "budget",
        ),
        ("formatNumber(1, 'N999999999')", "precision"),
    ] {
        let output = bounded("", text);
        assert_eq!(output.status.code(), Some(3), "{text:.60} {output:?}");
        assert!(
            err(&output).contains(expected),
            "{text:.60} {}",
            err(&output)
        );
    }
    let chain = format!("{{{{ 1{} }}}}", " + 1".repeat(5000));
    for (text, expected) in [
        (
            "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}x",
            "500000 steps",
        ),
        ("{{ 'a' * 1000000000 }}", "32 MiB"),
        (
            "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
            "32 MiB",
        ),
        ("{{ 'a'.ljust(4000000000) }}", "32 MiB"),
        ("{{ '{:>1000000000}'.format(1) }}", "32 MiB"),
        (
            "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
            "recursion",
        ),
        (&*chain, "more than 300 operators"),
        ("{{ ('a' * 10000)|replace('a', 'b' * 10000) }}", "32 MiB"),
    ] {
        let output = bounded("--template", text);
        assert_eq!(output.status.code(), Some(3), "{text:.60} {output:?}");
        assert!(
            err(&output).contains(expected),
            "{text:.60} {}",
            err(&output)
        );
    }
}
