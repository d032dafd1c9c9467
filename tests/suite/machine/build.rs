//! Trees built in code for what no format can express yet: graphs, catches, loops as in TEA.

use super::play::{Case, json};
use windlass_expression::{Condition, Syntax, Template};
use windlass_model::hir::{
    Assign, Assignment, Block, Call, Edge, Graph, Loop, Node, Outputs, Step, StepKind, Workflow,
};
use windlass_model::model::{AssignOp, Dialect, EventTriggers, Name, OnLimit, OnMissing, Test};
use windlass_source::source::Span;

pub fn template(text: &str) -> Template {
    Template::parse(text, Syntax::Loom).unwrap()
}

pub fn condition(text: &str) -> Condition {
    Condition::parse(text, Syntax::Loom).unwrap()
}

pub fn step(name: &str, kind: StepKind) -> Step {
    Step {
        name: Name::from(name),
        label: Name::from("step"),
        title: None,
        anonymous: false,
        kind,
        output: None,
        expect: None,
        retry: None,
        timeout: None,
        follow_up: None,
        is_repeat: false,
        catch: None,
        break_when: None,
        continue_when: None,
        span: Span::default(),
    }
}

/// A request without inputs.
pub fn call(name: &str) -> Step {
    let call = Call {
        executor: Name::from("shell"),
        inputs: Template::constant(json("{}")),
        attempt_timeout: None,
        then: Vec::new(),
    };
    step(name, StepKind::Call(call))
}

fn assignment(variable: &str, op: AssignOp, value: &str) -> Assignment {
    Assignment {
        variable: Name::from(variable),
        op,
        value: template(value),
        span: Span::default(),
    }
}

/// A request whose answer is assigned to a variable.
pub fn call_into(name: &str, variable: &str, op: AssignOp) -> Step {
    let then = vec![assignment(variable, op, "@variables('result')")];
    match call(name).kind {
        StepKind::Call(call) => step(name, StepKind::Call(Call { then, ..call })),
        _ => unreachable!(),
    }
}

pub fn set(name: &str, variable: &str, value: &str) -> Step {
    let assign = Assign {
        assignments: vec![assignment(variable, AssignOp::Set, value)],
        output: None,
    };
    step(name, StepKind::Assign(assign))
}

pub fn compose(name: &str, value: &str) -> Step {
    step(name, StepKind::Compose(template(value)))
}

/// A loop as in TEA: without a timeout, and without a check of its condition after the last iteration.
pub fn loop_while(name: &str, while_: &str, count: i64, body: Vec<Step>) -> Step {
    let spec = Loop {
        name: None,
        test: Test::Before,
        stop_when: condition(while_).negated(),
        condition_text: while_.to_owned(),
        negated: true,
        count: Template::constant(count.into()),
        timeout: None,
        tokens: None,
        cost: None,
        delay: None,
        on_missing: OnMissing::Fail,
        on_limit: OnLimit::Continue,
        on_timeout: OnLimit::Continue,
        test_when_spent: false,
        survives_failure: false,
        keep: Vec::new(),
        pages: None,
        unchanged: None,
        feedback: false,
        body: Block::Sequence(body),
    };
    step(name, StepKind::Loop(Box::new(spec)))
}

/// A node with its edges: the condition (empty means always) and the target (empty means the end).
pub fn node(step: Step, edges: &[(&str, &str)]) -> Node {
    let edge = |(when, to): &(&str, &str)| Edge {
        when: (!when.is_empty()).then(|| condition(when)),
        to: (!to.is_empty()).then(|| Name::from(*to)),
        span: Span::default(),
    };
    Node {
        step,
        edges: edges.iter().map(edge).collect(),
    }
}

pub fn graph(entry: &str, max_steps: u32, nodes: Vec<Node>) -> Block {
    Block::Graph(Graph {
        entry: (!entry.is_empty()).then(|| Name::from(entry)),
        nodes,
        max_steps,
    })
}

pub fn workflow(dialect: Dialect, variables: &[(&str, &str)], body: Block) -> Workflow {
    let variable = |(name, value): &(&str, &str)| {
        let value = Template::constant(json(value));
        (Name::from(*name), value)
    };
    Workflow {
        name: Name::from("built"),
        dialect,
        rules: windlass_formats::rules(dialect),
        inputs: Vec::new(),
        state: Vec::new(),
        last_run: false,
        variables: variables.iter().map(variable).collect(),
        places: windlass_model::model::NamedSpans::default(),
        types: Vec::new(),
        parameters: Vec::new(),
        trigger: None,
        schedule: None,
        event_triggers: EventTriggers::default(),
        concurrency: None,
        rates: Vec::new(),
        on_failure: Block::Sequence(Vec::new()),
        on_finish: Block::Sequence(Vec::new()),
        cleanup: Block::Sequence(Vec::new()),
        at_success: None,
        secure: Vec::new(),
        body,
        outputs: Outputs::State,
        handlers: Vec::new(),
        links: Vec::new(),
        scripts: Vec::new(),
        environment: Vec::new(),
        span: Span::default(),
    }
}

/// A case with a graph whose output is its variables.
pub fn of_graph(variables: &[(&str, &str)], body: Block) -> Case {
    Case::hir(&workflow(Dialect::Tea, variables, body))
}
