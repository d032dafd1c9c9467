//! `prolog` scripts: what they can read and return, and what they cannot do.

use super::script::{begun, ended, fifo};
use super::{attempt, gist, kill_when_it_waits, plain, request, soon, wait_to_be_killed};
use crate::support;
use serde_json::{Value as Json, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use windlass_actions::Registry;
use windlass_model::model::Fault;

async fn prolog(code: &str, state: Json) -> Result<Json, Fault> {
    let inputs =
        json!({ "code": code, "globals": { "state": state, "limit": 3 }, "live": "state" });
    soon(attempt("prolog", inputs)).await
}

#[tokio::test]
async fn a_script_reads_state_and_returns() {
    let state = json!({ "n": 20, "list": [1, null, true, "e\u{e9}"], "person": { "name": "Ann" },
                        "kind": "red wine", "more": "likes(ann, X) :- red(X). red(cherry). red(_)." });
    let cases = [
        (
            "state(n, N), R is N * 2 + 2.0, return(result, R).",
            json!({ "result": 42 }),
        ),
        ("state(limit, L), return(l, L)", json!({ "l": 3 })),
        (
            "state(list, L), return(L)",
            json!([1, null, true, "e\u{e9}"]),
        ),
        (
            "name_of(X) :- state(person, P), X = P.name.\nname_of(X), return(X).",
            json!("Ann"),
        ),
        (
            "parent(tom, bob).\nparent(bob, ann).\nancestor(X, Y) :- parent(X, Y).\n\
             ancestor(X, Y) :- parent(X, Z), ancestor(Z, Y).\n\
             findall(Y, ancestor(tom, Y), All), return(all, All).",
            json!({ "all": ["bob", "ann"] }),
        ),
        (
            ":- use_module(library(clpfd)).\nX #> 3, X #< 5, return(x, X).",
            json!({ "x": 4 }),
        ),
        (
            "return(_{a: [1.5, \"s\", f(x)], b: _{}}).",
            json!({ "a": [1.5, "s", "f(x)"], "b": {} }),
        ),
        // Text is an atom, at any depth.
        (
            "state(kind, K), K == 'red wine', state(list, [_, _, _, E]), atom(E), return(k, K).",
            json!({ "k": "red wine" }),
        ),
        (
            "price('red wine', 7).\nstate(kind, K), price(K, P), return(P).",
            json!(7),
        ),
        (
            "return(x, \"true\"), return(y, a-b).",
            json!({ "x": true, "y": ["a", "b"] }),
        ),
        // A fact may contain variables.
        ("same(X, X).\nsame(3, Y), return(y, Y).", json!({ "y": 3 })),
        // A text can be loaded as further code of the script.
        (
            "state(more, M), tea_load_code(M), findall(X, likes(ann, X), [First|_]), return(First).",
            json!("cherry"),
        ),
        (
            "who(X) :- tea_load_code(\"one(1).\\nit(ann).\"), it(X).\nwho(X), return(X).",
            json!("ann"),
        ),
        (
            "term_to_atom(T, 'seen(7)'), assertz(T), seen(N), return(N).",
            json!(7),
        ),
        ("return(x, 1), return(x, 2).", json!({ "x": 2 })),
        ("return(x, 1).\nfail.\nreturn(x, 2).", json!({ "x": 1 })),
        (
            ":- dynamic(seen/1).\nassertz(seen(a)), seen(X), return(X)",
            json!("a"),
        ),
        (
            "assertz(count(1)), retract(count(N)), M is N + 1, return(M), writeln(printed).",
            json!(2),
        ),
    ];
    for (code, result) in cases {
        let given = prolog(code, state.clone()).await.unwrap();
        let expected = json!({ "result": result, "returned": true, "state": state, "locals": {} });
        assert_eq!(given, expected, "{code}");
    }
    for code in ["true.", "fail.", "% nothing"] {
        let given = prolog(code, json!({})).await.unwrap();
        let expected = json!({ "result": null, "returned": false, "state": {}, "locals": {} });
        assert_eq!(given, expected, "{code}");
    }
}

#[tokio::test]
async fn what_goes_wrong_in_prolog() {
    let cases = [
        (
            "true.\nfoo(1), bar(X).",
            "existence_error",
            "existence_error: procedure `foo(A)' does not exist (line 2)",
        ),
        (
            "X is 1 + a, return(X).",
            "type_error",
            "type_error: Arithmetic: `a/0' is not a function (line 1)",
        ),
        (
            "true.\nstate(n, N) X",
            "syntax_error",
            "syntax_error: operator_expected (line 2)",
        ),
        (
            "return(x, Y)",
            "instantiation_error",
            "instantiation_error: Arguments are not sufficiently instantiated (line 1)",
        ),
        (
            "tea_load_code('one(1).'), two(2).",
            "existence_error",
            "existence_error: Unknown procedure: two/1 (line 1)",
        ),
        (
            "throw(no_luck(1))",
            "no_luck",
            "no_luck: no_luck(1) (line 1)",
        ),
        (
            "loop :- more, loop.\nmore :- loop, more.\nloop.",
            "resource_error",
            "resource_error: not enough stack (line 3)",
        ),
    ];
    for (code, class, message) in cases {
        let fault = prolog(code, json!({})).await.unwrap_err();
        assert_eq!(gist(&fault), json!(["script", class, true, null]), "{code}");
        assert_eq!(fault.message, message, "{code}");
    }
    let large = "length(L, 2000000), maplist(=(abcdefghijk), L), return(L).";
    let fault = prolog(large, json!({})).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["too_large", null, false, null]));
}

