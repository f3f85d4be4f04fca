//! Processes share the state of destinations through the table: one process probes, and all obey. A
//! table that does not answer stops no delivery.

use delivery::delivery::health::news::{NEWS, News};
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::delivery::health::{DestinationKey, slow};
use delivery::delivery::{Delivery, DeliveryTarget};
use delivery::ports::{Attribute, Clock as _, Message, QueueName, Record};
use delivery::subscription::{Disable, ReplyTo, Subscription};
use delivery::table::{Entry, ItemKey};
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use dispatch::Deadline;
use futures::future::join;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};
use lastmile_tests::fake_ports::{FakePorts, Fault, Hanging};
use serde_json::Value;

use super::json_log::log_lines;
use crate::examples::{EVENT, catalogue_of, delivery, record, retry_record, subscription, tried};
use crate::process::Process;

/// Processes with the topic shop/orders, whose destination s0 has these reactions.
struct Deployment {
    ports: FakePorts,
    processes: Vec<Process>,
}

impl Deployment {
    fn new(processes: usize, reactions: &[Reaction]) -> Self {
        let catalogue = catalogue_of([destination(), subscription("shop/others/s1")]);
        Self::with(FakePorts::new(catalogue), processes, reactions)
    }

    fn with(ports: FakePorts, processes: usize, reactions: &[Reaction]) -> Self {
        let ports = match reactions {
            [] => ports,
            reactions => ports.with_reactions("s0.example.com", reactions),
        };
        let process = |_| Process::new(ports.clone());
        Self { processes: (0..processes).map(process).collect(), ports }
    }

    /// A deployment whose first process has found, after ten failures in a row, that the
    /// destination fails.
    fn after_ten_failures(processes: usize, then: &[Reaction]) -> Self {
        let deployment = Self::new(processes, &[&vec![answers(503); 10][..], then].concat());
        deployment.fail_ten_times();
        deployment
    }

    fn fail_ten_times(&self) {
        for number in 0..10 {
            self.invoke(0, &[record(&format!("m{number}"), EVENT)]);
        }
        assert_eq!(self.ports.requests(), 10);
    }

    /// Runs one invocation of a process. Returns the messages that it sent.
    fn invoke(&self, process: usize, records: &[Record]) -> Vec<(QueueName, Message)> {
        self.processes[process].invoke(records)
    }

    /// True if a process attempts a delivery from the retry queue.
    fn attempts(&self, process: usize) -> bool {
        let before = self.ports.requests();
        self.invoke(process, &[due()]);
        self.ports.requests() > before
    }

    fn state(&self) -> DestinationState {
        let text = self.ports.entry_text(&item()).expect("it was written");
        assert!(!text.contains("token"), "{text}");
        DestinationState::read(text.as_bytes()).expect("it is one")
    }

    /// All news, the newest first.
    fn news(&self) -> Vec<String> {
        let newest = self.ports.change_table(|table, _| table.newest("@news", 1_000));
        newest.into_iter().map(|stored| stored.text).collect()
    }
}

fn destination() -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.probation = true;
    subscription.destination.url =
        "https://s0.example.com/?token=secret".parse().expect("an address");
    subscription
}

/// A record of the retry queue.
fn due() -> Record {
    retry_record(&tried())
}

#[test]
fn while_every_destination_is_healthy_a_process_reads_the_news_twice_a_minute_and_writes_nothing() {
    let deployment = Deployment::new(1, &[answers(200)]);
    for number in 0..100 {
        deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
        deployment.ports.advance_ms(2_500);
    }
    assert_eq!((deployment.ports.requests(), deployment.ports.table_requests()), (100, 9));
}

