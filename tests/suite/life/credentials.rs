//! How calls authenticate: tokens that are fetched, signatures, client certificates, and secrets from a command. The
//! servers check them as real servers do.

use super::process::{Place, bytes_of};
use crate::support::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ring::{digest, hmac};
use serde_json::{Value, json};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

const SECRET: &str = "kEy-of-the-client+7/";

/// A token server, and an API that accepts only the newest token.
#[derive(Clone, Default)]
struct Issuer {
    given: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    /// The token is revoked before this call of the API.
    revoked_before: Option<usize>,
    forms: Arc<Mutex<Vec<String>>>,
}

fn token(number: usize) -> String {
    format!("tOkEn-{number}-of-the-issuer")
}

async fn issue(State(issuer): State<Issuer>, headers: HeaderMap, form: String) -> Response {
    issuer.forms.lock().unwrap().push(form.clone());
    // Name and secret are form-encoded before they are joined.
    let basic = STANDARD.encode(format!("the+client:{}", "kEy-of-the-client%2B7%2F"));
    let by_header = headers
        .get("authorization")
        .is_some_and(|it| *it == format!("Basic {basic}"));
    let by_body = form.contains("client_secret=kEy-of-the-client%2B7%2F");
    if !by_header && !by_body {
        let refused = json!({ "error": "invalid_client", "error_description": "no such client" });
        return (StatusCode::UNAUTHORIZED, Json(refused)).into_response();
    }
    let number = issuer.given.fetch_add(1, Ordering::SeqCst) + 1;
    Json(json!({ "access_token": token(number), "token_type": "bearer", "expires_in": "3600" }))
        .into_response()
}

async fn api(State(issuer): State<Issuer>, headers: HeaderMap) -> Response {
    let call = issuer.calls.fetch_add(1, Ordering::SeqCst);
    let given = issuer.given.load(Ordering::SeqCst);
    let needed = match issuer.revoked_before {
        Some(limit) if call >= limit => given.max(2),
        _ => given,
    };
    let bearer = headers["authorization"].to_str().unwrap();
    match bearer == format!("Bearer {}", token(needed)) {
        // A server that returns the credentials that it received.
        true => Json(json!({ "echo": bearer })).into_response(),
        false => (StatusCode::UNAUTHORIZED, bearer.to_owned()).into_response(),
    }
}

impl Issuer {
    async fn serve(&self) -> String {
        let router = Router::new()
            .route("/token", post(issue))
            .route("/tenant/oauth2/token", post(issue))
            .route("/api", get(api));
        serve(router.with_state(self.clone())).await
    }
}

/// Runs a file in a folder that contains `secrets`; returns what it printed.
fn run(place: &Place, text: &str, base: &str, more: &[&str]) -> Output {
    let file = place.file("flow.yaml", text);
    let base = format!("base={base}");
    let mut args = vec!["run", &file, "--id", "r", "-i", &base];
    args.extend(more);
    tokio::task::block_in_place(|| place.run(&args))
}

fn with_secrets(secrets: &[(&str, &str)]) -> (Place, String) {
    let place = Place::new();
    let folder = place.dir.path().join("secrets");
    std::fs::create_dir(&folder).unwrap();
    for (name, value) in secrets {
        std::fs::write(folder.join(name), value).unwrap();
    }
    (place, folder.to_str().unwrap().to_owned())
}

