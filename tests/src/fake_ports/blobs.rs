//! Fake storage: containers, and the external queues of sinks.

use std::collections::BTreeMap;

use delivery::ports::{BlobTag, PutBlob, PutError, PutMessage};
use delivery::subscription::sink::SinkQueue;
use uuid::Uuid;

use super::{FakePorts, Hanging};

#[derive(Default)]
pub(super) struct Blobs {
    /// By bucket, path of a bucket, or external queue.
    errors: BTreeMap<String, PutError>,
    stored: BTreeMap<String, String>,
    sent: Vec<(String, Uuid, String)>,
}

impl Blobs {
    fn error_of(&self, path: &str) -> Option<PutError> {
        self.errors.iter().find(|(name, _)| path.starts_with(*name)).map(|(_, error)| error.clone())
    }
}

impl FakePorts {
    /// Writes to this bucket, below this path of a bucket, or to this external queue, fail.
    #[must_use]
    pub fn with_put_error(self, name: &str, error: PutError) -> Self {
        self.state().blobs.errors.insert(name.to_owned(), error);
        self
    }

    /// `bucket/key` and text of each blob.
    #[must_use]
    pub fn blobs(&self) -> Vec<(String, String)> {
        self.state().blobs.stored.clone().into_iter().collect()
    }

    /// Queue, id and text of each dead letter sent to an external queue.
    #[must_use]
    pub fn sink_messages(&self) -> Vec<(String, Uuid, String)> {
        self.state().blobs.sent.clone()
    }
}

impl PutBlob for FakePorts {
    async fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: Vec<u8>,
        _: Option<BlobTag>,
    ) -> Result<(), PutError> {
        let path = format!("{bucket}/{key}");
        if let Some(error) = self.state().blobs.error_of(&path) {
            return Err(error);
        }
        self.hang(Hanging::PutBlob).await;
        let text = String::from_utf8(bytes).expect("a blob is text");
        // As in storage, the first write of a key wins.
        self.state().blobs.stored.entry(path).or_insert(text);
        Ok(())
    }
}

impl PutMessage for FakePorts {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        let (mut state, queue) = (self.state(), queue.to_string());
        if let Some(error) = state.blobs.errors.get(&queue) {
            return Err(error.clone());
        }
        state.blobs.sent.push((queue, id, json.to_owned()));
        Ok(())
    }
}
