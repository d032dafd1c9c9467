//! `http` over TLS: the machine's certificates are trusted and others are not, and a redirect may lead from http to
//! https. The environment chooses the machine's certificates, so the calls are made by a separate process.

use super::{attempt, gist};
use crate::support;
use axum::Router;
use axum::response::Redirect;
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const URL: &str = "WINDLASS_TEST_URL";
const IS_TRUSTED: &str = "WINDLASS_TEST_TRUSTED";

/// Serves JSON over TLS. Writes the certificate for `localhost` to a file.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn serve_tls(certificate_file: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let base64 = BASE64.encode(made.cert.der());
    let pem = format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
    std::fs::write(certificate_file, pem).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust the certificate closes the connection here.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                content-length: 6\r\nconnection: close\r\n\r\n\"safe\"";
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    format!("https://localhost:{port}/")
}

/// Runs [`a_caller`] in another process and expects it to pass.
async fn call(url: &str, certificates: &Path, is_trusted: bool) -> String {
    let mut caller = support::this_test_binary("action::tls::a_caller");
    caller
        .env(URL, url)
        .env(IS_TRUSTED, is_trusted.to_string())
        .env("SSL_CERT_FILE", certificates)
        .env_remove("SSL_CERT_DIR");
    let ended = tokio::task::spawn_blocking(move || caller.output());
    let output = super::soon(ended).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
    printed.into_owned()
}

#[tokio::test]
async fn certificates_of_the_machine_are_trusted_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.pem");
    let other = folder.path().join("other.pem");
    let url = serve_tls(&own).await;
    serve_tls(&other).await;
    call(&url, &own, true).await;
    call(&url, &other, false).await;
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    let printed = call(&url, &empty, false).await;
    let problem = format!("SSL_CERT_FILE: {} has no certificate", empty.display());
    assert!(printed.contains(&problem), "{printed}");
}

#[tokio::test]
async fn a_redirect_leads_from_http_to_https() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("own.pem");
    let target = serve_tls(&certificate).await;
    let redirect = any(move || async move { Redirect::temporary(&target) });
    let url = support::serve(Router::new().route("/", redirect)).await;
    call(&url, &certificate, true).await;
}

#[tokio::test]
#[ignore = "run by the tests above, in a process of its own"]
async fn a_caller() {
    let url = std::env::var(URL).unwrap();
    let given = attempt("http", json!({ "uri": url })).await;
    if std::env::var(IS_TRUSTED).unwrap() == "true" {
        assert_eq!(given.unwrap()["body"], "safe");
        return;
    }
    let fault = given.unwrap_err();
    assert_eq!(
        gist(&fault),
        json!(["connection", "not-connected", true, null])
    );
    assert!(fault.message.contains("certificate"), "{fault:?}");
    println!("{}", fault.message);
}

#[tokio::test]
async fn a_server_without_tls_is_a_connection_fault() {
    let url = support::serve(Router::new()).await;
    let url = url.replace("http:", "https:");
    let fault = attempt("http", json!({ "uri": url })).await.unwrap_err();
    assert_eq!(
        gist(&fault),
        json!(["connection", "not-connected", true, null])
    );
}
