//! What lies between workers and the server: connections that are cut, that stall, and that are
//! encrypted.

use super::server::{Place, Server, counting, told};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
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
    /// Nothing goes on, and nobody is told.
    Stall,
    /// Connections end; new ones too.
    Cut,
}

/// Stands before the server.
struct Proxy {
    port: u16,
    mode: watch::Sender<Mode>,
}

impl Proxy {
    fn start(server: &Server, tls: Option<TlsAcceptor>) -> Self {
        let (mode, seen) = watch::channel(Mode::Pass);
        let (tell, told) = std::sync::mpsc::channel();
        let to = server.port();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap().port()).unwrap();
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
        let port = told.recv().unwrap();
        Self { port, mode }
    }

    fn set(&self, mode: Mode) {
        self.mode.send(mode).unwrap();
    }

    /// The address of a queue through this proxy.
    fn url(&self, place: &Place, more: &str) -> String {
        let (_, rest) = place.url.split_once("/default").unwrap();
        format!("temporal://127.0.0.1:{}/default{rest}{more}", self.port)
    }
}

async fn join(
    near: impl AsyncRead + AsyncWrite,
    far: impl AsyncRead + AsyncWrite,
    mode: watch::Receiver<Mode>,
) {
    let (near_read, near_write) = split(near);
    let (far_read, far_write) = split(far);
    // When one side is over, both are.
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
        // Longer than a worker is waited for.
        proxy.set(Mode::Stall);
        sleep(Duration::from_secs(3));
        proxy.set(Mode::Pass);
    }
    place.await_status("Succeeded");
    let begun = place.begun();
    assert_eq!(begun.len(), 12, "{begun:?}");
    // Whatever is in the way repeats an effect once at most.
    assert!(begun.iter().all(|(_, count)| *count <= 2), "{begun:?}");
    drop(worker);
}

/// An authority, and certificates that it signed.
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

    /// A certificate for a name, and its key.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate, key)
    }

    /// A server that wants to see a certificate of this authority.
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
fn mutual_tls_lets_in_who_has_a_certificate() {
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
        assert_eq!(refused.status.code(), Some(8), "{}", told(&refused));
        assert!(told(&refused).contains("127.0.0.1"), "{}", told(&refused));
    }
}
