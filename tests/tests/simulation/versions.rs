//! The subscriptions over time: the content of the files, and the versions that a function has
//! read.

use std::sync::Arc;

use delivery::subscription::catalogue::Catalogue;

use super::faults::{Fault, SeededRandom};
use super::processes::Memory;
use super::rules::{Rules, catalogue, of_topic};

/// The facts of one subscription in one version that the checks need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) max_attempts: u32,
    /// Deliveries of a paused subscription are not attempted.
    pub(crate) paused: bool,
}

/// One version of the files.
#[derive(Debug)]
struct Version {
    from_ms: u64,
    /// `None` if the files cannot be read.
    catalogue: Option<Arc<Catalogue>>,
    /// Facts by number of the subscription; `None` if the subscription is missing.
    facts: Vec<Option<Facts>>,
    /// The faults of this version that were not yet counted.
    brings: Vec<Fault>,
}

/// Every version, in the order of time.
#[derive(Debug)]
pub(crate) struct Versions {
    list: Vec<Version>,
}

impl Versions {
    /// Draws the versions of one world. A world without faults has one version.
    pub(crate) fn choose(rules: &[Rules], random: &mut SeededRandom, now_ms: u64) -> Self {
        let mut versions = Self { list: Vec::new() };
        let whole: Vec<Option<Rules>> = rules.iter().cloned().map(Some).collect();
        let mut at_ms = now_ms;
        if !random.quiet && random.percent(6) {
            versions.add_unusable(at_ms, rules.len());
            at_ms += random.pick(&[20_000, 1_000_000, 4_000_000, 31_000_000]);
        }
        versions.add(at_ms, &whole, Vec::new());
        if !random.quiet && random.percent(30) {
            let mut changed = whole.clone();
            versions.change(&mut changed, random, at_ms);
            if random.percent(30) {
                let from_ms = versions.list.last().map_or(at_ms, |version| version.from_ms);
                versions.change(&mut changed, random, from_ms);
            }
        }
        if !random.quiet && random.percent(10) {
            versions.break_for_a_while(random);
        }
        versions
    }

    /// Makes the files unreadable some time after the last version, and then restores that version.
    fn break_for_a_while(&mut self, random: &mut SeededRandom) {
        let Some(Version { from_ms, catalogue, facts, .. }) = self.list.last() else { return };
        let (catalogue, facts) = (catalogue.clone(), facts.clone());
        let broken_ms = from_ms + random.pick(&[1_000, 600_000, 10_000_000]);
        let mended_ms = broken_ms + random.pick(&[20_000, 1_000_000, 31_000_000]);
        self.add_unusable(broken_ms, facts.len());
        self.list.push(Version { from_ms: mended_ms, catalogue, facts, brings: Vec::new() });
    }

    /// The files cannot be read until this time.
    pub(crate) fn broken_until(mended_ms: u64, rules: &[Rules]) -> Self {
        let mut versions = Self { list: Vec::new() };
        versions.add_unusable(0, rules.len());
        let whole: Vec<Option<Rules>> = rules.iter().cloned().map(Some).collect();
        versions.add(mended_ms, &whole, Vec::new());
        versions
    }

    /// The subscriptions of this topic are paused until `until_ms`. The files then cannot be read
    /// until `readable_ms`.
    pub(crate) fn paused(topic: &str, until_ms: u64, readable_ms: u64, rules: &[Rules]) -> Self {
        let mut versions = Self { list: Vec::new() };
        let resumed: Vec<Option<Rules>> = rules.iter().cloned().map(Some).collect();
        let mut paused = resumed.clone();
        for number in of_topic(rules, topic) {
            paused[number].as_mut().expect("all are there").subscription.paused = true;
        }
        versions.add(0, &paused, Vec::new());
        versions.add_unusable(until_ms, rules.len());
        versions.add(readable_ms, &resumed, Vec::new());
        versions
    }

