//! Executors: what an effect is, done for real. They never see the machine or the store; they
//! get one rendered [`Request`] and give a value or a [`Fault`].

use crate::expression::Value;
use crate::model::{Fault, Request};
use std::future::Future;
use std::pin::Pin;

/// The future of one attempt. Dropping it must cut the attempt: close the connection, kill the
/// process group.
pub type Attempt<'a> = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send + 'a>>;

/// Does one kind of action.
pub trait Executor: Send + Sync + 'static {
    /// One attempt.
    fn execute<'a>(&'a self, request: &'a Request) -> Attempt<'a>;
}
