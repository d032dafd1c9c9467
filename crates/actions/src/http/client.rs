//! The connections that all HTTP calls share. The clients are built when they are first needed, because reading the
//! machine's certificates may take more time than a short run. A connection belongs to the async runtime that opened
//! it, so the scheduler's own thread has connections of its own.

use super::egress;
use super::fault::{connection_fault, shown};
use super::proxy;
use super::redirect;
use super::reply::{Answer, Reply};
use super::request;
use super::tokens::Tokens;
use super::trust::TrustedCertificates;
use super::upload::Upload;
use reqwest::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::OnceCell;
use windlass_expression::Value;
use windlass_model::model::{Fault, Request, fault_kind};

/// Timeout for opening a connection, in addition to the timeout of the attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of redirects that a call follows.
const MAX_REDIRECTS: usize = 10;

const USER_AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

#[derive(Default)]
pub(crate) struct Client {
    /// The connections for runtimes with worker threads.
    workers: Connections,
    /// The connections for runtimes with one thread.
    single_thread: Connections,
    /// The connections for runtimes with worker threads, for bodies that are saved to files: no body is decompressed.
    files: Connections,
    tokens: Tokens,
    /// Whether calls may reach only the public internet.
    public_only: bool,
}

/// Options of a call, in addition to its request.
#[derive(Clone, Copy, Default)]
pub(super) struct CallOptions<'a> {
    /// TLS settings of the call, which are used only for the called server, and not for the target of a redirect.
    pub trust: Option<&'a TrustedCertificates>,
    /// The file that is the body of the request.
    pub upload: Option<&'a Upload>,
    /// Whether the body of the answer remains compressed.
    pub keeps_bytes: bool,
}

#[derive(Default)]
struct Connections {
    /// A client without certificates, which is quick to build.
    plain: OnceCell<reqwest::Client>,
    /// A client that also supports TLS. Once it is built, it also makes the calls without TLS.
    secure: OnceCell<reqwest::Client>,
    /// Clients with a CA or a client certificate of their own, by a digest of the TLS settings.
    with_own_tls: Mutex<BTreeMap<[u8; 32], reqwest::Client>>,
}

/// Maximum number of clients with their own TLS settings. When it is reached, all of them are dropped.
const MAX_OWN_TLS: usize = 64;

impl Client {
    /// Makes a client for guests (workflows from HTTP or MCP). It reaches only the public internet. It uses no proxy,
    /// because a proxy would resolve names itself, without a check of the addresses.
    pub(crate) fn public_only() -> Self {
        Self {
            public_only: true,
            ..Self::default()
        }
    }

    fn builder(&self, unpacks: bool) -> reqwest::ClientBuilder {
        let builder = builder().gzip(unpacks);
        if !self.public_only {
            return builder;
        }
        builder
            .dns_resolver(Arc::new(egress::PublicResolver))
            .no_proxy()
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Sends a request, follows redirects, and reads the whole reply.
    pub(crate) async fn call(&self, call: reqwest::Request) -> Result<Reply, Fault> {
        self.call_with(call, CallOptions::default()).await
    }

    /// Sends a request as [`Self::call`] does, with options.
    pub(super) async fn call_with<A: Answer>(
        &self,
        mut call: reqwest::Request,
        options: CallOptions<'_>,
    ) -> Result<A, Fault> {
        let CallOptions {
            trust, mut upload, ..
        } = options;
        let home = call.url().origin();
        for hop in 0..=MAX_REDIRECTS {
            let url = call.url().clone();
            let trust = trust.filter(|_| url.origin() == home);
            match self.public_only {
                true => egress::check(&url)
                    .map_err(|error| Fault::new(fault_kind::DENIED, error.to_string()))?,
                false => proxy::check(&url)?,
            }
            let method = call.method().clone();
            let again = call.try_clone();
            if let Some(upload) = upload {
                let length = HeaderValue::from(upload.length());
                call.headers_mut().insert(CONTENT_LENGTH, length);
                *call.body_mut() = Some(upload.body().await?);
            }
            let response = match trust {
                Some(trust) => self.with_own_tls(trust, options).await?.execute(call).await,
                None => self.send(call, options).await,
            };
            let response = response.map_err(|error| connection_fault(&url, error, hop == 0))?;
            upload = upload.filter(|_| redirect::keeps_body(response.status()));
            match redirect::next(again, &response)? {
                None => return A::read(&method, response).await,
                Some(next) => call = next,
            }
        }
        let message = format!("{} redirects too often", shown(call.url()));
        Err(Fault::new(fault_kind::HTTP, message))
    }

    /// Posts a value as JSON, for handlers and models.
    pub(crate) async fn post_json(
        &self,
        url: &str,
        body: &Value,
        request: &Request,
    ) -> Result<Reply, Fault> {
        self.call(request::post_json(url, body, request)?).await
    }

    /// Posts a value as JSON with these headers.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: &Value,
        request: &Request,
    ) -> Result<Reply, Fault> {
        let mut call = request::post_json(url, body, request)?;
        call.headers_mut().extend(headers);
        self.call(call).await
    }

    fn connections(&self, options: CallOptions<'_>) -> &Connections {
        match Handle::current().runtime_flavor() {
            _ if options.keeps_bytes => &self.files,
            RuntimeFlavor::CurrentThread => &self.single_thread,
            _ => &self.workers,
        }
    }

    async fn send(
        &self,
        call: reqwest::Request,
        options: CallOptions<'_>,
    ) -> reqwest::Result<reqwest::Response> {
        if call.url().scheme() == "https" || self.connections(options).secure.initialized() {
            return self.secure(options).await?.execute(call).await;
        }
        self.plain(options).await?.execute(call).await
    }

    /// Returns the client with these TLS settings. If it is not built yet, this reads files.
    async fn with_own_tls(
        &self,
        trust: &TrustedCertificates,
        options: CallOptions<'_>,
    ) -> Result<reqwest::Client, Fault> {
        let key = trust.key();
        let clients = &self.connections(options).with_own_tls;
        let clients = || clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients().get(&key) {
            return Ok(client.clone());
        }
        let builder = trust.put_on(self.builder(!options.keeps_bytes))?;
        let built = tokio::task::spawn_blocking(|| builder.build()).await;
        let built = built.map_err(|error| Fault::new(fault_kind::CONNECTION, error.to_string()))?;
        // The message omits the library's reason, which may contain a part of the key.
        let client = built.map_err(|_| {
            Fault::new(
                fault_kind::INPUT,
                "`tls` has a certificate or key that cannot be used",
            )
        })?;
        let mut clients = clients();
        if clients.len() >= MAX_OWN_TLS {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }

    async fn plain(&self, options: CallOptions<'_>) -> reqwest::Result<&reqwest::Client> {
        let builder = || self.builder(!options.keeps_bytes);
        let build = || async { builder().tls_built_in_root_certs(false).build() };
        let plain = &self.connections(options).plain;
        plain.get_or_try_init(build).await
    }

    async fn secure(&self, options: CallOptions<'_>) -> reqwest::Result<&reqwest::Client> {
        let builder = || self.builder(!options.keeps_bytes);
        let build = || async {
            // Build it on a thread for blocking work, because this reads files.
            let first = builder();
            match tokio::task::spawn_blocking(|| first.build()).await {
                Ok(built) => built,
                Err(_) => builder().build(),
            }
        };
        let secure = &self.connections(options).secure;
        secure.get_or_try_init(build).await
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        // The library must not follow redirects: `call_with` does, because it knows what must not be sent to another
        // server.
        .redirect(Policy::none())
}
