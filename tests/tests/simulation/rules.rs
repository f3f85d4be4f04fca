//! The subscriptions of a world, each with the rules of the documentation, implemented a second
//! time.
//!
//! The engine computes its waits from schedules; here they are the lists that the documentation
//! prints. So the checks find a fault in the engine's arithmetic instead of repeating it.

use delivery::subscription::topic_settings::TopicSettings;
use std::sync::Arc;

use delivery::delivery::outcome::TransportResult;
use delivery::subscription::catalogue::{Catalogue, Topic};
use delivery::subscription::dead_letter_format::{DeadLetterFormat, Format};
use delivery::subscription::filter::Filter;
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::{Dialect, Profile};
use delivery::subscription::{Batch, Destination, OnRefused, ReplyTo, Subscription};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::Kind;

use super::faults::SeededRandom;
use super::policies::{Waits, event_grid, native, policy};
use super::sinks;

/// The topic that has subscriptions.
pub(crate) const TOPIC: &str = "shop/orders";
/// The container that some subscriptions name.
pub(crate) const OWN_CONTAINER: &str = "own-letters/of/ours";
/// The reply budget of an event. With more than ten subscriptions, a chain of replies uses it up
/// before it reaches its greatest length, because each reply divides the rest.
pub(crate) const MAX_REPLIES: u32 = u32::MAX;
/// The only event type that filters match.
pub(crate) const WANTED_TYPE: &str = "order.created";

/// The step that must follow an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Done.
    Delivered,
    /// A retry after at least this wait, if the limits allow.
    Retry(u64),
    /// One retry alone, at once, whatever the limits are.
    RetriedAlone,
    /// A retry cannot help.
    Final,
}

/// A subscription and its rules by the documentation.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The subscription that the engine gets.
    pub(crate) subscription: Subscription,
    /// True if the filter matches only one type of CloudEvents.
    pub(crate) filtered: bool,
    waits: Waits,
}

impl Rules {
    /// A subscription of this topic and number, with random rules.
    pub(crate) fn choose(topic: &str, number: usize, random: &mut SeededRandom) -> Self {
        let (profile, waits) = policy(random);
        let filtered = random.percent(25);
        let filter = Filter::Exact { name: "type".to_owned(), value: WANTED_TYPE.to_owned() };
        let mut subscription = bare(topic, number, &profile);
        let destination = &mut subscription.destination;
        destination.headers =
            vec![Header { name: "x-tenant".to_owned(), value: Value::Static("acme".to_owned()) }];
        destination.probation = random.percent(35);
        if !random.quiet && random.percent(15) {
            destination.max_per_second = Some(random.pick(&[1, 2, 10]));
        }
        destination.slow_after_ms = random.pick(&[200, 2_000, 2_000, 600_000]);
        destination.late_window_ms = random.pick(&[0, 0, 5_000, 180_000]);
        subscription.reply = reply(number, random);
        // A subscription with replies has no batches.
        subscription.batch = batch(random).filter(|_| subscription.reply.is_none());
        subscription.filter = if filtered { filter } else { Filter::EVERYTHING };
        subscription.dead_letter.sink = sinks::choose(topic, number, random);
        let format = random.pick(&[Format::Namespace, Format::Namespace, Format::CloudEvents]);
        subscription.dead_letter.format = DeadLetterFormat::Fixed(format);
        subscription.dead_letter.delay_ms = random.pick(&[0, 0, 5 * MINUTE_MS]);
        subscription.dead_letter.keep_trying_for_ms =
            random.pick(&[HOUR_MS, 4 * HOUR_MS, 2 * HOUR_MS]);
        Self { subscription, filtered, waits }
    }

    /// A subscription of this number in the Event Grid dialect, with a time to live of four hours.
    pub(crate) fn of_event_grid(number: usize, probation: bool) -> Self {
        let (profile, waits) = event_grid(240);
        let mut subscription = bare(TOPIC, number, &profile);
        subscription.destination.probation = probation;
        Self { subscription, filtered: false, waits }
    }

    /// A native subscription of this number that is tried ten times within seven days.
    pub(crate) fn of_seven_days(number: usize) -> Self {
        Self::of_topic_and_number(TOPIC, number)
    }

    /// Like `of_seven_days`, for a subscription of this topic.
    pub(crate) fn of_topic_and_number(topic: &str, number: usize) -> Self {
        const WAITS: [u64; 9] =
            [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000];
        let (profile, waits) = native(10, Kind::Exponential { delay_ms: 1_000 }, &WAITS);
        let mut subscription = bare(topic, number, &profile);
        subscription.retry.time_to_live_ms = Some(7 * DAY_MS);
        Self { subscription, filtered: false, waits }
    }

    /// The step that must follow for each event of a request with this result, apart from limits.
    /// If several events are refused, perhaps only one of them was at fault.
    pub(crate) fn expected_of(&self, result_seen: &TransportResult, events: usize) -> Expected {
        let splits =
            self.subscription.batch.is_some_and(|batch| batch.on_refused == OnRefused::Split);
        match self.expected(result_seen) {
            Expected::Final
                if events > 1
                    && splits
                    && matches!(result_seen, TransportResult::Answered { .. }) =>
            {
                Expected::RetriedAlone
            }
            expected @ (Expected::Delivered
            | Expected::Retry(_)
            | Expected::RetriedAlone
            | Expected::Final) => expected,
        }
    }

