//! The log lines of the functions, as text for people.

use delivery::time::duration::format_ms;
use local::watch::{Line, Watch};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::text;

/// Starts to receive the log lines of the functions in this process.
pub(crate) fn watch() -> UnboundedReceiver<Line> {
    let (sender, lines) = unbounded_channel();
    tracing_subscriber::registry().with(Watch(sender).with_filter(LevelFilter::INFO)).init();
    lines
}

/// A log line as one line of text; `None` for lines that add nothing. Control characters in fields
/// are replaced: events are untrusted and could control the terminal.
pub(crate) fn describe(line: &Line) -> Option<String> {
    let field = |name| text::line(line.field(name));
    let subscription = field("subscription");
    let of_event = format!("{subscription}  event {}", field("event_id"));
    let (attempts, reason) = (field("attempts"), field("reason"));
    Some(match line.name.as_str() {
        "delivery.attempted" => attempted(line, &of_event),
        "delivery.ended" if line.field("end") == "DeadLettered" => {
            format!("{of_event}  dead-lettered after {attempts} attempts: {reason}")
        }
        "deadletter.stored" => {
            format!("{subscription}  stored {}/{}", field("container"), field("key"))
        }
        "deadletter.handed_over" => {
            format!("{of_event}  dead letter accepted by its sink, {}: {reason}", field("sink"))
        }
        "deadletter.returned" => {
            format!(
                "{of_event}  dead letter not accepted by its sink after {attempts} attempts: {reason}"
            )
        }
        "destination.retired" => {
            format!("{subscription}  destination is gone for good: {}", field("destination"))
        }
        "subscriptions.loaded" => {
            format!("{} subscriptions from {}", field("subscriptions"), field("source"))
        }
        "delivery.ended" => return None,
        name => {
            let fields: Vec<String> = line
                .fields
                .iter()
                .map(|(name, value)| format!("{name}={}", text::line(value)))
                .collect();
            format!("{} {name}  {}", line.level, fields.join("  "))
        }
    })
}

fn attempted(line: &Line, of_event: &str) -> String {
    let field = |name| text::line(line.field(name));
    let (status, outcome) = (field("status"), field("outcome"));
    let answer = if status.is_empty() { outcome } else { format!("{status} {outcome}") };
    let next = match line.field("verdict") {
        "retry" if line.field("wait_ms").is_empty() => "no attempt is left".to_owned(),
        "retry" => {
            format!("retry in {}", line.field("wait_ms").parse().map_or(String::new(), format_ms))
        }
        verdict => text::line(verdict),
    };
    let target = match line.field("leg") {
        "sink" => "to its sink  ",
        "reply" => "reply  ",
        _ => "",
    };
    format!(
        "{of_event}  {target}attempt {}  {answer} in {} ms  {next}",
        field("attempt"),
        field("duration_ms")
    )
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn described(name: &str, fields: &[(&'static str, &str)]) -> Option<String> {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let level = LevelFilter::INFO.into_level().unwrap();
        describe(&Line { name: name.to_owned(), level, fields })
    }

    #[test]
    fn deliveries_to_a_sink_or_a_reply_address_are_marked() {
        let of = [
            ("subscription", "n/t/s"),
            ("event_id", "7"),
            ("attempt", "2"),
            ("outcome", "Busy"),
            ("status", "503"),
        ];
        for (target, mark) in [("event", ""), ("reply", "reply  "), ("sink", "to its sink  ")] {
            let more =
                [("leg", target), ("verdict", "retry"), ("wait_ms", "10000"), ("duration_ms", "5")];
            let expected =
                format!("n/t/s  event 7  {mark}attempt 2  503 Busy in 5 ms  retry in PT10S");
            assert_eq!(described("delivery.attempted", &[&of[..], &more].concat()), Some(expected));
        }
        for (name, more, end) in [
            (
                "deadletter.handed_over",
                ("sink", "address"),
                "accepted by its sink, address: TimeToLiveExceeded",
            ),
            (
                "deadletter.returned",
                ("attempts", "3"),
                "not accepted by its sink after 3 attempts: TimeToLiveExceeded",
            ),
        ] {
            let expected = format!("n/t/s  event 7  dead letter {end}");
            let fields = [&of[..], &[("reason", "TimeToLiveExceeded"), more]].concat();
            assert_eq!(described(name, &fields), Some(expected));
        }
    }

    #[test]
    fn control_characters_of_a_publisher_are_replaced() {
        for name in [
            "delivery.attempted",
            "event.unmatched",
            "deadletter.handed_over",
            "deadletter.returned",
        ] {
            let text =
                described(name, &[("event_id", "a\u{1b}[2J\nb\u{202e}"), ("source", "\u{1b}c")])
                    .unwrap();
            assert!(!text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
        }
    }
}
