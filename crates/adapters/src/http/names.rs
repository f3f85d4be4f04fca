//! How names become addresses: looked up once, judged, and only then dialled.
//!
//! The client dials what the resolver gives it and asks nobody else, so a name that changes its
//! mind between the judgement and the connection gains nothing.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use delivery::address::{AddressPolicy, ClientKind, Refusal};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// The addresses of a name, once they are known.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of a name.
pub type Lookup = Arc<dyn Fn(String) -> Resolved + Send + Sync>;

/// Why a name leads nowhere.
#[derive(Debug, Error)]
pub(super) enum NameFailure {
    #[error("{0} does not resolve")]
    Unresolved(String),
    #[error(transparent)]
    Blocked(Refusal),
}

/// The lookup of the system this runs on.
pub(super) fn of_the_machine() -> Lookup {
    Arc::new(|host| {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    })
}

/// A resolver that judges what this lookup finds.
pub(super) fn judged(lookup: &Lookup, policy: &Arc<AddressPolicy>, kind: ClientKind) -> Judged {
    Judged { lookup: Arc::clone(lookup), policy: Arc::clone(policy), kind }
}

pub(super) struct Judged {
    lookup: Lookup,
    policy: Arc<AddressPolicy>,
    kind: ClientKind,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, policy, kind) =
            ((self.lookup)(name.as_str().to_owned()), Arc::clone(&self.policy), self.kind);
        Box::pin(async move {
            let host = name.as_str();
            let addresses = found.await.unwrap_or_default();
            if addresses.is_empty() {
                return Err(NameFailure::Unresolved(host.to_owned()).into());
            }
            policy.judge(kind, host, &addresses).map_err(NameFailure::Blocked)?;
            // Port 0 leaves the port to the URL.
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
