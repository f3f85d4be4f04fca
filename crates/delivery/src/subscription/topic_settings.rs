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

/// Default value of `maxReplies`: deliveries that may follow from replies to replies of one event.
pub const REPLIES_MAX: u32 = 64;

record! {
    /// How the events of a topic are read.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TopicSettings {
        /// What publishers have to send; sns, eventbridge and s3 are the envelopes of those services.
        "input" => pub input: Input = Or(Word(&Input::ALL, Input::as_str), Input::Auto),
        /// How many deliveries may follow from one event by replies to replies; what replies to the event itself lead to does
        /// not count.
        "maxReplies" => pub max_replies: u32 = Or(Integer(limits::REPLIES), REPLIES_MAX),
        /// Publishers that cannot name the topic; each belongs to one topic.
        "from" => pub from: Vec<Publisher> = Or(Publishers, Vec::new()),
        /// Which fields of custom events are their id, type, subject; for what is converted from them.
        "mapping" => pub mapping: Arc<Mapping> = Or(Whole::<Arc<Mapping>>::KIND, Mapping::default()),
        /// An event as publishers send it: JSON, or a text. check renders templates with it, and try sends it.
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
