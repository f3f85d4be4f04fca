//! The secret policy of a deployment keeps secrets from hosts that it does not list. It also
//! applies to a subscription whose author may not write the policy.

use delivery::ports::QueueName;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::secret_policy::{SecretPolicy, SecretRule};
use lastmile_tests::fake_ports::FakePorts;

use super::json_log::log_lines;
use crate::examples::{
    ENDS_MS, EVENT, carried, dispatch, record, retry_record, subscriptions,
    subscriptions_with_destination,
};

/// The settings of a destination that use a secret.
const SENDING: [&str; 4] = [
    "headers: [{name: x-token, secret: 'env:TOKEN'}]",
    "auth: {bearer: {token: 'env:TOKEN'}}",
    "signing: {secrets: ['env:TOKEN']}",
    "headers: [{name: x-token, secret: 'env:TOKEN'}], consent: {handshake: eventgrid}",
];

/// A policy that allows `env:TOKEN` for this host only.
fn allowing(host: &str) -> SecretPolicy {
    let mut policy = SecretPolicy::default();
    let name = "env:TOKEN".parse().expect("a pattern");
    policy.add(SecretRule { name, hosts: vec![host.parse().expect("a host")] });
    policy
}

fn under(mut catalogue: Catalogue, policy: SecretPolicy) -> FakePorts {
    catalogue.restrict_secrets(policy);
    FakePorts::new(catalogue)
}

#[test]
fn a_forbidden_secret_is_not_sent_and_the_delivery_waits_by_its_schedule_for_a_repaired_policy() {
    for destination in &SENDING[..3] {
        let catalogue = || subscriptions_with_destination(destination);
        let ports = under(catalogue(), allowing("other.example.com"));
        let lines = log_lines(tracing::Level::TRACE, || {
            assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        });
        assert_eq!(ports.requests(), 0, "{destination}");
        let sent = ports.sent();
        let [(QueueName::Retry, message)] = &sent[..] else { panic!("{sent:?}") };
        let waiting = carried(message);
        assert_eq!((waiting.attempts, message.wait_ms), (1, 2_000));
        let attempted = lines.iter().find(|line| line["outcome"] == "Aborted");
        let why = "the secret \"env:TOKEN\" may not be sent to \"s0.example.com\"; SecretPolicy allows other.example.com";
        assert_eq!(attempted.map(|line| &line["why"]), Some(&why.into()), "{lines:?}");

        if destination.starts_with("signing") {
            // The fake value is not a valid signing key.
            continue;
        }
        let ports = under(catalogue(), allowing("*.example.com"));
        ports.advance_ms(2_000);
        assert_eq!(dispatch(&ports, &[retry_record(&waiting)], ENDS_MS), [""; 0]);
        assert_eq!((ports.requests(), ports.sent().len()), (1, 0), "{destination}");
    }
}

#[test]
fn a_validation_does_not_send_a_forbidden_secret_either() {
    for (host, requests) in [("other.example.com", 0), ("s0.example.com", 1)] {
        let ports = under(subscriptions_with_destination(SENDING[3]), allowing(host));
        assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
        assert_eq!((ports.validation_requests().len(), ports.requests()), (requests, 0));
    }
}

#[test]
fn the_newest_policy_counts_also_for_what_an_invocation_began_before_it() {
    let ports = FakePorts::new(subscriptions_with_destination(SENDING[0]));
    let ports = ports.with_later_policy(allowing("other.example.com"));
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (0, 1));
}

#[test]
fn a_request_without_a_secret_is_sent_whatever_the_policy() {
    let mut nothing = SecretPolicy::default();
    nothing.begin();
    let ports = under(subscriptions(1), nothing);
    assert_eq!(dispatch(&ports, &[record("m1", EVENT)], ENDS_MS), [""; 0]);
    assert_eq!((ports.requests(), ports.sent().len()), (1, 0));
}
