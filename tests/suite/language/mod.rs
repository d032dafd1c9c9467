//! What an editor gets for a text at a place marked with `‸`: in correct texts, in incomplete ones, and in invalid
//! ones.

mod lsp;

use crate::support::sized;
use std::path::PathBuf;
use windlass_engine::{Bundle, Dialect};
use windlass_expression::{
    Context, JinjaKind, Subject, Value, jinja_functions, wdl_arities, wdl_functions,
};
use windlass_formats::Caps;
use windlass_language::{
    Completion, CompletionItem, Lines, Position, Symbol, complete, edited, hover, symbols,
};

fn marked(text: &str) -> (Bundle, Position, String) {
    let at = text.find('‸').expect("a text with a mark");
    let bare = text.replacen('‸', "", 1);
    let place = Lines::new(&bare).position(at);
    (Bundle::single("w.yaml", bare.clone()), place, bare)
}

fn completion(text: &str) -> Completion {
    let (bundle, at, _) = marked(text);
    complete(&bundle, None, at)
}

fn labels(text: &str) -> Vec<String> {
    let found = completion(text);
    found.items.into_iter().map(|item| item.label).collect()
}

#[track_caller]
fn offers(text: &str, wanted: &[&str]) {
    let found = labels(text);
    for label in wanted {
        assert!(
            found.iter().any(|one| one == label),
            "no {label} in {found:?}\n{text}"
        );
    }
}

#[track_caller]
fn spares(text: &str, unwanted: &[&str]) {
    let found = labels(text);
    for label in unwanted {
        assert!(
            !found.iter().any(|one| one == label),
            "{label} in {found:?}\n{text}"
        );
    }
}

/// The text after a completion item was inserted.
#[track_caller]
fn taken(text: &str, label: &str) -> String {
    let (bundle, at, bare) = marked(text);
    let found = complete(&bundle, None, at);
    let item: &CompletionItem = found
        .items
        .iter()
        .find(|item| item.label == label)
        .unwrap_or_else(|| panic!("no {label} in {:?}", found.items));
    let bytes = Lines::new(&bare).bytes(found.range);
    format!(
        "{}{}{}",
        &bare[..bytes.start],
        item.insert,
        &bare[bytes.end..]
    )
}

#[test]
fn keys_and_values_are_those_of_the_schema() {
    offers("‸", &["actions", "inputs", "variables", "schedule"]);
    offers("name: x\nactions:\n  a:\n    ‸\n", &["type"]);
    let http = "actions:\n  a:\n    type: http\n    ‸\n  b: { type: compose, inputs: 1 }\n";
    offers(http, &["inputs", "retry", "runAfter"]);
    spares(http, &["type", "condition"]);
    let inner = "actions:\n  a:\n    type: http\n    inputs:\n      u‸\n      method: GET\n";
    offers(inner, &["uri", "headers"]);
    spares(inner, &["method"]);
    assert!(taken(inner, "uri").contains("      uri: \n      method"));
    offers(
        "actions:\n  a:\n    type: ht‸\n",
        &["http", "until", "setVariable"],
    );
    assert_eq!(
        taken("actions:\n  a:\n    type: ht‸\n", "http"),
        "actions:\n  a:\n    type: http\n"
    );
    offers(
        "actions:\n  a: { type: until, on_limit: ‸ }\n",
        &["fail", "continue", "pause"],
    );
    offers(
        "{\"actions\": {\"a\": {\"type\": \"http\", ‸}}}",
        &["inputs"],
    );
    let json = taken("{\"actions\": {\"a\": {\"type\": ‸}}}", "http");
    assert_eq!(json, "{\"actions\": {\"a\": {\"type\": \"http\"}}}");
    let json = taken("{\"actions\": {\"a\": {\"ty‸\": \"http\"}}}", "type");
    assert_eq!(json, "{\"actions\": {\"a\": {\"type\": \"http\"}}}");
}

