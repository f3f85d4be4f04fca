//! Where dead letters of a subscription go, and how they get to an address or a topic.
//!
//! Separate because three families of documents name sinks, and both functions serve them:
//! deadletter writes to containers and queues; an address or a topic is asked by a further
//! delivery, which dispatch makes with the policy of the subscription it came from, or of those it
//! is published to.
//!
//! Promises: a letter is on its way, or in the deployment's container; none is lost because a sink
//! cannot take it, and none goes round through topics: one that it came from does not get it again.
//! An address or a queue that publishes what it takes is not seen from here.

use std::fmt;
use std::str::FromStr;

use url::Url;
use uuid::Uuid;

use crate::blob::enriched;
use crate::catalogue::Catalogue;
use crate::deadletter::{Container, Letter};
use crate::delivery::{DELIVERY_NAMESPACE, Delivery, Leg};
use crate::event::{Element, Event, Input, decode_one};
use crate::reply::Follow;
use crate::subscription::{Subscription, SubscriptionName, TopicName};

/// Where dead letters of a subscription go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// The container of the deployment.
    DefaultContainer,
    /// A container of its own.
    Container(Container),
    /// A queue of somebody else's.
    Queue(SinkQueue),
    /// An HTTP endpoint, by a further delivery.
    Address(Url),
    /// The subscriptions of a topic.
    Topic(TopicName),
    /// Dropped, counted, warned about.
    None,
}

/// An SQS queue that takes dead letters: its URL without the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkQueue {
    host: String,
    account: String,
    name: String,
}

/// The longest name of a queue.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
const NAME_MAX_BYTES: usize = 80;
/// The digits of an account's number.
const ACCOUNT_DIGITS: usize = 12;

/// What follows from a letter: where its sink is an address or a topic, deliveries of their own,
/// with a budget of their own. A letter that its sink cannot take goes to the deployment's
/// container and says why.
///
/// The letter's delay (the five minutes of Event Grid) is kept: the deliveries are not due before.
#[must_use]
pub fn deliver(
    letter: Letter,
    subscription: &Subscription,
    catalogue: &Catalogue,
    now_ms: u64,
) -> Vec<Follow> {
    match &subscription.dead_letter.sink {
        Sink::Address(_) => vec![Follow::Deliver(Box::new(to_address(letter, now_ms)))],
        Sink::Topic(topic) => to_topic(letter, topic, catalogue, now_ms),
        Sink::DefaultContainer | Sink::Container(_) | Sink::Queue(_) => bury(letter),
        Sink::None => vec![Follow::Drop(Box::new(letter))],
    }
}

/// The event travels untouched, and the letter beside it: should the sink fail too, nothing of
/// either is lost.
fn to_address(letter: Letter, now_ms: u64) -> Delivery {
    let Delivery { id, event, subscription, origin, traceparent, .. } = letter.delivery.clone();
    let errand = Delivery {
        id: id_at_sink(id, ""),
        traceparent,
        ..Delivery::new(event, subscription, origin, begins_ms(&letter, now_ms))
    };
    Delivery { leg: Leg::Sink(Box::new(letter)), ..errand }
}

fn to_topic(letter: Letter, name: &TopicName, catalogue: &Catalogue, now_ms: u64) -> Vec<Follow> {
    let Delivery { subscription: SubscriptionName { topic: from, .. }, via, .. } = &letter.delivery;
    if from == name || via.contains(name) {
        return bury(letter.kept_here(format!("topic {name} is where it came from")));
    }
    let input = catalogue.topic(name).map_or(Input::Auto, |topic| topic.input);
    let event = match decode_one(&enriched(&letter).json.into(), input) {
        Element::Event(event) => event,
        Element::Malformed { why, .. } => {
            return bury(letter.kept_here(format!("topic {name} cannot read it: {why}")));
        }
    };
    let matching = catalogue.matching(name, &event, now_ms);
    let follows: Vec<Follow> = matching
        .map(|next| {
            Follow::Deliver(Box::new(published(&letter, event.clone(), &next.name, now_ms)))
        })
        .collect();
    if follows.is_empty() {
        return bury(letter.kept_here(format!("no subscription of topic {name} takes it")));
    }
    follows
}

