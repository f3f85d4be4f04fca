//! Whoever wants notices is told of dead letters: once a minute and cause. Nobody is told of those of
//! notices, and what does not work delays no delivery.

use std::collections::BTreeSet;

use delivery::delivery::health::dead_letters::{Causes, Minute, MinuteOfDeadLetters};
use delivery::delivery::health::shared::Document as _;
use delivery::ports::{Attribute, Clock as _, Message, QueueName, Record};
use delivery::subscription::sink::Sink;
use delivery::subscription::{ReplyTo, Subscription};
use dispatch::{Deadline, Dispatch};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{EVENT, publication, subscription};
use crate::fake_ports::{FakePorts, Fault, NOW_MS, catalogue_of, container, record};
use crate::reactions::{answers, replies};

const MINUTE: Minute = Minute { at_ms: NOW_MS };

/// Processes over the topic shop/orders, whose destinations s0 and s1 refuse every event, and the topic
/// shop/notices, to which notices go and whose destination s9 takes them.
struct Deployment {
    ports: FakePorts,
    processes: Vec<Dispatch<FakePorts>>,
}

impl Deployment {
    fn new() -> Self {
        Self::with([subscription("shop/orders/s0"), subscription("shop/orders/s1")], |ports| ports)
    }

    fn with<const N: usize>(
        subscriptions: [Subscription; N],
        configure: impl FnOnce(FakePorts) -> FakePorts,
    ) -> Self {
        let listening = subscription("shop/notices/s9");
        let mut catalogue = catalogue_of(subscriptions.into_iter().chain([listening]));
        catalogue.notices_go_to("shop/notices".parse().expect("a topic"));
        let ports = configure(FakePorts::new(catalogue).with_status(400))
            .with_reactions("s9.example.com", &[answers(200)]);
        let process = |_| Dispatch::new(ports.clone(), container(), None);
        Self { processes: (0..2).map(process).collect(), ports }
    }

    /// One invocation of a process; returns what it sent.
    fn invoke(&self, process: usize, records: &[Record]) -> Vec<(QueueName, Message)> {
        let (before, now_ms) = (self.ports.sent().len(), self.ports.now_ms());
        let deadline = Deadline::new(now_ms, now_ms + 120_000);
        let handled = self.processes[process].handle(records, &deadline);
        assert_eq!(self.ports.run(handled), [""; 0]);
        self.ports.sent().split_off(before)
    }

    /// The minute is over, and its announcement is received.
    fn tell(&self, process: usize, announcement: &Message) -> Vec<(QueueName, Message)> {
        self.ports.advance_ms(MINUTE.due_ms().saturating_sub(self.ports.now_ms()));
        self.invoke(process, &[received(announcement)])
    }

    fn document(&self) -> Option<MinuteOfDeadLetters> {
        let text = self.ports.entry_text(&MINUTE.item())?;
        Some(MinuteOfDeadLetters::read(text.as_bytes()).expect("it is one"))
    }
}

/// A message to the fan-out queue as the record that dispatch receives.
fn received(message: &Message) -> Record {
    Record {
        queue: QueueName::FanOut,
        body: message.body.clone(),
        attribute: Some(message.attribute.clone()),
        topic: message.topic.as_ref().map(ToString::to_string),
        ..record("received", EVENT)
    }
}

fn event(message: &Message) -> Value {
    serde_json::from_str(&message.body).expect("a notice is JSON")
}

/// The messages that announce a minute.
fn announcements(sent: &[(QueueName, Message)]) -> Vec<Message> {
    let announces = |(_, message): &&(QueueName, Message)| {
        matches!(message.attribute, Attribute::Publication(_))
            && publication(message).dead_letters_ms == Some(MINUTE.at_ms)
    };
    sent.iter().filter(announces).map(|(_, message)| message.clone()).collect()
}

fn dead_letters(sent: &[(QueueName, Message)]) -> usize {
    sent.iter().filter(|(queue, _)| *queue == QueueName::DeadLetter).count()
}

/// Reason, count and subscriptions of each notice.
fn told(sent: &[(QueueName, Message)]) -> Vec<Value> {
    let data = |(_, message): &(QueueName, Message)| event(message)["data"].take();
    sent.iter()
        .map(data)
        .map(|data| json!([data["reason"], data["count"], data["subscriptions"]]))
        .collect()
}

fn ids(sent: &[(QueueName, Message)]) -> BTreeSet<String> {
    sent.iter().map(|(_, message)| event(message)["id"].to_string()).collect()
}

