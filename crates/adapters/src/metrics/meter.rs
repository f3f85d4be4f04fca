//! Decides when metrics are written, and keeps a function's tally until then.
//!
//! Most invocations count a few successes, and a line for each invocation would cost more than its
//! log. Therefore counts stay in the process for half a minute. Metrics that alarms depend on are
//! written when their invocation ends.
//!
//! A process that is killed without SIGTERM loses its unwritten counts: those of the killed
//! invocation, and up to half a minute of earlier ones, with at most [`VALUES_MAX`] measured
//! values. Nothing is lost when Lambda ends an idle sandbox, because the process receives SIGTERM.

use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::subscription::name::SubscriptionName;
use delivery::time::duration::SECOND_MS;

use super::tally::Tally;
use super::{Label, Metric, MetricsSettings, emf};

/// Age at which counts are written. The age is checked when an invocation begins and ends.
pub const KEPT_MS: u64 = 30 * SECOND_MS;
/// Number of measured values at which all metrics are written. It limits memory and possible loss.
pub const VALUES_MAX: usize = 1_000;

/// Collects the metrics of a function until they are written. Without settings, a meter ignores all
/// metrics, because a tally that is never written would only grow.
#[derive(Debug, Default)]
pub struct Meter {
    settings: Option<MetricsSettings>,
    kept: Mutex<Kept>,
}

/// The metrics that are not written yet.
#[derive(Debug, Default)]
struct Kept {
    tally: Tally,
    /// The end of the first invocation that these counts include.
    since_ms: Option<u64>,
    /// The end of the last invocation that these counts include.
    until_ms: Option<u64>,
}

impl Kept {
    fn is_old(&self, now_ms: u64) -> bool {
        self.since_ms.is_some_and(|since_ms| now_ms.saturating_sub(since_ms) >= KEPT_MS)
    }
}

impl Meter {
    /// Creates a meter that collects metrics.
    #[must_use]
    pub fn new(settings: MetricsSettings) -> Self {
        let kept = Mutex::new(Kept { tally: Tally::new(settings.splits), ..Kept::default() });
        Self { kept, settings: Some(settings) }
    }

    /// Increments a metric of a subscription.
    pub fn count(&self, metric: Metric, subscription: &SubscriptionName, label: Label) {
        self.with(|tally| tally.count(metric, subscription, label));
    }

    /// Increments a metric that is counted only for the whole deployment.
    pub fn count_alone(&self, metric: Metric) {
        self.with(|tally| tally.count_alone(metric));
    }

    /// Adds a measured value of a metric that is kept only for the whole deployment.
    pub fn measure_alone(&self, metric: Metric, value: u64) {
        self.with(|tally| tally.measure_alone(metric, value));
    }

    /// Adds a measured value to a metric of a subscription.
    pub fn measure(&self, metric: Metric, subscription: &SubscriptionName, value: u64) {
        self.with(|tally| tally.measure(metric, subscription, value));
    }

    /// Returns the lines to write when an invocation begins: all metrics of earlier invocations, if
    /// at least one is [`KEPT_MS`] old. Otherwise returns no lines.
    #[must_use]
    pub fn due_at_begin(&self, now_ms: u64) -> Vec<String> {
        let kept = self.lock();
        if kept.is_old(now_ms) { self.take(kept, now_ms) } else { Vec::new() }
    }

    /// Returns the lines to write when an invocation ends: all metrics, if at least one is urgent,
    /// is [`KEPT_MS`] old or has [`VALUES_MAX`] measured values. Otherwise returns no lines.
    #[must_use]
    pub fn due_at_end(&self, now_ms: u64) -> Vec<String> {
        let mut kept = self.lock();
        if kept.tally.is_empty() {
            return Vec::new();
        }
        kept.since_ms.get_or_insert(now_ms);
        kept.until_ms = Some(now_ms);
        let is_due = kept.is_old(now_ms)
            || kept.tally.is_urgent()
            || kept.tally.measured_values() >= VALUES_MAX;
        if is_due { self.take(kept, now_ms) } else { Vec::new() }
    }

    /// Returns the lines of all metrics that are not written yet.
    #[must_use]
    pub fn rest(&self, now_ms: u64) -> Vec<String> {
        self.take(self.lock(), now_ms)
    }

    /// Empties the tally and returns its lines. Their timestamp is the end of the last invocation
    /// that they include. If they include only an unfinished invocation, it is `now_ms`.
    fn take(&self, mut kept: MutexGuard<'_, Kept>, now_ms: u64) -> Vec<String> {
        let Some(settings) = &self.settings else { return Vec::new() };
        let empty = Kept { tally: Tally::new(settings.splits), ..Kept::default() };
        let taken = std::mem::replace(&mut *kept, empty);
        // Format the lines without holding the lock.
        drop(kept);
        emf::lines(&taken.tally, &settings.namespace, taken.until_ms.unwrap_or(now_ms))
    }

