//! Log lines: one JSON object each, its fields beside the time, the level and the message.
//!
//! Separate, and our own, because two lines are written for every event that is delivered: a
//! general formatter took as much of an event's time as its request did. A line is put together in
//! one text and handed over whole; several leave in one call of the system, as [`crate::runtime`]
//! says when. Spans are not told; nothing of ours opens one.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::ports::Clock as _;
use delivery::time::moment;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::machine::Machine;

/// Most lines are shorter.
const LINE_BYTES: usize = 512;
/// Lines that are held leave before they are more than this, unless one alone is longer.
const HELD_MAX_BYTES: usize = 16 * 1_024;

/// Lines of this process that nobody has seen yet.
static UNWRITTEN: Mutex<Unwritten> = Mutex::new(Unwritten(String::new()));

/// Hands every line, with its end, to whoever keeps them.
#[derive(Debug)]
pub struct Lines<W>(W);

impl<W: Fn(Level, &str)> Lines<W> {
    /// Lines that go there.
    #[must_use]
    pub fn to(keep: W) -> Self {
        Self(keep)
    }
}

/// Holds a line, whole, until the next [`flush`]; one that warns is rare, and leaves at once.
pub(crate) fn hold(level: Level, line: &str) {
    let mut unwritten = unwritten();
    unwritten.add(line, &mut io::stdout());
    if level <= Level::WARN {
        unwritten.write(&mut io::stdout());
    }
}

/// Writes the lines that are held to standard output.
pub(crate) fn flush() {
    unwritten().write(&mut io::stdout());
}

fn unwritten() -> MutexGuard<'static, Unwritten> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines on their way out.
#[derive(Debug)]
struct Unwritten(String);

impl Unwritten {
    fn add(&mut self, line: &str, out: &mut impl io::Write) {
        if self.0.len() + line.len() > HELD_MAX_BYTES {
            self.write(out);
        }
        self.0.push_str(line);
    }

    fn write(&mut self, out: &mut impl io::Write) {
        if !self.0.is_empty() {
            // Where there is no output, nobody can be told.
            let _ = out.write_all(self.0.as_bytes());
            self.0.clear();
        }
    }
}

impl<S: Subscriber, W: Fn(Level, &str) + 'static> Layer<S> for Lines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::with_capacity(LINE_BYTES));
        let (at, level) = (moment::rfc3339(Machine.now_ms()), *event.metadata().level());
        write!(line.0, r#"{{"timestamp":"{at}","level":"{level}""#)
            .expect("a String takes everything");
        event.record(&mut line);
        line.0.push_str("}\n");
        (self.0)(level, &line.0);
    }
}

/// Whether a text stands in JSON as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

/// A line on its way.
struct Line(String);

impl Line {
    /// A field's name: a name of Rust's, or a word of ours, which needs no escape.
    fn name(&mut self, field: &Field) {
        self.0.push_str(",\"");
        self.0.push_str(field.name());
        self.0.push_str("\":");
    }

    /// A JSON string; nearly all need no escape.
    fn text(&mut self, text: &str) {
        if is_plain(text) {
            self.0.push('"');
            self.0.push_str(text);
            self.0.push('"');
        } else {
            self.0.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
        }
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.name(field);
        write!(self.0, "{value}").expect("a String takes everything");
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        self.text(value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON knows no infinity.
        if value.is_finite() { self.plain(field, value) } else { self.record_debug(field, &value) }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        let from = self.0.len();
        write!(self.0, "\"{value:?}").expect("a String takes everything");
        if is_plain(&self.0[from + 1..]) {
            self.0.push('"');
        } else {
            let text = self.0.split_off(from);
            self.text(&text[1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn lines_leave_whole_and_in_order_before_they_are_too_many() {
        let (mut unwritten, mut out) = (Unwritten(String::new()), Vec::new());
        let line = |number: usize| format!("{number:0>100}\n");
        (0..1_000).for_each(|number| {
            unwritten.add(&line(number), &mut out);
            assert!(
                unwritten.0.len() <= HELD_MAX_BYTES && (out.is_empty() || out.ends_with(b"\n"))
            );
        });
        assert!((80_000..101_000).contains(&out.len()), "most have left, the last ones have not");
        unwritten.write(&mut out);
        assert_eq!(out, (0..1_000).map(line).collect::<String>().into_bytes());
    }

    #[test]
    fn a_line_is_one_json_object_whatever_its_fields_hold() {
        let kept = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&kept);
        let lines = Lines::to(move |_, line: &str| keep.lock().unwrap().push_str(line));
        let hostile = "a\"b\\c\nd\u{1}\u{7f}ö 😀\u{2028}";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::info!(text = hostile, shown = %hostile, none = None::<u64>, status = Some(503_u16), "a.b");
            tracing::warn!(yes = true, below = -7, half = 0.5, endless = f64::INFINITY, "c.d");
        });
        let text = kept.lock().unwrap().clone();
        let mut told: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut told {
            let at = line.as_object_mut().unwrap().remove("timestamp").unwrap();
            assert!(moment::parse(at.as_str().unwrap()).is_some(), "{at}");
        }
        let first = json!({"level": "INFO", "message": "a.b", "text": hostile, "shown": hostile, "status": 503});
        let second = json!({"level": "WARN", "message": "c.d", "yes": true, "below": -7, "half": 0.5, "endless": "inf"});
        assert_eq!(told, [first, second]);
    }
}