#[test]
fn a_failing_destination_that_one_process_found_gets_no_request_from_the_others() {
    let deployment = Deployment::after_ten_failures(3, &[answers(503)]);
    let state = deployment.state();
    assert_eq!(state.destination, "https://s0.example.com/");
    assert_eq!(state.subscription, "shop/orders/s0");
    assert_eq!(state.failing.map(|failing| failing.lasts_ms), Some(10_000));
    assert_eq!(state.attempts.last().and_then(|attempt| attempt.status), Some(503));
    assert!(!deployment.attempts(1) && !deployment.attempts(2));
}

#[test]
fn one_process_probes_at_a_time_and_its_failure_is_known_to_all() {
    let slow = times_out_after(1_000);
    let deployment = Deployment::after_ten_failures(3, &[slow.clone(), slow, answers(200)]);
    assert!(!deployment.attempts(1));
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0), "the probe");
    assert_eq!(deployment.state().failing.map(|failing| failing.lasts_ms), Some(20_000));
    deployment.ports.advance_ms(5_000);
    assert!(!deployment.attempts(1), "it has not read the news again, but asks before it probes");
    let asked = deployment.ports.table_requests();
    assert!(!deployment.attempts(1), "it knows now");
    assert_eq!(deployment.ports.table_requests(), asked);
    deployment.ports.advance_ms(15_000);
    assert!(deployment.attempts(1), "the next probe");
    assert!(!deployment.attempts(0) && !deployment.attempts(2));
}

#[test]
fn while_a_process_probes_no_other_does_until_its_claim_is_over() {
    let deployment = Deployment::after_ten_failures(2, &[times_out_after(1_000)]);
    assert!(!deployment.attempts(1));
    deployment.ports.advance_ms(10_000);
    // The first process claims the probe, and then crashes.
    let crashed = deployment.ports.clone().with_one_panic();
    let now_ms = crashed.now_ms();
    let claimed = deployment.state().claim(now_ms, now_ms + 90_000);
    let delivery::delivery::health::shared::Claim::Write(claimed) = claimed else {
        panic!("{claimed:?}")
    };
    crashed.set_entry(&item(), &claimed.entry());
    let sent = deployment.invoke(1, &[due()]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((message.wait_ms, deployment.ports.requests()), (10_000, 10));
    // The other deliveries of the process need not ask the table.
    let asked = deployment.ports.table_requests();
    assert!(!deployment.attempts(1));
    assert_eq!(deployment.ports.table_requests(), asked);
    deployment.ports.advance_ms(90_000);
    assert!(deployment.invoke(1, &[due()]).len() == 1 && deployment.ports.requests() == 11);
}

fn item() -> ItemKey {
    key().health_item("shop")
}

fn key() -> DestinationKey {
    DestinationKey::new("shop", &destination().destination.url)
}

#[test]
fn a_recovery_is_known_to_all() {
    let deployment = Deployment::after_ten_failures(2, &[answers(200)]);
    assert!(!deployment.attempts(1));
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0) && deployment.state().is_healthy());
    assert!(!deployment.news()[0].contains("failing"), "{:?}", deployment.news());
    // The second process asks before it probes, and then needs no probe.
    assert!(deployment.attempts(1));
    // While the destination recovers, each request reserves its place and reports its result.
    let asked = deployment.ports.table_requests();
    assert!(deployment.attempts(1));
    assert_eq!(deployment.ports.table_requests(), asked + 2);
    // The first attempt reads the news.
    deployment.ports.advance_ms(15 * MINUTE_MS);
    assert!(deployment.attempts(1));
    let asked = deployment.ports.table_requests();
    assert!(deployment.attempts(1));
    assert_eq!(deployment.ports.table_requests(), asked, "it has recovered");
}

