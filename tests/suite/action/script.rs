//! `python` and `lua` scripts: what the code can read and return, and that whatever it does causes at most one fault.

use super::{attempt, gist, kill_when_it_waits, plain, request, soon, wait_to_be_killed};
use crate::support::{self, sized};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use windlass_actions::Registry;
use windlass_model::model::Fault;

async fn script(language: &str, inputs: Json) -> Result<Json, Fault> {
    soon(attempt(language, inputs)).await
}

async fn python(code: &str) -> Result<Json, Fault> {
    script("python", json!({ "code": code })).await
}

async fn lua(code: &str) -> Result<Json, Fault> {
    script("lua", json!({ "code": code })).await
}

fn gives(result: Json, returned: bool, state: Json, locals: Json) -> Json {
    json!({ "result": result, "returned": returned, "state": state, "locals": locals })
}

/// Kind, code and message.
fn fault_parts(fault: Fault) -> (String, String, String) {
    let code = fault.code.as_deref().unwrap_or_default().to_owned();
    (fault.kind.to_string(), code, fault.message)
}

fn raised(class: &str, message: &str) -> (String, String, String) {
    ("script".into(), class.into(), message.into())
}

#[tokio::test]
async fn python_with_return_is_the_body_of_a_function() {
    let state = json!({ "state": { "n": 1 } });
    let cases = [
        ("return {'n': state['n'] + 1}", json!({ "n": 2 })),
        (
            "  if state['n'] > 0:\n      return '''a\n  b'''\n",
            json!("a\n  b"),
        ),
        ("state = state or {}\nreturn state", json!({ "n": 1 })),
        (
            "import json\nreturn json.loads('[1, 2.5, null]')",
            json!([1, 2.5, null]),
        ),
        ("return (re.sub('a', 'b', 'aa'), True)", json!(["bb", true])),
        ("if False:\n    return 1", Json::Null),
        (
            "def twice(x):\n    return x * 2\nresult = twice(4)",
            json!(8),
        ),
        (
            "return {1: 'a', None: 'b'}",
            json!({ "1": "a", "null": "b" }),
        ),
        (
            "return '1234567890123456789012'",
            json!("1234567890123456789012"),
        ),
        ("return -9223372036854775808", json!(i64::MIN)),
        (
            "total = 0\ndef add(n):\n    nonlocal total\n    total += n\n    return total\nadd(3)\nreturn total",
            json!(3),
        ),
    ];
    for (code, result) in cases {
        let given = script("python", json!({ "code": code, "globals": state })).await;
        let expected = gives(result, true, Json::Null, json!({}));
        assert_eq!(given.unwrap(), expected, "{code}");
    }
}

#[tokio::test]
async fn python_without_return_leaves_its_names() {
    // The word `return` in a text or a comment does not make a script return.
    let code = "# return\nimport os\nx = 'return'\n_hidden = 1\nclass A: pass\ndef f(): pass\n\
                s = {1}\nfor i in range(3): pass\ngiven = given + 1\nsame = same\nnothing = None";
    let inputs = json!({ "code": code, "globals": { "given": 1, "same": 5, "no name": 6 } });
    let locals = json!({ "x": "return", "i": 2, "given": 2, "nothing": null });
    assert_eq!(
        script("python", inputs).await.unwrap(),
        gives(Json::Null, false, Json::Null, locals)
    );
    assert_eq!(
        python("result = [1]").await.unwrap(),
        gives(json!([1]), false, Json::Null, json!({ "result": [1] }))
    );
    let fault = script("python", json!({})).await.unwrap_err();
    assert_eq!(fault.message, "`code` is missing");
}

#[tokio::test]
async fn only_python_changes_state_in_place() {
    let inputs = |code: &str| json!({ "code": code, "globals": { "state": { "a": [1] }, "variables": {} }, "live": "state" });
    let given = script("python", inputs("state['a'].append(2)\nstate['b'] = 1")).await;
    let changed = json!({ "a": [1, 2], "b": 1 });
    assert_eq!(given.unwrap(), gives(Json::Null, false, changed, json!({})));
    let given = script("lua", inputs("state.a[2] = 2; return state")).await;
    let copy = json!({ "a": [1, 2] });
    assert_eq!(
        given.unwrap(),
        gives(copy, true, json!({ "a": [1] }), json!({}))
    );
    let fault = script("python", json!({ "code": "x = 1", "live": "state" })).await;
    assert_eq!(
        fault.unwrap_err().message,
        "`live` names `state`, no global"
    );
}

