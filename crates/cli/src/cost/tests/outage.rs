//! The cost of a day's outage, against arithmetic by hand.

use super::*;
use crate::cost::cost_items::Total;
use crate::cost::outage::Outage;
use crate::cost::pause::REPLAY_DOLLARS;

fn outage(plan: &Plan, subscription: &Subscription) -> Outage {
    estimate(plan, subscription).outage.expect("some deliveries wait")
}

fn amount(items: &[CostItem], what: &str) -> u64 {
    items.iter().find(|item| item.what == what).map_or(0, |item| item.thousandths / 1_000)
}

#[test]
fn with_probation_a_million_deliveries_cost_their_messages_and_no_attempts() {
    let of_load = |events| {
        let mut plan = traffic(|of| of.events = events);
        plan.deployment.batch_window_s = 1;
        outage(&plan, &native())
    };
    let outage = of_load(1e6);
    for (what, wanted) in [
        // 1,000,000 × 165 messages, of which a window gathers many: ten in a request, a hundred in an invocation.
        ("waits sent", 16_500_000),
        ("waits received", 16_500_000),
        ("waits deleted", 16_500_000),
        ("fair queues", 49_500_000),
        ("dispatch invoked", 1_650_000),
        ("requests to destinations", 0),
    ] {
        assert_eq!(amount(&outage.waiting, what), wanted, "{what}");
    }
    assert!(amount(&outage.waiting, "table written") > 0, "one destination fails");
    assert_eq!(amount(&outage.dead_letters, "dead letters written"), 1_000_000);
    assert_eq!(
        format!("{:?}", of_load(0.0)),
        format!("{outage:?}"),
        "they wait already, whatever is published"
    );
}

#[test]
fn without_probation_they_cost_what_their_policy_fits_into_the_day() {
    let mut subscription = native();
    subscription.destination.probation = false;
    subscription.retry.max_attempts = 3;
    let outage = outage(&plan(), &subscription);
    // Two waits of one message each, sent and received alone.
    assert_eq!(amount(&outage.waiting, "waits sent"), 2_000_000);
    assert_eq!(amount(&outage.waiting, "waits received"), 2_000_000);
    assert_eq!(amount(&outage.waiting, "table written"), 0, "no process says that it fails");
    subscription.retry.max_attempts = 1;
    assert!(estimate(&plan(), &subscription).outage.is_none(), "nothing waits");
}

#[test]
fn a_million_deliveries_of_a_pause_cost_a_blob_each_and_their_replay_shares_requests() {
    let pause = estimate(&plan(), &native()).pause;
    for (what, wanted) in [
        ("dead letters sent", 100_000),
        ("deadletter invoked", 1_000_000),
        ("dead letters written", 1_000_000),
        ("dead letters tagged", 1_000_000),
    ] {
        assert_eq!(amount(&pause.set_aside, what), wanted, "{what}");
    }
    for (what, wanted) in [
        ("dead letters read", 2_000_000),
        ("dead letters listed", 1_000),
        ("ledger written", 200_000),
        ("deliveries sent", 100_000),
        ("dispatch invoked", 100_000),
        ("deadletter invoked", 100_000),
        ("ends written", 100_000),
    ] {
        assert_eq!(amount(&pause.replay, what), wanted, "{what}");
    }
    let dollars =
        |items: &[CostItem]| (Total::of(items, 1e6).day + 500_000_000_000) / 1_000_000_000_000;
    let dollars = [dollars(&pause.set_aside), dollars(&pause.replay)];
    assert_eq!(dollars, [7, REPLAY_DOLLARS.into()]);
}
