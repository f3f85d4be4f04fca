//! How the events of a topic are read: the `spec` of a Topic without the settings of its Subscriptions.

use std::sync::Arc;

use crate::document::kind::{Integer, Whole, Word};
use crate::document::record::Or;
use crate::event::Input;
use crate::event::envelope::Publisher;
use crate::event::mapping::Mapping;
use crate::subscription::kinds::limits;
use crate::subscription::kinds::publishers::Publishers;

/// The default of `max_replies`.
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
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        let (input, mapping, from) = (Input::Auto, Arc::default(), Vec::new());
        Self { input, max_replies: REPLIES_MAX, from, mapping }
    }
}
