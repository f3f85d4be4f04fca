//! Classifies addresses: public ones, addresses of this machine, and IPv6 addresses that embed an
//! IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Address at which Azure's virtual machines reach their host and its metadata service. It is in a
/// public range.
/// <https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16>
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// True if the address is public. Addresses of this host, private and link-local addresses, and
/// those of metadata services, multicast groups and reserved ranges are not public.
///
/// An IPv6 address that embeds an IPv4 address is public only if both are. Forms that cannot be
/// decoded or routed are never public: IPv4-compatible and SIIT addresses, the local-use NAT64
/// prefix, and Teredo.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => {
            (is_global_unicast(v6) || is_translated(v6))
                && carried_v4(v6).into_iter().flatten().all(is_public_v4)
        }
    }
}

/// Top-level domains that public name servers do not serve: RFC 6761, RFC 6762, RFC 8375, ICANN's
/// `internal`, and names of clusters and home networks.
const PRIVATE_DOMAINS: [&str; 8] =
    ["localhost", "local", "internal", "svc", "lan", "home", "corp", "home.arpa"];

/// True if a URL names a public host: a public address, or a dotted name outside the private
/// domains. Names are not resolved.
#[must_use]
pub fn is_public_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let is_in = |domain: &&str| {
                name.strip_suffix(*domain)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            name.contains('.') && !PRIVATE_DOMAINS.iter().any(is_in)
        }
        None => false,
    }
}

/// True if the address belongs to this machine or its local link, in any spelling.
pub(super) fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_local_v4(v4),
        IpAddr::V6(v6) => {
            let local = v6.is_unspecified() || v6.is_loopback() || v6.is_unicast_link_local();
            local || carried_v4(v6).into_iter().flatten().any(is_local_v4)
        }
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    address.octets()[0] == 0 || address.is_loopback() || address.is_link_local()
}

/// True if the address is public: not multicast, not [`AZURE_HOST`], and not excluded by the IANA
/// IPv4 Special-Purpose Address Registry.
/// <https://www.iana.org/assignments/iana-ipv4-special-registry/>
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
        || a >= 240
        || address == AZURE_HOST;
    !special
}

/// True if the address is global unicast: in 2000::/3, and not excluded by the IANA IPv6
/// Special-Purpose Address Registry.
/// <https://www.iana.org/assignments/iana-ipv6-special-registry/>
fn is_global_unicast(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let special = (a == 0x2001 && (b < 0x0200 || b == 0x0db8)) || (a == 0x3fff && b < 0x1000);
    a & 0xe000 == 0x2000 && !special
}

/// True if NAT64 with the well-known prefix translates this address to its embedded IPv4 address
/// (RFC 6052).
fn is_translated(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x64, 0xff9b, 0, 0, 0, 0, _, _])
}

/// Returns the IPv4 addresses that an IPv6 address embeds, in current or former standard forms. An
/// embedded address is at the end (IPv4-compatible, SIIT, NAT64, and ISATAP under any prefix) or
/// after the prefix (6to4). IPv4-mapped addresses are not included, because connections to them
/// use IPv4.
fn carried_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let segments = address.segments();
    let at_the_end = match segments {
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    };
    let behind_the_prefix = match segments {
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    };
    [at_the_end, behind_the_prefix]
}
