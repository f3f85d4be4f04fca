//! Any bytes as one of the documents that items of the table hold. Nothing panics, what is read is written back to
//! something that reads the same, and what is done with it stays within its limits.
//!
//! Input: 8 bytes of time and options, and a document.

#![no_main]

use delivery::delivery::health::news::{AllNews, News};
use delivery::delivery::health::shared::{Attempted, Claim, DestinationState, Document, Findings};
use delivery::delivery::health::{Finding, slow};
use delivery::delivery::outcome::Outcome;
use delivery::event::{Element, Input, decode_one};
use delivery::subscription::Disable;
use delivery::table::Permit;
use lastmile_fuzz::NOW_MS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, u32, &[u8])| {
    let (time, options, document) = input;
    let now_ms = NOW_MS + u64::from(time);
    if let Some(state) = read::<DestinationState>(document) {
        check_state(state, options, now_ms);
    }
    if let Some(news) = read::<News>(document) {
        let _expires = news.entry().expires_s();
        let all: AllNews = [news.clone(), news].into_iter().collect();
        assert!(all.health().count() + all.disabled().len() + all.topics().len() <= 1);
    }
    if let Ok(Ok(permit)) = std::str::from_utf8(document).map(str::parse::<Permit>) {
        assert_eq!(permit.to_string().parse(), Ok(permit));
    }
});

fn read<D: Document + std::fmt::Debug>(document: &[u8]) -> Option<D> {
    let read = D::read(document).ok()?;
    assert_eq!(D::read(read.entry().text.as_bytes()), Ok(read.clone()));
    Some(read)
}

fn check_state(state: DestinationState, options: u32, now_ms: u64) {
    // No process finds a longer one: ten minutes is the longest of the shorter limit.
    let lasts_ms = u64::from(options >> 8) % slow::LASTS_MS;
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
        disable: (options & 8 > 0).then_some(Disable { after_ms: lasts_ms }),
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
        let enabled = state.clone().disabled_by_operator(now_ms).enabled(now_ms);
        assert!(enabled.disabled.is_none() && enabled.is_healthy());
        let probed = state.probed_now(now_ms);
        assert!(!matches!(probed.claim(now_ms, now_ms + 30_000), Claim::Failing(_)));
    }
}
