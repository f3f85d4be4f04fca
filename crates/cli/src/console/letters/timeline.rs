//! Renders the attempts of a dead letter as a timeline. Pure.

use deadletters::facts::decided_ms;
use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter, StoredSink};
use delivery::delivery::HISTORY_FIRST;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use maud::{Markup, html};

use super::outcome_text::meaning;
use crate::console::shell::markup::{line, outcome, time, word};
use crate::terminal::text;
use crate::terminal::text::attempts::is_put_off;

/// The maximum number of characters of a response that are shown at an attempt.
const RESPONSE_CHARS: usize = 160;

/// An entry of the timeline: an attempt, a deferral, a wait, or a gap.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Attempt(usize, &'a StoredAttempt),
    /// A deferral without an attempt, because the destination was on probation.
    PutOff(&'a StoredAttempt),
    Wait(u64),
    Omitted(u32),
}

/// Lists the attempts with their numbers, and the waits between them. The first wait begins at
/// `before_ms`. The history may omit entries in the middle. Attempts after the gap are numbered
/// backwards from the last one, whose number is the total.
fn steps(
    history: &[StoredAttempt],
    omitted: u32,
    all_attempts: u32,
    mut before_ms: Option<u64>,
) -> Vec<Step<'_>> {
    let kept_first = HISTORY_FIRST.min(history.len());
    let kept = history.iter().filter(|attempt| !is_put_off(attempt)).count();
    let missing = (all_attempts as usize).saturating_sub(kept);
    let (mut steps, mut attempts) = (Vec::new(), 0);
    for (index, attempt) in history.iter().enumerate() {
        let waited_ms = before_ms.map_or(0, |before_ms| attempt.at_ms.saturating_sub(before_ms));
        if omitted > 0 && index == kept_first {
            steps.push(Step::Omitted(omitted));
        } else if waited_ms >= SECOND_MS {
            steps.push(Step::Wait(waited_ms));
        }
        let omitted_before = if omitted == 0 || index < kept_first { 0 } else { missing };
        if is_put_off(attempt) {
            steps.push(Step::PutOff(attempt));
        } else {
            attempts += 1;
            steps.push(Step::Attempt(attempts + omitted_before, attempt));
        }
        before_ms = Some(attempt.at_ms.saturating_add(attempt.duration_ms));
    }
    if omitted > 0 && history.len() == kept_first {
        steps.push(Step::Omitted(omitted));
    }
    steps
}

/// Renders the timeline from publication to the end of the delivery.
pub(in crate::console) fn timeline(letter: &StoredDeadLetter) -> Markup {
    html! { ol .timeline {
        @if letter.published_ms.is_some() {
            li .mark { span .what { "Published" } (time(letter.published_ms)) }
        }
        (draw(steps(&letter.history, letter.omitted, letter.attempts, letter.published_ms), letter.last_response.as_deref(), "response"))
        @if letter.history.is_empty() { li .omitted { "No attempt was made" } }
        li .mark.end { span .what { "Dead letter" } (time(decided_ms(letter))) span { (word(&letter.reason)) } }
    } }
}

/// Renders the attempts at a sink that did not accept the dead letter.
pub(in crate::console) fn at_sink(sink: &StoredSink) -> Markup {
    html! { ol .timeline {
        (draw(steps(&sink.history, sink.omitted, sink.attempts, None), sink.last_response.as_deref(), "sink-response"))
        @if sink.history.is_empty() { li .omitted { "No attempt was made" } }
        li .mark.end { span .what { "Stored instead" } span { (word(&sink.reason)) } }
    } }
}

