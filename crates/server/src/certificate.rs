//! The TLS certificate of a server. Its files are read again when they change, so a renewal needs no restart.

use crate::serve::{ServeError, TlsFiles};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, ServerConfig};

/// The certificate that new connections receive.
#[derive(Debug)]
pub(super) struct Certificate {
    files: TlsFiles,
    loaded: RwLock<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    /// The content of the two files.
    content: [Vec<u8>; 2],
    key: Arc<CertifiedKey>,
}

impl Certificate {
    /// Reads the certificate and its key.
    ///
    /// # Errors
    /// [`ServeError::Tls`] if a file cannot be read or is not valid, or if the key belongs to another certificate.
    pub fn open(files: TlsFiles) -> Result<Arc<Self>, ServeError> {
        let content = read(&files)?;
        let key = parse(&files, &content)?;
        Ok(Arc::new(Self {
            files,
            loaded: RwLock::new(Loaded { content, key }),
        }))
    }

    /// Returns false if it was read from a pipe, which can be read only once.
    pub fn is_in_files(&self) -> bool {
        self.files.cert.is_file() && self.files.key.is_file()
    }

    /// Reads the files again if they have changed. Returns whether they have.
    ///
    /// # Errors
    /// As in [`open`](Self::open). The former certificate remains in use.
    pub fn reload(&self) -> Result<bool, ServeError> {
        // The read of a pipe might never end.
        let mut paths = [&self.files.cert, &self.files.key].into_iter();
        if let Some(path) = paths.find(|path| path.exists() && !path.is_file()) {
            return Err(unusable(path, &"it is not a regular file"));
        }
        let content = read(&self.files)?;
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if loaded.content == content {
            return Ok(false);
        }
        drop(loaded);
        let key = parse(&self.files, &content)?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Loaded { content, key };
        Ok(true)
    }

    /// Creates the acceptor of TLS connections.
    ///
    /// # Errors
    /// [`ServeError::Tls`] if the TLS library cannot be configured.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, ServeError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&self.files.cert, &error))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Self>::clone(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&loaded.key))
    }
}

fn read(files: &TlsFiles) -> Result<[Vec<u8>; 2], ServeError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(path, &error));
    Ok([read(&files.cert)?, read(&files.key)?])
}

fn parse(files: &TlsFiles, [cert, key]: &[Vec<u8>; 2]) -> Result<Arc<CertifiedKey>, ServeError> {
    let chain: Vec<CertificateDer> = CertificateDer::pem_slice_iter(cert)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(&files.cert, &pem_fault(&error)))?;
    if chain.is_empty() {
        return Err(unusable(&files.cert, &"it holds no certificate"));
    }
    for (index, one) in chain.iter().enumerate() {
        ParsedCertificate::try_from(one).map_err(|error| {
            let reason = format!("its certificate {} is not valid: {error}", index + 1);
            unusable(&files.cert, &reason)
        })?;
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            let reason = "it holds no private key that is not encrypted";
            unusable(&files.key, &reason)
        }
        error => unusable(&files.key, &pem_fault(&error)),
    })?;
    match CertifiedKey::from_der(chain, key, &ring::default_provider()) {
        Ok(key) => Ok(Arc::new(key)),
        Err(Error::InconsistentKeys(_)) => {
            let cert = files.cert.display();
            let reason = format!("it is not the key of the first certificate in {cert}");
            Err(unusable(&files.key, &reason))
        }
        Err(error) => Err(unusable(&files.key, &error)),
    }
}

fn pem_fault(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let end = String::from_utf8_lossy(end_marker);
            format!("it is incomplete: the line `-----END {end}-----` is missing")
        }
        error => error.to_string(),
    }
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> ServeError {
    ServeError::Tls {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
