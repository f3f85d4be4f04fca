use crate::subscription::topic_settings::TopicSettings;
use std::collections::{BTreeMap, VecDeque};

use crate::delivery::outcome::{Content, Exchange, TransportResult};
use crate::delivery::reason::Reason;
use crate::delivery::{DeadLetter, Delivery, Origin};
use crate::event::{Event, Input};
use crate::machine::follow_up::{FollowUp, send_to_sink};
use crate::machine::forward::forward;
use crate::machine::forward::tests::deliveries;
use crate::machine::reply::{HOPS_MAX, follow_ups};
use crate::machine::step::{End, end_without_success};
use crate::subscription::catalogue::{Catalogue, Found, Settings, Topic};
use crate::subscription::name::{ALL_NAMES, TopicName};
use crate::subscription::profile::Dialect;
use crate::subscription::sink::Sink;
use crate::subscription::topic_address::address_of;
use crate::subscription::{ReplyTo, Subscription};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

fn published(catalogue: &Catalogue) -> Vec<Delivery> {
    let event = Event::recall(&EVENT.into(), Input::Auto);
    let topic = TopicName { namespace: "n".to_owned(), topic: "b".to_owned() };
    let matching = catalogue.matching(&topic, &ALL_NAMES, &event, 0);
    let origin = Origin { message: "m".to_owned(), index: 0 };
    let delivery =
        |to: &Subscription| Delivery::new(event.clone(), to.name.clone(), origin.clone(), 0);
    matching.map(|subscription| delivery(subscription)).collect()
}

fn answer() -> Exchange {
    let content_type = Some("application/cloudevents+json".to_owned());
    let content = Content { content_type, whole: true, ..Content::default() };
    let body = EVENT.as_bytes().to_vec();
    let result = TransportResult::Answered { status: 200, retry_after: None, body };
    Exchange { content: Some(content), ..Exchange::new(result, 0, 1) }
}

/// Prefixes of subscription names. They select the subscriber's response to every request.
const ANSWERS: &str = "answers";
const ANSWERS_TOO_MUCH: &str = "big";
const REFUSES: &str = "refuses";
/// The destination of this subscription is a topic.
const GOES_ON: &str = "on";

/// Parses a subscription from its name, its reply target and its sink:
///
/// - `n/a/big0 n/a n/d` is a subscription of `n/a` that sends replies to `n/a` and dead letters to
///   `n/d`.
/// - `n/a/on0 n/b n/d` is a subscription of `n/a` that forwards its events to `n/b`.
///
/// A reply target may also be a URL. `-` means none.
fn subscription(text: &str) -> Subscription {
    let words: Vec<_> = text.split(' ').collect();
    let [name, reply_to, sink] = words[..] else { panic!("{text}") };
    let to: Option<TopicName> = reply_to.parse().ok();
    let goes_on = to.as_ref().filter(|_| name.contains(GOES_ON));
    let url = goes_on.map_or_else(|| "https://example.com/".parse().unwrap(), address_of);
    let reply = to.clone().filter(|_| goes_on.is_none()).map(ReplyTo::Topic);
    let reply = reply_to.parse().map_or(reply, |address| Some(ReplyTo::Address(address)));
    let mut subscription = Subscription::new(name.parse().unwrap(), Dialect::Knative, url);
    subscription.dead_letter.sink = sink.parse().map_or(Sink::DefaultContainer, Sink::Topic);
    Subscription { reply, ..subscription }
}

