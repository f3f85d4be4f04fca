//! What saves most for a load: single changes of the deployment or of its publishers, and what each costs otherwise.
//!
//! Separate because it is advice: it estimates the same load again with each change, and computes nothing itself.

use delivery::ports::MESSAGE_MAX_BYTES;
use delivery::subscription::Subscription;

use super::average::as_f64;
use super::estimate::{Estimate, estimate};
use super::plan::{Architecture, LogLevel, Plan};
use crate::numbers::count;

/// So many are shown.
const SHOWN: usize = 3;
/// A change that saves less than this part of the bill is not shown.
const LEAST_PART: u128 = 100;
/// The windows that may be recommended, in seconds.
const WINDOWS_S: [u32; 4] = [1, 2, 5, 10];
/// Events or messages that publishers may send together.
const TOGETHER: f64 = 10.0;
/// The least memory of a function, in MB.
const LEAST_MEMORY_MB: u32 = 128;

/// The levers that save most, and the estimate with all of them.
pub(crate) struct Advice {
    pub(crate) levers: Vec<Lever>,
    pub(crate) together: Estimate,
}

/// A change, and what it saves.
pub(crate) struct Lever {
    pub(crate) change: Change,
    /// What a day costs less, in millionths of a millionth of a dollar.
    pub(crate) saves: u128,
    /// What it costs in latency.
    pub(crate) latency: String,
}

/// A change that is possible.
pub(crate) struct Change {
    /// The template's parameter with its value, or what publishers do.
    pub(crate) what: String,
    /// The option of this command.
    pub(crate) option: String,
    /// What it costs besides latency.
    pub(crate) besides: &'static str,
    make: Box<dyn Fn(&mut Plan)>,
}

impl Change {
    fn new(
        what: impl Into<String>,
        option: impl Into<String>,
        besides: &'static str,
        make: impl Fn(&mut Plan) + 'static,
    ) -> Self {
        Self { what: what.into(), option: option.into(), besides, make: Box::new(make) }
    }
}

/// The levers that save most of this estimate.
pub(crate) fn advice(plan: &Plan, subscription: &Subscription, now: &Estimate) -> Advice {
    let mut changes = of_publishers(plan);
    changes.extend(window(plan, subscription));
    changes.extend(of_deployment(plan));
    let levers = changes.into_iter().map(|change| lever(change, plan, subscription, now));
    let is_worth_it = |lever: &Lever| lever.saves > 0 && lever.saves * LEAST_PART >= now.total.day;
    let mut levers: Vec<Lever> = levers.filter(is_worth_it).collect();
    levers.sort_by_key(|lever| std::cmp::Reverse(lever.saves));
    levers.truncate(SHOWN);
    let mut together = plan.clone();
    levers.iter().for_each(|lever| (lever.change.make)(&mut together));
    Advice { levers, together: estimate(&together, subscription) }
}

fn lever(change: Change, plan: &Plan, subscription: &Subscription, now: &Estimate) -> Lever {
    let mut changed = plan.clone();
    (change.make)(&mut changed);
    let then = estimate(&changed, subscription);
    let together = |plan: &Plan| plan.traffic.publish_batch * plan.traffic.events_per_message;
    let longer_ms = then.load.events.invocation_ms - now.load.events.invocation_ms;
    let latency = if changed.deployment.batch_window_s > plan.deployment.batch_window_s {
        format!("up to {} s", changed.deployment.batch_window_s)
    } else if together(&changed) > together(plan) {
        "until a publisher has ten".to_owned()
    } else if longer_ms >= 1.0 {
        format!("{} ms", count(longer_ms))
    } else {
        "none".to_owned()
    };
    Lever { saves: now.total.day.saturating_sub(then.total.day), latency, change }
}

/// The shortest window that saves nearly what the longest does.
fn window(plan: &Plan, subscription: &Subscription) -> Option<Change> {
    let day = |seconds: u32| {
        let mut plan = plan.clone();
        plan.deployment.batch_window_s = seconds;
        estimate(&plan, subscription).total.day
    };
    let longest = day(*WINDOWS_S.last()?);
    let is_enough = |seconds: &u32| day(*seconds) * 10 <= longest * 11;
    let seconds = WINDOWS_S.into_iter().find(is_enough)?;
    let is_longer = seconds > plan.deployment.batch_window_s;
    let (what, option) =
        (format!("DispatchBatchWindow={seconds}"), format!("--batch-window {seconds}"));
    let make = move |plan: &mut Plan| plan.deployment.batch_window_s = seconds;
    is_longer.then(|| Change::new(what, option, "-", make))
}

fn of_publishers(plan: &Plan) -> Vec<Change> {
    let traffic = &plan.traffic;
    let together = TOGETHER * traffic.publish_batch.max(traffic.events_per_message);
    let fits = together * traffic.event_bytes <= as_f64(MESSAGE_MAX_BYTES as u64);
    let all = [
        (
            traffic.publish_batch < TOGETHER,
            Change::new(
                "publishers send ten messages per request",
                "--publish-batch 10",
                "-",
                |plan| plan.traffic.publish_batch = TOGETHER,
            ),
        ),
        (
            traffic.events_per_message < TOGETHER,
            Change::new(
                "publishers send arrays of ten events",
                "--events-per-message 10",
                "a redelivery is of ten",
                |plan| plan.traffic.events_per_message = TOGETHER,
            ),
        ),
    ];
    all.into_iter().filter(|(is_new, _)| *is_new && fits).map(|(_, change)| change).collect()
}

fn of_deployment(plan: &Plan) -> Vec<Change> {
    let of = &plan.deployment;
    let less_mb = (of.memory_mb / 2).max(LEAST_MEMORY_MB);
    let all = [
        (
            of.log_level == LogLevel::Info,
            Change::new(
                "LogLevel=failures",
                "--log-level failures",
                "no line of what succeeds at once",
                |plan| plan.deployment.log_level = LogLevel::Failures,
            ),
        ),
        (
            less_mb < of.memory_mb,
            Change::new(
                format!("DispatchMemory={less_mb}"),
                format!("--memory {less_mb}"),
                "fewer subscriptions of a topic fit",
                move |plan| plan.deployment.memory_mb = less_mb,
            ),
        ),
        (
            of.architecture == Architecture::X86_64,
            Change::new("functions for arm64", "--architecture arm64", "-", |plan| {
                plan.deployment.architecture = Architecture::Arm64;
            }),
        ),
    ];
    all.into_iter().filter(|(is_new, _)| *is_new).map(|(_, change)| change).collect()
}