#[tokio::test]
async fn what_python_raises_names_the_line_of_the_script() {
    let cases = [
        (
            "x = 1\n\nx + 'a'",
            "TypeError",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str' (line 3)",
        ),
        (
            "  x = 1\n  return 1 / 0",
            "ZeroDivisionError",
            "ZeroDivisionError: division by zero (line 2)",
        ),
        (
            "def f():\n    raise KeyError('k')\nf()",
            "KeyError",
            "KeyError: 'k' (line 2)",
        ),
        (
            "x = 1\nreturn x x",
            "SyntaxError",
            "SyntaxError: invalid syntax (line 2)",
        ),
        (
            "import json\njson.loads('{')",
            "JSONDecodeError",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) (line 2)",
        ),
        (
            "raise SystemExit(3)",
            "SystemExit",
            "SystemExit: 3 (line 1)",
        ),
        ("assert False", "AssertionError", "AssertionError (line 1)"),
        (
            "actions.llm_call(1)",
            "RuntimeError",
            "RuntimeError: actions.llm_call cannot be called from a script: use a node with `uses: llm_call` instead (line 1)",
        ),
        (
            "return 1 << 63",
            "TypeError",
            "TypeError: `result` is an integer of more than 64 bits",
        ),
        (
            "x = {'a': [1, float('nan')]}",
            "TypeError",
            "TypeError: `x.a[1]` is nan, which is no JSON number",
        ),
        (
            "return {'s': {1}}",
            "TypeError",
            "TypeError: `result.s` is of type set, which is no JSON value",
        ),
        (
            "return '\\ud800'",
            "TypeError",
            "TypeError: `result` is text that is not valid Unicode",
        ),
        (
            "return {'a': b'\\xff'}",
            "TypeError",
            "TypeError: `result.a` is of type bytes, which is no JSON value",
        ),
        (
            "a = []\na.append(a)\nreturn a",
            "TypeError",
            "TypeError: `result[0]` holds itself",
        ),
    ];
    for (code, class, message) in cases {
        let fault = python(code).await.unwrap_err();
        assert!(fault.transient, "{code}");
        assert_eq!(fault_parts(fault), raised(class, message), "{code}");
    }
}

#[tokio::test]
async fn a_script_knows_its_key_and_its_attempt() {
    let code = "import os\nreturn [os.environ['WINDLASS_IDEMPOTENCY_KEY'], os.environ['WINDLASS_ATTEMPT']]";
    let given = python(code).await.unwrap();
    assert_eq!(given["result"], json!(["run-1/loop[3]/an_action", "2"]));
}

#[tokio::test]
async fn a_worker_is_used_again_and_remembers_nothing() {
    let registry = Registry::new();
    let run = async |code: &str| {
        let request = request("python", json!({ "code": code }));
        soon(registry.execute(&request))
            .await
            .map(|given| plain(&given)["result"].clone())
    };
    let first = run("import os\nreturn os.getpid()").await.unwrap();
    let spoil = "import os, sys\nglobal leaked\nleaked = 1\nos.chdir('/')\nos.environ['LEAKED'] = '1'\n\
                 sys.stdout.close()\njson = None\nsys.path.append('/leaked')\nreturn os.getpid()";
    assert_eq!(run(spoil).await.unwrap(), first);
    let look = "import os, sys\nprint('fine')\nreturn ['leaked' in globals(), os.getcwd(), \
                'LEAKED' in os.environ, json.dumps(1), '/leaked' in sys.path]";
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        run(look).await.unwrap(),
        json!([false, here.to_str(), false, "1", false])
    );
    // A worker whose script raised an error runs the next script.
    run("raise ValueError('x')").await.unwrap_err();
    assert_eq!(run("import os\nreturn os.getpid()").await.unwrap(), first);
    // What still runs in a worker ends with it.
    let busy =
        "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nimport os\nreturn os.getpid()";
    assert_eq!(run(busy).await.unwrap(), first);
    assert_ne!(run("import os\nreturn os.getpid()").await.unwrap(), first);
}

