//! What guests can reach, in a separate network. There an address that is public elsewhere leads to this process, and
//! the test decides where names lead. A call can thus begin at a permitted host and be redirected.

use super::process::Place;
use crate::serve::{Server, Start};
use crate::support::{lacking, this_test_binary};
use axum::Router;
use axum::extract::Path;
use axum::response::Redirect;
use axum::routing::get;
use serde_json::json;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An address of the public internet; in this network it belongs to the loopback interface.
const PUBLIC: &str = "11.22.33.44";

/// The names in the `/etc/hosts` of the network.
const HOSTS: &str = "\
127.0.0.1 localhost
11.22.33.44 good.test
127.0.0.1 inner.test
::1 inner6.test
::ffff:127.0.0.1 mapped.test
10.1.2.3 private.test
169.254.169.254 metadata.test
11.22.33.44 both.test
127.0.0.1 both.test
";

/// Configures the network and then executes the given command.
const INSIDE: &str = r#"
set -e
mount --bind "$HOSTS_FILE" /etc/hosts
ip link set lo up
ip addr add 11.22.33.44/32 dev lo
exec "$@"
"#;

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["-r", "-m", "-n"]);
    command
}

/// Whether users of this machine may create network namespaces.
fn can_unshare() -> bool {
    let mut command = unshare();
    command.args([
        "sh",
        "-c",
        "ip link set lo up && mount --bind /etc/hosts /etc/hosts",
    ]);
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

#[test]
fn a_guest_is_led_nowhere_else() {
    if !can_unshare() {
        return lacking("no network of one's own can be made here");
    }
    let place = Place::new();
    let hosts = place.file("hosts", HOSTS);
    let inner = this_test_binary("life::egress::inside_of_a_network_of_its_own");
    let mut command = unshare();
    command
        .args(["sh", "-c", INSIDE, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("HOSTS_FILE", hosts);
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "{stdout}");
}

const CALL: &str = "
inputs: { uri: { type: string } }
actions: { call: { type: http, uri: \"@inputs('uri')\" } }
outputs: \"@body('call')\"
";

/// Calls a URL as a guest; returns the output, or the kind of the error.
async fn call(server: &Server, uri: &str) -> String {
    let run = server.begin(CALL, json!({ "uri": uri })).await;
    let outcome = server.end(&run).await;
    match outcome["error"]["kind"].as_str() {
        Some(kind) => kind.to_owned(),
        None => outcome["output"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "only inside of a network of its own: a_guest_is_led_nowhere_else runs it"]
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn inside_of_a_network_of_its_own() {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = reached.clone();
    let secret = move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { "secret" }
    };
    let inner = tokio::net::TcpListener::bind("[::]:0").await.unwrap();
    let port = inner.local_addr().unwrap().port();
    let router = Router::new().route("/secret", get(secret));
    tokio::spawn(async move { axum::serve(inner, router).await });

    let away = move |Path(to): Path<String>| async move {
        let to = to.replace("PORT", &port.to_string());
        Redirect::temporary(&format!("http://{to}/secret"))
    };
    let public = tokio::net::TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let good = public.local_addr().unwrap().port();
    let router = Router::new()
        .route("/", get(|| async { "public" }))
        .route("/away/{to}", get(away));
    tokio::spawn(async move { axum::serve(public, router).await });

    let place = Place::new();
    let state = place.state();
    let strict = |args: &[&str]| {
        Start::new(&state).args(args).spawn_with(|command| {
            command.env_remove("WINDLASS_ALLOW_PRIVATE_NETWORK");
        })
    };
    let server = strict(&[]);
    // Public hosts are reached by address and by name.
    for host in [PUBLIC, "good.test", "0x0b16212c"] {
        let uri = format!("http://{host}:{good}/");
        assert_eq!(call(&server, &uri).await, "public", "{host}");
    }
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "localhost",
        "inner.test",
        "inner6.test",
        "mapped.test",
        "private.test",
        "metadata.test",
        // One of its addresses is public.
        "both.test",
    ];
    for host in hosts {
        let straight = format!("http://{host}:{port}/secret");
        assert_eq!(call(&server, &straight).await, "denied", "{host}");
        let led = format!("http://good.test:{good}/away/{host}:PORT");
        assert_eq!(call(&server, &led).await, "denied", "a redirect to {host}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
    drop(server);
    // The redirect works for a server that permits the private network.
    let server = strict(&["--allow-private-network"]);
    let led = format!("http://good.test:{good}/away/inner.test:PORT");
    assert_eq!(call(&server, &led).await, "secret");
    assert_eq!(reached.load(Ordering::SeqCst), 1);
}
