//! Applies a change to the object of a topic, and returns the new object. Pure.
//!
//! Separate from writing, because a change is repeated on a newer object after a concurrent write.
//! Each entry has an owner, and an owner changes only its own entries.

use std::borrow::Cow;
use std::sync::Arc;

use delivery::topic_object::{TopicObject, owner_of, plain_topic_entry};
use thiserror::Error;

use super::Addresses;
use crate::operations::shell::typed;

/// The object of a topic. It owns its data, so the text from which it was parsed can be dropped.
pub(crate) type Object = TopicObject<'static>;

/// The error if a change would affect an entry of another owner.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{} belongs to {owner:?}: if you are that owner, use --owner {}; otherwise remove it from the files",
    entry.as_deref().map_or("the topic itself".to_owned(), |name| format!("the subscription {name}")),
    typed(owner)
)]
pub(crate) struct Foreign {
    /// The name of a subscription; `None` for the settings of the topic.
    entry: Option<String>,
    owner: String,
}

/// A change that an owner makes to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Replaces entries of the owner with those in `wanted`.
    Apply {
        /// The new entries: the subscriptions, and the topic's settings unless they are the
        /// defaults.
        wanted: Object,
        /// True if entries of the owner that are not in `wanted` are removed.
        prune: bool,
        /// The addresses of the references that the owner maps. They are applied to the entries of
        /// all owners.
        addresses: Arc<Addresses>,
    },
    /// Restores the owner's entries from an earlier object; removes them if there was none.
    Restore(Option<Object>),
    /// Restores the whole topic, with the entries of all owners.
    Replace {
        earlier: Option<Object>,
        /// The ETag of the object that was shown to the user. No other version is replaced, because
        /// all its content would be lost.
        shown: Option<String>,
    },
    /// Removes a subscription. If the topic then has no entries, adds an entry for the topic
    /// itself, so that the topic continues to exist.
    Remove(String),
}

impl Change {
    /// Applies the change to an object. Returns `None` if the topic has no entries after the
    /// change.
    ///
    /// # Errors
    /// [`Foreign`] if the change would affect an entry of another owner.
    pub(crate) fn made_in(
        &self,
        current: Option<&Object>,
        owner: &str,
    ) -> Result<Option<Object>, Foreign> {
        let mut after = current.cloned().unwrap_or_default();
        match self {
            Self::Apply { wanted, prune, addresses } => {
                if *prune {
                    after.keep(|entry| !is_of(entry, owner));
                }
                after.put(wanted, owner)?;
                addresses.put_into(&mut after);
            }
            Self::Restore(earlier) => {
                after.keep(|entry| !is_of(entry, owner));
                let mut own = earlier.clone().unwrap_or_default();
                own.keep(|entry| is_of(entry, owner));
                after.put(&own, owner)?;
            }
            Self::Replace { earlier, .. } => after = earlier.clone().unwrap_or_default(),
            Self::Remove(name) => {
                check_owner(after.subscriptions.get(name), owner, Some(name))?;
                let removed = after.subscriptions.remove(name);
                // Keep the topic without subscriptions. If its object were removed, published
                // events would become dead letters.
                if removed.is_some() && after.is_empty() {
                    after.topic = Some(plain_topic_entry(owner).into());
                }
            }
        }
        // Another program may have written a topic without entries. A change that has no effect
        // must not remove it.
        if current == Some(&after) {
            return Ok(Some(after));
        }
        Ok((!after.is_empty()).then_some(after))
    }
}

/// Operations on the entries of an object.
trait Entries {
    /// Removes the entries for which `is_kept` is false.
    fn keep(&mut self, is_kept: impl Fn(&str) -> bool);

    fn is_empty(&self) -> bool;

    /// Adds or replaces entries by name. Fails if another owner has an entry of the same name.
    fn put(&mut self, entries: &Object, owner: &str) -> Result<(), Foreign>;
}

impl Entries for Object {
    fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.subscriptions.retain(|_, entry| is_kept(entry));
        self.topic = self.topic.take().filter(|entry| is_kept(entry));
    }

    fn is_empty(&self) -> bool {
        self.topic.is_none() && self.subscriptions.is_empty()
    }

    fn put(&mut self, entries: &Object, owner: &str) -> Result<(), Foreign> {
        if let Some(topic) = &entries.topic {
            check_owner(self.topic.as_ref(), owner, None)?;
            self.topic = Some(topic.clone());
        }
        for (name, entry) in &entries.subscriptions {
            check_owner(self.subscriptions.get(name), owner, Some(name))?;
            self.subscriptions.insert(name.clone(), entry.clone());
        }
        Ok(())
    }
}

fn check_owner(
    current: Option<&Cow<'static, str>>,
    owner: &str,
    entry: Option<&str>,
) -> Result<(), Foreign> {
    // Any owner may change an entry without an owner.
    let current_owner = current.and_then(|entry| owner_of(entry));
    match current_owner.filter(|current_owner| current_owner != owner) {
        Some(current_owner) => {
            Err(Foreign { entry: entry.map(str::to_owned), owner: current_owner })
        }
        None => Ok(()),
    }
}

