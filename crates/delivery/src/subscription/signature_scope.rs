//! [`SignatureScope`]: the service and the region that a signature of AWS is for.
//!
//! Separate because two parts of a destination state it: `auth.sigv4` in its fields, and an AWS target by its ARN.

use super::auth::sigv4::SigningScope;
use super::aws::AwsTarget;

/// The service and the region that a signature is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureScope {
    /// The service, as signatures name it.
    pub service: &'static str,
    /// The region of the service.
    pub region: String,
    /// True if the signature covers the body.
    pub signs_body: bool,
}

impl From<&SigningScope> for SignatureScope {
    fn from(SigningScope { service, region }: &SigningScope) -> Self {
        let (signs_body, region) = (service.signs_body(), region.clone());
        Self { service: service.as_str(), region, signs_body }
    }
}

impl From<&AwsTarget> for SignatureScope {
    fn from(AwsTarget { arn, .. }: &AwsTarget) -> Self {
        let (service, region) = (arn.service().as_str(), arn.region().to_owned());
        Self { service, region, signs_body: true }
    }
}
