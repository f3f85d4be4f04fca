//! Prints the log lines of the functions on a terminal.
//!
//! The line of an attempt shows the target, the outcome and the wait before the next attempt.
//! `line_words` creates these texts. Each part is escaped when it is created.

use std::sync::{Mutex, PoisonError};

use adapters::json_log::JsonLayer;
use local::watch::{Line, Watch, is_ours};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::operations::dev_log::DevLog;
use crate::operations::line_words::{Kind, words};
use crate::terminal::output::out_json;
use crate::terminal::styled::{Part, Style, plain};

/// Subscribes to the log lines of the functions in this process, up to this level.
///
/// If `are_written`, also writes the lines to standard output, as JSON. If `kept` is given, also
/// appends the lines to this log, which `lastmile trace` reads.
pub(crate) fn watch(
    level: LevelFilter,
    are_written: bool,
    kept: Option<DevLog>,
) -> UnboundedReceiver<Line> {
    let (sender, lines) = unbounded_channel();
    // Filter by target, so that lines of libraries, which log a lot, are never formatted.
    let ours = |level: LevelFilter| {
        filter_fn(move |metadata| is_ours(metadata.target()) && *metadata.level() <= level)
            .with_max_level_hint(level)
    };
    let written = are_written.then(|| {
        let layer = JsonLayer(|_, line: &str| {
            // A closed output must not stop deliveries.
            let _ = out_json(line.trim_end());
        });
        layer.with_filter(ours(LevelFilter::INFO))
    });
    let kept = kept.map(|log| {
        let log = Mutex::new(log);
        let layer = JsonLayer(move |_, line: &str| {
            log.lock().unwrap_or_else(PoisonError::into_inner).add(line);
        });
        layer.with_filter(ours(LevelFilter::INFO))
    });
    let watched = Watch(sender).with_filter(ours(level));
    tracing_subscriber::registry().with(written).with(kept).with(watched).init();
    lines
}

/// Formats a log line as one line of text. Returns `None` if other lines already report its
/// information.
pub(crate) fn describe(line: &Line) -> Option<String> {
    parts(line, None).map(|parts| plain(&parts))
}

/// Splits a log line into coloured parts. Returns `None` if other lines already report its
/// information. The line of an attempt includes `destination`, if given.
pub(crate) fn parts(line: &Line, destination: Option<&str>) -> Option<Vec<Part>> {
    let words = words(line)?;
    let style = words.style();
    let plain = |text: &str| Part::new(Style::Plain, text);
    let event = match line.field("event_id") {
        "" => String::new(),
        id => format!("event {id}"),
    };
    let mut parts =
        vec![Part::new(Style::Name, line.field("subscription")), Part::new(Style::Dim, event)];
    match words.kind {
        // A later line reports the outcome.
        Kind::UnderWay => return None,
        Kind::Good | Kind::Failed | Kind::Silent => {
            let to = destination.filter(|_| words.target.is_empty());
            parts.push(plain(words.target));
            parts.push(plain(&to.map(|to| format!("-> {to}")).unwrap_or_default()));
            parts.push(plain(&words.name));
            let took = words.duration_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
            parts.push(Part::new(style, format!("{}{took}", words.outcome)));
        }
        Kind::Event | Kind::Wait | Kind::End | Kind::Stored | Kind::Note => {
            let is_severe = words.kind == Kind::Note && line.level < LevelFilter::INFO;
            let style = if is_severe { Style::Waiting } else { style };
            let level = if is_severe { format!("{} ", line.level) } else { String::new() };
            parts.push(Part::new(style, format!("{level}{}", words.name)));
            parts.push(Part::new(style, &words.outcome));
            parts.push(plain(&words.detail));
        }
    }
    parts.push(Part::new(style, &words.next));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_at(level: LevelFilter, name: &str, fields: &[(&'static str, &str)]) -> Line {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let level = level.into_level().expect("it is not off");
        Line { name: name.to_owned(), at_ms: 0, level, fields }
    }

    fn line(name: &str, fields: &[(&'static str, &str)]) -> Line {
        line_at(LevelFilter::INFO, name, fields)
    }

    fn described(name: &str, fields: &[(&'static str, &str)]) -> Option<String> {
        describe(&line(name, fields))
    }

    #[test]
    fn deliveries_to_a_sink_or_a_reply_address_are_marked() {
        let fields = [
            ("subscription", "n/t/s"),
            ("event_id", "7"),
            ("attempt", "2"),
            ("outcome", "Busy"),
            ("status", "503"),
        ];
        for (target, mark) in
            [("event", "-> a.example.com/in  "), ("reply", "reply  "), ("sink", "to the sink  ")]
        {
            let more =
                [("leg", target), ("verdict", "retry"), ("wait_ms", "10000"), ("duration_ms", "5")];
            let expected = format!(
                "n/t/s  event 7  {mark}attempt 2  503 Service Unavailable (Busy) in 5 ms  retry in 10 s"
            );
            let line = line("delivery.attempted", &[&fields[..], &more].concat());
            let shown = parts(&line, Some("a.example.com/in")).map(|parts| plain(&parts));
            assert_eq!(shown, Some(expected));
        }
    }

    #[test]
    fn ends_waits_and_other_lines_are_told_in_the_same_order() {
        let fields =
            [("subscription", "n/t/s"), ("event_id", "7"), ("reason", "TimeToLiveExceeded")];
        for (name, more, said) in [
            (
                "deadletter.handed_over",
                [("sink", "address"), ("attempts", "3")],
                "dead letter  TimeToLiveExceeded  accepted by the sink, address",
            ),
            (
                "deadletter.returned",
                [("sink", "address"), ("attempts", "3")],
                "dead letter  TimeToLiveExceeded  not accepted by the sink after 3 attempts",
            ),
            (
                "delivery.ended",
                [("end", "DeadLettered"), ("attempts", "1")],
                "dead-lettered  TimeToLiveExceeded  after 1 attempt",
            ),
            (
                "delivery.held",
                [("why", "rate"), ("wait_ms", "5000")],
                "held  rate  the rate limit of the destination is reached  again in 5 s",
            ),
        ] {
            let shown = described(name, &[&fields[..], &more].concat());
            assert_eq!(shown, Some(format!("n/t/s  event 7  {said}")));
        }
        let warned = line_at(LevelFilter::WARN, "queue.slow", &[("queue", "retry")]);
        assert_eq!(describe(&warned).as_deref(), Some("WARN queue.slow  queue=retry"));
        let begun = line_at(LevelFilter::DEBUG, "delivery.attempting", &fields);
        assert_eq!(describe(&begun), None, "how it ends is told");
    }

    #[test]
    fn control_characters_of_a_publisher_are_replaced() {
        for name in [
            "delivery.attempted",
            "event.unmatched",
            "deadletter.handed_over",
            "deadletter.returned",
            "any.other",
        ] {
            let fields = [("event_id", "a\u{1b}[2J\nb\u{202e}"), ("sink", "\u{1b}c")];
            let text = describe(&line_at(LevelFilter::WARN, name, &fields)).unwrap();
            assert!(!text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
        }
    }
}
