//! What a long life asks of runs: waits for people, secrets, limits, a full disk, retention and
//! schedules. Seen from outside: processes that are killed, sockets, files.

mod alone;
mod append;
mod backup;
mod clock;
mod concurrency;
mod cookbook;
mod crash;
mod cut;
mod dumped;
mod egress;
mod environment;
mod everyday;
mod exact;
mod files;
mod first_use;
mod folder;
mod gone;
mod lacking;
mod limits;
mod lua;
mod many;
mod mcp;
mod outage;
mod policy;
mod private;
pub mod process;
mod prune;
mod redirects;
mod retry;
mod schedules;
mod secrets;
mod secure;
mod short;
mod signals;
mod stopped;
mod terminal;
