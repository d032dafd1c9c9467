//! `windlass ui`: prints the address of the console.
//! The address contains a ticket, with which a browser can begin one session.

use super::args::{Global, UiArgs};
use super::exit::{Exit, Failure};
use super::output::{self, Screen};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use windlass_server::client::Client;

/// A file that redirects a browser to the console.
/// A file is used because other users can see the arguments of a command, and this file is private.
const PAGE: &str = "console.html";

pub async fn ui(global: &Global, screen: Screen, args: &UiArgs) -> Result<Exit, Failure> {
    let url = match &global.server {
        Some(url) => format!("{}/ui/", url.trim_end_matches('/')),
        None => match Client::for_state_dir(&global.state).await? {
            Some(owner) => owner.ticket().await?.url,
            None => {
                let message = format!(
                    "no process owns the store in {}: start `windlass serve`",
                    global.state.display()
                );
                return Err(Failure::Taken(message));
            }
        },
    };
    output::print(url.clone())?;
    if !args.no_open && global.server.is_none() && has_screen() {
        let opened = page(&global.state, &url).and_then(|page| open(&page));
        if let Err(error) = opened {
            screen.say(format!("no browser was opened: {error}"));
        }
    }
    Ok(Exit::Succeeded)
}

/// Returns whether the user of this process has a graphical screen.
fn has_screen() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

/// Writes a page that only this user can read. Its ticket is valid for one minute.
fn page(state: &Path, url: &str) -> io::Result<PathBuf> {
    let path = state.join(PAGE);
    let _ = fs::remove_file(&path);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let head = format!("<meta http-equiv=\"refresh\" content=\"0; url={url}\">");
    write!(file, "<!doctype html><title>Windlass</title>{head}")?;
    path.canonicalize()
}

fn open(page: &Path) -> io::Result<()> {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(page).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