#[test]
fn changes_that_were_read_before_newer_findings_are_not_adopted() {
    let deployment = Deployment::after_ten_failures(1, &[answers(200), answers(503)]);
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0) && deployment.state().is_healthy());
    deployment.ports.advance_ms(15 * MINUTE_MS);
    deployment.ports.answer_late_about_news(500);
    let (dispatch, now_ms) = (&deployment.processes[0].dispatch, deployment.ports.now_ms());
    let deadline = Deadline::new(now_ms, now_ms + 2 * MINUTE_MS);
    let failing: Vec<Record> = (0..10).map(|number| record(&format!("n{number}"), EVENT)).collect();
    // The first invocation waits for its read, in which the destination is healthy, while the second
    // invocation finds that it fails. The success halved the count, so five failures suffice.
    let due = [due()];
    let both = join(dispatch.handle(&due, &deadline), dispatch.handle(&failing, &deadline));
    deployment.ports.run(both);
    assert!(deployment.state().failing.is_some());
    let attempted = deployment.ports.requests();
    assert!(!deployment.attempts(0), "it knows the failures");
    assert_eq!(attempted, 11 + 5, "the delivery of the first invocation is deferred");
}

#[test]
fn a_destination_whose_last_ten_attempts_failed_is_failing_though_none_of_them_begins_a_probation()
{
    for status in [400, 409, 410, 413, 422] {
        let deployment = Deployment::new(2, &[answers(status)]);
        deployment.fail_ten_times();
        let shown = deployment.ports.entry_text(&item()).expect("it is in its item");
        let state = DestinationState::read(shown.as_bytes()).expect("it is one");
        assert!(!state.is_healthy(), "{shown}");
        assert_eq!(state.attempts.last().and_then(|attempt| attempt.status), Some(status));
        // No delivery is deferred, because these failures concern the event.
        for process in 0..2 {
            deployment.invoke(process, &[record("next", EVENT)]);
        }
        assert_eq!(deployment.ports.requests(), 12, "{status}");
    }
}

#[test]
fn a_slow_destination_is_known_to_all() {
    let deployment = Deployment::new(2, &[answers(200).after_ms(5_000)]);
    let slow_lane = |process| {
        let sent = deployment.invoke(process, &[due()]);
        matches!(&sent[..], [(QueueName::Slow, _)])
    };
    assert!(slow_lane(0), "abandoned");
    assert_eq!(deployment.state().slow.map(|slow| slow.lasts_ms), Some(slow::LASTS_MS));
    assert_eq!(deployment.state().attempts.last().map(|attempt| attempt.duration_ms), Some(2_000));
    let before = deployment.ports.requests();
    assert!(slow_lane(1), "without an attempt");
    assert_eq!(deployment.ports.requests(), before);
}

#[test]
fn without_the_table_each_process_goes_on_by_itself_and_writes_later() {
    let deployment = Deployment::new(2, &[&vec![answers(503); 11][..], &[answers(200)]].concat());
    deployment.ports.set_table_unreachable(true);
    deployment.fail_ten_times();
    assert!(!deployment.attempts(0), "what it knows itself still counts");
    let asked = deployment.ports.table_requests();
    assert!(!deployment.attempts(0));
    deployment.ports.advance_ms(5_000);
    assert!(!deployment.attempts(0));
    assert_eq!(deployment.ports.table_requests(), asked, "the table is left alone for a while");
    deployment.ports.advance_ms(5_000);
    assert!(deployment.attempts(0), "the probe");
    deployment.ports.advance_ms(30_000);
    deployment.ports.set_table_unreachable(false);
    assert!(deployment.attempts(0), "recovered");
    assert!(deployment.state().is_healthy());
}

#[test]
fn news_that_cannot_be_used_are_no_news_and_are_not_read_by_each_invocation() {
    for text in ["not JSON", r#"{"v":2,"anything":true}"#] {
        let deployment = Deployment::new(1, &[]);
        let unusable = Entry { text: text.to_owned(), expires_ms: None };
        deployment.ports.set_entry(&ItemKey::new(NEWS, "1".to_owned()), &unusable);
        for number in 0..3 {
            deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
        }
        assert_eq!((deployment.ports.requests(), deployment.ports.table_requests()), (3, 1));
    }
}

