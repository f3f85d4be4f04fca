//! Any response as a reply.
//!
//! - A reply is delivered completely or becomes a dead letter, never in part.
//! - The same response gives the same ids.
//! - Replies to replies never exceed the limit of the topic, however the destinations respond.
//!
//! The input has three lines and the body of the response. The lines are the options, the content
//! type, and the attributes (`name=value`, separated by spaces).

#![no_main]

use std::sync::Arc;

use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::delivery::reason::Reason;
use delivery::delivery::{Delivery, DeliveryTarget, Origin};
use delivery::event::{Element, Input, binary, decode_one, envelope, is_queue_character};
use delivery::machine::follow_up::FollowUp;
use delivery::machine::reply::{HOPS_MAX, follow_ups};
use delivery::request::REPLY_MAX_BYTES;
use delivery::subscription::catalogue::{Catalogue, Topic};
use delivery::subscription::name::TopicName;
use delivery::subscription::profile::Dialect;
use delivery::subscription::topic_settings::TopicSettings;
use delivery::subscription::{ReplyTo, Subscription};
use delivery::wire::read_publication;
use lastmile_fuzz::NOW_MS;
use libfuzzer_sys::fuzz_target;

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(4, |byte| *byte == b'\n');
    let mut next = || parts.next().unwrap_or_default();
    let (options, content_type, attributes, body) = (next(), next(), next(), next());
    let option = |index: usize| u32::from(options.get(index).copied().unwrap_or_default());
    let exchange = exchange(option(0), content_type, attributes, body, option(1) % 8 != 0);
    let topic_of =
        |name: u32| TopicName { namespace: "n".to_owned(), topic: format!("t{}", name % 3) };
    let most = option(2) % 65;
    let catalogue = catalogue(most, option(3) % 5 + 1, topic_of, options);
    let Element::Event(event) = decode_one(&EVENT.into(), Input::Auto) else { return };
    let origin = Origin { message: "m".to_owned(), index: 0 };
    let first: Vec<Delivery> = catalogue
        .matching(&topic_of(0), &Default::default(), &event, NOW_MS)
        .map(|to| Delivery::new(event.clone(), to.name.clone(), origin.clone(), NOW_MS))
        .collect();
    follow(first, &catalogue, &exchange, most);
});

fn exchange(
    option: u32,
    content_type: &[u8],
    attributes: &[u8],
    body: &[u8],
    whole: bool,
) -> Exchange {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    let content = Content {
        content_type: (!content_type.is_empty()).then(|| text(content_type)),
        attributes: text(attributes).split(' ').filter_map(pair).collect(),
        whole: whole && body.len() <= REPLY_MAX_BYTES,
        ..Content::default()
    };
    let status = if option < 128 { 200 } else { 200 + u16::try_from(option % 128).unwrap_or(0) };
    let result = TransportResult::Answered { status, retry_after: None, body: body.to_vec() };
    Exchange { content: Some(content), ..Exchange::new(result, NOW_MS, 20) }
}

/// Three topics with some subscriptions each. The options select the topic or address for the
/// replies of each subscription.
fn catalogue(
    most: u32,
    subscriptions: u32,
    topic_of: impl Fn(u32) -> TopicName,
    options: &[u8],
) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for topic in 0..3 {
        let settings = TopicSettings { max_replies: most, ..TopicSettings::default() };
        catalogue.add_topic(Topic { name: topic_of(topic), settings });
        for place in 0..subscriptions {
            let name = format!("{}/s{place}", topic_of(topic)).parse().expect("a name");
            let url = "https://example.com/".parse().expect("a URL");
            let index = (topic * subscriptions + place) as usize;
            let reply = match options.get(4 + index % 8).copied().unwrap_or(b'1') % 5 {
                0 => None,
                1 => Some(ReplyTo::Address("https://reply.example.com/".parse().expect("a URL"))),
                topic => Some(ReplyTo::Topic(topic_of(u32::from(topic)))),
            };
            let subscription = Subscription::new(name, Dialect::Knative, url);
            catalogue.add_subscription(Subscription { reply, ..subscription });
        }
    }
    catalogue
}

