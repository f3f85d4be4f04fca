//! Makes requests to the table with a time limit, so that a slow or unreachable table does not
//! delay deliveries.
//!
//! After a request without a response, requests pause for 30 seconds. During the pause each process
//! decides by itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapters::telemetry;
use delivery::delivery::health::shared::Document;
use delivery::ports::DispatchPorts;
use delivery::table::{Expected, ItemKey, Table as _, TableError};
use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use crate::deadline::Deadline;

/// Timeout of one request to the table.
const REQUEST_MS: u64 = SECOND_MS;
/// Length of the pause in requests to the table, after a request without a response.
pub(crate) const UNREACHABLE_MS: u64 = 30 * SECOND_MS;
/// Minimum interval between log lines about an unreachable table.
const LOG_EVERY_MS: u64 = MINUTE_MS;
/// Maximum number of tries to write an entry that other processes write at the same time. A random
/// pause separates the tries. It is at most [`FIRST_PAUSE_MS`] after the first try, and the maximum
/// doubles each time.
const TRIES: u32 = 7;
const FIRST_PAUSE_MS: u64 = 20;

/// Log text for a table that does not respond in time.
const LATE: &str = "the table did not respond in time";

/// The table returned no usable response in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreachable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUpdated {
    /// Other processes changed the item during each try. A later update may succeed.
    Contended,
    Unreachable,
}

impl From<Unreachable> for NotUpdated {
    fn from(Unreachable: Unreachable) -> Self {
        Self::Unreachable
    }
}

/// A document and its version, as read from the table.
pub(crate) struct Read<D> {
    pub(crate) document: Option<D>,
    version: Option<u64>,
}

/// The table of the deployment, with the pause and the log interval of this process.
#[derive(Debug)]
pub(crate) struct SharedTable<P> {
    ports: Arc<P>,
    reached: Mutex<Reached>,
}

#[derive(Debug, Default)]
struct Reached {
    /// End of the pause after a request without a response.
    unreachable_until_ms: u64,
    /// Earliest time of the next log line.
    log_next_ms: u64,
}

impl<P: DispatchPorts> SharedTable<P> {
    pub(crate) fn new(ports: Arc<P>) -> Self {
        Self { ports, reached: Mutex::default() }
    }

    /// Returns the table. The caller passes the result of its request to [`Self::answer`].
    pub(crate) fn port(&self) -> &P::Table {
        self.ports.table()
    }

    /// True during the pause in requests that follows a request without a response.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.ports.now_ms() < self.reached().unreachable_until_ms
    }

    /// Reads the current document of an item. An unusable document is treated like a missing
    /// response.
    pub(crate) async fn read<D: Document>(
        &self,
        key: &ItemKey,
        deadline: &Deadline,
    ) -> Result<Read<D>, Unreachable> {
        let asked = self.port().entry(key, self.ports.now_ms());
        let Some(stored) = self.answer(asked, deadline).await? else {
            return Ok(Read { document: None, version: None });
        };
        match D::read(stored.text.as_bytes()) {
            Ok(document) => Ok(Read { document: Some(document), version: Some(stored.version) }),
            Err(error) => {
                // The document is not replaced, because a newer version may have written it.
                self.log(&format!("item {key}: {error}"));
                Err(Unreachable)
            }
        }
    }

    /// Replaces a document that was read before. Returns false if another process has replaced it
    /// in the meantime.
    pub(crate) async fn replace<D: Document>(
        &self,
        key: &ItemKey,
        document: &D,
        read: &Read<D>,
        deadline: &Deadline,
    ) -> Result<bool, Unreachable> {
        let expected = read.version.map_or(Expected::Nothing, Expected::Version);
        let (entry, now_ms) = (document.entry(), self.ports.now_ms());
        self.answer(self.port().replace(key, &entry, expected, now_ms), deadline).await
    }

    /// Changes the newest version of a document. Returns the new document and the result of the
    /// change.
    pub(crate) async fn update<D: Document, T>(
        &self,
        key: &ItemKey,
        change: impl Fn(Option<D>) -> (D, T),
        deadline: &Deadline,
    ) -> Result<(D, T), NotUpdated> {
        for tried in 0..TRIES {
            let read = self.read::<D>(key, deadline).await?;
            let (changed, more) = change(read.document.clone());
            if read.document.as_ref() == Some(&changed) {
                return Ok((changed, more));
            }
            if self.replace(key, &changed, &read, deadline).await? {
                return Ok((changed, more));
            }
            // A random pause prevents another collision of concurrent writers.
            let most_ms = FIRST_PAUSE_MS << tried;
            self.ports.sleep(u64::from(self.ports.next_jitter().0) % most_ms).await;
        }
        Err(NotUpdated::Contended)
    }

    /// Waits for the response of the table, at most [`REQUEST_MS`]. A missing response starts a
    /// pause. A refusal does not, because requests for other items and other namespaces may
    /// succeed.
    pub(crate) async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, TableError>>,
        deadline: &Deadline,
    ) -> Result<T, Unreachable> {
        if self.is_unreachable() {
            return Err(Unreachable);
        }
        let in_time = deadline.in_time(&*self.ports, request);
        let error = tokio::select! {
            biased;
            answer = in_time => match answer {
                Some(Ok(value)) => return Ok(value),
                Some(Err(error)) => error,
                // The time of this invocation is over, which is not the fault of the table.
                None => TableError::refused(LATE),
            },
            () = self.ports.sleep(REQUEST_MS) => TableError::unreachable(LATE),
        };
        if !error.is_refusal {
            let until_ms = self.ports.now_ms().saturating_add(UNREACHABLE_MS);
            self.reached().unreachable_until_ms = until_ms;
        }
        self.log(&error.problem);
        Err(Unreachable)
    }

    /// Logs that the table cannot be used, at most once a minute.
    fn log(&self, problem: &str) {
        let (mut reached, now_ms) = (self.reached(), self.ports.now_ms());
        if now_ms >= reached.log_next_ms {
            reached.log_next_ms = now_ms.saturating_add(LOG_EVERY_MS);
            telemetry::table_unreachable(problem);
        }
    }

    fn reached(&self) -> MutexGuard<'_, Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
