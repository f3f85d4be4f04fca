//! A probe that is admitted may have to wait. Another process then probes within a minute.
//!
//! A destination is down and then up again. Process 0 gets the delivery that is due as the probe, and something keeps it
//! from being attempted. From then on, process 1 gets a due delivery every five seconds.

use delivery::delivery::Delivery;
use delivery::ports::{Clock as _, QueueName, Record};
use delivery::subscription::{Concurrency, Subscription};
use delivery::table::SlotQueue;
use delivery::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};
use lastmile_tests::fake_ports::reactions::{Reaction, answers};
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};
use uuid::Uuid;

use crate::examples::{
    EVENT, catalogue_of, delivery, limits_item, record, retry_record, subscription,
    subscriptions_with_destination,
};
use crate::process::Process;

/// Another probe has to follow within this time.
const WITHIN_MS: u64 = MINUTE_MS;
/// A process gets a due delivery this often.
const EVERY_MS: u64 = 5 * SECOND_MS;

/// Two processes, and a destination on probation whose next probe is due.
struct Deployment {
    ports: FakePorts,
    processes: [Process; 2],
}

impl Deployment {
    /// The destination answers ten requests with 503, and the others like this.
    fn with(ports: FakePorts, then: &[Reaction]) -> Self {
        let reactions = [&vec![answers(503); 10][..], then].concat();
        let ports = ports.with_reactions("s0.example.com", &reactions);
        let processes = [(); 2].map(|()| Process::new(ports.clone()));
        let deployment = Self { ports, processes };
        for number in 0..10 {
            deployment.invoke(0, &[record(&format!("m{number}"), EVENT)]);
        }
        assert_eq!(deployment.ports.requests(), 10);
        // Process 1 learns of it.
        deployment.ports.advance_ms(1_000);
        deployment.invoke(1, &[due(100)]);
        assert_eq!(deployment.ports.requests(), 10);
        deployment.ports.advance_ms(10_000);
        deployment
    }

    fn new(subscription: Subscription, then: &[Reaction]) -> Self {
        Self::with(FakePorts::new(catalogue_of([subscription])), then)
    }

    fn invoke(&self, process: usize, records: &[Record]) {
        self.processes[process].invoke(records);
    }

    /// Asserts that process 0 makes the probe, or process 1 another one soon.
    fn assert_probed(&self, despite: &str) {
        let before = self.ports.requests();
        self.invoke(0, &[due(1)]);
        if self.ports.requests() == before {
            self.assert_another_probe_follows(despite);
        }
    }

    /// Asserts that process 1 makes a request soon, though the probe of process 0 has to wait.
    fn assert_another_probe_follows(&self, after: &str) {
        let (before, began_ms) = (self.ports.requests(), self.ports.now_ms());
        for number in 0..200 {
            self.invoke(1, &[due(200 + number)]);
            if self.ports.requests() > before {
                let took_ms = self.ports.now_ms() - began_ms;
                assert!(took_ms <= WITHIN_MS, "{after}: after {took_ms} ms");
                return;
            }
            self.ports.advance_ms(EVERY_MS);
        }
        panic!("{after}: no probe in {} ms", self.ports.now_ms() - began_ms);
    }
}

fn destination() -> Subscription {
    let mut subscription = subscription("shop/orders/s0");
    subscription.destination.probation = true;
    subscription
}

/// A due delivery of this number.
fn due(number: u128) -> Record {
    let id = Uuid::from_u128(number);
    retry_record(&Delivery { id, attempts: 1, ..delivery("shop/orders/s0") })
}

#[test]
fn a_subscription_without_probation_is_attempted_though_its_destination_is_on_probation() {
    let mut without = subscription("shop/invoices/s1");
    without.destination.url = destination().destination.url;
    without.destination.probation = false;
    let ports = FakePorts::new(catalogue_of([destination(), without]));
    let deployment = Deployment::with(ports, &[answers(503), answers(200)]);
    deployment.invoke(0, &[due(1)]);
    assert_eq!(deployment.ports.requests(), 11, "the probe fails");
    deployment.invoke(0, &[due(2)]);
    assert_eq!(deployment.ports.requests(), 11, "the next probe is not due");
    let other = delivery("shop/invoices/s1");
    deployment.invoke(0, &[retry_record(&Delivery { attempts: 1, ..other })]);
    assert_eq!(deployment.ports.requests(), 12, "without probation");
}

#[test]
fn a_process_that_loses_the_claim_of_the_probe_probes_soon_afterwards() {
    let deployment = Deployment::new(destination(), &[answers(200)]);
    deployment.ports.overtake(usize::MAX);
    deployment.invoke(0, &[due(1)]);
    assert_eq!(deployment.ports.requests(), 10, "another process was faster");
    deployment.ports.overtake(0);
    for number in 0..WITHIN_MS / EVERY_MS {
        deployment.ports.advance_ms(EVERY_MS);
        deployment.invoke(0, &[due(300 + u128::from(number))]);
    }
    assert!(deployment.ports.requests() > 10, "this process does not wait for its own probe");
}

