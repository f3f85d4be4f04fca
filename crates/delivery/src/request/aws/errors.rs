//! The errors of AWS services, and the HTTP status for each.
//!
//! One table applies to all services, because a code has the same meaning in each. The codes are
//! those of the SDKs, without the suffix `Exception`. For an unknown code, the status of the
//! response counts.

words! {
    /// The meaning of an AWS error for a delivery, and the equivalent HTTP status.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AwsFailure {
        /// The service has already accepted an event with this id. The attempt counts as status
        /// 200, a success.
        Repeated = "repeated",
        /// The service received too many requests. The attempt counts as status 429 and is retried.
        Throttled = "throttled",
        /// The service or the resource is unavailable. The attempt counts as status 503 and is
        /// retried.
        Unavailable = "unavailable",
        /// The Lambda function failed. The attempt counts as status 502 and is retried.
        Function = "function",
        /// The request is invalid, so repeating it cannot succeed. The attempt counts as status
        /// 400.
        Refused = "refused",
        /// The role of the deployment has no permission. The attempt counts as status 403.
        Denied = "denied",
        /// The AWS resource does not exist. The attempt counts as status 404.
        NotFound = "not found",
        /// The event is too large for the service. The attempt counts as status 413.
        TooLarge = "too large",
        /// The credentials of the deployment are invalid at the moment. The attempt counts as
        /// aborted and is retried.
        Credentials = "credentials",
    }
}

impl AwsFailure {
    /// Returns the equivalent HTTP status; `None` if the credentials are invalid, because the
    /// attempt then counts as aborted.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Repeated => Some(200),
            Self::Throttled => Some(429),
            Self::Unavailable => Some(503),
            Self::Function => Some(502),
            Self::Refused => Some(400),
            Self::Denied => Some(403),
            Self::NotFound => Some(404),
            Self::TooLarge => Some(413),
            Self::Credentials => None,
        }
    }
}

/// Returns the meaning of an error code; `None` if the code is unknown.
#[must_use]
pub fn failure_of(code: &str) -> Option<AwsFailure> {
    const SUFFIX: &str = "exception";
    let rest = code.len().checked_sub(SUFFIX.len()).and_then(|at| code.split_at_checked(at));
    let stem =
        rest.filter(|(_, end)| end.eq_ignore_ascii_case(SUFFIX)).map_or(code, |(stem, _)| stem);
    let found =
        CODES.iter().find(|(codes, _)| codes.iter().any(|known| known.eq_ignore_ascii_case(stem)));
    found.map(|(_, failure)| *failure)
}

