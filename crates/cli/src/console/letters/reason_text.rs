//! Explains the reason of a dead letter. Pure.

use delivery::delivery::reason::Reason;

/// Explains a reason in a sentence; `None` for an unknown reason.
pub(in crate::console) fn meaning(reason: &str) -> Option<&'static str> {
    Some(match reason.parse::<Reason>().ok()? {
        Reason::MaxDeliveryAttemptsExceeded => "Every attempt that the policy allows failed.",
        Reason::TimeToLiveExceeded => {
            "The time to live of the event ended before the next attempt."
        }
        Reason::UndeliverableDueToHttpBadRequest => {
            "The destination refused the request as malformed (400)."
        }
        Reason::UndeliverableDueToHttpUnauthorized => {
            "The destination requires credentials that it did not get (401)."
        }
        Reason::UndeliverableDueToHttpForbidden => "The destination refuses access (403).",
        Reason::UndeliverableDueToHttpNotFound => {
            "The destination does not know this address, or the object that the event refers to \
             (404)."
        }
        Reason::UndeliverableDueToHttpMethodNotAllowed => {
            "The destination does not accept POST at this address (405)."
        }
        Reason::UndeliverableDueToHttpGone => "The destination is permanently gone (410).",
        Reason::UndeliverableDueToHttpPayloadTooLarge => {
            "The event is too large for the destination (413)."
        }
        Reason::UndeliverableDueToHttpUnsupportedMediaType => {
            "The destination does not accept this content type (415)."
        }
        Reason::UndeliverableDueToHttpUnprocessable => {
            "The destination understood the event but cannot process it (422)."
        }
        Reason::UndeliverableDueToHttpStatus(_) => {
            "The destination responded with a status that is not retried."
        }
        Reason::UndeliverableDueToRedirect => {
            "The destination redirected the request, and redirects are not followed."
        }
        Reason::UndeliverableDueToBlockedAddress => {
            "The address of the destination is not allowed."
        }
        Reason::UndeliverableDueToInvalidRequest => {
            "The event could not be sent as a request of this subscription."
        }
        Reason::SubscriptionNotFound => {
            "The subscription no longer existed at the time of delivery."
        }
        Reason::TopicNotFound => "The event was published to a topic that does not exist.",
        Reason::MalformedEvent => {
            "The published message, or the reply to an event, is not a valid event."
        }
        Reason::ProcessingFailed => "Processing the message failed repeatedly, before any attempt.",
        Reason::EventTooLargeToResend => {
            "The event and its delivery state no longer fit into a message, or the reply is too \
             large."
        }
        Reason::Paused => {
            "The subscription is paused. Nothing failed: replay the dead letter after the pause."
        }
        Reason::DestinationDisabled => {
            "The destination is disabled, by an operator or because it failed for too long."
        }
        Reason::ReplyLoop => {
            "The event is a reply, and one event has already caused too many replies."
        }
    })
}