#[test]
fn outputs_of_an_action_have_the_members_of_its_type() {
    for (action, member) in [
        ("type: http, uri: 'http://x.y/'", "statusCode"),
        ("type: shell, run: ls", "exitCode"),
    ] {
        let reader = "b: { type: compose, inputs: \"{{ actions.a.outputs.‸ }}\" }";
        offers(
            &format!("actions:\n  a: {{ {action} }}\n  {reader}\n"),
            &[member],
        );
    }
}

#[test]
fn every_condition_of_an_action_is_completed_as_an_expression() {
    for key in ["done", "failed", "expect", "break_when"] {
        let text = format!("actions:\n  a:\n    type: operation\n    {key}: act‸\n");
        offers(&text, &["actions"]);
    }
    let text = "actions:\n  a: { type: query, from: [1], where: ite‸ }\n";
    offers(text, &["item"]);
    let looped = "actions:\n  l:\n    type: doUntil\n    condition: \"{{ C }}\"\n    actions:\n      a: { type: compose, inputs: 1 }\n";
    offers(&looped.replace('C', "lo‸"), &["loop", "loops"]);
    offers(
        &looped.replace('C', "loop.‸"),
        &["index", "count", "result"],
    );
    offers(&looped.replace('C', "loops.‸"), &["l"]);
    spares(&looped.replace('C', "ite‸"), &["item"]);
    let outside = "actions:\n  a: { type: compose, inputs: \"{{ ‸ }}\" }\n";
    offers(outside, &["actions", "variables"]);
    spares(outside, &["loop", "loops", "item"]);
    let text = "actions:\n  a: { type: waitUntil, inputs: { until: act‸ } }\n";
    spares(text, &["actions"]);
}

#[test]
fn a_new_action_comes_with_what_it_needs() {
    let text = "actions:\n  a: { type: compose, inputs: 1 }\n  ‸\n";
    let found = completion(text);
    let until = found
        .items
        .iter()
        .find(|item| item.label == "until")
        .unwrap();
    assert!(until.snippet);
    assert!(
        until
            .insert
            .starts_with("${1:until}:\n  type: until\n  condition: $"),
        "{until:?}"
    );
    assert!(until.insert.contains("actions:\n"), "{until:?}");
}

