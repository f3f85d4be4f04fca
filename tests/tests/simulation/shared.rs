//! The table that all processes share.

use delivery::table::{Entry, Expected, ItemKey, TableError};
use lastmile_tests::memory_table::MemoryTable;

use super::faults::Fault;
use super::world::Inner;

/// The longest time for which the table is unreachable.
const UNREACHABLE_MS: u64 = 3_600_000;

/// A lasting fault of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Every request fails.
    Unreachable,
    /// Every other request is refused.
    Throttled,
    /// Every request takes this long.
    Takes(u64),
    /// Each request first removes all items.
    Emptied,
}

/// The table and its faults.
#[derive(Debug, Default)]
pub(crate) struct SharedTable {
    pub(crate) table: MemoryTable,
    /// The duration of a request without a fault.
    pub(crate) latency_ms: u64,
    /// True if the world injects no faults into the table.
    pub(crate) is_reliable: bool,
    /// The current fault, and the time of its end.
    trouble: Option<(Trouble, u64)>,
    /// The number of requests during throttling.
    throttled: u64,
    /// Planned writes of operators, with their times.
    planned: Vec<(u64, ItemKey, Entry)>,
    /// Every entry that was written, or may have been, in order.
    pub(crate) written: Vec<(ItemKey, String)>,
}

impl SharedTable {
    /// Plans that an operator writes an entry at this time.
    pub(crate) fn plan(&mut self, at_ms: u64, key: ItemKey, entry: Entry) {
        self.planned.push((at_ms, key, entry));
    }

    pub(crate) fn note_written(&mut self, key: &ItemKey, text: &str) {
        self.written.push((key.clone(), text.to_owned()));
    }

    fn write_planned(&mut self, now_ms: u64) {
        let is_due = |planned: &mut (u64, ItemKey, Entry)| planned.0 <= now_ms;
        for (_, key, entry) in self.planned.extract_if(.., is_due).collect::<Vec<_>>() {
            self.table.replace(&key, &entry, Expected::Anything, now_ms);
            self.note_written(&key, &entry.text);
        }
    }

    /// Injects this fault until the given time.
    pub(crate) fn disturb(&mut self, trouble: Trouble, until_ms: u64) {
        self.trouble = Some((trouble, until_ms));
    }

    fn trouble(&self, now_ms: u64) -> Option<Trouble> {
        self.trouble.filter(|(_, until_ms)| now_ms < *until_ms).map(|(trouble, _)| trouble)
    }

    /// The duration of a request that is made now.
    pub(crate) fn takes_ms(&self, now_ms: u64) -> u64 {
        match self.trouble(now_ms) {
            Some(Trouble::Takes(takes_ms)) => takes_ms,
            _ => self.latency_ms,
        }
    }
}

impl Inner {
    /// Fails while the table cannot be reached.
    pub(crate) fn reach_table(&mut self) -> Result<(), TableError> {
        self.shared.write_planned(self.now_ms);
        if !self.shared.is_reliable && self.random.injects(Fault::Unshared) {
            let lasts_ms = self.random.below(UNREACHABLE_MS);
            self.shared.disturb(Trouble::Unreachable, self.now_ms + lasts_ms);
        }
        let shared = &mut self.shared;
        let is_refused = match shared.trouble(self.now_ms) {
            Some(Trouble::Unreachable) => true,
            Some(Trouble::Throttled) => {
                shared.throttled += 1;
                shared.throttled % 2 == 1
            }
            Some(Trouble::Emptied) => {
                shared.table.clear();
                false
            }
            Some(Trouble::Takes(_)) | None => false,
        };
        match is_refused {
            true => Err(TableError::unreachable("reach it: injected by the world")),
            false => Ok(()),
        }
    }
}
