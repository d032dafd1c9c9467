//! What JSON can express and no value can hold.

use windlass_expression::inexact_json;

#[test]
fn what_no_value_holds_is_named_with_its_place() {
    let inexact = |text: &str| inexact_json(text.as_bytes());
    for good in [
        "[9223372036854775807, -9223372036854775808, 1e300, 0e999, -0, 0.1]",
        r#"{"a": "18446744073709551616 1e999", "b": "\ud83d\ude00 \\ud800 \"\u00e9"}"#,
        "no JSON: 18446744073709551616 \"\\ud800\"",
        "[18446744073709551616",
        "",
    ] {
        assert_eq!(inexact(good), None, "{good}");
    }
    for (bad, what) in [
        (
            "[1,\n 9223372036854775808]",
            "9223372036854775808 does not fit 64 bits (line 2, column 2)",
        ),
        (
            "-9223372036854775809",
            "-9223372036854775809 does not fit 64 bits",
        ),
        (
            r#"{"a": 1e999}"#,
            "1e999 does not fit a double (line 1, column 7)",
        ),
        ("1e-999", "1e-999 does not fit a double"),
        (
            r#"["\\", "x\ud800"]"#,
            "`\\ud800` is half of a character (line 1, column 10)",
        ),
        (r#""\udc00\ud800""#, "`\\udc00` is half of a character"),
        (r#""\ud800\u0041""#, "`\\ud800` is half of a character"),
    ] {
        let message = inexact(bad).unwrap_or_default();
        assert!(message.contains(what), "{bad}: {message}");
    }
}
