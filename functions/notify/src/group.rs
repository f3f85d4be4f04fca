//! Groups dead letters by cause. Pure.
//!
//! Every dead letter is in exactly one group. There are at most [`GROUPS_MAX`] groups, and one more
//! for all other causes.

use std::collections::BTreeMap;

use crate::cause::Letter;

/// Maximum number of causes that get a message of their own.
const GROUPS_MAX: usize = 100;
/// The id of the group of all other causes.
const OTHERS: &str = "others";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) cause: String,
    pub(crate) title: String,
    /// Number of dead letters for each subscription.
    pub(crate) subscriptions: BTreeMap<String, u64>,
    /// Time of the first dead letter, in milliseconds since 1970.
    pub(crate) first_ms: Option<u64>,
    /// Indexes of the blobs of these dead letters.
    pub(crate) blobs: Vec<usize>,
}

impl Group {
    pub(crate) fn count(&self) -> usize {
        self.blobs.len()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<String, Group>);

impl Groups {
    /// Groups the dead letters of blobs, in the order of the blobs.
    pub(crate) fn new(found: &[Option<Letter>]) -> Self {
        let mut groups = Self::default();
        for (place, letter) in found.iter().enumerate() {
            letter.iter().for_each(|letter| groups.add(place, letter));
        }
        groups
    }

    fn add(&mut self, place: usize, letter: &Letter) {
        let new = || Group {
            cause: letter.cause.clone(),
            title: letter.title.clone(),
            ..Group::default()
        };
        let group = self.0.entry(letter.cause.clone()).or_insert_with(new);
        *group.subscriptions.entry(letter.subscription.clone()).or_default() += 1;
        group.first_ms = [group.first_ms, letter.at_ms].into_iter().flatten().min();
        group.blobs.push(place);
    }

    /// Returns the groups, most frequent first. The rarest causes beyond the limit become one last
    /// group.
    pub(crate) fn into_groups(self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.0.into_values().collect();
        groups.sort_by(|a, b| b.count().cmp(&a.count()).then_with(|| a.cause.cmp(&b.cause)));
        let others = groups.split_off(groups.len().min(GROUPS_MAX));
        groups.extend((!others.is_empty()).then(|| joined(&others)));
        groups
    }
}

fn joined(groups: &[Group]) -> Group {
    let title = format!("{} other causes", groups.len());
    let mut all = Group { cause: OTHERS.to_owned(), title, ..Group::default() };
    for group in groups {
        all.first_ms = [all.first_ms, group.first_ms].into_iter().flatten().min();
        all.blobs.extend(&group.blobs);
        for (name, count) in &group.subscriptions {
            *all.subscriptions.entry(name.clone()).or_default() += count;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(cause: &str, subscription: &str, at_ms: u64) -> Letter {
        Letter {
            cause: cause.to_owned(),
            title: format!("title of {cause}"),
            subscription: subscription.to_owned(),
            at_ms: Some(at_ms),
        }
    }

    #[test]
    fn letters_of_one_cause_are_one_group_with_its_first_time_and_its_subscriptions() {
        let found = [
            Some(letter("a", "n/t/x", 9)),
            None,
            Some(letter("b", "n/t/x", 3)),
            Some(letter("a", "n/t/y", 7)),
        ];
        let groups = Groups::new(&found).into_groups();
        let [a, b] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((a.title.as_str(), a.count(), a.first_ms), ("title of a", 2, Some(7)));
        assert_eq!(a.subscriptions, BTreeMap::from([("n/t/x".into(), 1), ("n/t/y".into(), 1)]));
        assert_eq!((&a.blobs[..], &b.blobs[..]), (&[0, 3][..], &[2][..]));
    }

    #[test]
    fn many_causes_share_the_last_group_and_no_letter_is_missing() {
        let cause = |number: usize| Some(letter(&format!("c{number:03}"), "n/t/x", 1));
        let found: Vec<Option<Letter>> = (0..130).map(cause).collect();
        let groups = Groups::new(&found).into_groups();
        let last = groups.last().expect("a group");
        assert_eq!((groups.len(), last.cause.as_str(), last.count()), (101, "others", 30));
        assert_eq!(last.title, "30 other causes");
        assert_eq!(groups.iter().map(Group::count).sum::<usize>(), 130);
    }
}
