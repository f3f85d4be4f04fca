//! [`SigningScope`]: the scope of requests that are signed with AWS credentials (Signature Version
//! 4).
//!
//! This module is separate because AWS credentials are not secrets that a document names. They
//! belong to the deployment and are fetched just before a request. The sender creates the
//! signature, because the signature covers the bytes that are sent.

use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};
use url::Url;

use crate::document::kind::{Checked, Word};
use crate::document::record::Required;

/// Headers that an AWS signature sets. A subscription with `auth.sigv4` cannot list them.
pub const SIGNING_HEADERS: [&str; 4] =
    ["authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"];
/// Maximum length of an AWS region's name.
pub const REGION_MAX_BYTES: usize = 32;

words! {
    /// The AWS services that customers can use for endpoints of their own.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum SigningService {
        /// Amazon API Gateway.
        ExecuteApi = "execute-api",
        /// A Lambda function URL.
        Lambda = "lambda",
        /// Amazon VPC Lattice.
        VpcLattice = "vpc-lattice-svcs",
    }
}

impl SigningService {
    /// Returns true if a signature covers the body. VPC Lattice refuses signatures that cover the
    /// body.
    /// <https://docs.aws.amazon.com/vpc-lattice/latest/ug/sigv4-authenticated-requests.html>
    #[must_use]
    pub const fn signs_body(self) -> bool {
        match self {
            Self::ExecuteApi | Self::Lambda => true,
            Self::VpcLattice => false,
        }
    }
}

record! {
    /// Scope of the AWS signature. A deployment signs with the role that the parameter
    /// `InvokeRoleArn` names. A command signs with the credentials of the person who runs it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SigningScope {
        /// AWS service of the endpoint: execute-api (API Gateway), lambda (a function URL) or
        /// vpc-lattice-svcs (VPC Lattice).
        "service" => pub service: SigningService = Required(Word(&SigningService::ALL, SigningService::as_str)),
        /// AWS region of the endpoint, such as eu-west-1.
        "region" => pub region: String = Required(Checked { max_chars: REGION_MAX_BYTES, check: check_region, schema: region_schema }),
    }
}

/// The path segment that follows the version in URLs of the Lambda API.
const FUNCTIONS: &str = "functions";

impl SigningScope {
    /// Returns true if a signed request to this URL could invoke any function through the Lambda
    /// API. Only a destination with `aws` may do that, because `AWS_TARGETS` is checked only for
    /// `aws`. The host is ignored, because a server can forward a signed request. The path is
    /// reliable, because the signature covers it.
    #[must_use]
    pub fn is_of_api(&self, url: &Url) -> bool {
        let path = percent_decode_str(url.path()).decode_utf8_lossy();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let version = parts.next().unwrap_or_default();
        let is_version = version.starts_with(|first: char| first.is_ascii_digit());
        self.service == SigningService::Lambda && is_version && parts.next() == Some(FUNCTIONS)
    }
}

fn region_schema() -> Json {
    json!({ "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$" })
}

/// Checks that a text can be the name of an AWS region.
///
/// # Errors
/// A description of the valid form, if the text is not a valid region name.
pub fn check_region(region: &str) -> Result<(), String> {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let begins = region.starts_with(|first: char| first.is_ascii_lowercase());
    if begins && region.len() <= REGION_MAX_BYTES && region.split('-').all(is_part) {
        return Ok(());
    }
    Err("expected a region such as eu-west-1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_of_lambda_is_told_from_the_url_of_a_function_by_its_path() {
        let of_lambda = |path: &str| {
            let scope =
                SigningScope { service: SigningService::Lambda, region: "eu-west-1".to_owned() };
            scope.is_of_api(&Url::parse(&format!("https://h.example.com{path}")).unwrap())
        };
        for path in [
            "/2015-03-31/functions/f/invocations",
            "/2021-11-15/functions/f/response-streaming-invocations",
            "//2015-03-31//functions/f/invocations",
            "/a/../2015-03-31/functions/f/invocations?Qualifier=live",
            "/%32015-03-31/%66unctions/f/invocations",
        ] {
            assert!(of_lambda(path), "{path}");
        }
        for path in ["/", "/functions/f", "/2026-01-01/orders", "/v1/functions/f"] {
            assert!(!of_lambda(path), "{path}");
        }
        let of_gateway =
            SigningScope { service: SigningService::ExecuteApi, region: "eu-west-1".to_owned() };
        let url = Url::parse("https://h.example.com/2015-03-31/functions/f").unwrap();
        assert!(!of_gateway.is_of_api(&url));
    }

    #[test]
    fn a_region_is_told_from_other_texts() {
        for region in ["eu-west-1", "us-gov-east-1", "cn-north-1"] {
            assert_eq!(check_region(region), Ok(()), "{region}");
        }
        let long = "a".repeat(REGION_MAX_BYTES + 1);
        for text in [
            "",
            "*",
            "EU-west-1",
            "eu_west_1",
            "eu-west-1/x",
            "-eu",
            "eu-",
            "1eu",
            "eu west",
            &long,
        ] {
            assert!(check_region(text).is_err(), "{text}");
        }
    }
}