fn outputs(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn printed_by(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Neither the secret nor a token is in what was printed or stored.
fn assert_hidden(place: &Place, output: &Output) {
    let dump = place.run(&["dump", "r", "-o", "json"]).stdout;
    let stored = bytes_of(&place.state());
    for text in [&stored, &dump, &output.stdout, &output.stderr] {
        for hidden in [SECRET, "tOkEn-"] {
            let there = text
                .windows(hidden.len())
                .any(|part| part == hidden.as_bytes());
            assert!(!there, "{hidden} in {}", String::from_utf8_lossy(text));
        }
    }
}

const POLL: &str = r#"
name: signed
inputs: { base: { type: string } }
actions:
  look:
    type: until
    condition: "@greater(variables('loopIndex'), 6)"
    limit: { count: 20 }
    actions:
      call:
        type: http
        inputs:
          uri: "@{inputs('base')}/api"
          authentication:
            type: OAuth2
            tokenUrl: "@{inputs('base')}/token"
            clientId: the client
            clientSecret: "${secret:CLIENT}"
            scope: read write
outputs: { echo: "@body('call').echo" }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_fetched_once_and_again_when_it_is_refused() {
    let issuer = Issuer {
        revoked_before: Some(3),
        ..Issuer::default()
    };
    let base = issuer.serve().await;
    let (place, secrets) = with_secrets(&[("CLIENT", SECRET)]);
    let output = run(&place, POLL, &base, &["--secrets", &secrets]);
    assert_eq!(outputs(&output), json!({ "echo": "Bearer ***" }));
    assert_eq!(issuer.given.load(Ordering::SeqCst), 2);
    let forms = issuer.forms.lock().unwrap().clone();
    assert_eq!(forms[0], "grant_type=client_credentials&scope=read+write");
    // The refused call and the one after it form one attempt.
    let calls = issuer.calls.load(Ordering::SeqCst);
    assert!(output.status.success() && calls >= 8, "{calls} calls");
    assert_hidden(&place, &output);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_the_same_time_share_a_token() {
    let issuer = Issuer::default();
    let base = issuer.serve().await;
    let (place, secrets) = with_secrets(&[("CLIENT", SECRET)]);
    let text = r#"
name: many
inputs: { base: { type: string } }
actions:
  each:
    type: foreach
    foreach: "@range(0, 30)"
    concurrency: 10
    actions:
      call:
        type: http
        inputs:
          uri: "@{inputs('base')}/api"
          authentication:
            type: ActiveDirectoryOAuth
            authority: "@{inputs('base')}/"
            tenant: tenant
            audience: https://vault.example.net
            clientId: the client
            secret: "${secret:CLIENT}"
"#;
    let output = run(&place, text, &base, &["--secrets", &secrets]);
    assert!(output.status.success(), "{}", printed_by(&output));
    assert_eq!(issuer.given.load(Ordering::SeqCst), 1);
    assert_eq!(issuer.calls.load(Ordering::SeqCst), 30);
    let form = issuer.forms.lock().unwrap()[0].clone();
    assert!(
        form.contains("resource=https%3A%2F%2Fvault.example.net"),
        "{form}"
    );
    assert_hidden(&place, &output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_for_a_missing_token_is_reported() {
    let base = Issuer::default().serve().await;
    let (place, secrets) = with_secrets(&[("CLIENT", "another")]);
    let output = run(&place, POLL, &base, &["--secrets", &secrets]);
    assert_eq!(output.status.code(), Some(1), "{}", printed_by(&output));
    let words = "no token for the call: ";
    assert!(
        printed_by(&output).contains(words),
        "{}",
        printed_by(&output)
    );
    let words = "/token answered 401: invalid_client: no such client";
    assert!(
        printed_by(&output).contains(words),
        "{}",
        printed_by(&output)
    );
}

#[test]
fn a_mistake_in_the_authentication_is_reported_before_the_run() {
    let place = Place::new();
    let file = place.file("slip.yaml", &POLL.replace("clientSecret", "clientsecret_"));
    let output = place.run(&["validate", &file]);
    assert_eq!(output.status.code(), Some(3), "{}", printed_by(&output));
    assert!(
        printed_by(&output).contains("did you mean `clientSecret`"),
        "{}",
        printed_by(&output)
    );
}

/// The signature that AWS computes for a call (Signature Version 4), implemented a second time.
async fn aws(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let given = text("authorization");
    let part = |name: &str| {
        let rest = given.split(&format!("{name}=")).nth(1).unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    let scope = part("Credential");
    let (id, scope) = scope.split_once('/').unwrap();
    let names = part("SignedHeaders");
    let lines: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", text(name).trim()))
        .collect();
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let hash = |bytes: &[u8]| hex(digest::digest(&digest::SHA256, bytes).as_ref());
    let query = uri.query().unwrap_or_default();
    let canonical = format!(
        "{method}\n{}\n{query}\n{lines}\n{names}\n{}",
        uri.path(),
        hash(&body)
    );
    let signed = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        text("x-amz-date"),
        hash(canonical.as_bytes())
    );
    let mac = |key: &[u8], text: &str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
    };
    let key = format!("AWS4{SECRET}").into_bytes();
    let key = scope.split('/').fold(key, |key, part| mac(&key, part));
    let right = hex(&mac(&key, &signed)) == part("Signature");
    let seen = json!({
        "id": id, "scope": scope.split_once('/').unwrap().1,
        "session": headers.contains_key("x-amz-security-token"), "body": body.len(),
    });
    match right {
        true => Json(seen).into_response(),
        false => (StatusCode::FORBIDDEN, canonical).into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_signed_for_aws() {
    let base = serve(Router::new().route("/queue", any(aws))).await;
    let (place, secrets) = with_secrets(&[("KEY", SECRET)]);
    let text = r#"
name: aws
inputs: { base: { type: string } }
actions:
  call:
    type: http
    inputs:
      method: POST
      uri: "@{inputs('base')}/queue?Action=Receive&Version=1"
      body: { wait: 20 }
      authentication:
        type: AwsSigV4
        accessKeyId: AKIDEXAMPLE
        secretAccessKey: "${secret:KEY}"
        sessionToken: of-a-session
        region: eu-central-1
        service: sqs
outputs: { seen: "@body('call')" }
"#;
    let output = run(&place, text, &base, &["--secrets", &secrets]);
    let seen = json!({ "id": "AKIDEXAMPLE", "scope": "eu-central-1/sqs/aws4_request", "session": true, "body": 11 });
    assert_eq!(outputs(&output), json!({ "seen": seen }));
    assert_hidden(&place, &output);
    // A body that is a file is signed as well.
    let (place, secrets) = with_secrets(&[("KEY", SECRET)]);
    let file = place.file("body.txt", "the content of a file");
    let text = text.replace("body: { wait: 20 }", &format!("bodyFile: {file}"));
    let output = run(&place, &text, &base, &["--secrets", &secrets]);
    assert_eq!(outputs(&output)["seen"]["body"], 21);
}

/// A server with its own CA that requires a client certificate of the same CA. Returns its address, the CA, and a
/// certificate with its key for a client.
#[allow(clippy::disallowed_methods)] // A test's server is a task of its own.
async fn serve_mutual() -> (String, [String; 3]) {
    let mut of_ca = CertificateParams::new(vec![]).unwrap();
    of_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(of_ca, KeyPair::generate().unwrap()).unwrap();
    let made = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &ca).unwrap(), key)
    };
    let (own, own_key) = made("localhost");
    let (client, client_key) = made("client");
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::try_from(own_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![own.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client without a certificate is disconnected here.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                content-length: 8\r\nconnection: close\r\n\r\n\"mutual\"";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    let pem = |kind: &str, der: &[u8]| {
        let base64 = STANDARD.encode(der);
        format!("-----BEGIN {kind}-----\n{base64}\n-----END {kind}-----\n")
    };
    let pems = [
        pem("CERTIFICATE", ca.der()),
        pem("CERTIFICATE", client.der()),
        pem("PRIVATE KEY", &client_key.serialize_der()),
    ];
    (format!("https://localhost:{port}"), pems)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_a_ca_and_a_certificate_of_its_own() {
    let (base, [ca, certificate, key]) = serve_mutual().await;
    let own = [
        ("ca.pem", &*ca),
        ("client.pem", &*certificate),
        ("client.key", &*key),
    ];
    let (place, secrets) = with_secrets(&own);
    let text = |tls: &str| {
        format!(
            "name: mutual\ninputs: {{ base: {{ type: string }} }}\nactions:\n  call:\n    type: http\n    \
             retry: {{ count: 0 }}\n    inputs: {{ uri: \"@{{inputs('base')}}/\"{tls} }}\n\
             outputs: {{ said: \"@body('call')\" }}\n"
        )
    };
    let whole = ", tls: { ca: \"${secret:ca.pem}\", certificate: \"${secret:client.pem}\", key: \"${secret:client.key}\" }";
    let output = run(&place, &text(whole), &base, &["--secrets", &secrets]);
    assert_eq!(outputs(&output), json!({ "said": "mutual" }));
    let stored = bytes_of(&place.state());
    let line = key.lines().nth(1).unwrap().as_bytes();
    assert!(!stored.windows(line.len()).any(|part| part == line));
    // Without the certificate, without the CA, and with a broken one.
    for (tls, words) in [
        (", tls: { ca: \"${secret:ca.pem}\" }", "CertificateRequired"),
        ("", "UnknownIssuer"),
        (", tls: { ca: \"nothing\" }", "`tls.ca` must be text in PEM"),
    ] {
        let other = Place::new();
        let output = run(&other, &text(tls), &base, &["--secrets", &secrets]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{tls}: {}",
            printed_by(&output)
        );
        assert!(
            printed_by(&output).contains(words),
            "{tls}: {}",
            printed_by(&output)
        );
    }
    let half = place.file(
        "half.yaml",
        &text(", tls: { key: \"${secret:client.key}\" }"),
    );
    let output = place.run(&["validate", &half]);
    assert!(
        printed_by(&output).contains("`tls` needs `certificate`"),
        "{}",
        printed_by(&output)
    );
}

const ASKS: &str = r#"
name: asks
actions:
  first: { type: shell, run: 'printf "%s" "$KEY" | wc -c', env: { KEY: "${secret:db/key}" } }
  second: { type: shell, run: 'echo "got $KEY"', env: { KEY: "${secret:db/key}" } }
outputs: { length: "@trim(outputs('first').stdout)", said: "@trim(outputs('second').stdout)" }
"#;

#[test]
fn a_command_gives_secrets() {
    let place = Place::new();
    let text = ASKS.replace("db/key", "db.key");
    let file = place.file("asks.yaml", &text);
    let vault = place.file(
        "vault.sh",
        &format!("echo asked >>'{}'/asked\n[ \"$1\" = db.key ] || {{ echo \"no entry $1\" >&2; exit 3; }}\necho '{SECRET}'\n", place.dir.path().display()),
    );
    let line = format!("sh {vault}");
    let output = place.run(&["run", &file, "--id", "r", "--secret-command", &line]);
    let length = SECRET.len().to_string();
    assert_eq!(
        outputs(&output),
        json!({ "length": length, "said": "got ***" })
    );
    assert_hidden(&place, &output);
    let calls = std::fs::read_to_string(place.dir.path().join("asked")).unwrap();
    assert_eq!(calls, "asked\n");
    // A name where the command line wants one, and the message for an unknown name.
    let line = format!("sh {vault} x$1");
    let output = place.run(&["run", &file, "--id", "s", "--secret-command", &line]);
    assert_eq!(output.status.code(), Some(1), "{}", printed_by(&output));
    let words = "--secret-command gave no secret `db.key`: exit status: 3: no entry xdb.key";
    assert!(
        printed_by(&output).contains(words),
        "{}",
        printed_by(&output)
    );
}
