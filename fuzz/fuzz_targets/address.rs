//! Any address in any spelling: addresses that are not public are never admitted unless they are
//! allowed.
//!
//! The input has 4 bytes as an IPv4 address and 16 as an IPv6 address, then two lines: the allowed
//! addresses and a URL. The lists of ranges below decide which addresses are public, not the code
//! under test.

#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use lastmile_fuzz::lines;
use libfuzzer_sys::fuzz_target;
use url::{Host, Url};

/// Special-purpose ranges, and the host address of Azure. Each has an address and a prefix length.
const NOT_PUBLIC_V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([255, 255, 255, 255], 32),
];

/// Loopback, unique local, link-local, multicast, documentation, discard-only, Teredo, segment
/// routing, local-use NAT64, and the metadata service of AWS.
const NOT_PUBLIC_V6: [(&str, u32); 13] = [
    ("::", 128),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
    ("fec0::", 10),
    ("ff00::", 8),
    ("2001:db8::", 32),
    ("3fff::", 20),
    ("100::", 64),
    ("2001::", 32),
    ("5f00::", 16),
    ("64:ff9b:1::", 48),
    ("fd00:ec2::254", 128),
];

fuzz_target!(|input: (u32, u128, &str)| {
    let (v4, v6, text) = (Ipv4Addr::from(input.0), Ipv6Addr::from(input.1), input.2);
    let ([allowed, url], _) = lines(text);
    check_spellings(v4);
    check_v6(v6);
    let url = Url::parse(url).ok();
    if let Some(url) = &url {
        check_url(&policy(""), url);
    }
    let Ok(allowed) = PrivateDestinations::parse(allowed) else { return };
    check_allowed(&allowed, &[IpAddr::V4(v4), IpAddr::V6(v6)], url.as_ref());
});

fn policy(allowed: &str) -> AddressPolicy {
    with(PrivateDestinations::parse(allowed).expect("a list"))
}

fn with(allowed: PrivateDestinations) -> AddressPolicy {
    let own = OwnAddresses::parse(["127.0.0.1:9001", "runtime.internal:9002"]).expect("endpoints");
    AddressPolicy::new(allowed, own)
}

fn may_be_public_v4(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    !NOT_PUBLIC_V4
        .iter()
        .any(|(range, length)| (bits ^ u32::from(Ipv4Addr::from(*range))) >> (32 - length) == 0)
}

fn may_be_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => may_be_public_v4(v4),
        IpAddr::V6(v6) => {
            let in_range = |(range, length): &(&str, u32)| {
                let range: Ipv6Addr = range.parse().expect("an address");
                (u128::from(v6) ^ u128::from(range)) >> (128 - length) == 0
            };
            v6.to_ipv4_mapped().is_none_or(may_be_public_v4) && !NOT_PUBLIC_V6.iter().any(in_range)
        }
    }
}

/// The IPv6 addresses that embed an IPv4 address by a current or former standard.
fn embedded(v4: Ipv4Addr) -> [Ipv6Addr; 8] {
    let low = u128::from(u32::from(v4));
    let bits = |prefix: &str| u128::from(prefix.parse::<Ipv6Addr>().expect("an address"));
    [
        bits("::ffff:0:0") | low,
        bits("::") | low,
        bits("::ffff:0:0:0") | low,
        bits("64:ff9b::") | low,
        bits("64:ff9b:1::") | low,
        bits("2002::") | low << 80,
        bits("2606:4700::5efe:0:0") | low,
        bits("2606:4700::200:5efe:0:0") | low,
    ]
    .map(Ipv6Addr::from)
}

/// Each spelling of an IPv4 address in a URL gets the verdict of the address.
fn check_spellings(v4: Ipv4Addr) {
    let (number, [a, b, c, d]) = (u32::from(v4), v4.octets());
    let full_width: String = v4
        .to_string()
        .chars()
        .map(|c| if c == '.' { '。' } else { char::from_u32(c as u32 + 0xfee0).unwrap_or(c) })
        .collect();
    let percent: String = v4.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    let low = u16::from_be_bytes([c, d]);
    let spellings = [
        v4.to_string(),
        format!("{v4}."),
        number.to_string(),
        format!("{number:#x}"),
        format!("0{number:o}"),
        format!("{a:#x}.{b:#o}.{low}").replace("0o", "0"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("user:{v4}@{v4}"),
        format!("8.8.8.8@{v4}"),
        full_width,
        percent,
    ];
    let policy = policy("");
    for spelling in spellings {
        for url in [format!("https://{spelling}/"), format!("https://{spelling}:8443/x?y")] {
            let Ok(url) = Url::parse(&url) else { panic!("{url} is not a URL") };
            assert_eq!(url.host(), Some(Host::Ipv4(v4)), "{url}");
            assert_eq!(policy.admit(&url).is_ok(), may_be_public_v4(v4), "{url}");
        }
    }
    for v6 in embedded(v4) {
        check_v6(v6);
        if !may_be_public_v4(v4) {
            let url = Url::parse(&format!("https://[{v6}]/")).expect("a URL");
            assert!(policy.admit(&url).is_err(), "{url} leads to {v4}");
        }
    }
}

fn check_v6(v6: Ipv6Addr) {
    let policy = policy("");
    for url in [format!("https://[{v6}]/"), format!("https://1.1.1.1@[{v6}]:444/")] {
        let url = Url::parse(&url).expect("a URL");
        let is_admitted = policy.admit(&url).is_ok();
        assert!(!is_admitted || may_be_public(v6.into()), "{url}");
    }
}

/// Without exceptions, the policy admits no literal that is not public, and no cleartext.
fn check_url(policy: &AddressPolicy, url: &Url) {
    let Ok(kind) = policy.admit(url) else { return };
    assert!(!kind.in_clear && url.scheme() == "https", "{url}");
    let address: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(name)) => {
            // A client might read such a name as an address.
            let bare = name.trim_end_matches('.').trim_matches(['[', ']']);
            assert!(bare.parse::<IpAddr>().is_err(), "{url}");
            None
        }
        None => panic!("{url} has no host"),
    };
    assert!(address.is_none_or(may_be_public), "{url}");
}

/// Exceptions admit only the addresses and hosts that they name, and never the function itself.
fn check_allowed(allowed: &PrivateDestinations, addresses: &[IpAddr], url: Option<&Url>) {
    let (open, closed) = (with(allowed.clone()), policy(""));
    let Some(kind) = url.and_then(|url| open.admit(url).ok()) else { return };
    let host = url.and_then(Url::host_str).unwrap_or_default();
    for address in addresses.iter().copied() {
        let is_judged = |policy: &AddressPolicy| policy.judge(kind, host, &[address]).is_ok();
        let is_exception = allowed.allows_host(host) || allowed.allows_address(address);
        assert!(!is_judged(&open) || is_exception || is_judged(&closed), "{host} {address}");
        assert!(!is_judged(&closed) || is_judged(&open), "allowing refuses {host} {address}");
        let is_own = kind.own_port && (address.is_loopback() || address.is_unspecified());
        assert!(!is_own || !is_judged(&open), "{host} {address} is the function itself");
    }
    let is_all = addresses.iter().all(|address| open.judge(kind, host, &[*address]).is_ok());
    assert_eq!(open.judge(kind, host, addresses).is_ok(), is_all, "one address decides for all");
}
