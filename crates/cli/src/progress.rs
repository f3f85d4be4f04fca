//! Progress bars on standard error, if it is a terminal.

use std::fmt::Write;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// How often a counter is redrawn.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// A bar with rate and remaining time.
pub(crate) fn bar(all: u64, what: &str) -> ProgressBar {
    let template =
        format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}  {{per_sec}}  {{eta}} left");
    styled(ProgressBar::new(all), &template)
}

/// A counter without a known total.
pub(crate) fn count(what: &str) -> ProgressBar {
    let bar = styled(ProgressBar::no_length(), &format!("{{human_pos}} {what}  {{per_sec}}"));
    bar.enable_steady_tick(TICK);
    bar
}

/// A counter whose value is read whenever it is drawn.
pub(crate) fn asking(
    what: &str,
    number: impl Fn() -> u64 + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let style =
        ProgressStyle::with_template(&format!("{{number}} {what}")).expect("the template is valid");
    let number = move |_: &ProgressState, text: &mut dyn Write| {
        // A progress bar that cannot be drawn is no reason to fail.
        let _ = write!(text, "{}", number());
    };
    let bar = ProgressBar::no_length().with_style(style.with_key("number", number));
    bar.enable_steady_tick(TICK);
    bar
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.with_style(ProgressStyle::with_template(template).expect("the template is valid"))
}
