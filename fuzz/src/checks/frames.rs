//! Any line is a request to the owner of a store, or is refused; what is read can be written and read again,
//! and the same holds for what the owner replies. Each line is sent to an owner too, through its socket: it
//! is done or refused, and never the owner's fault. The owner takes commands and moves no run, so that no
//! command that a workflow names is carried out.

use super::server::{PATIENCE, runtime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use windlass::internals::engine::{Engine, StartOptions, Value};
use windlass::internals::server::control::{ControlSocket, Refusal, RefusalKind, Reply, Request};
use windlass::internals::store::MemoryStore;

/// After so many lines there is a new owner, whose store is empty.
const LIFE: u32 = 5_000;

/// The runs there are: one waits, one has ended.
const RUNS: [(&str, &str); 2] = [
    (
        "known",
        "actions: { nap: { type: wait, interval: { unit: Hour, count: 1 } } }",
    ),
    (
        "ended",
        "
variables: { n: 0 }
actions:
  grow:
    type: until
    condition: \"@greater(variables('n'), 5)\"
    actions: { more: { type: incrementVariable, inputs: { name: n, value: 1 } } }
",
    ),
];

struct Owner {
    runtime: Runtime,
    place: TempDir,
    socket: Option<ControlSocket>,
    engine: Arc<Engine>,
    told: u32,
}

/// Not of a thread, for a process that a fuzzer ends has none that could let go of it.
static OWNER: Mutex<Option<Owner>> = Mutex::new(None);

pub fn check(line: &[u8]) -> bool {
    again::<Request>(line);
    again::<Reply>(line);
    let frame: Vec<u8> = line.iter().copied().filter(|byte| *byte != b'\n').collect();
    let mut owner = OWNER.lock().expect("no fault before");
    if owner.as_ref().is_some_and(|owner| owner.told >= LIFE) {
        *owner = None;
    }
    owner.get_or_insert_with(Owner::new).tell(&frame)
}

/// The owner leaves.
pub fn end() {
    *OWNER.lock().expect("no fault before") = None;
}

fn again<T: DeserializeOwned + Serialize>(line: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(line) else {
        return;
    };
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    serde_json::from_slice::<T>(&written).expect("and be read");
}

/// An engine that moves runs does, and leaves.
async fn begun(store: Arc<MemoryStore>) -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().with_store(store)?;
    for (run, text) in RUNS {
        let workflow = engine.load_text("a.yaml", text)?;
        let options = StartOptions {
            id: Some(run.to_owned()),
            ..StartOptions::default()
        };
        let mut handle = engine.start_with(&workflow, Value::Null, options).await?;
        if run == "ended" {
            while handle.next().await.is_some() {}
        }
    }
    engine.stop().await;
    Ok(())
}

impl Owner {
    fn new() -> Self {
        let runtime = runtime();
        let place = tempfile::tempdir().expect("a folder");
        let store = Arc::new(MemoryStore::default());
        runtime.block_on(begun(store.clone())).expect("runs");
        let entered = runtime.enter();
        let engine = Engine::builder()
            .quiet()
            .with_store(store)
            .expect("an engine");
        let engine = Arc::new(engine);
        let socket =
            ControlSocket::open(place.path(), Arc::clone(&engine), true).expect("a socket");
        drop(entered);
        Self {
            runtime,
            place,
            socket: Some(socket),
            engine,
            told: 0,
        }
    }

    fn tell(&mut self, frame: &[u8]) -> bool {
        self.told += 1;
        let socket = self.place.path().join("control.sock");
        let mut stream = UnixStream::connect(socket).expect("it takes connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(frame).expect("it reads");
        stream.write_all(b"\n").expect("it reads");
        let mut reply = String::new();
        BufReader::new(stream)
            .read_line(&mut reply)
            .expect("it answers");
        match serde_json::from_str(&reply).expect("a reply") {
            Reply::Done { .. } => true,
            Reply::Refused(Refusal { kind, message }) => {
                let own = matches!(kind, RefusalKind::Store | RefusalKind::Internal);
                assert!(!own, "{kind:?}: {message}");
                false
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            socket.close();
        }
        self.runtime.block_on(self.engine.stop());
    }
}
