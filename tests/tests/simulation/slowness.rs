//! AWS calls that are slow, throttled, or refused for a whole batch.

use delivery::ports::{Message, QueueError, QueueName};
use delivery::time::duration::SECOND_MS;

use super::faults::Fault;
use super::queued::Carried;
use super::sending::Way;
use super::world::Inner;

/// The timeout of a call with all its tries (`adapters::aws_ports::OPERATION_TIMEOUT`).
const CALL_MAX_MS: u64 = 8 * SECOND_MS;
/// The duration of all tries of a throttled call.
const TRIES_MS: u64 = 2 * SECOND_MS;
/// Messages that are sent to a queue within this share a batch.
const BATCH_MS: u64 = 20;

/// The duration of a call, and whether it times out.
#[derive(Debug)]
pub(crate) enum Pace {
    /// At once.
    Quick,
    /// The call takes this long.
    Slow(u64),
    /// The call times out after this long, and the caller gets an error.
    TimesOut(u64),
}

impl Inner {
    /// Draws the pace of the next AWS call.
    pub(crate) fn pace(&mut self) -> Pace {
        if !self.random.injects(Fault::SlowCall) {
            return Pace::Quick;
        }
        self.invocation().slow = true;
        let wait_ms = self.random.pick(&[SECOND_MS, 3 * SECOND_MS, CALL_MAX_MS - 1, CALL_MAX_MS]);
        self.trace(|| format!("SLOW CALL {wait_ms} ms"));
        if wait_ms < CALL_MAX_MS { Pace::Slow(wait_ms) } else { Pace::TimesOut(wait_ms) }
    }

    /// Draws the duration of a call. Here, a timeout is only a slow call.
    pub(crate) fn pause_ms(&mut self) -> u64 {
        match self.pace() {
            Pace::Quick => 0,
            Pace::Slow(wait_ms) | Pace::TimesOut(wait_ms) => wait_ms,
        }
    }

    /// Sends a message at the pace of the call; returns how long the caller waits for the result.
    pub(crate) fn send_at(
        &mut self,
        queue: QueueName,
        message: Message,
        carried: Carried,
    ) -> (u64, Result<(), QueueError>) {
        let way = Way::new(queue, &message);
        match self.pace() {
            _ if self.refuses(queue) => {
                self.check_sent(queue, &message, &carried);
                self.note_not_taken(way, &carried);
                (TRIES_MS, Err(QueueError("throttled".to_owned())))
            }
            Pace::Quick => (0, self.send(queue, message, carried)),
            Pace::Slow(wait_ms) => (wait_ms, self.send(queue, message, carried)),
            Pace::TimesOut(wait_ms) => {
                if self.random.percent(50) {
                    // The caller never gets the response of the queue.
                    self.note_perhaps_twice(way, &carried);
                    let _ = self.send(queue, message, carried);
                } else {
                    self.check_sent(queue, &message, &carried);
                    self.note_not_taken(way, &carried);
                }
                (wait_ms, Err(QueueError("timed out".to_owned())))
            }
        }
    }

    /// True if a queue refuses a message until the tries of the call are used up. If SQS throttles,
    /// only this call is refused. If KMS throttles, every message of the batch is refused.
    fn refuses(&mut self, queue: QueueName) -> bool {
        if self.random.injects(Fault::BatchRefused) {
            self.refuses_until_ms = Some((queue, self.now_ms + BATCH_MS));
        }
        let of_batch =
            |(refused_queue, until_ms)| refused_queue == queue && self.now_ms <= until_ms;
        let refused = self.refuses_until_ms.is_some_and(of_batch)
            || self.no_retries_until_ms.is_some_and(|until_ms| {
                matches!(queue, QueueName::Retry | QueueName::Slow) && self.now_ms <= until_ms
            });
        let refused = refused || self.random.injects(Fault::CallThrottled);
        if refused {
            self.trace(|| format!("REFUSED by {queue:?}"));
        }
        refused
    }
}
