//! Describes a log line of the functions for people: the step, its outcome, and the next step.
//!
//! Separate because the terminal and the live page of `dev` use the same texts. Only [`words`]
//! converts fields to texts; its callers arrange the texts. Fields come from publishers and
//! endpoints, so callers must escape them.

use local::watch::Line;
use tracing_subscriber::filter::LevelFilter;
use uuid::Uuid;

use crate::terminal::styled::Style;
use crate::terminal::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An event was received.
    Event,
    /// An attempt has begun.
    UnderWay,
    /// An attempt delivered the event.
    Good,
    /// The response to an attempt was a failure.
    Failed,
    /// An attempt had no response.
    Silent,
    /// A delivery waits before its next attempt.
    Wait,
    /// A delivery ended without success.
    End,
    /// A dead letter was stored.
    Stored,
    /// Any other log line.
    Note,
}

/// The parts of a log line, each as a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineWords {
    pub(crate) kind: Kind,
    /// The target of an attempt, if it is not the destination: `reply`, `to the sink`.
    pub(crate) target: &'static str,
    /// The name of the step, such as `attempt 2`.
    pub(crate) name: String,
    /// The outcome of the step, such as `503 Service Unavailable (Busy)`.
    pub(crate) outcome: String,
    /// Details of the outcome, such as the reason why there was no response.
    pub(crate) detail: String,
    pub(crate) duration_ms: Option<u64>,
    /// The next step of the delivery.
    pub(crate) next: String,
    /// The wait before the next step.
    pub(crate) wait_ms: Option<u64>,
    /// The id of the dead letter that the delivery became.
    pub(crate) dead_letter: Option<Uuid>,
}

impl LineWords {
    pub(crate) fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            kind,
            target: "",
            name: name.into(),
            outcome: String::new(),
            detail: String::new(),
            duration_ms: None,
            next: String::new(),
            wait_ms: None,
            dead_letter: None,
        }
    }

    /// Returns a key that equal failures and waits of a subscription share, so that their lines can
    /// be folded into one. Returns `None` for a line that is always shown.
    pub(crate) fn fold(&self, subscription: &str) -> Option<String> {
        match self.kind {
            Kind::Failed | Kind::Silent | Kind::Wait => {
                Some([subscription, self.target, &self.outcome, &self.detail].join("\n"))
            }
            Kind::Event | Kind::UnderWay | Kind::Good | Kind::End | Kind::Stored | Kind::Note => {
                None
            }
        }
    }

    pub(crate) fn style(&self) -> Style {
        match self.kind {
            Kind::Good => Style::Good,
            Kind::Wait => Style::Waiting,
            Kind::Failed | Kind::Silent if self.wait_ms.is_some() => Style::Waiting,
            Kind::Failed | Kind::Silent | Kind::End => Style::Bad,
            Kind::Event | Kind::UnderWay | Kind::Stored | Kind::Note => Style::Plain,
        }
    }
}

/// Describes a log line. Returns `None` if other lines already report its information.
pub(crate) fn words(line: &Line) -> Option<LineWords> {
    let field = |name| line.field(name).to_owned();
    let reason = |kind, name: &str| LineWords {
        outcome: field("reason"),
        detail: field("detail"),
        ..LineWords::new(kind, name)
    };
    Some(match line.name.as_str() {
        "delivery.attempting" => LineWords {
            outcome: "waiting for a response".to_owned(),
            ..attempt(line, Kind::UnderWay)
        },
        "delivery.attempted" => attempted(line),
        // Without a duration, the line is about a late response or a forwarded event.
        "delivery.delivered" if line.field("duration_ms").is_empty() => return None,
        "delivery.delivered" => LineWords {
            outcome: text::outcome(None, line.field("status").parse().ok()),
            duration_ms: number(line, "duration_ms"),
            next: "delivered".to_owned(),
            ..attempt(line, Kind::Good)
        },
        "delivery.answered_late" => LineWords {
            outcome: text::outcome(None, line.field("status").parse().ok()),
            duration_ms: number(line, "duration_ms"),
            next: "delivered".to_owned(),
            ..LineWords::new(Kind::Good, "late response")
        },
        "delivery.held" | "delivery.put_off" | "delivery.abandoned" => waiting(line),
        "delivery.ended" => match line.field("end") {
            "DeadLettered" => LineWords { next: after(line), ..reason(Kind::End, "dead-lettered") },
            _ => LineWords { next: after(line), ..reason(Kind::End, "dropped") },
        },
        "deadletter.stored" => stored(line),
        "deadletter.handed_over" => LineWords {
            next: format!("accepted by the sink, {}", line.field("sink")),
            ..reason(Kind::Stored, "dead letter")
        },
        "deadletter.returned" => LineWords {
            next: format!("not accepted by the sink {}", after(line)),
            ..reason(Kind::End, "dead letter")
        },
        "destination.retired" => LineWords {
            outcome: field("destination"),
            ..LineWords::new(Kind::End, "destination is permanently gone")
        },
        "event.unmatched" => LineWords {
            outcome: "no subscription matches".to_owned(),
            ..LineWords::new(Kind::End, "unmatched")
        },
        "probation.began" | "probation.goes_on" => {
            let lasts = number(line, "lasts_ms").map(text::duration).unwrap_or_default();
            LineWords {
                outcome: format!("no request for {lasts}, then a probe"),
                detail: "the destination keeps failing".to_owned(),
                ..LineWords::new(Kind::Wait, "on probation")
            }
        }
        "destination.slow" => LineWords {
            outcome: "deliveries use the slow lane".to_owned(),
            ..LineWords::new(Kind::Wait, "slow responses")
        },
        "destination.disabled" => LineWords {
            outcome: "the destination failed for too long".to_owned(),
            ..LineWords::new(Kind::End, "destination disabled")
        },
        // Skip lines that the attempts and their outcomes already imply.
        _ if line.level > LevelFilter::WARN => return None,
        name => LineWords { outcome: others(line), ..LineWords::new(Kind::Note, name) },
    })
}

