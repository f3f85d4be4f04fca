//! How deliveries are retried: the schedule, and what statuses mean.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::field::{at_least_one, of_field};
use crate::subscription::profile::{RetryPolicy, StatusSet};
use crate::subscription::schedule::{Kind, Schedule};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RetryV1 {
    max_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_to_live_ms: Option<u64>,
    schedule: ScheduleV1,
    jitter_percent: u32,
    /// Statuses and ranges of them with commas between, as in the next one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    success: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    never_retry: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    retry_on: String,
    /// Pairs of a status and its least wait. The first of a status counts, so their order is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    least_waits_ms: Vec<(u16, u64)>,
    otherwise_least_wait_ms: u64,
    retry_after_max_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    last_attempt_names_the_limit: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleV1 {
    kind: KindV1,
    /// Of every kind but the last two.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waits_ms: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moments_ms: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ms: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KindV1 {
    Linear,
    Exponential,
    LinearFromZero,
    ExponentialFromZero,
    Constant,
    Waits,
    Moments,
}

impl From<&RetryPolicy> for RetryV1 {
    fn from(retry: &RetryPolicy) -> Self {
        let RetryPolicy {
            max_attempts,
            time_to_live_ms,
            schedule,
            jitter_percent,
            success,
            never_retry,
            retry_on,
            least_waits,
            otherwise_least_wait_ms,
            retry_after_max_ms,
            last_attempt_names_the_limit,
        } = retry;
        Self {
            max_attempts: *max_attempts,
            time_to_live_ms: *time_to_live_ms,
            schedule: schedule.into(),
            jitter_percent: *jitter_percent,
            success: success.ranges().join(","),
            never_retry: never_retry.ranges().join(","),
            retry_on: retry_on.ranges().join(","),
            least_waits_ms: least_waits.clone(),
            otherwise_least_wait_ms: *otherwise_least_wait_ms,
            retry_after_max_ms: *retry_after_max_ms,
            last_attempt_names_the_limit: *last_attempt_names_the_limit,
        }
    }
}

impl RetryV1 {
    pub(super) fn into_policy(self) -> Result<RetryPolicy, String> {
        Ok(RetryPolicy {
            max_attempts: at_least_one("retry.maxAttempts", self.max_attempts)?,
            time_to_live_ms: self.time_to_live_ms,
            schedule: of_field("retry.schedule", self.schedule.into_schedule())?,
            jitter_percent: self.jitter_percent,
            success: of_field("retry.success", statuses(&self.success))?,
            never_retry: of_field("retry.neverRetry", statuses(&self.never_retry))?,
            retry_on: of_field("retry.retryOn", statuses(&self.retry_on))?,
            least_waits: self.least_waits_ms,
            otherwise_least_wait_ms: self.otherwise_least_wait_ms,
            retry_after_max_ms: self.retry_after_max_ms,
            last_attempt_names_the_limit: self.last_attempt_names_the_limit,
        })
    }
}

fn statuses(text: &str) -> Result<StatusSet, String> {
    let parts = text.split(',').filter(|_| !text.is_empty());
    parts.map(range).collect::<Result<Vec<_>, _>>().map(StatusSet::new)
}

fn range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (status(first), status(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        (_, _) => Err(format!("{text:?} is neither a status nor a range such as 200-299")),
    }
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

impl From<&Schedule> for ScheduleV1 {
    fn from(Schedule { kind, max_ms }: &Schedule) -> Self {
        let of = |kind| Self {
            kind,
            delay_ms: None,
            waits_ms: Vec::new(),
            moments_ms: Vec::new(),
            max_ms: *max_ms,
        };
        let delayed = |kind, delay_ms: &u64| Self { delay_ms: Some(*delay_ms), ..of(kind) };
        match kind {
            Kind::Linear { delay_ms } => delayed(KindV1::Linear, delay_ms),
            Kind::Exponential { delay_ms } => delayed(KindV1::Exponential, delay_ms),
            Kind::LinearFromZero { delay_ms } => delayed(KindV1::LinearFromZero, delay_ms),
            Kind::ExponentialFromZero { delay_ms } => {
                delayed(KindV1::ExponentialFromZero, delay_ms)
            }
            Kind::Constant { delay_ms } => delayed(KindV1::Constant, delay_ms),
            Kind::Waits { waits_ms } => Self { waits_ms: waits_ms.to_vec(), ..of(KindV1::Waits) },
            Kind::Moments { moments_ms } => {
                Self { moments_ms: moments_ms.to_vec(), ..of(KindV1::Moments) }
            }
        }
    }
}

impl ScheduleV1 {
    fn into_schedule(self) -> Result<Schedule, String> {
        let Self { kind, delay_ms, waits_ms, moments_ms, max_ms } = self;
        let kind = match (kind, delay_ms, waits_ms.as_slice(), moments_ms.as_slice()) {
            (KindV1::Linear, Some(delay_ms), [], []) => Kind::Linear { delay_ms },
            (KindV1::Exponential, Some(delay_ms), [], []) => Kind::Exponential { delay_ms },
            (KindV1::LinearFromZero, Some(delay_ms), [], []) => Kind::LinearFromZero { delay_ms },
            (KindV1::ExponentialFromZero, Some(delay_ms), [], []) => {
                Kind::ExponentialFromZero { delay_ms }
            }
            (KindV1::Constant, Some(delay_ms), [], []) => Kind::Constant { delay_ms },
            (KindV1::Waits, None, [_, ..], []) => Kind::Waits { waits_ms: waits_ms.into() },
            (KindV1::Moments, None, [], [_, ..]) if moments_ms.is_sorted_by(|a, b| a < b) => {
                Kind::Moments { moments_ms: moments_ms.into() }
            }
            (KindV1::Waits, ..) => return Err("waits needs waitsMs and nothing else".to_owned()),
            (KindV1::Moments, ..) => {
                return Err("moments needs rising momentsMs and nothing else".to_owned());
            }
            (
                KindV1::Linear
                | KindV1::Exponential
                | KindV1::LinearFromZero
                | KindV1::ExponentialFromZero
                | KindV1::Constant,
                ..,
            ) => return Err("this kind needs delayMs and no list".to_owned()),
        };
        Ok(Schedule { kind, max_ms })
    }
}
