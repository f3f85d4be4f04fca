//! A record that crashes its function every time. It harms other records at most once, and becomes
//! a dead letter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{ARRIVAL_LIMIT, Deployment, event, event_id, on_deployment};
use crate::processes::kill_the_function_at;

/// The path whose requests kill the function that makes them.
const CRASHING: &str = "/crashing";
/// Records published together with the one that crashes.
const HEALTHY: usize = 9;
/// `maxReceiveCount` of the isolation queue.
const ISOLATED_RECEIVES: usize = 10;

impl Deployment {
    /// Publishes one record that crashes and nine healthy ones, so that one batch can hold all.
    async fn publish_beside_a_crashing_one(&self) {
        self.subscriber.hold(CRASHING);
        self.stack.publish("shop/crashing", &event("crashing")).await;
        for number in 0..HEALTHY {
            self.stack.publish("shop/beside", &event(&format!("beside-{number}"))).await;
        }
    }

    /// Waits for this many requests of the crashing event, and kills the function that waits for
    /// the last response.
    async fn crash(&self, time: usize, limit: Duration) {
        let arrivals =
            self.subscriber.arrived(CRASHING, limit, |arrivals| arrivals.len() >= time).await;
        kill_the_function_at(arrivals[time - 1].from, self.subscriber.address);
    }
}

#[test]
fn a_record_that_crashes_the_function_is_alone_the_next_time() {
    on_deployment(|deployment| async move {
        deployment.publish_beside_a_crashing_one().await;
        deployment.crash(1, ARRIVAL_LIMIT).await;
        // All records of the batch are redelivered after the visibility timeout of 30 s, and
        // isolated.
        let arrivals = deployment
            .subscriber
            .arrived("/beside", ARRIVAL_LIMIT, |arrivals| {
                let answered = arrivals.iter().filter(|arrival| arrival.answered.is_some());
                answered.map(event_id).collect::<BTreeSet<_>>().len() == HEALTHY
            })
            .await;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        arrivals.iter().for_each(|arrival| *times.entry(event_id(arrival)).or_default() += 1);
        assert!(times.values().all(|times| *times <= 2), "{times:?}");
        deployment.crash(2, ARRIVAL_LIMIT).await;
        deployment.subscriber.release(CRASHING);
    });
}

#[test]
#[ignore = "takes five minutes: each of ten receives waits until its invocation would have ended"]
fn a_record_that_crashes_the_function_every_time_ends_after_ten_receives_in_isolation() {
    on_deployment(|deployment| async move {
        deployment.publish_beside_a_crashing_one().await;
        for time in 1..=1 + ISOLATED_RECEIVES {
            deployment.crash(time, ARRIVAL_LIMIT).await;
        }
        let letters = loop {
            let letters = deployment.stack.dead_letters("shop/crashing/").await;
            if !letters.is_empty() {
                break letters;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let [(_, letter)] = letters.as_slice() else { panic!("one dead letter: {letters:#?}") };
        let properties = &letter["deadletterProperties"];
        assert_eq!(properties["deadletterreasoncode"], "ProcessingFailed");
        assert_eq!(deployment.subscriber.arrivals(CRASHING).len(), 1 + ISOLATED_RECEIVES);
        deployment.subscriber.release(CRASHING);
    });
}
