//! Samples of topics: an event as its publishers send it.
//!
//! Separate from events, because a document states it as a value and publishers send a text.

use serde_json::{Value as Json, json};

use crate::document::kind::Kind;
use crate::document::reader::Cursor;

/// The longest sample, as JSON. Every reader of a topic reads it too.
pub const SAMPLE_MAX_BYTES: usize = 16 * 1024;

/// A sample of a topic.
pub struct Sample;

impl Kind for Sample {
    type Value = Json;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Json> {
        let sample = at.json();
        let bytes = sample.to_string().len();
        if bytes > SAMPLE_MAX_BYTES {
            return at.refuse(format!("at most {SAMPLE_MAX_BYTES} bytes as JSON, found {bytes}"));
        }
        Some(sample)
    }

    fn write(&self, value: &Json) -> Json {
        value.clone()
    }

    fn schema(&self) -> Json {
        json!({})
    }
}