/// Parses subscriptions with their counts: `3 n/b/answers# n/b -` is three subscriptions, numbered
/// in place of `#`. Without `max_replies`, the topics have no settings.
fn catalogue_of(max_replies: Option<u32>, subscriptions: &[&str]) -> Catalogue {
    let all = subscriptions.iter().flat_map(|text| {
        let (count, text) = text.split_once(' ').unwrap();
        let count: usize = count.parse().unwrap();
        (0..count).map(|number| subscription(&text.replace('#', &number.to_string())))
    });
    let all: Vec<_> = all.collect();
    let mut catalogue = Catalogue::default();
    if let Some(max_replies) = max_replies {
        for subscription in &all {
            let settings = TopicSettings { max_replies, ..TopicSettings::default() };
            catalogue.add_topic(Topic { settings, ..Topic::new(subscription.name.topic.clone()) });
        }
    }
    all.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    catalogue
}

/// Follows an event until nothing follows, with the same response to each request of a
/// subscription. Returns all deliveries and the dead letters.
fn all(catalogue: &Catalogue) -> (Vec<Delivery>, Vec<DeadLetter>) {
    let mut next: VecDeque<_> = published(catalogue).into();
    let (mut delivered, mut letters) = (Vec::new(), Vec::new());
    while let Some(delivery) = next.pop_front() {
        // In each topic of a chain, a response may be too large, which adds a hop.
        assert!(delivery.hops <= HOPS_MAX + 3, "there is no end");
        for follow_up in next_of(&delivery, catalogue) {
            match follow_up {
                FollowUp::Deliver(delivery) => next.push_back(*delivery),
                FollowUp::Publish(message) => next.extend(deliveries(&message, catalogue)),
                FollowUp::DeadLetter(letter) => letters.push(*letter),
                FollowUp::Drop(letter) => panic!("{letter:?}"),
            }
        }
        delivered.push(delivery);
        assert!(delivered.len() + next.len() < 12_000, "there are too many");
    }
    (delivered, letters)
}

fn next_of(delivery: &Delivery, catalogue: &Catalogue) -> Vec<FollowUp> {
    let subscription = catalogue.subscription(&delivery.subscription).unwrap();
    let end = if let Some(to) = subscription.destination.topic() {
        match forward(delivery, subscription, &to, catalogue, 7) {
            Ok(message) => return vec![FollowUp::Publish(Box::new(message))],
            Err(end) => end,
        }
    } else if subscription.name.name.starts_with(REFUSES) {
        end_without_success(delivery, subscription, Reason::UndeliverableDueToHttpBadRequest, 7)
    } else {
        let mut answer = answer();
        let content = answer.content.as_mut().unwrap();
        content.whole = !subscription.name.name.starts_with(ANSWERS_TOO_MUCH);
        return follow_ups(delivery, subscription, &answer, catalogue, 7);
    };
    match end {
        End::DeadLetter(letter) => vec![FollowUp::DeadLetter(letter)],
        End::ToSink(letter) => send_to_sink(*letter, subscription, catalogue, 7),
        End::Done | End::Retry { .. } | End::Drop(_) => panic!("{end:?}"),
    }
}

/// Returns each value with its count: `n/b 4, n/c 2`.
fn counted(all: impl Iterator<Item = String>) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    all.for_each(|value| *counts.entry(value).or_default() += 1);
    let shown: Vec<_> = counts.iter().map(|(value, count)| format!("{value} {count}")).collect();
    shown.join(", ")
}

