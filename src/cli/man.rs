//! `windlass man`: the manual pages, made from the flags.

use super::args::{self, ManArgs};
use super::exit::{Exit, Failure};
use super::output;
use clap_mangen::Man;

/// The command: one page on standard output, or one for each command in a directory.
pub fn man(given: &ManArgs) -> Result<Exit, Failure> {
    let command = args::command();
    match &given.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(command, dir))
                .map_err(|error| {
                    let place = dir.display();
                    Failure::Usage(format!("{place} cannot be written: {error}"))
                })?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command)
                .render(&mut page)
                .map_err(Failure::Output)?;
            output::print_exact(String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Exit::Succeeded)
}