#[tokio::test]
async fn what_python_prints_never_mixes_with_what_it_gives() {
    let code = "import os, sys\nprint('{\"id\": 1}')\nsys.stdout.buffer.write(b'\\xff\\xfe\\n')\n\
                os.write(1, b'garbage\\n')\nos.system('echo more')\nprint(sys.stdin.read())\nreturn 5";
    assert_eq!(python(code).await.unwrap()["result"], 5);
    let flood = "for _ in range(200):\n    print('x' * 100000)\nreturn 6";
    assert_eq!(python(flood).await.unwrap()["result"], 6);
}

/// Code that writes to every pipe but the standard ones: the worker's own are among them.
const GARBAGE: &str = "import os, stat\nfor fd in range(3, 20):\n    try:\n        \
    if stat.S_ISFIFO(os.fstat(fd).st_mode): os.write(fd, b'{\"no\": \"answer\"\\xff}\\n')\n    \
    except OSError: pass\nreturn 1";

#[tokio::test]
async fn a_worker_that_breaks_costs_one_fault() {
    let registry = Registry::new();
    let run = async |code: &str| {
        let mut request = request("python", json!({ "code": code }));
        request.timeout_ms = code.contains("while True").then_some(300);
        soon(registry.execute(&request))
            .await
            .map(|given| plain(&given)["result"].clone())
    };
    for (code, kind, code_or_class, message) in [
        (
            "import os\nos.kill(os.getpid(), 9)",
            "script",
            Some("137"),
            "the python worker was killed by signal 9",
        ),
        (
            "import os, sys\nprint('last words', file=sys.stderr)\nos._exit(3)",
            "script",
            Some("3"),
            "the python worker ended with exit code 3: last words",
        ),
        (
            "while True: pass",
            "timeout",
            None,
            "the attempt took longer than 300ms",
        ),
        (
            GARBAGE,
            "script",
            None,
            "the python worker wrote no answer: ",
        ),
        (
            "import os\nos.closerange(3, 20)",
            "script",
            None,
            "the python worker ended with exit code ",
        ),
        (
            "x = 'a' * (1 << 34)",
            "script",
            Some("MemoryError"),
            "MemoryError (line 1)",
        ),
        (
            "return 'a' * (17 << 20)",
            "too_large",
            None,
            "`result` is larger than 16 MiB",
        ),
        (
            "a = b = 'x' * (9 << 20)",
            "too_large",
            None,
            "the script gives more than 16 MiB",
        ),
        (
            "def f(): f()\nf()",
            "script",
            Some("RecursionError"),
            "RecursionError: maximum recursion depth exceeded",
        ),
    ] {
        let fault = run(code).await.unwrap_err();
        assert_eq!(&*fault.kind, kind, "{code}: {fault:?}");
        if let Some(expected) = code_or_class {
            assert_eq!(fault.code.as_deref(), Some(expected), "{code}");
        }
        assert!(
            fault.message.starts_with(message),
            "{code}: {}",
            fault.message
        );
        assert_eq!(run("return 'fine'").await.unwrap(), "fine", "after {code}");
    }
}

#[tokio::test]
async fn a_worker_that_died_in_between_costs_nothing() {
    let registry = Registry::new();
    let request = request("python", json!({ "code": "import os\nreturn os.getpid()" }));
    let given = soon(registry.execute(&request)).await.unwrap();
    let pid = plain(&given)["result"].as_i64().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while lives() {
        tokio::task::yield_now().await;
    }
    let again = soon(registry.execute(&request)).await.unwrap();
    assert_ne!(plain(&again)["result"], pid);
}

