//! The kill campaign. Events are published under load while destinations fail and are slow, queues
//! refuse messages of the functions, and functions are killed. After everything has drained, each
//! delivery of each event was either accepted by its destination or is a stored dead letter.
//!
//! `tests/kill-campaign` runs it, by hand, and `docs/reference/figures/kill-campaign.md` has its
//! figures. It has its own deployment, because a gateway stands between the functions and the
//! emulated AWS.

mod destinations;
pub(crate) mod gateway;
mod ledger;
mod report;
mod subscriptions;
pub(crate) mod table_calls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastmile_tests::emulated::ReservedPort;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::processes::{functions_below, kill, try_kill_the_function_at};
use crate::stack::Stack;
use crate::{event, now};
use destinations::Destinations;
use gateway::{During, Gateway};
use report::{Kill, Report};

/// The number of kills without the variable `KILLS`.
const KILLS: usize = 1_000;
const SEED: u64 = 7;

/// The interval between events. An event in ten has twelve deliveries, the others six at most.
const PUBLISH_EVERY: Duration = Duration::from_millis(250);
const KILL_EVERY: Duration = Duration::from_millis(800);
/// The wait for a call in which a function is to be killed.
const CALL_LIMIT: Duration = Duration::from_secs(3);
/// The queues drain within this time after the last kill. Messages of a killed function return
/// after 30 s. Isolated messages return after as long again, each time.
const DRAIN_LIMIT: Duration = Duration::from_secs(600);
/// Replaces the two hours of the isolation queue, which would delay a record whose function is
/// killed before it shortens them.
const ISOLATION_VISIBILITY_SECONDS: u32 = 60;

/// The moments of the kills, in turn.
const TURNS: [Kill; 10] = [
    Kill::WhileADestinationAnswers,
    Kill::During(During::Sending),
    Kill::During(During::Sent),
    Kill::WhileADestinationAnswers,
    Kill::During(During::Storing),
    Kill::AtAnyTime,
    Kill::During(During::Sent),
    Kill::WhileADestinationAnswers,
    Kill::During(During::Stored),
    Kill::During(During::Sending),
];

#[test]
#[ignore = "takes twenty-five minutes: tests/kill-campaign runs it"]
fn every_event_is_accounted_for_after_a_thousand_kills() {
    let kills = std::env::var("KILLS").map(|kills| kills.parse().expect("a number of kills"));
    let runtime = Runtime::new().expect("a runtime starts");
    let report = runtime.block_on(campaign(kills.unwrap_or(KILLS)));
    println!("{report}");
    let accounts = &report.accounts;
    assert!(report.left.is_empty(), "did not drain: {:?}", report.left);
    assert!(accounts.lost.is_empty(), "lost: {:?}", accounts.lost);
    assert!(accounts.invented.is_empty(), "never published: {:?}", accounts.invented);
}

async fn campaign(kills: usize) -> Report {
    let destinations = Destinations::start(subscriptions::behaviours(), SEED).await;
    let port = ReservedPort::take();
    let gateway = Gateway::start(port.number, SEED).await;
    let file = subscriptions::file(destinations.address);
    let stack = Arc::new(Stack::deploy_at(port, gateway.port, &[], file).await);
    stack.hide_isolated_for(ISOLATION_VISIBILITY_SECONDS).await;
    let started = now();
    let publisher = Publisher::start(&stack);
    let mut report = Report::default();
    kill_functions(kills, &destinations, &gateway, &stack, &mut report).await;
    report.published = publisher.stop().await;
    report.killing = started.elapsed();
    gateway.calm();
    report.left = stack.drained(DRAIN_LIMIT).await;
    report.all = started.elapsed();
    report.sends = gateway.sends();
    report.requests = destinations.requests();
    report.read_log(&stack.server_log());
    let letters = stack.dead_letters("").await;
    report.accounts = ledger::accounts(report.published, destinations.taken(), &letters);
    report
}

/// A task that publishes one event after the other until it is stopped.
struct Publisher {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Publisher {
    fn start(stack: &Arc<Stack>) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(publish(Arc::clone(stack), Arc::clone(&stopped)));
        Self { stopped, task }
    }

    /// Stops publishing and returns the number of published events.
    async fn stop(self) -> usize {
        self.stopped.store(true, Ordering::Relaxed);
        self.task.await.expect("the publisher does not panic")
    }
}

async fn publish(stack: Arc<Stack>, stopped: Arc<AtomicBool>) -> usize {
    let mut ticks = tokio::time::interval(PUBLISH_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut published = 0;
    while !stopped.load(Ordering::Relaxed) {
        ticks.tick().await;
        let (topic, id) = ledger::nth_event(published);
        stack.publish(topic, &event(&id)).await;
        published += 1;
    }
    published
}

async fn kill_functions(
    kills: usize,
    destinations: &Destinations,
    gateway: &Gateway,
    stack: &Stack,
    report: &mut Report,
) {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut ticks = tokio::time::interval(KILL_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut turns = TURNS.into_iter().cycle();
    while report.kills() < kills {
        ticks.tick().await;
        let turn = turns.next().expect("turns are endless");
        let killed = match turn {
            Kill::WhileADestinationAnswers => {
                let waiting = destinations.waiting();
                let chosen = waiting.get(random.random_range(0..waiting.len().max(1)));
                chosen.is_some_and(|from| try_kill_the_function_at(*from, destinations.address))
            }
            Kill::During(call) => gateway.kill_during(call, CALL_LIMIT).await,
            Kill::AtAnyTime => {
                let running = functions_below(stack.server_process());
                let chosen = running.get(random.random_range(0..running.len().max(1)));
                chosen.is_some_and(|process| kill(process))
            }
        };
        if killed {
            report.count(turn);
        }
    }
}
