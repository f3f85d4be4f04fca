//! The messages of one queue, sorted by the time of their next change. This is fast even with
//! hundreds of thousands of messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use delivery::time::duration::DAY_MS;

use super::queued::Queued;

/// The longest retention period of a message.
const RETENTION_MAX_MS: u64 = 14 * DAY_MS;

/// Messages by the time of their next change, and by their copy.
type ByTime = BTreeSet<(u64, u64)>;

#[derive(Debug)]
pub(crate) struct QueueState {
    retention_ms: u64,
    pub(crate) messages: BTreeMap<u64, Queued>,
    /// Delayed messages and messages in flight, by the time at which they become visible.
    pub(crate) hidden: ByTime,
    /// Visible messages, by group.
    pub(crate) visible: BTreeMap<String, ByTime>,
    /// Messages that were received and not deleted, and the number of them in each group.
    pub(crate) in_flight: BTreeSet<u64>,
    pub(crate) of_group: HashMap<String, usize>,
    /// All messages, by the time at which they expire.
    pub(crate) expiry: ByTime,
    /// The copy of each receipt that is still valid.
    pub(crate) receipts: HashMap<String, u64>,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            retention_ms: RETENTION_MAX_MS,
            messages: BTreeMap::new(),
            hidden: ByTime::new(),
            visible: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            of_group: HashMap::new(),
            expiry: ByTime::new(),
            receipts: HashMap::new(),
        }
    }
}

impl QueueState {
    /// Sets the retention period of the queue.
    pub(crate) fn keep_for(&mut self, retention_ms: u64) {
        self.retention_ms = retention_ms;
        let messages = self.messages.values();
        self.expiry = messages.map(|queued| (queued.sent_ms + retention_ms, queued.copy)).collect();
    }

    pub(crate) fn put(&mut self, queued: Queued) {
        self.hidden.insert((queued.visible_ms, queued.copy));
        self.expiry.insert((queued.sent_ms + self.retention_ms, queued.copy));
        self.messages.insert(queued.copy, queued);
    }

    pub(crate) fn remove(&mut self, copy: u64) -> Option<Queued> {
        let queued = self.messages.remove(&copy)?;
        self.hidden.remove(&(queued.visible_ms, copy));
        self.remove_visible(&queued);
        self.land(&queued);
        self.expiry.remove(&(queued.sent_ms + self.retention_ms, copy));
        self.receipts.remove(&queued.receipt);
        Some(queued)
    }

    pub(crate) fn remove_visible(&mut self, queued: &Queued) {
        if let Some(group) = self.visible.get_mut(queued.group_key()) {
            group.remove(&(queued.visible_ms, queued.copy));
            if group.is_empty() {
                self.visible.remove(queued.group_key());
            }
        }
    }

    /// Makes messages visible whose delay or visibility timeout is over.
    pub(crate) fn reveal(&mut self, now_ms: u64) {
        while let Some((at_ms, copy)) = self.hidden.first().copied()
            && at_ms <= now_ms
        {
            self.hidden.pop_first();
            let queued = self.messages[&copy].clone();
            self.land(&queued);
            let group = self.visible.entry(queued.group_key().to_owned()).or_default();
            group.insert((at_ms, copy));
        }
    }

    /// Records that a message is no longer in flight.
    fn land(&mut self, queued: &Queued) {
        if self.in_flight.remove(&queued.copy)
            && let Some(count) = self.of_group.get_mut(queued.group_key())
        {
            *count -= 1;
        }
    }

    /// The visible message that is received next: the oldest one. A fair queue prefers the group
    /// with the fewest messages in flight. A message without a group counts as a group with none in
    /// flight.
    pub(crate) fn next(&self, fair: bool) -> Option<u64> {
        let noise = |group: &str| {
            let counts = fair && !group.is_empty();
            if counts { self.of_group.get(group).copied().unwrap_or(0) } else { 0 }
        };
        let firsts =
            self.visible.iter().filter_map(|(group, messages)| Some((group, messages.first()?)));
        let (_, (_, copy)) = firsts.min_by_key(|(group, first)| (noise(group), **first))?;
        Some(*copy)
    }

    /// Receives a visible message.
    pub(crate) fn take(&mut self, copy: u64, receipt: u64, now_ms: u64, hidden_ms: u64) -> Queued {
        self.remove_visible(&self.messages[&copy].clone());
        let queued = self.messages.get_mut(&copy).expect("a visible message is there");
        self.in_flight.insert(copy);
        *self.of_group.entry(queued.group_key().to_owned()).or_default() += 1;
        self.receipts.remove(&queued.receipt);
        queued.receives += 1;
        queued.first_received_ms.get_or_insert(now_ms);
        queued.visible_ms = now_ms + hidden_ms;
        queued.receipt = format!("r{receipt}");
        self.hidden.insert((queued.visible_ms, copy));
        self.receipts.insert(queued.receipt.clone(), copy);
        queued.clone()
    }
}
