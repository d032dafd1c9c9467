//! Signs whole calls as AWS requires (Signature Version 4).

use crate::inputs::invalid;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use reqwest::header::{HeaderName, HeaderValue};
use std::time::SystemTime;
use windlass_model::model::Fault;

pub(super) struct Signer {
    pub(super) key_id: String,
    pub(super) secret: String,
    pub(super) session: Option<String>,
    pub(super) region: String,
    pub(super) service: String,
}

impl Signer {
    /// Signs the host, the relevant headers, the address and the body. `body_digest` is the SHA-256 of a body that is a
    /// file.
    pub(super) fn sign(
        &self,
        call: &mut reqwest::Request,
        body_digest: Option<String>,
    ) -> Result<(), Fault> {
        let bad = |what: &dyn std::fmt::Display| {
            invalid(format!("the call cannot be signed for AWS: {what}"))
        };
        let keys = (self.key_id.as_str(), self.secret.as_str());
        let identity = Credentials::new(keys.0, keys.1, self.session.clone(), None, "windlass");
        let identity = identity.into();
        let mut settings = SigningSettings::default();
        if self.service == "s3" {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        // A signature is valid for some minutes of wall clock time, so the wall clock is read here.
        #[allow(clippy::disallowed_methods)]
        let now = SystemTime::now();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service)
            .time(now)
            .settings(settings)
            .build()
            .map_err(|error| bad(&error))?;
        let headers = call.headers().iter();
        let headers: Vec<(&str, &str)> = headers
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect();
        let body = call.body().and_then(|body| body.as_bytes());
        let body = match body_digest {
            Some(digest) => SignableBody::Precomputed(digest),
            None => SignableBody::Bytes(body.unwrap_or_default()),
        };
        let (method, url) = (call.method().as_str(), call.url().as_str());
        let signable = SignableRequest::new(method, url, headers.into_iter(), body);
        let signed = sign(signable.map_err(|error| bad(&error))?, &parameters.into());
        let (instructions, _) = signed.map_err(|error| bad(&error))?.into_parts();
        for (name, text) in instructions.headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad(&error))?;
            let mut value = HeaderValue::from_str(text).map_err(|error| bad(&error))?;
            value.set_sensitive(true);
            call.headers_mut().insert(name, value);
        }
        Ok(())
    }
}
