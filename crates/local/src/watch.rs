//! The log lines of the functions as a stream of values, for the local run.
//!
//! In the cloud the lines are JSON in a log; on a developer's machine they can be printed or waited
//! for. Lines and fields are the same: this is a `tracing` layer, and the functions do not know
//! about it.

use std::collections::BTreeMap;
use std::fmt;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use tokio::sync::mpsc::UnboundedSender;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// One log line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name, such as `delivery.attempted`.
    pub name: String,
    /// When it was written.
    pub at_ms: u64,
    /// Its level.
    pub level: Level,
    /// Its fields, as text.
    pub fields: BTreeMap<&'static str, String>,
}

impl Line {
    /// A field, empty when the line has none of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// Whether a line of this target is of our own crates.
#[must_use]
pub fn is_ours(target: &str) -> bool {
    ["adapters", "dispatch", "deadletter", "local"].iter().any(|ours| target.starts_with(ours))
}

/// Sends each line of our own crates to a channel.
#[derive(Debug)]
pub struct Watch(pub UnboundedSender<Line>);

impl<S: Subscriber> Layer<S> for Watch {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if !is_ours(metadata.target()) {
            return;
        }
        let (at_ms, level) = (Machine.now_ms(), *metadata.level());
        let mut line = Line { name: String::new(), at_ms, level, fields: BTreeMap::new() };
        event.record(&mut line);
        // The receiver is gone when the program ends: no error.
        let _ = self.0.send(line);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.name);
        } else {
            self.fields.insert(field.name(), value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A message is `format_args!`, whose `Debug` output is the text itself.
        self.record_str(field, &format!("{value:?}"));
    }
}
