//! Sinks, reply addresses and token servers are destinations of their own. Their failures affect no other destination.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::{Clock as _, QueueName, Record};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::{Concurrency, ReplyTo, Subscription};
use delivery::time::duration::MINUTE_MS;
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::reactions::{Reaction, answers, breaks_off_after, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use uuid::Uuid;

use super::sinks::{address, sink_delivery, with_sink};
use crate::examples::{catalogue_from, catalogue_of, container, delivery, events, retry_record};

/// The host of each part.
const DESTINATION: &str = "s0.example.com";
const SINK: &str = "sink.example.com";
const REPLIES: &str = "replies.example.com";
const SERVER: &str = "login.example.com";

/// The answer of the healthy destination, which takes two requests at once.
const TAKES_MS: u64 = 50;
const EVENTS: usize = 20;
const ALL_WITHIN_MS: u64 = 500;

/// A destination with a sink and an address for replies.
fn healthy(most: Concurrency) -> Subscription {
    let replies = format!("https://{REPLIES}/").parse().expect("an address");
    let mut subscription = with_sink("shop/orders/s0", address());
    subscription.reply = Some(ReplyTo::Address(replies));
    subscription.destination.max_concurrency = most;
    subscription.destination.probation = true;
    subscription
}

/// A process that handles several invocations.
struct Process {
    ports: FakePorts,
    dispatch: Dispatch<FakePorts>,
}

impl Process {
    fn new(catalogue: Catalogue, reactions: &[(&str, Reaction)]) -> Self {
        let ports = reactions.iter().fold(FakePorts::new(catalogue), |ports, (host, reaction)| {
            ports.with_reactions(host, std::slice::from_ref(reaction))
        });
        let ports = ports.with_reactions(DESTINATION, &[answers(200).after_ms(TAKES_MS)]);
        Self { dispatch: Dispatch::new(ports.clone(), container(), None), ports }
    }

    fn invoke(&self, records: &[Record]) {
        let now_ms = self.ports.now_ms();
        let deadline = Deadline::new(now_ms, now_ms + 120_000);
        assert_eq!(self.ports.run(self.dispatch.handle(records, &deadline)), [""; 0]);
    }

    /// The end of the last request to the destination, since this time.
    fn last_end_ms(&self, since_ms: u64) -> u64 {
        let posts = self.ports.timed_posts();
        let requests =
            posts.iter().filter(|(_, request)| request.url.host_str() == Some(DESTINATION));
        let ends = requests.map(|(at_ms, _)| NOW_MS + at_ms + TAKES_MS);
        ends.filter(|end_ms| *end_ms > since_ms).map(|end_ms| end_ms - since_ms).max().unwrap_or(0)
    }

    /// Asserts that the destination gets so many events, and that nothing is known against it.
    fn assert_healthy(&self) {
        let began_ms = self.ports.now_ms();
        let (before, sent) = (self.to_destination(), self.ports.sent().len());
        self.invoke(&events("m", EVENTS));
        assert_eq!(self.to_destination() - before, EVENTS, "{:?}", self.ports.sent_after(sent));
        let took_ms = self.last_end_ms(began_ms);
        assert!(took_ms <= ALL_WITHIN_MS, "{took_ms}");
        let url = format!("https://{DESTINATION}/").parse().expect("an address");
        let item = DestinationKey::new("shop", &url).health_item("shop");
        assert_eq!(self.ports.entry_text(&item), None);
    }

    fn to_destination(&self) -> usize {
        let posts = self.ports.posts();
        posts.iter().filter(|request| request.url.host_str() == Some(DESTINATION)).count()
    }
}

/// Deliveries of one kind, each of its own event.
fn copies(original: &Delivery, count: u128) -> Vec<Record> {
    let copy = |number| retry_record(&Delivery { id: Uuid::from_u128(number), ..original.clone() });
    (1..=count).map(copy).collect()
}

fn replies(count: u128) -> Vec<Record> {
    copies(&Delivery { target: DeliveryTarget::Reply, ..delivery("shop/orders/s0") }, count)
}

fn sink_deliveries(count: u128) -> Vec<Record> {
    copies(&sink_delivery(), count)
}

/// Twenty events are delivered beside deliveries that react like this elsewhere as they are alone: those that one invocation
/// delivers, within half a second. Of a destination that all processes share, some wait for their turn as messages.
fn assert_spared(beside: &[Record], host: &str, reaction: &Reaction) {
    for most in [Concurrency::of_each(2), Concurrency::of_all(2)] {
        let delivered = |beside: &[Record]| {
            let process = Process::new(catalogue_of([healthy(most)]), &[(host, reaction.clone())]);
            let began_ms = process.ports.now_ms();
            process.invoke(&[beside, &events("m", EVENTS)].concat());
            (process.to_destination(), process.last_end_ms(began_ms))
        };
        let (alone, (count, took_ms)) = (delivered(&[]), delivered(beside));
        assert_eq!(count, alone.0, "{most:?}");
        assert!(took_ms <= alone.1.max(ALL_WITHIN_MS) + 2 * TAKES_MS, "{most:?}: {took_ms} ms");
    }
}

#[test]
fn a_slow_sink_or_address_for_replies_delays_no_event_of_its_subscription() {
    for (beside, host) in [(sink_deliveries(5), SINK), (replies(5), REPLIES)] {
        for reaction in [answers(200).after_ms(10_000), times_out_after(30_000)] {
            assert_spared(&beside, host, &reaction);
        }
    }
}

/// Ways to be ill that would lead to probation, the slow lane, or fewer requests at once.
fn illnesses() -> [Reaction; 5] {
    [
        answers(503).after_ms(TAKES_MS),
        answers(429).with_retry_after("3600"),
        breaks_off_after(10),
        answers(200).after_ms(10_000),
        times_out_after(30_000),
    ]
}

#[test]
fn an_ill_sink_or_address_for_replies_is_no_failure_of_the_destination_and_limits_no_request_to_it()
{
    for (beside, host) in [(sink_deliveries(20), SINK), (replies(20), REPLIES)] {
        for reaction in illnesses() {
            let catalogue = catalogue_of([healthy(Concurrency::of_each(2))]);
            let process = Process::new(catalogue, &[(host, reaction)]);
            for _ in 0..5 {
                process.invoke(&beside);
                process.ports.advance_ms(MINUTE_MS);
            }
            process.assert_healthy();
        }
    }
}

/// Two subscriptions of one address: shop/orders/s0 shows a token, shop/plain/s1 shows none. Together they make two
/// requests at once.
fn with_token() -> Catalogue {
    let subscription = |topic: &str, name: &str, more: &str| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: {topic}, name: {name}}}\n\
             spec: {{destination: {{url: 'https://{DESTINATION}/', maxConcurrency: 2{more}}}, retry: {{jitterPercent: 0}}}}\n"
        )
    };
    let client = format!(
        "{{tokenUrl: 'https://{SERVER}/token', clientId: acme, clientSecret: 'env:CLIENT'}}"
    );
    let token = format!(", auth: {{oauth2: {client}}}");
    let text = subscription("orders", "s0", &token) + &subscription("plain", "s1", "");
    catalogue_from(&text)
}

