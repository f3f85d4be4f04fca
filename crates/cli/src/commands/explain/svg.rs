//! Explanations as a picture: one line of time per subscription, self-contained, on a light
//! background.
//!
//! Every attempt is a mark; its number, moment and wait are written where there is room for them.

use std::fmt::Write as _;

use delivery::explain::{Endpoint, Life};
use delivery::subscription::Subscription;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

use super::Explained;
use super::timeline::{Axis, dead_letter, span};

/// The width of the picture.
const WIDTH: f64 = 1_080.0;
/// The height of one subscription's part.
const HEIGHT: f64 = 250.0;
/// Where the line of time begins and ends.
const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 80.0;
/// Where the line of time is, from the top of its part.
const LINE_Y: f64 = 118.0;
/// Round moments that are named need this much room between them.
const TICK_ROOM: f64 = 26.0;
/// A numbered mark, and room around it.
const MARK_ROOM: f64 = 20.0;
/// Shorter arcs would only be a blur.
const ARC_LEAST: f64 = 6.0;
/// About the width of one character of a label.
const CHARACTER: f64 = 8.0;
/// Round moments that the axis names.
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
    let mut parts = String::new();
    let mut top = 0.0;
    for explained in explained {
        let _ = writeln!(
            parts,
            "<g transform=\"translate(0 {top})\">\n{}</g>",
            part(explained, endpoint)
        );
        top += HEIGHT;
    }
    let height = if explained.is_empty() { HEIGHT } else { top };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#1f2937\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{parts}</svg>\n"
    )
}

fn part(Explained { subscription, life, .. }: &Explained, endpoint: &Endpoint) -> String {
    let axis = Axis::of(life);
    let title = escaped(&subscription.name.to_string());
    let retry_after = endpoint
        .retry_after
        .as_ref()
        .map_or(String::new(), |value| format!(", Retry-After: {value}"));
    let under = format!(
        "{}, the endpoint always does this: {}{retry_after}",
        subscription.dialect.as_str(),
        endpoint.always
    );
    format!(
        "<text x=\"{LEFT}\" y=\"34\" font-size=\"18\" font-weight=\"600\">{title}</text>\n\
         <text x=\"{LEFT}\" y=\"54\" fill=\"#6b7280\">{}</text>\n{}{}{}{}",
        escaped(&under),
        ticks(&axis),
        waits(life, &axis),
        marks(life, &axis),
        end(life, subscription, &axis)
    )
}

/// Where a moment is, from the left.
fn x(axis: &Axis, at_ms: u64) -> f64 {
    LEFT + axis.place(at_ms) * (RIGHT - LEFT)
}

/// The line and the round moments below it.
fn ticks(axis: &Axis) -> String {
    let mut drawn = format!(
        "<line x1=\"{LEFT}\" y1=\"{LINE_Y}\" x2=\"{RIGHT}\" y2=\"{LINE_Y}\" stroke=\"#9ca3af\" stroke-width=\"2\"/>\n"
    );
    let axis_y = LINE_Y + 52.0;
    let _ = writeln!(
        drawn,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b7280\" text-anchor=\"middle\">0</text>",
        axis_y + 12.0
    );
    let mut free_from = LEFT + TICK_ROOM;
    for at_ms in TICKS_MS.into_iter().filter(|at_ms| *at_ms <= axis.end_ms) {
        let x = x(axis, at_ms);
        if x < free_from {
            continue;
        }
        free_from = x + TICK_ROOM;
        let _ = writeln!(
            drawn,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{axis_y}\" stroke=\"#e5e7eb\"/>\
             <text x=\"{x:.1}\" y=\"{}\" fill=\"#6b7280\" text-anchor=\"middle\">{}</text>",
            LINE_Y - 40.0,
            axis_y + 12.0,
            span(at_ms)
        );
    }
    drawn
}

/// How wide a label is, with room around it.
fn width(label: &str) -> f64 {
    f64::from(u32::try_from(label.len()).unwrap_or(u32::MAX)) * CHARACTER + CHARACTER
}

/// An arc over each wait, with its length where there is room.
fn waits(life: &Life, axis: &Axis) -> String {
    let mut drawn = String::new();
    for pair in life.attempts.windows(2) {
        let (from, to) = (x(axis, pair[0].at_ms), x(axis, pair[1].at_ms));
        if to - from < ARC_LEAST {
            continue;
        }
        let (middle, top, wait) = (f64::midpoint(from, to), LINE_Y - 30.0, span(pair[1].wait_ms));
        let y = LINE_Y - 9.0;
        let _ = writeln!(
            drawn,
            "<path d=\"M{from:.1} {y} Q{middle:.1} {top} {to:.1} {y}\" fill=\"none\" stroke=\"#93c5fd\"/>"
        );
        if to - from >= width(&wait) {
            let y = top + 4.0;
            let _ = writeln!(
                drawn,
                "<text x=\"{middle:.1}\" y=\"{y}\" fill=\"#2563eb\" text-anchor=\"middle\">{wait}</text>"
            );
        }
    }
    drawn
}

/// The attempts: a circle each, its number in it and its moment below where there is room.
fn marks(life: &Life, axis: &Axis) -> String {
    let mut drawn = String::new();
    let places: Vec<f64> = life.attempts.iter().map(|attempt| x(axis, attempt.at_ms)).collect();
    let mut moment_from = 0.0;
    for (index, (attempt, x)) in life.attempts.iter().zip(&places).enumerate() {
        let near = |other: Option<&f64>| other.is_some_and(|other| (other - x).abs() < MARK_ROOM);
        let crowded = near(places.get(index + 1))
            || near(index.checked_sub(1).and_then(|before| places.get(before)));
        let radius = if crowded { 3 } else { 9 };
        let _ = writeln!(
            drawn,
            "<circle cx=\"{x:.1}\" cy=\"{LINE_Y}\" r=\"{radius}\" fill=\"#2563eb\"/>"
        );
        if !crowded {
            let (y, number) = (LINE_Y + 3.5, attempt.attempt);
            let _ = writeln!(
                drawn,
                "<text x=\"{x:.1}\" y=\"{y}\" fill=\"#ffffff\" font-size=\"10\" text-anchor=\"middle\">{number}</text>"
            );
        }
        let moment = format!("+{}", span(attempt.at_ms));
        let half = width(&moment) / 2.0;
        if x - half >= moment_from {
            moment_from = x + half;
            let y = LINE_Y + 28.0;
            let _ = writeln!(
                drawn,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{moment}</text>"
            );
        }
    }
    drawn
}

/// The end and, where there is one, the dead letter: marks on the line and what they say below it.
fn end(life: &Life, subscription: &Subscription, axis: &Axis) -> String {
    let color = if life.reason.is_some() { "#dc2626" } else { "#16a34a" };
    let at = x(axis, life.ended_ms);
    // An end at the moment of an attempt stands beside it.
    let at = if life.attempts.iter().any(|attempt| x(axis, attempt.at_ms) > at - 18.0) {
        at + 20.0
    } else {
        at
    };
    let mut drawn = format!(
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"16\" height=\"16\" rx=\"2\" fill=\"{color}\"/>\n",
        at - 8.0,
        LINE_Y - 8.0
    );
    let said = format!("ends at +{} with {}", span(life.ended_ms), life.reason_name());
    let _ = writeln!(
        drawn,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"{color}\" font-weight=\"600\">{said}</text>",
        HEIGHT - 36.0
    );
    let letter = dead_letter(life, subscription).unwrap_or_default();
    let _ = writeln!(
        drawn,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b7280\">{}</text>",
        HEIGHT - 18.0,
        escaped(&letter)
    );
    drawn
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