#[tokio::test]
async fn prolog_cannot_reach_out() {
    for code in [
        "shell(ls).",
        "halt.",
        "open('/etc/passwd', read, S), return(S).",
        "use_module(library(process)).",
        ":- use_module(library(process)).",
        ":- use_module('/tmp/x.pl').",
        "goal_expansion(x, y) :- shell(ls).",
        "term_expansion(x, y) :- shell(ls).",
        "user:goal_expansion(x, y) :- shell(ls).",
        "assertz(user:portray(x)).",
        "windlass:goal(shell(ls)).",
        "attr_unify_hook(_, _) :- shell(ls).\nput_attr(X, script, 1), X = 2.",
        "return(_, _) :- shell(ls).",
        "G = shell(ls), call(G).",
        ":- initialization(shell(ls)).",
        "x :- shell(ls).\nx.",
        "tea_load_code(':- shell(ls).').",
        "tea_load_code('x :- shell(ls).'), x.",
        "term_to_atom(T, 'x :- shell(ls)'), assertz(T), x.",
        "term_to_atom(T, 'return(_, _) :- true'), assertz(T).",
    ] {
        let fault = prolog(code, json!({})).await.unwrap_err();
        assert_eq!(&*fault.kind, "script", "{code}");
        let code_of = fault.code.as_deref();
        assert!(
            matches!(code_of, Some("permission_error" | "instantiation_error")),
            "{code}: {fault:?}"
        );
    }
}

#[tokio::test]
async fn prolog_is_cut_and_bounded() {
    let registry = Registry::new();
    let mut forever = request("prolog", json!({ "code": "repeat, fail." }));
    forever.timeout_ms = Some(1500);
    let fault = soon(registry.execute(&forever)).await.unwrap_err();
    assert_eq!(gist(&fault), json!(["timeout", null, true, null]));
}

/// A replacement for `swipl`, whose behaviour is chosen by a file.
const FAKE: &str = r#"#!/bin/sh
case "$(cat "$WINDLASS_TEST_FOLDER/mode")" in
    dies) kill -9 $$ ;;
    fails) echo "last words" >&2; exit 3 ;;
    silent) exit 0 ;;
    garbage) cat >/dev/null; printf '{"no": "answer"\377}\n' ;;
    hangs) exec 9>"$WINDLASS_TEST_FOLDER/fifo"; echo ready >&9; exec sleep 1000 ;;
    *) exec "$WINDLASS_TEST_SWIPL" "$@" ;;
esac
"#;

/// Runs this test binary with a `swipl` on its `PATH` that behaves as `mode` specifies.
fn with_fake(folder: &Path, test: &str, mode: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|folder| folder.join("swipl"))
        .find(|swipl| swipl.is_file())
        .unwrap();
    let fake = folder.join("swipl");
    std::fs::write(&fake, FAKE).unwrap();
    std::fs::set_permissions(&fake, Permissions::from_mode(0o755)).unwrap();
    std::fs::write(folder.join("mode"), mode).unwrap();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let mut command = support::this_test_binary(test);
    command
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("WINDLASS_TEST_SWIPL", real)
        .env("WINDLASS_TEST_FOLDER", folder);
    command
}

#[test]
fn a_swipl_that_breaks_costs_one_fault() {
    let folder = tempfile::tempdir().unwrap();
    let test = "action::script_prolog::scripts_of_a_swipl_that_breaks";
    let output = with_fake(folder.path(), test, "").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("1 passed"), "{stdout}");
}

#[tokio::test]
#[ignore = "run by a_swipl_that_breaks_costs_one_fault, in a process of its own"]
async fn scripts_of_a_swipl_that_breaks() {
    let folder = std::env::var_os("WINDLASS_TEST_FOLDER").unwrap();
    let mode = Path::new(&folder).join("mode");
    let registry = Registry::new();
    let run = async |how: &str| {
        std::fs::write(&mode, how).unwrap();
        let mut request = request("prolog", json!({ "code": "return(answer, 42)." }));
        request.timeout_ms = (how == "hangs").then_some(500);
        soon(registry.execute(&request)).await
    };
    let made = Command::new("mkfifo")
        .arg(Path::new(&folder).join("fifo"))
        .status();
    assert!(made.unwrap().success());
    // Held open, so that a writer does not have to wait for a reader.
    let _reader = tokio::net::unix::pipe::OpenOptions::new()
        .open_receiver(Path::new(&folder).join("fifo"))
        .unwrap();
    for (how, kind, words) in [
        ("dies", "script", "swipl was killed by signal 9"),
        (
            "fails",
            "script",
            "swipl ended with exit code 3: last words",
        ),
        ("silent", "script", "swipl wrote no answer"),
        ("garbage", "script", "swipl wrote no answer"),
        ("hangs", "timeout", "the attempt took longer than 500ms"),
    ] {
        let fault = run(how).await.unwrap_err();
        assert_eq!(&*fault.kind, kind, "{how}: {fault:?}");
        assert!(fault.message.starts_with(words), "{how}: {}", fault.message);
        let given = plain(&run("real").await.unwrap());
        assert_eq!(given["result"], json!({ "answer": 42 }), "after {how}");
    }
}

#[tokio::test]
async fn a_killed_engine_leaves_no_swipl() {
    let folder = tempfile::tempdir().unwrap();
    let mut fifo = fifo(folder.path()).await;
    let test = "action::script_prolog::an_engine_to_kill";
    let engine = with_fake(folder.path(), test, "hangs").spawn().unwrap();
    begun(&mut fifo).await;
    kill_when_it_waits(engine);
    ended(&mut fifo).await;
}

#[tokio::test]
#[ignore = "run by a_killed_engine_leaves_no_swipl, in a process of its own"]
async fn an_engine_to_kill() {
    let request = request("prolog", json!({ "code": "true." }));
    wait_to_be_killed(&request).await;
}
