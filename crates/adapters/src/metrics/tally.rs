//! Aggregates counts and measured values for each combination of dimension values. Pure.
//!
//! Allocates memory only for a new combination and for a measured value. Any further count costs
//! one lookup.

use std::collections::BTreeMap;

use delivery::deadletter::{MALFORMED, UNKNOWN_TOPIC, UNPROCESSED};
use delivery::delivery::Word;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::subscription::name::{SubscriptionName, TopicName, segment};

use super::{Dimensions, Label, Metric, Splits};

/// The metrics of one combination of dimension values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Totals {
    /// The counts by metric.
    pub(super) counts: BTreeMap<Metric, u64>,
    /// The measured values by metric, in the order in which they were measured.
    pub(super) measured: BTreeMap<Metric, Vec<u64>>,
}

impl Totals {
    /// Returns the largest number of measured values that one metric has.
    pub(super) fn most_values(&self) -> usize {
        self.measured.values().map(Vec::len).max().unwrap_or(0)
    }
}

/// The counts and measured values of all combinations of dimension values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    splits: Splits,
    all: Totals,
    topics: BTreeMap<TopicName, Totals>,
    outcomes: BTreeMap<Outcome, Totals>,
    reasons: BTreeMap<Word<Reason>, Totals>,
    subscriptions: BTreeMap<SubscriptionName, Totals>,
}

impl Tally {
    /// Creates an empty tally, split by `splits`.
    #[must_use]
    pub fn new(splits: Splits) -> Self {
        Self { splits, ..Self::default() }
    }

    /// True if nothing was counted. Checks only the total, which includes every count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all == Totals::default()
    }

    /// True if the tally contains a metric that must be written without delay.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.all.counts.keys().any(|metric| metric.is_urgent())
    }

    /// Returns the largest number of measured values that one metric has.
    #[must_use]
    pub fn measured_values(&self) -> usize {
        self.all.most_values()
    }

    /// Increments a metric of a subscription.
    pub fn count(&mut self, metric: Metric, subscription: &SubscriptionName, label: Label) {
        self.add(metric, subscription, label, |totals| {
            *totals.counts.entry(metric).or_default() += 1;
        });
    }

    /// Increments a metric that is counted only for the whole deployment.
    pub fn count_alone(&mut self, metric: Metric) {
        *self.all.counts.entry(metric).or_default() += 1;
    }

    /// Adds a measured value of a metric that is kept only for the whole deployment.
    pub fn measure_alone(&mut self, metric: Metric, value: u64) {
        self.all.measured.entry(metric).or_default().push(value);
    }

    /// Adds a measured value to a metric of a subscription.
    pub fn measure(&mut self, metric: Metric, subscription: &SubscriptionName, value: u64) {
        self.add(metric, subscription, Label::None, |totals| {
            totals.measured.entry(metric).or_default().push(value);
        });
    }

    /// Returns the totals of each combination of dimension values, with those values.
    pub fn totals(&self) -> impl Iterator<Item = (Dimensions, Vec<String>, &Totals)> {
        let all = (!self.is_empty()).then(|| (Dimensions::None, Vec::new(), &self.all));
        let topics = self
            .topics
            .iter()
            .map(|(topic, totals)| (Dimensions::Topic, vec![value_of(topic)], totals));
        let outcomes = self
            .outcomes
            .iter()
            .map(|(outcome, totals)| (Dimensions::Outcome, vec![outcome.to_string()], totals));
        let reasons = self
            .reasons
            .iter()
            .map(|(reason, totals)| (Dimensions::Reason, vec![reason.to_string()], totals));
        let subscriptions = self.subscriptions.iter().map(|(name, totals)| {
            let values = vec![value_of(&name.topic), segment(&name.name).into_owned()];
            (Dimensions::Subscription, values, totals)
        });
        all.into_iter().chain(topics).chain(outcomes).chain(reasons).chain(subscriptions)
    }

    fn add(
        &mut self,
        metric: Metric,
        subscription: &SubscriptionName,
        label: Label,
        add: impl Fn(&mut Totals),
    ) {
        // Declared here, because the references below have to outlive the block.
        let (no_topic, name);
        // The topic of a placeholder is free text of a publisher. As a dimension value it could
        // cause unlimited cost.
        let is_placeholder =
            matches!(subscription.name.as_str(), MALFORMED | UNKNOWN_TOPIC | UNPROCESSED);
        let (topic, subscription) = if is_placeholder {
            no_topic = TopicName::nameless();
            name = SubscriptionName { topic: no_topic.clone(), name: subscription.name.clone() };
            (&no_topic, &name)
        } else {
            (&subscription.topic, subscription)
        };
        add(&mut self.all);
        if self.splits.topic {
            add(entry(&mut self.topics, topic));
        }
        match label {
            Label::Outcome(outcome) if self.splits.outcome => {
                add(self.outcomes.entry(outcome).or_default());
            }
            Label::Reason(reason) if self.splits.outcome => {
                add(self.reasons.entry(reason).or_default());
            }
            Label::None | Label::Outcome(_) | Label::Reason(_) => {}
        }
        if self.splits.subscription && metric.is_per_subscription() {
            add(entry(&mut self.subscriptions, subscription));
        }
    }
}

