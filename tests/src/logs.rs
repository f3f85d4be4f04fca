//! The log of this thread.

use std::sync::{Arc, Mutex};

use adapters::json_log::JsonLayer;
use serde_json::Value;
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

/// The log of this thread in the functions' format. Logging ends when it is dropped.
#[must_use]
pub struct Logged {
    text: Arc<Mutex<String>>,
    _default: DefaultGuard,
}

impl Logged {
    /// Starts to record lines of this level and above.
    pub fn at(level: Level) -> Self {
        let text: Arc<Mutex<String>> = Arc::default();
        let keep = Arc::clone(&text);
        let lines = JsonLayer(move |_, line: &str| keep.lock().expect("no panic").push_str(line));
        let levels = LevelFilter::from_level(level);
        // With only one subscriber alive, tracing asks the thread that first reaches a log line
        // whether anyone wants it. That thread may belong to another test. With two subscribers,
        // tracing asks both.
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
        let subscriber = tracing_subscriber::registry().with(levels).with(lines);
        Self { text, _default: tracing::subscriber::set_default(subscriber) }
    }

    /// The lines recorded so far.
    ///
    /// # Panics
    /// If a line is not JSON.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let text = self.text.lock().expect("no panic").clone();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// The messages of the lines recorded so far.
    ///
    /// # Panics
    /// If a line has no message.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let message =
            |line: &Value| line["message"].as_str().expect("a line has a message").to_owned();
        self.lines().iter().map(message).collect()
    }
}
