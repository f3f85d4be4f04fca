//! Reads S3's reports of new blobs, which arrive as events of EventBridge. Pure.

use std::collections::HashMap;

use delivery::time::moment;
use serde::Deserialize;

/// A report about one new blob, as received from the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Receipt handle, which is needed to delete the report.
    pub receipt: String,
    /// The event of EventBridge, as JSON text.
    pub body: String,
}

/// A blob with all reports about it, because S3 sends each report at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Key of the blob; `None` if the report is unreadable. The EventBridge rule sends no such
    /// report.
    pub(crate) key: Option<String>,
    pub(crate) stored_ms: Option<u64>,
    pub(crate) receipts: Vec<String>,
}

/// The members of the event that this function reads.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html>
#[derive(Deserialize)]
struct ObjectCreated {
    time: String,
    detail: Detail,
}

#[derive(Deserialize)]
struct Detail {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    key: String,
}

/// Returns each blob in the reports once, in the order of their first reports.
pub(crate) fn blobs_of(reports: Vec<Report>) -> Vec<Blob> {
    let mut blobs: Vec<Blob> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for Report { receipt, body } in reports {
        let event = serde_json::from_str::<ObjectCreated>(&body).ok();
        let stored_ms = event.as_ref().and_then(|event| moment::parse(&event.time));
        let key = event.map(|event| event.detail.object.key);
        let known = key.as_ref().and_then(|key| places.get(key));
        match known.and_then(|place| blobs.get_mut(*place)) {
            Some(blob) => blob.receipts.push(receipt),
            None => {
                places.extend(key.clone().map(|key| (key, blobs.len())));
                blobs.push(Blob { key, stored_ms, receipts: vec![receipt] });
            }
        }
    }
    blobs
}