#[test]
fn an_item_of_a_newer_version_is_not_replaced() {
    let deployment = Deployment::new(1, &[answers(503)]);
    let newer = r#"{"v":2,"anything":true}"#;
    let entry = Entry { text: newer.to_owned(), expires_ms: None };
    deployment.ports.set_entry(&item(), &entry);
    deployment.fail_ten_times();
    assert_eq!(deployment.ports.entry_text(&item()).as_deref(), Some(newer));
    assert!(!deployment.attempts(0));
}

/// An operator changes the state of the destination, and writes the news of it.
fn operate(deployment: &Deployment, change: fn(DestinationState, u64) -> DestinationState) {
    let (ports, now_ms) = (&deployment.ports, deployment.ports.now_ms());
    let stored = ports.entry_text(&item());
    let before = stored.map(|text| DestinationState::read(text.as_bytes()).expect("it is one"));
    let state = before.clone().unwrap_or_else(|| {
        DestinationState::healthy("https://s0.example.com/", "shop/orders/s0", now_ms)
    });
    let state = change(state, now_ms);
    ports.set_entry(&item(), &state.entry());
    for news in News::of_change(key(), before.as_ref(), &state) {
        ports.set_entry(&news.item(), &news.entry());
    }
}

#[test]
fn an_operator_who_asks_for_a_probe_gets_one_from_processes_that_defer_deliveries() {
    let then = [answers(503), answers(503), answers(503), answers(200)];
    let deployment = Deployment::after_ten_failures(1, &then);
    for probation_s in [10, 20, 40] {
        deployment.ports.advance_ms(probation_s * 1_000);
        assert!(deployment.attempts(0), "the probe");
    }
    assert!(!deployment.attempts(0), "the probation lasts 80 seconds");
    deployment.ports.advance_ms(1_000);
    operate(&deployment, DestinationState::probed_now);
    deployment.ports.advance_ms(31_000);
    assert!(deployment.attempts(0), "the process has read the news");
}

#[test]
fn a_switch_that_only_the_news_know_is_not_believed_while_the_table_answers() {
    let healthy = DestinationState::healthy("https://s0.example.com/", "shop/orders/s0", 0);
    let disabled = healthy.disabled_by_operator(0);
    for is_reached in [true, false] {
        let deployment = Deployment::new(1, &[answers(200)]);
        let [_, switch] = News::of_state(key(), &disabled, deployment.ports.now_ms());
        deployment.ports.set_entry(&switch.item(), &switch.entry());
        let elsewhere = Record { topic: Some("shop/others".to_owned()), ..record("m", EVENT) };
        deployment.invoke(0, &[elsewhere]);
        deployment.ports.set_table_unreachable(!is_reached);
        assert_eq!(deployment.attempts(0), is_reached);
        assert_eq!(deployment.attempts(0), is_reached);
    }
}

#[test]
fn a_switch_that_could_not_be_told_is_told_by_a_later_invocation() {
    let mut ends = destination();
    ends.destination.disable = Some(Disable { after_ms: 10_000 });
    let deployment = Deployment::with(FakePorts::new(catalogue_of([ends])), 2, &[answers(503)]);
    deployment.fail_ten_times();
    deployment.ports.set_news_refused(true);
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0), "the probe");
    assert!(deployment.state().disabled.is_some());
    assert!(!deployment.news().iter().any(|news| news.contains("switch")));
    deployment.ports.set_news_refused(false);
    deployment.ports.advance_ms(30_000);
    deployment.invoke(0, &[due()]);
    let sent = deployment.invoke(1, &[due()]);
    assert!(matches!(&sent[..], [(QueueName::DeadLetter, _)]), "{sent:?}");
}

