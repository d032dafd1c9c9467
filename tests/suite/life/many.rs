//! More runs at the same time than one group contains: they are stored in parts, and one part advances while another is
//! written. Each run ends as it would alone.

use std::sync::Arc;
use windlass_engine::{Engine, RunStatus, Value, doctor};

const RUNS: i64 = 700;

const COUNTS: &str = "
name: counts
inputs: { from: { type: integer } }
variables: { n: 0 }
actions:
  begin: { type: setVariable, inputs: { name: n, value: \"@inputs('from')\" } }
  loop:
    type: until
    condition: \"@greaterOrEquals(variables('loopIndex'), 4)\"
    actions: { grow: { type: incrementVariable, inputs: { name: n } } }
outputs: \"@variables('n')\"
";

#[tokio::test(flavor = "multi_thread")]
async fn runs_by_the_hundreds_end_as_one_does() {
    let place = tempfile::tempdir().unwrap();
    let engine = Arc::new(Engine::builder().open(place.path()).unwrap());
    let workflow = engine.load_text("counts.yaml", COUNTS).unwrap();
    let mut starts = tokio::task::JoinSet::new();
    for n in 0..RUNS {
        let (engine, workflow) = (engine.clone(), workflow.clone());
        starts.spawn(async move {
            let input = Value::from_pairs([("from", Value::from(n * 10))]);
            let run = engine.start(&workflow, input).await.unwrap();
            let id = run.id().to_owned();
            (id, n, run.result::<Value>().await.unwrap())
        });
    }
    let ended = starts.join_all().await;
    for (run, n, result) in &ended {
        assert_eq!(result.to_json(), (n * 10 + 4).to_string());
        let inspector = engine.inspector();
        let header = inspector.header(run).unwrap();
        assert_eq!(header.status, RunStatus::Succeeded);
        let rows = inspector.iterations(run, Some("loop"), 99).unwrap();
        assert_eq!(rows.len(), 4, "{run}");
    }
    engine.stop().await;
    drop(engine);
    let report = doctor::examine(place.path()).unwrap();
    assert_eq!(report.unreadable, []);
    assert_eq!(report.runs, RUNS as u64);
}
