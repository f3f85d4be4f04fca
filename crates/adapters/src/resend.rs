//! Whether a message that SQS did not take is sent to the same queue again; `delivery::waits` says after how long. Pure.
//!
//! The SDK retries whole calls only, and does not know that KMS throttling passes.

/// Codes that mean "later", beside those that say that they throttle.
const LATER: [&str; 7] = [
    "BandwidthLimitExceeded",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestTimeout",
    "RequestTimeoutException",
    "SlowDown",
    "TooManyRequestsException",
];

/// Codes of a message or a queue that will not do, beside those of KMS.
const PERMANENT: [&str; 3] =
    ["AWS.SimpleQueueService.NonExistentQueue", "InvalidMessageContents", "QueueDoesNotExist"];

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal<'a> {
    /// There was no answer, or none about this message.
    Unanswered,
    /// The service answered with this code.
    Answered {
        /// Its error code.
        code: &'a str,
        /// Whether it blames the sender.
        sender_fault: bool,
    },
}

/// Whether the same queue may take the message if it is sent again.
pub(crate) fn may_pass(refusal: Refusal<'_>) -> bool {
    match refusal {
        Refusal::Unanswered => true,
        // Throttling is an HTTP status 400, so it counts as the sender's fault.
        Refusal::Answered { code, .. } if is_throttling(code) => true,
        Refusal::Answered { code, sender_fault } => !sender_fault && !is_permanent(code),
    }
}

/// Of SQS itself and of KMS: `RequestThrottled`, `KMS.ThrottlingException`, `KmsThrottled`.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
fn is_throttling(code: &str) -> bool {
    code.contains("Throttl") || LATER.contains(&code)
}

/// Also where the service blames itself: a key or a queue that it cannot use now has to be repaired.
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
