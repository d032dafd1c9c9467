//! Windlass as a library: an activity in Rust, a loop around it, and a run that continues after a crash of the process.
//!
//! ```text
//! cargo run --example embed
//! ```
//! Kill it during the run and start it again: it resumes the same run.

use serde::{Deserialize, Serialize};
use std::error::Error;
use windlass::{Engine, Value};

const WORKFLOW: &str = r#"
name: square-roots
variables: { guess: 100.0 }
actions:
  refine:
    type: doUntil
    condition: "@less(body('step').error, 0.000001)"
    limit: { count: 50 }
    actions:
      step:
        type: activity
        inputs: { activityType: newton, input: "@variables('guess')" }
      keep: { type: setVariable, name: guess, value: "@body('step').guess" }
outputs:
  root: "@variables('guess')"
  iterations: "@outputs('refine').iterations"
"#;

/// The output of the activity.
#[derive(Serialize)]
struct Step {
    guess: f64,
    error: f64,
}

/// The output of the workflow.
#[derive(Debug, Deserialize)]
struct Found {
    root: f64,
    iterations: u64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder()
        .register("newton", |_, guess: f64| async move {
            let guess = (guess + 2.0 / guess) / 2.0;
            let error = (guess * guess - 2.0).abs();
            Ok(Step { guess, error })
        })
        .open(std::env::temp_dir().join("windlass-embed"))?;

    for run in engine.recover(true).await? {
        println!("going on with {run}");
        let found: Found = engine.handle(&run).await?.result().await?;
        println!("{found:?}");
    }

    let workflow = engine.load_text("square-roots.yaml", WORKFLOW)?;
    let run = engine.start(&workflow, Value::Null).await?;
    println!("started {}", run.id());
    let Found { root, iterations } = run.result().await?;
    println!("{root} after {iterations} iterations");
    engine.stop().await;
    Ok(())
}
