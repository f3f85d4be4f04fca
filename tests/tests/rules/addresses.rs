//! The hosts that are refused, in any spelling: the corpus in `fixtures/addresses`, and properties
//! beyond the corpus.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations, Refusal, is_public};
use proptest::prelude::*;
use reqwest::Url;

/// The minimum size of the corpus.
const SPELLINGS_MIN: usize = 150;

/// One line of the corpus.
struct Spelling {
    kind: String,
    host: String,
    addresses: Vec<IpAddr>,
    line: String,
}

impl Spelling {
    /// The URL, parsed as in a subscription file and in the sender.
    fn url(&self) -> Option<Url> {
        format!("https://{}/", self.host).parse().ok()
    }
}

fn corpus(file: &str) -> Vec<Spelling> {
    let path = format!("{}/fixtures/addresses/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(spelling).collect()
}

fn spelling(line: &str) -> Spelling {
    let (entry, comment) = line.split_once("  # ").unwrap_or_else(|| panic!("no comment: {line}"));
    assert!(!comment.is_empty(), "{line}");
    let mut words = entry.split(' ').map(ToOwned::to_owned);
    let (kind, host) = words.next().zip(words.next()).unwrap_or_else(|| panic!("no host: {line}"));
    let addresses = words.next().unwrap_or_default();
    let addresses = addresses.split(',').filter(|text| !text.is_empty()).map(address).collect();
    Spelling { kind, host, addresses, line: line.to_owned() }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn allowing(private: &str) -> AddressPolicy {
    AddressPolicy::new(
        PrivateDestinations::parse(private).expect("destinations"),
        OwnAddresses::default(),
    )
}

/// The verdict on a URL whose host resolves to these addresses.
fn judge(policy: &AddressPolicy, url: &Url, addresses: &[IpAddr]) -> Result<(), Refusal> {
    let kind = policy.admit(url)?;
    policy.judge(kind, url.host_str().expect("a host"), addresses)
}

/// The verdict on an address as a literal.
fn judge_literal(policy: &AddressPolicy, address: IpAddr) -> Result<(), Refusal> {
    let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
    policy.admit(&format!("https://{host}/").parse().expect("a URL")).map(|_| ())
}

/// A literal is refused before any connection; a name is refused for the address that it resolves
/// to.
#[test]
fn every_refused_spelling_is_refused_at_the_stage_that_the_corpus_names() {
    let policy = AddressPolicy::default();
    for spelling in corpus("refused.txt") {
        let (line, url) = (&spelling.line, spelling.url());
        match (spelling.kind.as_str(), url) {
            ("no-url", None) => {}
            ("literal", Some(url)) => {
                assert!(url.domain().is_none(), "{line}: {url} has a name");
                assert!(policy.admit(&url).is_err(), "{line}: {url}");
            }
            ("name", Some(url)) => {
                assert!(url.domain().is_some(), "{line}: {url} has an address");
                assert!(
                    policy.admit(&url).is_ok(),
                    "{line}: a name is not refused before it is resolved"
                );
                assert!(judge(&policy, &url, &spelling.addresses).is_err(), "{line}");
            }
            (kind, url) => panic!("{line}: {kind} makes {url:?}"),
        }
    }
}

#[test]
fn every_allowed_spelling_leads_to_its_addresses() {
    let policy = AddressPolicy::default();
    for spelling in corpus("allowed.txt") {
        let line = &spelling.line;
        let url = spelling.url().unwrap_or_else(|| panic!("no URL: {line}"));
        assert!(
            !spelling.addresses.is_empty() && (spelling.kind == "name") == url.domain().is_some(),
            "{line}: {url}"
        );
        if spelling.kind == "literal" {
            let host = url.host_str().expect("a host").trim_matches(['[', ']']);
            assert_eq!(address(host), spelling.addresses[0], "{line}");
        }
        assert_eq!(judge(&policy, &url, &spelling.addresses), Ok(()), "{line}");
    }
}

#[test]
fn the_corpus_is_large_and_has_no_duplicates() {
    let all: Vec<String> = ["refused.txt", "allowed.txt"]
        .into_iter()
        .flat_map(corpus)
        .map(|spelling| spelling.host)
        .collect();
    let mut distinct = all.clone();
    distinct.sort();
    distinct.dedup();
    assert!(
        distinct.len() >= SPELLINGS_MIN && distinct.len() == all.len(),
        "{} of {}",
        distinct.len(),
        all.len()
    );
}

/// IPv6 addresses that embed this IPv4 address, in every form that could lead there.
fn embedding_addresses(v4: Ipv4Addr, prefix: u64) -> Vec<(&'static str, Ipv6Addr)> {
    let bits = u128::from(v4.to_bits());
    let prefix = u128::from(prefix) << 64;
    vec![
        ("mapped", Ipv6Addr::from_bits(0xffff << 32 | bits)),
        ("compatible", Ipv6Addr::from_bits(bits)),
        ("SIIT", Ipv6Addr::from_bits(0xffff << 48 | bits)),
        ("NAT64", Ipv6Addr::from_bits(0x64_ff9b << 96 | bits)),
        ("local-use NAT64", Ipv6Addr::from_bits(0x64_ff9b_0001 << 80 | bits)),
        ("6to4", Ipv6Addr::from_bits(0x2002 << 112 | bits << 80 | 1)),
        ("ISATAP", Ipv6Addr::from_bits(prefix | 0x5efe << 32 | bits)),
        ("ISATAP, universal", Ipv6Addr::from_bits(prefix | 0x0200_5efe << 32 | bits)),
        ("Teredo client", Ipv6Addr::from_bits(0x2001_0000 << 96 | u128::from(!v4.to_bits()))),
        ("Teredo server", Ipv6Addr::from_bits(0x2001_0000 << 96 | bits << 64)),
    ]
}

/// Draws addresses from special ranges as often as from anywhere.
fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    let special = [
        [0, 0],
        [10, 0],
        [100, 64],
        [100, 127],
        [127, 0],
        [168, 63],
        [169, 254],
        [172, 16],
        [192, 0],
        [192, 88],
        [192, 168],
        [198, 18],
        [198, 51],
        [203, 0],
        [224, 0],
        [255, 255],
    ];
    let special = (prop::sample::select(special.to_vec()), any::<[u8; 2]>());
    prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from_bits),
        special.prop_map(|([a, b], [c, d])| [a, b, c, d].into())
    ]
}

