//! Checks a file of the toy format, and prints its diagram: `cargo run -p windlass-example-toy-format -- FILE`.

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;
use windlass_draw::{Detail, mermaid};
use windlass_source::source::Bundle;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: toy-format FILE")?;
    let bundle = Bundle::single(&*path, std::fs::read_to_string(&path)?);
    let program = toy_format::compile(&bundle).inspect_err(|mistakes| {
        let colour = std::io::stderr().is_terminal();
        eprint!("{}", mistakes.render(&bundle, colour));
    });
    let Ok(program) = program else {
        return Ok(ExitCode::FAILURE);
    };
    println!("{}", mermaid(&program, Detail::default()));
    Ok(ExitCode::SUCCESS)
}