#[tokio::test]
async fn memory_is_bounded_by_the_script() {
    let inputs = |megabytes: i64| json!({ "code": "x = bytearray(300 << 20)\nreturn len(x)", "memory_mb": megabytes });
    let fault = script("python", inputs(200)).await.unwrap_err();
    assert_eq!(
        fault_parts(fault),
        raised("MemoryError", "MemoryError (line 1)")
    );
    assert_eq!(
        script("python", inputs(500)).await.unwrap()["result"],
        300 << 20
    );
    let fault = script("lua", json!({ "code": "x = ('a'):rep(100 << 20)" })).await;
    let words = "MemoryError: more memory than the limit";
    assert_eq!(
        fault_parts(fault.unwrap_err()),
        raised("MemoryError", words)
    );
    let table = "local t = {} while true do t[#t + 1] = {} end";
    let fault = script("lua", json!({ "code": table, "memory_mb": 4 })).await;
    assert_eq!(
        fault_parts(fault.unwrap_err()),
        raised("MemoryError", words)
    );
    let fault = script("lua", json!({ "code": "return 1", "memory_mb": 0 })).await;
    assert_eq!(&*fault.unwrap_err().kind, "input");
}

#[tokio::test]
async fn a_limit_is_that_of_one_script() {
    let registry = Registry::new();
    let code = "import os\nreturn [os.getpid(), len(text)]";
    let run = async |text: String, megabytes: i64| {
        let inputs = json!({ "code": code, "globals": { "text": text }, "memory_mb": megabytes });
        let request = request("python", inputs);
        plain(&soon(registry.execute(&request)).await.unwrap())["result"].clone()
    };
    let small = run("x".to_owned(), 100).await;
    let large = run("x".repeat(80 << 20), 1000).await;
    assert_eq!(small[0], large[0], "the same worker");
    assert_eq!(large[1], 80 << 20);
}

#[tokio::test]
async fn two_hundred_scripts_at_once() {
    for language in ["python", "lua"] {
        let registry = Registry::new();
        let requests: Vec<_> = (0..200)
            .map(|n| {
                request(
                    language,
                    json!({ "code": "return n * 2", "globals": { "n": n } }),
                )
            })
            .collect();
        let all = requests.iter().map(|request| registry.execute(request));
        let given = soon(futures_util::future::join_all(all)).await;
        for (n, given) in given.into_iter().enumerate() {
            assert_eq!(plain(&given.unwrap())["result"], n * 2);
        }
    }
}

/// Each script sleeps, and together they take longer than the timeout of one.
#[tokio::test]
async fn the_wait_for_a_slot_is_no_time_of_the_script() {
    let registry = Registry::new();
    let code = "import time\ntime.sleep(0.4)\nreturn 1";
    let count = 12 * (std::thread::available_parallelism().unwrap().get() + 2);
    let requests: Vec<_> = (0..count)
        .map(|_| {
            let mut request = request("python", json!({ "code": code }));
            request.timeout_ms = Some(4000);
            request
        })
        .collect();
    let all = requests.iter().map(|request| registry.execute(request));
    for given in soon(futures_util::future::join_all(all)).await {
        assert_eq!(plain(&given.unwrap())["result"], 1);
    }
}

/// Holds a FIFO open until the process ends, and reports its start.
const HOLDS: &str =
    "fifo = open(path, 'w')\nfifo.write('ready\\n')\nfifo.flush()\nwhile True: pass";

/// The reading end of a FIFO.
pub async fn fifo(folder: &Path) -> BufReader<pipe::Receiver> {
    let path = folder.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    BufReader::new(pipe::OpenOptions::new().open_receiver(&path).unwrap())
}

pub async fn begun(fifo: &mut BufReader<pipe::Receiver>) {
    let mut line = [0; 6];
    soon(fifo.read_exact(&mut line)).await.unwrap();
    assert_eq!(&line, b"ready\n");
}

pub async fn ended(fifo: &mut BufReader<pipe::Receiver>) {
    let mut rest = String::new();
    soon(fifo.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, "");
}

fn holds(folder: &Path) -> Json {
    json!({ "code": HOLDS, "globals": { "path": folder.join("fifo").to_str() } })
}

#[tokio::test]
async fn a_dropped_script_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut fifo = fifo(folder.path()).await;
    let registry = Registry::new();
    let request = request("python", holds(folder.path()));
    tokio::select! {
        given = registry.execute(&request) => panic!("{given:?}"),
        () = begun(&mut fifo) => {}
    }
    ended(&mut fifo).await;
}