#[test]
fn the_deliveries_that_follow_from_an_event_are_bounded() {
    // Each case has the reply limit, the subscriptions, the deliveries per topic, and the dead
    // letters per reason.
    let cases: [(Option<u32>, &[&str], &str, &str); 11] = [
        // A single chain ends at its maximum length.
        (None, &["1 n/b/answers# n/b -"], "n/b 11", "ReplyLoop 1"),
        // The first generation has 4 deliveries, and at most 64 follow. Without a limit there would
        // be 4,094.
        (None, &["2 n/b/answers# n/b -"], "n/b 62", "ReplyLoop 32"),
        (Some(0), &["2 n/b/answers# n/b -"], "n/b 6", "ReplyLoop 4"),
        (Some(1000), &["2 n/b/answers# n/b -"], "n/b 990", "ReplyLoop 496"),
        // Without a limit there would be more than a quarter of a million.
        (None, &["3 n/b/answers# n/b -"], "n/b 39", "ReplyLoop 27"),
        (None, &["10 n/b/answers# n/b -"], "n/b 110", "ReplyLoop 100"),
        (None, &["100 n/b/answers# n/b -"], "n/b 10100", "ReplyLoop 10000"),
        // Events forwarded to the other topic cause as many deliveries as two triggers that always
        // reply.
        (None, &["2 n/a/on# n/b -", "2 n/b/on# n/a -"], "n/a 20, n/b 42", "ReplyLoop 32"),
        // The response to the event is the first reply. Responses to its dead letter would be
        // replies to a reply.
        (Some(0), &["1 n/b/big# n/b n/d", "3 n/d/answers# n/b -"], "n/b 1, n/d 3", "ReplyLoop 3"),
        (
            Some(64),
            &["1 n/b/big# n/b n/d", "1 n/d/big# n/d n/b"],
            "n/b 1, n/d 1",
            "EventTooLargeToResend 1",
        ),
        // Responses to the dead letters of the event are free: 8 × 8. Replies to their dead letters
        // would need 8 each, which exceeds every share.
        (
            Some(64),
            &["8 n/b/refuses# - n/d", "1 n/d/answers# n/b -"],
            "n/b 72, n/d 72",
            "ReplyLoop 64",
        ),
    ];
    let found = cases.map(|(max_replies, subscriptions, ..)| {
        let (delivered, letters) = all(&catalogue_of(max_replies, subscriptions));
        let deliveries =
            counted(delivered.iter().map(|delivery| delivery.subscription.topic.to_string()));
        (deliveries, counted(letters.iter().map(|letter| letter.reason.to_string())))
    });
    assert_eq!(found, cases.map(|(_, _, deliveries, letters)| (deliveries.into(), letters.into())));
}

#[test]
fn a_branch_that_is_exhausted_leaves_one_dead_letter_that_says_how_many() {
    let catalogue = catalogue_of(Some(2), &["3 n/b/answers# n/b -"]);
    let (_, letters) = all(&catalogue);
    // The event's three replies cause nine deliveries. A reply of each would cause three more,
    // which exceeds its share.
    assert_eq!(letters.len(), 9);
    for letter in letters {
        assert_eq!(letter.reason.known(), Some(Reason::ReplyLoop));
        let detail = letter.detail.unwrap_or_default();
        assert!(
            detail.contains("this reply to topic n/b would cause 3 more deliveries"),
            "{detail}"
        );
    }
}

#[test]
fn the_budget_of_an_event_is_shared_by_those_that_can_answer() {
    // The remaining reply budget of the first reply's deliveries.
    for (max_replies, subscriptions, hops, left) in [
        (Some(64), &["1 n/b/answers# n/b -", "1 n/b/silent# - -"][..], 0, &[32, 32][..]),
        // Even among many possible repliers, each gets a share of one, unless the limit is 0.
        (Some(0), &["1000 n/b/answers# n/b -"], 0, &[0]),
        (Some(1), &["1000 n/b/answers# n/b -"], 0, &[1]),
        (Some(64), &["1000 n/b/answers# n/b -"], 0, &[1]),
        // A reply of an older version has the whole budget.
        (None, &["2 n/b/answers# n/b -"], 3, &[31, 31]),
    ] {
        let catalogue = catalogue_of(max_replies, subscriptions);
        let answered = Delivery { hops, ..published(&catalogue).remove(0) };
        let subscription = catalogue.subscription(&answered.subscription).unwrap();
        let replies = follow_ups(&answered, subscription, &answer(), &catalogue, 7);
        let [FollowUp::Publish(message)] = &replies[..] else { panic!("{replies:?}") };
        let next = deliveries(message, &catalogue).into_iter();
        let found: Vec<_> = next.filter_map(|next| next.replies_left).take(left.len()).collect();
        assert_eq!(found, left, "{subscriptions:?}");
    }
    // The remaining reply budget of a response before it is published.
    for (subscriptions, left) in [
        (&["1 n/b/answers# n/b -", "1 n/b/address# https://example.com/ -"][..], 64 / 2),
        // Subscriptions take no share if nobody replies to their dead letters.
        (&["2 n/b/answers# n/b -", "40 n/b/refuses# - n/d", "1 n/d/pager# - -"], 64 / 2),
        (&["2 n/b/answers# n/b -", "40 n/b/refuses# - n/d", "1 n/d/answers# n/b -"], 64 / 42),
    ] {
        let catalogue = catalogue_of(Some(64), subscriptions);
        let published = published(&catalogue);
        let answers =
            published.iter().find(|delivery| delivery.subscription.name.starts_with(ANSWERS));
        assert_eq!(super::left_before(answers.unwrap(), &catalogue, 0), left, "{subscriptions:?}");
    }
}

