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

/// A broker with this many triggers, which all take all events.
fn broker(triggers: usize, max_replies: Option<u32>) -> Catalogue {
    let name = TopicName { namespace: "n".to_owned(), topic: "b".to_owned() };
    let mut catalogue = Catalogue::default();
    if let Some(max_replies) = max_replies {
        catalogue.add_topic(Topic {
            settings: TopicSettings { max_replies, ..TopicSettings::default() },
            ..Topic::new(name.clone())
        });
    }
    for trigger in 0..triggers {
        let url = "https://example.com/".parse().unwrap();
        let trigger = format!("n/b/t{trigger}").parse().unwrap();
        let subscription = Subscription::new(trigger, Dialect::Knative, url);
        let reply = Some(ReplyTo::Topic(name.clone()));
        catalogue.add_subscription(Subscription { reply, ..subscription });
    }
    catalogue
}

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

/// What a subscriber does with every request; its subscription's name begins with it.
const ANSWERS: &str = "answers";
const ANSWERS_TOO_MUCH: &str = "big";
const REFUSES: &str = "refuses";
/// Its destination is a topic.
const GOES_ON: &str = "on";

/// `n/a/big0 n/a n/d` is a subscription of `n/a`, whose answers go to `n/a` and whose dead letters to `n/d`;
/// `n/a/on0 n/b n/d` one whose events go on to `n/b`; `-` is neither.
fn subscription(text: &str) -> Subscription {
    let words: Vec<_> = text.split(' ').collect();
    let [name, to, sink] = words[..] else { panic!("{text}") };
    let to: Option<TopicName> = to.parse().ok();
    let goes_on = to.as_ref().filter(|_| name.contains(GOES_ON));
    let url = goes_on.map_or_else(|| "https://example.com/".parse().unwrap(), address_of);
    let reply = to.clone().filter(|_| goes_on.is_none()).map(ReplyTo::Topic);
    let mut subscription = Subscription::new(name.parse().unwrap(), Dialect::Knative, url);
    subscription.dead_letter.sink = sink.parse().map_or(Sink::DefaultContainer, Sink::Topic);
    Subscription { reply, ..subscription }
}

fn catalogue_of(max_replies: u32, subscriptions: &[String]) -> Catalogue {
    let subscriptions: Vec<_> = subscriptions.iter().map(|text| subscription(text)).collect();
    let mut catalogue = Catalogue::default();
    for of in &subscriptions {
        catalogue.add_topic(Topic {
            settings: TopicSettings { max_replies, ..TopicSettings::default() },
            ..Topic::new(of.name.topic.clone())
        });
    }
    subscriptions.into_iter().for_each(|of| catalogue.add_subscription(of));
    catalogue
}

