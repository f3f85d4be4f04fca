//! The HTTP client of the AWS clients.
//!
//! Separate because of when it is built: the SDK builds its own together with the first client of a service, so that a
//! function would read the machine's certificates before it asks for work. This one is built at the first request.

use std::sync::OnceLock;

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::authorities;

/// A client that is built at its first request, with the machine's certificate authorities.
pub(crate) fn http_client() -> SharedHttpClient {
    SharedHttpClient::new(AtFirstRequest::default())
}

/// The SDK's client, which builds its connector when it is validated; this one has no validation.
#[derive(Debug, Default)]
struct AtFirstRequest(OnceLock<SharedHttpClient>);

impl HttpClient for AtFirstRequest {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.0.get_or_init(build).http_connector(settings, components)
    }
}

fn build() -> SharedHttpClient {
    let trusted = TrustStore::empty().with_pem_certificate(authorities::pem());
    let tls = TlsContext::builder().with_trust_store(trusted).build();
    let tls = tls.expect("building a TLS context cannot fail: it is checked when it is used");
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(tls).build_https()
}
