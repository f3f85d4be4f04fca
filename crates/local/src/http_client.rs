//! The HTTP client that AWS clients use on a developer's machine. Requests to this machine bypass
//! the proxy.
//!
//! The SDK configures its proxy from the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`),
//! for every host that `NO_PROXY` does not name. A proxy cannot reach a server that listens on
//! 127.0.0.1 here, and must not see the requests to this server. Separate because the host is only
//! known per request: one service may have a local endpoint, and another service an endpoint in the
//! cloud.
//!
//! Does not change requests to other hosts.

use std::net::IpAddr;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use http::Uri;

/// The only TLS implementation of this workspace.
const TLS: Provider = Provider::Rustls(CryptoMode::AwsLc);

/// Returns a client that reaches this machine directly, and other hosts through the proxy of the
/// environment.
#[must_use]
pub fn http_client() -> SharedHttpClient {
    let elsewhere = Builder::new().build_with_connector_fn(|settings, components| {
        let mut connector =
            Connector::builder().proxy_config(ProxyConfig::from_env()).tls_provider(TLS);
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.build()
    });
    let here = Builder::new().tls_provider(TLS).build_https();
    SharedHttpClient::new(ByHost { here, elsewhere })
}

/// True if the host of the URI is this machine. False for an invalid URI.
#[must_use]
pub fn is_here(uri: &str) -> bool {
    let uri = uri.parse::<Uri>();
    uri.is_ok_and(|uri| uri.host().is_some_and(is_loopback))
}

/// True if the host is a loopback address, `localhost`, or a subdomain of `localhost` (RFC 6761,
/// 6.3). S3 clients use one subdomain per bucket.
fn is_loopback(host: &str) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            host.rsplit('.').next().is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
        }
    }
}

#[derive(Debug, Clone)]
struct ByHost {
    here: SharedHttpClient,
    elsewhere: SharedHttpClient,
}

impl HttpClient for ByHost {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let (settings, components) = (settings.clone(), components.clone());
        SharedHttpConnector::new(ConnectorByHost { clients: self.clone(), settings, components })
    }
}

#[derive(Debug)]
struct ConnectorByHost {
    clients: ByHost,
    settings: HttpConnectorSettings,
    components: RuntimeComponents,
}

impl HttpConnector for ConnectorByHost {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let ByHost { here, elsewhere } = &self.clients;
        let client = if is_here(request.uri()) { here } else { elsewhere };
        // Each client caches its connectors, so they are built once, on first use.
        client.http_connector(&self.settings, &self.components).call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_reached_without_a_proxy() {
        for (uri, here) in [
            ("http://127.0.0.1:4566/000000000000/events", true),
            ("http://localhost/", true),
            ("http://[::1]:4566/", true),
            ("http://127.0.1.1:4566/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://dead-letters.localhost:4566/?list-type=2", true),
            ("http://LocalHost:4566/", true),
            ("http://localhost.example.com/", false),
            ("http://notlocalhost/", false),
            ("http://10.0.0.1/", false),
            ("http://127.0.0.1.example.com/", false),
            ("http://169.254.169.254/latest", false),
            ("https://sqs.eu-west-1.amazonaws.com/", false),
            ("not an address", false),
        ] {
            assert_eq!(is_here(uri), here, "{uri}");
        }
    }
}