#[test]
fn answers_that_are_too_large_do_not_go_round_from_sink_to_sink() {
    let (_, letters) = all(&catalogue_of(Some(64), &["1 n/b/big# n/b n/d", "1 n/d/big# n/d n/b"]));
    let said = letters[0].sink_error.as_deref();
    assert_eq!(said, Some("topic n/b is the sink, but the dead letter came from it"));
}

#[test]
fn an_event_that_goes_on_counts_if_answers_or_dead_letters_lead_it_back() {
    for from in ["8 n/b/answers# n/d -", "8 n/b/refuses# - n/d"] {
        let (delivered, letters) = all(&catalogue_of(Some(64), &[from, "1 n/d/on# n/b -"]));
        let requests =
            delivered.iter().filter(|delivery| delivery.subscription.topic.topic == "b").count();
        assert!(requests <= 8 + 64, "{from}: {requests} requests for one event");
        assert!(letters.iter().all(|letter| letter.reason.known() == Some(Reason::ReplyLoop)));
    }
}

#[test]
fn a_chain_of_sinks_shares_the_budget_of_its_event() {
    let chain = ["4 n/b/refuses# - n/c", "4 n/c/refuses# - n/d", "4 n/d/answers# n/d -"];
    let catalogue = catalogue_of(Some(64), &chain);
    let (delivered, _) = all(&catalogue);
    let first = delivered.iter().filter(|delivery| delivery.hops == 0);
    let left: Vec<_> = first.filter(|delivery| delivery.subscription.topic.topic == "d").collect();
    assert_eq!(left.len(), 4 * 4 * 4);
    assert!(left.iter().all(|delivery| delivery.replies_left == Some(1)), "{left:?}");
    // Each delivery has one free reply. No further reply fits into a share of one, because it would
    // cause four deliveries.
    assert!(delivered.iter().all(|delivery| delivery.hops <= 1));
}

/// Adds a topic to the catalogue, as a read on demand does.
fn add_found(read: &mut Catalogue, all: &Catalogue, name: &str) {
    let name: TopicName = name.parse().unwrap();
    let topic = all.topic_subscriptions(&name).expect("a topic").clone();
    read.add_found(name, topic);
}

/// The topic of the dead letters has not been read, or does not exist.
#[test]
fn whose_dead_letters_nobody_can_follow_takes_a_share() {
    let all = catalogue_of(Some(64), &["3 n/b/refuses# - n/d", "1 n/b/answers# n/b -"]);
    let mut read = Catalogue::by_need(Settings::default());
    add_found(&mut read, &all, "n/b");
    let share = |catalogue: &Catalogue| super::left_before(&published(&all)[0], catalogue, 0);
    assert_eq!(share(&read), 64 / 4);
    read.add_missing("n/d".parse().unwrap(), Found::Removed);
    assert_eq!(share(&read), 64);
}