/// Returns true if the entry belongs to this owner.
pub(crate) fn is_of(entry: &str, owner: &str) -> bool {
    owner_of(entry).as_deref() == Some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an object with subscriptions of these names, owners and values.
    fn object(entries: &[(&str, &str, u32)]) -> Object {
        let entry = |(name, owner, value): &(&str, &str, u32)| {
            ((*name).to_owned(), Cow::Owned(format!(r#"{{"owner":"{owner}","value":{value}}}"#)))
        };
        TopicObject { topic: None, subscriptions: entries.iter().map(entry).collect() }
    }

    /// Creates a change that applies entries, without new addresses for references.
    fn apply(wanted: &Object, prune: bool) -> Change {
        Change::Apply { wanted: wanted.clone(), prune, addresses: Arc::default() }
    }

    #[test]
    fn one_owners_entries_change_and_those_of_others_stay() {
        let current = object(&[("a", "one", 1), ("b", "one", 1), ("x", "two", 1)]);
        let wanted = object(&[("a", "one", 2), ("c", "one", 1)]);
        let apply = |prune| apply(&wanted, prune);
        let all = object(&[("a", "one", 2), ("b", "one", 1), ("c", "one", 1), ("x", "two", 1)]);
        assert_eq!(apply(false).made_in(Some(&current), "one"), Ok(Some(all)));
        let pruned = object(&[("a", "one", 2), ("c", "one", 1), ("x", "two", 1)]);
        assert_eq!(apply(true).made_in(Some(&current), "one"), Ok(Some(pruned.clone())));
        let back = Change::Restore(Some(current.clone()));
        assert_eq!(back.made_in(Some(&pruned), "one"), Ok(Some(current)));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_named() {
        let current = object(&[("a", "two", 1)]);
        let foreign = Foreign { entry: Some("a".to_owned()), owner: "two".to_owned() };
        for change in [
            apply(&object(&[("a", "one", 2)]), true),
            Change::Restore(Some(object(&[("a", "one", 2)]))),
            Change::Remove("a".to_owned()),
        ] {
            assert_eq!(change.made_in(Some(&current), "one"), Err(foreign.clone()));
        }
        assert!(foreign.to_string().contains(r#"the subscription a belongs to "two""#));
    }

    #[test]
    fn a_topic_of_another_owner_is_not_replaced() {
        let topic = |owner| TopicObject {
            topic: Some(Cow::Owned(format!(r#"{{"owner":"{owner}","spec":{{}}}}"#))),
            ..Object::default()
        };
        let change = apply(&topic("one"), false);
        let foreign = Foreign { entry: None, owner: "two".to_owned() };
        assert_eq!(change.made_in(Some(&topic("two")), "one"), Err(foreign));
        assert_eq!(change.made_in(Some(&topic("one")), "one"), Ok(Some(topic("one"))));
    }

    #[test]
    fn an_entry_without_an_owner_is_changed_by_anybody_and_pruned_by_nobody() {
        let nobodys = Cow::Borrowed(r#"{"value":1}"#);
        let current =
            TopicObject { topic: None, subscriptions: [("a".to_owned(), nobodys)].into() };
        let prune = apply(&Object::default(), true);
        assert_eq!(prune.made_in(Some(&current), "one"), Ok(Some(current.clone())));
        let wanted = object(&[("a", "one", 2)]);
        assert_eq!(apply(&wanted, false).made_in(Some(&current), "one"), Ok(Some(wanted)));
    }

    #[test]
    fn a_topic_of_which_nothing_is_left_is_none() {
        let current = object(&[("a", "one", 1)]);
        for change in [apply(&Object::default(), true), Change::Restore(None)] {
            assert_eq!(change.made_in(Some(&current), "one"), Ok(None));
        }
    }

    #[test]
    fn a_topic_stays_when_its_last_subscription_is_removed() {
        let removal = Change::Remove("a".to_owned());
        let left = removal.made_in(Some(&object(&[("a", "one", 1)])), "one");
        let topic = Some(Cow::Borrowed(r#"{"owner":"one","spec":{}}"#));
        let expected = TopicObject { topic, ..Object::default() };
        assert_eq!(left, Ok(Some(expected.clone())));
        // The owner can remove this topic like any other.
        let prune = apply(&Object::default(), true);
        assert_eq!(prune.made_in(Some(&expected), "one"), Ok(None));
        let others = object(&[("a", "one", 1), ("b", "two", 1)]);
        let left = removal.made_in(Some(&others), "one");
        assert_eq!(left, Ok(Some(object(&[("b", "two", 1)]))));
        assert_eq!(removal.made_in(None, "one"), Ok(None));
    }
}
