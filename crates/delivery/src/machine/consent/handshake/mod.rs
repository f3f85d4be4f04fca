//! Composes the requests of the two handshakes, and judges the responses.
//!
//! Event Grid posts a validation event with a code. The endpoint consents by a 200 that echoes the
//! code. After a 200 without the code, a person must open the validation URL in the event.
//! <https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema>
//!
//! CloudEvents sends OPTIONS. The endpoint names the origin that it allows, or a person calls the
//! callback URL.
//! <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection>
//!
//! The request is signed like a delivery, and has the subscription's headers that do not depend on
//! an event, because an endpoint may require both. A status alone is never a consent. The functions
//! are pure: the code and the time are arguments.

use crate::subscription::CloudEventsHandshake;
use crate::subscription::NoFields;
use serde_json::Value;
use url::Url;
use uuid::Uuid;

use crate::delivery::outcome::{Exchange, Unsendable};
use crate::event::json::Object;
use crate::machine::consent::Rate;
use crate::request::signer::Signer;
use crate::request::{
    ANSWER_MAX_BYTES, AttemptContext, JSON, Method, Needs, REQUEST_ORIGIN, Request,
    parts_without_event,
};
use crate::subscription::credentials::Credentials;
use crate::subscription::{Consent, Subscription};
use crate::time::duration::SECOND_MS;
use crate::time::moment::rfc3339;

/// Timeout of a handshake request. Both handshakes use the value of Event Grid.
pub const ASK_TIMEOUT_MS: u64 = 30 * SECOND_MS;
/// Name of the header with the allowed number of requests per minute, in a response or a callback
/// request.
pub const ALLOWED_RATE: &str = "WebHook-Allowed-Rate";

/// Name of the response header with the allowed origin; the value `*` allows any origin.
pub const ALLOWED_ORIGIN: &str = "WebHook-Allowed-Origin";
/// Name of the request header with the requested number of requests per minute.
pub const REQUEST_RATE: &str = "WebHook-Request-Rate";

const REQUEST_CALLBACK: &str = "WebHook-Request-Callback";
/// Name of the response header with the allowed origin. It is in lower case and without `webhook-`,
/// as [`crate::delivery::outcome::Content`] stores it.
const ANSWER_ORIGIN: &str = "allowed-origin";
/// Name of the response header with the allowed rate, in the same form as [`ANSWER_ORIGIN`].
const ANSWER_RATE: &str = "allowed-rate";

/// The values that are generated anew for each handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Validation code that an Event Grid endpoint must echo; it cannot be guessed.
    pub code: Uuid,
    /// URL that grants consent when somebody opens it; `None` if no program listens for such
    /// requests.
    pub confirm: Option<Url>,
}

impl Question {
    /// Creates the values of a handshake. The validation code consists of these 128 random bits.
    #[must_use]
    pub fn new(random: [u32; 4], confirm: Option<Url>) -> Self {
        let mut bytes = [0; 16];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(random) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        Self { code: uuid::Builder::from_random_bytes(bytes).into_uuid(), confirm }
    }
}

/// The meaning of the response to a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The destination consents to deliveries at this rate.
    Granted(Rate),
    /// The destination accepted the request, and consents once somebody opens the URL in the
    /// request.
    Pending,
    /// The destination did not consent, or did not respond. The text is the reason, for people.
    Refused(String),
}

impl Answer {
    /// Replaces the credentials of the request in the reason, which may quote the response.
    #[must_use]
    pub fn redact(self, credentials: &Credentials) -> Self {
        match self {
            Self::Refused(why) => Self::Refused(credentials.hide_in_text(why)),
            Self::Granted(_) | Self::Pending => self,
        }
    }
}

/// Composes the handshake request to a subscription's destination.
///
/// # Errors
/// [`Unsendable`] if a header or secret of the subscription is invalid or missing.
pub fn ask(
    subscription: &Subscription,
    consent: &Consent,
    question: &Question,
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let (method, mut headers, body) = match consent {
        Consent::EventGrid(NoFields) => (
            Method::Post,
            validation_headers(subscription),
            validation(subscription, question, context.now_ms),
        ),
        Consent::CloudEvents(CloudEventsHandshake { origin, rate }) => {
            (Method::Options, permission_headers(origin, *rate, question), Vec::new())
        }
    };
    let destination = &subscription.destination;
    let (of_subscription, tls) =
        parts_without_event(destination, &question.code.to_string(), &body, context)?;
    headers.extend(of_subscription);
    Ok(Request {
        method,
        url: (*destination.url).clone(),
        headers,
        body: body.into(),
        timeout_ms: context.timeout_ms,
        needs: Needs::Body,
        answer_max_bytes: ANSWER_MAX_BYTES,
        tls,
        signer: Signer::for_destination(destination, context.keyring)?,
        hidden: destination.unsent_secrets(context.keyring),
        deliveries: Vec::new(),
    })
}

