//! The network between workers and the server: connections that are cut, that stall, and that are encrypted.

use super::server::{Place, Server, bound, counting, printed_by};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Pass,
    /// Connections stay open, and no data is forwarded.
    Stall,
    /// Connections are closed, including new ones.
    Cut,
}

/// A proxy in front of the server.
struct Proxy {
    port: u16,
    mode: watch::Sender<Mode>,
}

impl Proxy {
    fn start(server: &Server, tls: Option<TlsAcceptor>) -> Self {
        let (mode, seen) = watch::channel(Mode::Pass);
        let (sender, receiver) = std::sync::mpsc::channel();
        let to = server.port();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap().port()).unwrap();
                loop {
                    let (near, _) = listener.accept().await.unwrap();
                    let (tls, seen) = (tls.clone(), seen.clone());
                    tokio::spawn(async move {
                        let Ok(far) = TcpStream::connect(("127.0.0.1", to)).await else {
                            return;
                        };
                        match tls {
                            None => join(near, far, seen).await,
                            Some(tls) => {
                                if let Ok(near) = tls.accept(near).await {
                                    join(near, far, seen).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        let port = receiver.recv().unwrap();
        Self { port, mode }
    }

    fn set(&self, mode: Mode) {
        self.mode.send(mode).unwrap();
    }

    fn url(&self, place: &Place, more: &str) -> String {
        through(self.port, place, more)
    }
}

/// The address of a queue through a proxy.
fn through(port: u16, place: &Place, more: &str) -> String {
    let (_, rest) = place.url.split_once("/default").unwrap();
    format!("temporal://127.0.0.1:{port}/default{rest}{more}")
}

async fn join(
    near: impl AsyncRead + AsyncWrite,
    far: impl AsyncRead + AsyncWrite,
    mode: watch::Receiver<Mode>,
) {
    let (near_read, near_write) = split(near);
    let (far_read, far_write) = split(far);
    // When one direction ends, both end.
    tokio::select! {
        () = pump(near_read, far_write, mode.clone()) => {}
        () = pump(far_read, near_write, mode) => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut bytes = vec![0; 16 << 10];
    let mut held: Vec<u8> = Vec::new();
    loop {
        let now = *mode.borrow_and_update();
        match now {
            Mode::Cut => return,
            Mode::Pass if !held.is_empty() => {
                if to.write_all(&held).await.is_err() || to.flush().await.is_err() {
                    return;
                }
                held.clear();
            }
            _ => {}
        }
        tokio::select! {
            read = from.read(&mut bytes) => match read {
                Ok(count) if count > 0 => held.extend(&bytes[..count]),
                _ => return,
            },
            changed = mode.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

#[test]
fn connections_that_are_cut_and_that_stall_lose_nothing() {
    let server = Server::shared();
    let mut place = server.place("network");
    place.start(&counting(12, "0.05", "PT0.05S"), &[]);
    let proxy = Proxy::start(server, None);
    let direct = std::mem::take(&mut place.url);
    place.url = direct.clone();
    place.url = proxy.url(&place, "");
    let worker = place.worker(&["--heartbeat", "1s", "--sticky", "1s"]);
    place.url = direct;
    for traces in [2, 4, 6] {
        place.await_traces(traces);
        proxy.set(Mode::Cut);
        sleep(Duration::from_millis(200));
        proxy.set(Mode::Pass);
    }
    for traces in [8, 10] {
        place.await_traces(traces);
        // Longer than the time after which a worker counts as lost.
        proxy.set(Mode::Stall);
        sleep(Duration::from_secs(3));
        proxy.set(Mode::Pass);
    }
    place.await_status("Succeeded");
    let begun = place.begun();
    assert_eq!(begun.len(), 12, "{begun:?}");
    // Whatever happens in the network repeats an effect at most once.
    assert!(begun.iter().all(|(_, count)| *count <= 2), "{begun:?}");
    drop(worker);
}

/// A certificate authority, and certificates that it signed.
struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { authority }
    }

    /// Issues a certificate for a name, with its key.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate, key)
    }

    /// A server that requires a client certificate of this authority.
    fn acceptor(&self) -> TlsAcceptor {
        let (certificate, key) = self.issue("localhost");
        let mut roots = RootCertStore::empty();
        let authority: CertificateDer<'static> = self.authority.der().clone();
        roots.add(authority).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

#[test]
fn mutual_tls_authorises_a_client_with_a_certificate() {
    let server = Server::shared();
    let mut place = server.place("tls");
    let certificates = Certificates::new();
    let proxy = Proxy::start(server, Some(certificates.acceptor()));
    let (certificate, key) = certificates.issue("worker");
    let write = |name: &str, text: String| {
        fs::write(place.path(name), text).unwrap();
        place.path(name).display().to_string()
    };
    let authority = write("ca.pem", certificates.authority.pem());
    let certificate = write("cert.pem", certificate.pem());
    let key = write("key.pem", key.serialize_pem());
    let trusts = format!("&server_name=localhost&ca={authority}");
    let stranger = proxy.url(&place, &trusts);
    let plain = proxy.url(&place, "");
    place.url = proxy.url(&place, &format!("{trusts}&cert={certificate}&key={key}"));
    let _worker = place.worker(&[]);
    place.start(&counting(2, "0.01", "PT0S"), &[]);
    place.await_status("Succeeded");
    assert_eq!(place.traces().len(), 2);
    for wrong in [stranger, plain] {
        let refused = super::server::windlass(&["list", "--engine", &wrong]);
        assert_eq!(refused.status.code(), Some(8), "{}", printed_by(&refused));
        assert!(
            printed_by(&refused).contains("127.0.0.1"),
            "{}",
            printed_by(&refused)
        );
    }
}

/// Runs `gate.py`, which authorises a client with the key; it is killed when it is dropped.
struct Gate {
    process: Child,
    port: u16,
}

impl Gate {
    fn start(server: &Server, place: &Place, key: &str, certificates: &Certificates) -> Self {
        let (certificate, private) = certificates.issue("localhost");
        let python = std::env::var("WINDLASS_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut command = Command::new(python);
        command
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/temporal/gate.py"
            ))
            .args([&format!("127.0.0.1:{}", server.port()), key])
            .arg(place.file("gate.pem", &certificate.pem()))
            .arg(place.file("gate.key", &private.serialize_pem()));
        let mut process = bound(&command, Stdio::piped());
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines
            .next()
            .expect("`pip install grpcio`, for a Python that WINDLASS_PYTHON names");
        let port = port.unwrap().parse().unwrap();
        Self { process, port }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn an_api_key_authorises_and_is_printed_nowhere() {
    const KEY: &str = "WINDLASS_TEMPORAL_API_KEY";
    const RIGHT: &str = "right-4f1c77e0";
    const WRONG: &str = "wrong-9b2d88a1";
    let server = Server::shared();
    let mut place = server.place("api-key");
    let certificates = Certificates::new();
    let gate = Gate::start(server, &place, RIGHT, &certificates);
    let authority = place.file("ca.pem", &certificates.authority.pem());
    let trusts = format!("&server_name=localhost&ca={authority}");
    let in_file = |name: &str, key: &str| {
        let file = place.file(name, &format!("{key}\n"));
        format!("{trusts}&api_key_file={file}")
    };
    let by_file = through(gate.port, &place, &in_file("right", RIGHT));
    let wrong_file = through(gate.port, &place, &in_file("wrong", WRONG));
    let by_variable = through(gate.port, &place, &trusts);
    let talkative = ("WINDLASS_LOG", "debug".to_owned());

    for (round, (url, settings)) in [
        (by_file, vec![talkative.clone()]),
        (
            by_variable.clone(),
            vec![talkative.clone(), (KEY, RIGHT.to_owned())],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        (place.url, place.settings) = (url, settings);
        let _worker = place.worker(&[]);
        let file = place.file("workflow.yaml", &counting(2, "0.01", "PT0S"));
        let id = format!("{}-{round}", place.id);
        let done = place.ask(&["run", &file, "--id", &id]);
        assert!(done.status.success(), "{}", printed_by(&done));
        assert_eq!(place.traces().len(), 2 * (round + 1));
        assert!(!printed_by(&done).contains(RIGHT), "{}", printed_by(&done));
        assert!(!place.log().contains(RIGHT), "{}", place.log());
    }
    for (url, settings) in [
        (wrong_file, vec![talkative.clone()]),
        (
            by_variable.clone(),
            vec![talkative.clone(), (KEY, WRONG.to_owned())],
        ),
        (by_variable, vec![talkative]),
    ] {
        (place.url, place.settings) = (url, settings);
        for command in ["list", "worker"] {
            let refused = place.ask(&[command]);
            assert_eq!(refused.status.code(), Some(8), "{}", printed_by(&refused));
            let printed = printed_by(&refused);
            assert!(printed.contains("this key lets nobody in"), "{printed}");
            assert!(printed.contains("127.0.0.1"), "{printed}");
            assert!(!printed.contains(WRONG), "{printed}");
        }
    }
}
