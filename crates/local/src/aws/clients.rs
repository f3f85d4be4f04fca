//! Configures clients for the local AWS.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};

use super::REGION;
use crate::http_client::http_client;

/// Returns the configuration of clients for a local AWS at `endpoint`, which accepts any
/// credentials.
#[must_use]
pub fn local_clients(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .endpoint_url(endpoint)
        .http_client(http_client())
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}
