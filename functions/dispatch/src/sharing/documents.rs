//! Documents that all processes share, read and replaced within bounds: a store that is slow or down
//! must not keep deliveries waiting.

use adapters::telemetry;
use delivery::delivery::health::shared::Document;
use delivery::ports::{DispatchPorts, SharedDocumentError};
use delivery::time::duration::SECOND_MS;

use crate::deadline::Deadline;
use crate::dispatch::Dispatch;

/// How long one request may take.
pub(super) const REQUEST_MS: u64 = 2 * SECOND_MS;
/// How often a document is written that others write at the same time, and the longest pause after the
/// first try; later ones are twice as long each.
const TRIES: u32 = 7;
const FIRST_PAUSE_MS: u64 = 20;

/// A document and its version, or that there is none.
pub(super) struct Stored<D> {
    pub(super) document: Option<D>,
    pub(super) version: Option<String>,
}

/// Why a document was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUpdated {
    /// Others changed it each time. It may be tried again soon.
    Contended,
    /// There was no answer that can be used, or none in time.
    Unreachable,
}

impl<P: DispatchPorts> Dispatch<P> {
    /// Reads a document; `None` when there was no answer that can be used.
    pub(super) async fn read_shared<D: Document>(
        &self,
        key: &str,
        deadline: &Deadline,
    ) -> Option<Stored<D>> {
        let Some(stored) = self.answer(key, self.ports.shared(key), deadline).await? else {
            return Some(Stored { document: None, version: None });
        };
        match D::read(&stored.bytes) {
            Ok(document) => {
                Some(Stored { document: Some(document), version: Some(stored.version) })
            }
            Err(error) => {
                // Not replaced: a newer version may have written it.
                telemetry::health_unreachable(key, &error.to_string());
                None
            }
        }
    }

    /// Replaces a document; whether nobody else did. `None` when there was no answer.
    pub(super) async fn replace_shared<D: Document>(
        &self,
        key: &str,
        document: &D,
        version: Option<&str>,
        deadline: &Deadline,
    ) -> Option<bool> {
        let replacing = self.ports.replace_shared(key, document.write(), version);
        self.answer(key, replacing, deadline).await
    }

    /// Changes a document, from what is stored at that moment, and returns it as it is then, with what
    /// else the change brings.
    pub(crate) async fn update_shared<D: Document, T>(
        &self,
        key: &str,
        change: impl Fn(Option<D>) -> (D, T),
        deadline: &Deadline,
    ) -> Result<(D, T), NotUpdated> {
        if self.health.is_unreachable(self.ports.now_ms()) {
            return Err(NotUpdated::Unreachable);
        }
        for tried in 0..TRIES {
            let read = self.read_shared::<D>(key, deadline).await;
            let Stored { document, version } = read.ok_or(NotUpdated::Unreachable)?;
            let (changed, more) = change(document.clone());
            if document.as_ref() == Some(&changed) {
                return Ok((changed, more));
            }
            let replaced = self.replace_shared(key, &changed, version.as_deref(), deadline).await;
            if replaced.ok_or(NotUpdated::Unreachable)? {
                return Ok((changed, more));
            }
            // Others write it too: not all at the same moment again.
            let most_ms = FIRST_PAUSE_MS << tried;
            self.ports.sleep(u64::from(self.ports.next_jitter().0) % most_ms).await;
        }
        Err(NotUpdated::Contended)
    }

    async fn answer<T>(
        &self,
        key: &str,
        request: impl Future<Output = Result<T, SharedDocumentError>>,
        deadline: &Deadline,
    ) -> Option<T> {
        let no_answer = || "it did not answer in time".to_owned();
        let in_time = self.in_time(request, deadline);
        let problem = tokio::select! {
            biased;
            answer = in_time => match answer {
                Some(Ok(value)) => return Some(value),
                Some(Err(error)) => error.problem,
                None => no_answer(),
            },
            () = self.ports.sleep(REQUEST_MS) => no_answer(),
        };
        telemetry::health_unreachable(key, &problem);
        self.health.note_unreachable(self.ports.now_ms());
        None
    }
}
