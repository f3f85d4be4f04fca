//! [`Profile`]: the defaults of each dialect.
//!
//! All dialects share the same code. All differences are values in this file, so no code branches
//! on a dialect. Subscriptions override a profile field by field.

use crate::document::kind::{Duration, Flag, Integer};
use crate::document::record::{Optional, Required};
pub use crate::subscription::bounds::{ATTEMPTS_MAX, LIFETIME_MAX_MS, RESPONSE_TIMEOUT_MAX_MS};
use crate::subscription::dead_letter_format::{DeadLetterFormat, Format};
use crate::subscription::kinds::schedule::Waits;
use crate::subscription::kinds::statuses::{self, Meaning};
pub use crate::subscription::status_set::StatusSet;
use crate::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use crate::waits::{Kind, Schedule};

words! {
    /// The rules that a subscription follows. Two variants have the name `eventgrid`, because Event
    /// Grid has different rules for webhooks and for Azure resources.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Dialect {
        /// The rules of Knative Eventing.
        Knative = "knative",
        /// The rules of Azure Event Grid topics and domains, for webhook endpoints.
        EventGrid = "eventgrid",
        /// The rules of Azure Event Grid topics and domains, for endpoints that are Azure
        /// resources.
        EventGridResource = "eventgrid",
        /// The rules of Azure Event Grid namespace topics, push delivery.
        EventGridNamespace = "eventgrid-namespace",
        /// The rules of Event Grid on Kubernetes.
        EventGridKubernetes = "eventgrid-kubernetes",
        /// The rules of this project's own format.
        Native = "native",
    }
}

impl Dialect {
    /// All dialects, each with the unique name of its profile.
    pub const PROFILES: [(&'static str, Self); 6] = [
        ("knative", Self::Knative),
        ("eventgrid", Self::EventGrid),
        ("eventgrid-resource", Self::EventGridResource),
        ("eventgrid-namespace", Self::EventGridNamespace),
        ("eventgrid-kubernetes", Self::EventGridKubernetes),
        ("native", Self::Native),
    ];

    /// Returns the unique name of the dialect's profile.
    #[must_use]
    pub fn profile(self) -> &'static str {
        let found = Self::PROFILES.iter().find(|(_, dialect)| *dialect == self);
        found.map_or(self.as_str(), |(word, _)| *word)
    }
}

record! {
    /// The retry policy: attempts, waits and the meaning of statuses.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct RetryPolicy {
        /// Maximum number of attempts, including the first.
        "maxAttempts" => pub max_attempts: u32 = Required(Integer(1..=ATTEMPTS_MAX)),
        /// No attempt begins after this time; PT1S to P14D. The time starts at publication or, if
        /// there is a delay (`delay` or `deliverat`), at its end.
        "timeToLive" => pub time_to_live_ms: Option<u64> = Optional(Duration(SECOND_MS..=LIFETIME_MAX_MS), NO_TIME_TO_LIVE),
        /// The waits between attempts.
        "schedule" => pub schedule: Schedule = Required(Waits),
        /// Maximum random extension of a wait, in percent: 10 extends a wait of PT1M by up to PT6S.
        "jitterPercent" => pub jitter_percent: u32 = Required(Integer(0..=100)),
        /// Statuses of a successful delivery, such as 200-204.
        "success" => pub success: StatusSet = Meaning::Success,
        /// Statuses that are never retried, in addition to the defaults.
        "neverRetry" => pub never_retry: StatusSet = Meaning::NeverRetry,
        /// Statuses that are retried, even if the defaults never retry them.
        "retryOn" => pub retry_on: StatusSet = Meaning::RetryOn,
        /// Minimum wait after each of these statuses, such as {503: PT30S}.
        "leastWaits" => pub least_waits: Vec<(u16, u64)> = Required(statuses::LeastWaits),
        /// Minimum wait after every failure that `leastWaits` does not cover.
        "otherwiseLeastWait" => pub otherwise_least_wait_ms: u64 = Required(Duration(0..=LIFETIME_MAX_MS)),
        /// Longest wait that the header Retry-After can cause; PT0S ignores the header.
        "retryAfterMax" => pub retry_after_max_ms: u64 = Required(Duration(0..=LIFETIME_MAX_MS)),
        /// If `true`, every dead letter after the last allowed attempt has the reason
        /// `MaxDeliveryAttemptsExceeded`, whatever the status, as in Event Grid's samples.
        "lastAttemptNamesTheLimit" => pub last_attempt_names_the_limit: bool = Required(Flag),
    }
}

impl RetryPolicy {
    /// Returns the minimum wait in milliseconds after this status.
    #[must_use]
    pub fn least_wait_ms(&self, status: u16) -> u64 {
        let stated = self.least_waits.iter().find(|(listed, _)| *listed == status);
        stated.map_or(self.otherwise_least_wait_ms, |(_, wait_ms)| *wait_ms)
    }
}

/// Text that is displayed if a subscription has no time to live.
const NO_TIME_TO_LIVE: &str = "none; the limit is 14 days in every dialect";

