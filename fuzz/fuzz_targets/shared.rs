//! Any bytes as one of the documents that processes share: no panic, what is read is written back to
//! something that reads the same, and what is done with it stays within its limits.
//!
//! Input: 8 bytes of time and options, and a document.

#![no_main]

use delivery::delivery::health::dead_letters::{Causes, Minute, MinuteOfDeadLetters};
use delivery::delivery::health::permits::{self, Permits};
use delivery::delivery::health::shared::{
    Attempted, Claim, DestinationState, Digest, Document, Findings,
};
use delivery::delivery::health::slots::{self, Slots};
use delivery::delivery::health::{DestinationKey, Finding, slow};
use delivery::delivery::outcome::Outcome;
use delivery::event::{Element, Input, decode_one};
use delivery::subscription::{Disable, Disabled};
use lastmile_fuzz::NOW_MS;
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

fuzz_target!(|input: (u32, u32, &[u8])| {
    let (time, options, document) = input;
    let now_ms = NOW_MS + u64::from(time);
    if let Some(state) = read::<DestinationState>(document) {
        check_state(state, options, now_ms);
    }
    if let Some(slots) = read::<Slots>(document) {
        check_slots(slots, options, now_ms);
    }
    if let Some(permits) = read::<Permits>(document) {
        check_permits(permits, options, now_ms);
    }
    if let Some(minute) = read::<MinuteOfDeadLetters>(document) {
        check_dead_letters(minute, now_ms);
    }
    if let Some(mut digest) = read::<Digest>(document) {
        let state = DestinationState::healthy("https://example.com/", "n/t/s", now_ms);
        let key = DestinationKey::of(&"https://example.com/".parse().expect("a URL"));
        let _changed = digest.note(key, &state, now_ms);
        assert!(!digest.note(key, &state, now_ms), "noting twice changes something");
        assert!(digest.iter().all(|(other, _)| other != key));
    }
});

fn read<D: Document + std::fmt::Debug>(document: &[u8]) -> Option<D> {
    let read = D::read(document).ok()?;
    assert_eq!(D::read(&read.write()), Ok(read.clone()));
    Some(read)
}

fn check_state(state: DestinationState, options: u32, now_ms: u64) {
    // No process finds a longer one: ten minutes is the longest of the shorter limit.
    let lasts_ms = u64::from(options >> 8) % slow::LONGEST_MS;
    let finding = match options % 4 {
        0 => None,
        1 => Some((Finding::Began { lasts_ms }, now_ms)),
        2 => Some((Finding::GoesOn { lasts_ms }, now_ms)),
        _ => Some((Finding::Ended, now_ms)),
    };
    let found = Findings {
        failing: finding,
        slow: finding.filter(|_| options & 4 > 0),
        attempts: vec![Attempted::new(now_ms, Outcome::Busy, Some(503), lasts_ms)],
        disable: (options & 8 > 0).then_some(Disable { after_ms: lasts_ms, then: Disabled::Hold }),
        notifies: options & 16 > 0,
        is_unprobed: options & 32 > 0,
        ..Findings::new("https://example.com/".to_owned(), "n/t/s".to_owned())
    };
    let merged = DestinationState::merged(Some(state.clone()), &found, now_ms);
    let again = DestinationState::merged(Some(merged.clone()), &found, now_ms);
    assert_eq!(again, merged, "writing twice changes something");
    for notice in &merged.notices {
        let event = notice.event(&merged);
        assert!(matches!(decode_one(&event.into(), Input::CloudEvents), Element::Event(_)));
    }
    for state in [state, merged] {
        if let Claim::Failing(spell) = state.claim(now_ms, now_ms + 30_000) {
            assert!(now_ms < spell.until_ms);
        }
        let enabled = state.clone().disabled_by_operator(Disabled::Hold, now_ms).enabled(now_ms);
        assert!(enabled.disabled.is_none() && enabled.is_healthy());
        let probed = state.probed_now(now_ms);
        assert!(!matches!(probed.claim(now_ms, now_ms + 30_000), Claim::Failing(_)));
    }
}

fn check_slots(mut slots: Slots, options: u32, now_ms: u64) {
    let per_second = options % 50 + 1;
    let count = options >> 8 & 0xff;
    let latest_ms = now_ms + u64::from(options >> 16);
    let wanted = slots::Wanted { per_second, count, latest_ms, ahead: options >> 6 & 3 };
    for _ in 0..3 {
        let reserved = slots.reserve(wanted, now_ms);
        for second in &reserved {
            assert!(second.count <= per_second && second.at_ms / 1_000 >= now_ms / 1_000);
        }
        let _next = slots.next_ms();
        assert_eq!(Slots::read(&slots.write()), Ok(slots.clone()));
    }
}

fn check_permits(mut permits: Permits, options: u32, now_ms: u64) {
    let most = options % 20 + 1;
    let wanted = |new: u32, in_use: u32| permits::Wanted {
        new,
        waited: options >> 8 & 7,
        in_use,
        until_ms: now_ms + 10 + u64::from(options >> 16),
    };
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let first = permits.lease(one, wanted(options >> 5 & 31, 0), most, now_ms);
    let second = permits.lease(other, wanted(7, 0), most, now_ms);
    assert!(first.permits.saturating_add(second.permits) <= most);
    permits.note_taken(u64::from(options), now_ms);
    let next = permits.lease(one, wanted(3, first.permits), most, now_ms + 1);
    assert!(next.permits >= first.permits, "what is in use was taken");
    let turns = first.turns_ms.iter().chain(&second.turns_ms).chain(&next.turns_ms);
    assert!(turns.into_iter().all(|turn_ms| *turn_ms >= now_ms));
}

fn check_dead_letters(minute: MinuteOfDeadLetters, now_ms: u64) {
    for (_, event) in minute.events() {
        assert!(matches!(decode_one(&event.into(), Input::CloudEvents), Element::Event(_)));
    }
    let mut counted = Causes::default();
    counted.note("TimeToLiveExceeded", "n/t/s", Uuid::from_u128(7));
    let of = Minute::of(now_ms);
    let with = MinuteOfDeadLetters::with(Some(minute), of, &counted);
    assert!(with.is_of(of) && with.events().count() > 0);
}
