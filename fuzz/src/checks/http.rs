//! Each request to the HTTP API is answered, and never with a 5xx. Invalid HTTP is answered with 4xx, or the connection
//! ends. After a leading `!`, the input is sent unchanged as the bytes of a connection. Any other input is a request in
//! this form, and the missing headers are added:
//!
//! ```text
//! POST /v1/runs
//! Idempotency-Key: a
//!
//! {"text": "…"}
//! ```

use super::server::{PATIENCE, Server};
use std::sync::Mutex;
use std::time::Duration;

/// After this number of requests a new server with an empty store is started.
const LIFE: u32 = 3_000;

/// A request that waits for a result is answered when the run ends, which may be never.
pub(super) const A_MOMENT: Duration = Duration::from_millis(30);

/// `HTTP/1.1 200`
pub(super) const STATUS: usize = 12;

/// What a server has at the start: a run that waits, one that ends, and a saved workflow.
const FIRST: [&str; 3] = [
    r#"POST /v1/runs

{"run": "known", "text": "actions: { nap: { type: wait, interval: { unit: Hour, count: 1 } } }"}"#,
    r#"POST /v1/runs

{"run": "ended", "text": "name: count\nvariables: { n: 0 }\nactions:\n  grow:\n    type: until\n    condition: \"@greater(variables('n'), 5)\"\n    actions: { more: { type: incrementVariable, inputs: { name: n, value: 1 } } }\n"}"#,
    r#"PUT /v1/workflows/kept

{"text": "actions: { nap: { type: wait, interval: { unit: Hour, count: 1 } } }"}"#,
];

/// Not thread-local: when a fuzzer ends the process, no destructor of a thread-local value would run.
static SERVER: Mutex<Option<Server>> = Mutex::new(None);

pub fn check(bytes: &[u8]) -> bool {
    let mut server = SERVER.lock().expect("no fault before");
    if let Some(old) = &mut *server
        && old.requests >= LIFE
    {
        // No run may be parked: a parked run means that the machine failed on it.
        let list = whole(b"GET /v1/runs?limit=1000").expect("a request");
        let list = old.ask(&list, true, 16 << 20, PATIENCE).expect("an answer");
        let list = String::from_utf8_lossy(&list);
        assert!(!list.contains("windlass.parked"), "{list}");
        *server = None;
    }
    let server = server.get_or_insert_with(|| {
        let mut server = Server::new();
        for request in FIRST {
            assert!(taken(&mut server, request.as_bytes()), "{request}");
        }
        server
    });
    taken(server, bytes)
}

/// Stops the server.
pub fn end() {
    *SERVER.lock().expect("no fault before") = None;
}

fn taken(server: &mut Server, bytes: &[u8]) -> bool {
    is_taken(bytes, None, |request, is_whole, wait| {
        server.ask(request, is_whole, STATUS, wait)
    })
}

/// Whether a request is answered with 2xx. `ask` sends it and waits for the answer; its second argument is whether the
/// request is complete. `also` is a further status that is accepted.
pub(super) fn is_taken(
    bytes: &[u8],
    also: Option<u16>,
    ask: impl FnOnce(&[u8], bool, Duration) -> Option<Vec<u8>>,
) -> bool {
    let (request, is_whole) = match bytes.strip_prefix(b"!") {
        Some(raw) => (raw.to_vec(), false),
        None => match whole(bytes) {
            Some(request) => (request, true),
            None => return false,
        },
    };
    let waits = is_whole && request.windows(5).any(|part| part == b"wait=");
    let wait = if waits { A_MOMENT } else { PATIENCE };
    let Some(answer) = ask(&request, is_whole, wait) else {
        assert!(waits, "it hangs");
        return false;
    };
    let status = answer.get(9..STATUS).map(<[u8]>::to_vec);
    let status = status.and_then(|digits| String::from_utf8(digits).ok()?.parse::<u16>().ok());
    assert!(status.is_some() || !is_whole, "no answer");
    assert!(
        status == also || status.is_none_or(|status| (100..500).contains(&status)),
        "{status:?}"
    );
    status.is_some_and(|status| (200..300).contains(&status))
}

/// The complete request; none if its method, path or headers are invalid.
fn whole(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = match bytes.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&bytes[..at], Some(&bytes[at + 2..])),
        None => (bytes, None),
    };
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|one| one.is_ascii_alphanumeric() || one == b'-')
    };
    let sound = method.len() <= 20 && method != "CONNECT" && token(method) && path.starts_with('/');
    // The HTTP library rejects longer paths and these characters.
    let sound = sound
        && path.len() < 8_000
        && path
            .bytes()
            .all(|one| one.is_ascii_graphic() && !b"\"<>`{}|^\\#".contains(&one));
    if !sound {
        return None;
    }
    let mut whole = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    let mut typed = false;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let own = [
            "host",
            "connection",
            "content-length",
            "transfer-encoding",
            "expect",
            "upgrade",
        ];
        let plain = value.bytes().all(|one| (0x20..0x7f).contains(&one));
        if token(name) && plain && !own.contains(&&*name.to_ascii_lowercase()) {
            typed |= name.eq_ignore_ascii_case("content-type");
            whole += &format!("{name}: {value}\r\n");
        }
    }
    if !typed {
        whole += "Content-Type: application/json\r\n";
    }
    let body = body.unwrap_or_default();
    whole += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut whole = whole.into_bytes();
    whole.extend_from_slice(body);
    Some(whole)
}