/// The enriched event, for one subscription of the topic.
fn published(letter: &Letter, event: Event, to: &SubscriptionName, now_ms: u64) -> Delivery {
    let first = &letter.delivery;
    let mut via = first.via.clone();
    via.push(first.subscription.topic.clone());
    Delivery {
        id: id_at_sink(first.id, &to.to_string()),
        hops: first.hops,
        via,
        traceparent: first.traceparent.clone(),
        ..Delivery::new(event, to.clone(), first.origin.clone(), begins_ms(letter, now_ms))
    }
}

/// When the time to live of what goes to a sink begins: the letter's delay is none of it, or a
/// short one would be over before the sink is asked.
fn begins_ms(letter: &Letter, now_ms: u64) -> u64 {
    letter.not_before_ms.max(now_ms)
}

fn id_at_sink(first: Uuid, to: &str) -> Uuid {
    Uuid::new_v5(&DELIVERY_NAMESPACE, format!("{first}\nsink\n{to}").as_bytes())
}

fn bury(letter: Letter) -> Vec<Follow> {
    vec![Follow::Bury(Box::new(letter))]
}

impl SinkQueue {
    /// Its URL, as the queue service calls it: plain HTTP on this machine alone.
    #[must_use]
    pub fn url(&self) -> String {
        let name = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        let is_here = name == "localhost"
            || name.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback());
        format!("{}://{self}", if is_here { "http" } else { "https" })
    }

    /// Its ARN; `None` where the host is none of AWS's.
    #[must_use]
    pub fn arn(&self) -> Option<String> {
        let (region, suffix) = self.host.strip_prefix("sqs.")?.split_once('.')?;
        let partition = match suffix {
            "amazonaws.com" if region.starts_with("us-gov-") => "aws-us-gov",
            "amazonaws.com" => "aws",
            "amazonaws.com.cn" => "aws-cn",
            _ => return None,
        };
        Some(format!("arn:{partition}:sqs:{region}:{}:{}", self.account, self.name))
    }
}

impl fmt::Display for SinkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.account, self.name)
    }
}

impl FromStr for SinkQueue {
    type Err = String;

    /// Reads `host/account/name`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let (Some(host), Some(account), Some(name), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!(
                "\"{text}\" is no queue: host/account/name is expected, its URL without https://"
            ));
        };
        if name.ends_with(".fifo") {
            return Err(format!(
                "{name} is a FIFO queue, which would hold dead letters back behind each other"
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > NAME_MAX_BYTES || !name.chars().all(plain) {
            return Err(format!(
                "\"{name}\" is no queue's name: 1 to {NAME_MAX_BYTES} letters, digits, hyphens and _"
            ));
        }
        if account.len() != ACCOUNT_DIGITS || !account.chars().all(|c| c.is_ascii_digit()) {
            return Err(format!(
                "\"{account}\" is no account: {ACCOUNT_DIGITS} digits are expected"
            ));
        }
        let of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        if host.is_empty() || !host.chars().all(of_host) {
            return Err(format!(
                "\"{host}\" is no host of a queue, such as sqs.eu-west-1.amazonaws.com"
            ));
        }
        Ok(Self { host: host.to_owned(), account: account.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_its_url_without_the_scheme() {
        for (text, url, arn) in [
            (
                "sqs.eu-west-1.amazonaws.com/123456789012/lost",
                "https://sqs.eu-west-1.amazonaws.com/123456789012/lost",
                Some("arn:aws:sqs:eu-west-1:123456789012:lost"),
            ),
            (
                "sqs.cn-north-1.amazonaws.com.cn/123456789012/lost",
                "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/lost",
                Some("arn:aws-cn:sqs:cn-north-1:123456789012:lost"),
            ),
            ("127.0.0.1:4566/000000000000/lost", "http://127.0.0.1:4566/000000000000/lost", None),
        ] {
            let queue: SinkQueue = text.parse().unwrap();
            assert_eq!(
                (queue.url().as_str(), queue.arn().as_deref(), queue.to_string().as_str()),
                (url, arn, text)
            );
        }
    }

    #[test]
    fn what_is_no_queue_is_told_by_its_part() {
        for (text, part) in [
            ("", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/lost", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/lost/more", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/lost.fifo", "FIFO"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/", "queue's name"),
            ("sqs.eu-west-1.amazonaws.com/12345/lost", "12 digits"),
            ("/123456789012/lost", "host"),
            ("u:p@sqs.eu-west-1.amazonaws.com/123456789012/lost", "host"),
        ] {
            let error = text.parse::<SinkQueue>().expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