fn number(line: &Line, name: &str) -> Option<u64> {
    line.field(name).parse().ok()
}

/// Formats the number of attempts of a delivery: `after 1 attempt`.
fn after(line: &Line) -> String {
    match line.field("attempts") {
        "1" => "after 1 attempt".to_owned(),
        attempts => format!("after {attempts} attempts"),
    }
}

fn attempt(line: &Line, kind: Kind) -> LineWords {
    let target = match line.field("leg") {
        "sink" => "to the sink",
        "reply" => "reply",
        _ => "",
    };
    LineWords { target, ..LineWords::new(kind, format!("attempt {}", line.field("attempt"))) }
}

fn attempted(line: &Line) -> LineWords {
    let status = line.field("status");
    let kind = match (line.field("verdict"), status) {
        ("delivered", _) => Kind::Good,
        (_, "") => Kind::Silent,
        (_, _) => Kind::Failed,
    };
    let wait_ms = number(line, "wait_ms");
    let next = match (line.field("verdict"), wait_ms) {
        ("retry", Some(wait_ms)) => format!("retry in {}", text::rounded(wait_ms)),
        ("retry", None) => "no attempts left".to_owned(),
        ("undeliverable", _) => "not retried".to_owned(),
        (verdict, _) => verdict.to_owned(),
    };
    LineWords {
        outcome: outcome(line),
        detail: line.field("why").to_owned(),
        duration_ms: number(line, "duration_ms"),
        next,
        wait_ms,
        ..attempt(line, kind)
    }
}

/// Describes the outcome of an attempt: the status with its name, or the reason why there was no
/// response.
fn outcome(line: &Line) -> String {
    let (word, why) = (line.field("outcome"), line.field("why"));
    if let Ok(status) = line.field("status").parse() {
        return text::outcome(Some(word), Some(status));
    }
    let happened = match word {
        "TimedOut" => {
            let took_ms = line.field("duration_ms").parse().unwrap_or_default();
            format!("no response within {}", text::rounded(took_ms))
        }
        _ => why.to_owned(),
    };
    if happened.is_empty() { word.to_owned() } else { format!("{happened} ({word})") }
}

fn waiting(line: &Line) -> LineWords {
    let (name, outcome, detail) = match line.name.as_str() {
        "delivery.held" => ("held", line.field("why"), held_because(line.field("why"))),
        "delivery.put_off" => ("deferred", line.field("outcome"), "the destination keeps failing"),
        _ => ("abandoned", "no response yet", "the destination is slow"),
    };
    let wait_ms = number(line, "wait_ms");
    let next = match wait_ms {
        Some(wait_ms) => format!("again in {}", text::rounded(wait_ms)),
        None => "again in the slow lane".to_owned(),
    };
    LineWords {
        outcome: outcome.to_owned(),
        detail: detail.to_owned(),
        next,
        wait_ms,
        ..LineWords::new(Kind::Wait, name)
    }
}

