//! Loops over pages: a repeated page is noticed before it is read.

use super::play::{Answer, Call, Case, ok};

/// Reads pages by token: `next` returns the next token for a token (`""` for the first page).
fn pager(kind: &str, more: &str, next: impl Fn(&str) -> &'static str + 'static) -> Case {
    let condition = "@equals(variables('token'), null)";
    Case::yaml(&format!(
        "
variables: {{ token: '', read: [] }}
actions:
  pages:
    type: {kind}
    condition: \"{condition}\"
    page: \"@variables('token')\"
    {more}
    actions:
      get: {{ type: shell, run: \"x @{{variables('token')}}\" }}
      keep: {{ type: appendToArrayVariable, name: read, value: \"@variables('token')\" }}
      turn: {{ type: setVariable, name: token, value: \"@outputs('get').next\" }}
outputs: {{ read: \"@variables('read')\", pages: \"@outputs('pages')\" }}
"
    ))
    .world(move |call| page(call, &next))
}

fn page(call: &Call<'_>, next: &impl Fn(&str) -> &'static str) -> Answer {
    let run = call.inputs.get("run").and_then(|run| run.as_str()).unwrap();
    let token = run.trim_start_matches('x').trim();
    ok(&format!(r#"{{"next":{}}}"#, next(token)))
}

/// Pages a, b, c, and then back to b.
fn circle(token: &str) -> &'static str {
    match token {
        "" => r#""a""#,
        "a" => r#""b""#,
        "b" => r#""c""#,
        _ => r#""b""#,
    }
}

#[test]
fn a_page_that_comes_again_fails_the_loop_before_it_is_read_again() {
    for kind in ["until", "doUntil"] {
        let played = pager(kind, "", circle).play();
        assert_eq!(played.calls("get"), 4, "{kind}");
        assert_eq!(
            played.error(),
            "repeat: loop `pages` is at page \"b\" again: iteration 5 would read what iteration 3 \
             has read; action pages; line 4",
            "{kind}"
        );
    }
}

#[test]
fn or_it_ends_the_loop_and_says_why() {
    for kind in ["until", "doUntil"] {
        let played = pager(kind, "on_repeat: stop", circle).play();
        assert_eq!(
            played.output(),
            r#"{"read":["","a","b","c"],"pages":{"iterations":4,"status":"Succeeded","reason":"repeat","result":{"get":{"next":"b"},"keep":"c","turn":"b"}}}"#,
            "{kind}"
        );
    }
}

#[test]
fn the_first_page_again_is_a_repetition_too() {
    let played = pager("until", "on_repeat: stop", |_| r#""""#).play();
    assert_eq!(played.calls("get"), 1);
}

#[test]
fn pages_that_differ_are_read_to_their_end() {
    let next = |token: &str| match token {
        "" => "1",
        "1" => r#"{"at":2}"#,
        _ => "null",
    };
    let played = pager("until", "", next).play();
    assert_eq!(played.calls("get"), 3);
    assert!(played.output().contains(r#""reason":"condition""#));
}

#[test]
fn the_condition_comes_first_and_the_limits_last() {
    // The last page names no next one; `null` is never read.
    let done = pager("until", "", |_| "null").play();
    assert!(
        done.output().contains(r#""iterations":1"#),
        "{}",
        done.output()
    );
    // If a loop is at a page again when its count is reached, it reports the repetition, which is the more useful
    // message.
    let spent = pager("until", "limit: { count: 4 }", circle).play();
    assert!(spent.error().starts_with("repeat: "), "{}", spent.error());
}

#[test]
fn a_loop_that_is_entered_again_knows_no_pages() {
    let case = Case::yaml(
        "
actions:
  twice:
    type: foreach
    foreach: [1, 2]
    actions:
      pages:
        type: doUntil
        condition: \"@equals(outputs('get').next, null)\"
        page: \"@outputs('get').next\"
        actions:
          get: { type: shell, run: x }
",
    )
    .world(|call| {
        ok(if call.n % 2 == 0 {
            r#"{"next":"a"}"#
        } else {
            r#"{"next":null}"#
        })
    });
    let played = case.play();
    assert_eq!(played.calls("get"), 4);
    assert!(!played.output().contains("repeat"), "{}", played.output());
}

/// A token may be long; the message contains only its beginning.
#[test]
fn a_long_token_is_reported_by_its_beginning() {
    let message_of = |length: usize| {
        let token = format!("\"{}\"", "t".repeat(length));
        let same = pager("until", "", move |_| token.clone().leak());
        same.play().error()
    };
    // With its quotes the token has 80 characters, or more.
    let (fits, long) = (message_of(78), message_of(79));
    let beginning = |length: usize| format!("page \"{}", "t".repeat(length));
    assert!(
        fits.contains(&format!("{}\" again", beginning(78))),
        "{fits}"
    );
    assert!(
        long.contains(&format!("{}… again", beginning(79))),
        "{long}"
    );
}