const LOOP: &str = "
inputs: { job: { type: string, description: which job } }
variables: { status: '', n: 0 }
actions:
  poll:
    type: until
    name: Poll it
    condition: \"@equals(variables('status'), 'done')\"
    limit: { count: 9 }
    actions:
      fetch: { type: http, inputs: { method: GET, uri: \"https://example.org/@{inputs('job')}\" } }
      keep:
        type: setVariable
        name: status
        value: \"@body('fetch').status\"
  after:
    type: compose
    runAfter: { poll: [Succeeded] }
    inputs: \"HERE\"
";

fn at(expression: &str) -> String {
    LOOP.replace("HERE", expression)
}

#[test]
fn expressions_know_the_names_of_the_text() {
    offers(
        &at("@{‸}"),
        &[
            "variables('status')",
            "body('fetch')",
            "inputs('job')",
            "concat",
        ],
    );
    offers(&at("@variables('‸"), &["status", "n"]);
    offers(&at("@{variables('st‸')} is it"), &["status", "n"]);
    spares(&at("@variables('‸"), &["loopIndex", "fetch"]);
    let inside = LOOP.replace("variables('status'), 'done'", "variables('‸'), 'done'");
    offers(&inside, &["status", "loopIndex", "loopCount"]);
    offers(&at("@body('‸"), &["fetch", "poll"]);
    spares(&at("@body('‸"), &["after"]);
    offers(&at("@inputs('‸')"), &["job"]);
    offers(&at("@actions('fetch')?.‸"), &["status", "outputs", "error"]);
    offers(&at("{{ variables.‸ }}"), &["status"]);
    offers(&at("{{ n | ‸ }}"), &["upper", "tojson"]);
    offers(&at("{{ n is ‸ }}"), &["defined", "odd"]);
    spares(&at("{{ 'n ‸' }}"), &["inputs"]);
    let single = at("x").replace("\"x\"", "'@{variables(''st‸'')}'");
    assert!(taken(&single, "status").contains("'@{variables(''status'')}'"));
    assert!(taken(&at("@{conc‸}"), "concat").contains("\"@{concat($0)}\""));
    assert!(taken(&at("@conc‸('a')"), "concat").contains("\"@concat('a')\""));
    // Plain text is not an expression.
    spares(&at("an @ or ‸"), &["concat"]);
    offers(&LOOP.replace("{ poll: [Succeeded] }", "{ ‸ }"), &["poll"]);
    offers(&LOOP.replace("name: status", "name: ‸"), &["status", "n"]);
}

#[test]
fn a_text_that_is_being_typed_is_understood() {
    // The quote and the bracket are not closed, and the next line continues.
    offers(
        "variables: { n: 1 }\nactions:\n  a:\n    type: compose\n    inputs: \"@variables('‸\n  b:\n    type: compose\n",
        &["n"],
    );
    offers(
        "variables: { n: 1 }\nactions:\n  a: { type: compose, inputs: \"@{variables('‸\n  b: {}\n",
        &["n"],
    );
    offers(
        "actions:\n  a:\n    type: until\n    con‸\n    actions:\n      b: { type: compose, inputs: 1 }\n",
        &["condition"],
    );
    offers(
        "actions:\n  a:\n    type: until\n    actions:\n      b:\n        type: http\n        ‸",
        &["inputs", "retry"],
    );
    offers("actions:\n  a:\n    type: switch\n  ‸", &["http"]);
    offers(
        "{\"actions\": {\"a\": {\"type\": \"until\", \"‸",
        &["condition"],
    );
}

#[test]
fn canvases_know_nodes_and_ports() {
    let canvas = "
nodes:
  - id: coder
    type: agent
    data: { inputs: [{ name: task }], outputs: [{ name: code }], prompt: 'P' }
  - id: review
    type: loop
    data:
      continueWhile: { output: C, operator: '==', value: false }
      inlineWorkflow:
        nodes:
          - id: judge
            type: agent
            data: { inputs: [{ name: code }], outputs: [{ name: approved }], prompt: 'Q' }
edges:
  - { source: coder, target: review, sourceHandle: H }
";
    offers(
        &canvas.replace("output: C", "output: ‸"),
        &["judge.approved"],
    );
    spares(&canvas.replace("output: C", "output: ‸"), &["coder.code"]);
    offers(
        &canvas.replace("source: coder", "source: ‸"),
        &["coder", "review"],
    );
    spares(&canvas.replace("source: coder", "source: ‸"), &["judge"]);
    offers(&canvas.replace("Handle: H", "Handle: ‸"), &["output:code"]);
    offers(
        &canvas.replace("'Q'", "'{{ ‸ }}'"),
        &["code", "inputs", "iteration_count"],
    );
    offers(&canvas.replace("'P'", "'{{ inputs.‸ }}'"), &["task"]);
    offers(
        &canvas.replace("    type: loop\n", "    type: ‸\n"),
        &["loop", "agent", "shell"],
    );
    offers(
        &canvas.replace("operator: '=='", "operator: '‸'"),
        &["==", "!="],
    );
    offers(
        &canvas.replace("    data:\n", "    data:\n      ‸\n"),
        &["maxIterations", "breakWhen"],
    );
}

#[test]
fn agents_of_tea_know_their_state_and_nodes() {
    let tea = "
name: t
initial_state: { topic: x }
variables: { limit: 3 }
nodes:
  - name: draft
    uses: llm.call
    with: { prompt: 'P' }
    output: answer
  - name: again
    type: while_loop
    condition: C
    max_iterations: 3
    body:
      - name: step
        run: return {}
edges:
  - { from: draft, to: T }
";
    offers(&tea.replace("'P'", "'{{ state.‸ }}'"), &["topic", "answer"]);
    offers(&tea.replace("'P'", "'{{ variables.‸ }}'"), &["limit"]);
    offers(
        &tea.replace("condition: C", "condition: state.‸"),
        &["answer"],
    );
    offers(&tea.replace("to: T", "to: ‸"), &["again", "__end__"]);
    spares(&tea.replace("to: T", "to: ‸"), &["step", "__start__"]);
    let from = tea.replace("from: draft", "from: ‸");
    offers(&from, &["draft", "__start__"]);
    spares(&from, &["__end__"]);
    let with = |action: &str, with: &str| {
        let text = tea.replace("uses: llm.call", &format!("uses: {action}"));
        text.replace("with: { prompt: 'P' }", &format!("with:\n      {with}"))
    };
    offers(&with("llm.call", "prompt: x\n      ‸"), &["model"]);
    spares(&with("llm.call", "prompt: x\n      ‸"), &["prompt", "url"]);
    offers(&with("http_get", "‸"), &["url", "headers"]);
    offers(&with("memory.store", "k‸"), &["key", "namespace"]);
    offers(&with("retry.loop", "correct: ‸"), &["draft", "again"]);
    spares(&with("retry.loop", "correct: ‸"), &["__end__"]);
    offers(
        &tea.replace("    max_iterations: 3\n", "    ‸\n"),
        &["max_iterations"],
    );
}

fn hover_text(text: &str) -> String {
    let (bundle, at, _) = marked(text);
    hover(&bundle, None, at, None)
        .map(|hover| hover.text)
        .unwrap_or_default()
}

#[test]
fn hovers_tell_what_keys_names_and_functions_are() {
    assert!(
        hover_text(&LOOP.replace("    condition:", "    cond‸ition:")).starts_with("condition")
    );
    let function = hover_text(&LOOP.replace("@equals(", "@equ‸als("));
    assert!(function.starts_with("equals(left, right)"), "{function}");
    assert!(
        function.contains("equals(1, 1.0) returns true"),
        "{function}"
    );
    assert_eq!(
        hover_text(&LOOP.replace("body('fetch')", "body('fe‸tch')")),
        "fetch: http\nin a run: poll/fetch"
    );
    assert_eq!(
        hover_text(&LOOP.replace("  poll:\n", "  po‸ll:\n")),
        "poll: until\nPoll it"
    );
    assert_eq!(
        hover_text(&LOOP.replace("{inputs('job')}", "{inputs('jo‸b')}")),
        "input job: string\nwhich job"
    );
    assert!(
        hover_text(&at("{{ n | up‸per }}")).starts_with("upper\nfor example {{ 'ab' | upper }}")
    );
    assert_eq!(hover_text(&at("plain te‸xt")), "");
}

#[test]
fn symbols_are_the_actions_one_in_the_other() {
    let found = symbols(&Bundle::single("w.yaml", LOOP), None, None);
    let show = |symbol: &Symbol| format!("{} {} {}", symbol.name, symbol.kind, symbol.path);
    assert_eq!(
        found.iter().map(show).collect::<Vec<_>>(),
        ["poll loop poll", "after compute after"]
    );
    let inner: Vec<_> = found[0].children.iter().map(show).collect();
    assert_eq!(inner, ["fetch action poll/fetch", "keep set poll/keep"]);
    assert_eq!(
        found[0].selection.start,
        Position {
            line: 4,
            character: 2
        }
    );
    // The same in a text with mistakes.
    let wrong = LOOP.replace("HERE\"", "@{");
    let wrong = symbols(&Bundle::single("w.yaml", wrong), None, None);
    assert_eq!(
        wrong.iter().map(show).collect::<Vec<_>>(),
        found.iter().map(show).collect::<Vec<_>>()
    );
}

/// Every file in these folders.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => left.push(path),
                Some("yaml" | "yml" | "json") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// A pseudo-random number, the same in every run of the tests.
fn number(seed: &mut u64, below: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below.max(1)
}

#[test]
fn nothing_panics_on_broken_texts() {
    let mut seed = 7;
    let mut requests = 0;
    for path in files(&["examples", "tests/diagnostics", "tests/tea", "tests/canvas"]) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if text.len() > 20_000 {
            continue;
        }
        let chars: Vec<char> = text.chars().collect();
        for _ in 0..sized(4, 1) {
            let mut broken = chars.clone();
            let from = number(&mut seed, broken.len());
            let to = (from + number(&mut seed, 12)).min(broken.len());
            let signs = [
                "", "{", "\"", "'", "]", ":", "- ", "\n", "@{", "{{ ", "  ", "|", "ü😀", "\r\n",
                "\t",
            ];
            broken.splice(from..to, signs[number(&mut seed, signs.len())].chars());
            if number(&mut seed, 3) == 0 {
                broken.truncate(from + 3);
            }
            let broken: String = broken.into_iter().collect();
            let lines = Lines::new(&broken);
            let bundle = Bundle::single("w.yaml", broken.clone());
            for place in [from, from + 1, number(&mut seed, broken.len())] {
                let mut at = lines.position(0);
                at.line = lines.position(place.min(broken.len())).line;
                at.character = number(&mut seed, 40) as u32;
                for format in [None, Some(Dialect::Azure.into())] {
                    let found = complete(&bundle, format, at);
                    let bytes = lines.bytes(found.range);
                    assert!(broken.get(bytes).is_some());
                    let _ = hover(&bundle, format, at, None);
                    requests += 1;
                }
            }
            let _ = symbols(&bundle, None, None);
        }
    }
    assert!(requests > 1000, "{requests}");
}

#[test]
fn every_fix_puts_its_mistake_right() {
    let mut fixed = 0;
    let mut wrong = Vec::new();
    for path in files(&["tests/diagnostics"]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bundle = Bundle::single(name, text);
        let (_, found) = windlass_formats::read(&bundle, None, &Caps::default());
        let content = bundle.files[0].content();
        let lines = Lines::new(content);
        for one in found.sorted() {
            for fix in one.fixes(&lines) {
                let new = edited(content, &fix.edits).unwrap();
                let bundle = Bundle::single(name, new);
                let (_, after) = windlass_formats::read(&bundle, None, &Caps::default());
                let same = |left: &&windlass_source::diagnostic::Diagnostic| {
                    (left.code, &left.message) == (one.code, &one.message) && left.span == one.span
                };
                if let Some(left) = after.sorted().into_iter().find(same) {
                    wrong.push(format!("{name}: {} leaves {}", fix.title, left.message));
                }
                fixed += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(fixed >= 25, "only {fixed} fixes");
}

#[test]
fn a_fix_changes_the_name_behind_its_kind_of_reference() {
    for (before, after) in [
        (
            "@add(outputs('total'),variables('total'))",
            "@add(outputs('total'),variables('total1'))",
        ),
        (
            "@add(outputs('total'),variables( 'total' ))",
            "@add(outputs('total'),variables( 'total1' ))",
        ),
        (
            "{{ actions.total.outputs + variables.total }}",
            "{{ actions.total.outputs + variables.total1 }}",
        ),
        (
            "{{ actions['total'].outputs + variables['total'] }}",
            "{{ actions['total'].outputs + variables['total1'] }}",
        ),
        (
            "{{ variables.total1 + variables.total }}",
            "{{ variables.total1 + variables.total1 }}",
        ),
    ] {
        let file = |inputs: &str| {
            format!(
                "variables: {{ total1: 1 }}\nactions:\n  total: {{ type: compose, inputs: 1 }}\n  sum:\n    \
                 type: compose\n    runAfter: {{ total: [Succeeded] }}\n    inputs: \"{inputs}\"\n"
            )
        };
        let bundle = Bundle::single("w.yaml", file(before));
        let (_, found) = windlass_formats::read(&bundle, None, &Caps::default());
        let lines = Lines::new(bundle.files[0].content());
        let found = found.sorted();
        let mut fixes = found.iter().flat_map(|one| one.fixes(&lines));
        let fix = fixes.next().unwrap_or_else(|| panic!("{before}: no fix"));
        let new = edited(bundle.files[0].content(), &fix.edits).unwrap();
        assert_eq!(new, file(after));
    }
}

#[test]
fn every_function_has_a_signature_and_an_example() {
    for (name, min, max) in wdl_arities() {
        let function = wdl_functions()
            .iter()
            .find(|function| function.name == name);
        let function = function.unwrap_or_else(|| panic!("{name} has no hover text"));
        assert!(
            !function.example.is_empty() && !function.gives.is_empty(),
            "{name}"
        );
        let inside = function
            .signature
            .split_once('(')
            .unwrap()
            .1
            .trim_end_matches(')');
        let parameters: Vec<&str> = inside.split(", ").filter(|one| !one.is_empty()).collect();
        let needed = parameters.iter().filter(|one| !one.ends_with('?')).count();
        let most = match inside.contains('…') {
            true => usize::MAX,
            false => parameters.len(),
        };
        assert_eq!((needed, most), (min, max), "{}", function.signature);
    }
    assert_eq!(wdl_functions().len(), wdl_arities().count());
    let context = Context::new(&Value::Null, Default::default(), 1).unwrap();
    for (kind, function) in jinja_functions() {
        let value = context.evaluate(Subject::Template, &Value::text(function.example));
        assert!(value.is_ok(), "{}: {value:?}", function.example);
        if kind == JinjaKind::Test {
            assert!(matches!(value, Ok(Value::Bool(_))), "{}", function.example);
        }
    }
}

/// Definitions of Logic Apps have keys and types of their own, and are JSON.
#[test]
fn a_definition_is_completed() {
    let file = |action: &str| format!("{{\"definition\":{{\"actions\":{{{action}}}}}}}");
    for (action, wanted) in [
        (
            r#""A":{"‸"}"#,
            &["type", "runAfter", "runtimeConfiguration"][..],
        ),
        (r#""A":{"type":"‸"}"#, &["Http", "Foreach", "ApiConnection"]),
        (
            r#""A":{"type":"Http","inputs":{"‸"}}"#,
            &["method", "uri", "retryPolicy"],
        ),
        (
            r#""A":{"type":"until","limit":{"‸"}}"#,
            &["count", "timeout"],
        ),
        (
            r#""B":{},"A":{"type":"Http","runAfter":{"B":["‸"]}}"#,
            &["Succeeded", "TimedOut"],
        ),
        (
            r#""A":{"type":"If","else":{"actions":{"B":{"type":"‸"}}}}"#,
            &["Compose"],
        ),
    ] {
        offers(&file(action), wanted);
    }
    spares(
        &file(r#""A":{"type":"Http","‸"}"#),
        &["retry", "break_when"],
    );
    offers(
        "{\"definition\":{\"‸\"}}",
        &["triggers", "parameters", "outputs"],
    );
    for (before, after) in [
        ("‸", r#""B": ["Succeeded"]"#),
        (r#""‸""#, r#""B""#),
        (r#""B‸":["Failed"]"#, r#""B":["Failed"]"#),
    ] {
        let action = |name: &str| {
            file(&format!(
                r#""B":{{}},"A":{{"type":"Http","runAfter":{{{name}}}}}"#
            ))
        };
        assert_eq!(taken(&action(before), "B"), action(after));
    }
    for (before, after) in [("‸", "b: [Succeeded]"), ("\"‸\"", "\"b\"")] {
        let action = |name: &str| {
            format!(
                "actions:\n  b: {{ type: http }}\n  a:\n    type: http\n    runAfter: {{ {name} }}\n"
            )
        };
        assert_eq!(taken(&action(before), "b"), action(after));
    }
    let text = "{\"definition\":{\"actions\":{\n‸\n}}}";
    let new = "{\n\"${1:Compose}\": {\n  \"type\": \"Compose\",\n  \"inputs\": $2\n}\n}";
    assert!(
        taken(text, "Compose").contains(new),
        "{}",
        taken(text, "Compose")
    );
    let (bundle, at, _) = marked(&file(r#""A":{"type":"Until","li‸mit":{}}"#));
    let hovered = hover(&bundle, None, at, None).unwrap();
    assert!(hovered.text.contains("when it ends"), "{hovered:?}");
}
