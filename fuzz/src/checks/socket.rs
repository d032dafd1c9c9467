//! Each request to the owner of a store over its control socket is answered, and never with a 5xx. The owner accepts
//! commands and continues no run, so no command that a workflow names is executed.

use super::http::{STATUS, is_taken};
use super::server::{exchange, runtime};
use std::error::Error;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use windlass_engine::{Engine, StartOptions, Value};
use windlass_server::ControlSocket;
use windlass_store::MemoryStore;

/// After this number of requests a new owner with an empty store is started.
const LIFE: u32 = 5_000;

/// The runs in the store: one waits, one has ended.
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
    requests: u32,
}

/// Not thread-local: when a fuzzer ends the process, no destructor of a thread-local value would run.
static OWNER: Mutex<Option<Owner>> = Mutex::new(None);

pub fn check(bytes: &[u8]) -> bool {
    let mut owner = OWNER.lock().expect("no fault before");
    if owner.as_ref().is_some_and(|owner| owner.requests >= LIFE) {
        *owner = None;
    }
    owner.get_or_insert_with(Owner::new).tell(bytes)
}

/// Stops the owner.
pub fn end() {
    *OWNER.lock().expect("no fault before") = None;
}

/// Starts the runs in an engine that can continue them, and stops it.
async fn begun(store: Arc<MemoryStore>) -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().with_store(store)?;
    for (run, text) in RUNS {
        let workflow = engine.load_text("a.yaml", text)?;
        let options = StartOptions::default().id(run);
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
            .commands_only()
            .with_store(store)
            .expect("an engine");
        let engine = Arc::new(engine);
        let socket =
            ControlSocket::open(place.path(), Arc::clone(&engine), None).expect("a socket");
        drop(entered);
        Self {
            runtime,
            place,
            socket: Some(socket),
            engine,
            requests: 0,
        }
    }

    fn tell(&mut self, bytes: &[u8]) -> bool {
        self.requests += 1;
        let socket = self.place.path().join("control.sock");
        // The owner starts no run: it answers with 503.
        is_taken(bytes, Some(503), |request, is_whole, wait| {
            let stream = UnixStream::connect(socket).expect("it takes connections");
            stream.set_read_timeout(Some(wait)).expect("a socket");
            exchange(stream, request, STATUS, |stream| {
                if !is_whole {
                    let _ = stream.shutdown(Shutdown::Write);
                }
            })
        })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.runtime.block_on(socket.close());
        }
        self.runtime.block_on(self.engine.stop());
    }
}