const FOLDER: &str = "WINDLASS_TEST_FOLDER";

#[tokio::test]
async fn a_killed_engine_leaves_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let mut fifo = fifo(folder.path()).await;
    let engine = support::this_test_binary("action::script::an_engine_to_kill")
        .env(FOLDER, folder.path())
        .spawn()
        .unwrap();
    begun(&mut fifo).await;
    kill_when_it_waits(engine);
    ended(&mut fifo).await;
}

#[tokio::test]
#[ignore = "run by a_killed_engine_leaves_no_worker, in a process of its own"]
async fn an_engine_to_kill() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let request = request("python", holds(Path::new(&folder)));
    wait_to_be_killed(&request).await;
}

#[tokio::test]
async fn lua_values_come_and_go() {
    let cases = [
        ("return n + 1", json!(2)),
        ("return 2.0", json!(2)),
        ("return 2.5", json!(2.5)),
        ("return {}", json!({})),
        ("return {1, 'a', {true}}", json!([1, "a", [true]])),
        (
            "return {b = 1, a = {x = {}}}",
            json!({ "a": { "x": {} }, "b": 1 }),
        ),
        ("return {1, nil, 3}", json!({ "1": 1, "3": 3 })),
        ("return {1, 2, k = 3}", json!({ "1": 1, "2": 2, "k": 3 })),
        ("return list[1].k .. list[2]", json!("v2")),
        ("return none == nil and map.none == nil", json!(true)),
        ("return 'grün'", json!("grün")),
        ("return #list, 'second'", json!(2)),
        ("return math.floor(7 / 2)", json!(3)),
        ("return math.maxinteger", json!(i64::MAX)),
        ("return 1e300", json!(1e300)),
        ("return select('#', load('return 1, 2')())", json!(2)),
        ("return (pcall(error, 'x'))", json!(false)),
        (
            "return {xpcall(error, function(e) return e .. '!' end, 'x', 0)}",
            json!([false, "x!"]),
        ),
        ("return {xpcall(math.max, print, 1, 2)}", json!([true, 2])),
        (
            "return {pcall(coroutine.wrap(function() error('in', 0) end))}",
            json!([false, "in"]),
        ),
        (
            "local c = coroutine.wrap(function() coroutine.yield(3) end) return c()",
            json!(3),
        ),
    ];
    let globals =
        json!({ "n": 1, "list": [{ "k": "v" }, 2], "none": null, "map": { "none": null } });
    for (code, result) in cases {
        let given = script("lua", json!({ "code": code, "globals": globals })).await;
        let expected = gives(result, true, Json::Null, json!({}));
        assert_eq!(given.unwrap(), expected, "{code}");
    }
    let given = lua("x = {1}; y = 2.0; _z = 1; function f() end; local l = 1; result = x").await;
    let locals = json!({ "result": [1], "x": [1], "y": 2 });
    assert_eq!(given.unwrap(), gives(json!([1]), false, Json::Null, locals));
    let given = lua("return nil").await;
    assert_eq!(
        given.unwrap(),
        gives(Json::Null, false, Json::Null, json!({}))
    );
}

#[tokio::test]
async fn what_goes_wrong_in_lua() {
    let cases = [
        (
            "local x = nil\nreturn x.y",
            "RuntimeError",
            "RuntimeError: attempt to index a nil value (local 'x') (line 2)",
        ),
        (
            "error('boom')",
            "RuntimeError",
            "RuntimeError: boom (line 1)",
        ),
        ("\nerror('boom', 0)", "RuntimeError", "RuntimeError: boom"),
        (
            "local function f() error('in f') end\nf()",
            "RuntimeError",
            "RuntimeError: in f (line 1)",
        ),
        (
            "return return",
            "SyntaxError",
            "SyntaxError: unexpected symbol near 'return' (line 1)",
        ),
        (
            "return 0/0",
            "TypeError",
            "TypeError: `result` is NaN, which is not a valid JSON number",
        ),
        (
            "x = {a = {1/0}}",
            "TypeError",
            "TypeError: `x.a[1]` is inf, which is not a valid JSON number",
        ),
        (
            "return {f = print}",
            "TypeError",
            "TypeError: `result.f` is a function, which is not a valid JSON value",
        ),
        (
            "return '\\xff'",
            "TypeError",
            "TypeError: `result` is text that is not valid UTF-8",
        ),
    ];
    for (code, class, message) in cases {
        let fault = lua(code).await.unwrap_err();
        assert_eq!(fault_parts(fault), raised(class, message), "{code}");
    }
    for code in [
        "local t = {} t.t = t return t",
        "local t = {} for _ = 1, 60 do t = {t, t} end return t",
    ] {
        let fault = lua(code).await.unwrap_err();
        assert_eq!(&*fault.kind, "too_large", "{code}");
    }
}

