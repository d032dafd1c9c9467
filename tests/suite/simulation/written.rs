//! Workflows generated from a seed, as files of The Edge Agent and canvases. These formats produce reflections,
//! corrections, fan-in, sessions, previous outputs and maps, which [`super::author`] would not generate.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windlass_model::hir::{Block, Step, StepKind, Workflow};
use windlass_model::model::Dialect;
use windlass_source::source::Bundle;

/// A workflow of one of the two formats.
pub fn workflow(seed: u64) -> Workflow {
    let mut random = StdRng::seed_from_u64(seed);
    let (dialect, text) = match random.random_range(0..2) {
        0 => (Dialect::Tea, agent(&mut random)),
        _ => (Dialect::Canvas, canvas(&mut random)),
    };
    let bundle = Bundle::single("written.yaml", text.as_str());
    let (workflow, mistakes) =
        windlass_formats::read(&bundle, Some(dialect), &windlass_formats::Caps::unlimited());
    let mut workflow =
        workflow.unwrap_or_else(|| panic!("{}\n{text}", mistakes.render(&bundle, false)));
    rename_runners(&mut workflow.body);
    workflow
}

/// An executor of the simulation cannot replace runners, so they get another name.
fn rename_runners(block: &mut Block) {
    let steps: Vec<&mut Step> = match block {
        Block::Sequence(steps) => steps.iter_mut().collect(),
        Block::Dag(steps) => steps.iter_mut().map(|step| &mut step.step).collect(),
        Block::Graph(graph) => graph.nodes.iter_mut().map(|node| &mut node.step).collect(),
    };
    for step in steps {
        match &mut step.kind {
            StepKind::Call(call) if &*call.executor == "runner" => call.executor = "agent".into(),
            StepKind::Block(inner) => rename_runners(inner),
            StepKind::Loop(spec) => rename_runners(&mut spec.body),
            StepKind::ForEach(spec) => rename_runners(&mut spec.body),
            _ => {}
        }
    }
}

fn one<'a>(random: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[random.random_range(0..from.len())]
}

// ── The Edge Agent ──────────────────────────────────────────────────────────────────────────────

/// A few nodes in sequence; then branches that join, or an edge back.
fn agent(random: &mut StdRng) -> String {
    let count = random.random_range(1..4);
    let kinds = [while_loop, reflection, retry, plain];
    let mut nodes: String = (0..count)
        .map(|n| kinds[random.random_range(0..4)](random, &format!("n{n}")))
        .collect();
    let mut edges = String::from("  - { from: __start__, to: n0 }\n");
    for n in 1..count {
        let back = format!(
            "  - {{ from: n{}, to: n0, condition: \"state.get('n', 0) in [1, 2]\" }}\n",
            n - 1
        );
        if random.random_range(0..3) == 0 {
            edges += &back;
        }
        edges += &format!("  - {{ from: n{}, to: n{n} }}\n", n - 1);
    }
    let last = count - 1;
    if random.random_range(0..2) == 0 {
        nodes += &format!(
            "{}{}  - {{ name: join, fan_in: true, language: lua, run: \"return 1\" }}\n",
            plain(random, "left"),
            kinds[random.random_range(0..4)](random, "right"),
        );
        for branch in ["left", "right"] {
            edges +=
                &format!("  - {{ from: n{last}, to: {branch}, type: parallel, fan_in: join }}\n");
            edges += &format!("  - {{ from: {branch}, to: join }}\n");
        }
        edges += "  - { from: join, to: __end__ }\n";
    } else {
        edges += &format!("  - {{ from: n{last}, to: __end__ }}\n");
    }
    let steps = random.random_range(6..20);
    format!(
        "name: agent\ninitial_state: {{ n: 0, m: 0 }}\nsettings: {{ max_steps: {steps} }}\nnodes:\n{nodes}  \
         - {{ name: fix, language: lua, run: \"return 2\", output: m }}\nedges:\n{edges}"
    )
}

fn plain(random: &mut StdRng, name: &str) -> String {
    let what = one(
        random,
        &[
            "language: lua, run: \"return 1\", output: n",
            "language: lua, run: \"return 1\"",
            "uses: http.get, with: { url: \"http://outside/{{ state.n }}\" }, output: n",
            "uses: wait, with: { interval: PT3S }",
            "uses: wait, with: { interval: PT20S }",
            "run: { type: expression, value: \"{{ {'n': state.n + 1} }}\" }",
        ],
    );
    format!("  - {{ name: {name}, {what} }}\n")
}

fn while_loop(random: &mut StdRng, name: &str) -> String {
    let most = random.random_range(1..5);
    let until = random.random_range(0..7);
    let body = plain(random, "ask").replace("  - ", "      - ");
    let then = plain(random, "then").replace("  - ", "      - ");
    format!(
        "  - name: {name}\n    type: while_loop\n    max_iterations: {most}\n    \
         condition: \"state.n != {until}\"\n    body:\n{body}{then}"
    )
}

