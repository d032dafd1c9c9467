//! The machine on virtual time: workflows as their authors write them, a simulated world, and the laws of
//! docs/architecture.md. The laws are asserted after every transition, and with a crash at every transition.

mod branches;
mod budget;
pub mod build;
mod cost;
mod cut;
mod faults;
mod graphs;
mod jumps;
mod laws;
mod limits;
mod loops;
mod order;
mod outside;
mod pages;
pub mod play;
pub mod random;
mod retry;
mod rewound;
mod seen;
mod tampered;
mod tea;
pub mod trace;
mod transitions;
mod unchanged;
mod usage;
