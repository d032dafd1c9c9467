//! Replaces `worker` in a build without the feature `temporal`.

use super::args::{Global, WorkerArgs};
use super::exit::{Exit, Failure};
use super::output::Screen;
use super::remote_engine::missing;

#[allow(
    clippy::unused_async,
    reason = "the same signature as in a build with the feature"
)]
pub async fn worker(_: &Global, _: Screen, _: &WorkerArgs) -> Result<Exit, Failure> {
    Err(missing())
}
