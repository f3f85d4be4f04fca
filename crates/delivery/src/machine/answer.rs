//! Decides which part of a response is stored, and hides credentials in it.
//!
//! This module is separate because the stored part depends on the response: nothing of a success,
//! the beginning of the body of a failure, and the whole body of a reply. A reply is an event, so
//! only credentials that cannot occur by chance are hidden in it. A response that is not stored is
//! not searched.

use crate::delivery::outcome::{Exchange, Outcome};
use crate::delivery::{Delivery, DeliveryTarget, RESPONSE_KEPT_BYTES};
use crate::machine::reply::ReplyKind;
use crate::request::RenderedCredentials;
use crate::subscription::credentials::Credentials;
use crate::subscription::profile::RetryPolicy;
use crate::subscription::secret::Keyring;
use crate::subscription::sink::Sink;
use crate::subscription::{ReplyTo, Subscription};

/// Number of bytes that are searched in the body of a failed response. It is twice the stored size,
/// so that the search also finds a credential that crosses the end of the stored part.
const SEARCHED_BYTES: usize = 2 * RESPONSE_KEPT_BYTES;

/// True if some part of an exchange may be stored: a detail, the body or the headers of a failure,
/// or a reply.
#[must_use]
pub fn is_kept(exchange: &Exchange, subscription: &Subscription) -> bool {
    let has_body = exchange.answer().is_some_and(|(_, body)| !body.is_empty());
    let is_success = || exchange.outcome(&subscription.retry) == Outcome::Success;
    let has_headers = exchange.content.as_ref().is_some_and(|content| !content.headers.is_empty());
    let has_attributes =
        exchange.content.as_ref().is_some_and(|content| !content.attributes.is_empty());
    let may_reply = subscription.reply.is_some() && (has_body || has_attributes);
    exchange.detail.is_some() || may_reply || ((has_body || has_headers) && !is_success())
}

/// The credentials that one request contains, for hiding them in its response.
#[derive(Debug)]
pub struct SentCredentials {
    all: Credentials,
    /// Credentials that are hidden even in replies, because they cannot occur by chance.
    certain: Credentials,
    /// The retry policy that decides success; `Some` only if the subscription accepts replies.
    takes_reply: Option<RetryPolicy>,
}

impl SentCredentials {
    /// Collects the credentials in the request for these deliveries, including those that templates
    /// rendered.
    #[must_use]
    pub fn collect(
        subscription: &Subscription,
        deliveries: &[&Delivery],
        keyring: &Keyring,
        rendered: &RenderedCredentials,
    ) -> Self {
        let (destination, first) = (&subscription.destination, deliveries.first());
        let other = match first.map(|delivery| &delivery.target) {
            None | Some(DeliveryTarget::Destination) => {
                let event = first.map(|delivery| &delivery.event);
                let mut all = destination.credentials(keyring, event);
                rendered.add_to(&mut all);
                return Self {
                    all,
                    certain: destination.certain_credentials(keyring),
                    takes_reply: subscription.reply.as_ref().map(|_| subscription.retry.clone()),
                };
            }
            Some(DeliveryTarget::Reply) => match &subscription.reply {
                Some(ReplyTo::Address(url)) => Some((url, destination.hide_path)),
                Some(ReplyTo::Topic(_)) | None => None,
            },
            Some(DeliveryTarget::Sink(_)) => match &subscription.dead_letter.sink {
                Sink::Address(url) => Some((url, subscription.dead_letter.hide_path)),
                Sink::DefaultContainer
                | Sink::Container(_)
                | Sink::Queue(_)
                | Sink::Topic(_)
                | Sink::None => None,
            },
        };
        let mut all = Credentials::default();
        if let Some((url, hide_path)) = other {
            all.add_url(url);
            if hide_path {
                all.add_path(url);
            }
        }
        Self { all, certain: Credentials::default(), takes_reply: None }
    }

