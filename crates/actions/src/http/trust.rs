//! The TLS settings of a call: its own certificate authority (CA), and a client certificate.

use crate::inputs::{Inputs, invalid};
use reqwest::{Certificate, ClientBuilder, Identity};
use ring::digest::{SHA256, digest};
use windlass_model::model::Fault;

/// The input `tls: {ca, certificate, key}` of a call. Each member is text in PEM.
pub(super) struct TrustedCertificates {
    ca: Option<String>,
    /// The certificate, followed by the certificates of its chain, and its key.
    identity: Option<String>,
}

impl TrustedCertificates {
    pub(super) fn of(inputs: Inputs<'_>) -> Result<Option<Self>, Fault> {
        let Some(given) = inputs.get("tls") else {
            return Ok(None);
        };
        let given = Inputs::from_value("tls", given)?;
        for (key, _) in given.all() {
            if !["ca", "certificate", "key"].contains(&key) {
                let message =
                    format!("`tls.{key}` is not known: there are ca, certificate and key");
                return Err(invalid(message));
            }
        }
        let pair = (pem(given, "certificate")?, pem(given, "key")?);
        let identity = match pair {
            (Some(certificate), Some(key)) => Some(format!("{certificate}\n{key}")),
            (None, None) => None,
            (Some(_), None) => return Err(invalid("`tls.certificate` needs `tls.key`")),
            (None, Some(_)) => return Err(invalid("`tls.key` needs `tls.certificate`")),
        };
        let ca = pem(given, "ca")?.map(str::to_owned);
        Ok(Some(Self { ca, identity }))
    }

    /// Returns a digest that identifies these TLS settings.
    pub(super) fn key(&self) -> [u8; 32] {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let whole = format!("{}\0{}", part(&self.ca), part(&self.identity));
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, whole.as_bytes()).as_ref());
        key
    }

    /// Adds these settings to a client. If the settings have a CA, the client trusts only this CA.
    pub(super) fn put_on(&self, mut builder: ClientBuilder) -> Result<ClientBuilder, Fault> {
        // The message omits the library's reason, which may contain a part of the key.
        if let Some(identity) = &self.identity {
            let identity = Identity::from_pem(identity.as_bytes())
                .map_err(|_| invalid("`tls.certificate` and `tls.key` are not a pair in PEM"))?;
            builder = builder.identity(identity);
        }
        if let Some(ca) = &self.ca {
            let found = Certificate::from_pem_bundle(ca.as_bytes()).unwrap_or_default();
            if found.is_empty() {
                return Err(invalid("`tls.ca` has no certificate in PEM"));
            }
            builder = builder.tls_built_in_root_certs(false);
            for certificate in found {
                builder = builder.add_root_certificate(certificate);
            }
        }
        Ok(builder)
    }
}

fn pem<'a>(given: Inputs<'a>, key: &str) -> Result<Option<&'a str>, Fault> {
    let text = given.text(key)?;
    match text {
        Some(text) if !text.contains("-----BEGIN ") => Err(invalid(format!(
            "`tls.{key}` must be text in PEM, for example \"${{secret:{key}.pem}}\""
        ))),
        text => Ok(text),
    }
}