#[test]
fn while_the_table_cannot_be_reached_one_line_a_minute_says_so() {
    for hangs in [false, true] {
        let ports = FakePorts::new(catalogue_of([destination()]));
        let ports = if hangs { ports.with_hanging(Hanging::Table) } else { ports };
        ports.set_table_unreachable(!hangs);
        let deployment = Deployment::with(ports, 1, &[answers(200)]);
        let began_ms = deployment.ports.now_ms();
        let lines = log_lines(tracing::Level::WARN, || {
            let mut number = 0;
            while deployment.ports.now_ms() < began_ms + 5 * MINUTE_MS {
                deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
                deployment.ports.advance_ms(1_000);
                number += 1;
            }
            assert_eq!(deployment.ports.requests(), number);
        });
        let is_it = |line: &&Value| line["message"] == "table.unreachable";
        assert_eq!(lines.iter().filter(is_it).count(), 5, "{lines:?}");
    }
}

#[test]
fn deliveries_to_a_disabled_destination_become_dead_letters_due_or_not() {
    let deployment = Deployment::new(1, &[answers(200)]);
    operate(&deployment, DestinationState::disabled_by_operator);
    let due_ms = deployment.ports.now_ms() + HOUR_MS;
    let not_due = Delivery { attempts: 1, due_ms, ..delivery("shop/orders/s0") };
    for record in [due(), retry_record(&not_due)] {
        let sent = deployment.invoke(0, &[record]);
        let [(QueueName::DeadLetter, message)] = &sent[..] else { panic!("{sent:?}") };
        let Attribute::DeadLetter(text) = &message.attribute else { panic!("{message:?}") };
        assert!(text.contains("DestinationDisabled"), "{text}");
    }
    assert_eq!(deployment.ports.requests(), 0);
    operate(&deployment, DestinationState::enabled);
    deployment.ports.advance_ms(30_000);
    assert!(deployment.invoke(0, &[due()]).is_empty());
    assert_eq!(deployment.ports.requests(), 1);
}

#[test]
fn a_reply_goes_to_its_address_while_the_destination_is_disabled() {
    let reply = ReplyTo::Address("https://replies.example.com/".parse().expect("an address"));
    let replying = Subscription { reply: Some(reply), ..destination() };
    let deployment = Deployment::with(FakePorts::new(catalogue_of([replying])), 1, &[]);
    operate(&deployment, DestinationState::disabled_by_operator);
    let reply = Delivery { target: DeliveryTarget::Reply, ..delivery("shop/orders/s0") };
    assert_eq!(deployment.invoke(0, &[retry_record(&reply)]), []);
    assert_eq!(deployment.ports.requests(), 1);
}

/// A deployment that publishes notices about destinations to shop/notices, whose only subscription
/// is s9.
fn with_notices(reactions: &[Reaction]) -> Deployment {
    let mut listening = subscription("shop/notices/s9");
    listening.destination.probation = true;
    let mut catalogue = catalogue_of([destination(), listening]);
    catalogue.notices_go_to("shop/notices".parse().expect("a topic"));
    Deployment::with(FakePorts::new(catalogue), 2, reactions)
}

/// A deployment whose s9 refuses every notice.
fn with_notices_refused() -> Deployment {
    let mut listening = subscription("shop/notices/s9");
    listening.destination.probation = true;
    let mut catalogue = catalogue_of([listening]);
    catalogue.notices_go_to("shop/notices".parse().expect("a topic"));
    Deployment::with(FakePorts::new(catalogue).with_status(503), 1, &[])
}

/// Type and id of each notice that was sent.
fn notices(sent: &[(QueueName, Message)]) -> Vec<(String, String)> {
    let event = |message: &Message| -> serde_json::Value {
        serde_json::from_str(&message.body).expect("a notice is JSON")
    };
    let text = |event: &serde_json::Value, member: &str| {
        event[member].as_str().expect("it has both").to_owned()
    };
    let published = |(_, message): &&(QueueName, Message)| {
        matches!(message.attribute, Attribute::Publication(_))
    };
    let events = sent.iter().filter(published).map(|(_, message)| event(message));
    events.map(|notice| (text(&notice, "type"), text(&notice, "id"))).collect()
}

