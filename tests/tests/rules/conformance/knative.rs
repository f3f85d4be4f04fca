//! Knative's rekt tests of brokers and channels, on the core alone: the requests that each receiver
//! gets.
//!
//! Subscribers refuse their first requests and may reply, like the subscribers of those tests. The
//! names of the cases and the rule for the expected requests come from `test/rekt/features`.

use std::collections::{BTreeMap, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input, Members};
use delivery::machine::follow_up::{FollowUp, send_to_sink};
use delivery::machine::forward::forward;
use delivery::machine::reply::follow_ups;
use delivery::machine::step::{Arrival, End, arrive, settle};
use delivery::ports::Message;
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::{ALL_NAMES, TopicName};
use delivery::subscription::secret::Keyring;
use delivery::waits::Jitter;
use delivery::wire::read_publication;
use dialects::{Source, read};
use lastmile_tests::conformance::{BROKER, CHANNEL, HEADERS, Results};

use crate::samples::PUBLISHED_MS;

const CLASSES: [&str; 4] = ["MTChannelBasedBroker", "Kafka", "RabbitMQBroker", ""];
const CHANNELS: [&str; 2] = ["InMemoryChannel", "KafkaChannel"];

/// The subscriptions of a file without errors.
pub(super) fn catalogue(text: &str) -> Catalogue {
    let files = [Source { name: "f.yaml", text }];
    read(&files).into_result().unwrap_or_else(|findings| panic!("{text}\n{findings:#?}"))
}

/// The behaviour of a subscriber, and the requests that it received.
#[derive(Default)]
struct Receiver {
    /// The number of requests that the receiver refuses first, and its response to them.
    refuses: usize,
    status: u16,
    body: &'static str,
    /// The event that the receiver replies with.
    reply: Option<String>,
    received: Vec<Request>,
}

/// Receivers by host.
#[derive(Default)]
struct World(BTreeMap<String, Receiver>);

impl World {
    fn put(&mut self, host: &str, receiver: Receiver) {
        self.0.insert(format!("{host}.example.com"), receiver);
    }

    fn answer(&mut self, request: Request, now_ms: u64) -> Exchange {
        let host = request.url.host_str().expect("a host").to_owned();
        let receiver = self.0.entry(host).or_default();
        receiver.received.push(request);
        let answered = |status, body: &str| TransportResult::Answered {
            status,
            retry_after: None,
            body: body.as_bytes().to_vec(),
        };
        if receiver.received.len() <= receiver.refuses {
            let status = if receiver.status == 0 { 409 } else { receiver.status };
            return Exchange::new(answered(status, receiver.body), now_ms, 0);
        }
        let Some(reply) = &receiver.reply else {
            return Exchange::new(answered(202, ""), now_ms, 0);
        };
        let content = Content {
            content_type: Some("application/cloudevents+json".to_owned()),
            attributes: Vec::new(),
            headers: Vec::new(),
            webhook: Vec::new(),
            whole: true,
        };
        Exchange { content: Some(content), ..Exchange::new(answered(200, reply), now_ms, 0) }
    }

    /// Delivers an event to all matching subscriptions, until no delivery is left.
    fn publish(&mut self, catalogue: &Catalogue, topic: &str, event: &str) {
        let topic: TopicName = topic.parse().expect("a topic");
        let event = Event::recall(&event.into(), Input::CloudEvents);
        let origin = Origin { message: "m".to_owned(), index: 0 };
        let new = |name| Delivery::new(event.clone(), name, origin.clone(), PUBLISHED_MS);
        let matching = catalogue.matching(&topic, &ALL_NAMES, &event, PUBLISHED_MS);
        let mut open: VecDeque<Delivery> =
            matching.map(|subscription| new(subscription.name.clone())).collect();
        while let Some(delivery) = open.pop_front() {
            for next in self.deliver(delivery, catalogue) {
                match next {
                    FollowUp::Deliver(delivery) => open.push_back(*delivery),
                    FollowUp::Publish(message) => open.extend(published(&message, catalogue)),
                    FollowUp::DeadLetter(_) | FollowUp::Drop(_) => {}
                }
            }
        }
    }

