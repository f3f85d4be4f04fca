//! The retry policies of the dialects, with their waits as the documentation lists them.

use delivery::subscription::profile::{Dialect, Profile};
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use delivery::waits::{Kind, Schedule};

use super::faults::SeededRandom;

/// The waits, as lists; the last one repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waits {
    /// Before retry 1, 2, 3 …
    Each(&'static [u64]),
    /// Since the first attempt.
    SinceFirst(&'static [u64]),
}

/// A profile with changes, and its waits by the documentation.
pub(crate) fn policy(random: &mut SeededRandom) -> (Profile, Waits) {
    match random.below(11) {
        0 => knative(0, Kind::Exponential { delay_ms: 1_000 }, &[0]),
        1 => knative(3, Kind::Linear { delay_ms: 1_000 }, &[1_000, 2_000, 3_000]),
        2 => knative(4, Kind::Exponential { delay_ms: 200 }, &[400, 800, 1_600, 3_200]),
        3 => knative(4, Kind::LinearFromZero { delay_ms: 200 }, &[0, 200, 400, 600]),
        4 => knative(
            5,
            Kind::ExponentialFromZero { delay_ms: 1_000 },
            &[1_000, 2_000, 4_000, 8_000, 16_000],
        ),
        5 => event_grid(random.pick(&[1, 30, 30, 240, 1_440])),
        6 => namespace(),
        7 => kubernetes(),
        8 => native(8, Kind::Constant { delay_ms: 300 }, &[300]),
        9 => native(3, Kind::Waits { waits_ms: [500, 2_000_000].into() }, &[500, 2_000_000]),
        _ => {
            let kind = Kind::Exponential { delay_ms: 1_000 };
            native(
                10,
                kind,
                &[2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000],
            )
        }
    }
}

fn knative(retry: u32, kind: Kind, waits: &'static [u64]) -> (Profile, Waits) {
    let mut profile = Profile::for_dialect(Dialect::Knative);
    profile.retry.max_attempts = retry + 1;
    profile.retry.schedule = Schedule { kind, max_ms: None };
    (profile, Waits::Each(waits))
}

/// The native dialect with these attempts and waits.
pub(crate) fn native(attempts: u32, kind: Kind, waits: &'static [u64]) -> (Profile, Waits) {
    let mut profile = Profile::for_dialect(Dialect::Native);
    profile.retry.max_attempts = attempts;
    profile.retry.schedule.kind = kind;
    (profile, Waits::Each(waits))
}

/// The Event Grid dialect with this time to live.
pub(crate) fn event_grid(minutes: u64) -> (Profile, Waits) {
    const WAITS: [u64; 10] = [
        10 * SECOND_MS,
        30 * SECOND_MS,
        MINUTE_MS,
        5 * MINUTE_MS,
        10 * MINUTE_MS,
        30 * MINUTE_MS,
        HOUR_MS,
        3 * HOUR_MS,
        6 * HOUR_MS,
        DAY_MS / 2,
    ];
    let mut profile = Profile::for_dialect(Dialect::EventGrid);
    profile.retry.time_to_live_ms = Some(minutes * MINUTE_MS);
    (profile, Waits::Each(&WAITS))
}

fn namespace() -> (Profile, Waits) {
    const MOMENTS: [u64; 9] = [10, 30, 60, 300, 600, 900, 1_200, 1_500, 1_800];
    const MOMENTS_MS: [u64; 9] = {
        let mut moments = MOMENTS;
        let mut index = 0;
        while index < moments.len() {
            moments[index] *= SECOND_MS;
            index += 1;
        }
        moments
    };
    let mut profile = Profile::for_dialect(Dialect::EventGridNamespace);
    profile.retry.time_to_live_ms = Some(20 * MINUTE_MS);
    (profile, Waits::SinceFirst(&MOMENTS_MS))
}

fn kubernetes() -> (Profile, Waits) {
    let mut profile = Profile::for_dialect(Dialect::EventGridKubernetes);
    profile.retry.max_attempts = 3;
    (profile, Waits::Each(&[MINUTE_MS, 10 * MINUTE_MS]))
}