/// Returns the entry of a key. Clones the key only on first use.
fn entry<'a, K: Ord + Clone>(totals: &'a mut BTreeMap<K, Totals>, key: &K) -> &'a mut Totals {
    // `BTreeMap::entry` requires an owned key, which would mean a clone for every count.
    if !totals.contains_key(key) {
        totals.insert(key.clone(), Totals::default());
    }
    totals.get_mut(key).expect("it was inserted if it was missing")
}

/// Encodes a topic as a dimension value, as in the keys of dead letters: ASCII, not empty, and at
/// most 511 of the 1,024 characters of a value.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html>
fn value_of(topic: &TopicName) -> String {
    format!("{}/{}", segment(&topic.namespace), segment(&topic.topic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_TOPIC_AND_OUTCOME: Splits = Splits { subscription: false, ..Splits::ALL };

    fn name(text: &str) -> SubscriptionName {
        text.parse().unwrap()
    }

    /// Dimensions, values and counts of a whole tally.
    fn table(tally: &Tally) -> Vec<String> {
        let line = |(dimensions, values, totals): (Dimensions, Vec<String>, &Totals)| {
            let counts: Vec<String> = totals
                .counts
                .iter()
                .map(|(metric, count)| format!("{}={count}", metric.name()))
                .collect();
            let measured: Vec<String> = totals
                .measured
                .iter()
                .map(|(metric, values)| format!("{}={values:?}", metric.name()))
                .collect();
            format!("{:?}{values:?} {}", dimensions.names(), [counts, measured].concat().join(" "))
        };
        tally.totals().map(line).collect()
    }

    #[test]
    fn an_empty_tally_has_no_totals() {
        assert!(table(&Tally::new(Splits::ALL)).is_empty());
    }

    #[test]
    fn each_count_is_added_once_in_each_dimension_set_of_its_metric() {
        let mut tally = Tally::new(BY_TOPIC_AND_OUTCOME);
        tally.count(Metric::MatchedEventCount, &name("shop/orders/billing"), Label::None);
        tally.count(Metric::MatchedEventCount, &name("shop/orders/audit"), Label::None);
        tally.count(Metric::MatchedEventCount, &name("shop/returns/audit"), Label::None);
        for metric in [Metric::DeliveryAttemptFailCount, Metric::RetryScheduledCount] {
            tally.count(metric, &name("shop/orders/billing"), Label::Outcome(Outcome::Busy));
        }
        let status = Label::Reason(Reason::UndeliverableDueToHttpStatus(418).into());
        tally.count(Metric::DeadLetteredCount, &name("shop/returns/audit"), status);
        tally.measure(Metric::EventAgeAtDeliveryInMs, &name("shop/orders/audit"), 7);
        tally.measure(Metric::EventAgeAtDeliveryInMs, &name("shop/orders/audit"), 3);
        let counted = [
            r"[][] MatchedEventCount=3 DeliveryAttemptFailCount=1 DeadLetteredCount=1 RetryScheduledCount=1 EventAgeAtDeliveryInMs=[7, 3]",
            r#"["topic"]["shop/orders"] MatchedEventCount=2 DeliveryAttemptFailCount=1 RetryScheduledCount=1 EventAgeAtDeliveryInMs=[7, 3]"#,
            r#"["topic"]["shop/returns"] MatchedEventCount=1 DeadLetteredCount=1"#,
            r#"["outcome"]["Busy"] DeliveryAttemptFailCount=1 RetryScheduledCount=1"#,
            r#"["reason"]["UndeliverableDueToHttpStatus418"] DeadLetteredCount=1"#,
        ];
        assert_eq!(table(&tally), counted);
    }

    #[test]
    fn without_splits_there_is_one_combination_of_everything() {
        let mut tally = Tally::new(Splits::default());
        for topic in ["shop/orders", "shop/returns"] {
            let subscription = name(&format!("{topic}/billing"));
            tally.count(Metric::MatchedEventCount, &subscription, Label::None);
            tally.count(
                Metric::DeliveryAttemptFailCount,
                &subscription,
                Label::Outcome(Outcome::Busy),
            );
            tally.measure(Metric::EventAgeAtDeliveryInMs, &subscription, 7);
            let reason = Label::Reason(Reason::ReplyLoop.into());
            tally.count(Metric::RetryScheduledCount, &subscription, reason);
        }
        let counted = "[][] MatchedEventCount=2 DeliveryAttemptFailCount=2 RetryScheduledCount=2 EventAgeAtDeliveryInMs=[7, 7]";
        assert_eq!(table(&tally), [counted]);
        assert!(!tally.is_empty() && !tally.is_urgent() && tally.measured_values() == 2);
    }

    #[test]
    fn subscriptions_have_metrics_of_their_own_only_where_that_is_asked_for() {
        let mut tally = Tally::new(Splits::ALL);
        tally.count(Metric::MatchedEventCount, &name("shop/orders/billing"), Label::None);
        tally.count(Metric::UnmatchedEventCount, &name("shop/orders/_"), Label::None);
        let [.., last] = &table(&tally)[..] else { panic!() };
        assert_eq!(
            last,
            r#"["topic", "subscription"]["shop/orders", "billing"] MatchedEventCount=1"#
        );
        assert_eq!(table(&tally).len(), 3);
    }

    #[test]
    fn a_reason_of_a_newer_version_is_counted_under_its_own_word() {
        let mut tally = Tally::new(BY_TOPIC_AND_OUTCOME);
        for reason in [Word::Other("Superseded".into()), Reason::ReplyLoop.into()] {
            tally.count(Metric::DeadLetteredCount, &name("a/b/c"), Label::Reason(reason));
        }
        assert_eq!(
            table(&tally)[2..],
            [
                r#"["reason"]["ReplyLoop"] DeadLetteredCount=1"#,
                r#"["reason"]["Superseded"] DeadLetteredCount=1"#
            ]
        );
    }

    #[test]
    fn a_topic_that_only_a_publisher_names_is_no_dimension_value() {
        let mut tally = Tally::new(Splits::ALL);
        for topic in ["a/1", "a/2", "a/3"] {
            let unknown = name(&format!("{topic}/_unknown"));
            tally.count(
                Metric::DeadLetteredCount,
                &unknown,
                Label::Reason(Reason::TopicNotFound.into()),
            );
        }
        let counted = [
            "[][] DeadLetteredCount=3",
            r#"["topic"]["_/_"] DeadLetteredCount=3"#,
            r#"["reason"]["TopicNotFound"] DeadLetteredCount=3"#,
            r#"["topic", "subscription"]["_/_", "_unknown"] DeadLetteredCount=3"#,
        ];
        assert_eq!(table(&tally), counted);
    }

    #[test]
    fn dimension_values_are_what_cloudwatch_takes() {
        let mut tally = Tally::new(Splits::ALL);
        let long = "ü".repeat(42);
        tally.count(
            Metric::MatchedEventCount,
            &name(&format!(": ü\u{1f980}/{long}/\"x\"")),
            Label::None,
        );
        for (_, values, _) in tally.totals() {
            for value in values {
                let ascii = value
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
                assert!(
                    ascii && (1..=1_024).contains(&value.len()) && !value.starts_with(':'),
                    "{value}"
                );
            }
        }
    }
}
