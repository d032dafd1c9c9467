//! The address of an engine whose runs are on Temporal, `temporal://HOST:PORT/NAMESPACE?queue=Q`, and its credentials.

use super::TemporalError;
use std::path::Path;
use url::Url;

/// The default task queue.
const QUEUE: &str = "windlass";

/// The default namespace of Temporal.
const NAMESPACE: &str = "default";

/// The default port.
const PORT: u16 = 7233;

/// The environment variable with the API key for Temporal Cloud.
const API_KEY: &str = "WINDLASS_TEMPORAL_API_KEY";

/// The address of Temporal, and how to connect.
#[derive(Clone, Debug)]
pub struct Target {
    /// `HOST:PORT`.
    pub address: String,
    pub namespace: String,
    /// The task queue that connects clients and workers.
    pub queue: String,
    pub tls: Option<Tls>,
    pub api_key: Option<String>,
    /// Whether the namespace has the search attributes of Windlass, so that runs can be found by them.
    pub search: bool,
}

/// TLS certificates. Without an authority, the certificates of the system are used.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    pub authority: Option<Vec<u8>>,
    /// The client's certificate and key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
    pub server_name: Option<String>,
}

impl Target {
    /// Parses an address, and reads the files that it names.
    ///
    /// # Errors
    /// Returns [`TemporalError::Target`] if the address or a file is not valid.
    pub fn parse(text: &str) -> Result<Self, TemporalError> {
        let wrong = |why: &str| {
            TemporalError::Target(format!(
                "`{text}` is not a valid engine: {why}; use \
                 temporal://HOST:PORT/NAMESPACE?queue=NAME"
            ))
        };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.scheme() != "temporal" {
            return Err(wrong("it does not begin with temporal://"));
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| wrong("it does not name a host"))?;
        let mut target = Self {
            address: format!("{host}:{}", url.port().unwrap_or(PORT)),
            namespace: match url.path().trim_matches('/') {
                "" => NAMESPACE.to_owned(),
                namespace => namespace.to_owned(),
            },
            queue: QUEUE.to_owned(),
            tls: None,
            search: false,
            api_key: std::env::var(API_KEY).ok().filter(|key| !key.is_empty()),
        };
        let (mut cert, mut key) = (None, None);
        for (name, value) in url.query_pairs() {
            match (&*name, &*value) {
                ("queue", "") => return Err(wrong("its queue has no name")),
                ("queue", queue) => target.queue = queue.to_owned(),
                ("tls", "true") => drop(target.tls.get_or_insert_default()),
                ("tls", "false") => target.tls = None,
                ("search", "true") => target.search = true,
                ("search", "false") => target.search = false,
                ("ca", file) => {
                    target.tls.get_or_insert_default().authority = Some(read(file)?);
                }
                ("server_name", name) => {
                    target.tls.get_or_insert_default().server_name = Some(name.to_owned());
                }
                ("cert", file) => cert = Some(read(file)?),
                ("key", file) => key = Some(read(file)?),
                ("api_key_file", file) => {
                    let text = String::from_utf8_lossy(&read(file)?).trim().to_owned();
                    target.api_key = Some(text);
                }
                (flag @ ("tls" | "search"), value) => {
                    let why = format!("`{flag}` has to be true or false, not `{value}`");
                    return Err(wrong(&why));
                }
                (other, _) => {
                    let known = "queue, search, tls, ca, cert, key, server_name and api_key_file \
                                 are known";
                    return Err(wrong(&format!("`{other}` means nothing in it: {known}")));
                }
            }
        }
        match (cert, key) {
            (Some(cert), Some(key)) => {
                target.tls.get_or_insert_default().client = Some((cert, key));
            }
            (None, None) => {}
            _ => return Err(wrong("a certificate and its key are given together")),
        }
        Ok(target)
    }
}

fn read(file: &str) -> Result<Vec<u8>, TemporalError> {
    std::fs::read(Path::new(file))
        .map_err(|error| TemporalError::Target(format!("{file} cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_host_namespace_and_queue() {
        let target = Target::parse("temporal://127.0.0.1:7000/blue?queue=loops").unwrap();
        let found = [&*target.address, &target.namespace, &target.queue];
        assert_eq!(found, ["127.0.0.1:7000", "blue", "loops"]);
        assert!(target.tls.is_none());
        let target = Target::parse("temporal://here").unwrap();
        let found = [&*target.address, &target.namespace, &target.queue];
        assert_eq!(found, ["here:7233", "default", "windlass"]);
        assert!(
            Target::parse("temporal://here?tls=true")
                .unwrap()
                .tls
                .is_some()
        );
        assert!(Target::parse("temporal://[::1]:7233").is_ok());
    }

    #[test]
    fn what_an_address_cannot_be_is_said() {
        for (text, word) in [
            ("http://here", "temporal://"),
            ("here", "is not a valid engine"),
            ("temporal:///x", "host"),
            ("temporal://here?queue=", "queue"),
            ("temporal://here?cert=/dev/null", "together"),
            ("temporal://here?quene=a", "quene"),
            (
                "temporal://here?tls=yes",
                "`tls` has to be true or false, not `yes`",
            ),
            ("temporal://here?ca=/nowhere", "/nowhere"),
        ] {
            let told = Target::parse(text).unwrap_err().to_string();
            assert!(told.contains(word), "{text}: {told}");
        }
    }
}
