//! Reading a record, with a second look at the newest subscriptions before a name counts as missing.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use adapters::telemetry;
use delivery::ports::{DispatchPorts, Record};
use delivery::subscription::catalogue::Catalogue;

use crate::decode::{self, Decoded, WorkItem};
use crate::dispatch::{Dispatch, NO_SUBSCRIPTIONS_SECONDS};

impl<P: DispatchPorts> Dispatch<P> {
    /// The items of a record; `None` when it returns to the queue. A name counts as missing only
    /// after the newest subscriptions were read; while those cannot be read, the record is
    /// redelivered later.
    pub(crate) async fn read_record(
        &self,
        record: &Record,
        catalogue: &mut Arc<Catalogue>,
    ) -> Option<Vec<WorkItem>> {
        let mut decoded = self.contained_decode(record, catalogue)?;
        // Only then, since it is a request to the store of subscriptions.
        if decoded.items.iter().any(WorkItem::is_missing_a_name) {
            match self.ports.reread().await {
                Ok(newest) => *catalogue = newest,
                Err(problem) => {
                    self.return_to_queue(record, &problem, NO_SUBSCRIPTIONS_SECONDS).await;
                    return None;
                }
            }
            // The whole record again: the newer file may match its other events differently.
            decoded = self.contained_decode(record, catalogue)?;
        }
        // Not before the second look, or an event could be reported twice.
        for (name, event) in &decoded.unmatched {
            self.telemetry.unmatched(&record.message, name, event);
        }
        Some(decoded.items)
    }

    fn contained_decode(&self, record: &Record, catalogue: &Catalogue) -> Option<Decoded> {
        let (default_topic, now_ms) = (self.default_topic.as_ref(), self.ports.now_ms());
        let read = || decode::decode_and_match(record, catalogue, default_topic, now_ms);
        match panic::catch_unwind(AssertUnwindSafe(read)) {
            Ok(Ok(decoded)) => return Some(decoded),
            Ok(Err(error)) => telemetry::returned_to_queue(&record.message, &error.to_string()),
            Err(_) => telemetry::panicked("decode"),
        }
        None
    }
}
