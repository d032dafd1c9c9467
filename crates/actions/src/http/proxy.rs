//! The environment variables with the addresses of proxies. The client library ignores an address that it cannot read,
//! and would send the request without a proxy.

use crate::inputs::invalid;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;
use std::env::var;
use windlass_model::model::Fault;

/// The schemes of proxies that the client library reads. It has an error of its own for those of SOCKS.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Returns the environment variable that has the proxy for an address, and its value.
pub(super) fn variable(url: &Url) -> Option<(&'static str, String)> {
    let names = match url.scheme() {
        "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let mut set = names
        .into_iter()
        .filter_map(|name| Some((name, var(name).ok()?)));
    set.find(|(_, value)| !value.is_empty())
}

/// Returns a fault if the variable with the proxy for an address is not the address of a proxy.
pub(super) fn check(url: &Url) -> Result<(), Fault> {
    let Some((name, _)) = variable(url).filter(|(_, value)| !is_proxy(value)) else {
        return Ok(());
    };
    let without = ["NO_PROXY", "no_proxy"];
    let without = without.into_iter().find_map(|name| var(name).ok());
    let matcher = Matcher::builder().all("http://proxy.invalid");
    let matcher = matcher.no(without.unwrap_or_default()).build();
    // The result is `None` for an address in NO_PROXY.
    let is_used = url.as_str().parse();
    match is_used.is_ok_and(|url| matcher.intercept(&url).is_some()) {
        false => Ok(()),
        // The message omits the value, which may contain a password.
        true => Err(invalid(format!(
            "{name} is not the address of a proxy, such as http://proxy.example:3128"
        ))),
    }
}

fn is_proxy(value: &str) -> bool {
    match value.split_once("://") {
        None => !value.contains(['/', '?', '#']) && Url::parse(&format!("http://{value}")).is_ok(),
        Some((scheme, _)) => {
            SCHEMES.contains(&&*scheme.to_lowercase()) && Url::parse(value).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_proxy;

    #[test]
    fn misspelt_addresses_are_refused() {
        for value in [
            "proxy:3128",
            "user:p@proxy",
            "http://proxy",
            "socks5://p:1",
            "10.0.0.1:80",
        ] {
            assert!(is_proxy(value), "{value}");
        }
        for value in [
            "foo://proxy",
            "htp://u:p@proxy:1",
            "http://[",
            "http://",
            "://proxy",
        ] {
            assert!(!is_proxy(value), "{value}");
        }
    }
}