fn validation_headers(subscription: &Subscription) -> Vec<(String, String)> {
    let named = [
        ("content-type", JSON.to_owned()),
        ("aeg-event-type", "SubscriptionValidation".to_owned()),
        // Event Grid sends the name in upper case.
        ("aeg-subscription-name", subscription.name.name.to_uppercase()),
        ("aeg-delivery-count", "0".to_owned()),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

fn validation(subscription: &Subscription, question: &Question, now_ms: u64) -> Vec<u8> {
    let (mut event, mut data) = (Object::default(), Object::default());
    data.put("validationCode", &question.code);
    data.optional("validationUrl", question.confirm.as_ref().map(Url::as_str));
    event.put("id", &question.code);
    event.text("topic", &subscription.name.topic.to_string());
    event.text("subject", "");
    event.raw("data", Some(&data.finish()));
    event.text("eventType", "Microsoft.EventGrid.SubscriptionValidationEvent");
    event.text("eventTime", &rfc3339(now_ms));
    event.text("metadataVersion", "1");
    event.text("dataVersion", "1");
    format!("[{}]", event.finish()).into()
}

fn permission_headers(
    origin: &str,
    rate: Option<u32>,
    question: &Question,
) -> Vec<(String, String)> {
    let named = [
        (REQUEST_ORIGIN, Some(origin.to_owned())),
        (REQUEST_RATE, rate.map(|rate| rate.to_string())),
        (REQUEST_CALLBACK, question.confirm.as_ref().map(Url::to_string)),
    ];
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Judges the response to a handshake: whether the destination consents, and at which rate.
#[must_use]
pub fn judge(consent: &Consent, question: &Question, exchange: &Exchange) -> Answer {
    let Some((status, body)) = exchange.answer() else {
        return Answer::Refused(unanswered(exchange));
    };
    if (300..400).contains(&status) {
        return Answer::Refused(format!(
            "the endpoint responded with {status}, and redirects are not followed"
        ));
    }
    match consent {
        Consent::EventGrid(NoFields) => judge_validation(question, status, body),
        Consent::CloudEvents(CloudEventsHandshake { origin, rate }) => {
            judge_permission(origin, *rate, question, status, exchange)
        }
    }
}

fn unanswered(exchange: &Exchange) -> String {
    let detail = exchange.detail.clone().unwrap_or_else(|| format!("{:?}", exchange.result));
    format!("the handshake request failed: {detail}")
}

/// Judges the response to a validation event. A 200 that echoes the code is consent. A 200 without
/// the code is pending if a person can open the validation URL. A 202 is a refusal ("202 Accepted
/// is not recognized as a valid Event Grid subscription validation response").
fn judge_validation(question: &Question, status: u16, body: &[u8]) -> Answer {
    if status != 200 {
        return Answer::Refused(format!("the endpoint responded with {status} instead of 200"));
    }
    match (echo(body), &question.confirm) {
        // Case is ignored, because endpoints may write a GUID in upper case.
        (Some(code), _) if code.eq_ignore_ascii_case(&question.code.to_string()) => {
            Answer::Granted(Rate::Unlimited)
        }
        (Some(_), _) => Answer::Refused("the endpoint returned a wrong validation code".to_owned()),
        (None, Some(_)) => Answer::Pending,
        (None, None) => Answer::Refused(
            "the endpoint responded with 200 but without a validationResponse".to_owned(),
        ),
    }
}

/// Returns the validation code that a response echoes in its member `validationResponse`. The name
/// may be in upper or lower case, because serializers differ.
fn echo(body: &[u8]) -> Option<String> {
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else { return None };
    let mut named =
        members.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case("validationResponse"));
    let (_, value) = named.next()?;
    value.as_str().map(|code| code.trim().to_owned())
}

/// Judges the response to OPTIONS. In a successful response, the header with the allowed origin
/// decides. Without this header, the result is pending if a callback may still follow. A callback
/// may follow even from an endpoint that does not support the handshake: a person may find the
/// callback URL in its log (4.1.3).
fn judge_permission(
    origin: &str,
    asked: Option<u32>,
    question: &Question,
    status: u16,
    exchange: &Exchange,
) -> Answer {
    let webhook_header = |name: &str| {
        let headers = exchange.content.iter().flat_map(|content| &content.webhook);
        headers
            .filter(|(header, _)| header == name)
            .map(|(_, value)| value.trim().to_owned())
            .collect::<Vec<String>>()
    };
    let origins = webhook_header(ANSWER_ORIGIN);
    if origins.is_empty() && question.confirm.is_some() {
        return Answer::Pending;
    }
    if !(200..300).contains(&status) {
        return Answer::Refused(format!("the endpoint responded with {status}"));
    }
    if origins.is_empty() {
        return Answer::Refused(format!(
            "the endpoint responded with {status} but without WebHook-Allowed-Origin"
        ));
    }
    if !origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin)) {
        return Answer::Refused(format!(
            "the endpoint allows the origin {:?}, not {origin:?}",
            origins.join(", ")
        ));
    }
    match webhook_header(ANSWER_RATE).first() {
        Some(rate) => Rate::parse(rate).map_or_else(Answer::Refused, Answer::Granted),
        None => Answer::Granted(asked_rate(asked)),
    }
}

/// Returns the rate that a callback grants. If the callback states no rate, this is the rate that
/// the handshake requested. Event Grid has no rates, so its callbacks grant an unlimited rate.
///
/// # Errors
/// A description of the problem, if the rate is invalid.
pub fn confirm(consent: &Consent, rate: Option<&str>) -> Result<Rate, String> {
    match (consent, rate) {
        (Consent::EventGrid(NoFields), _) => Ok(Rate::Unlimited),
        (Consent::CloudEvents(_), Some(rate)) => Rate::parse(rate),
        (Consent::CloudEvents(CloudEventsHandshake { rate, .. }), None) => Ok(asked_rate(*rate)),
    }
}

/// Returns the rate for an endpoint that consents without naming a rate. It is the requested rate,
/// or unlimited if none was requested.
fn asked_rate(asked: Option<u32>) -> Rate {
    asked.and_then(std::num::NonZeroU32::new).map_or(Rate::Unlimited, Rate::PerMinute)
}

#[cfg(test)]
mod tests;