    fn with(&self, act: impl FnOnce(&mut Tally)) {
        if self.settings.is_some() {
            act(&mut self.lock().tally);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::metrics::{NAMESPACE, Splits};

    const AT_MS: u64 = 1_795_158_180_000;

    fn meter() -> Meter {
        let namespace = NAMESPACE.to_owned();
        Meter::new(MetricsSettings { namespace, splits: Splits::default() })
    }

    fn delivers(meter: &Meter, times: usize) {
        let name: SubscriptionName = "shop/orders/billing".parse().unwrap();
        for _ in 0..times {
            meter.count(Metric::DeliverySuccessCount, &name, Label::None);
            meter.measure(Metric::EventAgeAtDeliveryInMs, &name, 7);
        }
    }

    /// Returns the timestamp of the lines, the number of successes, and the number of ages; `None`
    /// without lines.
    fn written(lines: &[String]) -> Option<(u64, u64, usize)> {
        let lines: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let at_ms = lines.first()?["_aws"]["Timestamp"].as_u64().unwrap();
        let counts = lines.iter().filter_map(|line| line["DeliverySuccessCount"].as_u64());
        let ages = lines.iter().filter_map(|line| line["EventAgeAtDeliveryInMs"].as_array());
        Some((at_ms, counts.sum(), ages.map(Vec::len).sum()))
    }

    #[test]
    fn what_invocations_count_is_added_up_over_half_a_minute_and_written_when_one_ends() {
        let meter = meter();
        for second in 0..30 {
            assert!(meter.due_at_begin(AT_MS + second * 1_000).is_empty());
            delivers(&meter, 2);
            assert!(meter.due_at_end(AT_MS + second * 1_000).is_empty());
        }
        assert!(meter.due_at_begin(AT_MS + 29_500).is_empty());
        delivers(&meter, 2);
        let lines = meter.due_at_end(AT_MS + 31_000);
        assert_eq!((written(&lines), lines.len()), (Some((AT_MS + 31_000, 62, 62)), 1));
        assert!(meter.rest(AT_MS).is_empty());
    }

    #[test]
    fn what_waited_for_long_is_written_when_the_next_invocation_begins_with_its_own_time() {
        let meter = meter();
        delivers(&meter, 1);
        assert!(meter.due_at_end(AT_MS).is_empty());
        assert!(meter.due_at_begin(AT_MS + KEPT_MS - 1).is_empty());
        assert_eq!(written(&meter.due_at_begin(AT_MS + 600_000)), Some((AT_MS, 1, 1)));
        assert!(meter.due_at_end(AT_MS + 600_001).is_empty(), "nothing is written twice");
    }

    #[test]
    fn what_alarms_wait_for_is_written_when_its_invocation_ends_with_all_the_rest() {
        let urgent = Metric::ALL.into_iter().filter(|metric| {
            let meter = meter();
            delivers(&meter, 1);
            meter.count_alone(*metric);
            !meter.due_at_end(AT_MS).is_empty()
        });
        let names = [
            "DeadLetteredCount",
            "DroppedEventCount",
            "FailedDeadLetteredCount",
            "DestinationFailingCount",
            "DestinationSlowCount",
            "DestinationDisabledCount",
        ];
        assert_eq!(
            urgent.map(Metric::name).collect::<BTreeSet<_>>(),
            names.map(str::to_owned).into()
        );
    }

    #[test]
    fn the_splits_stay_when_something_is_written() {
        let splits = Splits { topic: true, ..Splits::default() };
        let meter = Meter::new(MetricsSettings { namespace: NAMESPACE.to_owned(), splits });
        for _ in 0..2 {
            delivers(&meter, 1);
            let lines = meter.rest(AT_MS);
            assert!(
                lines.iter().any(|line| line.contains(r#""topic":"shop/orders""#)),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn a_process_that_is_told_to_stop_writes_the_rest_with_the_time_at_which_it_was_counted() {
        let meter = meter();
        delivers(&meter, 3);
        assert!(meter.due_at_end(AT_MS).is_empty());
        assert_eq!(written(&meter.rest(AT_MS + 900_000)), Some((AT_MS, 3, 3)));
    }

    #[test]
    fn every_value_is_written_and_a_kill_loses_half_a_minute_and_a_thousand_values_at_most() {
        // Tries each combination of invocation length, pause and number of deliveries.
        for length_ms in [1, 900, 45_000] {
            for pause_ms in [0, 1, 700, 29_000, 30_000, 3_600_000] {
                for deliveries in [1, 9, 400, VALUES_MAX + 1] {
                    let (meter, mut now_ms, mut all, mut lines) = (meter(), AT_MS, 0, Vec::new());
                    // The end of each invocation whose counts are not written, and the number of
                    // its deliveries.
                    let mut unwritten: Vec<(u64, usize)> = Vec::new();
                    for _ in 0..40 {
                        let wrote = |lines: Vec<String>, unwritten: &mut Vec<_>| {
                            if !lines.is_empty() {
                                unwritten.clear();
                            }
                            lines
                        };
                        lines.extend(wrote(meter.due_at_begin(now_ms), &mut unwritten));
                        // A kill during this invocation would lose all unwritten counts.
                        let lost: usize = unwritten.iter().map(|(_, count)| count).sum();
                        let oldest_ms = unwritten.first().map_or(now_ms, |(end_ms, _)| *end_ms);
                        assert!(lost < VALUES_MAX && now_ms - oldest_ms < KEPT_MS, "{lost}");
                        delivers(&meter, deliveries);
                        all += deliveries;
                        now_ms += length_ms;
                        unwritten.push((now_ms, deliveries));
                        lines.extend(wrote(meter.due_at_end(now_ms), &mut unwritten));
                        now_ms += pause_ms;
                    }
                    lines.extend(meter.rest(now_ms));
                    let (_, counted, ages) = written(&lines).unwrap();
                    assert_eq!((usize::try_from(counted).unwrap(), ages), (all, all));
                }
            }
        }
    }
}
