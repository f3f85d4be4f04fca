//! Formats log lines: one JSON object each, with the time, the level, the message and the fields.
//!
//! This formatter replaces a general one because a line is written for every delivered event.
//! Formatting a line with the general one took as much time as the request itself. Each line is
//! built in one string and buffered; one system call writes several lines, when `runtime` flushes
//! them. Spans are not logged; no code here opens one.

use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use delivery::ports::Clock as _;
use delivery::time::moment;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::machine::Machine;

/// Initial capacity of a line; most lines are shorter.
const LINE_BYTES: usize = 512;
/// Maximum size of the buffer, which is written before a line that does not fit is added. Only a
/// single longer line exceeds the limit.
const BUFFER_MAX_BYTES: usize = 16 * 1_024;

/// The lines of this process that are not written yet.
static BUFFER: Mutex<LineBuffer> = Mutex::new(LineBuffer(String::new()));

/// A `tracing` layer that formats each log event as a JSON line, and passes the line to a writer.
#[derive(Debug)]
pub struct JsonLayer<W>(pub W);

/// Buffers a line until the next [`flush`]. A warning or error is written at once, because it is
/// rare.
pub(crate) fn write_line(level: Level, line: &str) {
    buffer().write(level, line, &mut io::stdout());
}

/// Writes the buffered lines to standard output.
pub(crate) fn flush() {
    buffer().flush(&mut io::stdout());
}

fn buffer() -> MutexGuard<'static, LineBuffer> {
    // A panic elsewhere must not stop the log, and a `String` is never left half changed.
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct LineBuffer(String);

impl LineBuffer {
    fn write(&mut self, level: Level, line: &str, out: &mut impl io::Write) {
        self.add(line, out);
        // In tracing, more severe levels compare as smaller.
        if level <= Level::WARN {
            self.flush(out);
        }
    }

    fn add(&mut self, line: &str, out: &mut impl io::Write) {
        if self.0.len() + line.len() > BUFFER_MAX_BYTES {
            self.flush(out);
        }
        self.0.push_str(line);
    }

    fn flush(&mut self, out: &mut impl io::Write) {
        if !self.0.is_empty() {
            // If standard output fails, the error cannot be reported anywhere.
            let _ = out.write_all(self.0.as_bytes());
            self.0.clear();
        }
    }
}

impl<S: Subscriber, W: Fn(Level, &str) + 'static> Layer<S> for JsonLayer<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::with_capacity(LINE_BYTES));
        let (at, level) = (moment::rfc3339(Machine.now_ms()), *event.metadata().level());
        write!(line.0, r#"{{"timestamp":"{at}","level":"{level}""#)
            .expect("writing to a String cannot fail");
        event.record(&mut line);
        line.0.push_str("}\n");
        (self.0)(level, &line.0);
    }
}

/// True if a JSON string can contain the text without escapes.
fn is_plain(text: &str) -> bool {
    // Bytes above ASCII belong to UTF-8 sequences, which JSON does not escape.
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

struct Line(String);

impl Line {
    /// Writes the name of a field, which is an identifier and needs no escape.
    fn name(&mut self, field: &Field) {
        self.0.push_str(",\"");
        self.0.push_str(field.name());
        self.0.push_str("\":");
    }

    /// Writes a JSON string. Checks first if the text needs escapes, because almost no text does.
    fn text(&mut self, text: &str) {
        if is_plain(text) {
            self.0.push('"');
            self.0.push_str(text);
            self.0.push('"');
        } else {
            self.0.push_str(
                &serde_json::to_string(text).expect("every string can be written as JSON"),
            );
        }
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.name(field);
        write!(self.0, "{value}").expect("writing to a String cannot fail");
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
        // JSON has no infinity and no NaN.
        if value.is_finite() { self.plain(field, value) } else { self.record_debug(field, &value) }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        let from = self.0.len();
        // Write the value in place first: nearly every value needs no escape.
        write!(self.0, "\"{value:?}").expect("writing to a String cannot fail");
        let written = self.0.get(from + 1..).unwrap_or_default();
        if is_plain(written) {
            self.0.push('"');
        } else {
            let written = written.to_owned();
            self.0.truncate(from);
            self.text(&written);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// The text of each write.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl io::Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8(bytes.to_vec()).expect("whole characters"));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn as_many_lines_as_the_buffer_holds_are_written_at_once() {
        let (mut buffer, mut out) = (LineBuffer(String::new()), Writes::default());
        // 128 lines of 128 bytes fill the buffer. 162 lines of 101 bytes leave space for only a
        // part of the next line.
        for (bytes, lines) in [(128, 128), (101, 162)] {
            let all: Vec<_> = (0..1_000)
                .map(|number| format!("{number:0>width$}\n", width = bytes - 1))
                .collect();
            all.iter().for_each(|line| buffer.write(Level::INFO, line, &mut out));
            buffer.flush(&mut out);
            assert_eq!(out.0, all.chunks(lines).map(<[_]>::concat).collect::<Vec<_>>());
            out.0.clear();
        }
        buffer.flush(&mut out);
        assert!(out.0.is_empty(), "nothing is written twice");
    }

    #[test]
    fn a_warning_is_written_at_once_with_what_came_before_it() {
        let (mut buffer, mut out) = (LineBuffer(String::new()), Writes::default());
        for level in [Level::INFO, Level::WARN, Level::DEBUG, Level::ERROR, Level::INFO] {
            buffer.write(level, "a line\n", &mut out);
        }
        assert_eq!(out.0, ["a line\na line\n"; 2]);
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_written_whole() {
        let (mut buffer, mut out) = (LineBuffer(String::new()), Writes::default());
        buffer.write(Level::INFO, "a line\n", &mut out);
        let long = format!("{}\n", "x".repeat(2 * BUFFER_MAX_BYTES));
        buffer.write(Level::INFO, &long, &mut out);
        buffer.flush(&mut out);
        assert_eq!(out.0, ["a line\n", &long]);
    }

    #[test]
    fn a_line_is_one_json_object_whatever_its_fields_hold() {
        let written = Arc::new(Mutex::new(String::new()));
        let text = Arc::clone(&written);
        let layer = JsonLayer(move |_, line: &str| text.lock().unwrap().push_str(line));
        let hostile = "a\"b\\c\nd\u{1}\u{7f}ö 😀\u{2028}";
        assert!(is_plain("nearly all värden 😀"), "these are copied as they are");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(text = hostile, shown = %hostile, none = None::<u64>, status = Some(503_u16), "a.b");
            tracing::info!(end = "\n", quote = "\"", slash = "\\", shown = %"\"\"", "b.c");
            tracing::warn!(yes = true, below = -7, half = 0.5, endless = f64::INFINITY, "c.d");
        });
        let text = written.lock().unwrap().clone();
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &mut lines {
            let timestamp = line.as_object_mut().unwrap().remove("timestamp").unwrap();
            assert!(moment::parse(timestamp.as_str().unwrap()).is_some(), "{timestamp}");
        }
        let first = json!({"level": "INFO", "message": "a.b", "text": hostile, "shown": hostile, "status": 503});
        let second = json!({"level": "WARN", "message": "c.d", "yes": true, "below": -7, "half": 0.5, "endless": "inf"});
        let each = json!({"level": "INFO", "message": "b.c", "end": "\n", "quote": "\"", "slash": "\\", "shown": "\"\""});
        assert_eq!(lines, [first, each, second]);
    }
}
