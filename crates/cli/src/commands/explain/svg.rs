//! Explanations as an SVG: one time axis per subscription, self-contained, on a light background.
//!
//! Every attempt is a mark, labelled with its number, time and wait where there is room.

use delivery::explain::{Attempt, Endpoint, Life};
use delivery::subscription::Subscription;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};
use maud::{Markup, html};

use super::Explained;
use super::timeline::{Axis, dead_letter, hms};

/// The width of the picture.
const WIDTH: f64 = 1_080.0;
/// The height of one subscription's part.
const HEIGHT: f64 = 250.0;
/// Where the time axis begins and ends.
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 80.0;
/// The time axis, from the top of a subscription's part.
const LINE_Y: f64 = 118.0;
/// The least distance between two labels of the axis.
const TICK_ROOM: f64 = 26.0;
/// The width of a numbered mark with its margin.
const MARK_ROOM: f64 = 20.0;
/// Shorter arcs are left out.
const ARC_MIN: f64 = 6.0;
/// About the width of one character of a label.
const CHARACTER: f64 = 8.0;
const GRAY: &str = "#6b7280";
const BLUE: &str = "#2563eb";
const RED: &str = "#dc2626";
const GREEN: &str = "#16a34a";
/// The times that the axis labels.
const TICKS_MS: [u64; 13] = [
    SECOND_MS,
    5 * SECOND_MS,
    10 * SECOND_MS,
    30 * SECOND_MS,
    MINUTE_MS,
    5 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    6 * HOUR_MS,
    DAY_MS,
    7 * DAY_MS,
    14 * DAY_MS,
];

/// The whole picture.
pub(super) fn draw(explained: &[Explained], endpoint: &Endpoint) -> String {
    let count = u32::try_from(explained.len()).unwrap_or(u32::MAX);
    let height = f64::from(count.max(1)) * HEIGHT;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } font-family="system-ui, 'DejaVu Sans', sans-serif"
            font-size="12" fill="#1f2937" {
            rect width="100%" height="100%" fill="#ffffff" {}
            @for (index, explained) in (0_u32..).zip(explained) {
                g transform={ "translate(0 " (f64::from(index) * HEIGHT) ")" } {
                    (part(explained, endpoint))
                }
            }
        }
    };
    picture.into_string() + "\n"
}

fn part(Explained { subscription, life, .. }: &Explained, endpoint: &Endpoint) -> Markup {
    let axis = Axis::of(life);
    html! {
        text x=(LEFT) y="34" font-size="18" font-weight="600" { (subscription.name) }
        text x=(LEFT) y="54" fill=(GRAY) {
            (subscription.dialect.as_str()) ", the endpoint always does this: " (endpoint.always)
            @if let Some(value) = &endpoint.retry_after { ", Retry-After: " (value) }
        }
        (ticks(&axis))
        (waits(life, &axis))
        (marks(life, &axis))
        (end(life, subscription, &axis))
    }
}

/// The position of a time, from the left.
fn x(axis: &Axis, at_ms: u64) -> f64 {
    LEFT + axis.position(at_ms) * (RIGHT - LEFT)
}

/// A coordinate with one decimal.
fn px(coordinate: f64) -> String {
    format!("{coordinate:.1}")
}

/// The axis and its labels.
fn ticks(axis: &Axis) -> Markup {
    let axis_y = LINE_Y + 52.0;
    let mut free_from = LEFT + TICK_ROOM;
    let labelled = TICKS_MS.into_iter().filter(|at_ms| *at_ms <= axis.end_ms).filter(|at_ms| {
        let x = x(axis, *at_ms);
        let has_room = x >= free_from;
        if has_room {
            free_from = x + TICK_ROOM;
        }
        has_room
    });
    html! {
        line x1=(LEFT) y1=(LINE_Y) x2=(RIGHT) y2=(LINE_Y) stroke="#9ca3af" stroke-width="2" {}
        text x=(LEFT) y=(axis_y + 12.0) fill=(GRAY) text-anchor="middle" { "0" }
        @for at_ms in labelled {
            @let x = px(x(axis, at_ms));
            line x1=(x) y1=(px(LINE_Y - 40.0)) x2=(x) y2=(axis_y) stroke="#e5e7eb" {}
            text x=(x) y=(axis_y + 12.0) fill=(GRAY) text-anchor="middle" { (hms(at_ms)) }
        }
    }
}

