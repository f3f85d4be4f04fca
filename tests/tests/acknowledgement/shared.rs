//! What processes tell each other about destinations: one probes, all obey, and storage that does not
//! answer stops nobody.

use delivery::delivery::Delivery;
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::delivery::health::{DestinationKey, slow};
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::Subscription;
use dispatch::{Deadline, Dispatch};

use super::reactions::{Reaction, answers, times_out_after};
use super::{EVENT, delivery, retry_record, subscription};
use crate::fake_ports::{FakePorts, Hanging, catalogue_of, container, record};

/// Processes over the topic shop/orders, whose destination s0 reacts like this.
struct Deployment {
    ports: FakePorts,
    processes: Vec<Dispatch<FakePorts>>,
}

impl Deployment {
    fn new(processes: usize, reactions: &[Reaction]) -> Self {
        let catalogue = catalogue_of([destination(), subscription("shop/others/s1")]);
        Self::with(FakePorts::new(catalogue), processes, reactions)
    }

    fn with(ports: FakePorts, processes: usize, reactions: &[Reaction]) -> Self {
        let ports = ports.with_reactions("s0.example.com", reactions);
        let process = |_| Dispatch::new(ports.clone(), container(), None);
        Self { processes: (0..processes).map(process).collect(), ports }
    }

    /// The first process finds out that the destination is failing: ten events in a row.
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

    /// One invocation of a process; returns what it sent.
    fn invoke(&self, process: usize, records: &[Record]) -> Vec<(QueueName, Message)> {
        let (before, now_ms) = (self.ports.sent().len(), self.ports.now_ms());
        let deadline = Deadline::new(now_ms, now_ms + 120_000);
        let handled = self.processes[process].handle(records, &deadline);
        assert_eq!(self.ports.run(handled), [""; 0]);
        self.ports.sent().split_off(before)
    }

    /// Whether a process attempts a delivery from the retry queue.
    fn attempts(&self, process: usize) -> bool {
        let before = self.ports.requests();
        self.invoke(process, &[due()]);
        self.ports.requests() > before
    }

    fn state(&self) -> DestinationState {
        let document = DestinationKey::of(&destination().destination.url).document();
        let text = self.ports.shared_document(&document).expect("it was written");
        assert!(!text.contains("token"), "{text}");
        DestinationState::read(text.as_bytes()).expect("it is one")
    }

    fn digest(&self) -> String {
        self.ports.shared_document("_destinations/digest.json").unwrap_or_default()
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
    retry_record(&Delivery { attempts: 1, ..delivery("shop/orders/s0") })
}

#[test]
fn while_every_destination_is_healthy_a_process_reads_the_digest_once_and_writes_nothing() {
    let deployment = Deployment::new(1, &[answers(200)]);
    for number in 0..100 {
        deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
        deployment.ports.advance_ms(2_500);
    }
    assert_eq!((deployment.ports.requests(), deployment.ports.shared_requests()), (100, 1));
}

#[test]
fn what_one_process_found_out_the_others_obey_before_their_first_attempt() {
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
    assert!(!deployment.attempts(1), "it has not read the digest again, but asks before it probes");
    deployment.ports.advance_ms(15_000);
    assert!(deployment.attempts(1), "the next probe");
    assert!(!deployment.attempts(0) && !deployment.attempts(2));
}

#[test]
fn while_a_process_probes_no_other_does_until_its_claim_is_over() {
    let deployment = Deployment::after_ten_failures(2, &[times_out_after(1_000)]);
    assert!(!deployment.attempts(1));
    deployment.ports.advance_ms(10_000);
    // The first one claims the probe, and is gone.
    let crashed = deployment.ports.clone().with_one_panic();
    let now_ms = crashed.now_ms();
    let claimed = deployment.state().claim(now_ms, now_ms + 90_000);
    let delivery::delivery::health::shared::Claim::Write(claimed) = claimed else {
        panic!("{claimed:?}")
    };
    crashed.set_shared_document(&document(), &claimed.write());
    let sent = deployment.invoke(1, &[due()]);
    let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((message.wait_ms, deployment.ports.requests()), (10_000, 10));
    deployment.ports.advance_ms(90_000);
    assert!(deployment.invoke(1, &[due()]).len() == 1 && deployment.ports.requests() == 11);
}

fn document() -> String {
    DestinationKey::of(&destination().destination.url).document()
}

#[test]
fn a_recovery_is_known_to_all() {
    let deployment = Deployment::after_ten_failures(2, &[answers(200)]);
    assert!(!deployment.attempts(1));
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0) && deployment.state().is_healthy());
    assert!(!deployment.digest().contains("failing"), "{}", deployment.digest());
    // It asks before it probes, and need not.
    assert!(deployment.attempts(1) && deployment.attempts(1));
}

