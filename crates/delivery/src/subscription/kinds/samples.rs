//! Reads the sample of a topic: an example of an event as publishers send it.
//!
//! This module is separate from events because a document states a sample as a value, while
//! publishers send text.

use serde_json::{Value as Json, json};

use crate::document::kind::Kind;
use crate::document::reader::Cursor;

/// Maximum size of a sample in bytes, as JSON. The limit is low because every process that reads a
/// topic reads its sample too.
pub const SAMPLE_MAX_BYTES: usize = 16 * 1024;

/// The field type of the field `sample`.
pub struct Sample;

impl Kind for Sample {
    type Value = Json;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Json> {
        let sample = at.json();
        let bytes = sample.to_string().len();
        if bytes > SAMPLE_MAX_BYTES {
            return at.refuse(format!(
                "the sample has {bytes} bytes as JSON; the limit is {SAMPLE_MAX_BYTES} bytes"
            ));
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
