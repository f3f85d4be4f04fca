//! Parses and applies the setting `ALLOW_PRIVATE_DESTINATIONS`.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Host;

/// Number of leading bits that all IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`) share.
const MAPPED_PREFIX_BITS: u8 = 96;

/// Hosts and address ranges that requests may reach even if the address is private, or the URL uses
/// plain HTTP.
///
/// A range contains its addresses in one spelling only, with one exception: an IPv4 address and its
/// mapped form `::ffff:a.b.c.d` are equal, because the machine connects to both over IPv4. An
/// address behind a translator (NAT64, 6to4 …) is reached by a different route and needs an IPv6
/// range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateDestinations {
    hosts: Vec<String>,
    ranges: Vec<IpNet>,
}

impl PrivateDestinations {
    /// Parses `ALLOW_PRIVATE_DESTINATIONS`: host names, addresses and CIDR ranges, separated by
    /// commas.
    ///
    /// # Errors
    /// Fails at the first entry that is neither a host name, an address nor a range. The error
    /// quotes the entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            if let Some(range) = range(entry) {
                allowed.ranges.push(range);
                continue;
            }
            match Host::parse(entry) {
                Ok(Host::Domain(name)) => allowed.hosts.push(name),
                Ok(Host::Ipv4(address)) => allowed.ranges.push(IpAddr::V4(address).into()),
                Ok(Host::Ipv6(address)) => {
                    allowed.ranges.push(IpAddr::V6(address).to_canonical().into());
                }
                Err(_) => {
                    let problem = "is not a host, an address, or a range such as 10.0.0.0/8";
                    return Err(format!("\"{entry}\" {problem}"));
                }
            }
        }
        Ok(allowed)
    }

    /// True if the host name itself is listed, whatever address it resolves to.
    #[must_use]
    pub fn allows_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed == host)
    }

    /// True if the address is in an allowed range.
    #[must_use]
    pub fn allows_address(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(&address.to_canonical()))
    }

    /// True if a request to the host may be allowed: its name is listed, or some address range is.
    pub(super) fn may_allow_host(&self, host: &str) -> bool {
        self.allows_host(host) || !self.ranges.is_empty()
    }
}

/// Parses an address or a CIDR range. An IPv4-mapped address or range is converted to IPv4.
fn range(entry: &str) -> Option<IpNet> {
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    let range = entry.parse::<IpNet>().ok()?;
    let mapped_bits = range.prefix_len().checked_sub(MAPPED_PREFIX_BITS);
    match (range.addr().to_canonical(), mapped_bits) {
        (IpAddr::V4(address), Some(bits)) if range.addr().is_ipv6() => {
            IpNet::new(address.into(), bits).ok()
        }
        (IpAddr::V4(_) | IpAddr::V6(_), _) => Some(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entry: &str, address: &str) -> bool {
        PrivateDestinations::parse(entry).unwrap().allows_address(address.parse().unwrap())
    }

    #[test]
    fn an_allowed_ipv4_address_counts_for_its_mapped_form_and_no_other() {
        for entry in [
            "127.0.0.0/8",
            "127.0.0.1",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
            "::ffff:127.0.0.0/104",
            "127.1",
        ] {
            assert!(allows(entry, "127.0.0.1") && allows(entry, "::ffff:127.0.0.1"), "{entry}");
            for other in
                ["::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:127.0.0.1", "::1"]
            {
                assert!(!allows(entry, other), "{entry} {other}");
            }
        }
        assert!(!allows("::/0", "::ffff:127.0.0.1") && allows("0.0.0.0/0", "::ffff:127.0.0.1"));
        assert!(allows("64:ff9b::/96", "64:ff9b::7f00:1"));
    }

    #[test]
    fn a_name_is_compared_as_urls_spell_it() {
        let allowed = PrivateDestinations::parse("Bücher.example,LOCALHOST").unwrap();
        assert!(allowed.allows_host("xn--bcher-kva.example") && allowed.allows_host("localhost"));
        assert!(!allowed.allows_host("sub.localhost") && !allowed.allows_host("example"));
    }

    #[test]
    fn an_entry_that_is_no_destination_is_named() {
        for text in [
            "http://x",
            "10.0.0.0/99",
            "a b",
            "host:80",
            "10.0.0.0/8/8",
            "[::1",
            "127.0.0.1:80",
            "::ffff:1.2.3.4/200",
        ] {
            let error = PrivateDestinations::parse(text).expect_err(text);
            assert!(error.contains(text), "{error}");
        }
    }
}
