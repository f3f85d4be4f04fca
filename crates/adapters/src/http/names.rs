//! Resolves each name once, and checks all its addresses before the client connects.
//!
//! The client connects only to the addresses that this resolver returns. Therefore DNS rebinding, a
//! change of address between check and connection, has no effect.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use delivery::address::{AddressPolicy, ClientKind, Refusal};
use hyper_util::client::legacy::connect::dns::Name;
use thiserror::Error;
use tower_service::Service;

/// A future that returns the addresses of a name.
pub type Resolved = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A function that looks up the addresses of a name.
pub type Lookup = Arc<dyn Fn(String) -> Resolved + Send + Sync>;

/// The reason why a name has no address to connect to.
#[derive(Debug, Error)]
pub(super) enum NameFailure {
    #[error("{0} does not resolve")]
    Unresolved(String),
    #[error(transparent)]
    Blocked(Refusal),
}

/// Returns the lookup of the operating system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|host| {
        Box::pin(async move {
            // The system's lookup blocks; tokio runs it on a separate thread.
            let addresses = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    })
}

/// A resolver that checks all addresses of a name before it returns them.
#[derive(Clone)]
pub(super) struct CheckingResolver {
    pub(super) lookup: Lookup,
    pub(super) policy: Arc<AddressPolicy>,
    pub(super) kind: ClientKind,
}

impl Service<Name> for CheckingResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = NameFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NameFailure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NameFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, policy, kind) =
            ((self.lookup)(name.as_str().to_owned()), Arc::clone(&self.policy), self.kind);
        Box::pin(async move {
            let host = name.as_str();
            // The sender treats a failed lookup like a name without addresses.
            let addresses = found.await.unwrap_or_default();
            if addresses.is_empty() {
                return Err(NameFailure::Unresolved(host.to_owned()));
            }
            // Check all addresses: the client may try several in turn.
            policy.judge(kind, host, &addresses).map_err(NameFailure::Blocked)?;
            // Port 0 means the port of the URL.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(addresses.collect::<Vec<_>>().into_iter())
        })
    }
}