#[test]
fn a_probe_is_made_soon_though_all_permits_are_taken() {
    let mut limited = destination();
    limited.destination.max_concurrency = Concurrency::of_all(1);
    let item = limits_item(&limited);
    let deployment = Deployment::new(limited, &[answers(200)]);
    deployment.ports.give_permits_to_another(&item, 1, 10_000);
    deployment.assert_probed("a permit");
}

#[test]
fn a_probe_is_made_soon_though_all_slots_are_taken_for_an_hour() {
    let mut limited = destination();
    limited.destination.max_per_second = Some(1);
    let item = limits_item(&limited);
    let deployment = Deployment::new(limited, &[answers(200)]);
    deployment.ports.give_places_to_others(&item, SlotQueue::Slots, 3_600, 1_000_000);
    deployment.assert_probed("a slot");
}

#[test]
fn another_probe_follows_a_probe_that_waits_for_a_consent() {
    let consent = "consent: {handshake: cloudevents, origin: events.example.com, rate: 120}";
    let ports = FakePorts::new(subscriptions_with_destination(consent));
    ports.set_consent_headers(&[("allowed-origin", "events.example.com")]);
    let deployment = Deployment::with(ports, &[answers(200)]);
    // The granted consent cannot be read while the probe is due.
    deployment.ports.set_consents_unreadable(true);
    deployment.ports.advance_ms(DAY_MS);
    let before = deployment.ports.requests();
    deployment.invoke(0, &[fresh(1, &deployment.ports)]);
    assert_eq!(deployment.ports.requests(), before, "it waits");
    deployment.ports.set_consents_unreadable(false);
    let began_ms = deployment.ports.now_ms();
    while deployment.ports.requests() == before {
        deployment.ports.advance_ms(EVERY_MS);
        deployment.invoke(1, &[fresh(2, &deployment.ports)]);
        let took_ms = deployment.ports.now_ms() - began_ms;
        assert!(took_ms <= WITHIN_MS, "after {took_ms} ms");
    }
}

/// A due delivery that was published now.
fn fresh(number: u128, ports: &FakePorts) -> Record {
    let (id, published_ms) = (Uuid::from_u128(number), ports.now_ms());
    let delivery = Delivery {
        id,
        published_ms,
        starts_ms: published_ms,
        attempts: 1,
        ..delivery("shop/orders/s0")
    };
    retry_record(&Delivery { due_ms: published_ms, ..delivery })
}

#[test]
fn another_probe_follows_a_probe_that_waits_for_a_retry_after_that_came_meanwhile() {
    let mut limited = destination();
    limited.destination.max_concurrency = Concurrency::of_each(1);
    let asks = answers(429).with_retry_after("600").after_ms(1_000);
    let deployment = Deployment::new(limited, &[asks, answers(200)]);
    // The last attempt of a delivery before its time to live ends; the probe waits for its end.
    let published_ms = NOW_MS + deployment.ports.elapsed_ms() + 3_000 - DAY_MS;
    let last = retry_record(&Delivery {
        published_ms,
        starts_ms: published_ms,
        ..delivery("shop/orders/s0")
    });
    deployment.invoke(0, &[last, due(1)]);
    assert_eq!(deployment.ports.requests(), 11, "the probe was not made");
    deployment.assert_another_probe_follows("a Retry-After");
}

#[test]
fn another_probe_follows_a_probe_for_which_the_process_has_no_time() {
    let deployment = Deployment::with(
        FakePorts::new(catalogue_of([destination(), subscription("shop/others/s1")])),
        &[answers(200)],
    );
    // Time for the first attempt only, which the other subscription gets.
    let other = Record { topic: Some("shop/others".to_owned()), ..record("other", EVENT) };
    deployment.processes[0].invoke_for(9_500, &[other, due(1)]);
    assert_eq!(deployment.ports.requests(), 11);
    deployment.assert_another_probe_follows("no time");
}

#[test]
fn another_probe_follows_a_probe_that_moves_to_the_slow_lane() {
    let deployment = Deployment::new(destination(), &[answers(200)]);
    // The lane is slower than its messages: the delivery that is to probe is received there later, or never.
    let moved = Delivery { abandoned: true, id: Uuid::from_u128(1), ..delivery("shop/orders/s0") };
    deployment.invoke(0, &[retry_record(&moved)]);
    assert_eq!(deployment.ports.requests(), 10);
    let sent = deployment.ports.sent();
    assert!(matches!(sent.last(), Some((QueueName::Slow, _))), "{sent:?}");
    deployment.assert_another_probe_follows("the slow lane");
}

#[test]
fn another_probe_follows_a_probe_that_panics() {
    let deployment = Deployment::new(destination(), &[answers(200)]);
    deployment.ports.clone().with_one_panic();
    deployment.invoke(0, &[due(1)]);
    deployment.assert_another_probe_follows("a panic");
}
