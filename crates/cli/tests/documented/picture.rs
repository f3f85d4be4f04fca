//! Draws `docs/architecture.svg`, the picture of the README, and compares it with the file.
//!
//! A picture in a README has no theme of its own, so it has its own light background, and is readable
//! on a dark page too. `UPDATE_GOLDEN=1 cargo test -p lastmile --features aws --test documented picture` writes it.

use std::fmt::Write as _;
use std::fs;

use crate::pages;

const WIDTH: u32 = 980;
const HEIGHT: u32 = 390;

/// What a box stands for.
#[derive(Clone, Copy)]
enum Kind {
    Outside,
    Queue,
    Function,
    Storage,
}

impl Kind {
    /// Its background and its border.
    const fn colors(self) -> (&'static str, &'static str) {
        match self {
            Self::Outside => ("#f1f5f9", "#64748b"),
            Self::Queue => ("#fef3c7", "#b45309"),
            Self::Function => ("#dbeafe", "#1d4ed8"),
            Self::Storage => ("#dcfce7", "#15803d"),
        }
    }
}

/// A box: left, top, width, height, kind, name, and up to two lines about it.
type Shape = (u32, u32, u32, u32, Kind, &'static str, [&'static str; 2]);

const SHAPES: [Shape; 8] = [
    (20, 60, 150, 84, Kind::Outside, "publishers", ["SQS, HTTP, SNS,", "EventBridge, S3"]),
    (230, 72, 130, 60, Kind::Queue, "events queue", ["", ""]),
    (430, 52, 150, 100, Kind::Function, "dispatch", ["matches, sends,", "decides"]),
    (
        780,
        52,
        180,
        100,
        Kind::Outside,
        "your subscribers",
        ["HTTP endpoints that", "you do not control"],
    ),
    (420, 210, 170, 60, Kind::Queue, "retry queue", ["waits as the policy says", ""]),
    (680, 210, 170, 60, Kind::Queue, "dead-letter queue", ["", ""]),
    (700, 312, 130, 60, Kind::Function, "deadletter", ["", ""]),
    (
        230,
        300,
        320,
        80,
        Kind::Storage,
        "bucket of dead letters",
        ["event, reason, attempts, last response", "shop/orders/billing/2026/11/20/7/….json"],
    ),
];

/// An arrow: its path, then its label with the middle of its base line.
type Arrow = (&'static str, &'static str, u32, u32);

const ARROWS: [Arrow; 9] = [
    ("M170 102 H222", "", 0, 0),
    ("M360 102 H422", "", 0, 0),
    ("M580 92 H772", "POST", 676, 84),
    ("M780 124 H588", "status, or nothing", 684, 140),
    ("M490 152 V202", "failure", 462, 186),
    ("M525 210 V160", "due again", 560, 186),
    ("M572 152 Q640 200 672 230", "refused for good, or too often", 756, 190),
    ("M765 270 V304", "", 0, 0),
    ("M700 342 H558", "stores", 624, 334),
];

fn drawn() -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" \
         fill=\"#0f172a\" text-anchor=\"middle\">\n<title>Events go from a queue to dispatch, which posts them to \
         subscribers. Failures wait in the retry queue. What cannot be delivered is stored as a dead letter with its \
         reason, and can be replayed.</title>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" \
         markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 Z\" fill=\"#334155\"/></marker>\
         </defs>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"10\" fill=\"#ffffff\"/>\n"
    );
    for (left, top, width, height, kind, name, about) in SHAPES {
        shape(&mut svg, (left, top, width, height), kind, name, about);
    }
    for (path, label, x, y) in ARROWS {
        arrow(&mut svg, path, "", label, (x, y));
    }
    // What people do, apart from what happens by itself.
    arrow(
        &mut svg,
        "M230 340 Q120 330 105 240 Q150 170 422 128",
        " stroke-dasharray=\"5 4\"",
        "",
        (0, 0),
    );
    text(&mut svg, 226, 232, "", "you: lastmile deadletters");
    text(&mut svg, 226, 250, "", "why · show · replay");
    text(
        &mut svg,
        WIDTH / 2,
        30,
        " font-size=\"14\" font-weight=\"600\"",
        "at least once, nothing lost, a reason for every failure",
    );
    svg.push_str("</svg>\n");
    svg
}

fn shape(svg: &mut String, place: (u32, u32, u32, u32), kind: Kind, name: &str, about: [&str; 2]) {
    let ((left, top, width, height), (fill, stroke)) = (place, kind.colors());
    writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{fill}\" \
         stroke=\"{stroke}\" stroke-width=\"1.5\"/>"
    )
    .expect("a string takes text");
    let lines = about.iter().filter(|line| !line.is_empty());
    let count = u32::try_from(lines.clone().count()).expect("there are at most two");
    let (middle, first) = (left + width / 2, top + height / 2 + 5 - 9 * count);
    text(svg, middle, first, " font-size=\"14\" font-weight=\"600\"", name);
    for (index, line) in (1..).zip(lines) {
        text(svg, middle, first + 18 * index, " font-size=\"11\" fill=\"#334155\"", line);
    }
}

fn arrow(svg: &mut String, path: &str, style: &str, label: &str, (x, y): (u32, u32)) {
    writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"#334155\" stroke-width=\"1.5\" marker-end=\"url(#head)\"{style}/>"
    )
    .expect("a string takes text");
    text(svg, x, y, " fill=\"#334155\"", label);
}

fn text(svg: &mut String, x: u32, y: u32, style: &str, text: &str) {
    if !text.is_empty() {
        writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{style}>{text}</text>")
            .expect("a string takes text");
    }
}

#[test]
fn the_picture_of_the_readme_is_what_this_draws() {
    let file = pages::root().join("docs/architecture.svg");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, drawn()).expect("the picture can be written");
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == drawn(), "docs/architecture.svg differs: run this test with UPDATE_GOLDEN=1");
}