    /// Changes one subscription after this time: it is paused for a while, removed, or gets fewer
    /// attempts.
    fn change(&mut self, rules: &mut [Option<Rules>], random: &mut SeededRandom, after_ms: u64) {
        let from_ms = after_ms + random.pick(&[1_000, 30_000, 600_000, 10_000_000]);
        let mut brings = Vec::new();
        let number = random.below(rules.len() as u64) as usize;
        if let Some(rules) = &mut rules[number] {
            match random.below(5) {
                0 | 1 => {
                    rules.subscription.paused = true;
                    brings.push(Fault::Paused);
                }
                2 | 3 => {
                    let before = &mut rules.subscription.retry.max_attempts;
                    let fewer = (1 + random.below(3) as u32).min(*before);
                    brings.extend((fewer < *before).then_some(Fault::FewerAttempts));
                    *before = fewer;
                }
                _ => {}
            }
        }
        let gone = random.percent(20);
        if gone && rules[number].take().is_some() {
            brings.push(Fault::Removed);
        }
        self.add(from_ms, rules, brings);
        let mut resumed = rules.to_vec();
        let paused = resumed.iter().flatten().any(|rules| rules.subscription.paused);
        if paused && random.percent(97) {
            resumed.iter_mut().flatten().for_each(|rules| rules.subscription.paused = false);
            self.add(from_ms + random.pick(&[10_000, 1_000_000, 30_000_000]), &resumed, Vec::new());
            rules.clone_from_slice(&resumed);
        }
    }

    fn add(&mut self, from_ms: u64, rules: &[Option<Rules>], brings: Vec<Fault>) {
        let facts = |rules: &Rules| Facts {
            max_attempts: rules.subscription.retry.max_attempts,
            paused: rules.subscription.paused,
        };
        self.list.push(Version {
            from_ms,
            catalogue: Some(catalogue(
                rules.iter().flatten().map(|rules| rules.subscription.clone()),
            )),
            facts: rules.iter().map(|rules| rules.as_ref().map(facts)).collect(),
            brings,
        });
    }

    fn add_unusable(&mut self, from_ms: u64, subscriptions: usize) {
        self.list.push(Version {
            from_ms,
            catalogue: None,
            facts: vec![None; subscriptions],
            brings: Vec::new(),
        });
    }

    /// The version that a process uses now. The process reads the newest version if its last read
    /// is old enough.
    pub(crate) fn look(&self, by: &mut Memory, now_ms: u64, looked_at_every_ms: u64) -> usize {
        if now_ms.saturating_sub(by.read_ms) >= looked_at_every_ms {
            by.read_ms = now_ms;
            by.read = self.list.iter().rposition(|version| version.from_ms <= now_ms).unwrap_or(0);
        }
        by.read
    }

    /// The newest readable version up to this one.
    pub(crate) fn last_good(&self, version: usize) -> Option<usize> {
        self.list[..=version].iter().rposition(|version| version.catalogue.is_some())
    }

    /// The faults of a version that were not yet counted.
    pub(crate) fn brings(&mut self, version: usize) -> Vec<Fault> {
        std::mem::take(&mut self.list[version].brings)
    }

    /// The catalogue of a version.
    pub(crate) fn catalogue(&self, version: usize) -> Option<Arc<Catalogue>> {
        self.list[version].catalogue.clone()
    }

    /// The facts of a subscription in these versions. Unreadable versions are left out.
    pub(crate) fn facts(&self, versions: &[usize], subscription: usize) -> Vec<Option<Facts>> {
        let readable = versions
            .iter()
            .map(|version| &self.list[*version])
            .filter(|version| version.catalogue.is_some());
        readable.map(|version| version.facts[subscription]).collect()
    }

    /// True if every readable version has this subscription.
    pub(crate) fn always_have(&self, subscription: usize) -> bool {
        let mut readable = self.list.iter().filter(|version| version.catalogue.is_some());
        readable.all(|version| version.facts[subscription].is_some())
    }

    /// The lowest maximum of attempts in any version.
    pub(crate) fn fewest_attempts(&self, subscription: usize) -> u32 {
        let facts = self.list.iter().filter_map(|version| version.facts[subscription]);
        facts.map(|facts| facts.max_attempts).min().unwrap_or(0)
    }
}
