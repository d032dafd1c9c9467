//! What a store preserves and finds, whatever happens to its process, its disk and its files.

mod calls;
pub mod contract;
pub mod damage;
mod end;
mod errors;
mod format;
mod full;
mod golden;
#[cfg(feature = "fjall")]
mod journal;
mod kill;
#[cfg(feature = "fjall")]
mod kinds;
mod mark;
mod pack;
pub mod power;
mod repair;
mod state;
#[cfg(feature = "fjall")]
mod tables;
