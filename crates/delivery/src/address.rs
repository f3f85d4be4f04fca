//! Which addresses a destination may have.
//!
//! A subscription names an endpoint we do not control; its name may resolve to the machine we run on, to a cloud's
//! metadata service or into a private network. Such addresses are refused unless the deployment allows them by
//! `ALLOW_PRIVATE_DESTINATIONS`. Pure: the sender asks for each address a name resolved to, before it connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Hosts and address ranges that may be private, or reached without TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateDestinations {
    hosts: Vec<String>,
    ranges: Vec<IpNet>,
}

impl PrivateDestinations {
    /// Reads `ALLOW_PRIVATE_DESTINATIONS`: host names, addresses and CIDR ranges, parted by commas.
    ///
    /// # Errors
    /// The entry that is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let literal = entry.trim_start_matches('[').trim_end_matches(']');
            if let Ok(range) = literal.parse::<IpNet>() {
                allowed.ranges.push(range);
            } else if let Ok(address) = literal.parse::<IpAddr>() {
                allowed.ranges.push(address.into());
            } else if let (Ok(host), false) = (url::Host::parse(entry), entry.contains(['/', ':'])) {
                allowed.hosts.push(host.to_string());
            } else {
                return Err(format!("\"{entry}\" is neither a host, nor an address, nor a range such as 10.0.0.0/8"));
            }
        }
        Ok(allowed)
    }

    /// Whether the host is allowed by its name, wherever that leads.
    #[must_use]
    pub fn allows_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed == host)
    }

    /// Whether the address is allowed by a range.
    #[must_use]
    pub fn allows_address(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }

    /// Whether a request may go to this address, to which the host resolved.
    #[must_use]
    pub fn may_reach(&self, host: &str, address: IpAddr) -> bool {
        is_public(address) || self.allows_host(host) || self.allows_address(address)
    }

    /// Whether it is worth resolving this host for a request without TLS.
    #[must_use]
    pub fn may_resolve_in_clear(&self, host: &str) -> bool {
        self.allows_host(host) || !self.ranges.is_empty()
    }

    /// Whether a request may go to this address without TLS: only where it is allowed, public or not.
    #[must_use]
    pub fn may_reach_in_clear(&self, host: &str, address: IpAddr) -> bool {
        self.allows_host(host) || self.allows_address(address)
    }
}

/// Whether an address is one of the open internet: not this host, a private network, a link, a metadata service, a
/// multicast group or reserved.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => embedded_v4(v6).map_or_else(|| is_public_v6(v6), is_public_v4),
    }
}

/// IANA IPv4 special-purpose address registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || (a == 100 && b & 0xc0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && b & 0xfe == 18)
        || a >= 240;
    !special
}

/// IANA IPv6 special-purpose address registry: only global unicast is public, less its special parts.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let global_unicast = a & 0xe000 == 0x2000;
    let special = (a == 0x2001 && (b < 0x0200 || b == 0x0db8)) || (a == 0x3fff && b < 0x1000);
    global_unicast && !special
}

/// The IPv4 address that an IPv6 address carries: mapped, compatible, translated (NAT64, SIIT) or 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(v4(high, low)),
        [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_open_internet_are_public() {
        for text in ["8.8.8.8", "1.1.1.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "192.168.1.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_the_deployment_allows_is_reached_by_name_or_by_address() {
        let allowed = PrivateDestinations::parse("Internal.Example, 127.0.0.1,10.0.0.0/8,[::1]").unwrap();
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(allowed.may_reach("anything", loopback));
        assert!(allowed.may_reach("anything", "10.9.9.9".parse().unwrap()));
        assert!(allowed.may_reach("anything", "::1".parse().unwrap()));
        assert!(allowed.may_reach("internal.example", "192.168.0.1".parse().unwrap()));
        assert!(!allowed.may_reach("other.example", "192.168.0.1".parse().unwrap()));
        assert!(!PrivateDestinations::default().may_reach("localhost", loopback));
        let public: IpAddr = "8.8.8.8".parse().unwrap();
        assert!(
            allowed.may_reach_in_clear("anything", loopback) && allowed.may_reach_in_clear("internal.example", public)
        );
        assert!(!allowed.may_reach_in_clear("example.com", public));
        assert!(PrivateDestinations::parse("Bücher.example").unwrap().allows_host("xn--bcher-kva.example"));
    }

    #[test]
    fn an_entry_that_is_no_destination_is_named() {
        for text in ["http://x", "10.0.0.0/99", "a b", "host:80"] {
            let error = PrivateDestinations::parse(text).expect_err(text);
            assert!(error.contains(text), "{error}");
        }
    }
}
