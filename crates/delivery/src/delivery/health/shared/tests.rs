//! The documents after several processes wrote their findings.

use super::*;
use crate::delivery::health::Finding;
use crate::delivery::outcome::Outcome;
use crate::subscription::Disable;
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
    let first = DestinationState::merged(None, &began(1_000, 200_000), 1_000);
    assert_eq!(failing(&first), (1_000, 201_000, 200_000));
    // Another process without the first finding.
    let second = DestinationState::merged(Some(first.clone()), &began(5_000, 10_000), 5_000);
    assert_eq!(failing(&second), (1_000, 201_000, 200_000));
    // After its end the finding is a failed probe.
    let late = DestinationState::merged(Some(first), &began(250_000, 10_000), 250_000);
    assert_eq!(failing(&late), (1_000, 550_000, 300_000));
    let probed = findings(Some((Finding::GoesOn { lasts_ms: 300_000 }, 560_000)));
    let probed = DestinationState::merged(Some(late), &probed, 560_000);
    assert_eq!(failing(&probed), (1_000, 860_000, 300_000));
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
    // The process with the claim has ended.
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
    let disabled = state.disabled_by_operator(3_000);
    assert_eq!(disabled.entry().expires_ms, None);
    assert_eq!(disabled.enabled(4_000).entry().expires_ms, Some(4_000 + 7 * DAY_MS));
}

#[test]
fn an_old_finding_or_one_of_a_wrong_clock_decides_nothing() {
    let state = DestinationState::merged(None, &began(50_000, 10_000), 50_000);
    // A process writes an older finding last.
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
fn a_destination_that_fails_again_after_a_day_has_begun_to_fail() {
    use crate::delivery::health::notice::Transition;
    let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    for (now_ms, begins) in [(12_000, false), (11_000 + DAY_MS, true)] {
        let again = DestinationState::merged(Some(state.clone()), &began(now_ms, 10_000), now_ms);
        let changes: Vec<Transition> = Transition::since(Some(&state), &again).collect();
        assert_eq!(changes.contains(&Transition::Failing), begins, "{now_ms}");
    }
}

#[test]
fn a_row_of_failures_is_shown_as_failing_until_one_succeeds() {
    let row = |row| Findings { row: Some(row), ..findings(None) };
    let first = DestinationState::merged(
        None,
        &row(FailureStreak::Failing { since_ms: 5_000, at_ms: 9_000 }),
        9_000,
    );
    assert!(first.is_failing() && !first.is_healthy() && first.failing.is_none());
    let second = row(FailureStreak::Failing { since_ms: 7_000, at_ms: 9_000 });
    let second = DestinationState::merged(Some(first), &second, 9_000);
    assert_eq!(second.refusing.map(|spell| spell.since_ms), Some(5_000));
    let ended = DestinationState::merged(Some(second), &row(FailureStreak::Ended), 10_000);
    assert!(ended.is_healthy());
}

#[test]
fn the_end_of_an_outage_is_the_end_of_its_row_of_failures() {
    let row = Some(FailureStreak::Failing { since_ms: 1_000, at_ms: 1_000 });
    let began = Findings { row, ..began(1_000, 10_000) };
    let failing = DestinationState::merged(None, &began, 1_000);
    // Another process made the probe.
    let ended = findings(Some((Finding::Ended, 12_000)));
    assert!(DestinationState::merged(Some(failing), &ended, 12_000).is_healthy());
}

#[test]
fn of_two_processes_the_one_that_found_it_slow_last_is_right() {
    let slow = |finding, at_ms| Findings { slow: Some((finding, at_ms)), ..findings(None) };
    let lasts_ms = crate::delivery::health::slow::LASTS_MS;
    let state = DestinationState::merged(None, &slow(Finding::Began { lasts_ms }, 1_000), 1_000);
    let ended = slow(Finding::Ended, 2_000);
    let state = DestinationState::merged(Some(state), &ended, 2_000);
    assert_eq!(state.slow.map(|spell| spell.until_ms), Some(1_000 + lasts_ms));
    let ended = slow(Finding::Ended, 1_000 + lasts_ms);
    assert!(DestinationState::merged(Some(state), &ended, 700_000).is_healthy());
}

#[test]
fn failures_of_long_ago_are_not_the_beginning_of_those_of_today() {
    let disable = Some(Disable { after_ms: DAY_MS });
    let state = DestinationState::merged(None, &began(1_000, 10_000), 1_000);
    let now_ms = 11_000 + DAY_MS;
    let again = Findings { disable, ..began(now_ms, 10_000) };
    let state = DestinationState::merged(Some(state), &again, now_ms);
    assert_eq!((failing(&state).0, state.disabled), (now_ms, None));
}
