//! Time limits of calls to AWS, and the client configuration with these limits.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};

use crate::aws_http::http_client;

/// Timeout of a call to AWS, for all tries together.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);

/// Loads the client configuration from the AWS environment, and adds the time limits of lastmile.
pub async fn aws_config() -> SdkConfig {
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(http_client());
    with_limits(config.load().await)
}

/// Adds the time limits of lastmile, because an unreachable service must not use up an invocation.
#[must_use]
pub fn with_limits(config: SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(3))
        // Three attempts of three seconds would take nine; this limit cuts the last one.
        .operation_timeout(OPERATION_TIMEOUT)
        .build();
    let retries = RetryConfig::standard().with_max_attempts(3);
    config.into_builder().retry_config(retries).timeout_config(timeouts).build()
}
