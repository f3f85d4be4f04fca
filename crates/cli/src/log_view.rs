//! The log lines of the functions, for people.
//!
//! A line of an attempt says where it went, how it ended in words of HTTP and of the operating system, and how
//! long until the next one. Fields of lines come from publishers and endpoints: each part is made harmless
//! when it is made.

use adapters::json_log::JsonLayer;
use delivery::time::duration::SECOND_MS;
use local::watch::{Line, Watch, is_ours};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing_subscriber::filter::{FilterFn, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::output::out_json;
use crate::styled::{Part, Style, plain};
use crate::text;

/// A tenth of a second.
const TENTH_MS: u64 = 100;
/// From here on, fractions of a second say nothing.
const WHOLE_SECONDS_FROM_MS: u64 = 10_000;

/// Starts to receive the log lines of the functions in this process.
pub(crate) fn watch() -> UnboundedReceiver<Line> {
    let (sender, lines) = unbounded_channel();
    tracing_subscriber::registry().with(Watch(sender).with_filter(LevelFilter::INFO)).init();
    lines
}

/// Writes the log lines of the functions in this process to standard output, as JSON as in the cloud. None
/// of them is received.
pub(crate) fn write_json() -> UnboundedReceiver<Line> {
    let layer = JsonLayer(|_, line: &str| {
        // A reader that has gone is no reason to stop delivering.
        let _ = out_json(line.trim_end());
    });
    let ours: FilterFn = filter_fn(|metadata| is_ours(metadata.target()));
    let layer = layer.with_filter(ours).with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(layer).init();
    unbounded_channel().1
}

/// A log line as one line of text; `None` for lines that add nothing.
pub(crate) fn describe(line: &Line) -> Option<String> {
    parts(line, None).map(|parts| plain(&parts))
}

/// The parts of a log line, of an attempt with the address of its destination if that is known; `None`
/// for lines that add nothing.
pub(crate) fn parts(line: &Line, destination: Option<&str>) -> Option<Vec<Part>> {
    let field = |name| line.field(name);
    let subscription = Part::new(Style::Name, field("subscription"));
    let event = || Part::new(Style::Dim, format!("event {}", field("event_id")));
    let (attempts, reason) = (field("attempts"), field("reason"));
    let attempts = format!("{attempts} {}", if attempts == "1" { "attempt" } else { "attempts" });
    let of_event =
        |style, text: String| Some(vec![subscription.clone(), event(), Part::new(style, text)]);
    let about = |style, text: String| Some(vec![subscription.clone(), Part::new(style, text)]);
    match line.name.as_str() {
        "delivery.attempted" => Some(attempted(line, subscription, event(), destination)),
        "delivery.ended" if field("end") == "DeadLettered" => {
            of_event(Style::Bad, format!("dead-lettered after {attempts}: {reason}"))
        }
        "delivery.ended" => None,
        "deadletter.stored" => {
            about(Style::Plain, format!("stored {}/{}", field("container"), field("key")))
        }
        "deadletter.handed_over" => {
            let sink = field("sink");
            of_event(Style::Plain, format!("dead letter accepted by its sink, {sink}: {reason}"))
        }
        "deadletter.returned" => of_event(
            Style::Bad,
            format!("dead letter not accepted by its sink after {attempts}: {reason}"),
        ),
        "destination.retired" => {
            about(Style::Bad, format!("destination is gone for good: {}", field("destination")))
        }
        "subscriptions.loaded" => {
            let text = format!("{} subscriptions from {}", field("subscriptions"), field("source"));
            Some(vec![Part::new(Style::Plain, text)])
        }
        name => {
            let fields = line.fields.iter().map(|(name, value)| format!("{name}={value}"));
            let mut parts = vec![Part::new(Style::Waiting, format!("{} {name}", line.level))];
            parts.extend(fields.map(|field| Part::new(Style::Plain, field)));
            Some(parts)
        }
    }
}

fn attempted(line: &Line, subscription: Part, event: Part, destination: Option<&str>) -> Vec<Part> {
    let field = |name| line.field(name);
    let (style, next) = match (field("verdict"), field("wait_ms").parse().ok()) {
        ("delivered", _) => (Style::Good, "delivered".to_owned()),
        ("retry", Some(wait_ms)) => (Style::Waiting, format!("retry in {}", wait(wait_ms))),
        ("retry", None) => (Style::Bad, "no attempt is left".to_owned()),
        (verdict, _) => (Style::Bad, verdict.to_owned()),
    };
    let target = match field("leg") {
        "sink" => "to its sink".to_owned(),
        "reply" => "reply".to_owned(),
        _ => destination.map(|destination| format!("-> {destination}")).unwrap_or_default(),
    };
    vec![
        subscription,
        event,
        Part::new(Style::Plain, target),
        Part::new(Style::Plain, format!("attempt {}", field("attempt"))),
        Part::new(style, format!("{} in {} ms", outcome(line), field("duration_ms"))),
        Part::new(style, next),
    ]
}

/// What happened, in words: the status with its name, or why there was no answer.
fn outcome(line: &Line) -> String {
    let (word, why) = (line.field("outcome"), line.field("why"));
    if let Ok(status) = line.field("status").parse() {
        return text::outcome(Some(word), Some(status));
    }
    // The causes are joined by colons, and the last one says what happened.
    let last = why.rsplit(": ").next().unwrap_or(why);
    let happened = match word {
        "SocketError" => {
            // As the operating system says it: "Connection refused (os error 111)".
            let text = last.split(" (os error").next().unwrap_or(last);
            uncapitalized(text)
        }
        "TimedOut" => {
            let took_ms = line.field("duration_ms").parse().unwrap_or_default();
            format!("no answer within {}", wait(took_ms))
        }
        "TlsError" => match why.find("invalid peer certificate") {
            Some(at) => why.get(at..).unwrap_or(why).to_owned(),
            None => last.to_owned(),
        },
        _ => why.to_owned(),
    };
    if happened.is_empty() { word.to_owned() } else { format!("{happened} ({word})") }
}

/// A text that goes on a sentence.
fn uncapitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), chars.as_str())
}

