//! Opens listeners on this machine, and reads the settings that concern this machine: its AWS
//! endpoint, its private destinations and its user.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use adapters::settings::{ALLOW_PRIVATE_DESTINATIONS, AWS_ENDPOINT_URL};
use anyhow::Context as _;
use delivery::address::http_url;
use tokio::net::TcpListener;
use url::Url;

/// The private destinations that are allowed if the environment sets none.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// Returns the private destinations that the environment allows, or loopback addresses if the
/// variable is unset. An empty variable allows none.
pub(crate) fn allow_private() -> String {
    std::env::var(ALLOW_PRIVATE_DESTINATIONS).unwrap_or_else(|_| LOOPBACK.to_owned())
}

/// Returns the URL of the server that replaces AWS; `None` if there is none. The URL is the value
/// of `AWS_ENDPOINT_URL`, a variable that all AWS tools read.
///
/// # Errors
/// If the variable is not a URL.
pub(crate) fn aws_endpoint() -> anyhow::Result<Option<Url>> {
    let named = std::env::var(AWS_ENDPOINT_URL).ok().filter(|text| !text.is_empty());
    named
        .map(|text| http_url(&text).map_err(anyhow::Error::msg).context(AWS_ENDPOINT_URL))
        .transpose()
}

/// Returns true if the host of a URL is this machine.
pub(crate) fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
}

/// Listens on this port of the loopback interface only, because these servers do not authenticate
/// requests.
pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    listen_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

/// Listens on this address. An error names the address, and the option that sets another port.
pub(crate) async fn listen_at(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}; choose another --port"))
}

/// Returns the address that clients on this machine use for a server that listens on `listening`:
/// loopback, if the server listens on all interfaces.
pub(crate) fn reached_at(listening: SocketAddr) -> SocketAddr {
    let mut at = listening;
    if listening.ip().is_unspecified() {
        let here = if listening.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        };
        at.set_ip(here);
    }
    at
}

/// Returns the name of the current user, from the environment.
pub(crate) fn user() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    set("USER").or_else(|| set("LOGNAME")).or_else(|| set("USERNAME"))
}