fn plain(count: usize) -> Vec<Record> {
    let to_s1 = |record| Record { topic: Some("shop/plain".to_owned()), ..record };
    events("m", count).into_iter().map(to_s1).collect()
}

#[test]
fn a_slow_token_server_delays_no_event_that_needs_no_token() {
    for reaction in [answers(200).after_ms(10_000), times_out_after(30_000)] {
        let delivered = |beside: Vec<Record>| {
            let process = Process::new(with_token(), &[(SERVER, reaction.clone())]);
            let began_ms = process.ports.now_ms();
            process.invoke(&[beside, plain(EVENTS)].concat());
            (process.to_destination(), process.last_end_ms(began_ms))
        };
        let (alone, (count, took_ms)) = (delivered(Vec::new()), delivered(events("m", 5)));
        assert_eq!(count, alone.0);
        assert!(took_ms <= alone.1.max(ALL_WITHIN_MS) + 2 * TAKES_MS, "{took_ms} ms");
    }
}

#[test]
fn an_ill_token_server_is_no_failure_of_the_destination_and_limits_no_request_to_it() {
    for reaction in illnesses() {
        let process = Process::new(with_token(), &[(SERVER, reaction)]);
        for _ in 0..5 {
            process.invoke(&events("m", 20));
            process.ports.advance_ms(MINUTE_MS);
        }
        let alone = Process::new(with_token(), &[]);
        let counts = [&alone, &process].map(|measured| {
            let before = measured.to_destination();
            measured.invoke(&plain(EVENTS));
            measured.to_destination() - before
        });
        assert!(counts[0] <= counts[1], "{counts:?}");
        let url = format!("https://{DESTINATION}/").parse().expect("an address");
        let item = DestinationKey::new("shop", &url).health_item("shop");
        assert_eq!(process.ports.entry_text(&item), None);
    }
}

#[test]
fn a_delivery_that_waits_for_a_token_moves_to_the_slow_lane_and_its_destination_is_not_slow() {
    let process = Process::new(with_token(), &[(SERVER, times_out_after(30_000))]);
    process.invoke(&events("m", 1));
    assert!(process.ports.sent().iter().all(|(queue, _)| *queue == QueueName::Slow));
    process.invoke(&plain(1));
    assert_eq!(process.to_destination(), 1);
}