#[test]
fn the_topics_that_an_event_may_come_to_are_to_be_read_before_it_goes_on_again() {
    let chain = ["1 n/b/on# n/c -", "1 n/c/on# n/d -", "1 n/d/a# - n/e", "1 n/e/a# - -"];
    let all = catalogue_of(Some(64), &chain);
    let mut read = Catalogue::by_need(Settings::default());
    let on = all
        .subscriptions()
        .find(|subscription| subscription.name.topic.topic == "b")
        .unwrap()
        .clone();
    let first = published(&all).remove(0);
    let last = Delivery { hops: 1, replies_left: Some(0), ..first.clone() };
    assert!(super::unread_topics(&first, &on, &read).is_empty(), "nobody asks yet");
    for unread in ["n/c", "n/d", "n/e"] {
        let name: TopicName = unread.parse().unwrap();
        assert_eq!(super::unread_topics(&last, &on, &read), std::slice::from_ref(&name));
        add_found(&mut read, &all, unread);
    }
    assert!(super::unread_topics(&last, &on, &read).is_empty());
}

#[test]
fn an_event_that_goes_on_counts_if_nobody_knows_where_that_leads() {
    let all = catalogue_of(Some(64), &["1 n/b/on# n/c -", "2 n/c/on# n/d -"]);
    let mut read = Catalogue::by_need(Settings::default());
    for name in ["n/b", "n/c"] {
        add_found(&mut read, &all, name);
    }
    let goes_on = |replies_left, catalogue: &Catalogue| {
        let last =
            Delivery { hops: 1, replies_left: Some(replies_left), ..published(&all).remove(0) };
        !next_of(&last, catalogue).iter().any(|next| matches!(next, FollowUp::DeadLetter(_)))
    };
    assert_eq!([1, 2].map(|left| goes_on(left, &read)), [false, true]);
    assert_eq!([1, 2].map(|left| goes_on(left, &all)), [true, true]);
    // A topic that does not exist leads nowhere.
    read.add_missing("n/d".parse().unwrap(), Found::Removed);
    assert!(goes_on(1, &read));
}

#[test]
fn however_three_topics_lead_to_each_other_replies_to_replies_are_bounded() {
    let topics = ["n/b", "n/c", "n/d"];
    let kinds: Vec<String> = topics
        .iter()
        .flat_map(|to| {
            let without_sink = |does: &str| format!("{does}# {to} -");
            let to_sink = |does: &str| format!("{does}# n/b {to}");
            [
                without_sink(ANSWERS),
                to_sink(ANSWERS_TOO_MUCH),
                to_sink(REFUSES),
                without_sink(GOES_ON),
            ]
        })
        .collect();
    for (b, c, d) in triples(&kinds) {
        let text = |(topic, does): (&&str, &&String)| format!("2 {topic}/{does}");
        let subscriptions: Vec<_> = topics.iter().zip(&[b, c, d]).map(text).collect();
        let subscriptions: Vec<&str> = subscriptions.iter().map(String::as_str).collect();
        let catalogue = catalogue_of(Some(5), &subscriptions);
        let (delivered, _) = all(&catalogue);
        assert!(delivered.len() < 150, "{} for {subscriptions:?}", delivered.len());
        let answers = |delivery: &&Delivery| delivery.subscription.name.starts_with(ANSWERS);
        let later = delivered.iter().filter(|delivery| delivery.hops > 0).filter(answers);
        let later = later.flat_map(|delivery| next_of(delivery, &catalogue));
        let later = later.filter(|next| matches!(next, FollowUp::Deliver(_))).count();
        assert!(later <= 5, "{later} replies to replies for {subscriptions:?}");
    }
}

fn triples(kinds: &[String]) -> impl Iterator<Item = (&String, &String, &String)> {
    kinds
        .iter()
        .flat_map(move |a| kinds.iter().flat_map(move |b| kinds.iter().map(move |c| (a, b, c))))
}
