//! What expressions read at their place in a run: members that no other test covers.

use super::play::{Answer, Case, failure, ok};
use windlass_machine::RunStatus;
use windlass_model::model::Fault;
use windlass_source::source::Bundle;

fn azure(actions: &str, outputs: &str) -> Case {
    Case::yaml(&definition(actions, outputs))
}

fn definition(actions: &str, outputs: &str) -> String {
    format!(
        r#"{{
  "$schema": "https://schema.management.azure.com/providers/Microsoft.Logic/schemas/2016-06-01/workflowdefinition.json#",
  "contentVersion": "1.0.0.0",
  "triggers": {{ "manual": {{ "type": "Request", "kind": "Http" }} }},
  "actions": {{ {actions} }},
  "outputs": {{ "all": {{ "type": "Object", "value": {outputs} }} }}
}}"#
    )
}

const CALL: &str = r#""call": { "type": "Http", "runAfter": {},
    "inputs": { "method": "GET", "uri": "http://x", "retryPolicy": { "type": "none" } } }"#;

/// The names are those of .NET, because `code` is what `HttpStatusCode` prints in Logic Apps.
#[test]
fn the_code_of_an_action_is_the_name_of_its_status() {
    let names = [
        (200, "OK"),
        (201, "Created"),
        (202, "Accepted"),
        (204, "NoContent"),
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (405, "MethodNotAllowed"),
        (406, "NotAcceptable"),
        (408, "RequestTimeout"),
        (409, "Conflict"),
        (410, "Gone"),
        (412, "PreconditionFailed"),
        (413, "RequestEntityTooLarge"),
        (415, "UnsupportedMediaType"),
        (422, "UnprocessableEntity"),
        (429, "TooManyRequests"),
        (500, "InternalServerError"),
        (501, "NotImplemented"),
        (502, "BadGateway"),
        (503, "ServiceUnavailable"),
        (504, "GatewayTimeout"),
        // A status without a name has the action's result as its code.
        (299, "OK"),
    ];
    for (code, name) in names {
        let case = azure(CALL, r#""@actions('call')['code']""#);
        let answer = format!(r#"{{"statusCode":{code}}}"#);
        let played = case.world(move |_| ok(&answer)).play();
        assert_eq!(played.output(), format!(r#"{{"all":"{name}"}}"#));
    }
}

#[test]
fn the_code_of_a_failure_is_its_own() {
    let codes = |fault: Option<&'static str>| {
        let after = r#""after": { "type": "Compose", "inputs": "@actions('call')['code']",
            "runAfter": { "call": ["Failed"] } }"#;
        let case = azure(&format!("{CALL}, {after}"), r#""@outputs('after')""#);
        let mut failed = Fault::new("it", "broke");
        failed.code = fault.map(Into::into);
        case.world(move |_| failure(failed.clone())).play().output()
    };
    assert_eq!(codes(Some("EHOSTDOWN")), r#"{"all":"EHOSTDOWN"}"#);
    assert_eq!(codes(None), r#"{"all":"ActionFailed"}"#);
}

#[test]
fn the_code_of_a_scope_is_not_that_of_what_failed_inside() {
    let scope = format!(
        r#""scope": {{ "type": "Scope", "actions": {{ {CALL} }}, "runAfter": {{}} }},
        "after": {{ "type": "Compose", "inputs": "@actions('scope')['code']",
            "runAfter": {{ "scope": ["Failed"] }} }}"#
    );
    let case = azure(&scope, r#""@outputs('after')""#);
    let mut failed = Fault::new("it", "broke");
    failed.code = Some("500".into());
    let played = case.world(move |_| failure(failed.clone())).play();
    assert_eq!(played.output(), r#"{"all":"ActionFailed"}"#);
}

#[test]
fn a_definition_finds_its_place_in_azure() {
    let seen = r#""@concat(split(workflow()['id'], '/')[4], ' ', last(split(workflow()['run']['id'], '/')),
        ' ', workflow()['location'])""#;
    let played = azure(CALL, seen).world(|_| ok("{}")).play();
    assert_eq!(played.output(), r#"{"all":"group run westeurope"}"#);
    // As Power Automate exports it.
    let seen = r#""@concat(workflow()['name'], ' ', workflow()['tags']['flowDisplayName'],
        ' ', workflow()['location'])""#;
    let exported = format!(
        r#"{{ "name": "f00d", "location": "eastus",
            "properties": {{ "displayName": "Daily orders", "definition": {} }} }}"#,
        definition(CALL, seen)
    );
    let played = Case::yaml(&exported).world(|_| ok("{}")).play();
    assert_eq!(played.output(), r#"{"all":"f00d Daily orders eastus"}"#);
}

#[test]
fn the_caller_has_the_first_response() {
    let twice = r#""one": { "type": "Response", "runAfter": {}, "inputs": { "statusCode": 200, "body": 1 } },
        "two": { "type": "Response", "runAfter": { "one": ["Succeeded"] },
            "inputs": { "statusCode": 400, "body": 2 } }"#;
    let played = azure(twice, "3").play();
    assert_eq!(played.output(), r#"{"statusCode":200,"body":1}"#);
}

/// The result of a foreach once contained the whole array for every item.
#[test]
fn the_result_of_an_append_is_what_was_appended() {
    let actions = r#""init": { "type": "InitializeVariable", "runAfter": {},
            "inputs": { "variables": [{ "name": "all", "type": "array" }] } },
        "each": { "type": "Foreach", "foreach": "@range(0, 3)", "runAfter": { "init": ["Succeeded"] },
            "actions": { "add": { "type": "AppendToArrayVariable", "runAfter": {},
                "inputs": { "name": "all", "value": "@item()" } } } }"#;
    let played = azure(actions, r#"["@outputs('each')", "@variables('all')"]"#).play();
    assert_eq!(
        played.output(),
        r#"{"all":[[{"add":0},{"add":1},{"add":2}],[0,1,2]]}"#
    );
}

#[test]
fn a_result_that_could_hardly_be_read_again_fails_the_run() {
    let mut text = String::from(
        "actions:\n  big: { type: compose, inputs: \"@join(range(0, 100000), 'xxxxx')\" }\noutputs:\n",
    );
    for index in 0..400 {
        text.push_str(&format!("  o{index}: \"@outputs('big')\"\n"));
    }
    let message = "too_large: the result of the run is larger than 256 MiB: choose with `outputs` what it \
         returns";
    assert!(Case::yaml(&text).play().error().starts_with(message));
}

#[test]
fn an_action_that_was_skipped_is_seen_as_skipped() {
    let branches = r#""which": { "type": "If", "expression": "@equals(1, 2)", "runAfter": {},
        "actions": { "inner": { "type": "Compose", "inputs": 1, "runAfter": {} } } },
        "scope": { "type": "Scope", "runAfter": { "which": ["Succeeded"] }, "actions": {
            "one": { "type": "Compose", "inputs": 1, "runAfter": {} },
            "two": { "type": "Compose", "inputs": 2, "runAfter": { "one": ["Failed"] } } } }"#;
    let seen = |outputs: &str| azure(branches, outputs).play().output();
    let of = |place: &str| {
        let field = |name: &str| format!("\"@{place}['{name}']\"");
        let fields = ["name", "status", "code", "outputs"].map(field);
        seen(&format!("[{}]", fields.join(",")))
    };
    // An action that its branch did not reach, and one whose predecessors ended with another status than it accepts.
    assert_eq!(
        of("actions('inner')"),
        r#"{"all":["inner","Skipped","ActionSkipped",null]}"#
    );
    assert_eq!(
        of("result('scope')[1]"),
        r#"{"all":["two","Skipped","ActionSkipped",null]}"#
    );
    assert_eq!(
        of("result('which')[0]"),
        r#"{"all":["inner","Skipped","ActionSkipped",null]}"#
    );
    assert_eq!(
        of("result('scope')[0]"),
        r#"{"all":["one","Succeeded","OK",1]}"#
    );
}

#[test]
fn an_action_is_seen_with_all_that_is_known_of_it() {
    let played = Case::yaml(
        "
actions:
  call: { type: shell, run: x }
  look: { type: compose, inputs: \"@actions('call')\" }
outputs: \"@outputs('look')\"
",
    )
    .world(|_| ok("7").after(5))
    .play();
    assert_eq!(
        played.output(),
        concat!(
            r#"{"name":"call","status":"Succeeded","code":"OK","inputs":{"run":"x"},"outputs":7,"#,
            r#""error":null,"startTime":"2023-11-14T22:13:20.000Z","#,
            r#""endTime":"2023-11-14T22:13:25.000Z","trackingId":"run/a0","#,
            r#""clientTrackingId":"run"}"#
        )
    );
}

#[test]
fn a_loop_is_seen_with_when_it_began() {
    let played = Case::yaml(
        "
variables: { seen: [] }
actions:
  pause: { type: wait, interval: PT1M }
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 2)\"
    delay: PT1S
    actions:
      see:
        type: appendToArrayVariable
        name: seen
        value: \"{{ loop.started_at }} {{ loop.count }} {{ loops.poll.started_at }}\"
      time: { type: appendToArrayVariable, name: seen, value: \"@variables('loopStartTime')\" }
outputs: \"@variables('seen')\"
",
    )
    .play();
    let at = "2023-11-14T22:14:20.000Z";
    assert_eq!(
        played.output(),
        format!(r#"["{at} 1 {at}","{at}","{at} 2 {at}","{at}"]"#)
    );
}

#[test]
fn a_step_sees_itself_while_it_runs() {
    let seen = Case::yaml(
        "
actions:
  me: { type: compose, inputs: [\"@action()['name']\", \"@action()['status']\"] }
outputs: \"@outputs('me')\"
",
    )
    .play();
    assert_eq!(seen.output(), r#"["me","Running"]"#);
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
    let error = |expression: &str| {
        let text = format!(
            "
variables: {{ count: 1 }}
actions:
  which:
    type: if
    condition: \"@equals(1, 1)\"
    actions: {{ fetch: {{ type: compose, inputs: 1 }} }}
  look: {{ type: compose, inputs: \"@{expression}\" }}
"
        );
        Case::yaml(&text).play().error()
    };
    let cases = [
        ("variables", "counr", "variable", "did you mean `count`?"),
        // The place is not inside a loop.
        ("variables", "xyz", "variable", "the only one is `count`"),
        ("outputs", "fetcg", "action", "did you mean `fetch`?"),
        ("outputs", "xyz", "action", "there are which, fetch, look"),
    ];
    for (function, name, what, hint) in cases {
        let (a, b) = name.split_at(2);
        let message = error(&format!("{function}(concat('{a}', '{b}'))"));
        let expected = format!("expression: unknown {what} `{name}`; {hint} in ");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_wait_counts_in_every_unit() {
    let units = [
        ("millisecond", 1_i64),
        ("second", 1_000),
        ("minute", 60_000),
        ("hour", 3_600_000),
        ("day", 86_400_000),
        ("week", 604_800_000),
    ];
    for (unit, ms) in units {
        for spelled in [unit.to_owned(), format!("{unit}s"), unit.to_uppercase()] {
            let text = format!(
                "
variables: {{ long: {{ count: 3, unit: {spelled} }} }}
actions: {{ a: {{ type: wait, interval: \"@variables('long')\" }} }}
"
            );
            assert_eq!(Case::yaml(&text).play().took_ms(), 3 * ms, "{spelled}");
        }
    }
}

/// In Loom a case is written as a key; in Logic Apps it is a value with a type.
#[test]
fn a_case_that_is_text_is_no_number_in_logic_apps() {
    let taken = |case: &str, on: &str| {
        let text = format!(
            r#""pick": {{ "type": "Switch", "expression": "{on}", "runAfter": {{}},
    "cases": {{ "one": {{ "case": {case},
        "actions": {{ "hit": {{ "type": "Compose", "inputs": "hit", "runAfter": {{}} }} }} }} }},
    "default": {{ "actions": {{ "miss": {{ "type": "Compose", "inputs": "miss", "runAfter": {{}} }} }} }} }}"#
        );
        azure(&text, r#""@coalesce(outputs('hit'), outputs('miss'))""#)
            .play()
            .output()
    };
    assert_eq!(taken("\"1\"", "@int('1')"), r#"{"all":"miss"}"#);
    assert_eq!(taken("1", "@int('1')"), r#"{"all":"hit"}"#);
    assert_eq!(taken("\"1\"", "@string(1)"), r#"{"all":"hit"}"#);
}

/// A key is a path of printable ASCII. Other bytes are escaped, and so is the escape character.
#[test]
fn no_two_steps_have_one_key() {
    let keys = |name: &str| {
        let text = format!("actions: {{ \"{name}\": {{ type: shell, run: x }} }}");
        let played = Case::yaml(&text).play();
        let keys = played.keys();
        keys.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys("50% ä~!"), ["run/50%25%20%C3%A4~!"]);
    assert_eq!(keys("50%20"), ["run/50%2520"]);
}

/// In TEA `env` is the environment, whatever the state contains; elsewhere a variable has precedence.
#[test]
fn env_is_the_environment() {
    let tea = Case::yaml(
        "
name: t
initial_state: { env: { HOME: of the state } }
nodes:
  - { name: a, uses: setVariable, with: { name: seen, value: \"{{ env.HOME }}\" } }
edges:
  - { from: __start__, to: a }
  - { from: a, to: __end__ }
",
    )
    .environment(r#"{"HOME": "of the environment"}"#);
    let seen = tea.play().output();
    assert!(seen.contains(r#""seen":"of the environment""#), "{seen}");
    let loom = Case::yaml(
        "
variables: { home: of the variable }
actions: { a: { type: compose, inputs: \"{{ env.HOME }}, {{ home }}\" } }
outputs: \"@concat(outputs('a'), ', ', env('HOME'))\"
",
    )
    .environment(r#"{"HOME": "of the environment"}"#);
    let seen = "\"of the environment, of the variable, of the environment\"";
    assert_eq!(loom.play().output(), seen);
}

/// Only an action inside a block that has ended can count as skipped.
#[test]
fn an_action_that_has_not_run_is_none_that_was_skipped() {
    let error = |actions: &str| azure(actions, "1").play().error();
    let which = r#""which": { "type": "If", "expression": "@equals(1, 2)", "runAfter": {},
        "actions": { "inner": { "type": "Compose", "inputs": 1, "runAfter": {} } } }"#;
    let look = |name: &str, after: &str| {
        let (a, b) = name.split_at(1);
        format!(
            r#""look": {{ "type": "Compose", "inputs": "@outputs(concat('{a}', '{b}'))",
            "runAfter": {{ "{after}": ["Succeeded"] }} }}"#
        )
    };
    let later = r#""later": { "type": "Scope", "runAfter": { "look": ["Succeeded"] }, "actions": {
        "last": { "type": "Compose", "inputs": 1, "runAfter": {} } } }"#;
    for name in ["later", "last"] {
        let message = error(&format!("{which}, {}, {later}", look(name, "which")));
        let expected = format!("expression: the action `{name}` has not run");
        assert!(message.starts_with(&expected), "{message}");
    }
    // The results of a foreach's items are a list after the foreach has ended.
    let each = r#""each": { "type": "Foreach", "foreach": [1], "runAfter": {},
        "actions": { "inner": { "type": "Compose", "inputs": 1, "runAfter": {} } } }"#;
    let actions = format!("{each}, {}", look("inner", "each"));
    let listed = azure(&actions, r#""@outputs('look')""#).play();
    assert_eq!(listed.output(), r#"{"all":[1]}"#);
}

#[test]
fn the_result_of_a_foreach_has_what_each_item_did() {
    let played = Case::yaml(
        "
actions:
  each:
    type: foreach
    foreach: [4, 5]
    actions:
      inner: { type: scope, actions: { a: { type: compose, inputs: \"@item()\" } } }
outputs: [\"@result('each')[0]['outputs']\", \"@result('each')[1]['outputs']\"]
",
    )
    .play();
    assert_eq!(played.output(), r#"[{"a":4},{"a":5}]"#);
}

#[test]
fn a_name_close_to_a_root_gets_a_suggestion() {
    let refused = |text: &str| {
        let text = format!(
            "{{ variables: {{ topic: x }}, actions: {{ a: {{ type: compose, inputs: \"{text}\" }} }} }}"
        );
        let bundle = Bundle::single("w.yaml", text);
        let (workflow, found) =
            windlass_formats::read(&bundle, None, &windlass_formats::Caps::unlimited());
        assert!(workflow.is_none());
        found.render(&bundle, false)
    };
    for (nearly, root) in [
        ("variabels", "variables"),
        ("workflw", "workflow"),
        ("stata", "state"),
        ("lops", "loops"),
        ("topc", "topic"),
    ] {
        let found = refused(&format!("{{{{ {nearly}.x }}}}"));
        let hint = format!("did you mean `{root}`?");
        assert!(found.contains(&format!("called `{nearly}`")), "{found}");
        assert!(found.contains(&hint), "{found}");
    }
}

/// The former as in StrictUndefined, the latter as in The Edge Agent.
#[test]
fn what_a_value_lacks_is_a_mistake_in_loom_and_nothing_in_tea() {
    let loom = |text: &str| {
        let variables = "variables: { topic: { known: 1 } }";
        let text =
            format!("{{ {variables}, actions: {{ a: {{ type: compose, inputs: \"{text}\" }} }} }}");
        Case::yaml(&text).play()
    };
    let message = loom("{{ topic.lacks }}").error();
    assert!(
        message.contains("`topic.lacks` is not defined"),
        "{message}"
    );
    assert_eq!(
        loom("{{ topic.known }} {{ state.lacks | default('') }}").status(),
        RunStatus::Succeeded
    );
    let tea = Case::yaml(
        "
name: lacks
initial_state: { topic: { known: 1 } }
nodes:
  - { name: say, uses: shell, with: { run: \"echo {{ topic.known }} {{ topic.lacks }} {{ state.lacks }}\" } }
",
    );
    let played = tea.play();
    let script = played.started[0]
        .request
        .inputs
        .get("run")
        .unwrap()
        .to_json();
    assert_eq!(script, r#""echo 1 None None""#);
}

#[test]
fn the_body_of_what_has_none_is_null_in_logic_apps() {
    let one = r#""one": { "type": "Compose", "inputs": { "a": 1 }, "runAfter": {} }"#;
    let two = r#""two": { "type": "Compose", "inputs": { "body": 2 }, "runAfter": {} }"#;
    let case = azure(
        &format!("{one}, {two}"),
        r#"["@body('one')", "@body('two')"]"#,
    );
    assert_eq!(case.play().output(), r#"{"all":[null,2]}"#);
}

/// Inputs with a secret are evaluated twice, and both evaluations draw the same random numbers, whatever was drawn
/// before them in the same step.
#[test]
fn a_secret_and_a_random_number_go_together() {
    let played = Case::yaml(
        "
actions:
  first: { type: compose, inputs: \"@guid()\" }
  send: { type: shell, run: \"@{secret('TOKEN')} @{guid()} @{guid()}\" }
",
    )
    .play();
    assert_eq!(played.calls("send"), 1);
    let request = played.started[0].request.inputs.to_json();
    assert!(request.len() > 2 * 36, "{request}");
}

#[test]
fn a_variable_that_ends_as_one_of_a_loop_is_none() {
    let error = |name: &str| {
        let (a, b) = name.split_at(1);
        let text = format!(
            "
actions:
  poll:
    type: until
    condition: \"@equals(variables('loopIndex'), 1)\"
    actions: {{ a: {{ type: compose, inputs: \"@variables(concat('{a}', '{b}'))\" }} }}
"
        );
        Case::yaml(&text).play().error()
    };
    for name in ["pollLoopIndex", "other_loopIndex", "xloopCount"] {
        let message = error(name);
        let expected = format!("unknown variable `{name}`");
        assert!(message.contains(&expected), "{message}");
    }
}

/// A step that depends on a scope sees how the scope ended: a scope whose time ran out has failed.
#[test]
fn what_follows_a_scope_asks_how_the_scope_ended() {
    let scope = r#""scope": { "type": "Scope", "runAfter": {}, "actions": {
        "slow": { "type": "Http", "runAfter": {}, "limit": { "timeout": "PT10S" },
            "inputs": { "method": "GET", "uri": "http://x", "retryPolicy": { "type": "none" } } } } }"#;
    let ran = |status: &str| {
        let after = format!(
            r#""after": {{ "type": "Compose", "inputs": "ran", "runAfter": {{ "scope": ["{status}"] }} }}"#
        );
        let case = azure(
            &format!("{scope}, {after}"),
            r#""@actions('after')['status']""#,
        );
        case.world(|_| Answer::Never).play()
    };
    assert_eq!(ran("Failed").output(), r#"{"all":"Succeeded"}"#);
    assert!(ran("TimedOut").error().contains("timeout"));
}

/// An event names its foreach item, so its key need not be parsed.
#[test]
fn the_ends_of_a_concurrent_foreach_say_which_item_they_are_of() {
    let played = Case::yaml(
        "
actions:
  each:
    type: foreach
    foreach: [1, 2, 3]
    concurrency: 3
    actions: { a: { type: shell, run: x } }
",
    )
    .world(|call| ok("1").after(3 - call.n as u64))
    .play();
    let story = played.story();
    let ends: Vec<&str> = story
        .iter()
        .filter_map(|line| line.strip_prefix("ActionEnded node_name=\"a\" "))
        .collect();
    let end = |item: u32| {
        format!("status=\"Succeeded\" error=null attempt=1 path=\"each\" iteration={item}")
    };
    assert_eq!(ends, [end(2), end(1), end(0)]);
}
