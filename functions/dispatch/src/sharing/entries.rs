//! The table, asked within bounds: one that is slow or down must not keep deliveries waiting.

use adapters::telemetry;
use delivery::delivery::health::shared::Document;
use delivery::ports::DispatchPorts;
use delivery::table::{Expected, ItemKey, Table as _, TableError};
use delivery::time::duration::SECOND_MS;

use crate::deadline::Deadline;
use crate::dispatch::Dispatch;

/// How long one request may take.
pub(super) const REQUEST_MS: u64 = SECOND_MS;
/// How often an entry is written that others write at the same time, and the longest pause after the
/// first try; later ones are twice as long each.
const TRIES: u32 = 7;
const FIRST_PAUSE_MS: u64 = 20;

/// The problem of a table that is slow.
const LATE: &str = "it did not answer in time";

/// The table gave no answer that can be used, or none in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreachable;

/// Why an entry was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUpdated {
    /// Others changed it each time. It may be tried again soon.
    Contended,
    /// See [`Unreachable`].
    Unreachable,
}

impl From<Unreachable> for NotUpdated {
    fn from(Unreachable: Unreachable) -> Self {
        Self::Unreachable
    }
}

/// A document and its version, or that there is none.
pub(super) struct Read<D> {
    pub(super) document: Option<D>,
    version: Option<u64>,
}

impl<P: DispatchPorts> Dispatch<P> {
    /// What an item holds now. A document that cannot be used counts as no answer.
    pub(super) async fn read_entry<D: Document>(
        &self,
        key: &ItemKey,
        deadline: &Deadline,
    ) -> Result<Read<D>, Unreachable> {
        let asked = self.ports.table().entry(key, self.ports.now_ms());
        let Some(stored) = self.table_answer(asked, deadline).await? else {
            return Ok(Read { document: None, version: None });
        };
        match D::read(stored.text.as_bytes()) {
            Ok(document) => Ok(Read { document: Some(document), version: Some(stored.version) }),
            Err(error) => {
                // Not replaced: a newer version may have written it.
                self.log_unreachable(&format!("item {key}: {error}"));
                Err(Unreachable)
            }
        }
    }

    /// Replaces what was read. True if nobody else did before.
    pub(super) async fn replace_entry<D: Document>(
        &self,
        key: &ItemKey,
        document: &D,
        read: &Read<D>,
        deadline: &Deadline,
    ) -> Result<bool, Unreachable> {
        let expected = read.version.map_or(Expected::Nothing, Expected::Version);
        let (entry, now_ms) = (document.entry(), self.ports.now_ms());
        let replacing = self.ports.table().replace(key, &entry, expected, now_ms);
        self.table_answer(replacing, deadline).await
    }

    /// Changes an entry, from what it holds at that moment, and returns it as it is then, with what
    /// else the change brings.
    pub(crate) async fn update_entry<D: Document, T>(
        &self,
        key: &ItemKey,
        change: impl Fn(Option<D>) -> (D, T),
        deadline: &Deadline,
    ) -> Result<(D, T), NotUpdated> {
        for tried in 0..TRIES {
            let read = self.read_entry::<D>(key, deadline).await?;
            let (changed, more) = change(read.document.clone());
            if read.document.as_ref() == Some(&changed) {
                return Ok((changed, more));
            }
            if self.replace_entry(key, &changed, &read, deadline).await? {
                return Ok((changed, more));
            }
            // Others write it too: not all at the same moment again.
            let most_ms = FIRST_PAUSE_MS << tried;
            self.ports.sleep(u64::from(self.ports.next_jitter().0) % most_ms).await;
        }
        Err(NotUpdated::Contended)
    }

    /// Waits for an answer of the table, for a moment. Once there was none, it is not asked for a while. After a refusal it
    /// is: other items, and those of other namespaces, may be answered.
    pub(crate) async fn table_answer<T>(
        &self,
        request: impl Future<Output = Result<T, TableError>>,
        deadline: &Deadline,
    ) -> Result<T, Unreachable> {
        if self.health.is_unreachable(self.ports.now_ms()) {
            return Err(Unreachable);
        }
        let in_time = self.in_time(request, deadline);
        let error = tokio::select! {
            biased;
            answer = in_time => match answer {
                Some(Ok(value)) => return Ok(value),
                Some(Err(error)) => error,
                // The time of this invocation is over, which says nothing about the table.
                None => TableError::refused(LATE),
            },
            () = self.ports.sleep(REQUEST_MS) => TableError::unreachable(LATE),
        };
        if !error.is_refusal {
            self.health.note_unreachable(self.ports.now_ms());
        }
        self.log_unreachable(&error.problem);
        Err(Unreachable)
    }

    /// Logs that the table cannot be used, once a minute at most.
    fn log_unreachable(&self, problem: &str) {
        if self.health.is_to_be_logged(self.ports.now_ms()) {
            telemetry::table_unreachable(problem);
        }
    }
}
