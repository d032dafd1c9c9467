//! Any line is a request to the owner of a store, or is refused; what is read can be
//! written and read again. The same for what the owner replies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass::server::control::{Reply, Request};

fn again<T: DeserializeOwned + Serialize>(line: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(line) else {
        return;
    };
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    serde_json::from_slice::<T>(&written).expect("and be read");
}

fuzz_target!(|line: &[u8]| {
    again::<Request>(line);
    again::<Reply>(line);
});