#[test]
fn dead_letters_of_a_minute_are_told_of_once_by_cause_and_delivered_like_any_event() {
    let deployment = Deployment::new();
    let unknown = Record { topic: Some("any/thing".to_owned()), ..record("m3", EVENT) };
    let mut sent = deployment.invoke(0, &[record("m1", EVENT)]);
    deployment.ports.advance_ms(20_000);
    sent.extend(deployment.invoke(1, &[record("m2", EVENT)]));
    sent.extend(deployment.invoke(0, &[unknown]));
    assert_eq!(dead_letters(&sent), 5);
    let [announcement] = &announcements(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(announcement.wait_ms, 75_000);
    let sent = deployment.tell(1, announcement);
    let named = |name: &str, count: u32| json!({ "subscription": name, "count": count });
    let expected = [
        json!(["TopicNotFound", 1, [named("_/_/_unknown", 1)]]),
        json!([
            "UndeliverableDueToHttpBadRequest",
            4,
            [named("shop/orders/s0", 2), named("shop/orders/s1", 2)]
        ]),
    ];
    assert_eq!(told(&sent), expected);
    let requests = deployment.ports.requests();
    for (_, notice) in &sent {
        assert!(deployment.invoke(0, &[received(notice)]).is_empty());
    }
    assert_eq!(deployment.ports.requests(), requests + 2);
    let last = deployment.ports.posts().pop().expect("a request");
    assert_eq!(last.url.host_str(), Some("s9.example.com"));
}

#[test]
fn a_minute_that_is_told_of_twice_has_the_same_ids_and_another_minute_has_others() {
    let deployment = Deployment::new();
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let announcement = announcements(&sent).remove(0);
    let first = ids(&deployment.tell(0, &announcement));
    assert_eq!(first.len(), 1);
    assert_eq!(ids(&deployment.tell(1, &announcement)), first);
    let sent = deployment.invoke(0, &[record("m2", EVENT)]);
    let next = sent.iter().find(|(queue, _)| *queue == QueueName::FanOut).expect("announced");
    deployment.ports.advance_ms(75_000);
    let second = ids(&deployment.invoke(0, &[received(&next.1)]));
    assert_eq!((second.len(), second.is_disjoint(&first)), (1, true));
}

#[test]
fn an_announcement_that_arrives_early_waits_for_the_rest_of_its_minute() {
    let deployment = Deployment::new();
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let announcement = announcements(&sent).remove(0);
    deployment.ports.advance_ms(30_000);
    let sent = deployment.invoke(0, &[received(&announcement)]);
    let [(QueueName::FanOut, again)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((again.wait_ms, announcements(&sent).len()), (45_000, 1));
    assert_eq!(told(&deployment.tell(0, again)).len(), 1);
}

#[test]
fn nobody_is_told_of_dead_letters_of_notices_and_of_what_follows_from_them() {
    let mut to_topic = subscription("shop/notices/s8");
    to_topic.dead_letter.sink = Sink::Topic("shop/orders".parse().expect("a topic"));
    let deployment = Deployment::with([to_topic, subscription("shop/orders/s0")], |ports| ports);
    let notice = Record { topic: Some("shop/notices".to_owned()), ..record("m1", EVENT) };
    let sent = deployment.invoke(0, &[notice]);
    let [(QueueName::FanOut, of_notice)] = &sent[..] else { panic!("{sent:?}") };
    let sent = deployment.invoke(0, &[received(of_notice)]);
    assert_eq!((dead_letters(&sent), sent.len()), (1, 1), "{sent:?}");
    assert_eq!(deployment.document(), None);
}

#[test]
fn nobody_is_told_of_a_dead_letter_of_a_reply_to_a_notice() {
    let mut replying = subscription("shop/notices/s8");
    replying.reply = Some(ReplyTo::Topic("shop/orders".parse().expect("a topic")));
    let reply = r#"{"specversion":"1.0","id":"r1","source":"/audit","type":"noted"}"#;
    let replies = |ports: FakePorts| ports.with_reactions("s8.example.com", &[replies(reply)]);
    let deployment = Deployment::with([replying, subscription("shop/orders/s0")], replies);
    let notice = Record { topic: Some("shop/notices".to_owned()), ..record("m1", EVENT) };
    let sent = deployment.invoke(0, &[notice]);
    let [(QueueName::FanOut, reply)] = &sent[..] else { panic!("{sent:?}") };
    let sent = deployment.invoke(0, &[received(reply)]);
    assert_eq!((dead_letters(&sent), sent.len()), (1, 1), "{sent:?}");
    assert_eq!(deployment.document(), None);
}

#[test]
fn while_the_table_does_not_answer_dead_letters_are_sent_and_told_of_later() {
    let deployment = Deployment::new();
    deployment.ports.set_table_unreachable(true);
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    assert_eq!((dead_letters(&sent), sent.len()), (2, 2));
    deployment.ports.set_table_unreachable(false);
    deployment.ports.advance_ms(30_000);
    let sent = deployment.invoke(0, &[record("m2", EVENT)]);
    let told = told(&deployment.tell(0, &announcements(&sent)[0]));
    assert_eq!(told[0][1], 4);
}

#[test]
fn an_announcement_waits_for_the_table_and_at_last_is_delivered_without_numbers() {
    let deployment = Deployment::new();
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let mut waiting = announcements(&sent).remove(0);
    deployment.ports.set_table_unreachable(true);
    for held in 1..=10 {
        let sent = deployment.tell(0, &waiting);
        let [again] = &announcements(&sent)[..] else { panic!("{sent:?}") };
        assert_eq!(publication(again).hold.count, held);
        assert!(again.wait_ms >= 300_000, "{}", again.wait_ms);
        // One that finds the table in time tells all.
        deployment.ports.set_table_unreachable(false);
        assert_eq!(told(&deployment.tell(1, &waiting))[0][1], 2);
        deployment.ports.set_table_unreachable(true);
        waiting = again.clone();
        deployment.ports.advance_ms(waiting.wait_ms);
    }
    let requests = deployment.ports.requests();
    assert!(deployment.tell(0, &waiting).is_empty());
    let post = deployment.ports.posts().pop().expect("a request");
    assert_eq!(deployment.ports.requests(), requests + 1);
    let event: Value = serde_json::from_slice(&post.body).expect("JSON");
    assert_eq!(event["type"], "dev.lastmile.deadletters");
    assert_eq!(event["data"], json!({ "minute": "2026-11-20T07:03:00.0000000Z" }));
}

#[test]
fn a_minute_that_no_queue_announces_is_not_written_until_one_does() {
    let deployment = Deployment::new();
    for queue in [QueueName::FanOut, QueueName::Retry] {
        deployment.ports.clone().with_queue_fault(queue, Fault::Refuses);
    }
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    assert_eq!((dead_letters(&sent), deployment.document()), (2, None));
    deployment.ports.repair_queues();
    deployment.ports.advance_ms(10_000);
    let sent = deployment.invoke(0, &[record("m2", EVENT)]);
    assert_eq!(told(&deployment.tell(0, &announcements(&sent)[0]))[0][1], 4);
}

#[test]
fn a_queue_that_does_not_take_an_announcement_holds_one_invocation_up_for_a_second() {
    for (fault, held_ms) in [(Fault::Refuses, 0), (Fault::Hangs, 1_000)] {
        let deployment = Deployment::new();
        for queue in [QueueName::FanOut, QueueName::Retry] {
            deployment.ports.clone().with_queue_fault(queue, fault);
        }
        deployment.invoke(0, &[record("m1", EVENT)]);
        let (asked, now_ms) = (deployment.ports.table_requests(), deployment.ports.now_ms());
        assert_eq!(now_ms, NOW_MS + held_ms);
        deployment.ports.advance_ms(9_999);
        deployment.invoke(0, &[record("m2", EVENT)]);
        let after = (deployment.ports.table_requests(), deployment.ports.now_ms());
        assert_eq!(after, (asked, now_ms + 9_999));
        deployment.ports.repair_queues();
        deployment.ports.advance_ms(1);
        let sent = deployment.invoke(0, &[record("m3", EVENT)]);
        assert_eq!(told(&deployment.tell(0, &announcements(&sent)[0]))[0][1], 6);
    }
}

#[test]
fn a_process_writes_at_once_and_then_every_five_seconds_what_it_keeps() {
    let deployment = Deployment::new();
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let asked = deployment.ports.table_requests();
    deployment.ports.advance_ms(4_999);
    deployment.invoke(0, &[record("m2", EVENT)]);
    assert_eq!(deployment.ports.table_requests(), asked);
    // Also one that has no dead letters of its own writes what is kept, once.
    let notice = Record { topic: Some("shop/notices".to_owned()), ..record("m3", EVENT) };
    for (wait_ms, requests) in [(0, 0), (1, 2), (4_999, 2), (10_000, 2)] {
        deployment.ports.advance_ms(wait_ms);
        deployment.invoke(0, std::slice::from_ref(&notice));
        assert_eq!(deployment.ports.table_requests(), asked + requests, "{wait_ms}");
    }
    assert_eq!(told(&deployment.tell(0, &announcements(&sent)[0]))[0][1], 4);
}

#[test]
fn what_might_be_written_after_its_minute_was_told_of_counts_for_the_next_one() {
    let deployment = Deployment::new();
    let first = deployment.invoke(0, &[record("m1", EVENT)]);
    deployment.ports.advance_ms(59_999);
    // What others know is read before.
    let notice = Record { topic: Some("shop/notices".to_owned()), ..record("m3", EVENT) };
    deployment.invoke(0, &[notice]);
    // Each request takes long, and others are faster a few times.
    deployment.ports.slow_table(900);
    deployment.ports.overtake(6);
    deployment.invoke(0, &[record("m2", EVENT)]);
    assert_eq!(deployment.ports.now_ms(), MINUTE.written_until_ms());
    deployment.ports.slow_table(0);
    assert_eq!(told(&deployment.tell(1, &announcements(&first)[0]))[0][1], 2);
    deployment.ports.advance_ms(5_000);
    let sent = deployment.invoke(0, &[record("m3", EVENT)]);
    let next = sent.iter().find(|(queue, _)| *queue == QueueName::FanOut).expect("announced");
    deployment.ports.advance_ms(75_000);
    assert_eq!(told(&deployment.invoke(0, &[received(&next.1)]))[0][1], 4);
}

#[test]
fn a_document_that_others_write_all_the_time_is_left_alone_for_a_while() {
    let deployment = Deployment::new();
    deployment.ports.overtake(7);
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let asked = deployment.ports.table_requests();
    deployment.invoke(0, &[record("m2", EVENT)]);
    assert_eq!((deployment.ports.table_requests(), deployment.document()), (asked, None));
    deployment.ports.advance_ms(10_000);
    assert!(announcements(&deployment.invoke(0, &[record("m3", EVENT)])).is_empty());
    assert_eq!(told(&deployment.tell(0, &announcements(&sent)[0]))[0][1], 6);
}

#[test]
fn an_announcement_of_a_minute_that_was_not_written_finds_nothing() {
    let deployment = Deployment::new();
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let announcement = announcements(&sent).remove(0);
    let tomorrow = Minute { at_ms: NOW_MS + 86_400_000 };
    let mut counted = Causes::default();
    counted.note("ReplyLoop", "shop/orders/s0", Uuid::nil());
    let other = MinuteOfDeadLetters::with(None, tomorrow, &counted);
    deployment.ports.set_entry(&MINUTE.item(), &other.entry());
    assert!(deployment.tell(0, &announcement).is_empty());
}

#[test]
fn a_dead_letter_that_its_sink_refuses_is_counted_once() {
    let mut to_address = subscription("shop/orders/s0");
    to_address.dead_letter.sink = Sink::Address("https://sink.example.com/".parse().expect("it"));
    let deployment = Deployment::with([to_address], |ports| ports);
    let sent = deployment.invoke(0, &[record("m1", EVENT)]);
    let announcement = announcements(&sent).remove(0);
    let is_delivery = |(_, message): &&(QueueName, Message)| message.wait_ms == 0;
    let (_, to_sink) = sent.iter().find(is_delivery).expect("a delivery to the sink");
    assert_eq!(dead_letters(&deployment.invoke(0, &[received(to_sink)])), 1);
    assert_eq!(told(&deployment.tell(0, &announcement))[0][1], 1);
}

#[test]
fn where_nobody_wants_notices_nothing_is_asked_of_the_table() {
    let ports = FakePorts::new(catalogue_of([subscription("shop/orders/s0")])).with_status(400);
    let dispatch = Dispatch::new(ports.clone(), container(), None);
    for number in 0..9 {
        let records = [record(&format!("m{number}"), EVENT)];
        ports.run(dispatch.handle(&records, &Deadline::new(NOW_MS, NOW_MS + 120_000)));
    }
    // The news, once. Ten failures in a row would be written as well.
    assert_eq!((ports.sent().len(), ports.table_requests()), (9, 1));
}
