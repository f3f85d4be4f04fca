//! The title of a dead letter's cause, and the text that identifies the cause.
//!
//! Separate from grouping, because a filter needs the cause of a single dead letter. Pure.
//!
//! Promises: every dead letter has a title that is not empty. A dead letter without attempts may
//! record the last failure of its destination in another delivery. Such a dead letter has the cause
//! of that failure.

use delivery::deadletter::stored::{FailedAt, Failure, StoredDeadLetter};
use delivery::delivery::FailingDestination;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use url::Url;

use super::templated::{TITLE_MAX_CHARS, Templated};
use super::{body, status, template, transport};

/// Minimum length of a path that identifies a destination.
const PATH_MIN_CHARS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    /// The title for people, with placeholders for varying parts.
    pub(super) title: Templated,
    /// The outcome of the last attempt, or the reason if the reason alone determines the cause.
    pub(super) outcome: String,
    pub(super) status: Option<u16>,
    /// The part of the cause's identity that is neither the outcome nor the status.
    pub(super) message: String,
}

pub(super) fn describe(letter: &StoredDeadLetter) -> Described {
    let failure = letter.failure();
    let reason = failure.reason.parse::<Reason>().ok();
    let described = match reason.and_then(|reason| of_reason(reason, letter, &failure)) {
        Some(title) => without_attempt(failure.reason, title),
        None => of_attempts(reason, letter, &failure),
    };
    let party = match failure.at {
        FailedAt::Destination => return described,
        FailedAt::Reply => "reply: ",
        FailedAt::Sink => "sink: ",
    };
    Described {
        title: described.title.after(party).cut(),
        message: format!("{party}{}", described.message),
        ..described
    }
}

fn without_attempt(reason: &str, title: String) -> Described {
    let message = template::identity(&template::generalize(&title));
    let title = Templated::without_values(template::cut(title, TITLE_MAX_CHARS));
    Described { title, outcome: reason.to_owned(), status: None, message }
}

/// Returns the title if the reason alone determines the cause. The result of the last attempt is
/// then irrelevant.
fn of_reason(reason: Reason, letter: &StoredDeadLetter, failure: &Failure<'_>) -> Option<String> {
    let detail = failure.detail.and_then(super::text::first_line);
    let with_detail = |problem: &str| match &detail {
        Some(detail) => format!("{problem}: {}", template::generalize(detail)),
        None => problem.to_owned(),
    };
    Some(match reason {
        Reason::SubscriptionNotFound => match &detail {
            Some(detail) => template::generalize(detail),
            None => format!("subscription {} does not exist", letter.subscription),
        },
        Reason::TopicNotFound => missing_topic(detail.as_deref(), letter),
        Reason::MalformedEvent if letter.is_reply => with_detail("response is not an event"),
        Reason::MalformedEvent => with_detail("malformed event"),
        Reason::ProcessingFailed => with_detail("message could not be processed"),
        Reason::EventTooLargeToResend if letter.is_reply => with_detail("reply too large"),
        Reason::EventTooLargeToResend => with_detail("event too large to send again"),
        Reason::ReplyLoop => with_detail("reply loop"),
        Reason::Paused => "subscription paused".to_owned(),
        Reason::DestinationDisabled => "destination disabled".to_owned(),
        Reason::UndeliverableDueToInvalidRequest if failure.status.is_none() => {
            with_detail("no request could be built")
        }
        Reason::UndeliverableDueToInvalidRequest
        | Reason::MaxDeliveryAttemptsExceeded
        | Reason::TimeToLiveExceeded
        | Reason::UndeliverableDueToHttpBadRequest
        | Reason::UndeliverableDueToHttpUnauthorized
        | Reason::UndeliverableDueToHttpForbidden
        | Reason::UndeliverableDueToHttpNotFound
        | Reason::UndeliverableDueToHttpMethodNotAllowed
        | Reason::UndeliverableDueToHttpGone
        | Reason::UndeliverableDueToHttpPayloadTooLarge
        | Reason::UndeliverableDueToHttpUnsupportedMediaType
        | Reason::UndeliverableDueToHttpUnprocessable
        | Reason::UndeliverableDueToHttpStatus(_)
        | Reason::UndeliverableDueToRedirect
        | Reason::UndeliverableDueToBlockedAddress => return None,
    })
}

/// Returns the title for a missing topic. The title contains the topic's name if it is known:
/// `topic shop/ordrs does not exist`.
fn missing_topic(detail: Option<&str>, letter: &StoredDeadLetter) -> String {
    let named = detail.and_then(|detail| detail.strip_prefix('"')?.strip_suffix('"'));
    let sent_to = || detail?.strip_prefix("there is no topic ")?.split(',').next();
    match (named.or_else(sent_to), detail) {
        (Some(topic), _) => format!("topic {} does not exist", template::generalize(topic)),
        (None, Some(detail)) => template::generalize(detail),
        (None, None) => format!("topic {} does not exist", letter.subscription.topic),
    }
}

