//! The HTTP client of the AWS clients.
//!
//! Separate because it is built later than usual. The SDK builds its HTTP client together with the
//! first client of a service, so a function would read the machine's certificates at start. This
//! client is built at the first request.

use std::sync::OnceLock;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::authorities;

/// Returns a client that is built at its first request. It trusts the machine's certificate
/// authorities and uses the proxy of the environment, as the SDK's client does.
pub(crate) fn http_client() -> SharedHttpClient {
    SharedHttpClient::new(AtFirstRequest::default())
}

/// Builds the SDK's client on first use. Implements no validation, because the SDK's client would
/// build its connector there.
#[derive(Debug, Default)]
struct AtFirstRequest(OnceLock<SharedHttpClient>);

impl HttpClient for AtFirstRequest {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        if let Some(client) = self.0.get() {
            return client.http_connector(settings, components);
        }
        let client = match authorities::of_this_machine() {
            Ok(trusted) => self.0.get_or_init(|| client(authorities::pem(trusted))).clone(),
            // This client has no authorities, so do not keep it: the next request looks for them
            // again.
            Err(_) => client(String::new()),
        };
        client.http_connector(settings, components)
    }
}

fn client(trusted: String) -> SharedHttpClient {
    let trusted = TrustStore::empty().with_pem_certificate(trusted);
    let tls = TlsContext::builder().with_trust_store(trusted).build();
    let tls = tls.expect("building a TLS context cannot fail: it is checked when it is used");
    Builder::new().build_with_connector_fn(move |settings, components| {
        let mut connector = Connector::builder()
            .proxy_config(ProxyConfig::from_env())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(tls.clone());
        connector.set_connector_settings(settings.cloned());
        connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector.build()
    })
}
