//! `windlass compile`: prints the state machine of a workflow, as a table, a diagram or JSON.

use super::args::{CompileArgs, Drawing, Global};
use super::exit::{Exit, Failure};
use super::inputs;
use super::output::{self, Format, Screen};
use windlass_engine::{Detail, dot, mermaid, svg};

pub fn compile(global: &Global, screen: Screen, args: &CompileArgs) -> Result<Exit, Failure> {
    let options = inputs::options(global, &args.load, &args.handlers)?;
    let workflow = windlass_engine::load(&args.file, &options)?;
    let warnings = workflow.warnings();
    if !warnings.is_empty() {
        screen.say(warnings.render(workflow.bundle(), screen.error_colour));
    }
    let program = workflow.program();
    let detail = Detail {
        expand: args.expand,
        depth: args.depth,
    };
    match args.output {
        Drawing::Table => output::print(program.to_string())?,
        Drawing::Mermaid => output::print(mermaid(program, detail))?,
        Drawing::Dot => output::print(dot(program, detail))?,
        Drawing::Svg => output::print(svg(program, detail))?,
        Drawing::Json => output::document(Format::Table, &program.to_value())?,
    }
    Ok(Exit::Succeeded)
}
