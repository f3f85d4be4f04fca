//! Shows progress bars on standard error, if it is a terminal.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// The interval at which counters are redrawn.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// Creates a progress bar with rate and remaining time.
pub(crate) fn bar(all: u64, unit: &str) -> ProgressBar {
    ProgressBar::new(all).with_style(measured(unit))
}

/// Turns a counter into a progress bar with this total, starting at 0.
pub(crate) fn measure(counter: &ProgressBar, all: u64, unit: &str) {
    counter.set_position(0);
    counter.set_length(all);
    counter.set_style(measured(unit));
}

fn measured(unit: &str) -> ProgressStyle {
    style(&format!("{{bar:30}} {{human_pos}} of {{human_len}} {unit}  {{per_sec}}  {{eta}} left"))
}

/// Creates a counter for work whose total is unknown.
pub(crate) fn count(unit: &str) -> ProgressBar {
    let template = format!("{{human_pos}} {unit}  {{per_sec}}");
    let bar = ProgressBar::no_length().with_style(style(&template));
    bar.enable_steady_tick(TICK);
    bar
}

/// Creates a counter that calls `number` for its value at each redraw.
pub(crate) fn asking(
    unit: &str,
    number: impl Fn() -> u64 + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let number = move |_: &ProgressState, text: &mut dyn Write| {
        // A progress bar that cannot be drawn must not fail the command.
        let _ = write!(text, "{}", number());
    };
    let style = style(&format!("{{number}} {unit}")).with_key("number", number);
    let bar = ProgressBar::no_length().with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is valid")
}
