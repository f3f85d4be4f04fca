//! Reads success rates and durations of attempts by subscription from the CloudWatch metrics of a
//! stack.
//!
//! CloudWatch has metrics by subscription only if the stack is deployed with
//! `MetricsPer=subscription`. One request reads three metrics of at most [`SUBSCRIPTIONS_MAX`]
//! subscriptions. It costs at most $0.0015 ($0.01 for 1,000 metrics). A response is cached for a
//! minute.

use std::collections::BTreeMap;

use adapters::metrics::Metric;
use aws_config::SdkConfig;
use aws_sdk_cloudwatch::Client;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{
    Dimension, Metric as MetricName, MetricDataQuery, MetricDataResult, MetricStat,
};
use delivery::subscription::name::{SubscriptionName, segment};
use delivery::time::duration::{DAY_MS, MINUTE_MS};
use tokio::sync::Mutex;

use super::rates::Rates;
use crate::console::live::traffic::Traffic;
use crate::operations::stack::Stack;
use crate::terminal::advice::aws_error;

/// The maximum number of subscriptions in one request.
const SUBSCRIPTIONS_MAX: usize = 50;
/// The number of periods into which a time range is divided.
const PERIODS: u64 = 12;
/// The maximum age of a cached response.
const KEPT_MS: u64 = MINUTE_MS;
/// The queries for each subscription: first letter of the query id, metric, and statistic.
const ASKED: [(char, Metric, &str); 3] = [
    ('s', Metric::DeliverySuccessCount, "Sum"),
    ('f', Metric::DeliveryAttemptFailCount, "Sum"),
    ('d', Metric::DestinationProcessingDurationInMs, "p95"),
];

/// Reads the metrics of a stack, and caches the last response.
pub(crate) struct CloudWatch {
    client: Client,
    namespace: String,
    /// False if the stack has no metrics by subscription.
    is_per_subscription: bool,
    /// The cached response: the length of its time range and the time it was read, both in
    /// milliseconds, and the statistics.
    last: Mutex<Option<(u64, u64, Rates)>>,
}

impl CloudWatch {
    /// Creates a reader of a stack's metrics from the settings of the stack. Does not send a
    /// request.
    pub(crate) fn new(aws: &SdkConfig, stack: &Stack) -> Self {
        Self {
            client: Client::new(aws),
            namespace: format!("lastmile/{}", stack.name),
            is_per_subscription: stack.list("MetricsPer").any(|entry| entry == "subscription"),
            last: Mutex::default(),
        }
    }

    /// Reads the statistics of these subscriptions for the last `range_ms` milliseconds.
    pub(super) async fn last(&self, range_ms: u64, names: &[String], now_ms: u64) -> Rates {
        if !self.is_per_subscription {
            let note = "The stack has no metrics per subscription: deploy it with \
                        MetricsPer=subscription.";
            return Rates::measured(BTreeMap::new(), Some(note.to_owned()));
        }
        let mut last = self.last.lock().await;
        let is_fresh = |(range, at_ms, _): &&(u64, u64, Rates)| {
            range.abs_diff(range_ms) < KEPT_MS && now_ms < at_ms + KEPT_MS
        };
        if let Some((.., rates)) = last.as_ref().filter(is_fresh) {
            return rates.clone();
        }
        let rates = self.ask(range_ms, names, now_ms).await;
        *last = Some((range_ms, now_ms, rates.clone()));
        rates
    }

    async fn ask(&self, range_ms: u64, names: &[String], now_ms: u64) -> Rates {
        let asked = &names[..names.len().min(SUBSCRIPTIONS_MAX)];
        let period_ms = period_ms(range_ms);
        let queries = queries(&self.namespace, asked, period_ms);
        if queries.is_empty() {
            return Rates::default();
        }
        let time = |ms: u64| DateTime::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
        let mut pages = self
            .client
            .get_metric_data()
            .set_metric_data_queries(Some(queries))
            // Begin with a whole period, so that the first sum covers the whole period.
            .start_time(time(now_ms.saturating_sub(range_ms) / period_ms * period_ms))
            .end_time(time(now_ms))
            .into_paginator()
            .send();
        let mut results = Vec::new();
        while let Some(page) = pages.next().await {
            match page {
                Ok(page) => results.extend(page.metric_data_results.unwrap_or_default()),
                Err(error) => {
                    let note = format!("The metrics cannot be read: {}", aws_error(&error));
                    return Rates::measured(BTreeMap::new(), Some(note));
                }
            }
        }
        let left_out = names.len() - asked.len();
        let note = format!(
            "Success rates of the first {SUBSCRIPTIONS_MAX} subscriptions; {left_out} more are not \
             queried."
        );
        let subscriptions = figures(asked, &results);
        Rates::measured(subscriptions, (left_out > 0).then_some(note))
    }
}

/// Returns the length of a period, a whole number of minutes. The first period may begin before the
/// time range, by at most a twelfth of the range.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricStat.html>
fn period_ms(range_ms: u64) -> u64 {
    (range_ms / PERIODS).min(DAY_MS).div_ceil(MINUTE_MS).max(1) * MINUTE_MS
}