/// The defaults of a dialect for the settings of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The dialect with these defaults.
    pub dialect: Dialect,
    /// Default response timeout in milliseconds.
    pub response_timeout_ms: u64,
    /// Time in milliseconds after the response timeout in which a response still counts; 0 disables
    /// late responses.
    pub late_window_ms: u64,
    /// True if deliveries to a failing destination are deferred.
    pub probation: bool,
    /// True if JSON that is not an event is sent as it was published, and not in an array.
    pub plain_json: bool,
    /// True if requests contain Event Grid's headers (`aeg-…`).
    pub notification_headers: bool,
    /// The attempts, their schedule, and the meaning of statuses.
    pub retry: RetryPolicy,
    /// The format of dead letters, or the rule that determines it.
    pub dead_letter_format: DeadLetterFormat,
    /// Minimum time in milliseconds between the last attempt and writing the dead letter.
    pub dead_letter_delay_ms: u64,
    /// Duration in milliseconds during which storing a dead letter is retried if storage fails.
    pub keep_trying_for_ms: u64,
}

impl Profile {
    /// Returns the defaults of a dialect.
    #[must_use]
    pub fn for_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Knative => knative(),
            Dialect::EventGrid => event_grid(),
            Dialect::EventGridResource => event_grid_resource(),
            Dialect::EventGridNamespace => event_grid_namespace(),
            Dialect::EventGridKubernetes => event_grid_kubernetes(),
            Dialect::Native => native(),
        }
    }
}

/// Returns the defaults of Knative ("Handling Delivery Failure"): one attempt, unless `retry`
/// states more.
fn knative() -> Profile {
    Profile {
        dialect: Dialect::Knative,
        response_timeout_ms: 30 * SECOND_MS,
        late_window_ms: 0,
        probation: false,
        plain_json: false,
        notification_headers: false,
        dead_letter_format: DeadLetterFormat::Fixed(Format::Knative),
        dead_letter_delay_ms: 0,
        keep_trying_for_ms: 2 * DAY_MS,
        retry: RetryPolicy {
            max_attempts: 1,
            time_to_live_ms: None,
            schedule: uncapped(Kind::Exponential { delay_ms: SECOND_MS }),
            jitter_percent: 0,
            success: StatusSet::new([200..=299]),
            never_retry: StatusSet::new([100..=199, 300..=403, 405..=407, 410..=428, 430..=499]),
            retry_on: StatusSet::default(),
            least_waits: Vec::new(),
            otherwise_least_wait_ms: 0,
            retry_after_max_ms: HOUR_MS,
            last_attempt_names_the_limit: false,
        },
    }
}

/// Returns the defaults of Event Grid ("message delivery and retry"). The waits are 10s 30s 1m 5m
/// 10m 30m 1h 3h 6h, then 12h each. A dead letter is written five minutes after the last attempt.
fn event_grid() -> Profile {
    let waits_ms = [
        10 * SECOND_MS,
        30 * SECOND_MS,
        MINUTE_MS,
        5 * MINUTE_MS,
        10 * MINUTE_MS,
        30 * MINUTE_MS,
        HOUR_MS,
        3 * HOUR_MS,
        6 * HOUR_MS,
        12 * HOUR_MS,
    ];
    Profile {
        dialect: Dialect::EventGrid,
        response_timeout_ms: 30 * SECOND_MS,
        late_window_ms: 3 * MINUTE_MS,
        probation: true,
        plain_json: false,
        notification_headers: true,
        dead_letter_format: DeadLetterFormat::ByDeliverySchema,
        dead_letter_delay_ms: 5 * MINUTE_MS,
        keep_trying_for_ms: 4 * HOUR_MS,
        retry: RetryPolicy {
            max_attempts: 30,
            time_to_live_ms: Some(1_440 * MINUTE_MS),
            schedule: uncapped(Kind::Waits { waits_ms: waits_ms.into() }),
            jitter_percent: 10,
            success: StatusSet::new([200..=204]),
            never_retry: StatusSet::from_statuses(&[400, 401, 403, 404, 413]),
            retry_on: StatusSet::default(),
            least_waits: vec![(408, 2 * MINUTE_MS), (503, 30 * SECOND_MS)],
            otherwise_least_wait_ms: 10 * SECOND_MS,
            retry_after_max_ms: HOUR_MS,
            last_attempt_names_the_limit: true,
        },
    }
}

/// Returns the defaults of Event Grid for endpoints that are Azure resources. Statuses 401 and 404
/// are retried after at least five minutes.
fn event_grid_resource() -> Profile {
    let mut profile = event_grid();
    profile.dialect = Dialect::EventGridResource;
    profile.retry.never_retry = StatusSet::from_statuses(&[400, 403, 413]);
    profile.retry.least_waits.extend([(401, 5 * MINUTE_MS), (404, 5 * MINUTE_MS)]);
    profile.retry.least_waits.sort_unstable();
    profile
}

