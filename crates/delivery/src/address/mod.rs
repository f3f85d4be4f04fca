//! Decides which addresses requests may go to.
//!
//! A subscription names an endpoint that we do not control. The endpoint's host name may resolve to
//! this machine, to a metadata service of the cloud or into a private network. Such addresses are
//! refused unless `ALLOW_PRIVATE_DESTINATIONS` allows them. The function's own addresses are always
//! refused. The checks are pure. The sender first checks the URL. Before it connects, it checks
//! each address to which the host name resolves.

mod http_url;
mod own;
mod private;
mod public;

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use url::{Host, Url};

pub use http_url::{http_url, mistake};
pub use own::OwnAddresses;
pub use private::PrivateDestinations;
pub use public::{is_public, is_public_host};

/// The rules that decide which addresses requests may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    private: PrivateDestinations,
    own: OwnAddresses,
}

/// The properties of a URL that, with its host, decide which addresses a request may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientKind {
    /// True if the URL uses plain HTTP. Requests may then reach only hosts and addresses in
    /// `ALLOW_PRIVATE_DESTINATIONS`, even if an address is public.
    pub in_clear: bool,
    /// True if the function's own services listen on the URL's port. Requests to any address of
    /// this machine are then refused, even to an allowed one.
    pub own_port: bool,
}

/// The reason why a request to a URL or an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The URL has no host, so no address can be checked.
    #[error("the URL has no host")]
    NoHost,
    /// The URL leads to a service that runs in the function's sandbox.
    #[error("{0} with this port is an address of the function itself; requests to it are blocked")]
    Own(HostAddress),
    /// The URL uses plain HTTP, and neither its host name nor its address is in
    /// `ALLOW_PRIVATE_DESTINATIONS`.
    #[error(
        "{0} cannot be reached without TLS: use https, or add the host to \
         ALLOW_PRIVATE_DESTINATIONS"
    )]
    InClear(HostAddress),
    /// The address is private, and not in `ALLOW_PRIVATE_DESTINATIONS`.
    #[error("{0} is not a public address and is not listed in ALLOW_PRIVATE_DESTINATIONS")]
    NotPublic(HostAddress),
}

/// The host of a URL, and the address to which the host resolved, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddress {
    host: String,
    address: Option<IpAddr>,
}

impl AddressPolicy {
    /// Creates a policy. Requests may reach the private addresses in `private`, but never those in
    /// `own`.
    #[must_use]
    pub fn new(private: PrivateDestinations, own: OwnAddresses) -> Self {
        Self { private, own }
    }

    /// Checks that a request to this URL may begin, and returns the properties of the URL for the
    /// check of its resolved addresses.
    ///
    /// A literal address is checked here. A host name is checked by [`AddressPolicy::judge`], once
    /// its addresses are known.
    ///
    /// # Errors
    /// Fails with the reason if the request is refused.
    pub fn admit(&self, url: &Url) -> Result<ClientKind, Refusal> {
        let port = url.port_or_known_default();
        let in_clear = url.scheme() != "https";
        // An unknown port counts as the function's own, to be safe.
        let kind =
            ClientKind { in_clear, own_port: port.is_none_or(|port| self.own.has_port(port)) };
        match url.host().ok_or(Refusal::NoHost)? {
            Host::Ipv4(address) => {
                // Borrows the host from the URL, which avoids formatting the address. This is
                // impossible for IPv6, because the host in the URL has brackets.
                let host = url.host_str().ok_or(Refusal::NoHost)?;
                self.judge(kind, host, &[address.into()])?;
            }
            Host::Ipv6(address) => self.judge(kind, &address.to_string(), &[address.into()])?,
            // Refuses without a DNS query, because no resolved address could be allowed.
            Host::Domain(name) if in_clear && !self.private.may_allow_host(name) => {
                return Err(Refusal::InClear(HostAddress { host: name.to_owned(), address: None }));
            }
            Host::Domain(_) => {}
        }
        Ok(kind)
    }

    /// Checks that a request may go to a host that resolved to these addresses. The request is
    /// refused if any of the addresses is forbidden.
    ///
    /// # Errors
    /// Fails with the reason if the request is refused.
    pub fn judge(&self, kind: ClientKind, host: &str, addresses: &[IpAddr]) -> Result<(), Refusal> {
        let allowed_host = self.private.allows_host(host);
        for address in addresses.iter().copied() {
            let host_address = || HostAddress { host: host.to_owned(), address: Some(address) };
            // This check comes first, because no setting may open the function's own sandbox.
            if kind.own_port && self.own.contains(host, address) {
                return Err(Refusal::Own(host_address()));
            }
            if allowed_host || self.private.allows_address(address) {
                continue;
            }
            if kind.in_clear {
                return Err(Refusal::InClear(host_address()));
            }
            if !is_public(address) {
                return Err(Refusal::NotPublic(host_address()));
            }
        }
        Ok(())
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) if self.host != address.to_string() => {
                write!(f, "{} ({address})", self.host)
            }
            Some(_) | None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(private: &str) -> AddressPolicy {
        let own = OwnAddresses::parse(["127.0.0.1:9001", "runtime.internal:9002"]).unwrap();
        AddressPolicy::new(PrivateDestinations::parse(private).unwrap(), own)
    }