    fn deliver(&mut self, mut delivery: Delivery, catalogue: &Catalogue) -> Vec<FollowUp> {
        let mut now_ms = PUBLISHED_MS;
        let subscription = catalogue.subscription(&delivery.subscription).expect("it is there");
        loop {
            match arrive(&delivery, subscription, now_ms) {
                Arrival::Attempt => {}
                Arrival::NotDue { wait_ms } => {
                    now_ms += wait_ms;
                    continue;
                }
                Arrival::Forward(topic) => {
                    let message = forward(&delivery, subscription, &topic, catalogue, now_ms)
                        .unwrap_or_else(|end| panic!("{end:?}"));
                    return vec![FollowUp::Publish(Box::new(message))];
                }
                Arrival::Ended(reason) => panic!("{reason}"),
            }
            let keyring = Keyring::default();
            let context = AttemptContext { keyring: &keyring, now_ms, timeout_ms: 30_000 };
            let request = compose(subscription, &[&delivery], context).expect("it can be sent");
            let exchange = self.answer(request, now_ms);
            match settle(&mut delivery, subscription, &exchange, now_ms, Jitter::NONE).end {
                End::Retry { wait_ms } => now_ms += wait_ms,
                End::Done => {
                    return follow_ups(&delivery, subscription, &exchange, catalogue, now_ms);
                }
                End::ToSink(letter) => {
                    return send_to_sink(*letter, subscription, catalogue, now_ms);
                }
                End::DeadLetter(letter) => return vec![FollowUp::DeadLetter(letter)],
                End::Drop(_) => return Vec::new(),
            }
        }
    }

    /// The number of requests that a receiver got.
    fn count(&self, host: &str) -> usize {
        self.0.get(&format!("{host}.example.com")).map_or(0, |receiver| receiver.received.len())
    }

    /// The last request that a receiver got.
    fn last(&self, host: &str) -> &Request {
        self.0[&format!("{host}.example.com")].received.last().expect("a request")
    }
}

/// The deliveries of an event that another delivery published on a topic.
fn published(message: &Message, catalogue: &Catalogue) -> Vec<Delivery> {
    let publication = read_publication(message.attribute.value()).expect("it can be read");
    let event = Event::recall(&message.body, Input::CloudEvents);
    let topic = message.topic.as_ref().expect("it has a topic");
    let matching: Vec<_> =
        catalogue.matching(topic, &ALL_NAMES, &event, publication.published_ms).collect();
    publication.deliveries(0, &event, &matching).collect()
}

/// A `delivery` of the tests: the number of retries, and whether there is a sink.
#[derive(Clone, Copy)]
struct Spec {
    retry: usize,
    has_sink: bool,
}

fn spec(retry: usize, has_sink: bool) -> Option<Spec> {
    Some(Spec { retry, has_sink })
}

/// The field `delivery`, with the sink of this host.
fn delivery_field(spec: Option<Spec>, sink: &str) -> String {
    let Some(Spec { retry, has_sink }) = spec else { return String::new() };
    let sink = format!(", deadLetterSink: {{uri: 'https://{sink}.example.com/'}}");
    format!(", delivery: {{retry: {retry}{}}}", if has_sink { &sink } else { "" })
}

/// The number of retries that stock Knative writes into a broker without `delivery`.
const STOCK_RETRIES: usize = 10;

/// The number of attempts by the rule of the tests: the nearest `delivery` decides.
fn attempts(own: Option<Spec>, parent: Option<Spec>) -> usize {
    1 + own.or(parent).map_or(STOCK_RETRIES, |spec| spec.retry)
}

fn broker_file(class: &str, delivery: &str, triggers: &[String]) -> String {
    let annotations = match class {
        "" => String::new(),
        class => format!(", annotations: {{eventing.knative.dev/broker.class: {class}}}"),
    };
    let broker = format!(
        "{{apiVersion: eventing.knative.dev/v1, kind: Broker, metadata: {{name: b, namespace: n{annotations}}}, \
         spec: {{config: {{}}{delivery}}}}}"
    );
    let trigger = |(index, more): (usize, &String)| {
        format!(
            "{{apiVersion: eventing.knative.dev/v1, kind: Trigger, metadata: {{name: t{index}, namespace: n}}, \
             spec: {{broker: b, subscriber: {{uri: 'https://t{index}.example.com/'}}{more}}}}}"
        )
    };
    let triggers: Vec<String> = triggers.iter().enumerate().map(trigger).collect();
    format!("{broker}\n---\n{}\n", triggers.join("\n---\n"))
}

fn event(kind: &str) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"/s","type":"{kind}","data":{{"msg":"test"}}}}"#
    )
}

/// The `delivery` of a broker and of two triggers. Each trigger also has the number of requests
/// that its subscriber refuses.
type Topology = (Option<Spec>, [(Option<Spec>, usize); 2]);