/// Explains why a delivery is held before its next attempt.
fn held_because(word: &str) -> &'static str {
    match word {
        "scheduled" => "the event or the subscription sets a later start",
        "consent" => "the destination has not consented yet",
        "rate" => "the rate limit of the destination is reached",
        "concurrency" => "the concurrency limit of the destination is reached",
        "time" => "the invocation had no time left",
        "slow" => "the destination is slow, so the delivery uses the slow lane",
        "retryAfter" => "the destination requested a wait (Retry-After)",
        _ => "",
    }
}

fn stored(line: &Line) -> LineWords {
    let key = line.field("key");
    let id = key.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
    LineWords {
        outcome: line.field("reason").to_owned(),
        detail: format!("{}/{key}", line.field("container")),
        dead_letter: id.and_then(|id| id.parse().ok()),
        ..LineWords::new(Kind::Stored, "dead letter stored")
    }
}

/// Formats the fields that no other part of the description contains.
fn others(line: &Line) -> String {
    const SHOWN: [&str; 6] =
        ["subscription", "event_id", "type", "source", "delivery_id", "trace_id"];
    let fields = line.fields.iter().filter(|(name, _)| !SHOWN.contains(name));
    let fields: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    fields.join("  ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn line(name: &str, fields: &[(&'static str, &str)]) -> Line {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let level = LevelFilter::INFO.into_level().unwrap();
        Line { name: name.to_owned(), at_ms: 0, level, fields }
    }

    #[test]
    fn attempts_say_what_comes_next() {
        let attempted = |fields: &[(&'static str, &str)]| {
            let words = words(&line("delivery.attempted", fields)).unwrap();
            (words.kind, words.style(), words.outcome, words.next)
        };
        let busy = [("outcome", "Busy"), ("status", "503"), ("verdict", "retry")];
        let said = "503 Service Unavailable (Busy)".to_owned();
        assert_eq!(
            attempted(&[&busy[..], &[("wait_ms", "10000")]].concat()),
            (Kind::Failed, Style::Waiting, said.clone(), "retry in 10 s".to_owned())
        );
        let last = (Kind::Failed, Style::Bad, said, "no attempts left".to_owned());
        assert_eq!(attempted(&busy), last);
        let delivered = [("status", "200"), ("attempt", "2"), ("duration_ms", "5")];
        let delivered = words(&line("delivery.delivered", &delivered)).unwrap();
        assert_eq!((delivered.name.as_str(), delivered.style()), ("attempt 2", Style::Good));
        assert_eq!((delivered.outcome.as_str(), delivered.next.as_str()), ("200 OK", "delivered"));
        let silent = [("outcome", "SocketError"), ("verdict", "undeliverable")];
        assert_eq!(attempted(&silent).3, "not retried");
        assert!(words(&line("delivery.delivered", &[("attempt", "1")])).is_none());
    }

    #[test]
    fn a_stored_dead_letter_is_found_by_the_id_in_its_key() {
        let id = "00000000-0000-0000-0000-000000000001";
        let key = format!("shop/orders/billing/2026/11/20/7/{id}.json");
        let stored = line("deadletter.stored", &[("container", "dead-letters"), ("key", &key)]);
        let words = words(&stored).unwrap();
        assert_eq!(words.dead_letter, Some(Uuid::from_u128(1)));
        assert_eq!(words.detail, format!("dead-letters/{key}"));
    }

    #[test]
    fn without_an_answer_the_cause_is_said_for_people() {
        for (word, why, shown) in [
            ("SocketError", "connection refused", "connection refused (SocketError)"),
            ("TimedOut", "no complete response within 30 s", "no response within 30 s (TimedOut)"),
            ("ResolutionError", "no such name", "no such name (ResolutionError)"),
            ("Blocked", "", "Blocked"),
        ] {
            let fields = [("outcome", word), ("why", why), ("duration_ms", "30004")];
            assert_eq!(outcome(&line("delivery.attempted", &fields)), shown);
        }
    }

    #[test]
    fn a_wait_says_why_and_until_when() {
        for (name, fields, expected) in [
            (
                "delivery.held",
                [("why", "scheduled"), ("wait_ms", "600000")],
                [
                    "held",
                    "scheduled",
                    "the event or the subscription sets a later start",
                    "again in 10 min",
                ],
            ),
            (
                "delivery.held",
                [("why", "rate"), ("wait_ms", "4970")],
                ["held", "rate", "the rate limit of the destination is reached", "again in 5 s"],
            ),
            (
                "delivery.abandoned",
                [("slow_after_ms", "2000"), ("attempts", "1")],
                [
                    "abandoned",
                    "no response yet",
                    "the destination is slow",
                    "again in the slow lane",
                ],
            ),
        ] {
            let words = words(&line(name, &fields)).unwrap();
            assert_eq!([words.name, words.outcome, words.detail, words.next], expected);
        }
    }
}
