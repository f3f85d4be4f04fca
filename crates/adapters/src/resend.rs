//! Whether a message that SQS did not take is sent to the same queue again, and after how long. Pure.
//!
//! The SDK retries whole calls only, and does not know that KMS throttling passes.

use delivery::subscription::schedule::Jitter;

/// A message is sent to one queue this often at most: the waits in between are three seconds
/// together at most, and after that another queue is the better choice.
pub(crate) const TRIES_MAX: u32 = 6;
/// The longest wait after the first try; it doubles with each.
const FIRST_WAIT_MS: u64 = 100;

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

/// How long to wait before the next try, after this many; `None` when there is none. Exponential
/// backoff with full jitter: processes that were throttled together do not return together.
/// <https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/>
pub(crate) fn wait_ms(tries: u32, jitter: Jitter) -> Option<u64> {
    let doublings = tries.checked_sub(1).filter(|_| tries < TRIES_MAX)?;
    let longest_ms = FIRST_WAIT_MS << doublings;
    Some(longest_ms * u64::from(jitter.0) / u64::from(u32::MAX))
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

    #[test]
    fn the_wait_is_random_up_to_a_limit_that_doubles_until_the_tries_are_used_up() {
        let (half, full) = (Jitter(u32::MAX / 2 + 1), Jitter(u32::MAX));
        for (tries, half_ms, longest_ms) in
            [(1, 50, 100), (2, 100, 200), (3, 200, 400), (4, 400, 800), (5, 800, 1_600)]
        {
            assert_eq!(wait_ms(tries, Jitter(0)), Some(0));
            assert_eq!(
                (wait_ms(tries, half), wait_ms(tries, full)),
                (Some(half_ms), Some(longest_ms))
            );
        }
        assert_eq!((wait_ms(TRIES_MAX, full), wait_ms(u32::MAX, full)), (None, None));
    }
}