/// The known error codes by meaning. The sources are
/// <https://docs.aws.amazon.com/general/latest/gr/CommonErrors.html> and the API reference of each
/// action.
const CODES: [(&[&str], AwsFailure); 8] = [
    (&["ExecutionAlreadyExists", "DurableExecutionAlreadyStarted"], AwsFailure::Repeated),
    (
        &[
            "BandwidthLimitExceeded",
            "EC2Throttled",
            "ExecutionLimitExceeded",
            "KmsThrottled",
            "KMSThrottling",
            "LimitExceeded",
            "OverLimit",
            "PriorRequestNotComplete",
            "ProvisionedThroughputExceeded",
            "RequestLimitExceeded",
            "RequestThrottled",
            "ServiceQuotaExceeded",
            "SlowDown",
            "Throttled",
            "Throttling",
            "TooManyRequests",
            "TransactionInProgress",
        ],
        AwsFailure::Throttled,
    ),
    (
        &[
            "CodeArtifactUserPending",
            "EC2Unexpected",
            "EFSIO",
            "EFSMountConnectivity",
            "EFSMountTimeout",
            "ENILimitReached",
            "ENINotReady",
            "InternalError",
            "Internal",
            "InternalFailure",
            "InternalServerError",
            "InvalidKMSResource",
            "InvalidRuntime",
            "InvalidSecurityGroupID",
            "InvalidSubnetID",
            "InvalidZipFile",
            "KMSDisabled",
            "KMSInvalidState",
            "RequestTimeout",
            "ResourceConflict",
            "ResourceNotReady",
            "S3FilesMountConnectivity",
            "S3FilesMountTimeout",
            "Service",
            "ServiceFailure",
            "ServiceUnavailable",
            "SnapStart",
            "SnapStartNotReady",
            "SnapStartRegenerationFailure",
            "SnapStartTimeout",
            "SubnetIPAddressLimitReached",
        ],
        AwsFailure::Unavailable,
    ),
    (
        &[
            "CodeArtifactUserDeleted",
            "CodeArtifactUserFailed",
            "DryRunOperation",
            "EndpointDisabled",
            "InvalidAccountId",
            "InvalidAction",
            "InvalidAddress",
            "InvalidArgument",
            "InvalidArn",
            "InvalidExecutionInput",
            "InvalidMessageContents",
            "InvalidName",
            "InvalidParameter",
            "InvalidParameterCombination",
            "InvalidParameterValue",
            "InvalidRequestContent",
            "InvalidSource",
            "KmsInvalidKeyUsage",
            "MalformedDetail",
            "MalformedQueryString",
            "MissingAction",
            "MissingParameter",
            "ModeNotSupported",
            "ParameterValueInvalid",
            "PlatformApplicationDisabled",
            "RecursiveInvocation",
            "RedactionFailure",
            "Serialization",
            "UnknownOperation",
            "UnsupportedMediaType",
            "UnsupportedOperation",
            "Validation",
            "ValidationError",
        ],
        AwsFailure::Refused,
    ),
    (
        &[
            "AccessDenied",
            "AuthorizationError",
            "EC2AccessDenied",
            "EFSMountFailure",
            "InvalidSecurity",
            "KMSAccessDenied",
            "KMSOptInRequired",
            "NotAuthorized",
            "NotAuthorizedForDetailType",
            "NotAuthorizedForSource",
            "OptInRequired",
            "S3FilesMountFailure",
        ],
        AwsFailure::Denied,
    ),
    (
        &[
            "KMSNotFound",
            "NoPublishedVersion",
            "NonExistentQueue",
            "NotFound",
            "QueueDoesNotExist",
            "ResourceNotFound",
            "StateMachineDeleting",
            "StateMachineDoesNotExist",
        ],
        AwsFailure::NotFound,
    ),
    (
        &[
            "BatchRequestTooLong",
            "RequestEntityTooLarge",
            "RequestTooLarge",
            "SerializedRequestEntityTooLarge",
        ],
        AwsFailure::TooLarge,
    ),
    (
        &[
            "ExpiredToken",
            "IncompleteSignature",
            "InvalidAccessKeyId",
            "InvalidClientTokenId",
            "InvalidSignature",
            "MissingAuthenticationToken",
            "RequestExpired",
            "RequestTimeTooSkewed",
            "SignatureDoesNotMatch",
            "UnrecognizedClient",
        ],
        AwsFailure::Credentials,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_means_one_thing_with_and_without_the_word_exception_in_any_case() {
        for (codes, failure) in CODES {
            for code in codes {
                for spelling in
                    [format!("{code}Exception"), code.to_lowercase(), (*code).to_owned()]
                {
                    assert_eq!(failure_of(&spelling), Some(failure), "{spelling}");
                }
            }
        }
        for code in ["", "Exception", "SomethingNew", "ThrottlingExceptionOfOthers"] {
            assert_eq!(failure_of(code), None, "{code}");
        }
    }

    #[test]
    fn each_failure_counts_as_a_status_of_its_own() {
        let mut statuses: Vec<_> = AwsFailure::ALL.map(AwsFailure::status).to_vec();
        statuses.sort_unstable();
        let expected = [200, 400, 403, 404, 413, 429, 502, 503].map(Some);
        assert_eq!(statuses, [&[None][..], &expected].concat());
    }
}
