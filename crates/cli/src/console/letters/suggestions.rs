//! Collects the values that the filter fields suggest, from the cached dead letters. Pure.

use std::collections::{BTreeMap, BTreeSet};

use deadletters::letter_cache::LetterCache;
use deadletters::stats::{Stats, greatest_first};
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use maud::{Markup, html};

use crate::terminal::text;

/// The maximum number of suggestions for a field. Longer lists are not useful.
const SUGGESTED_MAX: usize = 200;
/// The maximum length of a suggestion. Longer values are not useful.
const SUGGESTED_MAX_BYTES: usize = 200;

/// The values that the filter fields of a page suggest.
#[derive(Debug, Default)]
pub(in crate::console) struct Suggestions {
    namespaces: BTreeSet<String>,
    topics: BTreeSet<String>,
    /// The full names of subscriptions, most frequent first.
    subscriptions: Vec<String>,
    /// The event types, most frequent first.
    types: Vec<String>,
}

impl Suggestions {
    /// Collects the suggestions from a cache. `stats` are the totals of the whole cache.
    pub(in crate::console) fn collect(cache: &LetterCache, stats: &Stats) -> Self {
        let mut types: BTreeMap<&str, u64> = BTreeMap::new();
        for kind in cache.letters.iter().filter_map(|letter| letter.event_type.as_deref()) {
            *types.entry(kind).or_default() += 1;
        }
        let types = types.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
        let (mut namespaces, mut topics) = (BTreeSet::new(), BTreeSet::new());
        let subscriptions = frequent(&stats.subscriptions);
        for name in &subscriptions {
            let mut parts = name.splitn(3, '/');
            let (namespace, topic) =
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            namespaces.insert(namespace.to_owned());
            topics.insert(format!("{namespace}/{topic}"));
        }
        Self { namespaces, topics, subscriptions, types: frequent(&types) }
    }

    /// Renders a `datalist` element for each field with suggestions.
    pub(in crate::console) fn lists(&self) -> Markup {
        html! {
            (list("namespaces", &self.namespaces))
            (list("topics", &self.topics))
            (list("subscriptions", &self.subscriptions))
            (list("types", &self.types))
            datalist #reasons { @for reason in Reason::NAMED { option value=(reason) {} } }
            datalist #outcomes { @for outcome in Outcome::ALL { option value=(outcome.as_str()) {} } }
        }
    }
}

/// Returns the id of the `datalist` element for a field; `None` if the field has no suggestions.
pub(in crate::console) fn list_of(field: &str) -> Option<&'static str> {
    Some(match field {
        "namespace" => "namespaces",
        "topic" => "topics",
        "subscription" => "subscriptions",
        "type" => "types",
        "reason" => "reasons",
        "outcome" => "outcomes",
        _ => return None,
    })
}

fn frequent(counts: &BTreeMap<String, u64>) -> Vec<String> {
    // Omit names with invisible characters, because users cannot recognise them.
    let is_short = |name: &str| (1..=SUGGESTED_MAX_BYTES).contains(&name.len());
    let is_visible = |name: &str| is_short(name) && !name.chars().any(text::is_invisible);
    let names = greatest_first(counts).into_iter().map(|(name, _)| name);
    names.filter(|name| is_visible(name)).take(SUGGESTED_MAX).map(str::to_owned).collect()
}

fn list<'a>(id: &str, values: impl IntoIterator<Item = &'a String>) -> Markup {
    html! { datalist id=(id) { @for value in values { option value=(value) {} } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_most_of_is_suggested_first_and_nothing_invisible() {
        let mut stats = Stats::default();
        for (name, count) in
            [("shop/orders/mail", 1), ("crm/contacts/sync", 7), ("a/b/c\u{202e}", 9)]
        {
            stats.subscriptions.insert(name.to_owned(), count);
        }
        let found = Suggestions::collect(&LetterCache::default(), &stats);
        assert_eq!(found.subscriptions, ["crm/contacts/sync", "shop/orders/mail"]);
        assert_eq!(found.topics.iter().collect::<Vec<_>>(), ["crm/contacts", "shop/orders"]);
        let many = (0..1_000_u64).map(|number| (format!("t{number}"), number)).collect();
        assert_eq!(frequent(&many).len(), SUGGESTED_MAX);
        assert_eq!(frequent(&many)[0], "t999");
    }
}