#[tokio::test]
async fn lua_cannot_reach_out() {
    for name in [
        "os",
        "io",
        "debug",
        "package",
        "require",
        "loadfile",
        "dofile",
        "string.dump",
    ] {
        let given = lua(&format!("return {name} == nil")).await.unwrap();
        assert_eq!(given["result"], true, "{name}");
    }
    let bytecode = lua("return (load('\\27Lua'))").await.unwrap();
    assert_eq!(bytecode, gives(Json::Null, false, Json::Null, json!({})));
}

#[test]
fn lua_is_cut_wherever_it_loops() {
    let loops = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local s = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return pcall(function() while true do pcall(function() return s[1] end) end end)",
        "coroutine.wrap(function() while true do pcall(coroutine.wrap(function() while true do end end)) end end)()",
        "table.sort({3, 2, 1}, function() while true do end end)",
        "load(function() while true do end end)",
        // Inside of Lua's own functions.
        "string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60))",
        "string.gsub(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60), print)",
        "string.rep('', math.maxinteger)",
        "table.move({}, 1, math.maxinteger - 1, 2)",
        "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)",
        "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()",
        "local t <close> = setmetatable({}, {__close = function() while true do end end})",
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let registry = Registry::new();
        for (number, code) in loops.into_iter().enumerate() {
            // As many scripts as run at the same time, and more: each occupies its slot until it has ended.
            let scripts = if number == 0 { 32 } else { sized(32, 4) };
            let mut request = request("lua", json!({ "code": code }));
            request.timeout_ms = Some(100);
            let all = (0..scripts).map(|_| registry.execute(&request));
            for given in soon(futures_util::future::join_all(all)).await {
                let fault = given.unwrap_err();
                assert_eq!(gist(&fault), json!(["timeout", null, true, null]), "{code}");
            }
            let next = super::request("lua", json!({ "code": "return 1" }));
            let next = tokio::time::timeout(Duration::from_secs(20), registry.execute(&next));
            assert!(next.await.is_ok(), "it goes on: {code}");
        }
    });
}

#[tokio::test]
async fn what_a_script_gives_is_weighed() {
    for (language, code) in [
        ("python", "return [{} for _ in range(700000)]"),
        (
            "prolog",
            "findall([], between(1, 1000000, _), L), return(L).",
        ),
    ] {
        let inputs = json!({ "code": code, "globals": { "state": {} }, "memory_mb": 1000 });
        let fault = script(language, inputs).await.unwrap_err();
        assert_eq!(&*fault.kind, "too_large", "{language}: {fault:?}");
        assert!(!fault.transient, "{language}: {fault:?}");
        let of = "the values of what the script gave would need about ";
        assert!(fault.message.starts_with(of), "{language}: {fault:?}");
    }
}

#[tokio::test]
async fn lua_shows_no_address() {
    let code = "local t = setmetatable({}, { __tostring = function() return 'mine' end })\n\
                return { tostring({}), tostring(print), string.format('%s|%s|%d', {}, t, 3), ('%s'):format(tostring) }";
    let given = lua(code).await.unwrap();
    let result = json!(["table", "function", "table|mine|3", "function"]);
    assert_eq!(given, gives(result, true, Json::Null, json!({})));
    let fault = script("lua", json!({ "code": "return string.format('%p', {})" })).await;
    assert!(fault.unwrap_err().message.contains("no %p"));
    let percent = lua("return string.format('%%p %5.1f', 2)").await.unwrap();
    assert_eq!(
        percent,
        gives(json!("%p   2.0"), true, Json::Null, json!({}))
    );
}
