//! The attempts of a letter along a line of time. Pure, but for its drawing.

use delivery::deadletter::stored::{StoredAttempt, StoredDeadLetter, StoredSink};
use delivery::delivery::HISTORY_FIRST;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use maud::{Markup, html};

use super::frame::{moment, outcome, word};
use crate::letters::filter::decided_ms;
use crate::letters::text;

/// A part of the line.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Attempt(usize, &'a StoredAttempt),
    Wait(u64),
    Omitted(u32),
}

/// Attempts with their numbers, and what lies between them, from this moment on.
fn steps(history: &[StoredAttempt], omitted: u32, mut before_ms: Option<u64>) -> Vec<Step<'_>> {
    let kept_first = HISTORY_FIRST.min(history.len());
    let mut steps = Vec::new();
    for (place, attempt) in history.iter().enumerate() {
        let waited_ms = before_ms.map_or(0, |before_ms| attempt.at_ms.saturating_sub(before_ms));
        if omitted > 0 && place == kept_first {
            steps.push(Step::Omitted(omitted));
        } else if waited_ms >= SECOND_MS {
            steps.push(Step::Wait(waited_ms));
        }
        let omitted_before = if place < kept_first { 0 } else { omitted as usize };
        steps.push(Step::Attempt(place + 1 + omitted_before, attempt));
        before_ms = Some(attempt.at_ms.saturating_add(attempt.duration_ms));
    }
    if omitted > 0 && history.len() == kept_first {
        steps.push(Step::Omitted(omitted));
    }
    steps
}

/// From publication to the end, with what was waited in between.
pub(super) fn timeline(letter: &StoredDeadLetter) -> Markup {
    html! { ol .timeline {
        @if letter.published_ms.is_some() {
            li .mark { span .what { "Published" } (moment(letter.published_ms)) }
        }
        (drawn(steps(&letter.history, letter.omitted, letter.published_ms)))
        @if letter.history.is_empty() { li .omitted { "No attempt was made" } }
        li .mark.end { span .what { "Dead letter" } (moment(decided_ms(letter))) span { (word(&letter.reason)) } }
    } }
}

/// The attempts at a sink that did not take the letter.
pub(super) fn at_sink(sink: &StoredSink) -> Markup {
    html! { ol .timeline {
        (drawn(steps(&sink.history, sink.omitted, None)))
        @if sink.history.is_empty() { li .omitted { "No attempt was made" } }
        li .mark.end { span .what { "Stored instead" } span { (word(&sink.reason)) } }
    } }
}

fn drawn(steps: Vec<Step<'_>>) -> Markup {
    html! { @for step in steps { @match step {
        Step::Wait(wait_ms) => li class={ "wait " (gap(wait_ms)) } { (text::span(wait_ms)) " later" },
        Step::Omitted(count) => li .omitted { (text::grouped(count.into())) " more, not kept" },
        Step::Attempt(number, attempt) => li .attempt {
            span .what { "Attempt " (number) }
            (moment(Some(attempt.at_ms)))
            (outcome(Some(&attempt.outcome), attempt.status))
            span .took { "in " (text::span(attempt.duration_ms)) }
        },
    } } }
}

/// Longer waits stand further apart: by their order, not by their length.
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
    fn attempts_keep_their_numbers_around_those_left_out_and_waits_begin_at_the_end_of_the_one_before()
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
        let letter =
            delivery::deadletter::stored::read(key, "", blob.as_bytes()).unwrap().remove(0);
        let told: Vec<String> = steps(&letter.history, letter.omitted, letter.published_ms)
            .into_iter()
            .map(|step| match step {
                Step::Attempt(number, _) => number.to_string(),
                Step::Wait(ms) => format!("+{ms}"),
                Step::Omitted(count) => format!("({count})"),
            })
            .collect();
        assert_eq!(told.join(" "), "1 +59500 2 +59500 3 +59500 4 +59500 5 (2) 8 +59500 9");
    }
}