/// Renders the steps. The last attempt shows the beginning of the last response, with a link to its
/// section.
fn draw(steps: Vec<Step<'_>>, last_response: Option<&str>, section: &str) -> Markup {
    let is_attempt = |step: &Step<'_>| matches!(step, Step::Attempt(..));
    let last = steps.iter().rposition(is_attempt);
    html! { @for (at, step) in steps.into_iter().enumerate() { @match step {
        Step::Wait(wait_ms) => li class={ "wait " (gap(wait_ms)) } { (text::duration(wait_ms)) " later" },
        Step::PutOff(attempt) => li .mark {
            span .what { "Deferred" }
            (time(Some(attempt.at_ms)))
            span .took { "the destination was on probation, so nothing was sent" }
        },
        Step::Omitted(count) => li .omitted { (text::grouped(count.into())) " more, not stored" },
        Step::Attempt(number, attempt) => li .attempt {
            span .what { "Attempt " (number) }
            (time(Some(attempt.at_ms)))
            (outcome(Some(&attempt.outcome), attempt.status))
            span .took { "in " (text::duration(attempt.duration_ms)) }
            @if let Some(meaning) = meaning(&attempt.outcome, attempt.status) { p .meaning { (meaning) } }
            @if last == Some(at) && let Some(said) = last_response.and_then(first_line) {
                p .response { a href={ "#" (section) } { "Response:" } " " span .mono { (line(&said)) } }
            }
        },
    } } }
}

/// Returns the first non-blank line of a response, cut to [`RESPONSE_CHARS`] characters.
fn first_line(response: &str) -> Option<String> {
    let said = response.lines().map(str::trim).find(|line| !line.is_empty())?;
    let cut = text::first_chars(said, RESPONSE_CHARS);
    Some(if cut.len() < said.len() { format!("{cut}…") } else { cut })
}

/// Returns the CSS class of a wait. A longer wait has a class with a wider gap in the timeline.
fn gap(wait_ms: u64) -> &'static str {
    match wait_ms {
        0..MINUTE_MS => "g1",
        MINUTE_MS..HOUR_MS => "g2",
        HOUR_MS..DAY_MS => "g3",
        _ => "g4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_keep_their_numbers_around_omitted_ones_and_waits_begin_at_the_end_of_the_one_before()
     {
        let key = "a/b/c/2026/11/20/7/00000000-0000-0000-0000-000000000001.json";
        let attempt = |minute: u32| {
            format!(r#"{{"at":"2026-11-20T07:{minute:02}:00Z","outcome":"Busy","durationms":500}}"#)
        };
        let mut history: Vec<String> = (0..7).map(attempt).collect();
        history.insert(5, r#"{"omitted":2}"#.to_owned());
        let blob = format!(
            r#"{{"event":{{}},"deadletterProperties":{{"deadletterreasoncode":"A","deliveryattempts":9,"publishutc":"2026-11-20T07:00:00Z","history":[{}]}}}}"#,
            history.join(",")
        );
        let letter = delivery::deadletter::stored::read(key, "", blob.as_bytes()).unwrap();
        let shown: Vec<String> =
            steps(&letter.history, letter.omitted, letter.attempts, letter.published_ms)
                .into_iter()
                .map(|step| match step {
                    Step::Attempt(number, _) => number.to_string(),
                    Step::PutOff(_) => "put off".to_owned(),
                    Step::Wait(ms) => format!("+{ms}"),
                    Step::Omitted(count) => format!("({count})"),
                })
                .collect();
        assert_eq!(shown.join(" "), "1 +59500 2 +59500 3 +59500 4 +59500 5 (2) 8 +59500 9");
    }

    #[test]
    fn an_entry_about_which_nothing_was_sent_has_no_number() {
        let attempt = |at_ms: u64, outcome: &str| StoredAttempt {
            at_ms,
            outcome: outcome.to_owned(),
            status: None,
            duration_ms: 0,
        };
        let history = [
            attempt(1, "TimedOut"),
            attempt(2, "Probation"),
            attempt(3, "Probation"),
            attempt(4, "TimedOut"),
        ];
        let numbers: Vec<Option<usize>> = steps(&history, 0, 2, None)
            .into_iter()
            .map(|step| match step {
                Step::Attempt(number, _) => Some(number),
                Step::PutOff(_) | Step::Wait(_) | Step::Omitted(_) => None,
            })
            .collect();
        assert_eq!(numbers, [Some(1), None, None, Some(2)]);
    }
}
