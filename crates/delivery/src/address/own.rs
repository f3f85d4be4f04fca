//! The function's own addresses. Services in the function's sandbox listen there, and return its
//! events and secrets.

use std::net::IpAddr;

use url::Host;

use super::public::is_local;

/// Endpoints of the function itself, which no setting can make reachable.
///
/// They listen on this machine, on unknown local addresses. Therefore every local address is
/// refused on each of their ports: loopback, unspecified and link-local, in any spelling. The
/// configured hosts are refused too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    hosts: Vec<Host>,
    ports: Vec<u16>,
}

impl OwnAddresses {
    /// Parses endpoints of the form `host:port`.
    ///
    /// # Errors
    /// Fails at the first endpoint that does not have this form. The error quotes the endpoint.
    pub fn parse<'a>(endpoints: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut own = Self::default();
        endpoints.into_iter().try_for_each(|endpoint| own.add(endpoint))?;
        Ok(own)
    }

    /// Adds the endpoint `host:port`.
    ///
    /// # Errors
    /// Fails if the text does not have this form. The error quotes the text.
    pub fn add(&mut self, endpoint: &str) -> Result<(), String> {
        let (host, port) =
            host_and_port(endpoint).ok_or_else(|| format!("\"{endpoint}\" is not host:port"))?;
        self.hosts.push(host);
        self.ports.push(port);
        Ok(())
    }

    /// True if one of the function's own endpoints uses this port, on any host.
    #[must_use]
    pub fn has_port(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// True if the host, or the address that it resolved to, belongs to the function. The caller
    /// has checked the port.
    pub(super) fn contains(&self, host: &str, address: IpAddr) -> bool {
        let named = self.hosts.iter().any(|own| match own {
            Host::Domain(name) => name == host.trim_end_matches('.'),
            Host::Ipv4(own) => IpAddr::V4(*own) == address.to_canonical(),
            Host::Ipv6(own) => IpAddr::V6(*own).to_canonical() == address.to_canonical(),
        });
        named || is_local(address)
    }
}

fn host_and_port(endpoint: &str) -> Option<(Host, u16)> {
    let (host, port) = endpoint.rsplit_once(':')?;
    Some((Host::parse(host).ok()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(endpoint: &str, host: &str, address: &str) -> bool {
        OwnAddresses::parse([endpoint]).unwrap().contains(host, address.parse().unwrap())
    }

    #[test]
    fn every_spelling_of_this_machine_is_its_own() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.100.1",
            "::",
            "::1",
            "fe80::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::1",
            "2606:4700::5efe:7f00:1",
        ] {
            assert!(contains("127.0.0.1:9001", "any.example", address), "{address}");
        }
        for address in ["10.0.0.1", "8.8.8.8", "fd00::1", "2606:4700::1111"] {
            assert!(!contains("127.0.0.1:9001", "any.example", address), "{address}");
        }
    }

    #[test]
    fn an_endpoint_elsewhere_is_its_own_by_name_or_address() {
        assert!(contains("10.0.0.9:9001", "any.example", "::ffff:10.0.0.9"));
        assert!(contains("[fd00::9]:9001", "any.example", "fd00::9"));
        assert!(contains("Runtime.Internal:9001", "runtime.internal.", "10.0.0.1"));
        assert!(!contains("runtime.internal:9001", "other.internal", "10.0.0.1"));
    }

    #[test]
    fn what_is_no_endpoint_is_named() {
        for text in ["127.0.0.1", "9001", ":9001", "127.0.0.1:", "127.0.0.1:99999", "a b:1"] {
            let error = OwnAddresses::parse([text]).expect_err(text);
            assert!(error.contains(text), "{error}");
        }
    }
}
