//! What is told to other processes, and what is learnt from them.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::AllNews;
use delivery::delivery::health::shared::{Findings, Spell};
use delivery::subscription::Disabled;
use delivery::time::duration::{MINUTE_MS, SECOND_MS};

use super::{Health, Memory, Switch};

/// How often the news are read.
pub const READ_EVERY_MS: u64 = 30 * SECOND_MS;
/// How long the table is not asked after it did not answer.
pub(crate) const UNREACHABLE_MS: u64 = 30 * SECOND_MS;
/// How often it is logged that it did not.
const LOG_EVERY_MS: u64 = MINUTE_MS;

impl Health {
    /// True if the news are to be read now.
    pub(crate) fn should_learn(&self, now_ms: u64) -> bool {
        let memory = self.memory();
        memory.read_ms.is_none_or(|read_ms| now_ms >= read_ms.saturating_add(READ_EVERY_MS))
            && now_ms >= memory.unreachable_until_ms
    }

    /// Takes over what the news say. Skips destinations with unwritten findings: those are newer.
    pub(crate) fn adopt(&self, news: &AllNews, now_ms: u64) {
        let mut guard = self.memory();
        let Memory { probations, slow, unshared, .. } = &mut *guard;
        for health in news.health().filter(|it| !unshared.contains_key(&it.destination)) {
            let key = health.destination;
            match health.failing {
                Some(spell) => probations.adopt(&key, spell, now_ms),
                // What was counted before a probation is of this process alone.
                None if probations.is_on_probation(&key) => probations.forget(&key),
                None => {}
            }
            match health.slow {
                Some(spell) if now_ms < spell.until_ms => slow.adopt(&key, spell, now_ms),
                Some(_) => {}
                None => slow.forget(&key),
            }
        }
    }

    /// Takes over which destinations are disabled: all, and no others.
    pub(crate) fn adopt_disabled(&self, news: &AllNews) {
        // Asked again each time: whoever told it may have been overtaken by an operator.
        let switch = |(key, disabled): (&DestinationKey, &Disabled)| {
            (*key, Switch { disabled: *disabled, is_certain: false })
        };
        self.memory().disabled = news.disabled().iter().map(switch).collect();
    }

    /// The item of a destination says that it is disabled, or that it is not.
    pub(crate) fn note_disabled(&self, key: DestinationKey, disabled: Option<Disabled>) {
        let disabled_ones = &mut self.memory().disabled;
        match disabled {
            Some(disabled) => {
                _ = disabled_ones.insert(key, Switch { disabled, is_certain: true });
            }
            None => _ = disabled_ones.remove(&key),
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

    /// True if it is to be logged that the table did not answer, and not again for a minute.
    pub(crate) fn is_to_be_logged(&self, now_ms: u64) -> bool {
        let mut memory = self.memory();
        let is_due = now_ms >= memory.log_next_ms;
        if is_due {
            memory.log_next_ms = now_ms.saturating_add(LOG_EVERY_MS);
        }
        is_due
    }

    pub(crate) fn is_unreachable(&self, now_ms: u64) -> bool {
        now_ms < self.memory().unreachable_until_ms
    }
}
