//! The log lines of the functions as a stream of values, for the local run.
//!
//! In the cloud, the functions write these lines to a log as JSON. On a developer's machine,
//! programs print the lines or wait for them. Lines and fields are the same in both places, because
//! only the `tracing` layer differs. This module is the local layer, and the functions do not
//! depend on it.

use std::collections::BTreeMap;
use std::fmt;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use tokio::sync::mpsc::UnboundedSender;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// One log line of a function.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name of the line, such as `delivery.attempted`.
    pub name: String,
    /// Time at which the line was logged, in milliseconds since 1970.
    pub at_ms: u64,
    /// The severity of the line.
    pub level: Level,
    /// The values of the fields as text, by field name.
    pub fields: BTreeMap<&'static str, String>,
}

impl Line {
    /// Returns the value of a field; empty if the line has no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// True if the log target belongs to a crate of lastmile.
#[must_use]
pub fn is_ours(target: &str) -> bool {
    ["adapters", "dispatch", "deadletter", "local"].iter().any(|ours| target.starts_with(ours))
}

/// A `tracing` layer that sends each line of lastmile's own crates to a channel.
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
        // Ignore a closed channel: the program is ending.
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
