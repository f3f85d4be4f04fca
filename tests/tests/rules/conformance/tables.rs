//! The tables of the documents: statuses of Event Grid, waits of Knative, lifetimes, samples of dead letters.

use delivery::delivery::outcome::{Verdict, judge};
use delivery::subscription::profile::{Dialect, Profile};
use delivery::time::duration::MINUTE_MS;
use delivery::waits::{Kind, Moments, Schedule};
use lastmile_tests::conformance::{Results, TABLES};

use super::dead_letters;
use crate::lifetimes::{always_500, limited, seconds};
use crate::samples::answered;

/// Never retried, the least waits by status in seconds, and that of every other.
type Statuses = (Dialect, &'static [u16], &'static [(u16, u64)], u64);

const STATUSES: [Statuses; 4] = [
    (Dialect::EventGrid, &[400, 401, 403, 404, 413], &[(408, 120), (503, 30)], 10),
    (
        Dialect::EventGridResource,
        &[400, 403, 413],
        &[(401, 300), (404, 300), (408, 120), (503, 30)],
        10,
    ),
    (Dialect::EventGridNamespace, &[400, 401, 403, 404, 413, 414], &[(408, 120), (503, 30)], 10),
    (Dialect::EventGridKubernetes, &[], &[], 0),
];

/// All of them; `None` without the documents.
pub(super) fn results() -> Option<Results> {
    let mut results = Results::new(TABLES);
    for (dialect, never, waits_s, otherwise_s) in STATUSES {
        let policy = Profile::for_dialect(dialect).retry;
        for status in 100..=599 {
            let least_s =
                waits_s.iter().find(|(listed, _)| *listed == status).map(|(_, wait_s)| *wait_s);
            let least_wait_ms = least_s.unwrap_or(otherwise_s) * 1_000;
            let passes = match judge(&policy, &answered(status, 0)) {
                Verdict::Delivered => matches!(status, 200..=204),
                Verdict::Undeliverable(_) => never.contains(&status),
                found @ Verdict::Retry { .. } => {
                    let is_retried = !never.contains(&status) && !matches!(status, 200..=204);
                    is_retried && found == Verdict::Retry { least_wait_ms }
                }
            };
            results.check(&format!("{dialect:?} {status}"), passes, None);
        }
    }
    waits(&mut results);
    for (dialect, attempts, minutes, moments_s, ended_s) in [
        (Dialect::EventGrid, 30, 1, &[0, 10, 40][..], 100),
        (Dialect::EventGrid, 30, 30, &[0, 10, 40, 100, 400, 1_000], 2_800),
        (
            Dialect::EventGrid,
            30,
            1_440,
            &[0, 10, 40, 100, 400, 1_000, 2_800, 6_400, 17_200, 38_800, 82_000],
            125_200,
        ),
        (Dialect::EventGridNamespace, 10, 20, &[0, 10, 30, 60, 300, 600, 900], 1_200),
        (Dialect::EventGridKubernetes, 3, 30, &[0, 60, 660], 660),
    ] {
        let lifetime = always_500(&limited(dialect, attempts, Some(minutes * MINUTE_MS)));
        let passes = lifetime.attempts == seconds(moments_s) && lifetime.ended == ended_s * 1_000;
        results.check(&format!("{dialect:?} {minutes} min: {lifetime:?}"), passes, None);
    }
    dead_letters::count_samples(&mut results)?;
    Some(results)
}

/// Knative's waits, in milliseconds: linear, exponential, and both numbered from zero.
fn waits(results: &mut Results) {
    let table: [(u64, [&[u64]; 4]); 3] = [
        (
            1_000,
            [
                &[1_000, 2_000, 3_000, 4_000, 5_000],
                &[2_000, 4_000, 8_000, 16_000, 32_000],
                &[0, 1_000, 2_000, 3_000, 4_000],
                &[1_000, 2_000, 4_000, 8_000, 16_000],
            ],
        ),
        (
            200,
            [
                &[200, 400, 600, 800],
                &[400, 800, 1_600, 3_200],
                &[0, 200, 400, 600],
                &[200, 400, 800, 1_600],
            ],
        ),
        (
            2_500,
            [
                &[2_500, 5_000, 7_500],
                &[5_000, 10_000, 20_000],
                &[0, 2_500, 5_000],
                &[2_500, 5_000, 10_000],
            ],
        ),
    ];
    for (delay_ms, expected) in table {
        let kinds = [
            Kind::Linear { delay_ms },
            Kind::Exponential { delay_ms },
            Kind::LinearFromZero { delay_ms },
            Kind::ExponentialFromZero { delay_ms },
        ];
        for (kind, expected) in kinds.into_iter().zip(expected) {
            let schedule = Schedule { kind, max_ms: None };
            let start = Moments { first_attempt_ms: 0, outcome_ms: 0 };
            let found = (1..).map(|k| schedule.wait_ms(k, start)).take(expected.len());
            results.check(&format!("{schedule:?}"), found.eq(expected.iter().copied()), None);
        }
    }
}