/// How wide a label is, with room around it.
fn width(label: &str) -> f64 {
    // Labels are ASCII, so bytes are characters.
    f64::from(u32::try_from(label.len()).unwrap_or(u32::MAX)) * CHARACTER + CHARACTER
}

/// An arc over each wait, with its length where there is room.
fn waits(life: &Life, axis: &Axis) -> Markup {
    let (y, top) = (LINE_Y - 9.0, LINE_Y - 30.0);
    let ends = |pair: &[Attempt]| (x(axis, pair[0].at_ms), x(axis, pair[1].at_ms));
    let arcs = life.attempts.windows(2).map(|pair| (ends(pair), hms(pair[1].wait_ms)));
    html! {
        @for ((from, to), wait) in arcs.filter(|((from, to), _)| to - from >= ARC_MIN) {
            @let middle = px(f64::midpoint(from, to));
            path d={ "M" (px(from)) " " (y) " Q" (middle) " " (top) " " (px(to)) " " (y) }
                fill="none" stroke="#93c5fd" {}
            @if to - from >= width(&wait) {
                text x=(middle) y=(top + 4.0) fill=(BLUE) text-anchor="middle" { (wait) }
            }
        }
    }
}

/// The attempts: a circle each, with its number and its time where there is room.
fn marks(life: &Life, axis: &Axis) -> Markup {
    let positions: Vec<f64> = life.attempts.iter().map(|attempt| x(axis, attempt.at_ms)).collect();
    let mut free_from = 0.0;
    html! {
        @for (index, (attempt, x)) in life.attempts.iter().zip(&positions).enumerate() {
            @let crowded = is_crowded(&positions, index);
            circle cx=(px(*x)) cy=(LINE_Y) r=(if crowded { 3 } else { 9 }) fill=(BLUE) {}
            @if !crowded {
                text x=(px(*x)) y=(LINE_Y + 3.5) fill="#ffffff" font-size="10" text-anchor="middle" {
                    (attempt.attempt)
                }
            }
            @let time = format!("+{}", hms(attempt.at_ms));
            @let half = width(&time) / 2.0;
            @if x - half >= free_from {
                @let () = free_from = x + half;
                text x=(px(*x)) y=(LINE_Y + 28.0) text-anchor="middle" { (time) }
            }
        }
    }
}

/// Whether a neighbour is too near for a numbered mark.
fn is_crowded(positions: &[f64], index: usize) -> bool {
    let x = positions[index];
    let near = |other: Option<&f64>| other.is_some_and(|other| (other - x).abs() < MARK_ROOM);
    near(positions.get(index + 1))
        || near(index.checked_sub(1).and_then(|before| positions.get(before)))
}

/// The end and, where there is one, the dead letter: a mark on the axis and text below it.
fn end(life: &Life, subscription: &Subscription, axis: &Axis) -> Markup {
    let color = if life.reason.is_some() { RED } else { GREEN };
    let at = x(axis, life.ended_ms);
    // The end may be at the time of the last attempt: its mark moves to the right of that attempt.
    let overlaps = life.attempts.iter().any(|attempt| x(axis, attempt.at_ms) > at - 18.0);
    let at = if overlaps { at + 20.0 } else { at };
    html! {
        rect x=(px(at - 8.0)) y=(px(LINE_Y - 8.0)) width="16" height="16" rx="2" fill=(color) {}
        text x=(LEFT) y=(HEIGHT - 36.0) fill=(color) font-weight="600" {
            "ends at +" (hms(life.ended_ms)) " with " (life.reason_name())
        }
        text x=(LEFT) y=(HEIGHT - 18.0) fill=(GRAY) {
            (dead_letter(life, subscription).unwrap_or_default())
        }
    }
}
