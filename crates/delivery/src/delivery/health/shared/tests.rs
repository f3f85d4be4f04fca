//! The documents once several processes wrote what they found out.

use super::*;
use crate::delivery::health::Finding;
use crate::delivery::outcome::Outcome;
use crate::subscription::{Disable, Disabled};
use crate::time::duration::DAY_MS;

fn findings(failing: Option<(Finding, u64)>) -> Findings {
    let attempts = vec![Attempted::new(7, Outcome::Busy, Some(503), 1)];
    let nothing = Findings::new("https://example.com/".to_owned(), "n/t/s".to_owned());
    Findings { failing, attempts, ..nothing }
}

fn began(at_ms: u64, lasts_ms: u64) -> Findings {
    findings(Some((Finding::Began { lasts_ms }, at_ms)))
}

fn failing(state: &DestinationState) -> (u64, u64, u64) {
    let spell = state.failing.expect("it is failing");
    (spell.since_ms, spell.until_ms, spell.lasts_ms)
}

#[test]
fn what_is_written_is_read_and_a_newer_version_is_refused() {
    let state = DestinationState::merged(None, &began(1_000, 10_000), 1_001);
    assert_eq!(DestinationState::read(state.entry().text.as_bytes()), Ok(state.clone()));
    let newer = br#"{"v":2,"anything":[]}"#;
    assert_eq!(DestinationState::read(newer), Err(DocumentError::Version(2)));
    assert!(matches!(DestinationState::read(b"no"), Err(DocumentError::Invalid(_))));
}

#[test]
fn the_longer_probation_is_kept_and_the_earlier_beginning() {
    let first = DestinationState::merged(None, &began(1_000, 600_000), 1_000);
    assert_eq!(failing(&first), (1_000, 601_000, 600_000));
    // Another process that did not know of it.
    let second = DestinationState::merged(Some(first.clone()), &began(5_000, 10_000), 5_000);
    assert_eq!(failing(&second), (1_000, 601_000, 600_000));
    // After its end that is a failed probe.
    let late = DestinationState::merged(Some(first), &began(700_000, 10_000), 700_000);
    assert_eq!(failing(&late), (1_000, 1_900_000, 1_200_000));
    let probed = findings(Some((Finding::GoesOn { lasts_ms: 2_400_000 }, 1_900_000)));
    let probed = DestinationState::merged(Some(late), &probed, 1_900_000);
    assert_eq!(failing(&probed), (1_000, 4_300_000, 2_400_000));
}

#[test]
fn writing_the_same_twice_changes_nothing() {
    let once = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    assert_eq!(DestinationState::merged(Some(once.clone()), &began(1_000, 10_000), 1_000), once);
}

#[test]
fn an_end_leaves_a_healthy_destination_with_its_last_five_attempts() {
    let mut state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    for at_ms in 1_010..1_020 {
        let attempts = vec![Attempted::new(at_ms, Outcome::TimedOut, None, 30_000)];
        let ended = Findings { attempts, ..findings(Some((Finding::Ended, at_ms))) };
        state = DestinationState::merged(Some(state), &ended, at_ms);
    }
    assert!(state.is_healthy());
    let kept: Vec<u64> = state.attempts.iter().map(|attempt| attempt.at_ms).collect();
    assert_eq!(kept, [1_015, 1_016, 1_017, 1_018, 1_019]);
}

#[test]
fn one_process_at_a_time_may_probe() {
    let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    assert_eq!(state.claim(10_999, 50_000), Claim::Failing(state.failing.unwrap()));
    let Claim::Write(claimed) = state.claim(11_000, 50_000) else { panic!("it may probe") };
    assert_eq!(claimed.claim(11_001, 60_000), Claim::Probed);
    // The process that probed is gone.
    assert!(matches!(claimed.claim(50_000, 90_000), Claim::Write(_)));
    let failed = findings(Some((Finding::GoesOn { lasts_ms: 20_000 }, 12_000)));
    let probed = DestinationState::merged(Some((*claimed).clone()), &failed, 12_000);
    assert_eq!(probed.claim(12_001, 60_000), Claim::Failing(probed.failing.unwrap()));
    let unprobed = Findings { is_unprobed: true, ..findings(None) };
    let unprobed = DestinationState::merged(Some((*claimed).clone()), &unprobed, 12_000);
    assert!(matches!(unprobed.claim(12_001, 60_000), Claim::Write(_)));
    let recovered = findings(Some((Finding::Ended, 12_000)));
    let probed = DestinationState::merged(Some(*claimed), &recovered, 12_000);
    assert_eq!(probed.claim(12_001, 60_000), Claim::Recovered);
}

#[test]
fn health_is_forgotten_after_a_week_and_a_switch_never() {
    let state = DestinationState::merged(None, &began(1_000, 10_000), 2_000);
    assert_eq!(state.entry().expires_ms, Some(2_000 + 7 * DAY_MS));
    let disabled = state.disabled_by_operator(Disabled::Hold, 3_000);
    assert_eq!(disabled.entry().expires_ms, None);
    assert_eq!(disabled.enabled(4_000).entry().expires_ms, Some(4_000 + 7 * DAY_MS));
}

#[test]
fn an_old_finding_or_one_of_a_wrong_clock_decides_nothing() {
    let state = DestinationState::merged(None, &began(50_000, 10_000), 50_000);
    // A process writes at last what it found before that.
    let ended = findings(Some((Finding::Ended, 49_000)));
    let state = DestinationState::merged(Some(state), &ended, 51_000);
    assert_eq!(failing(&state), (50_000, 60_000, 10_000));
    let ended = findings(Some((Finding::Ended, 61_000)));
    let healthy = DestinationState::merged(Some(state), &ended, 61_000);
    let again = DestinationState::merged(Some(healthy), &began(52_000, 10_000), 70_000);
    assert!(again.is_healthy());
    let ahead = DestinationState::merged(None, &began(u64::MAX / 2, 10_000), 1_000);
    assert!(matches!(ahead.claim(1_000, 2_000), Claim::Write(_)));
}

#[test]
fn failures_of_long_ago_are_not_the_beginning_of_those_of_today() {
    let disable = Some(Disable { after_ms: DAY_MS, then: Disabled::Hold });
    let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    let now_ms = 11_000 + DAY_MS;
    let again = Findings { disable, ..began(now_ms, 10_000) };
    let state = DestinationState::merged(Some(state), &again, now_ms);
    assert_eq!((failing(&state).0, state.disabled), (now_ms, None));
}
