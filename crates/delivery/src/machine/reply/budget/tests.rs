use std::collections::VecDeque;

use crate::delivery::outcome::{Content, Exchange, TransportResult};
use crate::delivery::reason::Reason;
use crate::delivery::{DeadLetter, Delivery, Origin};
use crate::event::{Event, Input};
use crate::machine::follow_up::FollowUp;
use crate::machine::forward::forward;
use crate::machine::forward::tests::deliveries;
use crate::machine::reply::follow_ups;
use crate::machine::step::End;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::name::{ALL_NAMES, TopicName};
use crate::subscription::profile::Dialect;
use crate::subscription::topic_address::address_of;
use crate::subscription::{ReplyTo, Subscription};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

/// A broker with this many triggers, which all take all events.
fn broker(triggers: usize, max_replies: Option<u32>) -> Catalogue {
    let name = TopicName { namespace: "n".to_owned(), topic: "b".to_owned() };
    let mut catalogue = Catalogue::default();
    if let Some(max_replies) = max_replies {
        catalogue.add_topic(Topic { max_replies, ..Topic::new(name.clone()) });
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

/// What follows if everybody always answers: all deliveries, and the dead letters.
fn all(catalogue: &Catalogue) -> (Vec<Delivery>, Vec<DeadLetter>) {
    let mut next: VecDeque<_> = published(catalogue).into();
    let (mut delivered, mut letters) = (Vec::new(), Vec::new());
    while let Some(delivery) = next.pop_front() {
        let of = catalogue.subscription(&delivery.subscription).unwrap();
        let follow_ups = match of.destination.topic() {
            Some(to) => match forward(&delivery, of, &to, catalogue, 7) {
                Ok((publication, body)) => {
                    next.extend(deliveries(&publication, &body, catalogue));
                    Vec::new()
                }
                Err(End::DeadLetter(letter)) => vec![FollowUp::DeadLetter(letter)],
                Err(end) => panic!("{end:?}"),
            },
            None => follow_ups(&delivery, of, &answer(), catalogue, 7),
        };
        for follow_up in follow_ups {
            match follow_up {
                FollowUp::Deliver(delivery) => next.push_back(*delivery),
                FollowUp::DeadLetter(letter) => letters.push(*letter),
                FollowUp::Drop(letter) => panic!("{letter:?}"),
            }
        }
        delivered.push(delivery);
    }
    (delivered, letters)
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
    let left = replies.iter().map(|follow_up| match follow_up {
        FollowUp::Deliver(delivery) => delivery.replies_left,
        FollowUp::DeadLetter(_) | FollowUp::Drop(_) => panic!("{follow_up:?}"),
    });
    assert_eq!(left.collect::<Vec<_>>(), [Some(32), Some(32)], "all 64 for the one answer");
}

#[test]
fn among_many_that_could_answer_nobody_is_left_without_a_share() {
    let first_left = |max_replies| {
        let catalogue = broker(1_000, Some(max_replies));
        let first = &published(&catalogue)[0];
        let of = catalogue.subscription(&first.subscription).unwrap();
        let replies = follow_ups(first, of, &answer(), &catalogue, 7);
        let FollowUp::Deliver(reply) = &replies[0] else { panic!("{:?}", replies[0]) };
        reply.replies_left
    };
    assert_eq!([0, 1, 64].map(first_left), [Some(0), Some(1), Some(1)]);
}

#[test]
fn a_reply_of_an_older_version_has_all_of_them_left() {
    let catalogue = broker(2, None);
    let of = catalogue.subscriptions().next().unwrap();
    let older = Delivery { hops: 3, ..published(&catalogue).remove(0) };
    let replies = follow_ups(&older, of, &answer(), &catalogue, 7);
    let [FollowUp::Deliver(one), FollowUp::Deliver(other)] = &replies[..] else {
        panic!("{replies:?}")
    };
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
