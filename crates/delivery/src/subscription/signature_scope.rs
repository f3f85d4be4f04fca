//! [`SignatureScope`]: the service and region of an AWS signature.
//!
//! This module is separate because two parts of a destination determine the scope: the fields of
//! `auth.sigv4`, and the ARN of an AWS resource.

use super::auth::sigv4::SigningScope;
use super::aws::AwsTarget;

/// The service and region for which an AWS signature is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureScope {
    /// The name of the AWS service, as signatures contain it.
    pub service: &'static str,
    /// The AWS region whose service receives the request.
    pub region: String,
    /// True if the signature covers the body of the request.
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