fn reflection(random: &mut StdRng, name: &str) -> String {
    let rounds = random.random_range(1..5);
    let failure = one(random, &["return_best", "return_last", "raise"]);
    let corrector = match random.random_range(0..3) {
        0 => "",
        _ => "      corrector: { language: lua, run: \"return 1\" }\n",
    };
    let evaluator = one(
        random,
        &[
            "{ type: custom, language: lua, run: \"return 1\" }",
            "{ type: custom, language: lua, run: \"return 1\" }",
            "{ type: schema, schema: { type: integer, minimum: 3 } }",
        ],
    );
    format!(
        "  - name: {name}\n    uses: reflection.loop\n    with:\n      \
         generator: {{ language: lua, run: \"return state.n\" }}\n      evaluator: {evaluator}\n{corrector}      \
         max_iterations: {rounds}\n      on_failure: {failure}\n    output: {{ n: \"{{{{ result.reflection_iteration }}}}\" }}\n"
    )
}

fn retry(random: &mut StdRng, name: &str) -> String {
    let retries = random.random_range(0..4);
    let delay = random.random_range(0..4);
    format!(
        "  - name: {name}\n    uses: retry.loop\n    with:\n      validate: http.get\n      \
         validate_args: {{ url: \"http://outside/valid/{{{{ state.m }}}}\" }}\n      correct: fix\n      \
         max_retries: {retries}\n      retry_delay: {delay}\n"
    )
}

// ── canvas ──────────────────────────────────────────────────────────────────────────────────────

/// A loop whose iterations start with the result of the previous one, with an agent, and a map inside or after it.
fn canvas(random: &mut StdRng) -> String {
    let most = random.random_range(1..5);
    let (operator, value) = (one(random, &["<", "!=", ">="]), random.random_range(0..6));
    let leave = match random.random_range(0..3) {
        0 => "breakWhen: { output: tell.n, operator: \"==\", value: 3 }\n      ",
        _ => "",
    };
    let delay = one(random, &["0", "1", "4", "12"]);
    let limit = match random.random_range(0..4) {
        0 => format!("timeout: PT{}S\n      ", random.random_range(4..20)),
        _ => String::new(),
    };
    let session = one(random, &["true", "false"]);
    let take = one(random, &["first", "last", "all"]);
    let at_once = random.random_range(1..4);
    let timeout = match random.random_range(0..3) {
        0 => "timeout: PT4S, ",
        _ => "",
    };
    format!(
        r#"name: canvas
runners: {{ some: {{ command: ["true"] }} }}
nodes:
  - id: rounds
    type: loop
    data:
      maxIterations: {most}
      continueWhile: {{ output: ask.n, operator: "{operator}", value: {value} }}
      {leave}{limit}delay: PT{delay}S
      outputs: [{{ name: all, type: json }}, {{ name: told, type: json }}, {{ name: count, type: number }}]
      inputMappings:
        - {{ source: {{ type: previous, node: tell, output: n }}, target: {{ node: ask, input: before }}, iterations: subsequent }}
      outputMappings:
        - {{ source: {{ node: ask, output: n }}, target: all, take: all }}
        - {{ source: {{ node: tell, output: n }}, target: told, take: {take} }}
        - {{ source: {{ type: builtin, name: iteration_count }}, target: count }}
      inlineWorkflow:
        nodes:
          - {{ id: ask, type: function, data: {{ inputs: [{{ name: before, type: number, default: 0 }}], outputs: [{{ name: n, type: number }}], code: "return 1" }} }}
          - {{ id: tell, type: agent, data: {{ runner: some, session: {session}, prompt: "{{{{ n }}}}", {timeout}inputs: [{{ name: n, type: number }}], outputs: [{{ name: n, type: number }}] }} }}
          - {{ id: beside, type: shell, data: {{ script: "true", outputs: [{{ name: stdout, type: string }}] }} }}
        edges:
          - {{ source: ask, target: tell, sourceHandle: "output:n", targetHandle: "input:n" }}
  - {{ id: list, type: constant, data: {{ value: [1, 2, 3, 4] }} }}
  - id: each
    type: map
    data:
      over: list
      concurrency: {at_once}
      inputs: [{{ name: list, type: json }}]
      outputs: [{{ name: items, type: json }}]
      inputMappings:
        - {{ source: {{ type: outer, name: list }}, target: {{ node: one, input: n }} }}
      outputMappings:
        - {{ source: {{ node: one, output: n }}, target: items, take: all }}
      inlineWorkflow:
        nodes:
          - {{ id: one, type: function, data: {{ inputs: [{{ name: n, type: number }}], outputs: [{{ name: n, type: number }}], code: "return 1" }} }}
  - {{ id: out, type: function, data: {{ inputs: [{{ name: items, type: json }}, {{ name: all, type: json }}], outputs: [{{ name: n, type: number }}], code: "return 1" }} }}
edges:
  - {{ source: list, target: each, sourceHandle: "output:value", targetHandle: "input:list" }}
  - {{ source: each, target: out, sourceHandle: "output:items", targetHandle: "input:items" }}
  - {{ source: rounds, target: out, sourceHandle: "output:all", targetHandle: "input:all" }}
"#
    )
}