    fn says(result: Result<(), Refusal>) -> String {
        result.expect_err("a refusal").to_string()
    }

    #[test]
    fn names_in_private_domains_and_single_words_are_not_public() {
        for (url, public) in [
            ("http://example.com/", true),
            ("http://local.example.com./", true),
            ("http://notlocal/", false),
            ("http://orders.shop.svc/", false),
            ("http://orders.shop.svc.cluster.local./", false),
            ("http://a.localhost/", false),
            ("http://nas.home.arpa/", false),
            ("http://thelocal.dev/", true),
            ("http://8.8.8.8/", true),
            ("http://10.0.0.1/", false),
            ("http://[2001:4860:4860::8888]/", true),
            ("http://[::1]/", false),
        ] {
            assert_eq!(is_public_host(&url.parse().unwrap()), public, "{url}");
        }
    }

    /// Checks a request to a URL whose host resolves to these addresses.
    fn led(policy: &AddressPolicy, url: &str, addresses: &[&str]) -> Result<(), Refusal> {
        let url: Url = url.parse().unwrap();
        let addresses: Vec<IpAddr> =
            addresses.iter().map(|address| address.parse().unwrap()).collect();
        policy.admit(&url).and_then(|kind| policy.judge(kind, url.host_str().unwrap(), &addresses))
    }

    #[test]
    fn a_refusal_names_the_host_the_address_and_the_rule() {
        let policy = policy("127.0.0.0/8");
        assert_eq!(
            says(led(&policy, "https://10.0.0.1/", &[])),
            "10.0.0.1 is not a public address and is not listed in ALLOW_PRIVATE_DESTINATIONS"
        );
        assert!(
            says(led(&policy, "https://a.example/", &["10.0.0.1"]))
                .starts_with("a.example (10.0.0.1) is not a")
        );
        assert_eq!(
            says(led(&policy, "http://8.8.8.8/", &[])),
            "8.8.8.8 cannot be reached without TLS: use https, or add the host to \
             ALLOW_PRIVATE_DESTINATIONS"
        );
        assert_eq!(
            says(led(&policy, "http://localhost:9001/", &["127.0.0.1"])),
            "localhost (127.0.0.1) with this port is an address of the function itself; requests \
             to it are blocked"
        );
        assert_eq!(says(led(&policy, "mailto:a@example.com", &[])), "the URL has no host");
    }

    #[test]
    fn what_the_deployment_allows_is_reached_by_name_or_by_address() {
        let policy = policy("Internal.Example, 127.0.0.1,10.0.0.0/8,[::1]");
        for address in ["127.0.0.1", "10.9.9.9", "::1", "::ffff:10.9.9.9"] {
            assert_eq!(led(&policy, "https://anything.example/", &[address]), Ok(()), "{address}");
            assert_eq!(led(&policy, "http://anything.example/", &[address]), Ok(()), "{address}");
        }
        assert_eq!(led(&policy, "https://internal.example/", &["192.168.0.1"]), Ok(()));
        assert_eq!(led(&policy, "http://internal.example/", &["8.8.8.8"]), Ok(()));
        assert!(led(&policy, "https://other.example/", &["192.168.0.1"]).is_err());
        assert!(led(&policy, "http://other.example/", &["8.8.8.8"]).is_err());
    }

    #[test]
    fn an_allowed_address_does_not_hide_a_forbidden_one_of_the_same_name() {
        let policy = policy("10.0.0.0/8");
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://anything.example/");
            assert!(led(&policy, &url, &["10.9.9.9", "192.168.0.1"]).is_err(), "{url}");
            assert!(led(&policy, &url, &["192.168.0.1", "10.9.9.9"]).is_err(), "{url}");
        }
    }

    #[test]
    fn a_name_is_not_resolved_in_clear_when_nothing_could_allow_it() {
        let name = "http://other.example/".parse().unwrap();
        assert!(
            policy("").admit(&name).is_err() && policy("internal.example").admit(&name).is_err()
        );
        assert!(
            policy("10.0.0.0/8").admit(&name).is_ok()
                && policy("other.example").admit(&name).is_ok()
        );
    }

    #[test]
    fn the_functions_own_addresses_are_refused_whatever_is_allowed() {
        let policy = policy("localhost,runtime.internal,0.0.0.0/0,::/0");
        for url in [
            "http://127.0.0.1:9001/",
            "https://[::1]:9001/",
            "http://0.0.0.0:9002/",
            "http://127.8.8.8:9001/",
        ] {
            assert!(says(led(&policy, url, &[])).contains("the function itself"), "{url}");
        }
        assert!(led(&policy, "http://localhost:9001/", &["127.0.0.1"]).is_err());
        assert!(led(&policy, "http://runtime.internal:9002/", &["10.0.0.1"]).is_err());
        assert_eq!(led(&policy, "http://127.0.0.1:9000/", &[]), Ok(()));
        assert_eq!(led(&policy, "http://10.0.0.1:9001/", &[]), Ok(()));
    }
}