/// What follows if everybody always does the same, by default answer: all deliveries, and the dead letters.
fn all(catalogue: &Catalogue) -> (Vec<Delivery>, Vec<DeadLetter>) {
    let mut next: VecDeque<_> = published(catalogue).into();
    let (mut delivered, mut letters) = (Vec::new(), Vec::new());
    while let Some(delivery) = next.pop_front() {
        // In each topic of a chain an answer may be too large, which counts besides.
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
    let of = catalogue.subscription(&delivery.subscription).unwrap();
    let end = if let Some(to) = of.destination.topic() {
        match forward(delivery, of, &to, catalogue, 7) {
            Ok(message) => return vec![FollowUp::Publish(Box::new(message))],
            Err(end) => end,
        }
    } else if of.name.name.starts_with(REFUSES) {
        end_without_success(delivery, of, Reason::UndeliverableDueToHttpBadRequest, 7)
    } else {
        let mut answer = answer();
        let content = answer.content.as_mut().unwrap();
        content.whole = !of.name.name.starts_with(ANSWERS_TOO_MUCH);
        return follow_ups(delivery, of, &answer, catalogue, 7);
    };
    match end {
        End::DeadLetter(letter) => vec![FollowUp::DeadLetter(letter)],
        End::ToSink(letter) => send_to_sink(*letter, of, catalogue, 7),
        End::Done | End::Retry { .. } | End::Drop(_) => panic!("{end:?}"),
    }
}

/// The deliveries of a reply that is published on a topic.
fn published_to(replies: &[FollowUp], catalogue: &Catalogue) -> Vec<Delivery> {
    let [FollowUp::Publish(message)] = replies else { panic!("{replies:?}") };
    deliveries(message, catalogue)
}

/// How many deliveries each topic gets.
fn requests(delivered: &[Delivery]) -> BTreeMap<String, usize> {
    let mut requests = BTreeMap::new();
    for delivery in delivered {
        *requests.entry(delivery.subscription.topic.to_string()).or_default() += 1;
    }
    requests
}

#[test]
fn whoever_always_answers_makes_a_bounded_number_of_requests() {
    // How many triggers, what their broker says, the deliveries, the dead letters.
    let cases = [
        // A chain alone ends by its length.
        (1, None, 1 + 10, 1),
        // 4 of the first generation, and at most 64 more; without a bound they were 4,094.
        (2, None, 2 + 4 + 56, 32),
        (2, Some(0), 2 + 4, 4),
        (2, Some(1000), 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 480, 496),
        // Without a bound more than a quarter of a million.
        (3, None, 3 + 9 + 27, 27),
        (10, None, 10 + 100, 100),
        (100, None, 100 + 10_000, 10_000),
    ];
    for (triggers, max_replies, deliveries, letters) in cases {
        let catalogue = broker(triggers, max_replies);
        let (delivered, dead) = all(&catalogue);
        assert_eq!((delivered.len(), dead.len()), (deliveries, letters), "{triggers} triggers");
        let later = delivered.iter().filter(|delivery| delivery.hops > 1).count();
        let bound = max_replies.unwrap_or(64) as usize;
        assert!(later <= bound, "{later} deliveries where {bound} are allowed");
    }
}

#[test]
fn a_branch_that_is_exhausted_leaves_one_dead_letter_that_says_how_many() {
    let catalogue = broker(3, Some(2));
    let (_, letters) = all(&catalogue);
    // Nine deliveries answer the event's three; none has a share of three, to which it would lead.
    assert_eq!(letters.len(), 9);
    for letter in letters {
        assert_eq!(letter.reason.known(), Some(Reason::ReplyLoop));
        let detail = letter.detail.unwrap_or_default();
        assert!(
            detail.contains("this one to topic n/b would lead to 3 more deliveries"),
            "{detail}"
        );
    }
}

#[test]
fn subscriptions_that_cannot_answer_take_no_share() {
    let mut catalogue = broker(1, None);
    let silent = Subscription::new(
        "n/b/silent".parse().unwrap(),
        Dialect::Knative,
        "https://example.com/".parse().unwrap(),
    );
    catalogue.add_subscription(silent);
    let first = &published(&catalogue)[1];
    assert_eq!(first.subscription.name, "t0");
    let of = catalogue.subscription(&first.subscription).unwrap();
    let replies = follow_ups(first, of, &answer(), &catalogue, 7);
    let left = published_to(&replies, &catalogue).into_iter().map(|next| next.replies_left);
    assert_eq!(left.collect::<Vec<_>>(), [Some(32), Some(32)], "all 64 for the one answer");
}

#[test]
fn among_many_that_could_answer_nobody_is_left_without_a_share() {
    let first_left = |max_replies| {
        let catalogue = broker(1_000, Some(max_replies));
        let first = &published(&catalogue)[0];
        let of = catalogue.subscription(&first.subscription).unwrap();
        let replies = follow_ups(first, of, &answer(), &catalogue, 7);
        published_to(&replies, &catalogue)[0].replies_left
    };
    assert_eq!([0, 1, 64].map(first_left), [Some(0), Some(1), Some(1)]);
}

#[test]
fn a_reply_of_an_older_version_has_all_of_them_left() {
    let catalogue = broker(2, None);
    let of = catalogue.subscriptions().next().unwrap();
    let older = Delivery { hops: 3, ..published(&catalogue).remove(0) };
    let replies = follow_ups(&older, of, &answer(), &catalogue, 7);
    let [one, other] = &published_to(&replies, &catalogue)[..] else { panic!("{replies:?}") };
    assert_eq!((one.replies_left, other.replies_left), (Some(31), Some(31)));
}

#[test]
fn topics_whose_events_go_on_to_each_other_make_a_bounded_number_of_deliveries() {
    let mut catalogue = Catalogue::default();
    for (name, to) in [("n/a/x", "n/b"), ("n/a/y", "n/b"), ("n/b/x", "n/a"), ("n/b/y", "n/a")] {
        let url = address_of(&to.parse().unwrap());
        catalogue.add_subscription(Subscription::new(name.parse().unwrap(), Dialect::Knative, url));
    }
    let (delivered, letters) = all(&catalogue);
    // As many as of two triggers that always answer.
    assert_eq!((delivered.len(), letters.len()), (2 + 4 + 56, 32));
    assert!(letters.iter().all(|letter| letter.reason.known() == Some(Reason::ReplyLoop)));
}

/// So many subscriptions that differ in a number.
fn times(number: usize, text: &str) -> Vec<String> {
    (0..number).map(|place| text.replace('#', &place.to_string())).collect()
}

#[test]
fn an_answer_that_is_too_large_does_not_begin_a_new_budget() {
    let large = times(1, "n/b/big# n/b n/d");
    let catalogue = catalogue_of(0, &[large, times(3, "n/d/answers# n/b -")].concat());
    let (delivered, letters) = all(&catalogue);
    // The answer to the event is the first reply. Those to its dead letter would be replies to a reply.
    assert_eq!(requests(&delivered), [("n/b".to_owned(), 1), ("n/d".to_owned(), 3)].into());
    assert_eq!(letters.len(), 3);
    assert!(letters.iter().all(|letter| letter.reason.known() == Some(Reason::ReplyLoop)));
}

#[test]
fn answers_that_are_too_large_do_not_go_round_from_sink_to_sink() {
    let catalogue =
        catalogue_of(64, &[times(1, "n/b/big# n/b n/d"), times(1, "n/d/big# n/d n/b")].concat());
    let (delivered, letters) = all(&catalogue);
    assert_eq!((delivered.len(), letters.len()), (2, 1));
    let said = letters[0].sink_error.clone().unwrap_or_default();
    assert_eq!(said, "topic n/b is where it came from");
}

#[test]
fn dead_letters_of_one_event_share_its_budget() {
    let refusing = times(8, "n/b/refuses# - n/d");
    let catalogue = catalogue_of(64, &[refusing, times(1, "n/d/answers# n/b -")].concat());
    let (delivered, letters) = all(&catalogue);
    // What answers the dead letters of the event is free: 8 × 8. To their dead letters none has a share of 8.
    let both = ["n/b", "n/d"].map(|topic| (topic.to_owned(), 8 + 64));
    assert_eq!((requests(&delivered), letters.len()), (both.into(), 64));
}

#[test]
fn a_chain_of_sinks_shares_the_budget_of_its_event() {
    let chain = [
        times(4, "n/b/refuses# - n/c"),
        times(4, "n/c/refuses# - n/d"),
        times(4, "n/d/answers# n/d -"),
    ];
    let catalogue = catalogue_of(64, &chain.concat());
    let (delivered, _) = all(&catalogue);
    let first = delivered.iter().filter(|delivery| delivery.hops == 0);
    let left: Vec<_> = first.filter(|of| of.subscription.topic.topic == "d").collect();
    assert_eq!(left.len(), 4 * 4 * 4);
    assert!(left.iter().all(|delivery| delivery.replies_left == Some(1)), "{left:?}");
    // Each has a free answer, to whose four deliveries nobody can answer with a share of one.
    assert!(delivered.iter().all(|delivery| delivery.hops <= 1));
}

#[test]
fn an_event_that_goes_on_counts_if_answers_or_dead_letters_lead_it_back() {
    for from in ["n/b/answers# n/d -", "n/b/refuses# - n/d"] {
        let catalogue = catalogue_of(64, &[times(8, from), times(1, "n/d/on# n/b -")].concat());
        let (delivered, letters) = all(&catalogue);
        let requests = requests(&delivered)["n/b"];
        assert!(requests <= 8 + 64, "{from}: {requests} requests for one event");
        assert!(letters.iter().all(|letter| letter.reason.known() == Some(Reason::ReplyLoop)));
    }
}

#[test]
fn who_only_has_dead_letters_that_nobody_answers_takes_no_share() {
    let of = |sink: &str| {
        let silent = times(40, "n/b/refuses# - n/d");
        catalogue_of(64, &[silent, times(2, "n/b/answers# n/b -"), times(1, sink)].concat())
    };
    let share = |catalogue: &Catalogue| {
        let published = published(catalogue);
        let answers = published.iter().find(|of| of.subscription.name.starts_with(ANSWERS));
        super::left_before(answers.unwrap(), catalogue, 0)
    };
    assert_eq!(share(&of("n/d/pager# - -")), 64 / 2);
    assert_eq!(share(&of("n/d/answers# n/b -")), 64 / 42);
}

#[test]
fn who_replies_to_an_address_takes_a_share() {
    let mut catalogue = broker(1, None);
    let mut of = subscription("n/b/address - -");
    of.reply = Some(ReplyTo::Address("https://example.com/".parse().unwrap()));
    catalogue.add_subscription(of);
    assert_eq!(super::left_before(&published(&catalogue)[0], &catalogue, 0), 64 / 2);
}

/// Reads a topic by need.
fn add_found(read: &mut Catalogue, all: &Catalogue, name: &str) {
    let name: TopicName = name.parse().unwrap();
    let topic = all.topic_subscriptions(&name).expect("a topic").clone();
    read.add_found(name, topic);
}

/// The topic of its dead letters is not read, or does not exist.
#[test]
fn whose_dead_letters_nobody_can_follow_takes_a_share() {
    let of = [times(3, "n/b/refuses# - n/d"), times(1, "n/b/answers# n/b -")].concat();
    let all = catalogue_of(64, &of);
    let mut read = Catalogue::by_need(Settings::default());
    add_found(&mut read, &all, "n/b");
    let share = |catalogue: &Catalogue| super::left_before(&published(&all)[0], catalogue, 0);
    assert_eq!(share(&read), 64 / 4);
    read.add_missing("n/d".parse().unwrap(), Found::Removed);
    assert_eq!(share(&read), 64);
}

#[test]
fn the_topics_that_an_event_may_come_to_are_to_be_read_before_it_goes_on_again() {
    let all = catalogue_of(
        64,
        &["n/b/on# n/c -", "n/c/on# n/d -", "n/d/a# - n/e", "n/e/a# - -"]
            .map(|of| times(1, of))
            .concat(),
    );
    let mut read = Catalogue::by_need(Settings::default());
    let on = all.subscriptions().find(|of| of.name.topic.topic == "b").unwrap().clone();
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
    let all = catalogue_of(64, &[times(1, "n/b/on# n/c -"), times(2, "n/c/on# n/d -")].concat());
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
    // One that does not exist leads nowhere.
    read.add_missing("n/d".parse().unwrap(), Found::Removed);
    assert!(goes_on(1, &read));
}

#[test]
fn however_three_topics_lead_to_each_other_replies_to_replies_are_bounded() {
    let topics = ["n/b", "n/c", "n/d"];
    let kinds: Vec<String> = topics
        .iter()
        .flat_map(|to| {
            let of = |does: &str| format!("{does}# {to} -");
            let to_sink = |does: &str| format!("{does}# n/b {to}");
            [of(ANSWERS), to_sink(ANSWERS_TOO_MUCH), to_sink(REFUSES), of(GOES_ON)]
        })
        .collect();
    for (b, c, d) in triples(&kinds) {
        let of = |(topic, does): (&&str, &&String)| times(2, &format!("{topic}/{does}"));
        let subscriptions: Vec<_> = topics.iter().zip(&[b, c, d]).flat_map(of).collect();
        let catalogue = catalogue_of(5, &subscriptions);
        let (delivered, _) = all(&catalogue);
        assert!(delivered.len() < 150, "{} for {subscriptions:?}", delivered.len());
        let answers = |of: &&Delivery| of.subscription.name.starts_with(ANSWERS);
        let later = delivered.iter().filter(|of| of.hops > 0).filter(answers);
        let later = later.flat_map(|of| next_of(of, &catalogue));
        let later = later.filter(|next| matches!(next, FollowUp::Deliver(_))).count();
        assert!(later <= 5, "{later} replies to replies for {subscriptions:?}");
    }
}

fn triples(of: &[String]) -> impl Iterator<Item = (&String, &String, &String)> {
    of.iter().flat_map(move |a| of.iter().flat_map(move |b| of.iter().map(move |c| (a, b, c))))
}
