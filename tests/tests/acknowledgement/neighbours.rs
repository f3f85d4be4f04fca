//! Another namespace subscribes to the same address with harmful settings. The first namespace is not affected.

use delivery::delivery::outcome::Outcome;
use delivery::ports::{Attribute, Clock as _, Message, QueueName, Record};
use delivery::subscription::catalogue::Catalogue;
use delivery::time::duration::MINUTE_MS;
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::FakePorts;
use lastmile_tests::fake_ports::reactions::{Reaction, answers, times_out_after};

use crate::examples::{EVENT, carried, catalogue_from, container, record};

/// Events that only the neighbour publishes.
const RIVAL: &str = r#"{"specversion":"1.0","id":"1","source":"rival","type":"t"}"#;
const ADDRESS: &str = "https://s0.example.com/in";
const INVOCATIONS: u64 = 30;

/// The first tenant's share of one invocation: the time of each request, and each message with its wait.
#[derive(Debug, PartialEq)]
struct Noticed {
    requests_ms: Vec<u64>,
    sent: Vec<(QueueName, u64, u32, Vec<Option<Outcome>>)>,
}

/// A neighbour.
struct Rival {
    name: &'static str,
    /// Further settings of its destination.
    settings: &'static str,
    /// The reaction to its events.
    reaction: Reaction,
    /// The queue that some of its deliveries reach.
    ends_in: QueueName,
}

fn catalogue(rival: Option<&Rival>) -> Catalogue {
    let subscription = |namespace: &str, more: &str| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: {namespace}, topic: orders, name: s0}}\n\
             spec: {{destination: {{url: '{ADDRESS}'{more}}}, retry: {{jitterPercent: 0}}}}\n"
        )
    };
    let rival_text = rival.map_or(String::new(), |rival| subscription("rival", rival.settings));
    let text = subscription("shop", "") + &rival_text;
    catalogue_from(&text)
}

/// The first tenant's share of many invocations, half an hour apart at most.
fn noticed_beside(rival: Option<&Rival>) -> Vec<Noticed> {
    let ports = FakePorts::new(catalogue(rival));
    let ports = match rival {
        Some(rival) => {
            ports.with_reactions(r#""source":"rival""#, std::slice::from_ref(&rival.reaction))
        }
        None => ports,
    };
    // Every third event of the first tenant fails.
    let own = [answers(200).after_ms(30), answers(500).after_ms(40), answers(200).after_ms(20)];
    let own: Vec<Reaction> = own.iter().cycle().take(10_000).cloned().collect();
    let ports = ports.with_reactions("s0.example.com", &own);
    let processes = [(); 2].map(|()| Dispatch::new(ports.clone(), container(), None));
    let invoke = |number| {
        let process = &processes[usize::from(number % 3 == 0)];
        let noticed = invoke(&ports, process, rival.is_some());
        ports.advance_ms(if number < INVOCATIONS / 2 { 500 } else { 29 * MINUTE_MS });
        noticed
    };
    let noticed = (0..INVOCATIONS).map(invoke).collect();
    if let Some(Rival { name, ends_in, .. }) = rival {
        let is_rivals = |(queue, message): &(QueueName, Message)| {
            queue == ends_in && message.body.contains("rival")
        };
        assert!(ports.sent().iter().any(is_rivals), "{name}: it is no such neighbour");
    }
    noticed
}

fn invoke(ports: &FakePorts, process: &Dispatch<FakePorts>, has_rival: bool) -> Noticed {
    let (began_ms, now_ms) = (ports.elapsed_ms(), ports.now_ms());
    let (posts, sent) = (ports.timed_posts().len(), ports.sent().len());
    let rivals = (0..12).map(|number| {
        let topic = Some("rival/orders".to_owned());
        Record { topic, ..record(&format!("rival{number}"), RIVAL) }
    });
    let own = (0..12).map(|number| record(&format!("m{number}"), EVENT));
    let records: Vec<Record> = rivals.filter(|_| has_rival).chain(own).collect();
    let deadline = Deadline::new(now_ms, now_ms + 120_000);
    assert_eq!(ports.run(process.handle(&records, &deadline)), [""; 0]);
    let posts = ports.timed_posts().split_off(posts);
    let is_own = |body: &[u8]| !String::from_utf8_lossy(body).contains("rival");
    let own = posts
        .iter()
        .filter(|(_, request)| is_own(&request.body))
        .map(|(at_ms, _)| at_ms - began_ms);
    let mut requests_ms: Vec<u64> = own.collect();
    requests_ms.sort_unstable();
    let sent = ports.sent().split_off(sent);
    let own_messages = sent.iter().filter(|(_, message)| !message.body.contains("rival"));
    Noticed { requests_ms, sent: own_messages.map(summary).collect() }
}

/// Queue, wait, attempts and outcomes of a message.
fn summary((queue, message): &(QueueName, Message)) -> (QueueName, u64, u32, Vec<Option<Outcome>>) {
    let Attribute::Delivery(_) = &message.attribute else {
        return (*queue, message.wait_ms, 0, Vec::new());
    };
    let delivery = carried(message);
    let outcomes = delivery.history.first().iter().map(|entry| entry.outcome.known());
    (*queue, message.wait_ms, delivery.attempts, outcomes.collect())
}

fn rivals() -> [Rival; 9] {
    use QueueName::{DeadLetter, Retry, Slow};
    let rival = |name, settings, reaction, ends_in| Rival { name, settings, reaction, ends_in };
    let usual = || answers(200).after_ms(20);
    let consent = ", consent: {handshake: cloudevents, origin: events.example.com, rate: 120}";
    [
        rival("a timeout of 50 ms", ", timeout: PT0.05S", times_out_after(50), Retry),
        rival("slow after a millisecond", ", slowAfter: PT0.001S", usual(), Slow),
        rival(
            "a wrong token",
            ", auth: {bearer: {token: 'env:WRONG'}}",
            answers(401).after_ms(20),
            DeadLetter,
        ),
        rival("dead-letters all", ", disable: {after: PT1H}", answers(503), DeadLetter),
        rival("one at once", ", maxConcurrency: 1", usual(), Retry),
        rival("one a second", ", maxPerSecond: 1", usual(), Retry),
        rival("a consent that is refused", consent, usual(), Retry),
        rival("Retry-After", "", answers(429).with_retry_after("3600"), Retry),
        rival("hangs", "", times_out_after(30_000), Slow),
    ]
}

#[test]
fn no_setting_of_another_namespace_affects_deliveries_to_the_same_address() {
    let alone = noticed_beside(None);
    assert!(alone.iter().all(|noticed| noticed.requests_ms.len() == 12 && noticed.sent.len() == 4));
    for rival in rivals() {
        let beside = noticed_beside(Some(&rival));
        for (number, (alone, beside)) in alone.iter().zip(&beside).enumerate() {
            assert_eq!(alone, beside, "{}, invocation {number}", rival.name);
        }
    }
}