const DELIVERY: [(&str, Topology); 5] = [
    ("no delivery anywhere", (None, [(None, 0), (None, STOCK_RETRIES)])),
    (
        "that of the broker (retry)",
        (Some(Spec { retry: 3, has_sink: true }), [(None, 3), (None, 4)]),
    ),
    (
        "that of the trigger (retry)",
        (
            Some(Spec { retry: 0, has_sink: false }),
            [
                (Some(Spec { retry: 3, has_sink: true }), 3),
                (Some(Spec { retry: 1, has_sink: false }), 2),
            ],
        ),
    ),
    (
        "that of the trigger beside one of the broker (retry)",
        (
            Some(Spec { retry: 1, has_sink: true }),
            [(Some(Spec { retry: 3, has_sink: true }), 3), (None, 2)],
        ),
    ),
    (
        "that of the trigger beside one of the broker (retry and sink)",
        (
            Some(Spec { retry: 1, has_sink: true }),
            [(Some(Spec { retry: 3, has_sink: true }), 4), (None, 2)],
        ),
    ),
];

/// True if every receiver gets the requests that the tests of `delivery` require.
fn delivers(class: &str, (broker, triggers): Topology) -> bool {
    let fields = [0, 1].map(|index| delivery_field(triggers[index].0, &format!("t{index}dlq")));
    let catalogue = catalogue(&broker_file(class, &delivery_field(broker, "brokerdlq"), &fields));
    let mut world = World::default();
    for (index, (_, refuses)) in triggers.into_iter().enumerate() {
        world.put(&format!("t{index}"), Receiver { refuses, ..Receiver::default() });
    }
    world.publish(&catalogue, "n/b", &event("com.example.FullEvent"));
    let (mut passes, mut in_broker_sink) = (true, 0);
    for (index, (own, refuses)) in triggers.into_iter().enumerate() {
        let attempts = attempts(own, broker);
        let is_lost = attempts <= refuses;
        let in_own_sink = is_lost && own.is_some_and(|spec| spec.has_sink);
        in_broker_sink += usize::from(is_lost && own.is_none_or(|spec| !spec.has_sink));
        passes &= world.count(&format!("t{index}")) == attempts.min(refuses + 1);
        passes &= world.count(&format!("t{index}dlq")) == usize::from(in_own_sink);
    }
    let has_sink = broker.is_some_and(|spec| spec.has_sink);
    passes && world.count("brokerdlq") == if has_sink { in_broker_sink } else { 0 }
}

