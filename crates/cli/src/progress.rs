//! Progress, on a terminal and nowhere else: standard error that is none shows nothing.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// How often something that only counts is drawn.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// A bar with rate and time left.
pub(crate) fn bar(all: u64, what: &str) -> ProgressBar {
    let template =
        format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}  {{per_sec}}  {{eta}} left");
    styled(ProgressBar::new(all), &template)
}

/// A count where nobody knows how many there are.
pub(crate) fn count(what: &str) -> ProgressBar {
    let with_telemetry =
        styled(ProgressBar::no_length(), &format!("{{human_pos}} {what}  {{per_sec}}"));
    with_telemetry.enable_steady_tick(TICK);
    with_telemetry
}

/// A number that somebody else counts, asked for as it is drawn.
pub(crate) fn asking(
    what: &str,
    number: impl Fn() -> u64 + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let style =
        ProgressStyle::with_template(&format!("{{number}} {what}")).expect("the template is right");
    let number = move |_: &ProgressState, text: &mut dyn Write| {
        // What cannot be drawn is not drawn.
        let _ = write!(text, "{}", number());
    };
    let bar = ProgressBar::no_length().with_style(style.with_key("number", number));
    bar.enable_steady_tick(TICK);
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.with_style(ProgressStyle::with_template(template).expect("the template is right"))
}
