//! Explains the reason of a dead letter. Pure.

use delivery::delivery::reason::Reason;

/// Explains a reason in a sentence; `None` for an unknown reason.
pub(in crate::console) fn meaning(reason: &str) -> Option<&'static str> {
    Some(match reason.parse::<Reason>().ok()? {
        Reason::MaxDeliveryAttemptsExceeded => "Every attempt that the policy allows failed.",
        Reason::TimeToLiveExceeded => "The event was too old by the time another attempt was due.",
        Reason::UndeliverableDueToHttpBadRequest => {
            "The destination refused the request as malformed (400)."
        }
        Reason::UndeliverableDueToHttpUnauthorized => {
            "The destination requires credentials that it did not get (401)."
        }
        Reason::UndeliverableDueToHttpForbidden => "The destination refuses access (403).",
        Reason::UndeliverableDueToHttpNotFound => {
            "The destination has nothing at this address, or does not have what the event refers to (404)."
        }
        Reason::UndeliverableDueToHttpMethodNotAllowed => {
            "The destination does not accept POST at this address (405)."
        }
        Reason::UndeliverableDueToHttpGone => {
            "The destination says that it is gone for good (410)."
        }
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
            "The destination has an address that is not allowed."
        }
        Reason::UndeliverableDueToInvalidRequest => {
            "No request could be made of this event for this subscription."
        }
        Reason::SubscriptionNotFound => {
            "The subscription no longer existed when the event was to be delivered."
        }
        Reason::TopicNotFound => "The event was published to a topic that does not exist.",
        Reason::MalformedEvent => "What was published, or the reply to an event, is not an event.",
        Reason::ProcessingFailed => "Processing the message failed repeatedly, before any attempt.",
        Reason::EventTooLargeToResend => {
            "Event and delivery state together no longer fit into a message, or the reply to it is too large."
        }
        Reason::Paused => {
            "Its subscription is paused. Nothing failed: replay it once the pause is over."
        }
        Reason::DestinationDisabled => {
            "The destination is disabled, by an operator or because it failed for too long."
        }
        Reason::ReplyLoop => {
            "The event is a reply, and too many replies have followed from one event already."
        }
    })
}