/// Gives every delivery the same response until no reply follows.
fn follow(first: Vec<Delivery>, catalogue: &Catalogue, exchange: &Exchange, most: u32) {
    // With a limit above zero, each first delivery has a reply budget of at least one.
    let most = most.max(most.min(1) * u32::try_from(first.len()).unwrap_or(u32::MAX));
    let (mut waiting, mut of_later_generations) = (first, 0_u32);
    while let Some(delivery) = waiting.pop() {
        let Some(subscription) = catalogue.subscription(&delivery.subscription) else { return };
        let followed = follow_ups(&delivery, subscription, exchange, catalogue, NOW_MS);
        let again = follow_ups(&delivery, subscription, exchange, catalogue, NOW_MS);
        assert_eq!(followed, again, "another answer for the same");
        check(&delivery, &followed, catalogue, exchange);
        for next in followed.iter().flat_map(|next| deliveries(next, catalogue)) {
            assert!(next.hops == delivery.hops + 1 && next.hops <= HOPS_MAX);
            of_later_generations += u32::from(next.hops > 1);
            waiting.push(next);
        }
        assert!(of_later_generations <= most, "{of_later_generations} where {most} are allowed");
    }
}

/// Returns the deliveries of a reply: one to an address, or one per matching subscription of a
/// topic.
fn deliveries(next: &FollowUp, catalogue: &Catalogue) -> Vec<Delivery> {
    match next {
        FollowUp::Deliver(reply) => vec![(**reply).clone()],
        FollowUp::Publish(message) => {
            let publication = read_publication(message.attribute.value()).expect("it was written");
            let part = publication.part.as_ref().expect("it says how it is read");
            let elements = envelope::decode(&message.body, part.input);
            let [Element::Event(event)] = &elements[..] else { panic!("no event: {elements:?}") };
            let topic = message.topic.as_ref().expect("it has a topic");
            let matching: Vec<_> = catalogue.matching(topic, &part.names, event, NOW_MS).collect();
            publication.deliveries(part.first, event, &matching).collect()
        }
        FollowUp::DeadLetter(_) | FollowUp::Drop(_) => Vec::new(),
    }
}

fn check(answered: &Delivery, followed: &[FollowUp], catalogue: &Catalogue, exchange: &Exchange) {
    let (Some((_, body)), Some(content)) = (exchange.answer(), &exchange.content) else { return };
    let mut ids: Vec<_> = Vec::new();
    for next in followed {
        match next {
            FollowUp::Deliver(_) | FollowUp::Publish(_) => {
                assert!(content.whole, "a part of a reply is delivered");
                assert!(answered.target == DeliveryTarget::Destination);
                for reply in deliveries(next, catalogue) {
                    let text = reply.event.text();
                    assert_eq!(whole(&reply, content, body), Some(true), "{text:?}");
                    ids.push(reply.id);
                }
            }
            FollowUp::DeadLetter(letter) | FollowUp::Drop(letter) => {
                let reason = letter.reason.known();
                assert!(
                    [
                        Reason::ReplyLoop,
                        Reason::MalformedEvent,
                        Reason::EventTooLargeToResend,
                        Reason::TopicNotFound,
                    ]
                    .map(Some)
                    .contains(&reason)
                );
                assert!(letter.detail.is_some());
                assert!(letter.delivery.event.text().chars().all(is_queue_character));
                ids.push(letter.delivery.id);
            }
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "two follow-ups with one id");
}

/// Returns true if the reply has all content of the response; `None` if the response is no event.
fn whole(reply: &Delivery, content: &Content, body: &[u8]) -> Option<bool> {
    let structured = content.content_type.as_deref().is_some_and(|content_type| {
        let media_type = content_type.split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("application/cloudevents+json")
    });
    let text: Arc<str> = if structured {
        std::str::from_utf8(body).ok()?.into()
    } else {
        let content_type = content.content_type.as_deref();
        binary::structured(&content.attributes, content_type, body).ok()?.into()
    };
    let escaped = text.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff");
    let is_queueable = reply.event.text().chars().all(is_queue_character);
    Some(is_queueable && **reply.event.text() == *escaped)
}