/// A wait: `340 ms`, `2 s`, `1.5 s`, `3 min 20 s`. Rounded: what is left of a wait of an hour is an hour.
fn wait(ms: u64) -> String {
    let tenths = ms.saturating_add(TENTH_MS / 2) / TENTH_MS;
    if tenths < 10 {
        return text::duration(ms);
    }
    if ms < WHOLE_SECONDS_FROM_MS && !tenths.is_multiple_of(10) {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    text::duration(ms.saturating_add(SECOND_MS / 2) / SECOND_MS * SECOND_MS)
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn line(name: &str, fields: &[(&'static str, &str)]) -> Line {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let level = LevelFilter::INFO.into_level().unwrap();
        Line { name: name.to_owned(), at_ms: 0, level, fields }
    }

    fn described(name: &str, fields: &[(&'static str, &str)]) -> Option<String> {
        describe(&line(name, fields))
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
        for (target, mark) in
            [("event", "-> a.example.com/in  "), ("reply", "reply  "), ("sink", "to its sink  ")]
        {
            let more =
                [("leg", target), ("verdict", "retry"), ("wait_ms", "10000"), ("duration_ms", "5")];
            let expected = format!(
                "n/t/s  event 7  {mark}attempt 2  503 Service Unavailable (Busy) in 5 ms  retry in 10 s"
            );
            let line = line("delivery.attempted", &[&of[..], &more].concat());
            let shown = parts(&line, Some("a.example.com/in")).map(|parts| plain(&parts));
            assert_eq!(shown, Some(expected));
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
    fn without_an_answer_the_cause_is_said_for_people() {
        for (word, why, shown) in [
            (
                "SocketError",
                "error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)",
                "connection refused (SocketError)",
            ),
            (
                "SocketError",
                "error sending request: connection closed",
                "connection closed (SocketError)",
            ),
            ("TimedOut", "no whole answer within 30000 ms", "no answer within 30 s (TimedOut)"),
            (
                "TlsError",
                "error sending request: client error (Connect): invalid peer certificate: UnknownIssuer",
                "invalid peer certificate: UnknownIssuer (TlsError)",
            ),
            ("ResolutionError", "no such name", "no such name (ResolutionError)"),
            ("Blocked", "", "Blocked"),
        ] {
            let fields = [("outcome", word), ("why", why), ("duration_ms", "30004")];
            assert_eq!(outcome(&line("delivery.attempted", &fields)), shown);
        }
    }

    #[test]
    fn waits_are_as_exact_as_they_matter() {
        for (ms, shown) in [
            (340, "340 ms"),
            (940, "940 ms"),
            (997, "1 s"),
            (1_000, "1 s"),
            (1_043, "1 s"),
            (1_500, "1.5 s"),
            (1_970, "2 s"),
            (9_990, "10 s"),
            (3_599_998, "1 h"),
            (10_400, "10 s"),
            (200_000, "3 min 20 s"),
        ] {
            assert_eq!(wait(ms), shown);
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