/// The first 64 bits of a global unicast address.
fn global_prefix() -> impl Strategy<Value = u64> {
    any::<u32>().prop_map(|bits| 0x2606_4700_0000_0000 | u64::from(bits))
}

/// A range, and an address that may be in it.
fn range_and_address() -> impl Strategy<Value = (Ipv4Addr, u8, Ipv4Addr)> {
    (any_v4(), 0_u8..=32, any_v4(), any::<bool>()).prop_map(|(network, bits, other, near)| {
        let mask = u32::MAX.checked_shl(u32::from(32 - bits)).unwrap_or(0);
        let host =
            if near { network.to_bits() & mask | other.to_bits() & !mask } else { other.to_bits() };
        (network, bits, Ipv4Addr::from_bits(host))
    })
}

proptest! {
    #[test]
    fn an_address_that_embeds_a_blocked_address_is_blocked(v4 in any_v4(), prefix in global_prefix()) {
        prop_assume!(!is_public(v4.into()));
        for (form, embedding) in embedding_addresses(v4, prefix) {
            prop_assert!(judge_literal(&AddressPolicy::default(), embedding.into()).is_err(), "{} {}", form, embedding);
        }
    }

    /// Only the forms that lead to the public internet are allowed. Deprecated and local forms lead
    /// nowhere.
    #[test]
    fn an_address_that_embeds_a_public_address_is_public_if_its_form_is(v4 in any_v4(), prefix in global_prefix()) {
        prop_assume!(is_public(v4.into()));
        for (form, embedding) in embedding_addresses(v4, prefix) {
            let leads = matches!(form, "mapped" | "NAT64" | "6to4" | "ISATAP" | "ISATAP, universal");
            prop_assert_eq!(judge_literal(&AddressPolicy::default(), embedding.into()).is_ok(), leads, "{} {}", form, embedding);
        }
    }

    #[test]
    fn nothing_outside_global_unicast_is_public(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        prop_assume!(address.segments()[0] & 0xe000 != 0x2000);
        let mapped_or_nat64 = bits >> 32 == 0xffff || bits >> 32 == 0x64_ff9b << 64;
        prop_assert!(mapped_or_nat64 || !is_public(address.into()));
    }

    /// An allowed range contains its addresses and their mapped form, and no others.
    #[test]
    fn an_allowed_range_is_exactly_the_configured_range((network, bits, host) in range_and_address()) {
        let policy = allowing(&format!("{network}/{bits}"));
        let inside = u64::from(network.to_bits()) >> (32 - bits) == u64::from(host.to_bits()) >> (32 - bits);
        let reachable = inside || is_public(host.into());
        prop_assert_eq!(judge_literal(&policy, host.into()).is_ok(), reachable);
        prop_assert_eq!(judge_literal(&policy, host.to_ipv6_mapped().into()).is_ok(), reachable);
        let in_clear = format!("http://{host}/").parse().expect("a URL");
        prop_assert_eq!(policy.admit(&in_clear).is_ok(), inside);
        if !is_public(host.into()) {
            for (form, embedding) in embedding_addresses(host, 0x2606_4700 << 32).into_iter().filter(|(form, _)| *form != "mapped") {
                prop_assert!(judge_literal(&policy, embedding.into()).is_err(), "{} {}", form, embedding);
            }
        }
    }

    /// A name is judged by the worst of its addresses, in any order.
    #[test]
    fn one_blocked_address_refuses_the_name(addresses in prop::collection::vec(any_v4(), 1..6)) {
        let url = "https://name.example/".parse().expect("a URL");
        let addresses: Vec<IpAddr> = addresses.into_iter().map(IpAddr::V4).collect();
        let public = addresses.iter().copied().all(is_public);
        prop_assert_eq!(judge(&AddressPolicy::default(), &url, &addresses).is_ok(), public);
    }

    #[test]
    fn no_allowance_opens_the_functions_own_ports(bits in 0_u32..1 << 24, prefix in global_prefix(), https in any::<bool>()) {
        let own = OwnAddresses::parse(["127.0.0.1:9001", "127.0.0.1:2773"]).expect("endpoints");
        let allowed = PrivateDestinations::parse("localhost,0.0.0.0/0,::/0").expect("destinations");
        let policy = AddressPolicy::new(allowed, own);
        let v4 = Ipv4Addr::from_bits(127 << 24 | bits);
        let scheme = if https { "https" } else { "http" };
        let spellings = embedding_addresses(v4, prefix).into_iter().filter(|(form, _)| !form.starts_with("Teredo"));
        let hosts = spellings.map(|(_, embedding)| format!("[{embedding}]")).chain([v4.to_string(), v4.to_bits().to_string()]);
        for (host, port) in hosts.flat_map(|host| [9001, 2773].map(|port| (host.clone(), port))) {
            let url = format!("{scheme}://{host}:{port}/").parse().expect("a URL");
            prop_assert!(matches!(policy.admit(&url), Err(Refusal::Own(_))), "{}", url);
        }
        let url = format!("{scheme}://localhost:9001/").parse().expect("a URL");
        prop_assert!(matches!(judge(&policy, &url, &[v4.into()]), Err(Refusal::Own(_))));
    }
}