#[test]
fn a_restart_forgets_nothing() {
    let mut deployment = Deployment::after_ten_failures(1, &[answers(503)]);
    deployment.processes = vec![Dispatch::new(deployment.ports.clone(), container(), None)];
    assert!(!deployment.attempts(0));
}

#[test]
fn a_slow_destination_is_known_to_all() {
    let deployment = Deployment::new(2, &[answers(200).after_ms(5_000)]);
    let slow_lane = |process| {
        let sent = deployment.invoke(process, &[due()]);
        matches!(&sent[..], [(QueueName::Slow, _)])
    };
    assert!(slow_lane(0), "abandoned");
    assert_eq!(deployment.state().slow.map(|slow| slow.lasts_ms), Some(slow::FIRST_MS));
    assert_eq!(deployment.state().attempts.last().map(|attempt| attempt.duration_ms), Some(2_000));
    let before = deployment.ports.requests();
    assert!(slow_lane(1), "without an attempt");
    assert_eq!(deployment.ports.requests(), before);
}

#[test]
fn a_probe_for_which_there_was_no_time_is_returned_to_all() {
    let deployment = Deployment::after_ten_failures(2, &[answers(200)]);
    deployment.ports.advance_ms(10_000);
    let now_ms = deployment.ports.now_ms();
    // Time for the first attempt only, which the other subscription gets.
    let other = Record { topic: Some("shop/others".to_owned()), ..record("other", EVENT) };
    let (records, late) = ([other, due()], Deadline::new(now_ms, now_ms + 9_500));
    let handled = deployment.processes[0].handle(&records, &late);
    assert_eq!((deployment.ports.run(handled), deployment.ports.requests()), (vec![], 11));
    assert!(deployment.state().probe_until_ms.is_none(), "{:?}", deployment.state());
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(1));
}

#[test]
fn without_storage_each_process_goes_on_by_itself_and_writes_later() {
    let deployment = Deployment::new(2, &[&vec![answers(503); 11][..], &[answers(200)]].concat());
    deployment.ports.set_shared_unreachable(true);
    deployment.fail_ten_times();
    assert!(!deployment.attempts(0), "what it knows itself still counts");
    let asked = deployment.ports.shared_requests();
    assert!(!deployment.attempts(0));
    assert_eq!(deployment.ports.shared_requests(), asked, "storage is left alone for a while");
    deployment.ports.advance_ms(10_000);
    assert!(deployment.attempts(0), "the probe");
    deployment.ports.advance_ms(30_000);
    deployment.ports.set_shared_unreachable(false);
    assert!(deployment.attempts(0), "recovered");
    assert!(deployment.state().is_healthy());
}

#[test]
fn storage_that_hangs_delays_an_invocation_by_seconds_and_stops_nothing() {
    let ports = FakePorts::new(catalogue_of([destination()])).with_hanging(Hanging::Shared);
    let deployment = Deployment::with(ports, 1, &[answers(503)]);
    let began_ms = deployment.ports.now_ms();
    deployment.fail_ten_times();
    assert!(deployment.ports.now_ms() - began_ms <= 4_000);
}

#[test]
fn what_a_newer_version_wrote_is_left_as_it_is() {
    let deployment = Deployment::new(1, &[answers(503)]);
    let newer = r#"{"v":2,"anything":true}"#;
    deployment.ports.set_shared_document(&document(), newer.as_bytes());
    deployment.fail_ten_times();
    assert_eq!(deployment.ports.shared_document(&document()).as_deref(), Some(newer));
    assert!(!deployment.attempts(0));
}
