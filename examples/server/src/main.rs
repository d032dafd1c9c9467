//! A small web server for the examples to talk to. It keeps everything in memory.
//!
//! ```text
//! cargo run -p windlass-example-server -- --port 8080
//! listening on http://127.0.0.1:8080
//! ```
//!
//! `--port 0` uses any free port. `--polls`, `--pages` and `--queue` set how many polls a job needs, how many pages
//! there are and how many messages are in the queue. `app.rs` lists the endpoints; `GET /log` counts the requests
//! served, so that a reader can check what a workflow did.

mod app;

use clap::Parser;
use std::error::Error;
use std::io::Write;

/// A small web server for the examples to talk to.
#[derive(Parser)]
struct Arguments {
    /// The port on 127.0.0.1; 0 takes any free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// How many polls of a job say `running` before one says `complete`.
    #[arg(long, default_value_t = app::Options::default().polls)]
    polls: u32,
    /// How many pages `/items`, `/data` and `/pages` have.
    #[arg(long, default_value_t = app::Options::default().pages)]
    pages: u32,
    /// How many messages a queue begins with.
    #[arg(long, default_value_t = app::Options::default().queue)]
    queue: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let options = app::Options {
        polls: arguments.polls,
        pages: arguments.pages,
        queue: arguments.queue,
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", arguments.port)).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "listening on http://{}", listener.local_addr()?)?;
    stdout.flush()?;
    axum::serve(listener, app::router(options)).await?;
    Ok(())
}
