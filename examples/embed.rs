//! Windlass as a library: an activity in Rust, a loop around it, a run that survives the process.
//!
//! ```text
//! cargo run --example embed
//! ```
//! Kill it in the middle and start it again: it goes on with the run it had begun.

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

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder()
        .register_activity("newton", |context| async move {
            let guess = context.input.to_json().parse::<f64>().unwrap_or(1.0);
            let better = (guess + 2.0 / guess) / 2.0;
            Ok(Value::from_pairs([
                ("guess", Value::from(better)),
                ("error", Value::from((better * better - 2.0).abs())),
            ]))
        })
        .open(std::env::temp_dir().join("windlass-embed"))?;

    for run in engine.recover(true).await? {
        println!("going on with {run}");
        println!("{}", engine.handle(&run).await?.result().await?.to_json());
    }

    let workflow = engine.load_text("square-roots.yaml", WORKFLOW)?;
    let run = engine.start(&workflow, Value::Null).await?;
    println!("started {}", run.id());
    println!("{}", run.result().await?.to_json_pretty());
    engine.stop().await;
    Ok(())
}
