//! A table in memory that behaves like DynamoDB, for tests of the functions and for the simulation.
//!
//! The contract suite compares it with DynamoDB, operation by operation.

use std::collections::{BTreeMap, BTreeSet};

use delivery::table::{
    Change, Entry, Expected, ItemKey, Line, Permit, PermitAnswer, Places, Recovery, Refusal,
    SlotQueue, Stored, TakePermits, TakePlaces,
};

/// All items of a table.
#[derive(Debug, Clone, Default)]
pub struct MemoryTable {
    entries: BTreeMap<ItemKey, Stored>,
    limits: BTreeMap<ItemKey, Limits>,
    /// The number of requests.
    pub requests: u64,
    /// The number of writes, including those whose condition failed.
    pub writes: u64,
}

/// The part of an item that holds the limits of a destination.
#[derive(Debug, Clone, Default)]
struct Limits {
    /// `None` until the first permit is taken.
    permits: Option<BTreeSet<Permit>>,
    lines_us: BTreeMap<SlotQueue, u64>,
    takes_ms: Option<u64>,
    recovery: Option<Recovery>,
}

impl MemoryTable {
    /// See [`delivery::table::Table::entry`].
    pub fn entry(&mut self, key: &ItemKey, now_ms: u64) -> Option<Stored> {
        self.requests += 1;
        self.entries.get(key).filter(|stored| !stored.has_expired(now_ms)).cloned()
    }

    /// See [`delivery::table::Table::replace`].
    pub fn replace(
        &mut self,
        key: &ItemKey,
        entry: &Entry,
        expected: Expected,
        now_ms: u64,
    ) -> bool {
        self.requests += 1;
        self.writes += 1;
        let stored = self.entries.get(key);
        let is_met = expected.is_met(stored.map(|item| (item.version, item.expires_s)), now_ms);
        if is_met {
            let version = stored.map_or(1, |stored| stored.version + 1);
            let (text, expires_s) = (entry.text.clone(), entry.expires_s());
            self.entries.insert(key.clone(), Stored { text, version, expires_s });
        }
        is_met
    }

    /// See [`delivery::table::Table::newest`].
    pub fn newest(&mut self, partition: &str, most: u32) -> Vec<Stored> {
        self.requests += 1;
        let items = self.entries.iter().rev().filter(|(key, _)| key.partition == partition);
        items.take(most as usize).map(|(_, stored)| stored.clone()).collect()
    }

    /// See [`delivery::table::Table::take_permits`].
    pub fn take_permits(&mut self, key: &ItemKey, take: &TakePermits, now_ms: u64) -> PermitAnswer {
        self.requests += 1;
        self.writes += 1;
        let limits = self.limits.entry(key.clone()).or_default();
        let answer = take.answer(&limits.refusal(), now_ms);
        if answer == PermitAnswer::Taken {
            let permits = limits.permits.get_or_insert_default();
            permits.retain(|permit| !take.instead_of.contains(permit));
            permits.extend(&take.permits);
        }
        answer
    }

    /// See [`delivery::table::Table::return_permits`].
    pub fn return_permits(&mut self, key: &ItemKey, permits: &[Permit], takes_ms: Option<u64>) {
        self.requests += 1;
        self.writes += 1;
        let limits = self.limits.entry(key.clone()).or_default();
        let Some(given_out) = &mut limits.permits else { return };
        given_out.retain(|permit| !permits.contains(permit));
        limits.takes_ms = takes_ms.or(limits.takes_ms);
    }

    /// See [`delivery::table::Table::take_places`].
    pub fn take_places(
        &mut self,
        key: &ItemKey,
        name: SlotQueue,
        take: &TakePlaces,
        now_ms: u64,
    ) -> Places {
        self.requests += 1;
        self.writes += 1;
        let limits = self.limits.entry(key.clone()).or_default();
        let end_us = limits.lines_us.get(&name).copied();
        let report = take.report.as_ref();
        let change = report.map(|report| Recovery::reported(limits.recovery, report, now_ms));
        let change = match change.transpose() {
            Ok(change) => change,
            Err(item) => return Places { line: Line::Overtaken, recovery: Some(item) },
        };
        let (end_us, line) = take.take(end_us);
        let Some(end_us) = end_us else {
            return Places { line, recovery: limits.recovery.filter(|_| report.is_some()) };
        };
        limits.lines_us.insert(name, end_us);
        let results = report.map(|report| report.results).unwrap_or_default();
        limits.recovery = match change {
            None => limits.recovery,
            Some(Change::Add) => limits.recovery.map(|recovery| recovery.plus(results, now_ms)),
            Some(Change::Replace { new, .. }) => Some(new),
        };
        Places { line, recovery: limits.recovery.filter(|_| report.is_some()) }
    }

    /// Returns the recovery of a destination.
    #[must_use]
    pub fn recovery(&self, key: &ItemKey) -> Option<Recovery> {
        self.limits.get(key)?.recovery
    }

    /// Returns the number of permits that are taken and have not expired.
    #[must_use]
    pub fn permits(&self, key: &ItemKey, now_ms: u64) -> usize {
        let permits = self.limits.get(key).and_then(|limits| limits.permits.as_ref());
        permits.into_iter().flatten().filter(|permit| now_ms < permit.until_ms).count()
    }

    /// Deletes all items.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.limits.clear();
    }
}

impl Limits {
    fn refusal(&self) -> Refusal {
        let line_us = self.lines_us.get(&SlotQueue::Turns).copied();
        Refusal {
            given_out: self.permits.clone().unwrap_or_default(),
            line_us,
            takes_ms: self.takes_ms,
        }
    }
}
