//! `windlass schema`: the JSON Schema of a format, for editors.

use super::args::SchemaArgs;
use super::exit::{Exit, Failure};
use super::{inputs, output};
use windlass_engine::json_schema;

pub fn schema(args: &SchemaArgs) -> Result<Exit, Failure> {
    let dialect = inputs::dialect(&args.format)?;
    match json_schema(dialect) {
        Some(schema) => {
            output::print_exact(schema.trim_end())?;
            Ok(Exit::Succeeded)
        }
        None => Err(Failure::Usage(String::from(
            "this build of Windlass does not have the format",
        ))),
    }
}
