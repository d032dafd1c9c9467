#!/bin/sh
# A runner that answers by script, in place of an agent: prompt on standard input, answer on
# standard output. It writes a division, learns from each review, and approves the third version.
prompt=$(cat)
case $prompt in
"Review this code:"*)
    case $prompt in
    *"#[test]"*) answer='{ "approved": true, "feedback": "Good." }' ;;
    *checked_div*) answer='{ "approved": false, "feedback": "It needs a test." }' ;;
    *) answer='{ "approved": false, "feedback": "It divides by zero." }' ;;
    esac
    ;;
*"Context: It divides by zero."*)
    answer='fn divide(a: i32, b: i32) -> Option<i32> { a.checked_div(b) }'
    ;;
*"Context: It needs a test."*)
    answer='fn divide(a: i32, b: i32) -> Option<i32> { a.checked_div(b) }
#[test] fn by_zero() { assert_eq!(divide(1, 0), None) }'
    ;;
*)
    answer='fn divide(a: i32, b: i32) -> i32 { a / b }'
    ;;
esac
printf '%s\n' "$answer"