/// A case of routing: its name, the filters of the triggers by type, the type of the first
/// trigger's reply, and the number of requests of each trigger. The published event has the type
/// `full`.
type Routing =
    (&'static str, &'static [Option<&'static str>], Option<&'static str>, &'static [usize]);

const ROUTING: [Routing; 7] = [
    ("one trigger, no filter", &[None], None, &[1]),
    ("one trigger, another type", &[Some("mytype")], None, &[0]),
    ("one trigger, its type", &[Some("full")], None, &[1]),
    ("two triggers, both its type", &[Some("full"), Some("full")], None, &[1, 1]),
    ("two triggers, one its type", &[Some("other"), Some("full")], None, &[0, 1]),
    ("a reply matches the second", &[Some("full"), Some("reply")], Some("reply"), &[1, 1]),
    ("two triggers, no filter", &[None, None], None, &[1, 1]),
];

fn routes(class: &str, filters: &[Option<&str>], reply: Option<&str>, expected: &[usize]) -> bool {
    let field = |filter: &Option<&str>| {
        let filter = filter.map(|kind| format!(", filter: {{attributes: {{type: {kind}}}}}"));
        filter.unwrap_or_default()
    };
    let fields: Vec<String> = filters.iter().map(field).collect();
    let catalogue = catalogue(&broker_file(class, "", &fields));
    let mut world = World::default();
    world.put("t0", Receiver { reply: reply.map(event), ..Receiver::default() });
    let sent = event("full");
    world.publish(&catalogue, "n/b", &sent);
    let counts: Vec<usize> =
        (0..filters.len()).map(|index| world.count(&format!("t{index}"))).collect();
    // Each trigger gets the published event, or the reply.
    let is_same = |index: usize| match reply {
        Some(kind) if index == 1 => world.last("t1").body == event(kind).as_bytes(),
        Some(_) | None => world.last(&format!("t{index}")).body == sent.as_bytes(),
    };
    counts == expected && (0..filters.len()).filter(|index| expected[*index] > 0).all(is_same)
}

pub(super) fn broker() -> Results {
    let mut results = Results::new(BROKER);
    for class in CLASSES {
        for (name, topology) in DELIVERY {
            results.check(&format!("{class} {name}"), delivers(class, topology), None);
        }
        for (name, filters, reply, expected) in ROUTING {
            let passes = routes(class, filters, reply, expected);
            results.check(&format!("{class} {name}"), passes, None);
        }
    }
    results
}

/// A subscription of the tests of channels: the number of requests that the subscriber refuses,
/// whether it replies, and the number of replies that are refused.
struct Subscribed {
    refuses: usize,
    replies: bool,
    reply_refuses: usize,
}

/// Each subscription has one retry and a sink.
const SUBSCRIPTIONS: [(&str, &[Subscribed]); 2] = [
    ("events are sent again", &[Subscribed { refuses: 1, replies: false, reply_refuses: 0 }]),
    (
        "the maximum number of retries",
        &[
            Subscribed { refuses: 1, replies: false, reply_refuses: 0 },
            Subscribed { refuses: 1, replies: true, reply_refuses: 0 },
            Subscribed { refuses: 1, replies: true, reply_refuses: 1 },
            Subscribed { refuses: 1, replies: true, reply_refuses: 2 },
        ],
    ),
];

fn channel_delivers(kind: &str, subscribed: &[Subscribed]) -> bool {
    let own = spec(1, true);
    let mut file = format!(
        "{{apiVersion: messaging.knative.dev/v1, kind: {kind}, metadata: {{name: c, namespace: n}}, spec: {{}}}}\n"
    );
    let mut world = World::default();
    for (index, Subscribed { refuses, replies, reply_refuses }) in subscribed.iter().enumerate() {
        let reply = if *replies {
            format!(", reply: {{uri: 'https://reply{index}.example.com/'}}")
        } else {
            String::new()
        };
        let delivery = delivery_field(own, &format!("dlq{index}"));
        file += &format!(
            "---\n{{apiVersion: messaging.knative.dev/v1, kind: Subscription, metadata: {{name: s{index}, namespace: n}}, \
             spec: {{channel: {{apiVersion: messaging.knative.dev/v1, kind: {kind}, name: c}}, \
             subscriber: {{uri: 'https://sub{index}.example.com/'}}{reply}{delivery}}}}}\n"
        );
        let answer = replies.then(|| event("reply"));
        world.put(
            &format!("sub{index}"),
            Receiver { refuses: *refuses, reply: answer, ..Receiver::default() },
        );
        world.put(
            &format!("reply{index}"),
            Receiver { refuses: *reply_refuses, ..Receiver::default() },
        );
    }
    world.publish(&catalogue(&file), "n/c", &event("full"));
    let attempts = attempts(own, None);
    subscribed.iter().enumerate().all(|(index, subscriber)| {
        let is_lost = attempts <= subscriber.refuses;
        let is_replied = subscriber.replies && !is_lost;
        let is_reply_lost = is_replied && attempts <= subscriber.reply_refuses;
        let replies = if is_replied { attempts.min(subscriber.reply_refuses + 1) } else { 0 };
        world.count(&format!("sub{index}")) == attempts.min(subscriber.refuses + 1)
            && world.count(&format!("reply{index}")) == replies
            && world.count(&format!("dlq{index}")) == usize::from(is_lost || is_reply_lost)
    })
}

pub(super) fn channel() -> Results {
    let mut results = Results::new(CHANNEL);
    for kind in CHANNELS {
        for (name, subscribed) in SUBSCRIPTIONS {
            let passes = channel_delivers(kind, subscribed);
            results.check(&format!("{kind} {name}"), passes, None);
        }
    }
    results
}

/// The dead letter at the sink of a trigger whose subscriber answered 422 with this body.
fn dead_letter(body: &'static str) -> String {
    let sink = delivery_field(spec(0, true), "dlq");
    let file = broker_file("", "", &[sink]);
    let mut world = World::default();
    world.put("t0", Receiver { refuses: 1, status: 422, body, ..Receiver::default() });
    world.publish(&catalogue(&file), "n/b", &event("full"));
    String::from_utf8(world.last("dlq").body.to_vec()).expect("text")
}

pub(super) fn headers() -> Results {
    const DATA: &str = r#"{ "message": "catastrophic failure" }"#;
    let mut results = Results::new(HEADERS);
    let says = |letter: &str, name: &str, value: &str| {
        Members::parse(letter).expect("an object").get(name) == Some(value)
    };
    let letter = dead_letter("");
    for (name, value) in
        [("knativeerrordest", "\"https://t0.example.com/\""), ("knativeerrorcode", "422")]
    {
        results.check(name, says(&letter, name, value), None);
    }
    let letter = dead_letter(DATA);
    let encoded = format!("\"{}\"", STANDARD.encode(DATA));
    let is_encoded = says(&letter, "knativeerrordata", &encoded);
    results.check(&letter, is_encoded, Some("error-data-is-text"));
    let mut world = World::default();
    world.publish(&catalogue(&broker_file("", "", &[String::new()])), "n/b", &event("full"));
    let request = world.last("t0");
    let header =
        |name: &str| request.headers.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
    results.check("Prefer", header("prefer").is_some_and(|(_, value)| value == "reply"), None);
    results.check("Kn-Namespace", header("kn-namespace").is_some(), Some("no-kn-namespace"));
    results
}