    /// Hides the credentials of the request in the stored part of a response.
    #[must_use]
    pub fn hide_in(&self, exchange: Exchange) -> Exchange {
        let is_success = |policy: &&RetryPolicy| exchange.outcome(policy) == Outcome::Success;
        let reply = self.takes_reply.as_ref().filter(is_success);
        match reply.and_then(|_| ReplyKind::from_exchange(&exchange)) {
            Some(ReplyKind::Event) => exchange.redact(&self.certain, usize::MAX),
            // Unreadable replies may be stored as a whole, in place of an event.
            Some(ReplyKind::Unreadable) => exchange.redact(&self.all, usize::MAX),
            Some(ReplyKind::TooLarge) | None => exchange.redact(&self.all, SEARCHED_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Origin;
    use crate::delivery::outcome::{Content, TransportResult};
    use crate::event::{Event, Input};
    use crate::machine::follow_up::FollowUp;
    use crate::machine::reply;
    use crate::subscription::catalogue::Catalogue;
    use crate::subscription::header::{Header, Value};
    use crate::subscription::profile::{Dialect, StatusSet};

    /// The credential in the request, which the destination repeats in the content type of its
    /// response.
    const SENT: &str = "Bearer static-t0ken";

    fn subscription() -> Subscription {
        let url = |text: &str| text.parse().unwrap();
        let name = "n/t/s".parse().unwrap();
        let mut subscription =
            Subscription::new(name, Dialect::Knative, url("https://s.example.com/?v=short"));
        subscription.reply = Some(ReplyTo::Address(url("https://r.example.com/")));
        let value = Value::Static(SENT.to_owned());
        subscription.destination.headers = vec![Header { name: "authorization".to_owned(), value }];
        subscription
    }

    fn delivery(subscription: &Subscription) -> Delivery {
        let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
        let event = Event::recall(&event.into(), Input::Auto);
        let origin = Origin { message: "m".to_owned(), index: 0 };
        Delivery::new(event, subscription.name.clone(), origin, 7)
    }

    /// Returns an exchange with the status 200 in which credentials are hidden.
    fn kept(
        subscription: &Subscription,
        attributes: &[(&str, &str)],
        content_type: &str,
        body: &str,
    ) -> Exchange {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let content = Content {
            content_type: Some(content_type.to_owned()),
            attributes: attributes.iter().map(owned).collect(),
            whole: true,
            ..Content::default()
        };
        let body = body.as_bytes().to_vec();
        let result = TransportResult::Answered { status: 200, retry_after: None, body };
        let exchange = Exchange { content: Some(content), ..Exchange::new(result, 7, 1) };
        let delivery = delivery(subscription);
        SentCredentials::collect(
            subscription,
            &[&delivery],
            &Keyring::default(),
            &RenderedCredentials::default(),
        )
        .hide_in(exchange)
    }

    /// Returns the event text of the reply or dead letter that follows from a response in binary
    /// mode.
    fn reply_of(attributes: &[(&str, &str)], content_type: &str) -> String {
        let subscription = subscription();
        let kept = kept(&subscription, attributes, content_type, "hello");
        let catalogue = Catalogue::default();
        let delivery = delivery(&subscription);
        match &reply::follow_ups(&delivery, &subscription, &kept, &catalogue, 8)[..] {
            [FollowUp::Deliver(reply)] => reply.event.text().to_string(),
            [FollowUp::DeadLetter(letter)] => letter.delivery.event.text().to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_type_of_a_reply_in_binary_form_repeats_no_credential() {
        let echo = format!("text/plain; echo=\"{SENT}\"; v=short");
        let event = [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t")];
        let shown = |v| format!(r#""datacontenttype":"text/plain; echo=\"[secret]\"; v={v}""#);
        let reply = reply_of(&event, &echo);
        assert!(reply.contains(&shown("short")), "{reply}");
        // Without a source the response is not an event, so every credential is hidden, even a
        // short one.
        let letter = reply_of(&event[..2], &echo);
        assert!(letter.contains(&shown("[secret]")), "{letter}");
    }

    #[test]
    fn of_a_success_nothing_is_kept_that_cannot_be_a_reply() {
        let replying = subscription();
        let silent = Subscription { reply: None, ..replying.clone() };
        let exchange = |status, body: &str, attribute: Option<&str>, detail: Option<&str>| {
            let attributes =
                attribute.map(|name| (name.to_owned(), "1.0".to_owned())).into_iter().collect();
            let result = TransportResult::Answered {
                status,
                retry_after: None,
                body: body.as_bytes().to_vec(),
            };
            Exchange {
                content: Some(Content { attributes, ..Content::default() }),
                detail: detail.map(str::to_owned),
                ..Exchange::new(result, 7, 1)
            }
        };
        for (exchange, by_silent, by_replying) in [
            (exchange(200, "", None, None), false, false),
            (exchange(200, "ok", None, None), false, true),
            (exchange(200, "", Some("specversion"), None), false, true),
            (exchange(200, "", None, Some("reset")), true, true),
            (exchange(500, "", None, None), false, false),
            (exchange(500, "no", None, None), true, true),
        ] {
            let kept = [&silent, &replying].map(|subscription| is_kept(&exchange, subscription));
            assert_eq!(kept, [by_silent, by_replying], "{exchange:?}");
        }
    }

    #[test]
    fn a_credential_across_the_limit_is_hidden() {
        let body = format!("{}{SENT}", "x".repeat(RESPONSE_KEPT_BYTES - 1));
        let result =
            TransportResult::Answered { status: 500, retry_after: None, body: body.into_bytes() };
        let subscription = subscription();
        let delivery = delivery(&subscription);
        let sent = SentCredentials::collect(
            &subscription,
            &[&delivery],
            &Keyring::default(),
            &RenderedCredentials::default(),
        );
        let hidden = sent.hide_in(Exchange::new(result, 7, 1));
        let kept = hidden.answer().map(|(_, body)| String::from_utf8_lossy(body).into_owned());
        let kept = kept.unwrap_or_default();
        assert!(kept.ends_with("x[secret]"), "{kept}");
    }

    #[test]
    fn a_reply_is_none_where_its_status_is_no_success() {
        let body = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"short"}"#;
        let mut subscription = subscription();
        for (success, data) in [(200, "short"), (204, "[secret]")] {
            subscription.retry.success = StatusSet::new([success..=success]);
            let kept = kept(&subscription, &[], "application/cloudevents+json", body);
            let shown = body.replace("short", data);
            assert_eq!(kept.answer(), Some((200, shown.as_bytes())));
        }
    }
}