#[test]
fn a_subscription_to_notices_gets_one_event_for_each_change() {
    let deployment = with_notices(&[&vec![answers(503); 10][..], &[answers(200)]].concat());
    deployment.fail_ten_times();
    let sent = deployment.ports.sent();
    let found = notices(&sent);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "dev.lastmile.destination.failing");
    assert!(deployment.state().notices.is_empty(), "it is not sent again");
    deployment.ports.advance_ms(10_000);
    let sent = deployment.invoke(0, &[due()]);
    assert_eq!(notices(&sent)[0].0, "dev.lastmile.destination.recovered");
    let (queue, notice) = sent.last().expect("it was sent").clone();
    let Attribute::Publication(_) = &notice.attribute else { panic!("{notice:?}") };
    let before = deployment.ports.requests();
    let record = Record {
        queue,
        body: notice.body.clone(),
        attribute: Some(notice.attribute.clone()),
        topic: notice.topic.as_ref().map(ToString::to_string),
        ..record("notice", EVENT)
    };
    assert!(deployment.invoke(1, &[record]).is_empty());
    assert_eq!(deployment.ports.requests(), before + 1);
    let last = deployment.ports.posts().pop().expect("a request");
    assert_eq!(last.url.host_str(), Some("s9.example.com"));
}

#[test]
fn no_credential_and_no_hidden_path_is_in_a_notice_or_in_what_processes_share() {
    let mut hidden = destination();
    let url = "https://s0.example.com/T0/path-t0ken?code=query-t0ken";
    hidden.destination.url = url.parse().expect("an address");
    hidden.destination.hide_path = true;
    let item = DestinationKey::new("shop", &hidden.destination.url).health_item("shop");
    let mut catalogue = catalogue_of([hidden, subscription("shop/notices/s9")]);
    catalogue.notices_go_to("shop/notices".parse().expect("a topic"));
    let echo = answers(503).with_body("no path-t0ken, and no query-t0ken either");
    let deployment = Deployment::with(FakePorts::new(catalogue), 1, &vec![echo; 10]);
    deployment.fail_ten_times();
    let sent = deployment.ports.sent();
    assert_eq!(notices(&sent).len(), 1);
    let state = deployment.ports.entry_text(&item).expect("it is there");
    for text in [format!("{sent:?}"), state] {
        assert!(text.contains("s0.example.com") && !text.contains("t0ken"), "{text}");
    }
    assert!(!deployment.news().concat().contains("t0ken"), "{:?}", deployment.news());
}

#[test]
fn no_notice_is_sent_about_the_destination_of_notices() {
    let deployment = with_notices_refused();
    let ports = deployment.ports.clone();
    for number in 0..10 {
        let of_notices = Record {
            topic: Some("shop/notices".to_owned()),
            ..record(&format!("m{number}"), EVENT)
        };
        deployment.invoke(0, &[of_notices]);
    }
    assert_eq!(ports.requests(), 10);
    assert!(notices(&ports.sent()).is_empty());
}

#[test]
fn a_notice_that_no_queue_takes_is_sent_later_with_the_same_id() {
    let deployment = with_notices(&[&vec![answers(503); 10][..], &[answers(200)]].concat());
    for number in 0..9 {
        deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
    }
    deployment.ports.clone().with_queue_fault(QueueName::Retry, Fault::Refuses);
    let (records, now_ms) = ([record("m9", EVENT)], deployment.ports.now_ms());
    let deadline = Deadline::new(now_ms, now_ms + 120_000);
    deployment.ports.run(deployment.processes[0].dispatch.handle(&records, &deadline));
    let waiting = deployment.state().notices;
    assert_eq!(waiting.len(), 1);
    deployment.ports.repair_queues();
    deployment.ports.advance_ms(10_000);
    let sent = deployment.invoke(0, &[due()]);
    let found = notices(&sent);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].1, waiting[0].id.to_string());
}
