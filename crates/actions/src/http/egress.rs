//! Restricts calls of guests (workflows from HTTP or MCP) to the public internet. IP addresses are checked, and not
//! names: the addresses of a name, an address in a URL, and those of each redirect's target. They are checked at every
//! call, so a guest gains nothing by changing the address of a name.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::Host;

/// An address that is not on the public internet.
#[derive(Debug, thiserror::Error)]
#[error("{0} leads to {1}, which is not on the public internet: --allow-private-network")]
pub(super) struct DeniedAddress(pub String, pub IpAddr);

/// A resolver that returns only public addresses.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            // One private address among public ones is refused, too, because it is not known which one will be used.
            if let Some(private) = found.iter().find(|found| !is_public(found.ip())) {
                return Err(DeniedAddress(host, private.ip()).into());
            }
            if found.is_empty() {
                return Err(io::Error::other(format!("{host} has no address")).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Refuses a URL whose host is an address that is not public. The resolver does not check such a URL, because the URL
/// has no name to resolve.
pub(super) fn check(url: &Url) -> Result<(), DeniedAddress> {
    let ip = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    if is_public(ip) {
        return Ok(());
    }
    Err(DeniedAddress(
        url.host_str().unwrap_or_default().to_owned(),
        ip,
    ))
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_unspecified()
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        // Shared address space between internet providers and their customers.
        || (a == 100 && (b & 0xc0) == 64)
        || (a == 192 && b == 0 && c == 0)
        // Network benchmarks.
        || (a == 198 && (b & 0xfe) == 18);
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    // Addresses that contain an IPv4 address: mapped, translated (NAT64), 6to4.
    if let Some(inner) = ip.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [first, second, third, ..] = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (first, second) {
        (0x64, 0xff9b) => {
            let [.., high, low] = ip.segments();
            return third == 0 && is_public_v4(v4(high, low));
        }
        (0x2002, high) => return is_public_v4(v4(high, third)),
        _ => {}
    }
    // All public (global unicast) addresses begin with the bits 001.
    let global = (first & 0xe000) == 0x2000;
    let documentation = (first == 0x2001 && second == 0xdb8) || (first & 0xfff0) == 0x3ff0;
    // Teredo and other tunnels, and benchmarks.
    let special = first == 0x2001 && second < 0x200;
    global && !documentation && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::7f00:1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_seen_however_it_is_written() {
        for url in [
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]:80/",
            "http://0/",
        ] {
            assert!(check(&Url::parse(url).unwrap()).is_err(), "{url}");
        }
        assert!(check(&Url::parse("http://example.org/").unwrap()).is_ok());
    }
}
