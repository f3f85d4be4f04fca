//! What is told to other processes, and what is learnt from them.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::shared::{Digest, Findings, Spell};
use delivery::ports::{QueueName, Record};
use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::{Health, Memory};

/// How often the digest is read while something is unhealthy.
pub const READ_EVERY_MS: u64 = 30 * SECOND_MS;
/// How often it is read while all is well: an operator may have changed something.
pub const LOOK_EVERY_MS: u64 = 5 * MINUTE_MS;
/// How long storage is not asked after it did not answer.
const UNREACHABLE_MS: u64 = 30 * SECOND_MS;

impl Health {
    /// Whether the digest is read now. Whatever is in the retry queue or in the slow lane has failed
    /// before.
    pub(crate) fn should_learn(&self, records: &[Record], now_ms: u64) -> bool {
        let memory = self.memory();
        let has_failed =
            |record: &Record| matches!(record.queue, QueueName::Retry | QueueName::Slow);
        let is_trouble = !memory.is_empty() || records.iter().any(has_failed);
        let every_ms = if is_trouble { READ_EVERY_MS } else { LOOK_EVERY_MS };
        memory.read_ms.is_none_or(|read_ms| now_ms >= read_ms.saturating_add(every_ms))
            && now_ms >= memory.unreachable_until_ms
    }

    /// Takes over what the digest says. What this process has not written yet, it knows better.
    pub(crate) fn adopt(&self, digest: &Digest, now_ms: u64) {
        let mut guard = self.memory();
        let Memory { probations, slow, disabled, unshared, .. } = &mut *guard;
        *disabled =
            digest.iter().filter_map(|(key, summary)| Some((key, summary.disabled?))).collect();
        for (key, summary) in digest.iter().filter(|(key, _)| !unshared.contains_key(key)) {
            if let Some(spell) = summary.failing {
                probations.adopt(&key, spell, now_ms);
            }
            if let Some(spell) = summary.slow.filter(|spell| now_ms < spell.until_ms) {
                slow.adopt(&key, spell, now_ms);
            }
        }
        // A full digest may not name a destination that is not healthy.
        let is_over = |key: &&DestinationKey| !digest.is_full() && !unshared.contains_key(key);
        let known: Vec<DestinationKey> =
            probations.destinations().filter(is_over).copied().collect();
        for key in known.iter().filter(|key| digest.get(**key).failing.is_none()) {
            probations.forget(key);
        }
        let known: Vec<DestinationKey> = slow.destinations().filter(is_over).copied().collect();
        for key in known.iter().filter(|key| digest.get(**key).slow.is_none()) {
            slow.forget(key);
        }
    }

    pub(crate) fn note_read(&self, now_ms: u64) {
        self.memory().read_ms = Some(now_ms);
    }

    /// Takes over until when a destination fails, where this process was about to probe it.
    pub(crate) fn adopt_failing(&self, key: DestinationKey, spell: Spell, now_ms: u64) {
        let mut memory = self.memory();
        // While it probes, it would know better.
        memory.probations.release(&key);
        memory.probations.adopt(&key, spell, now_ms);
    }

    pub(crate) fn forget_failing(&self, key: DestinationKey) {
        self.memory().probations.forget(&key);
    }

    pub(crate) fn take_unshared(&self, now_ms: u64) -> Vec<(DestinationKey, Findings)> {
        let mut memory = self.memory();
        if memory.unshared.is_empty() || now_ms < memory.unreachable_until_ms {
            return Vec::new();
        }
        std::mem::take(&mut memory.unshared).into_iter().collect()
    }

    pub(crate) fn keep_unshared(&self, key: DestinationKey, findings: Findings) {
        let mut memory = self.memory();
        match memory.unshared.get_mut(&key) {
            Some(newer) => newer.add_earlier(findings),
            None => _ = memory.unshared.insert(key, findings),
        }
    }

    pub(crate) fn note_unreachable(&self, now_ms: u64) {
        self.memory().unreachable_until_ms = now_ms.saturating_add(UNREACHABLE_MS);
    }

    pub(crate) fn is_unreachable(&self, now_ms: u64) -> bool {
        now_ms < self.memory().unreachable_until_ms
    }
}