    /// The step that must follow a request with one event.
    pub(crate) fn expected(&self, result_seen: &TransportResult) -> Expected {
        let (success, never, otherwise_ms): (u16, &[u16], u64) = match self.subscription.dialect {
            Dialect::Knative => (299, &[302, 400, 401, 403, 410, 413, 422], 0),
            Dialect::Native => (299, &[302, 400, 401, 403, 404, 410, 413, 422], 0),
            Dialect::EventGrid => (204, &[400, 401, 403, 404, 413], 10 * SECOND_MS),
            Dialect::EventGridResource => (204, &[400, 403, 413], 10 * SECOND_MS),
            Dialect::EventGridNamespace => (204, &[400, 401, 403, 404, 413, 414], 10 * SECOND_MS),
            Dialect::EventGridKubernetes => (204, &[], 0),
        };
        let event_grid = otherwise_ms > 0;
        match result_seen {
            TransportResult::Answered { status, .. } if (200..=success).contains(status) => {
                Expected::Delivered
            }
            TransportResult::Answered { status, .. } if never.contains(status) => Expected::Final,
            TransportResult::Answered { status, retry_after, .. } => {
                let least_ms = match status {
                    408 if event_grid => 2 * MINUTE_MS,
                    503 if event_grid => 30 * SECOND_MS,
                    _ => otherwise_ms,
                };
                let consent_answered =
                    retry_after.as_deref().filter(|_| matches!(status, 429 | 503));
                let asked_ms =
                    consent_answered.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
                        * SECOND_MS;
                Expected::Retry(least_ms.max(asked_ms.min(HOUR_MS)))
            }
            TransportResult::Blocked | TransportResult::Unsendable => Expected::Final,
            TransportResult::TimedOut
            | TransportResult::SocketError
            | TransportResult::ResolutionError
            | TransportResult::TlsError
            | TransportResult::Aborted => Expected::Retry(otherwise_ms),
        }
    }

    /// The shortest and the longest wait after this many attempts. The last attempt ended at
    /// `ended_ms` and requires a wait of at least `least_ms`.
    pub(crate) fn wait_ms(
        &self,
        attempts: u32,
        first_ms: u64,
        ended_ms: u64,
        least_ms: u64,
    ) -> (u64, u64) {
        let nth = |list: &[u64]| list[(attempts as usize).saturating_sub(1).min(list.len() - 1)];
        let wait_ms = match self.waits {
            Waits::Each(list) => nth(list),
            Waits::SinceFirst(list) => (first_ms + nth(list)).saturating_sub(ended_ms),
        };
        let wait_ms = wait_ms.max(least_ms);
        let jitter = u64::from(self.subscription.retry.jitter_percent);
        (wait_ms, wait_ms + wait_ms * jitter / 100)
    }
}

/// The numbers of the subscriptions of a topic.
pub(crate) fn of_topic<'a>(rules: &'a [Rules], topic: &'a str) -> impl Iterator<Item = usize> + 'a {
    rules
        .iter()
        .enumerate()
        .filter(move |(_, rules)| rules.subscription.name.topic.to_string() == topic)
        .map(|(at, _)| at)
}

/// A subscription of this number with only a profile. Its dead letters have the format `namespace`
/// and are written at once.
fn bare(topic: &str, number: usize, profile: &Profile) -> Subscription {
    let url = format!("https://s{number}.example.com/in").parse().expect("an address");
    let name = format!("{topic}/s{number}").parse().expect("a name");
    let mut subscription = Subscription::new(name, profile.dialect, url);
    let url = (*subscription.destination.url).clone();
    subscription.destination = Destination::new(url, profile.response_timeout_ms);
    subscription.retry = profile.retry.clone();
    subscription.dead_letter.format = DeadLetterFormat::Fixed(Format::Namespace);
    subscription.dead_letter.delay_ms = 0;
    subscription
}

/// The reply target, if the subscription accepts replies. At most one subscription sends them to
/// its own topic, because a chain of replies would otherwise grow with each hop.
fn reply(number: usize, random: &mut SeededRandom) -> Option<ReplyTo> {
    match random.below(8) {
        0 => Some(ReplyTo::Address(
            format!("https://r{number}.example.com/in").parse().expect("an address"),
        )),
        1 | 2 if number == 0 => Some(ReplyTo::Topic(TOPIC.parse().expect("a topic"))),
        _ => None,
    }
}

/// The batch settings, if there are any. Batches are small, because a world has few events.
fn batch(random: &mut SeededRandom) -> Option<Batch> {
    random.percent(45).then(|| Batch {
        max_events: 2 + random.below(4) as u32,
        preferred_bytes: random.pick(&[250, 450, 64 * 1_024, 64 * 1_024]),
        on_refused: random.pick(&[OnRefused::Split, OnRefused::Split, OnRefused::All]),
    })
}

/// A catalogue of these subscriptions.
pub(crate) fn catalogue(subscriptions: impl IntoIterator<Item = Subscription>) -> Arc<Catalogue> {
    let mut catalogue = Catalogue::default();
    // Nearly all chains of replies end here by their length. Another test checks the number of
    // deliveries that may follow from one event.
    let topic = Topic::new(TOPIC.parse().expect("a topic"));
    catalogue.add_topic(Topic {
        settings: TopicSettings { max_replies: MAX_REPLIES, ..topic.settings.clone() },
        ..topic
    });
    subscriptions.into_iter().for_each(|subscription| catalogue.add_subscription(subscription));
    Arc::new(catalogue)
}