fn of_attempts(
    reason: Option<Reason>,
    letter: &StoredDeadLetter,
    failure: &Failure<'_>,
) -> Described {
    let is_attempt = |outcome: &str| outcome != Outcome::Probation.as_str();
    let outcome = failure.outcome.filter(|outcome| is_attempt(outcome));
    let status = failure.status.or_else(|| reason.and_then(status_of));
    if outcome.is_none() && status.is_none() && failure.last_response.is_none() {
        return of_failing(letter.failing.as_ref(), reason, failure);
    }
    let outcome = outcome.unwrap_or_default();
    let Some(status) = status else {
        return of_no_response(outcome, failure.detail, failure);
    };
    of_response(outcome, status, failure)
}

/// Describes the cause of a dead letter whose delivery was deferred until it expired.
fn of_failing(
    failing: Option<&FailingDestination>,
    reason: Option<Reason>,
    failure: &Failure<'_>,
) -> Described {
    if let Some(FailingDestination { outcome, status, detail, .. }) = failing {
        return match status {
            Some(status) => {
                of_response(outcome, *status, &Failure { detail: detail.as_deref(), ..*failure })
            }
            None => of_no_response(outcome, detail.as_deref(), failure),
        };
    }
    let title = match reason {
        Some(Reason::TimeToLiveExceeded) => "too old before the first attempt".to_owned(),
        Some(Reason::MaxDeliveryAttemptsExceeded) => "no attempts left".to_owned(),
        Some(Reason::UndeliverableDueToBlockedAddress) => {
            transport::title(Outcome::Blocked, failure.detail, None)
        }
        Some(Reason::UndeliverableDueToRedirect) => "redirect, which is not followed".to_owned(),
        Some(_) | None => match failure.detail.and_then(super::text::first_line) {
            Some(detail) => template::generalize(&detail),
            None => words(failure.reason),
        },
    };
    without_attempt(failure.reason, title)
}

fn of_no_response(outcome: &str, detail: Option<&str>, failure: &Failure<'_>) -> Described {
    let said = failure.last_response.and_then(|response| body::read(response, None).title());
    let title = said.unwrap_or_else(|| {
        let title = without_body(outcome, detail, failure);
        // People want to see the timeout of a subscription, but it is not part of the cause.
        let is_timeout = title.starts_with("no response within ");
        Templated::without_values(if is_timeout { title } else { template::generalize(&title) })
    });
    let message = template::identity(&template::generalize(&title.template));
    Described { title: title.cut(), outcome: outcome.to_owned(), status: None, message }
}

fn without_body(outcome: &str, detail: Option<&str>, failure: &Failure<'_>) -> String {
    let host = failure.destination.and_then(|url| url.parse::<Url>().ok());
    let host = host.as_ref().and_then(Url::host_str);
    match outcome.parse() {
        Ok(outcome) => transport::title(outcome, detail, host),
        Err(_) => words(if outcome.is_empty() { failure.reason } else { outcome }),
    }
}

fn of_response(outcome: &str, status: u16, failure: &Failure<'_>) -> Described {
    let said = failure.last_response.map(|response| body::read(response, Some(status)));
    let said = said.unwrap_or_default();
    let detail = || failure.detail.and_then(super::text::first_line);
    let text = said.title().or_else(|| detail().map(|detail| Templated::from_text(&detail)));
    let name = || Templated::without_values(status::name(status).unwrap_or_default().to_owned());
    let text = text.unwrap_or_else(name);
    let lines = if said.lines.is_empty() { text.template.clone() } else { said.compared() };
    let path = failure.destination.and_then(path);
    let lines = path.map_or(lines.clone(), |path| lines.replace(&path, "<path>"));
    let separator = if text.is_empty() { "" } else { " " };
    Described {
        title: text.after(&format!("{status}{separator}")).cut(),
        outcome: outcome.to_owned(),
        status: Some(status),
        message: template::identity(&lines),
    }
}

/// Returns the path of a destination. Error messages of frameworks repeat this path, as in `Cannot
/// POST /hooks`.
fn path(url: &str) -> Option<String> {
    let url: Url = url.parse().ok()?;
    let path = template::generalize(url.path());
    (path.len() >= PATH_MIN_CHARS).then_some(path)
}

/// Returns the HTTP status in the name of a reason.
fn status_of(reason: Reason) -> Option<u16> {
    let statuses = [400, 401, 403, 404, 405, 410, 413, 415, 422];
    if let Reason::UndeliverableDueToHttpStatus(status) = reason {
        return Some(status);
    }
    statuses.into_iter().find(|status| Reason::of_status(*status) == reason)
}

/// Converts the unknown name of a reason or an outcome to separate words: `DestinationPaused`
/// becomes `destination paused`.
fn words(name: &str) -> String {
    if name.contains(' ') {
        return template::generalize(name.trim_end_matches('.'));
    }
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    if words.is_empty() { "no reason recorded".to_owned() } else { template::generalize(&words) }
}
