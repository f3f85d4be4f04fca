//! Decides whether a message that SQS refused is sent to the same queue again. `delivery::waits`
//! decides when. Pure.
//!
//! Separate from the SDK's retries, which repeat whole calls only, and do not treat KMS throttling
//! as temporary.

/// Error codes that are temporary, in addition to those of throttling.
const LATER: [&str; 7] = [
    "BandwidthLimitExceeded",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestTimeout",
    "RequestTimeoutException",
    "SlowDown",
    "TooManyRequestsException",
];

/// Error codes that are permanent, in addition to those of KMS.
const PERMANENT: [&str; 3] =
    ["AWS.SimpleQueueService.NonExistentQueue", "InvalidMessageContents", "QueueDoesNotExist"];

/// The reason why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal<'a> {
    /// The call returned no response, or none for this message.
    Unanswered,
    /// The service responded with an error.
    Answered {
        /// The error code of the response.
        code: &'a str,
        /// True if the service attributes the error to the sender.
        sender_fault: bool,
    },
}

/// True if the same queue may accept the message later.
pub(crate) fn may_pass(refusal: Refusal<'_>) -> bool {
    match refusal {
        Refusal::Unanswered => true,
        // Throttling has HTTP status 400, so it counts as the sender's fault.
        Refusal::Answered { code, .. } if is_throttling(code) => true,
        Refusal::Answered { code, sender_fault } => !sender_fault && !is_permanent(code),
    }
}

/// True if the code means that SQS or KMS throttles the call or fails temporarily, such as
/// `RequestThrottled`, `KMS.ThrottlingException` or `KmsThrottled`.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
fn is_throttling(code: &str) -> bool {
    code.contains("Throttl") || LATER.contains(&code)
}

/// True if the error needs a repair, such as an unusable key or queue, even if the service
/// attributes the error to itself.
fn is_permanent(code: &str) -> bool {
    code.starts_with("KMS.") || code.starts_with("Kms") || PERMANENT.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_and_faults_of_the_service_pass_and_nothing_else() {
        for (code, of_service, of_sender) in [
            ("InternalError", true, false),
            ("ServiceUnavailable", true, false),
            ("RequestThrottled", true, true),
            ("ThrottlingException", true, true),
            ("KMS.ThrottlingException", true, true),
            ("KmsThrottled", true, true),
            ("SlowDown", true, true),
            ("RequestTimeout", true, true),
            ("KMS.AccessDeniedException", false, false),
            ("KmsAccessDenied", false, false),
            ("KMS.DisabledException", false, false),
            ("KmsDisabled", false, false),
            ("KMS.NotFoundException", false, false),
            ("InvalidMessageContents", false, false),
            ("AWS.SimpleQueueService.NonExistentQueue", false, false),
            ("QueueDoesNotExist", false, false),
            ("AccessDenied", true, false),
        ] {
            let passes = |sender_fault| may_pass(Refusal::Answered { code, sender_fault });
            assert_eq!((passes(false), passes(true)), (of_service, of_sender), "{code}");
        }
        assert!(may_pass(Refusal::Unanswered));
    }
}