/// Returns the defaults of Event Grid namespaces, push delivery. Attempts are made 10s 30s 1m 5m
/// 10m after the first, then every 5m.
fn event_grid_namespace() -> Profile {
    let moments_ms = [10 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS];
    let mut profile = event_grid();
    profile.dialect = Dialect::EventGridNamespace;
    profile.late_window_ms = 0;
    profile.probation = false;
    profile.dead_letter_format = DeadLetterFormat::Fixed(Format::Namespace);
    profile.dead_letter_delay_ms = 0;
    profile.keep_trying_for_ms = 2 * DAY_MS;
    profile.retry.max_attempts = 10;
    profile.retry.time_to_live_ms = Some(7 * DAY_MS);
    profile.retry.schedule = uncapped(Kind::Moments { moments_ms: moments_ms.into() });
    profile.retry.never_retry = StatusSet::from_statuses(&[400, 401, 403, 404, 413, 414]);
    profile
}

/// Returns the defaults of Event Grid on Kubernetes. The waits are one minute, then ten minutes
/// each; every failure is retried.
fn event_grid_kubernetes() -> Profile {
    Profile {
        dialect: Dialect::EventGridKubernetes,
        response_timeout_ms: MINUTE_MS,
        late_window_ms: 0,
        probation: false,
        plain_json: false,
        notification_headers: true,
        dead_letter_format: DeadLetterFormat::ByDeliverySchema,
        dead_letter_delay_ms: 0,
        keep_trying_for_ms: 2 * DAY_MS,
        retry: RetryPolicy {
            max_attempts: 30,
            time_to_live_ms: Some(120 * MINUTE_MS),
            schedule: uncapped(Kind::Waits { waits_ms: [MINUTE_MS, 10 * MINUTE_MS].into() }),
            jitter_percent: 0,
            success: StatusSet::new([200..=204]),
            never_retry: StatusSet::default(),
            retry_on: StatusSet::default(),
            least_waits: Vec::new(),
            otherwise_least_wait_ms: 0,
            retry_after_max_ms: HOUR_MS,
            last_attempt_names_the_limit: true,
        },
    }
}

/// Returns the defaults of the native dialect: 20 attempts in about 19 hours, with exponential
/// waits from five seconds to two hours.
fn native() -> Profile {
    Profile {
        dialect: Dialect::Native,
        response_timeout_ms: 30 * SECOND_MS,
        late_window_ms: 0,
        probation: true,
        plain_json: true,
        notification_headers: false,
        dead_letter_format: DeadLetterFormat::Fixed(Format::Namespace),
        dead_letter_delay_ms: 0,
        keep_trying_for_ms: 2 * DAY_MS,
        retry: RetryPolicy {
            max_attempts: 20,
            time_to_live_ms: Some(DAY_MS),
            schedule: Schedule {
                kind: Kind::ExponentialFromZero { delay_ms: 5 * SECOND_MS },
                max_ms: Some(2 * HOUR_MS),
            },
            jitter_percent: 10,
            success: StatusSet::new([200..=299]),
            never_retry: StatusSet::new([100..=199, 300..=399]).with(&StatusSet::from_statuses(&[
                400, 401, 403, 404, 405, 406, 410, 413, 414, 415, 422, 431, 451,
            ])),
            retry_on: StatusSet::default(),
            least_waits: Vec::new(),
            otherwise_least_wait_ms: 0,
            retry_after_max_ms: HOUR_MS,
            last_attempt_names_the_limit: false,
        },
    }
}

fn uncapped(kind: Kind) -> Schedule {
    Schedule { kind, max_ms: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_statuses_are_joined_and_subtracted() {
        let set = StatusSet::new([200..=299])
            .with(&StatusSet::from_statuses(&[304]))
            .difference(&StatusSet::new([204..=205]));
        let inside: Vec<u16> = [199, 200, 203, 204, 205, 206, 299, 300, 304]
            .into_iter()
            .filter(|s| set.contains(*s))
            .collect();
        assert_eq!(inside, [200, 203, 206, 299, 304]);
    }

    #[test]
    fn a_set_is_the_same_however_it_was_gathered() {
        let set = StatusSet::new([404..=404, 200..=204, 205..=299, 202..=202, 250..=260]);
        assert_eq!(set, StatusSet::from_statuses(&[404]).with(&StatusSet::new([200..=299])));
        assert_eq!(set.ranges(), ["200-299", "404"]);
        let rest = set.difference(&StatusSet::new([201..=298]));
        assert_eq!(rest.ranges(), ["200", "299", "404"]);
        let defined = StatusSet::new([100..=599]);
        assert_eq!(
            StatusSet::new([0..=u16::MAX]).difference(&defined).ranges(),
            ["0-99", "600-65535"]
        );
        assert_eq!(defined.difference(&StatusSet::new([0..=u16::MAX])), StatusSet::default());
        assert_eq!(set.difference(&StatusSet::new([300..=403, 405..=499])), set);
        let (first, last) = (300, 200);
        assert_eq!(StatusSet::new([first..=last]), StatusSet::default());
        assert_eq!(StatusSet::new([0..=u16::MAX, 7..=7]).ranges(), ["0-65535"]);
    }
}
