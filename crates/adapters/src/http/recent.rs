//! A map that keeps only the most recently used values.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Recent<K, V> {
    max: usize,
    uses: u64,
    entries: HashMap<K, Entry<V>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    last_use: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    /// Creates a map for at most `max` values. A `max` of 0 means 1.
    pub(super) fn new(max: usize) -> Self {
        Self { max, uses: 0, entries: HashMap::new() }
    }

    /// Returns the value of a key. If the key is missing, inserts a new value, and removes the
    /// least recently used one from a full map.
    pub(super) fn get_or_insert<E>(
        &mut self,
        key: &K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        self.uses += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.last_use = self.uses;
            return Ok(entry.value.clone());
        }
        let value = make()?;
        if self.entries.len() >= self.max {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| self.entries.remove(&key));
        }
        let entry = Entry { value: value.clone(), last_use: self.uses };
        self.entries.insert(key.clone(), entry);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::Recent;

    fn get(recent: &mut Recent<&'static str, u32>, key: &'static str, new: u32) -> u32 {
        let made = recent.get_or_insert(&key, || Ok::<u32, Infallible>(new));
        made.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn the_least_recently_used_value_is_replaced() {
        // Repeated, because a map in random order might replace the right value by chance.
        for _ in 0..50 {
            let mut recent = Recent::new(2);
            assert_eq!(get(&mut recent, "a", 1), 1);
            assert_eq!(get(&mut recent, "b", 2), 2);
            assert_eq!(get(&mut recent, "a", 3), 1);
            assert_eq!(get(&mut recent, "c", 4), 4);
            assert_eq!(get(&mut recent, "a", 5), 1);
            assert_eq!(get(&mut recent, "b", 6), 6);
            assert_eq!(recent.entries.len(), 2);
        }
    }

    #[test]
    fn a_value_that_could_not_be_made_replaces_none() {
        let mut recent = Recent::new(1);
        assert_eq!(get(&mut recent, "a", 1), 1);
        assert_eq!(recent.get_or_insert(&"b", || Err("broken")), Err("broken"));
        assert_eq!(get(&mut recent, "a", 2), 1);
    }
}
