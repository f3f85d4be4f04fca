//! [`TopicSettings`]: how events of a topic are parsed. The defaults for subscriptions of the topic
//! are not included.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::document::kind::{Integer, Whole, Word};
use crate::document::record::{Optional, Or};
use crate::event::Input;
use crate::event::envelope::Publisher;
use crate::event::mapping::Mapping;
use crate::subscription::kinds::limits;
use crate::subscription::kinds::publishers::Publishers;
use crate::subscription::kinds::samples::Sample;

/// Default value of `maxReplies`: maximum number of deliveries that result from replies to replies,
/// for one published event.
pub const REPLIES_MAX: u32 = 64;

record! {
    /// Rules for parsing the events of a topic.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TopicSettings {
        /// Format that publishers must send. `sns`, `eventbridge` and `s3` are the envelopes of
        /// those services.
        "input" => pub input: Input = Or(Word(&Input::ALL, Input::as_str), Input::Auto),
        /// Maximum number of deliveries that replies to replies cause for one published event.
        /// Deliveries of direct replies to the event do not count.
        "maxReplies" => pub max_replies: u32 = Or(Integer(limits::REPLIES), REPLIES_MAX),
        /// Publishers that cannot name a topic. Each publisher belongs to one topic.
        "from" => pub from: Vec<Publisher> = Or(Publishers, Vec::new()),
        /// Fields of custom events that contain their id, type, subject and other attributes.
        /// Conversions to other formats need them.
        "mapping" => pub mapping: Arc<Mapping> = Or(Whole::<Arc<Mapping>>::KIND, Mapping::default()),
        /// An event as publishers send it: JSON or text. `check` renders templates with the sample,
        /// and `try` sends it.
        "sample" => pub sample: Option<Json> = Optional(Sample, "none"),
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        let (input, mapping, from) = (Input::Auto, Arc::default(), Vec::new());
        Self { input, max_replies: REPLIES_MAX, from, mapping, sample: None }
    }
}

impl TopicSettings {
    /// Returns the sample event as the text that a publisher sends; `None` without a sample.
    #[must_use]
    pub fn sample_text(&self) -> Option<String> {
        let sample = self.sample.as_ref()?;
        Some(sample.as_str().map_or_else(|| sample.to_string(), str::to_owned))
    }
}
