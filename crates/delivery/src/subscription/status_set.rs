//! [`StatusSet`]: a set of HTTP statuses.

use std::ops::RangeInclusive;

/// A set of HTTP statuses, stored as sorted ranges that are merged where possible. So equal sets
/// have equal representations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StatusSet(Vec<RangeInclusive<u16>>);

impl StatusSet {
    /// Returns the set of all statuses in these ranges, which may overlap.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u16>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                Some(_) | None => joined.push(range),
            }
        }
        Self(joined)
    }

    /// Returns the ranges as texts in ascending order, such as `200-299` and `404`.
    #[must_use]
    pub fn ranges(&self) -> Vec<String> {
        let text = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        self.0.iter().map(text).collect()
    }

    /// Returns the set of these statuses.
    #[must_use]
    pub fn from_statuses(statuses: &[u16]) -> Self {
        Self::new(statuses.iter().map(|status| *status..=*status))
    }

    /// Returns true if the set contains the status.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }

    /// Returns the smallest status that both sets contain, if there is one.
    #[must_use]
    pub fn first_shared(&self, other: &Self) -> Option<u16> {
        let overlap = |range: &RangeInclusive<u16>, of_other: &RangeInclusive<u16>| {
            let first = *range.start().max(of_other.start());
            (first <= *range.end().min(of_other.end())).then_some(first)
        };
        self.0.iter().find_map(|range| other.0.iter().find_map(|other| overlap(range, other)))
    }

    /// Returns the set of statuses that are in one of the two sets, or in both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).cloned())
    }

    /// Returns the statuses of this set that are not in the other set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut remaining = self.0.clone();
        for taken in &other.0 {
            let around = |range: RangeInclusive<u16>| {
                let (first, last) = range.into_inner();
                let before = taken.start().checked_sub(1).map(|end| first..=last.min(end));
                let after = taken.end().checked_add(1).map(|start| first.max(start)..=last);
                // Empty ranges are dropped: each removed range would otherwise double their number.
                before.into_iter().chain(after).filter(|range| !range.is_empty())
            };
            remaining = remaining.into_iter().flat_map(around).collect();
        }
        Self::new(remaining)
    }
}
