//! What a reason means to a person, and what may be done. Pure.

use delivery::delivery::reason::Reason;

/// A sentence about a reason; nothing of one that is not ours.
pub(super) fn meaning(reason: &str) -> Option<&'static str> {
    Some(match reason.parse::<Reason>().ok()? {
        Reason::MaxDeliveryAttemptsExceeded => "Every attempt that the policy allows failed.",
        Reason::TimeToLiveExceeded => "The event was too old by the time another attempt was due.",
        Reason::UndeliverableDueToHttpBadRequest => {
            "The destination refused the request as malformed (400)."
        }
        Reason::UndeliverableDueToHttpUnauthorized => {
            "The destination wants credentials that it did not get (401)."
        }
        Reason::UndeliverableDueToHttpForbidden => "The destination does not let us in (403).",
        Reason::UndeliverableDueToHttpNotFound => {
            "There is nothing at the destination's address (404)."
        }
        Reason::UndeliverableDueToHttpMethodNotAllowed => {
            "The destination takes no POST at this address (405)."
        }
        Reason::UndeliverableDueToHttpGone => "The destination says that it is retired (410).",
        Reason::UndeliverableDueToHttpPayloadTooLarge => {
            "The event is too large for the destination (413)."
        }
        Reason::UndeliverableDueToHttpUnsupportedMediaType => {
            "The destination does not read this content type (415)."
        }
        Reason::UndeliverableDueToHttpUnprocessable => {
            "The destination understood the event and cannot use it (422)."
        }
        Reason::UndeliverableDueToHttpStatus(_) => {
            "The destination answered with a status that is never tried again."
        }
        Reason::UndeliverableDueToRedirect => {
            "The destination pointed elsewhere, and redirects are never followed."
        }
        Reason::UndeliverableDueToTls => "The destination's certificate was refused.",
        Reason::UndeliverableDueToBlockedAddress => {
            "The destination is an address that is not sent to."
        }
        Reason::UndeliverableDueToInvalidRequest => {
            "No request could be made of this event for this subscription."
        }
        Reason::SubscriptionNotFound => {
            "The subscription was gone when the event was to be delivered."
        }
        Reason::TopicNotFound => "Nobody knows the topic that the event was published to.",
        Reason::MalformedEvent => "What was published is no event.",
        Reason::ProcessingFailed => {
            "The message could not be processed, again and again, before any attempt."
        }
        Reason::EventTooLargeToResend => "Event and state together no longer fit into a message.",
        Reason::ReplyLoop => "The event is a reply that led back to where it came from.",
    })
}