/// Builds the queries for all subscriptions. The id of a query is the letter of the metric and the
/// index of the subscription, such as `s0`.
fn queries(namespace: &str, names: &[String], period_ms: u64) -> Vec<MetricDataQuery> {
    let mut queries = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Ok(name) = name.parse::<SubscriptionName>() else { continue };
        let topic = format!("{}/{}", segment(&name.topic.namespace), segment(&name.topic.topic));
        let dimension =
            |key: &str, value: &str| Dimension::builder().name(key).value(value).build();
        for (letter, metric, statistic) in ASKED {
            let metric = MetricName::builder()
                .namespace(namespace)
                .metric_name(metric.name())
                .dimensions(dimension("topic", &topic))
                .dimensions(dimension("subscription", &segment(&name.name)))
                .build();
            let period = i32::try_from(period_ms / 1_000).unwrap_or(i32::MAX);
            let stat = MetricStat::builder().metric(metric).period(period).stat(statistic).build();
            queries.push(
                MetricDataQuery::builder().id(format!("{letter}{at}")).metric_stat(stat).build(),
            );
        }
    }
    queries
}

/// Computes the statistics of each subscription: the sums of its counts in all periods, and the
/// highest 95th percentile of any period.
fn figures(names: &[String], results: &[MetricDataResult]) -> BTreeMap<String, Traffic> {
    let mut found: BTreeMap<&str, [f64; 3]> = BTreeMap::new();
    for result in results {
        let Some((letter, at)) = result.id().and_then(|id| id.split_at_checked(1)) else {
            continue;
        };
        let place = ASKED.iter().position(|(asked, ..)| letter == asked.to_string());
        let name = at.parse::<usize>().ok().and_then(|at| names.get(at));
        let (Some(place), Some(name)) = (place, name) else { continue };
        let figure = &mut found.entry(name).or_default()[place];
        for value in result.values() {
            *figure = if letter == "d" { figure.max(*value) } else { *figure + value };
        }
    }
    let whole = |value: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count or milliseconds"
        )]
        let whole = value.round() as u64;
        whole
    };
    let traffic = |[successes, failures, p95]: [f64; 3]| {
        Traffic::given(whole(successes), whole(failures), Some(whole(p95)).filter(|ms| *ms > 0))
    };
    found.into_iter().map(|(name, figures)| (name.to_owned(), traffic(figures))).collect()
}

#[cfg(test)]
mod tests {
    use delivery::time::duration::HOUR_MS;

    use super::*;

    /// A response of GetMetricData as the AWS CLI prints it, for three subscriptions: healthy,
    /// failing, and without data.
    const ANSWER: &str = include_str!("get_metric_data.json");

    fn results() -> Vec<MetricDataResult> {
        let answer: serde_json::Value = serde_json::from_str(ANSWER).unwrap();
        let result = |json: &serde_json::Value| {
            let values =
                json["Values"].as_array().unwrap().iter().filter_map(serde_json::Value::as_f64);
            let builder = MetricDataResult::builder().id(json["Id"].as_str().unwrap());
            builder.set_values(Some(values.collect())).build()
        };
        answer["MetricDataResults"].as_array().unwrap().iter().map(result).collect()
    }

    #[test]
    fn counts_are_added_and_the_greatest_percentile_of_the_periods_stays() {
        let names =
            ["shop/orders/billing", "shop/orders/mail", "shop/orders/quiet"].map(str::to_owned);
        let found = figures(&names, &results());
        assert_eq!(found["shop/orders/billing"], Traffic::given(1_180, 20, Some(231)));
        assert_eq!(found["shop/orders/billing"].success_percent(), Some(98));
        assert_eq!(found["shop/orders/mail"], Traffic::given(0, 540, Some(30_000)));
        assert_eq!(found["shop/orders/quiet"].success_percent(), None);
    }

    #[test]
    fn each_subscription_is_asked_for_by_the_dimensions_that_functions_write() {
        let names = ["shop/or ders/bil%ling".to_owned(), "no name".to_owned()];
        let asked = queries("lastmile/live", &names, period_ms(HOUR_MS));
        let stat = asked[2].metric_stat().unwrap();
        assert_eq!(
            (asked.len(), asked[2].id(), stat.period(), stat.stat()),
            (3, Some("d0"), Some(300), Some("p95"))
        );
        let dimensions = stat.metric().unwrap().dimensions().iter();
        let values: Vec<_> = dimensions.filter_map(Dimension::value).collect();
        assert_eq!(values, ["shop/or%20ders", "bil%25ling"]);
    }

    #[test]
    fn a_period_is_in_whole_minutes_and_at_most_a_day() {
        for (range_ms, period) in [
            (0, MINUTE_MS),
            (90_000, MINUTE_MS),
            (HOUR_MS, 5 * MINUTE_MS),
            (DAY_MS, 2 * HOUR_MS),
            (7 * DAY_MS, 14 * HOUR_MS),
            (30 * DAY_MS, DAY_MS),
        ] {
            assert_eq!(period_ms(range_ms), period, "{range_ms}");
        }
    }
}
